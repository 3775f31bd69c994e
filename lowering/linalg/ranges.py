"""Which sums and products of Python's ints stay within 64 bits, whatever a loop is called with.

A value has a range. What a loop carries begins with the range of its first value and takes in those
of the values that rounds hand on: as they are, then up to `_WIDE`, then as a *counter*. A counter
comes from numbers within `_START` by additions of at most `_STEP`, one after the other: it would
take a run of years to bring it to the end of 64 bits. Anything else may be any int, and is tested
where it is computed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import product

from ...dialect.dataclass import dataclass
from ...dialect.ir.op import Op
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import ScalarType, TensorType
from ...dialect.ops.control_flow.control import For, If, While
from ...dialect.ops.create import Constant
from ...dialect.ops.elementwise.binary import Add, FloorDiv, Mul, Remainder, Sub
from ...dialect.ops.elementwise.compare import BitwiseAnd, Compare, LogicalNot
from ...dialect.ops.elementwise.unary import Neg
from ...dialect.ops.queries import Dim, Truth

_LEAST, _MOST = -(2**63), 2**63 - 1
_STEP, _START = 16, 2**61
_WIDE = 2**44
_SIZE = 2**40  # no axis is as long, and no loop goes as far (`LoopEnvironment._counted`)


@dataclass(frozen=True)
class Range:
    """The least and the largest value of an int, and whether it is a counter."""

    low: int
    high: int
    is_counter: bool = False

    def within(self, low: int, high: int) -> bool:
        """Whether no value lies outside of these bounds."""
        return low <= self.low and self.high <= high

    @property
    def starts(self) -> bool:
        """Whether it may be the value from which a counter counts, or is a counter."""
        return self.is_counter or self.within(-_START, _START)


_ANY = Range(_LEAST, _MOST)
_COUNTER = Range(-2 * _START, 2 * _START, is_counter=True)
_TRUTH = Range(0, 1)


def bounded_ints(function: Program) -> frozenset[int]:
    """The values whose sum, difference, product or negation cannot leave 64 bits."""
    found = _Ranges(function)
    return frozenset(found.bounded)


class _Ranges:
    def __init__(self, function: Program) -> None:
        self.function = function
        self.ranges: dict[int, Range] = {}
        self.carried: dict[int, Range] = {}  # arguments of blocks; they only grow
        self.bounded: set[int] = set()
        self.grown = True
        while self.grown:
            self.grown = False
            self.bounded.clear()
            self._block(function.body)

    def _of(self, value: int) -> Range:
        found = self.ranges.get(value)
        if found is not None:
            return found
        type_ = self.function.type_of(value)
        known = type_.value if isinstance(type_, ScalarType) else None
        return Range(int(known), int(known)) if isinstance(known, int) else _ANY

    def _block(self, block: Block) -> list[Range]:
        """Go through a block; returns the ranges of its outputs."""
        before: dict[int, Range | None] = {}
        for instr in block.instrs:
            if instr.op is For:
                # A run whose loop begins or ends further away is void.
                for value in instr.operands[:3]:
                    given = self._of(value)
                    before.setdefault(value, self.ranges.get(value))
                    if given == _ANY:
                        self.ranges[value] = Range(-_SIZE, _SIZE)
            self._run(instr)
        outputs = [self._of(v) for v in block.outputs]
        for value, old in before.items():
            if old is None:
                self.ranges.pop(value, None)
            else:
                self.ranges[value] = old
        return outputs

    def _run(self, instr: Instr) -> None:
        results: Sequence[Range]
        if instr.op is For:
            results = self._for(instr)
        elif instr.op is While:
            results = self._while(instr)
        elif instr.op is If:
            sides = [self._block(block) for block in instr.blocks]
            results = [_either(a, b) for a, b in zip(*sides, strict=True)]
        else:
            results = [self._result(instr)] if len(instr.results) == 1 else []
        self.ranges.update(zip(instr.results, results, strict=False))

    def _for(self, instr: Instr) -> list[Range]:
        (body,) = instr.blocks
        lower, upper = map(self._of, instr.operands[:2])
        inits = [self._of(v) for v in instr.operands[3:]]
        # Also of a loop that counts down, and of the last index if the step does not fit.
        self.ranges[body.args[0]] = Range(
            min(lower.low, upper.low) - 1, max(lower.high, upper.high) + 1
        )
        carried = body.args[1:]
        self._take_in(carried, inits)
        self._take_in(carried, self._block(body))
        return [self.carried[v] for v in carried]

    def _while(self, instr: Instr) -> list[Range]:
        before, after = instr.blocks
        self._take_in(before.args, [self._of(v) for v in instr.operands])
        passed = self._block(before)[1:]
        self.ranges.update(zip(after.args, passed, strict=True))
        self._take_in(before.args, self._block(after))
        return passed

    def _take_in(self, carried: Sequence[int], given: Sequence[Range]) -> None:
        for value, new in zip(carried, given, strict=True):
            old = self.carried.get(value)
            joined = new if old is None else _grown(old, new)
            if joined != old:
                self.grown = True
            self.carried[value] = self.ranges[value] = joined

    def _result(self, instr: Instr) -> Range:
        if instr.op is Constant:
            value = instr.attrs.get("value")
            return Range(int(value), int(value)) if isinstance(value, int) else _ANY
        if instr.op is Dim:
            type_ = self.function.type_of(instr.operands[0])
            shape = type_.shape if isinstance(type_, TensorType) else None
            size = None if shape is None else shape[Dim.full_attrs(instr.attrs)["axis"]]
            return Range(size, size) if isinstance(size, int) else Range(0, _SIZE)
        if issubclass(instr.op, Compare) or instr.op in (Truth, LogicalNot):
            return _TRUTH
        rule = _RULES.get(instr.op)
        if rule is None:
            return _ANY
        operands = [self._of(v) for v in instr.operands]
        found = rule(*operands)
        if not found.within(_LEAST, _MOST):
            return _ANY
        self.bounded.update(instr.results)
        if instr.op in (Add, Sub) and _counts(instr.op, *operands):
            return _COUNTER
        return found


def _counts(op: type[Op], a: Range, b: Range) -> bool:
    """Whether a sum or difference is a counter's next value."""
    if a.is_counter and b.within(-_STEP, _STEP):
        return True
    return op is Add and b.is_counter and a.within(-_STEP, _STEP)


