"""The places of tensors in memory: their buffers, strides and the bytes of an element."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialect.errors import InternalError, LoweringError
from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .affine import AffineIndex, row_major
from .graph import Buffer, Element, RowMajorReshape, Source, Tensor

BLOCK_ROW = "block row"  # atom: the place of a row within its block

_BYTES = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
    "complex<f32>": 8,
    "complex<f64>": 16,
}


def element_bytes(element: Element) -> int:
    """Bytes of one stored element; raises LoweringError for what cannot be stored."""
    text = str(element)
    if text in _BYTES:
        return _BYTES[text]
    raise LoweringError(f"elements of type {text} cannot be stored")


def buffer_of(tensor: Tensor) -> Buffer:
    """The buffer of a tensor that is in memory."""
    buffer = buffer_or_none(tensor)
    if buffer is None:
        raise InternalError(f"{tensor} has no buffer")
    return buffer


def buffer_or_none(tensor: Tensor) -> Buffer | None:
    """The buffer of a tensor, or None; a reshape has the buffer of its source."""
    while tensor.buffer is None and isinstance(tensor.producer, RowMajorReshape):
        tensor = tensor.producer.source
    if isinstance(tensor.producer, Source):
        return tensor.producer.buffer
    return tensor.buffer


def reshape_root(tensor: Tensor) -> Tensor:
    """The tensor that a chain of reshapes starts from; ``tensor`` itself if it is no reshape."""
    while isinstance(tensor.producer, RowMajorReshape):
        tensor = tensor.producer.source
    return tensor


def strides_of(tensor: Tensor) -> tuple[Dim, ...]:
    """Element strides of a tensor in memory; for a computed tensor, those that it will have."""
    producer = tensor.producer
    if isinstance(producer, Source):
        return producer.buffer.strides
    return row_major(tensor.dims)


def offset_of(tensor: Tensor, index: Sequence[AffineIndex]) -> AffineIndex:
    """The offset, in elements, of an element of a stored tensor in its buffer."""
    buffer = buffer_of(tensor)
    if buffer.layout is not None:
        rows = buffer.layout.rows
        at = ix.linear(index, buffer.layout.strides)
        (inside,) = ix.substituted([at], lambda loop: ix.atom(BLOCK_ROW if loop in rows else loop))
        return inside
    if buffer.windowed:
        return ix.linear((ix.atom(BLOCK_ROW), index[-1]), (tensor.dims[-1], 1))
    return ix.linear(index, strides_of(tensor))


def is_contiguous(tensor: Tensor) -> bool:
    """True if the tensor is C-contiguous in memory (or will be)."""
    strides = strides_of(tensor)
    return all(s == r or d == 1 for s, r, d in zip(strides, row_major(tensor.dims), tensor.dims, strict=True))
