"""The ranges of Python's ints in loops, found before these are lowered: which values each may have.

Sums and products that stay within 64 bits, and indices that are on their axis, need no test.

Each value has a range. The range of a value that a loop carries is found by going through the loop until
it no longer grows. It begins as that of the first value, and each time takes in the range of the value that
a round hands on: `_TAKEN` times as it is, then up to `_WIDE` on the sides on which it grows, and beyond that as
a *counter*. A counter begins within `_START`, and each round adds at most `_STEP` to it, so that only a run of
years would bring it to the end of 64 bits. A value that is none of these may be any int on the sides on which it grows.

A condition of a branch or loop narrows ranges in the blocks that it leads to. So does a computation that
ends the run when it leaves 64 bits: behind it, its operands are known not to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product

from ...dialect.dataclass import dataclass
from ...dialect.ir.dtypes import BOOL, I64
from ...dialect.ir.op import Op
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import ScalarType
from ...dialect.ops.control_flow.control import For, If, While
from ...dialect.ops.create import Constant
from ...dialect.ops.elementwise.binary import Add, FloorDiv, Mul, Remainder, Sub
from ...dialect.ops.elementwise.compare import BitwiseAnd, Compare, Eq, Ge, Gt, Le, LogicalNot, Lt
from ...dialect.ops.elementwise.unary import Neg
from ...dialect.ops.queries import Dim, Truth
from .literal_sizes import Shapes

_LEAST, _MOST = -(2**63), 2**63 - 1
_STEP, _START = 16, 2**61
_WIDE = 2**44
_SIZE = 2**40  # no axis is as long, and no loop goes as far (`LoopEnvironment._counted`)
_TAKEN = 3  # ranges that a loop's value takes in as they are


@dataclass(frozen=True)
class Range:
    """The least and the largest value of an int, and whether it is a counter."""

    low: int
    high: int
    is_counter: bool = False

    def within(self, low: int, high: int) -> bool:
        """True if no value lies outside of these bounds."""
        return low <= self.low and self.high <= high

    @property
    def starts(self) -> bool:
        """True if it may be the value from which a counter counts, or is a counter."""
        return self.is_counter or self.within(-_START, _START)


_ANY = Range(_LEAST, _MOST)
_COUNTED = 2 * _START  # no counter goes as far
_TRUTH = Range(0, 1)


class Ranges:
    """The ranges of a function's ints.

    Attributes:
        bounded: the values whose sum, difference, product, … cannot leave 64 bits.
        operands: the instructions with ints as operands, by `id`, and the ranges of these.
    """

    def __init__(self, function: Program) -> None:
        self.bounded: set[int] = set()
        self.operands: dict[int, dict[int, Range]] = {}
        self._function = function
        self._shapes = Shapes(function)
        self._made = {r: instr for instr in function.body.walk() for r in instr.results}
        self._ranges: dict[int, Range] = {}
        self._carried: dict[int, Range] = {}  # arguments of blocks; they only grow
        self._taken: dict[int, int] = {}
        self._ends = True  # whether the run ends where an int leaves 64 bits
        self._grown = True
        while self._grown:
            self._grown = False
            self.bounded.clear()
            self.operands.clear()
            self._block(function.body)

    def _of(self, value: int) -> Range:
        range_ = self._ranges.get(value)
        if range_ is not None:
            return range_
        type_ = self._function.type_of(value)
        constant = type_.value if isinstance(type_, ScalarType) else None
        return Range(int(constant), int(constant)) if isinstance(constant, int) else _ANY

    def _is_int(self, value: int) -> bool:
        type_ = self._function.type_of(value)
        return isinstance(type_, ScalarType) and type_.dtype in (I64, BOOL)

    # --- blocks ------------------------------------------------------------------------------

    def _block(self, block: Block, facts: Sequence[tuple[int, Range]] = ()) -> list[Range]:
        """Go through a block in which facts hold; returns the ranges of its outputs."""
        before: dict[int, Range | None] = {}

        def narrow(value: int, to: Range) -> None:
            before.setdefault(value, self._ranges.get(value))
            self._ranges[value] = _both(self._of(value), to)

        for value, to in facts:
            narrow(value, to)
        for instr in block.instrs:
            if instr.op is For:
                # A run whose loop begins or ends further away is void.
                for value in instr.operands[:3]:
                    narrow(value, Range(-_SIZE, _SIZE))
            self._run(instr)
        outputs = [self._of(v) for v in block.outputs]
        for value, old in before.items():
            if old is None:
                del self._ranges[value]
            else:
                self._ranges[value] = old
        return outputs

    def _run(self, instr: Instr) -> None:
        results: Sequence[Range]
        if instr.op is For:
            results = self._for(instr)
        elif instr.op is While:
            results = self._while(instr)
        elif instr.op is If:
            condition = instr.operands[0]
            sides = [
                self._block(block, list(self._facts(condition, truth)))
                for block, truth in zip(instr.blocks, (True, False), strict=True)
            ]
            results = [_either(a, b) for a, b in zip(*sides, strict=True)]
        else:
            ints = {v: self._of(v) for v in instr.operands if self._is_int(v)}
            if ints:
                self.operands[id(instr)] = ints
            results = [self._result(instr)] if len(instr.results) == 1 else []
        self._ranges.update(zip(instr.results, results, strict=False))

    def _for(self, instr: Instr) -> list[Range]:
        (body,) = instr.blocks
        lower, upper, step = map(self._of, instr.operands[:3])
        if step.low > 0:
            index = Range(lower.low, upper.high - 1)
        elif step.high < 0:
            index = Range(upper.low + 1, lower.high)
        else:
            index = Range(min(lower.low, upper.low), max(lower.high, upper.high))
        # A loop without rounds says nothing of its index.
        self._ranges[body.args[0]] = index if index.low <= index.high else _ANY
        carried = body.args[1:]
        self._take_in(carried, [self._of(v) for v in instr.operands[3:]])
        before = self._ends
        # Rounds without branches may become SIMD code, and go on.
        self._ends = any(inner.blocks for inner in body.instrs)
        self._take_in(carried, self._block(body))
        self._ends = before
        return [self._carried[v] for v in carried]

    def _while(self, instr: Instr) -> list[Range]:
        before, after = instr.blocks
        self._take_in(before.args, [self._of(v) for v in instr.operands])
        ranges = self._block(before)[1:]
        names = before.outputs[1:]
        self._ranges.update(zip(after.args, ranges, strict=True))
        facts = [
            (arg, to)
            for value, to in self._facts(before.outputs[0], True)
            for arg, name in zip(after.args, names, strict=True)
            if name == value
        ]
        self._take_in(before.args, self._block(after, facts))
        return ranges

    def _take_in(self, carried: Sequence[int], ranges: Sequence[Range]) -> None:
        for value, new in zip(carried, ranges, strict=True):
            old = self._carried.get(value)
            joined = new if old is None else self._joined(value, old, new)
            if joined != old:
                self._grown = True
            self._carried[value] = self._ranges[value] = joined

    def _joined(self, value: int, old: Range, new: Range) -> Range:
        """The range of a value that a loop has carried with the old range so far, and is handed with the new one."""
        if new.within(old.low, old.high) and new.is_counter <= old.is_counter:
            return old
        if not (old.starts and new.starts):
            return _grown(old, new, _LEAST, _MOST)
        if old.is_counter or new.is_counter or not new.within(-_WIDE, _WIDE):
            return _grown(old, new, -_COUNTED, _COUNTED, is_counter=True)
        self._taken[value] = self._taken.get(value, 0) + 1
        if self._taken[value] <= _TAKEN:
            return _either(old, new)
        return _grown(old, new, -_WIDE, _WIDE)

    # --- conditions --------------------------------------------------------------------------

    def _facts(self, condition: int, truth: bool) -> Iterator[tuple[int, Range]]:
        """The facts that follow for ints from a condition that is true, or that is false."""
        instr = self._made.get(condition)
        if instr is None:
            return
        if instr.op is LogicalNot:
            yield from self._facts(instr.operands[0], not truth)
        elif instr.op is If and self._is_chain(instr, instr.results.index(condition), truth):
            side = instr.blocks[0 if truth else 1]
            yield from self._facts(instr.operands[0], truth)
            yield from self._facts(side.outputs[instr.results.index(condition)], truth)
        elif issubclass(instr.op, Compare):
            a, b = instr.operands
            op = instr.op if truth else _OPPOSITE.get(instr.op)
            if op is None or not (self._is_int(a) and self._is_int(b)):
                return
            if op in (Gt, Ge):
                a, b, op = b, a, _SWAPPED[op]
            x, y = self._of(a), self._of(b)
            if op is Eq:
                yield a, y
                yield b, x
            elif op in (Lt, Le):
                apart = int(op is Lt)
                yield a, Range(_LEAST, y.high - apart)
                yield b, Range(x.low + apart, _MOST)

    def _is_chain(self, instr: Instr, place: int, truth: bool) -> bool:
        """True if a branch has this result only if its condition has it: ``and``, ``or``."""
        other = instr.blocks[1 if truth else 0].outputs[place]
        producer = self._made.get(other)
        return producer is not None and producer.op is Constant and producer.attrs.get("value") is not truth

    # --- ops ---------------------------------------------------------------------------------

    def _result(self, instr: Instr) -> Range:
        if instr.op is Constant:
            value = instr.attrs.get("value")
            return Range(int(value), int(value)) if isinstance(value, int) else _ANY
        if instr.op is Dim:
            size = self._shapes.size(instr.operands[0], Dim.full_attrs(instr.attrs)["axis"])
            return Range(size, size) if isinstance(size, int) else Range(0, _SIZE)
        if issubclass(instr.op, Compare) or instr.op in (Truth, LogicalNot):
            return _TRUTH
        rule = _RULES.get(instr.op)
        if rule is None or not all(map(self._is_int, (*instr.operands, *instr.results))):
            return _ANY
        operands = [self._of(v) for v in instr.operands]
        range_ = rule(*operands)
        if not range_.within(_LEAST, _MOST):
            if not self._ends or instr.op not in (Add, Sub, Mul, Neg):
                return _ANY
            low, high = max(range_.low, _LEAST), min(range_.high, _MOST)
            return Range(low, high) if low <= high else _ANY
        self.bounded.update(instr.results)
        if range_.within(-_WIDE, _WIDE) or not _counts(instr.op, *operands):
            return range_
        return Range(max(range_.low, -_COUNTED), min(range_.high, _COUNTED), is_counter=True)


_OPPOSITE: Mapping[type[Op], type[Op]] = {Lt: Ge, Ge: Lt, Gt: Le, Le: Gt}
_SWAPPED: Mapping[type[Op], type[Op]] = {Gt: Lt, Ge: Le}


def _counts(op: type[Op], a: Range, b: Range | None = None) -> bool:
    """True if an op gives a counter's next value."""
    if b is None or op not in (Add, Sub):
        return False
    if a.is_counter and b.within(-_STEP, _STEP):
        return True
    return op is Add and b.is_counter and a.within(-_STEP, _STEP)


def _grown(old: Range, new: Range, low: int, high: int, is_counter: bool = False) -> Range:
    """A range with new ends where the old ones do not hold."""
    return Range(old.low if new.low >= old.low else low, old.high if new.high <= old.high else high, is_counter)


def _either(a: Range, b: Range) -> Range:
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Range(low, high, (a.is_counter or b.is_counter) and a.starts and b.starts)


def _both(a: Range, b: Range) -> Range:
    low, high = max(a.low, b.low), min(a.high, b.high)
    # Where nothing is left, nothing runs.
    return Range(low, high, a.is_counter) if low <= high else a


def _product(a: Range, b: Range) -> Range:
    corners = [x * y for x, y in product((a.low, a.high), (b.low, b.high))]
    return Range(min(corners), max(corners))


def _quotient(a: Range, b: Range) -> Range:
    if b.low < 1:
        return Range(_LEAST, _MOST + 1)
    corners = [x // y for x, y in product((a.low, a.high), (b.low, b.high))]
    return Range(min(corners), max(corners))


def _remainder(a: Range, b: Range) -> Range:
    if b.low < 1:
        return _ANY
    return a if a.low >= 0 and a.high < b.low else Range(0, b.high - 1)


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