def _either(a: Range, b: Range) -> Range:
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Range(low, high, (a.is_counter or b.is_counter) and a.starts and b.starts)


def _grown(old: Range, new: Range) -> Range:
    """What a loop carries that has carried the old range so far, and is handed the new one."""
    if new.within(old.low, old.high) and new.is_counter <= old.is_counter:
        return old
    if not (old.starts and new.starts):
        return _ANY
    if old.is_counter or new.is_counter or not new.within(-_WIDE, _WIDE):
        return _COUNTER
    low = old.low if new.low >= old.low else -_WIDE
    high = old.high if new.high <= old.high else _WIDE
    return Range(low, high)


def _product(a: Range, b: Range) -> Range:
    corners = [x * y for x, y in product((a.low, a.high), (b.low, b.high))]
    return Range(min(corners), max(corners))


def _quotient(a: Range, b: Range) -> Range:
    if b.low < 1:
        return _ANY
    corners = [x // y for x, y in product((a.low, a.high), (b.low, b.high))]
    return Range(min(corners), max(corners))


def _remainder(a: Range, b: Range) -> Range:
    return _ANY if b.low < 1 else Range(0, b.high - 1)


def _bits(a: Range, b: Range) -> Range:
    highs = [x.high for x in (a, b) if x.low >= 0]
    return Range(0, min(highs)) if highs else _ANY


_RULES: Mapping[type[Op], Callable[..., Range]] = {
    Add: lambda a, b: Range(a.low + b.low, a.high + b.high),
    Sub: lambda a, b: Range(a.low - b.high, a.high - b.low),
    Neg: lambda a: Range(-a.high, -a.low),
    Mul: _product,
    FloorDiv: _quotient,
    Remainder: _remainder,
    BitwiseAnd: _bits,
}

__all__ = ["bounded_ints"]
