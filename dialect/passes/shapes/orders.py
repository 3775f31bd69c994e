"""The order in which NumPy lays the axes of arrays in memory, as samples of them tell.

A sample has two elements per axis, and the axes in the order in which those of the array lie. Ops
whose results lie as their operands do ("K order") are evaluated on samples, in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from mlir import ir

from ...ir.device import HOST
from ...ir.op import Fusion, Op, unbared
from ...ir.types import ScalarType, TensorType, Type
from ...mlir.rewrite import attrs_of, body_of, op_class, ops_in, terminator_of, type_of, types_of
from ...ops.elementwise.families import Elementwise
from ...ops.manipulation.permute import Permutation
from ...ops.manipulation.shape import ExpandDims, Squeeze

_SIZE = 2  # of the axes of sample arrays, but for those of size 1
# Evaluated on samples: what they do depends on no size.
_EVALUATED = (Elementwise, Permutation, ExpandDims, Squeeze)


def result_orders(callee: ir.Operation) -> list[tuple[int, ...] | None]:
    """Per value that a fusion function returns, its axes from the outermost in memory to the
    innermost; None where that is not known."""
    block = body_of(callee)
    returned = list(terminator_of(block).operands)
    ops = ops_in(block)[:-1]
    samples = {v: sample_of(type_of(v)) for v in block.arguments}
    turned = not all(map(is_in_order, samples.values()))
    if not turned and not any(issubclass(op_class(op) or Op, Permutation) for op in ops):
        return [None] * len(returned)
    add_samples(ops, samples)
    return [order_of(samples[v]) for v in returned]


def add_samples(ops: Iterable[ir.Operation], samples: dict[ir.Value, Any]) -> None:
    """Add samples of what ops compute to those of what they read; None where nothing is known."""
    for op in ops:
        samples |= dict(zip(op.results, _results(op, samples), strict=True))


def _results(op: ir.Operation, samples: dict[ir.Value, Any]) -> Sequence[Any]:
    """Samples of what an op returns; None where nothing is known."""
    cls, types = op_class(op), types_of(op.results)
    operands = [samples.get(v) for v in op.operands]
    if cls is None or any(x is None for x in operands):
        return [None] * len(types)
    if issubclass(cls, _EVALUATED) or (cls.fusion is Fusion.REDUCTION and len(operands) == 1):
        try:
            with np.errstate(all="ignore"):
                results = cls.evaluate(attrs_of(op), *operands)
        except Exception:  # a sample may be too small for what it is asked
            return [None] * len(types)
        results = unbared(results, len(types))
        fits = len(results) == len(types) and all(map(_is_sample_of, results, types))
        return results if fits else [None] * len(types)
    plain = all(map(is_in_order, operands))
    return [_sample(t, None) if plain or cls.fusion is Fusion.CONTRACTION else None for t in types]


def sample_of(type_: Type) -> Any:
    """A sample of what has a type; None where nothing is known of how it lies in memory."""
    if not isinstance(type_, TensorType) or isinstance(type_.strides, str):
        return _sample(type_, None)
    return None if type_.strides is None else _sample(type_, type_.strides)


def _sample(type_: Type, strides: Sequence[int | None] | None) -> Any:
    """A small array whose axes lie in memory as these strides say (None = C order), or a number."""
    if isinstance(type_, ScalarType):
        return type_.value if type_.value is not None else type(type_.dtype.numpy.type(0).item())(1)
    if not isinstance(type_, TensorType) or type_.dtype is None or type_.shape is None:
        return None
    if 0 in type_.shape or type_.device not in (None, HOST):
        return None
    sizes = [1 if d == 1 else _SIZE for d in type_.shape]
    # Strides that are not known are those of axes outside of others, in Fortran order if the
    # innermost axis is the first.
    steps = [np.inf if s is None else abs(s) for s in strides or [None] * len(sizes)]
    axes = range(len(sizes))
    order = sorted(reversed(axes) if steps[:1] == [1] else axes, key=lambda axis: -steps[axis])
    array = np.ones([1 if steps[k] == 0 else sizes[k] for k in order], type_.dtype.numpy)
    return np.broadcast_to(array.transpose([order.index(k) for k in range(len(order))]), sizes)


def _is_sample_of(sample: Any, type_: Type) -> bool:
    if not isinstance(type_, TensorType):
        return not isinstance(sample, np.ndarray)
    sizes = None if type_.shape is None else tuple(1 if d == 1 else _SIZE for d in type_.shape)
    return np.shape(sample) == sizes


def is_in_order(sample: Any) -> bool:
    """True if a sample lies in C order, or is no array."""
    return order_of(sample) in (None, tuple(range(np.ndim(sample))))


def order_of(sample: Any) -> tuple[int, ...] | None:
    """The axes of an array from the largest stride to the smallest; None for what is none.

    Where an axis of one element lies is of no account, and no reason for another order.
    """
    if not isinstance(sample, np.ndarray):
        return None
    steps = [abs(step) for step, size in zip(sample.strides, sample.shape, strict=True) if size > 1]
    if steps == sorted(steps, reverse=True):
        return tuple(range(sample.ndim))
    return tuple(sorted(range(sample.ndim), key=lambda axis: -abs(sample.strides[axis])))
