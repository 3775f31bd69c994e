"""Reductions, products and sorting in StableHLO.

A reduction's region is compared with those of sums, maxima and their like, op by op. Any other one is
computed as the dialect defines it, element after element along the axes, with whole slices at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ....errors import TraceError
from ....ir.dtypes import dtype_of
from ...numpy.tracing.operators import op
from ...numpy.tracing.traced_control import fori_loop
from ..array_values import is_number, owned, sortable
from ..foreign_graph import ForeignBlock, ForeignNode, Operand, ValueRef
from ..interpreter import NodeContext
from ..size_values import as_array
from .hlo_elementwise import STABLEHLO, total_rank
from .hlo_values import arrays, in_trace

_COMBINED = {"add": "sum", "maximum": "max", "minimum": "min", "multiply": "prod", "and": "all", "or": "any"}


def combination(block: ForeignBlock) -> str | None:
    """Which of `_COMBINED` the region of a reduction of one operand is: ``"add"``; None = another one."""
    if len(block.nodes) != 1 or len(block.inputs) != 2:
        return None
    (node,) = block.nodes
    name = node.op.removeprefix("stablehlo.")
    takes = {x.number for x in node.operands if type(x) is ValueRef}
    gives = block.outputs == (ValueRef(node.results[0]),)
    return name if name in _COMBINED and gives and takes == set(block.inputs) else None


@STABLEHLO.register("stablehlo.reduce")
def _reduce(call: NodeContext, *operands: Any, dimensions: tuple[int, ...]) -> Any:
    count = len(operands) // 2
    values = arrays(operands[:count]) if count == 1 else tuple(operands[:count])
    inits = operands[count:]
    if not dimensions:
        return values[0] if count == 1 else values
    block = call.node.blocks[0]
    name = combination(block) if count == 1 else None
    if name is not None:
        reduced = reduced_by(name, values[0], dimensions)
        if reduced is not None:
            return _with_init(name, reduced, inits[0])
    if count == 2 and len(dimensions) == 1:
        position = _extremum(block)
        if position is not None and _is_line(values[1], dimensions[0], call):
            return _first_extremum(position, values[0], values[1].dtype, dimensions[0])
    return _reduced_in_order(call, values, inits, dimensions)


def reduced_by(name: str, x: Any, axes: Sequence[int]) -> Any:
    """The reduction by a known combination; None where no op of ours does it for this dtype."""
    ours = _COMBINED[name]
    if x.dtype == np.bool_:
        ours = {"sum": "any", "max": "any", "prod": "all", "min": "all"}.get(ours, ours)
        return op(ours, x, axes=tuple(axes))
    if ours in ("all", "any"):
        return None
    if ours in ("sum", "prod"):
        return op(ours, x, axes=tuple(axes), promote=False)
    has_elements = all(x.shape[axis] > 0 for axis in axes)  # of nothing it is the start value
    return op(ours, x, axes=tuple(axes)) if has_elements else None


def _with_init(name: str, reduced: Any, init: Any) -> Any:
    """A reduction with its start value, which is mostly the one that changes nothing."""
    if is_number(init):
        info: Any = np.finfo(init.dtype) if init.dtype.kind == "f" else None
        if init.dtype.kind in "iu":
            info = np.iinfo(init.dtype)
        least = -np.inf if init.dtype.kind == "f" else info.min if info else False
        most = np.inf if init.dtype.kind == "f" else info.max if info else True
        neutral = {"add": 0, "multiply": 1, "maximum": least, "minimum": most, "and": True, "or": False}[name]
        if init.dtype.kind in "iuf" and init == neutral:
            return reduced
        if init.dtype.kind == "b" and bool(init) == (name in ("and", "multiply", "minimum")):
            return reduced
    ours = {"add": "add", "multiply": "mul", "maximum": "maximum", "minimum": "minimum"}.get(name, name)
    if reduced.dtype == np.bool_:
        ours = "logical_or" if ours in ("add", "maximum", "or") else "logical_and"
    return op(ours, reduced, as_array(init, reduced.dtype))


def _reduced_in_order(call: NodeContext, values: tuple, inits: tuple, axes: Sequence[int]) -> Any:
    """The reduction by any region: slices along the axes are combined one after the other."""
    lines = []
    for x in values:
        front = np.moveaxis(x, tuple(axes), tuple(range(len(axes))))
        kept = front.shape[len(axes) :]
        lines.append(np.reshape(front, (-1, *kept)))
    start = tuple(
        owned(np.broadcast_to(in_trace(as_array(init, x.dtype), x.shape[1:]), x.shape[1:]))
        for x, init in zip(lines, inits, strict=True)
    )

    def combined(k: Any, carried: tuple) -> tuple:
        return call.run_block(0, *carried, *(line[k] for line in lines))

    results = fori_loop(0, lines[0].shape[0], combined, start)
    return results[0] if len(results) == 1 else tuple(results)


def _extremum(block: ForeignBlock) -> str | None:
    """``"argmax"`` or ``"argmin"``, if the region is what `jax.numpy` writes for it; else None.

    That keeps the value that is greater, or NaN, and of equal ones that with the smaller index.
    """
    if [node.op.removeprefix("stablehlo.") for node in block.nodes] != _PARTS or len(block.inputs) != 4:
        return None
    x, i, y, j = map(ValueRef, block.inputs)
    greater, is_nan, first, equal, before, tie, second, value, index = block.nodes
    direction = greater.attributes.get("comparison_direction")

    def refs(node: ForeignNode) -> ValueRef:
        return ValueRef(node.results[0])

    is_of_form = (
        direction in ("GT", "LT")
        and greater.operands == (x, y)
        and (is_nan.operands, is_nan.attributes.get("comparison_direction")) == ((x, x), "NE")
        and first.operands == (refs(greater), refs(is_nan))
        and (equal.operands, equal.attributes.get("comparison_direction")) == ((x, y), "EQ")
        and (before.operands, before.attributes.get("comparison_direction")) == ((i, j), "LT")
        and tie.operands == (refs(equal), refs(before))
        and second.operands == (refs(first), refs(tie))
        and value.operands == (refs(first), x, y)
        and index.operands == (refs(second), i, j)
        and block.outputs == (refs(value), refs(index))
    )
    return ("argmax" if direction == "GT" else "argmin") if is_of_form else None


_PARTS = ["compare", "compare", "or", "compare", "compare", "and", "or", "select", "select"]


def _is_line(x: Any, axis: int, call: NodeContext) -> bool:
    """True if an operand is an iota along an axis, by the node that producers it."""
    producer = call.interpreter.producer(call.node.operands[1])
    return producer is not None and producer.op == "stablehlo.iota" and producer.attributes["iota_dimension"] == axis


def _first_extremum(name: str, x: Any, dtype: np.dtype, axis: int) -> tuple[Any, Any]:
    index = getattr(np, name)(x, axis=axis)
    value = getattr(np, name[3:])(x, axis=axis)
    return value, op("cast", index, dtype=dtype_of(dtype))


@STABLEHLO.register("stablehlo.dot_general")
def _dot_general(call: NodeContext, x: Any, y: Any, *, dot_dimension_numbers: dict[str, Any], **_: Any) -> Any:
    """The contraction of axes, summed in the dtype of the result."""
    assert call.type is not None and call.type.dtype is not None
    dtype, numbers = call.type.dtype, dot_dimension_numbers
    batch = numbers.get("lhs_batching_dimensions", ()), numbers.get("rhs_batching_dimensions", ())
    summed = numbers.get("lhs_contracting_dimensions", ()), numbers.get("rhs_contracting_dimensions", ())
    x, y = (a if a.dtype == dtype else a.astype(dtype) for a in (x, y))
    free = [[d for d in range(a.ndim) if d not in (*b, *s)] for a, b, s in zip((x, y), batch, summed, strict=True)]
    left = np.transpose(x, (*batch[0], *free[0], *summed[0]))
    right = np.transpose(y, (*batch[1], *summed[1], *free[1]))
    count = len(batch[0])
    shape = (*left.shape[: count + len(free[0])], *right.shape[count + len(summed[1]) :])
    batches = left.shape[:count]
    rows, columns = (
        _product(left.shape[count : count + len(free[0])]),
        _product(right.shape[count + len(summed[1]) :]),
    )
    depth = _product(right.shape[count : count + len(summed[1])])
    product = np.matmul(np.reshape(left, (*batches, rows, depth)), np.reshape(right, (*batches, depth, columns)))
    result = np.reshape(product, shape)
    return result if result.dtype == dtype else op("cast", result, dtype=dtype_of(dtype))


def _product(sizes: Sequence[Any]) -> Any:
    total: Any = 1
    for size in sizes:
        total = total * size
    return total


@STABLEHLO.register("stablehlo.sort")
def _sort(call: NodeContext, *operands: Any, dimension: int = -1, is_stable: bool = True) -> Any:
    keys = _sort_keys(call.node.blocks[0], len(operands))
    if keys is None:
        raise TraceError("stablehlo.sort by this comparator is not supported")
    if len(operands) == 1 and not (keys[0].is_descending or keys[0].is_total):
        values = np.sort(sortable(operands[0]), axis=dimension, kind="stable")
        return values if values.dtype == operands[0].dtype else values.astype(operands[0].dtype)
    indices: Any = None
    for key in reversed(keys):  # the last one decides first: the order by the others keeps that of equal ones
        values = operands[key.operand]
        if indices is not None:
            values = np.take_along_axis(values, indices, axis=dimension)
        order = _argsort(total_rank(values) if key.is_total else values, dimension, key.is_descending)
        indices = order if indices is None else np.take_along_axis(indices, order, axis=dimension)
    results = tuple(np.take_along_axis(x, indices, axis=dimension) for x in operands)
    return results[0] if len(results) == 1 else results


def _argsort(keys: Any, axis: int, is_descending: bool) -> Any:
    """The positions in order; equal keys stay in theirs."""
    keys = sortable(keys)
    if not is_descending:
        return np.argsort(keys, axis=axis, kind="stable")
    backwards = np.argsort(np.flip(keys, axis), axis=axis, kind="stable")
    return np.flip(keys.shape[axis] - 1 - backwards, axis)


@dataclass(frozen=True, slots=True)
class _SortKey:
    """What a comparator compares.

    Attributes:
        operand: the number of the sorted operand.
        is_descending: greater ones come first.
        is_total: in the total order of floats, where zeros have signs.
    """

    operand: int
    is_descending: bool
    is_total: bool


def _sort_keys(block: ForeignBlock, count: int) -> list[_SortKey] | None:
    """The keys of a comparator, the one that decides first before those that decide between its equal ones.

    None = another comparator.

    `jax` makes zeros of both signs, and all NaNs, equal first: their values go through ``select``. It writes
    ``a < b or (a == b and …)`` where there are several keys.
    """
    if len(block.inputs) != 2 * count or len(block.outputs) != 1:
        return None
    origin: dict[Operand, tuple[int, frozenset]] = {ValueRef(n): (n, frozenset()) for n in block.inputs}
    producers: dict[Operand, ForeignNode] = {ValueRef(n): node for node in block.nodes for n in node.results}
    for node in block.nodes:
        if node.op == "stablehlo.select":
            equal = _made_equal(node, producers.get(node.operands[0]), origin)
            if equal is None:
                return None
            origin[ValueRef(node.results[0])] = equal
    keys: list[_SortKey] = []
    value: Operand = block.outputs[0]
    while True:
        node = producers.get(value)  # type: ignore[assignment]
        if node is None:
            return None
        parts = [producers.get(x) for x in node.operands]
        if node.op == "stablehlo.compare":
            key = _sort_key(node, block, count, origin)
            return None if key is None else [*keys, key]
        if node.op != "stablehlo.or" or None in parts:
            return None
        less = next((part for part in parts if part is not None and part.op == "stablehlo.compare"), None)
        both = next((part for part in parts if part is not None and part.op == "stablehlo.and"), None)
        key = None if less is None else _sort_key(less, block, count, origin)
        if less is None or both is None or key is None:
            return None
        equals = [x for x in both.operands if _is_equality(producers.get(x), less)]
        others = [x for x in both.operands if x not in equals]
        if len(equals) != 1 or len(others) != 1:
            return None
        keys.append(key)
        value = others[0]


def _is_equality(node: ForeignNode | None, less: ForeignNode) -> bool:
    """True for the comparison whether two values are equal of which the other one asks which is less."""
    return (
        node is not None
        and node.op == "stablehlo.compare"
        and node.attributes.get("comparison_direction") == "EQ"
        and node.operands == less.operands
        and node.attributes.get("compare_type") == less.attributes.get("compare_type")
    )


def _sort_key(
    node: ForeignNode, block: ForeignBlock, count: int, origin: dict[Operand, tuple[int, frozenset]]
) -> _SortKey | None:
    """The key of one comparison; None = it compares something else."""
    direction = node.attributes.get("comparison_direction")
    if direction not in ("LT", "GT") or not all(x in origin for x in node.operands if type(x) is ValueRef):
        return None
    (left, ones), (right, others) = (origin.get(x, (0, frozenset())) for x in node.operands)
    # Where zeros of both signs are equal, and all NaNs are, NumPy's order is this one.
    is_total = node.attributes.get("compare_type") == "TOTALORDER" and not (ones == others == {"zeros", "NaNs"})
    if is_total and (ones or others):
        return None
    pairs = [(block.inputs[2 * k], block.inputs[2 * k + 1]) for k in range(count)]
    return _SortKey(pairs.index((left, right)), direction == "GT", is_total) if (left, right) in pairs else None


def _made_equal(
    node: ForeignNode, test: ForeignNode | None, origin: dict[Operand, tuple[int, frozenset]]
) -> tuple[int, frozenset] | None:
    """The input behind ``select(x == 0, 0, x)`` or ``select(x != x, nan, x)``, and what has become equal."""
    _, constant, value = node.operands
    if value not in origin or test is None or test.op != "stablehlo.compare" or not isinstance(constant, np.generic):
        return None
    number, equal = origin[value]
    first, second = test.operands
    if origin.get(first, (0,))[0] != number:
        return None
    direction = test.attributes.get("comparison_direction")
    if direction == "EQ" and isinstance(second, np.generic) and second == 0 and constant == 0:
        return number, equal | {"zeros"}
    if direction == "NE" and origin.get(second, (0,))[0] == number and np.isnan(constant):
        return number, equal | {"NaNs"}
    return None


@STABLEHLO.register("chlo.top_k")
def _top_k(call: NodeContext, x: Any, *, k: int) -> Any:
    """The greatest elements along the last axis, the first of equal ones first, and where they are."""
    indices = _argsort(total_rank(x), x.ndim - 1, is_descending=True)[..., :k]
    return np.take_along_axis(x, indices, axis=-1), indices.astype(np.int32)


@STABLEHLO.register("stablehlo.composite")
def _composite(call: NodeContext, *operands: Any, name: str, composite_attributes: Any = None, **_: Any) -> Any:
    """What a module says is an operator of this name, or else what it is composed of."""
    if name == "chlo.top_k":
        return _top_k(call, *operands, k=composite_attributes["k"])
    results = call.run_block(0, *operands)
    return results[0] if len(results) == 1 else results


@STABLEHLO.register("stablehlo.fft")
def _fft(call: NodeContext, x: Any, *, fft_type: str, fft_length: tuple[int, ...]) -> Any:
    assert call.type is not None and call.type.dtype is not None
    axes = tuple(range(x.ndim - len(fft_length), x.ndim))
    result: Any
    if fft_type == "IRFFT":
        result = np.fft.irfftn(x, fft_length, axes)
    else:
        result = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}[fft_type](x, axes=axes)
    return result if result.dtype == call.type.dtype else result.astype(call.type.dtype)
