"""Memory for results that become tensors of another library: one block each, which the library frees.

The block begins with the description that DLPack's C functions take (``DLManagedTensorVersioned``),
with shape and strides behind it, and then the elements. Its deleter is C's ``free``, so a tensor may
end in any thread, without the GIL, and when the interpreter has ended.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import reduce

import numpy as np

from ....dialect.ir.device import HOST
from ...exchange.c_functions import type_word
from ...exchange.dlpack import VERSION, DLTensor, Versioned, device_word
from ..conditions.host_reads import combine
from ..llvm_writer import Writer

_ALIGNMENT = 64  # of the elements, in bytes, as of NumPy arrays that `output_pool` makes
_HEAD = ctypes.sizeof(Versioned)


def lent_memory(
    w: Writer, dims: Sequence[str], strides: Sequence[str], shape: Sequence[str], dtype: np.dtype
) -> tuple[str, str]:
    """Pointers to the elements of a new block, and to the block, which is NULL where memory is short.

    Args:
        dims: the sizes of the axes, as i64, by which the elements are counted.
        strides: the strides of the tensor, in elements.
        shape: its sizes: ``dims`` in the order of its axes.
        dtype: of the elements.
    """
    rank = len(shape)
    head = _HEAD + 16 * rank
    nbytes = reduce(lambda a, b: combine(w, "*", a, b), dims, str(dtype.itemsize))
    block = w.call("malloc", "ptr", f"i64 {combine(w, '+', nbytes, str(head + _ALIGNMENT))}")
    there, failed, on = w.name(), w.here(), w.name()
    w.branch(w.op(f"icmp ne ptr {block}, null"), there, on)
    w.label(there)
    start = w.op(f"add i64 {w.op(f'ptrtoint ptr {block} to i64')}, {head + _ALIGNMENT - 1}")
    data = w.op(f"inttoptr i64 {w.op(f'and i64 {start}, {-_ALIGNMENT}')} to ptr")
    at = Versioned.tensor.offset
    sizes, steps = (_at(w, block, _HEAD + 8 * rank * k) for k in range(2))
    words = [
        (Versioned.major.offset, "i64", str(VERSION[0] | VERSION[1] << 32)),
        (Versioned.context.offset, "ptr", "null"),
        (Versioned.deleter.offset, "ptr", w.function("free")),
        (Versioned.flags.offset, "i64", "0"),
        (at + DLTensor.data.offset, "ptr", data),
        (at + DLTensor.device.offset, "i64", str(device_word(HOST))),
        (at + DLTensor.ndim.offset, "i32", str(rank)),
        (at + DLTensor.dtype.offset, "i32", str(type_word(dtype))),
        (at + DLTensor.shape.offset, "ptr", sizes),
        (at + DLTensor.strides.offset, "ptr", steps),
        (at + DLTensor.byte_offset.offset, "i64", "0"),
    ]
    words += [(_HEAD + 8 * k, "i64", word) for k, word in enumerate((*shape, *strides))]
    for offset, type_, word in words:
        w.store(type_, word, _at(w, block, offset))
    end = w.here()
    w.jump(on)
    w.label(on)
    return w.op(f"phi ptr [ null, %{failed} ], [ {data}, %{end} ]"), block


def _at(w: Writer, pointer: str, offset: int) -> str:
    return w.op(f"getelementptr i8, ptr {pointer}, i64 {offset}")
