"""The time that all rounds of a loop are estimated to take, before its first round."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Union

from mlir import ir

from ....dialect.mlir.nesting import is_inside
from ....dialect.mlir.rewrite import blocks_in, ops_in, walk
from ...linalg.element import emit
from ...linalg.loop_builder import ASSERT
from ...schedule.body import cost_of
from .linear import constant_of, linear
from .rounds import is_noted

Number = Union[float, ir.Value]  # an f64 where it is known only at run time

# Picoseconds for a unit of an operation's cost, on one core of 2023.
_VECTOR = 20.0
_SCALAR = 150.0
_MANY = 8.0  # rounds of an inner loop whose number data decide
_FREE = ("scf.", "affine.", "memref.subview", "memref.cast", "memref.dim", "llvm.extractvalue")
_BINARY = {
    "arith.addi": "addf",
    "arith.subi": "subf",
    "arith.muli": "mulf",
    "arith.maxsi": "maximumf",
    "arith.minsi": "minimumf",
}
_FOLDS: dict[str, Callable[[float, float], float]] = {
    "addf": lambda a, b: a + b,
    "subf": lambda a, b: a - b,
    "mulf": lambda a, b: a * b,
    "divf": lambda a, b: a / b,
    "maximumf": max,
    "minimumf": min,
}


class _NotKnown(Exception):
    """A size is known only at run time."""


def known_work(loop: ir.Operation) -> float | None:
    """The estimate for a loop in picoseconds; None = it depends on sizes of the call."""
    try:
        estimate = _Estimate(loop, emits=False).of_loop(loop)
    except _NotKnown:
        return None
    assert isinstance(estimate, float)
    return estimate


def emit_work(loop: ir.Operation) -> ir.Value:
    """The estimate for a loop as an f64, which is computed before the loop."""
    return emit_most_work([loop], loop)


def emit_most_work(loops: Sequence[ir.Operation], outer: ir.Operation) -> ir.Value:
    """The largest estimate for one of several loops inside of another, computed before that one."""
    most: Number = 0.0
    with ir.InsertionPoint(outer), outer.location:
        for loop in loops:
            most = _of("maximumf", most, _Estimate(outer, emits=True).of_inner(loop))
        return _value(most)


def emit_count(low: ir.Value, high: ir.Value, step: ir.Value) -> ir.Value:
    """The number of rounds of a loop as an ``index``."""
    index = ir.IndexType.get()

    def constant(value: int) -> ir.Value:
        return emit("arith.constant", index, value=ir.IntegerAttr.get(index, value))

    count = emit("arith.subi", index, high, low)
    if constant_of(step) != 1:
        above = emit("arith.subi", index, step, constant(1))
        count = emit("arith.divsi", index, emit("arith.addi", index, count, above), step)
    return emit("arith.maxsi", index, count, constant(0))


class _Estimate:
    """Sizes are computed as floats, whose products do not overflow."""

    def __init__(self, loop: ir.Operation, emits: bool) -> None:
        self.loop, self.emits = loop, emits
        self.known: dict[ir.Value, Number | None] = {}

    def of_inner(self, loop: ir.Operation) -> Number:
        """The estimate for a loop that is the outer one, or in it."""
        around = [loop]
        while around[-1] != self.loop:
            around.append(around[-1].parent.operation)
        for op in reversed(around[1:]):
            if op.name == "scf.for":
                self._rounds(op)
        return self.of_loop(loop)

    def of_loop(self, loop: ir.Operation) -> Number:
        rounds = self._rounds(loop)
        return _of("mulf", rounds, self._of_block(loop.regions[0].blocks[0], _cycle(loop)))

    def _rounds(self, loop: ir.Operation) -> Number:
        """The number of rounds that a loop has; sets its index to that of the round in the middle."""
        low, high, step = (self._before(v) for v in list(loop.operands)[:3])
        rounds: Number = _MANY
        middle = None
        if low is not None and high is not None and step is not None:
            rounds = _of("maximumf", _of("divf", _of("subf", high, low), step), 0.0)
            middle = _of("mulf", _of("addf", low, high), 0.5)  # stands for all, as in a triangle
        self.known[loop.regions[0].blocks[0].arguments[0]] = middle
        return rounds

    def _of_block(self, block: ir.Block, cycle: float) -> Number:
        total: Number = 0.0
        for op in ops_in(block):
            if op.name == "scf.for":
                estimate = self.of_loop(op)
            elif op.name in ("scf.while", "scf.if"):
                estimate = 0.0
                for inner in blocks_in(op):
                    estimate = _of("addf", estimate, self._of_block(inner, cycle))
                estimate = _of("mulf", estimate, _MANY if op.name == "scf.while" else 0.5)
            elif op.name.startswith(_FREE) or op.name == "arith.constant":
                continue
            else:
                estimate = cycle * (2 if op.name.startswith("memref.") else cost_of(op.name))
            total = _of("addf", total, estimate)
        return total

    def _before(self, value: ir.Value) -> Number | None:
        """An index as it is before the loop; None = data that the loop reads decide on it."""
        if value not in self.known:
            self.known[value] = self._found(value)
        return self.known[value]

    def _found(self, value: ir.Value) -> Number | None:
        constant = constant_of(value)
        if constant is not None:
            return float(constant)
        if not is_inside(value, self.loop):
            return self._outside(value)
        if isinstance(value, ir.BlockArgument):
            return None
        op = value.owner.operation
        if op.name == "arith.index_cast":
            return self._before(op.operands[0])
        if op.name not in _BINARY:
            return None
        a, b = (self._before(v) for v in op.operands)
        return None if a is None or b is None else _of(_BINARY[op.name], a, b)

    def _outside(self, value: ir.Value) -> Number | None:
        wide = ir.IntegerType.get_signless(64)
        if not isinstance(value.type, ir.IndexType) and value.type != wide:
            return None
        if not self.emits:
            raise _NotKnown
        if value.type != wide:
            value = emit("arith.index_cast", wide, value)
        return emit("arith.sitofp", ir.F64Type.get(), value)


def _cycle(loop: ir.Operation) -> float:
    """The time that a unit of cost takes in the rounds of a loop, as far as they are not loops."""
    scalar = ("scf.for", "scf.while", "scf.if", ASSERT)
    index = loop.regions[0].blocks[0].arguments[0]
    for op in walk(loop):
        if op.name in scalar:
            return _SCALAR
        if op.name != "memref.store" or is_noted(op.operands[1], loop):
            continue
        if not any(linear(v).factor(index) for v in list(op.operands)[2:]):
            return _SCALAR  # rounds wait for what the one before has written
    return _SCALAR if loop.results else _VECTOR


def _of(name: str, a: Number, b: Number) -> Number:
    if isinstance(a, float) and isinstance(b, float):
        return _FOLDS[name](a, b)
    if name == "addf" and 0.0 in (n for n in (a, b) if isinstance(n, float)):
        return b if isinstance(a, float) else a
    return emit(f"arith.{name}", ir.F64Type.get(), _value(a), _value(b))


def _value(number: Number) -> ir.Value:
    if not isinstance(number, float):
        return number
    type_ = ir.F64Type.get()
    return emit("arith.constant", type_, value=ir.FloatAttr.get(type_, number))
