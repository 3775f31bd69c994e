"""Copy the bodies of small counted loops (R1.47)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...ir.op import Op
from ...ir.types import INT_SCALAR
from ...mlir.facts import constant_value, is_constant_op
from ...mlir.rewrite import (
    create,
    is_terminator,
    op_class,
    ops_in,
    replace,
    terminator_of,
    types_of,
    walk,
    walk_backwards,
)
from ...mlir.typed_values import clone_tree
from ...ops.control_flow.control import For
from ...ops.create import Constant
from ...ops.elementwise.binary import Add, FloorDiv, Maximum, Mul, Sub
from ...ops.speculation import Identity
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass

UNROLLED = "profuse.unrolled"  # of loops that stay as they are


def _fully(m: Match) -> int | None:
    lower, upper, step = (constant_value(v) for v in list(m.op.operands)[:3])
    if UNROLLED in m.op.attributes or _size(m.op) > m.options.max_body:
        return 0
    if type(step) is not int or step < 1:
        return 0
    if type(lower) is not int or type(upper) is not int:
        return None
    trips = range(lower, upper, step)
    if len(trips) >= m.options.max_trips or not _fits(m, len(trips)):
        return None
    _unroll_fully(m.op, trips)
    return 1


def _partly(m: Match) -> int:
    factor = m.options.factor
    if factor <= 1 or not _fits(m, factor):
        return 0
    _unroll_by(m.op, factor, constant_value(m.op.operands[2]))
    return 1


def _fits(m: Match, times: int) -> bool:
    return not m.options.max_ops or _size(m.op) * times <= m.options.max_ops


@register_pass
@dataclass(frozen=True)
class UnrollLoops(PatternPass):
    """Unroll counted loops whose body has at most ``max-body`` ops that work, inner loops first.

    A constant trip count below ``max-trips`` is unrolled fully; any other by ``factor`` (1: not
    at all), with a loop for the remainder. The step must be a positive constant. No loop becomes
    more than ``max-ops`` ops (0: any number): kernels of many ops take long to compile.
    """

    name: ClassVar[str] = "unroll-loops"
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("loops-unrolled", (For,), _fully),
        Pattern("loops-unrolled-partly", (For,), _partly),
    )
    order = staticmethod(walk_backwards)
    max_body: int = 32
    factor: int = 8
    max_trips: int = 64
    max_ops: int = 0


def _size(op: ir.Operation) -> int:
    """Ops of the body that do something: neither observers nor constants nor terminators."""
    return sum(map(_works, walk(op)))


def _works(op: ir.Operation) -> bool:
    cls = op_class(op)
    silent = is_constant_op(op) or (cls is not None and issubclass(cls, Identity))
    return not silent and not is_terminator(op)


def _unroll_fully(op: ir.Operation, trips: Sequence[int]) -> None:
    carried = list(op.operands)[3:]
    for index in trips:
        carried = _iteration(op, _number(index, op), carried, ir.InsertionPoint(op))
    replace(op, carried)


def _unroll_by(op: ir.Operation, factor: int, step: int) -> None:
    """A loop of ``factor`` iterations at a time, then the loop itself from where that ends."""
    lower, upper = list(op.operands)[:2]
    wide = _number(factor * step, op)
    distance = _arith(Sub, upper, lower, op)
    rounds = _arith(Maximum, _arith(FloorDiv, distance, wide, op), _number(0, op), op)
    middle = _arith(Add, lower, _arith(Mul, rounds, wide, op), op)
    inits = list(op.operands)[3:]
    main = create(For, [lower, middle, wide, *inits], {}, types_of(op.results), op)
    types = [lower.type, *(v.type for v in inits)]
    body = main.regions[0].blocks.append(*types, arg_locs=[op.location] * len(types))
    index, *carried = body.arguments
    ip = ir.InsertionPoint(body)
    for k in range(factor):
        here = index
        if k:
            attrs = {"value": k * step}
            offset = create(Constant, [], attrs, [INT_SCALAR], body, op.location)
            here = create(Add, [index, offset.results[0]], {}, [INT_SCALAR], body, op.location).results[0]
        carried = _iteration(op, here, carried, ip)
    ir.Operation.create("scf.yield", operands=carried, loc=op.location, ip=ip)
    for k, value in enumerate([middle, upper, op.operands[2], *main.results]):
        op.operands[k] = value
    for loop in (main, op):
        loop.attributes[UNROLLED] = ir.UnitAttr.get()


def _iteration(op: ir.Operation, index: ir.Value, carried: Sequence[ir.Value], ip: ir.InsertionPoint) -> list[ir.Value]:
    """A copy of the loop's body at ``ip``; returns the values that it yields."""
    body = op.regions[0].blocks[0]
    mapping = dict(zip(body.arguments, (index, *carried), strict=True))
    for inner in ops_in(body):
        if not is_terminator(inner):
            clone_tree(inner, mapping, ip)
    return [mapping.get(v, v) for v in terminator_of(body).operands]


def _number(value: int, at: ir.Operation) -> ir.Value:
    return create(Constant, [], {"value": value}, [INT_SCALAR], at).results[0]


def _arith(cls: type[Op], a: ir.Value, b: ir.Value, at: ir.Operation) -> ir.Value:
    return create(cls, [a, b], {}, [INT_SCALAR], at).results[0]
