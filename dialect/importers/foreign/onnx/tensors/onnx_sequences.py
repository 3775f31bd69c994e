"""ONNX's sequences, as lists, and optional values, which are None or there."""

from __future__ import annotations

from typing import Any

import numpy as np

from .....errors import BoundsError, TraceError
from ...size_values import as_array, as_number, as_numbers
from ..onnx_table import onnx_op
from .onnx_shapes import parts


@onnx_op("SequenceConstruct", whole=True)
def _sequence_construct(call: Any, /, *elements: Any) -> Any:
    return [as_array(x) for x in elements]


@onnx_op("SequenceEmpty")
def _sequence_empty(call: Any, /, *, dtype: int = 1) -> Any:
    return []


def _position(sequence: list, position: Any, last: int) -> int:
    k = as_number(position)
    if not -len(sequence) <= k <= last:
        raise BoundsError(f"position {k} of a sequence of {len(sequence)}")
    return k


@onnx_op("SequenceAt", whole=True)
def _sequence_at(call: Any, sequence: list, position: Any, /) -> Any:
    return sequence[_position(sequence, position, len(sequence) - 1)]


@onnx_op("SequenceInsert", whole=True)
def _sequence_insert(call: Any, sequence: list, x: Any, position: Any = None, /) -> Any:
    k = len(sequence) if position is None else _position(sequence, position, len(sequence))
    return [*sequence[:k], as_array(x), *sequence[k:]]


@onnx_op("SequenceErase", whole=True)
def _sequence_erase(call: Any, sequence: list, position: Any = None, /) -> Any:
    k = len(sequence) - 1 if position is None else _position(sequence, position, len(sequence) - 1)
    k %= len(sequence)
    return [*sequence[:k], *sequence[k + 1 :]]


@onnx_op("SequenceLength", whole=True)
def _sequence_length(call: Any, sequence: list, /) -> Any:
    return len(sequence)


@onnx_op("ConcatFromSequence", whole=True)
def _concat_from_sequence(call: Any, sequence: list, /, *, axis: int, new_axis: int = 0) -> Any:
    return np.stack(sequence, axis) if new_axis else np.concatenate(sequence, axis)


@onnx_op("SplitToSequence", whole=True)
def _split_to_sequence(call: Any, x: Any, split: Any = None, /, *, axis: int = 0, keepdims: int = 1) -> Any:
    x = as_array(x)
    size = int(x.shape[axis])
    if split is None:
        pieces = parts(x, (1,) * size, axis)
        return pieces if keepdims else [np.squeeze(piece, axis) for piece in pieces]
    split_rank = 0 if isinstance(split, int) else getattr(split, "ndim", 1)
    lengths = as_numbers(split)
    if split_rank == 0:
        each = lengths[0]
        lengths = (each,) * (size // each) + ((size % each,) if size % each else ())
    return parts(x, lengths, axis)


@onnx_op("Optional", whole=True)
def _optional(call: Any, x: Any = None, /, *, type: Any = None) -> Any:
    return x


@onnx_op("OptionalHasElement", whole=True)
def _optional_has_element(call: Any, x: Any = None, /) -> Any:
    return np.bool_(x is not None)


@onnx_op("OptionalGetElement", whole=True)
def _optional_get_element(call: Any, x: Any, /) -> Any:
    if x is None:
        raise TraceError("OptionalGetElement of an optional value that is empty")
    return x
