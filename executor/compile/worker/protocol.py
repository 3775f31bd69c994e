"""What crosses the pipe: requests and replies, never pickles.

A message is a JSON object with the protocol's version ``v`` and a ``kind``, then a zero byte and
the sections that it lists. The worker says ``hello`` once it can compile, then answers every
``compile`` with a ``group`` for each fusion function that it begins to compile, and a ``result``
or an ``error``. Results are written as they are in the disk cache (`cache.codec`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, TypeVar

from ....dialect import errors
from ....dialect.errors import Loc, ProfuseError
from ....dialect.reasons import Reason
from ....lowering.target import Target
from ..cache.codec import from_sections, to_sections
from ..request import CompileRequest, CompileResult

PROTOCOL = 2

T = TypeVar("T")
_Reader = Callable[[dict[str, Any], dict[str, bytes]], T]


class WireError(Exception):
    """Bytes that are no message of this protocol."""


class Group(str):
    """Name of a fusion function that a worker has begun to compile.

    ``checking``: it is compiled, and its kernel is about to be run for the first time.
    """

    checking = False


def encode_hello(version: str) -> bytes:
    """What a worker says first: that it is ready, and of which version of the package."""
    return _message("hello", {"version": version})


def encode_request(request: CompileRequest) -> bytes:
    """A request as a message; inverse of `decode_request`."""
    pinned = [[name, reason.to_json()] for name, reason in request.pinned]
    return _message("compile", {**asdict(replace(request, pinned=())), "pinned": pinned})


def encode_result(result: CompileResult) -> bytes:
    """A result as a message; inverse of `decode_reply`."""
    return _message("result", {}, to_sections(result))


def encode_group(name: str, *, checking: bool = False) -> bytes:
    """That the worker begins to compile a fusion function, or to check its kernel."""
    return _message("group", {"name": name, "checking": checking})


def encode_error(error: ProfuseError) -> bytes:
    """An error as a message; `decode_reply` makes an error of the same class of it."""
    loc = error.loc
    data = {
        "class": type(error).__name__,
        "what": error.what,
        "loc": None if loc is None else [loc.file, loc.line, loc.col],
        "hint": error.hint,
    }
    return _message("error", data)


def decode_hello(payload: bytes) -> str:
    """The version that a worker said it is of. Raises WireError."""
    return _decoded(payload, {"hello": lambda data, sections: str(data["version"])})


def decode_request(payload: bytes) -> CompileRequest:
    """The request in a message. Raises WireError."""

    def read(data: dict[str, Any], sections: dict[str, bytes]) -> CompileRequest:
        target = None if data["target"] is None else Target(**data["target"])
        pinned = tuple((str(n), Reason.from_json(reason)) for n, reason in data["pinned"])
        return CompileRequest(**{**data, "target": target, "pinned": pinned})

    return _decoded(payload, {"compile": read})


def decode_reply(payload: bytes) -> CompileResult | ProfuseError | Group:
    """The result, the error to raise, or the group begun, in a message. Raises WireError."""
    read: dict[str, _Reader[CompileResult | ProfuseError | Group]]
    read = {
        "group": lambda data, sections: _group(data),
        "result": lambda data, sections: from_sections(sections),
        "error": _error,
    }
    return _decoded(payload, read)


def _group(data: dict[str, Any]) -> Group:
    group = Group(data["name"])
    group.checking = bool(data["checking"])
    return group


def _error(data: dict[str, Any], sections: dict[str, bytes]) -> ProfuseError:
    # Classes outside of `dialect.errors` are those of users' passes, of which only the base is
    # sure to take these arguments.
    cls = vars(errors).get(data["class"], ProfuseError)
    if not (isinstance(cls, type) and issubclass(cls, ProfuseError)):
        cls = ProfuseError
    loc = None if data["loc"] is None else Loc(*data["loc"])
    return cls(data["what"], loc=loc, hint=data["hint"])


def _message(kind: str, body: dict[str, Any], sections: dict[str, bytes] | None = None) -> bytes:
    sections = sections or {}
    listed = [[name, len(data)] for name, data in sections.items()]
    head = {"v": PROTOCOL, "kind": kind, "body": body, "sections": listed}
    return b"".join((json.dumps(head).encode(), b"\0", *sections.values()))


def _decoded(payload: bytes, readers: dict[str, _Reader[T]]) -> T:
    try:
        # JSON escapes zero bytes, so the first one ends it.
        head, _, rest = payload.partition(b"\0")
        message = json.loads(head)
        version, kind, body = message["v"], message["kind"], message["body"]
        if version != PROTOCOL:
            raise WireError(f"protocol {version!r}, not {PROTOCOL}")
        if kind not in readers:
            raise WireError(f"a message of kind {kind!r}, not {' or '.join(readers)}")
        return readers[kind](body, _sections(message["sections"], rest))
    except WireError:
        raise
    except Exception as error:
        # Whatever a reader trips over, the message is at fault.
        raise WireError(f"{type(error).__name__}: {error}") from error


def _sections(listed: list[tuple[str, int]], data: bytes) -> dict[str, bytes]:
    sections, start = {}, 0
    for name, length in listed:
        sections[name] = data[start : start + length]
        start += length
    if start != len(data):
        raise WireError(f"sections of {start} bytes, {len(data)} came")
    return sections
