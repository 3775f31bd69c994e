"""What a file is, by the bytes with which it begins; nothing of the systems that write it is imported."""

import codecs
import re

MLIR_BYTECODE = b"ML\xefR"
_OPS = re.compile(rb'(?:^|=)[ \t]*"?(?:stable|v)hlo\.', re.MULTILINE)


def is_stablehlo(content: bytes) -> bool:
    """True for bytecode, and for text with ops of StableHLO."""
    return content.startswith(MLIR_BYTECODE) or _OPS.search(content) is not None


def is_text(head: bytes, *, is_whole: bool = False) -> bool:
    """True for bytes with which a text in UTF-8 can begin; ``is_whole``: for such a text."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head, final=is_whole)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def guessed_kind(name: str, head: bytes) -> str | None:
    """What a file of no kind that can be read may be, and what to do then; None if nothing is known."""
    if MLIR_BYTECODE in head:
        return "if serialize() of jax.export wrote it, write mlir_module_serialized of the exported function instead"
    if head.startswith(b"\x80"):
        return "it may be a pickle: open it by pickle.load"
    if head.startswith(b"\x93NUMPY"):
        return "it is an array of NumPy's: open it by numpy.load"
    if name.endswith(".onnx"):
        return "it does not begin as an ONNX model does: it is damaged, or of another kind"
    return None


def is_archive(head: bytes) -> bool:
    """True for a zip file, as which torch writes modules; its reader tells one from other archives."""
    return head.startswith(b"PK\x03\x04")


def is_onnx(head: bytes) -> bool:
    """True for the message of Protocol Buffers that an ONNX model is.

    Its first field is the version of the format, a small number. One of the fields 2 to 8 of a model follows: texts
    that say who made it, its graph, or its operator sets.
    """
    return len(head) > 2 and head[0] == 0x08 and 0 < head[1] < 0x40 and head[2] in b"\x12\x1a\x22\x28\x32\x3a\x42"
