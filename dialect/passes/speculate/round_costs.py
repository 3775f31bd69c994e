"""Costs of a round of a loop in one kernel of all rounds, compared with kernels of its own.

Two lowerings compete for a loop. One kernel of all rounds (`lowering.buffers`) costs no call in a
round, and writes arrays in place. Kernels of a round (`lowering.schedule`) have tiles, shared rows,
accumulators in columns, and go through memory once; but Python calls them in each round. Where
rounds compute element by element, the first is as fast or faster on arrays of any size. So what is
estimated is the difference, op by op: the figures below are what `bench/rounds.py` measured of the
functions of its suite, on arrays of 2 MB and 64 KB, on one core of an AMD EPYC of 2024.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlir import ir

from ...guards.checks import devices_of
from ...ir.device import HOST
from ...ir.op import Fusion, Op
from ...ir.types import ScalarType, TensorType, Type
from ...mlir.context import loc_of
from ...mlir.facts import is_constant_op
from ...mlir.nesting import is_inside
from ...mlir.rewrite import attrs_of, blocks_in, is_terminator, op_class, ops_in, short_name, types_of, users
from ...ops.control_flow.control import LOOPS, ControlFlow
from ...ops.indexing.index import Gather, Index, Take
from ...ops.indexing.inplace import Writing
from ...ops.indexing.scatter import Scatter
from ...ops.indexing.slicing import Slice
from ...ops.manipulation.join import Concatenate, Pad, Stack
from ...ops.manipulation.permute import Permutation
from ...ops.manipulation.shape import Flip
from ...ops.reductions.reduce import ArgMax, ArgMin, Max, Min, Reduction
from ...reasons import Effect, Kind, Reason
from .loop_members import has_known_sizes

# Nanoseconds of a round.
LAUNCH = 3000.0  # for Python to test the guard of a group, and to call its kernel
EVALUATED = 1000.0  # for an op on numbers of Python's, which a plan evaluates
# Nanoseconds for an element of the largest array of an op.
_ACROSS = 0.3  # read in another order than it lies, where kernels of a round have tiles: 0.2 - 1.1
_JOINED = 0.7  # of several arrays, which one kernel of all rounds puts together in memory
_EXTREMUM = 1.0  # one comparison after the other, where kernels of a round use vectors
_FOLDED = 0.05  # of a reduction, whose operand is read once more from memory: 0.02 - 0.17
_COMPARED = 0.1  # of a largest or smallest element, which waits for the one before
_PICKED = 0.06  # at places that an array tells, or with steps


@dataclass(frozen=True)
class _Round:
    """Of one round, without the rounds of loops in it.

    Attributes:
        saved: nanoseconds that kernels of a round save.
        spent: nanoseconds that these take to be called.
        worst: the op on which most is saved.
    """

    saved: float
    spent: float
    worst: ir.Operation | None


def rounds_apart(loop: ir.Operation) -> Reason | None:
    """The reason why rounds of a loop, or of one in it, take less time in kernels of their own; else None.

    The types of values are those of the profile. What has unknown sizes counts for nothing, so that
    one kernel of all rounds is made where nothing is known. So it is where sizes follow from
    numbers of the round, which kernels of a round do not have, where a round writes a part of an
    array, which these would copy, and on other devices than the host.
    """
    estimate = _round(loop)
    if estimate is not None and estimate.worst is not None and estimate.saved > estimate.spent:
        return Reason(
            Kind.ROUNDS_APART,
            detail=f"{max(1, round(estimate.saved / 1e3))}",
            op=short_name(estimate.worst),
            loc=loc_of(estimate.worst.location),
            effect=Effect.LOOP_IN_PLAN,
        )
    inner = (rounds_apart(op) for op in _ops_of_round(loop) if op_class(op) in LOOPS)
    return next((reason for reason in inner if reason is not None), None)


def _round(loop: ir.Operation) -> _Round | None:
    """The estimate of a round; None = it is left to one kernel of all rounds."""
    saved, spent, most, worst = 0.0, 0.0, 0.0, None
    blocks_with_kernels = set[ir.Block]()
    for op in _ops_of_round(loop):
        cls = op_class(op)
        if cls is None or is_terminator(op) or is_constant_op(op) or issubclass(cls, ControlFlow):
            continue
        if issubclass(cls, (Scatter, Writing)):
            return None
        types = [*types_of(op.operands), *types_of(op.results)]
        if not devices_of(types) <= {HOST} or not has_known_sizes(op, cls, if_refused=False):
            return None
        if all(isinstance(t, ScalarType) for t in types_of(op.results)):
            spent += EVALUATED
            continue
        blocks_with_kernels.add(op.block)
        size = max(map(_elements, types))
        cost = size * _for_an_element(op, cls, loop)
        saved += cost
        if cost > most:
            most, worst = cost, op
    return _Round(saved, spent + LAUNCH * len(blocks_with_kernels), worst)


def _ops_of_round(loop: ir.Operation) -> Iterator[ir.Operation]:
    """The ops of a loop, those of its branches among them; of loops in it, these alone."""
    for block in blocks_in(loop):
        for op in ops_in(block):
            yield op
            if op_class(op) not in LOOPS:
                yield from _ops_of_round(op)


def _elements(type_: Type) -> int:
    """The number of elements of a tensor; 0 where that is not known."""
    count = 1
    for size in (type_.shape if isinstance(type_, TensorType) else None) or (0,):
        count *= size if isinstance(size, int) else 0
    return count


def _for_an_element(op: ir.Operation, cls: type[Op], loop: ir.Operation) -> float:
    """Nanoseconds that an op takes longer in one kernel of all rounds, for an element."""
    attrs, first = attrs_of(op), next(iter(types_of(op.operands)), None)
    shape = (first.shape if isinstance(first, TensorType) else None) or ()
    if issubclass(cls, Permutation):
        moves = shape and _last(cls.permutation(len(shape), attrs), shape) != _last(range(len(shape)), shape)
        return _ACROSS if moves and not _is_for_products(op) else 0.0
    if issubclass(cls, (Concatenate, Stack, Pad)):
        return _JOINED
    if cls in (ArgMax, ArgMin):
        axis = attrs["axis"]
        return _EXTREMUM if axis is None or axis in (-1, len(shape) - 1) else _FOLDED
    if cls in (Max, Min):
        return _COMPARED
    if issubclass(cls, Reduction):
        return _FOLDED
    if cls in (Take, Gather, Index) or cls is Flip:
        return _PICKED
    if cls is Slice:
        return _PICKED if set(attrs["steps"] or (1,)) != {1} else 0.0
    if cls.fusion is Fusion.POINTWISE and any(_lies_across(v, loop) for v in op.operands):
        return _ACROSS
    return 0.0


def _last(axes: tuple[int, ...] | range, shape: tuple) -> int | None:
    """The last axis of more than one element, as it is numbered in an operand."""
    return next((axis for axis in reversed(axes) if shape[axis] != 1), None)


def _is_for_products(op: ir.Operation) -> bool:
    """True if products alone read what an op makes: libraries take their operands in any order."""
    readers = [op_class(user) for v in op.results for user in users(v)]
    return all(cls is not None and cls.fusion is Fusion.CONTRACTION for cls in readers)


def _lies_across(value: ir.Value, loop: ir.Operation) -> bool:
    """True if an array from before a loop has elements side by side that are no neighbours."""
    (type_,) = types_of([value])
    if not isinstance(type_, TensorType) or not isinstance(type_.strides, tuple):
        return False
    if is_inside(value, loop):
        return False
    steps = zip(type_.shape or (), type_.strides, strict=True)
    last = next((step for size, step in reversed([*steps]) if size != 1), 1)
    return last not in (0, 1)
