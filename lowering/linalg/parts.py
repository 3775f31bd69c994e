"""Parts of arrays inside of loops: read as slices of tensors, and replaced by insertion into them.

`lower` of the op classes writes whole arrays anew, which nests of a kernel fold into each other. In
a loop, an array stays where it is, and rounds replace elements of it: bufferisation tells that from
``tensor.insert`` and ``tensor.insert_slice``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.attrs import DYNAMIC
from ...dialect.ir.dtypes import BOOL, F64, I64, U64
from ...dialect.ir.symbolic import Dim
from ...dialect.ir.types import ScalarType, TensorType, Type
from ...dialect.ops.control_flow.control import IfThenElse
from ...dialect.ops.elementwise.select import Cast
from ...dialect.ops.indexing.additions import IndexPut
from ...dialect.ops.indexing.index import Index, Take
from ...dialect.ops.indexing.scatter import Conform, Copy, PickScatter, SliceScatter
from ...dialect.ops.indexing.slicing import Pick, Slice
from ...dialect.ops.queries import Item, Truth
from ...dialect.ops.sizes import complete_shape, known_scalar, normalize_axis
from .element import emit, sliced, storage_type
from .generic import mlir_type
from .loop_builder import LoopBuilder
from .stored_element import load, store
from .tensor_builder import TensorValue

Place = Any  # Dim | ir.Value


def _same(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: Any, *_: Any) -> Any:
    """The array itself, where an op makes memory of its own: tensors have none."""
    out = types[0]
    assert isinstance(out, TensorType)
    if isinstance(x, TensorValue) and x.rank and x.dtype is out.dtype and x.shape == out.shape:
        return TensorValue(x.value, out)
    return None


def _slice(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: TensorValue, *bounds: Any) -> Any:
    out = types[0]
    assert isinstance(out, TensorType)
    starts, steps = _slice_parts(attrs, x, bounds)
    if min(steps, default=1) < 0:
        return None
    value = _extract_slice(b, x, starts, out.shape, steps, out)
    return TensorValue(value, out)


def _slice_parts(attrs: dict, x: TensorValue, bounds: Sequence[Any]) -> tuple[list[Dim], list[int]]:
    """First index and step along each axis."""
    starts: list[Dim] = [0] * x.rank
    steps = [1] * x.rank
    types = [known_scalar(v) for v in bounds]
    for axis, first, size, step in Slice.parts((x.type, *types), attrs):
        if first is None or size is None or not isinstance(step, int):
            raise LoweringError("the bounds of a slice are known only at run time")
        starts[axis], steps[axis] = first, step
    return starts, steps


def _pick(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: TensorValue, *position: Any) -> Any:
    axis = normalize_axis(attrs["axis"], x.rank)
    return _read(b, types, x, {axis: _place(b, attrs, x, axis, position)})


def _take(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: TensorValue, indices: Any) -> Any:
    if attrs.get("axis") is None and x.rank != 1:
        return None
    return _index(b, {"axes": (attrs.get("axis") or 0,)}, types, x, indices)


def _index(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: TensorValue, *indices: Any) -> Any:
    """The element that arrays without axes pick; what has axes is a copy, of memory of its own."""
    if len(indices) < x.rank:
        return None
    where = _places(b, attrs, x, indices)
    return None if where is None else _read(b, types, x, where)


def _index_put(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: TensorValue, value: Any, *indices: Any) -> Any:
    """Replace what arrays without axes pick."""
    rest = [size for k, size in enumerate(x.shape) if k not in Index.indexed(x.shape, attrs)]
    if rest and not (isinstance(value, TensorValue) and list(value.shape) == rest):
        return None
    where = _places(b, attrs, x, indices)
    return None if where is None else _write(b, types, x, value, where)


def _places(b: LoopBuilder, attrs: dict, x: TensorValue, indices: Sequence[Any]) -> dict[int, ir.Value] | None:
    """Axis -> the place that an array without axes names on it; None = one has axes."""
    if any(isinstance(i, TensorValue) and i.rank for i in indices):
        return None
    axes = Index.indexed(x.shape, attrs)
    return {a: b.position(i, x.shape[a]) for a, i in zip(axes, indices, strict=True)}


def _place(b: LoopBuilder, attrs: dict, x: TensorValue, axis: int, position: Sequence[Any]) -> ir.Value:
    index = attrs["index"]
    return b.position(position[0] if index == DYNAMIC else index, complete_shape(x.type)[axis])


def _read(b: LoopBuilder, types: Sequence[Type], x: TensorValue, where: dict[int, ir.Value]) -> TensorValue:
    """The element, or part, at places of axes."""
    out = types[0]
    assert isinstance(out, TensorType)
    if len(where) == x.rank:
        at = [where[axis] for axis in range(x.rank)]
        element = emit("tensor.extract", storage_type(x.dtype), x.value, *at)
        return TensorValue(None, out, load(element, x.dtype))
    return TensorValue(_extract_slice(b, x, *_part(x, where), out), out)


def _write(
    b: LoopBuilder, types: Sequence[Type], x: TensorValue, value: Any, where: dict[int, ir.Value]
) -> TensorValue:
    """Replace what lies at places of axes."""
    out = types[0]
    assert isinstance(out, TensorType)
    if len(where) == x.rank:
        element, at = store(b.scalar(value).cast(x.dtype)), [where[k] for k in range(x.rank)]
        return TensorValue(emit("tensor.insert", x.value.type, element, x.value, *at), out)
    return TensorValue(_insert_slice(b, value, x, *_part(x, where)), out)


def _part(x: TensorValue, where: dict[int, ir.Value]) -> tuple[list[Place], list[Dim], list[int]]:
    """Starts, sizes and steps of what lies at places of axes."""
    starts: list[Place] = [where.get(k, 0) for k in range(x.rank)]
    sizes: list[Dim] = [1 if k in where else d for k, d in enumerate(x.shape)]
    return starts, sizes, [1] * x.rank


def _slice_scatter(
    b: LoopBuilder, attrs: dict, types: Sequence[Type], x: TensorValue, value: TensorValue, *bounds: Any
) -> Any:
    out = types[0]
    assert isinstance(out, TensorType)
    starts, steps = _slice_parts(attrs, x, bounds)
    back = [k for k, step in enumerate(steps) if step < 0]
    if back:
        value = b.flip(value, back)
        for k in back:
            starts[k] = starts[k] + (value.shape[k] - 1) * steps[k]
            steps[k] = -steps[k]
    return TensorValue(_insert_slice(b, value, x, starts, value.shape, steps), out)


def _pick_scatter(
    b: LoopBuilder, attrs: dict, types: Sequence[Type], x: TensorValue, value: TensorValue, *position: Any
) -> Any:
    axis = normalize_axis(attrs["axis"], x.rank)
    return _write(b, types, x, value, {axis: _place(b, attrs, x, axis, position)})


def _item(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: Any, *_: Any) -> Any:
    """The one element of an array as a number of Python's."""
    out = types[0]
    assert isinstance(out, ScalarType)
    element = x.at(*[0] * x.rank) if isinstance(x, TensorValue) else b.scalar(x)
    if out.dtype is BOOL:
        return element if element.dtype is BOOL else element.ne(0)
    if element.dtype.is_complex and not out.dtype.is_complex:
        raise LoweringError("a complex number is converted to a real one")
    if out.dtype is I64 and element.dtype.is_float:
        wide = element.cast(F64)
        b.note(~(abs(wide) < 2.0**62))  # Python's ints have any size, and it raises for NaN
    if out.dtype is I64 and element.dtype is U64:
        b.note(element.cast(I64) < 0)
    return element.cast(out.dtype)


