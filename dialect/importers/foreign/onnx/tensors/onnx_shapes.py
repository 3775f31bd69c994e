"""ONNX's operators that move elements: shapes, joins, parts, padding."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from .....errors import ShapeError, TraceError
from ...array_values import constant_or_created, is_size, is_traced, item_of
from ...size_values import as_number, as_numbers, as_size, as_sizes, product
from ..onnx_table import NodeResults, onnx_op
from .onnx_casts import cast, dtype_numbered


@onnx_op("Shape", whole=True)
def _shape(call: Any, x: Any, /, *, start: int = 0, end: int | None = None) -> Any:
    shape = ((len(x),) if isinstance(x, tuple) else ()) if is_size(x) else tuple(x.shape)
    return shape[start:end]


@onnx_op("Size", whole=True)
def _size(call: Any, x: Any, /) -> Any:
    if is_size(x):
        return len(x) if isinstance(x, tuple) else 1
    return product(tuple(x.shape))


def _reshape_sizes(call: Any, x: Any, shape: Any, /) -> Any:
    # A vector of sizes stays one where it becomes a vector, and a number where it becomes one.
    numbers = x if isinstance(x, tuple) else (x,)
    if is_traced(shape) or not isinstance(shape, tuple):
        return NotImplemented
    if shape in ((-1,), (len(numbers),)):
        return numbers
    return numbers[0] if shape == () and len(numbers) == 1 else NotImplemented


@onnx_op("Reshape", sizes=_reshape_sizes, kept=(1,))
def _reshape(call: Any, x: Any, shape: Any = None, /, *, allowzero: int = 0) -> Any:
    sizes: list[Any] = []
    copied: set[int] = set()
    for k, n in enumerate(as_sizes(shape)):
        is_open = getattr(n, "is_open", False)
        if not is_open and not allowzero and n == 0:
            if k >= x.ndim:
                raise ShapeError(f"Reshape copies size {k} of an operand with {x.ndim} axes")
            n = x.shape[k]
            copied.add(k)
        elif is_open and not allowzero and k < x.ndim:
            n = n + (n == 0) * x.shape[k]
        sizes.append(n)
    if any(getattr(n, "is_open", False) for n in sizes):
        return np.reshape(x, tuple(sizes))
    return np.reshape(x, tuple(-1 if k not in copied and n == -1 else n for k, n in enumerate(sizes)))


@onnx_op("Reshape-1")
def _reshape_old(call: Any, x: Any, /, *, shape: Sequence[int]) -> Any:
    return _reshape(call, x, tuple(shape))


@onnx_op("Flatten")
def _flatten(call: Any, x: Any, /, *, axis: int = 1) -> Any:
    at = axis + x.ndim if axis < 0 else axis
    return np.reshape(x, (product(tuple(x.shape[:at])), product(tuple(x.shape[at:]))))


def _squeeze_sizes(call: Any, x: Any, axes_of: Any = None, /) -> Any:
    if not isinstance(x, tuple):
        return x
    if len(x) != 1:
        raise ShapeError(f"Squeeze of a vector of {len(x)}")
    return x[0]


@onnx_op("Squeeze", sizes=_squeeze_sizes, kept=(1,))
def _squeeze(call: Any, x: Any, axes_of: Any = None, /, *, axes: Sequence[int] | None = None) -> Any:
    chosen = as_numbers(axes_of) if axes_of is not None else axes
    if chosen is None:
        chosen = tuple(k for k, n in enumerate(x.shape) if n == 1)
    return np.squeeze(x, tuple(chosen))


def _unsqueeze_sizes(call: Any, x: Any, axes_of: Any = None, /, *, axes: Any) -> Any:
    chosen = axes if axes_of is None else axes_of
    return (x,) if not isinstance(x, tuple) and tuple(np.ravel(chosen)) in ((0,), (-1,)) else NotImplemented


@onnx_op("Unsqueeze", sizes=_unsqueeze_sizes, kept=(1,))
def _unsqueeze(call: Any, x: Any, axes_of: Any = None, /, *, axes: Sequence[int] | None = None) -> Any:
    chosen = as_numbers(axes_of) if axes is None else tuple(axes)
    return np.expand_dims(x, chosen)


@onnx_op("Transpose")
def _transpose(call: Any, x: Any, /, *, perm: Sequence[int] | None = None) -> Any:
    return np.transpose(x, None if perm is None else tuple(perm))


def _concat_sizes(call: Any, /, *operands: Any) -> Any:
    if not all(isinstance(x, tuple) for x in operands):
        return NotImplemented
    return tuple(n for x in operands for n in x)


@onnx_op("Concat", sizes=_concat_sizes)
def _concat(call: Any, /, *operands: Any, axis: int = 1) -> Any:
    return np.concatenate(operands, axis) if len(operands) > 1 else operands[0]


@onnx_op("Expand", kept=(1,))
def _expand(call: Any, x: Any, shape: Any, /) -> Any:
    # Both broadcast: a size of 1 keeps that of the operand.
    wanted, have = list(as_sizes(shape)), list(x.shape)
    length = max(len(wanted), len(have))
    wanted, have = [1] * (length - len(wanted)) + wanted, [1] * (length - len(have)) + have
    sizes = []
    for a, b in zip(have, wanted, strict=True):
        if getattr(b, "is_open", False):
            if a != 1:
                b = as_number_or_raise(b)
            sizes.append(b if a == 1 else a)
        else:
            sizes.append(a if b == 1 else b)
    return np.broadcast_to(x, tuple(sizes))


def as_number_or_raise(n: Any) -> int:
    """A size for which the graph holds; raises TraceError where only a run tells it."""
    return operator.index(n)


@onnx_op("Tile", kept=(1, 2))
def _tile(call: Any, x: Any, repeats: Any, axis_of: Any = None, /) -> Any:
    if axis_of is not None:
        counts: list[Any] = [1] * x.ndim
        counts[as_number(axis_of)] = as_number(repeats)
        return np.tile(x, tuple(counts))
    return np.tile(x, as_numbers(repeats))


def _slice_sizes(
    call: Any,
    x: Any,
    first: Any = None,
    last: Any = None,
    axes_of: Any = None,
    step: Any = None,
    /,
    *,
    starts: Any,
    ends: Any,
) -> Any:
    if not isinstance(x, tuple) or not (first is None or isinstance(first, tuple)):
        return NotImplemented
    if first is None:
        first, last = starts, ends
    if len(first) != 1:
        return NotImplemented if first else x
    one, end = as_number(first), as_number(last)
    return _by_slice(x, one, end, 1 if step is None else as_number(step))


def _by_slice(x: tuple, start: int, end: int, step: int) -> tuple:
    return x[_python_slice(len(x), start, end, step)]


def _python_slice(n: Any, start: Any, end: Any, step: int) -> slice:
    """ONNX's bounds as Python's: the end of a descending slice that reaches the first element is None."""
    if step > 0:
        return slice(start, end, None if step == 1 else step)
    n, start, end = int(n), int(start), int(end)
    if end < -n:
        return slice(start, None, step)
    return slice(start, end, step)


@onnx_op("Slice", sizes=_slice_sizes, kept=(1, 2, 3, 4))
def _slice(
    call: Any,
    x: Any,
    first: Any = None,
    last: Any = None,
    axes_of: Any = None,
    step: Any = None,
    /,
    *,
    starts: Sequence[int] | None = None,
    ends: Sequence[int] | None = None,
    axes: Sequence[int] | None = None,
) -> Any:
    first = as_sizes(first) if starts is None else tuple(starts)
    last = as_sizes(last) if ends is None else tuple(ends)
    chosen = as_numbers(axes_of) if axes_of is not None else (axes or tuple(range(len(first))))
    steps = (1,) * len(first) if step is None else as_numbers(step)
    keys = [slice(None)] * x.ndim
    for start, end, axis, stride in zip(first, last, chosen, steps, strict=True):
        keys[axis] = _python_slice(x.shape[axis], start, end, stride)
    return item_of(x, tuple(keys))


def _split_sizes(call: Any, x: Any, lengths_of: Any = None, /, *, num_outputs: int | None, split: Any) -> Any:
    if not isinstance(x, tuple):
        return NotImplemented
    lengths = _lengths(call, len(x), lengths_of, split, num_outputs)
    ends = np.cumsum(lengths).tolist()
    return NodeResults(x[end - n : end] for n, end in zip(lengths, ends, strict=True))


@onnx_op("Split", sizes=_split_sizes, kept=(1,))
def _split(
    call: Any,
    x: Any,
    lengths_of: Any = None,
    /,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    split: Sequence[int] | None = None,
) -> Any:
    lengths = _lengths(call, x.shape[axis], lengths_of, split, num_outputs)
    total = sum(lengths)
    if x.shape[axis] != total:
        raise ShapeError(f"Split makes {lengths} of an axis of {int(x.shape[axis])}")
    return NodeResults(parts(x, lengths, axis))


def parts(x: Any, lengths: Sequence[int], axis: int) -> list[Any]:
    """Parts of these lengths along an axis."""
    at, start, pieces = axis % x.ndim, 0, []
    for n in lengths:
        pieces.append(x[(slice(None),) * at + (slice(start, start + n),)])
        start += n
    return pieces


def _lengths(call: Any, size: Any, operand: Any, old: Any, count: int | None) -> tuple[int, ...]:
    if operand is not None:
        return as_numbers(operand)
    if old is not None:
        return tuple(old)
    count = count or len(call.node.results)
    size = int(size)
    each = -(-size // count)
    lengths = [each] * count
    lengths[-1] = size - each * (count - 1)
    if lengths[-1] < 0:
        raise ShapeError(f"Split makes {count} parts of an axis of {size}")
    return tuple(lengths)


_MODES = {"constant": "constant", "edge": "edge", "reflect": "reflect", "wrap": "wrap"}


@onnx_op("Pad", kept=(1, 3))
def _pad(
    call: Any,
    x: Any,
    pads_of: Any = None,
    fill: Any = None,
    axes_of: Any = None,
    /,
    *,
    mode: str = "constant",
    pads: Sequence[int] | None = None,
    value: float = 0.0,
) -> Any:
    widths = as_sizes(pads_of) if pads is None else tuple(pads)
    axes = tuple(range(x.ndim)) if axes_of is None else as_numbers(axes_of)
    if len(widths) != 2 * len(axes):
        raise ShapeError(f"Pad has {len(widths)} widths for {len(axes)} axes")
    return padded(
        x, {axis % x.ndim: (widths[k], widths[k + len(axes)]) for k, axis in enumerate(axes)}, mode, fill, value
    )


def padded(
    x: Any, widths: dict[int, tuple[Any, Any]], mode: str = "constant", fill: Any = None, value: float = 0.0
) -> Any:
    """An array with elements added before and behind axes; negative widths take some away."""
    if any(getattr(n, "is_open", False) for pair in widths.values() for n in pair):
        widths = {axis: (as_number_or_raise(a), as_number_or_raise(b)) for axis, (a, b) in widths.items()}
    keys: list[Any] = [slice(None)] * x.ndim
    pairs: list[tuple[Any, Any]] = [(0, 0)] * x.ndim
    for axis, (before, behind) in widths.items():
        before, behind = int(before), int(behind)
        if before < 0 or behind < 0:
            keys[axis] = slice(max(-before, 0), x.shape[axis] - max(-behind, 0))
        pairs[axis] = (max(before, 0), max(behind, 0))
    if any(key != slice(None) for key in keys):
        x = x[tuple(keys)]
    if not any(map(any, pairs)):
        return x
    if mode not in _MODES:
        raise TraceError(f"Pad of mode {mode!r} is not supported")
    if mode != "constant":
        return np.pad(x, pairs, mode=_MODES[mode])  # type: ignore[call-overload]
    if fill is not None and is_traced(fill):
        return _framed(x, pairs, np.reshape(fill, ()))
    constant = value if fill is None else np.ravel(fill)[0].item()
    return np.pad(x, pairs, constant_values=np.array(constant, x.dtype)[()].item())


def _framed(x: Any, pairs: Sequence[tuple[int, int]], fill: Any) -> Any:
    """``x`` in a frame of a number that only a run tells."""
    for axis, (before, behind) in enumerate(pairs):
        blocks = [
            np.broadcast_to(fill, (*x.shape[:axis], n, *x.shape[axis + 1 :])) if n else None for n in (before, behind)
        ]
        x = np.concatenate([b for b in (blocks[0], x, blocks[1]) if b is not None], axis)
    return x


@onnx_op("CenterCropPad", kept=(1,))
def _center_crop_pad(call: Any, x: Any, shape: Any, /, *, axes: Sequence[int] | None = None) -> Any:
    chosen = tuple(range(x.ndim)) if axes is None else tuple(axes)
    for axis, size in zip(chosen, as_numbers(shape), strict=True):
        have = int(x.shape[axis])
        difference = size - have
        before = difference // 2 if difference > 0 else -((have - size) // 2)
        x = padded(x, {axis % x.ndim: (before, difference - before)})
    return x


@onnx_op("SpaceToDepth")
def _space_to_depth(call: Any, x: Any, /, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b = blocksize
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    blocks = np.transpose(np.reshape(x, (n, c, h // b, b, w // b, b)), order)
    return np.reshape(blocks, (n, c * b * b, h // b, w // b))


@onnx_op("DepthToSpace")
def _depth_to_space(call: Any, x: Any, /, *, blocksize: int, mode: str = "DCR") -> Any:
    n, c, h, w = x.shape
    b = blocksize
    if mode == "DCR":
        blocks = np.transpose(np.reshape(x, (n, b, b, c // (b * b), h, w)), (0, 3, 4, 1, 5, 2))
    else:
        blocks = np.transpose(np.reshape(x, (n, c // (b * b), b, b, h, w)), (0, 1, 4, 2, 5, 3))
    return np.reshape(blocks, (n, c // (b * b), h * b, w * b))


def _range_sizes(call: Any, start: Any, limit: Any, delta: Any, /) -> Any:
    return constant_or_created("arange", as_size(start), as_size(limit), as_size(delta), dtype=np.int64)


@onnx_op("Range", sizes=_range_sizes)
def _range(call: Any, start: Any, limit: Any, delta: Any, /) -> Any:
    dtype = start.dtype
    if not is_traced(start, limit, delta):
        return np.arange(start.item(), limit.item(), delta.item(), dtype=dtype)
    first, last, step = (np.reshape(v, ()) for v in (start, limit, delta))
    wide = np.float64 if dtype.kind == "f" else np.int64
    steps = (last.astype(wide) - first.astype(wide)) / step.astype(wide)
    count = np.maximum(np.ceil(steps), 0.0).astype(np.int64).item()
    return constant_or_created("arange", count).astype(dtype) * step + first


@onnx_op("ConstantOfShape", kept=(0,))
def _constant_of_shape(call: Any, shape: Any, /, *, value: Any = None) -> Any:
    fill = np.float32(0) if value is None else np.ravel(value)[0]
    sizes = as_sizes(shape)
    return constant_or_created("full", sizes, fill, dtype=fill.dtype)


@onnx_op("ReverseSequence")
def _reverse_sequence(call: Any, x: Any, lengths: Any, /, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    shape: list[Any] = [1] * x.ndim
    shape[time_axis] = -1
    steps = np.reshape(constant_or_created("arange", x.shape[time_axis]), shape)
    each: list[Any] = [1] * x.ndim
    each[batch_axis] = -1
    ends = np.reshape(lengths, each)
    places = np.broadcast_to(np.where(steps < ends, ends - 1 - steps, steps), x.shape)
    return np.take_along_axis(x, places, time_axis)


@onnx_op("Trilu")
def _trilu(call: Any, x: Any, diagonal: Any = None, /, *, upper: int = 1) -> Any:
    k: Any = 0 if diagonal is None else np.reshape(diagonal, ())
    rows = np.reshape(constant_or_created("arange", x.shape[-2]), (-1, 1))
    columns = constant_or_created("arange", x.shape[-1])
    offsets = columns - rows
    kept = offsets >= k if upper else offsets <= k
    return np.where(kept, x, np.zeros((), x.dtype)[()])


@onnx_op("EyeLike")
def _eye_like(call: Any, x: Any, /, *, dtype: int | None = None, k: int = 0) -> Any:
    rows = np.reshape(constant_or_created("arange", x.shape[0]), (-1, 1))
    ones = np.equal(constant_or_created("arange", x.shape[1]) - rows, k)
    return cast(ones, x.dtype if dtype is None else dtype_numbered(dtype))