def _choose(b: LoopBuilder, attrs: dict, types: Sequence[Type], condition: Any, *values: Any) -> Any:
    """One of two values, both of which are there."""
    (out,), truth = types, b.scalar(condition).cast(BOOL)
    if isinstance(out, TensorType) and out.rank:
        chosen = emit("arith.select", values[0].value.type, truth.value, *(v.value for v in values))
        return TensorValue(chosen, out)
    assert isinstance(out, (TensorType, ScalarType)) and out.dtype is not None
    one, other = (b.scalar(v).cast(out.dtype) for v in values)
    scalar = truth.select(one, other)
    return scalar if isinstance(out, ScalarType) else TensorValue(None, out, scalar)


def _cast(b: LoopBuilder, attrs: dict, types: Sequence[Type], x: Any, *_: Any) -> Any:
    """A number as an element of a dtype that may be too narrow for it."""
    if not attrs["fits"]:
        return None
    (out,), wide = types, b.scalar(x).cast(I64)
    assert isinstance(out, TensorType) and out.dtype is not None
    info = np.iinfo(out.dtype.numpy)
    b.note(wide < int(info.min))
    if info.max < 2**63:
        b.note(wide > int(info.max))
    return TensorValue(None, out, wide.cast(out.dtype))


def _extract_slice(
    b: LoopBuilder, x: TensorValue, starts: Sequence[Place], sizes: Any, steps: Sequence[int], out: TensorType
) -> ir.Value:
    lists = [_indices(b, n) for n in (starts, sizes, steps)]
    return sliced("tensor.extract_slice", mlir_type(out), [x.value], *lists)


def _insert_slice(
    b: LoopBuilder, value: TensorValue, x: TensorValue, starts: Sequence[Place], sizes: Any, steps: Sequence[int]
) -> ir.Value:
    lists = [_indices(b, n) for n in (starts, sizes, steps)]
    return sliced("tensor.insert_slice", x.value.type, [value.value, x.value], *lists)


def _indices(b: LoopBuilder, dims: Sequence[Place]) -> list[int | ir.Value]:
    return [n if isinstance(n, (int, ir.Value)) else b.index(n) for n in dims]


PARTS: dict[type, Callable[..., Any]] = {
    Copy: _same,
    Conform: _same,
    Slice: _slice,
    Pick: _pick,
    Take: _take,
    Index: _index,
    IndexPut: _index_put,
    SliceScatter: _slice_scatter,
    PickScatter: _pick_scatter,
    Item: _item,
    Truth: _item,
    IfThenElse: _choose,
    Cast: _cast,
}
"""Op -> what lowers it inside of a loop; the result is None where the op's own `lower` does."""
