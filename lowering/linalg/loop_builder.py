"""`LoopBuilder`: emits linalg inside of loops and branches, where sizes follow from loop indices.

A size whose symbols belong to a loop is computed at the start of that loop's body. What a kernel
forbids ends its run where it is found (``cf.assert``), so that all that follows may count on it.
In rounds that may become SIMD code, which has no way out, it is noted, and asked for behind the
loop. Places of elements are shown to be on their axis beforehand, if they can be: for all rounds of
a loop at once, or at least before its first round.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.ir.dtypes import BOOL, I64, U64
from ...dialect.ir.size_algebra import at_the_end, bounds
from ...dialect.ir.symbolic import FAR, Dim, Sym
from ...dialect.ir.types import TensorType
from ...dialect.mlir.nesting import is_inside
from ...dialect.ops.sizes import clamped, forbid_outside, position_within
from .element import emit, int_type
from .generic import SizePlace
from .on_axis import on_axis
from .scalar import Scalar, constant
from .stored_element import load, store
from .tensor_builder import Builder, TensorValue
from .update_rounds import update_in_rounds

ASSERT = "cf.assert"  # that ends a run
NOTED = "profuse.noted"  # of a byte in which rounds note that something is forbidden
_LINEAR = (
    "arith.constant",
    "arith.addi",
    "arith.subi",
    "arith.index_cast",
    "llvm.extractvalue",
    "llvm.intr.sadd.with.overflow",
    "llvm.intr.ssub.with.overflow",
)


@dataclass(eq=False)
class Scope:
    """A block in which the builder emits: the body of a loop, or one side of a branch.

    Attributes:
        place: where sizes are computed that follow from ``symbol``.
        symbol: of a counted loop whose index is known as an expression, or of a number that sizes
            depend on; "" = there is none.
        span: the largest value of the symbol.
        index: the index of a loop that counts by one up to a number that is no expression; else
            None.
        ends: where such a loop begins and ends.
        loop: the ``scf.for``.
        is_block: False = a number, which is known from here to the end of the block around.
        straight: whether rounds may become SIMD code: they branch nowhere, and none waits for the
            sum of floats of the one before.
        cell: where such rounds note what is forbidden; None = nothing has been so far.
    """

    place: SizePlace
    symbol: str = ""
    span: Dim | None = None
    index: Dim | None = None
    ends: tuple[Scalar, Scalar] | None = None
    loop: ir.Operation | None = None
    is_block: bool = True
    straight: bool = False
    cell: ir.Value | None = None


class LoopBuilder(Builder):
    """A builder of a function with control flow."""

    def __init__(self, symbols: Mapping[str, ir.Value], anchor: ir.Operation) -> None:
        super().__init__(dict(symbols), anchor)
        self.scopes: list[Scope] = []
        self._places: dict[Any, ir.Value] = {}  # an index and a size -> the place
        # Ints: a number, its least and its largest value, a factor and an addend.
        self.lines: dict[ir.Value, tuple[Scalar, tuple[int, int], int, int]] = {}
        self.within: dict[ir.Value, tuple[int, int]] = {}  # of ints that an op reads: their ends
        self._is_bounded = False  # whether a run may be void
        self._found: list[Scalar] | None = None  # in `only_if`: what would end the run

    # --- scopes ------------------------------------------------------------------------------

    @contextmanager
    def inside(self, block: ir.Block, **fields: Any) -> Iterator[Scope]:
        """Emit at the end of a block, which has no operation so far."""
        checked = set(self._not_negative), set(self._not_wrapped)
        places = dict(self._places)
        with ir.InsertionPoint(block):
            anchor = emit("arith.constant", ir.IndexType.get(), value=_index_attribute(0)).owner
            count = len(self.scopes)
            self.scopes.append(Scope(SizePlace(anchor), **fields))
            yield self.scopes[count]
            del self.scopes[count:]
            anchor.erase()
        self._not_negative, self._not_wrapped = checked
        self._places = places

    def define(self, scope: Scope, symbol: str, value: ir.Value, index: Dim, at: ir.Value) -> None:
        """Give a loop's symbol its value in each round, and the index of the loop, too."""
        self.symbols[symbol] = value  # type: ignore[index]
        scope.place.index[index] = at

    def count(self, name: str, number: Scalar, dim: Dim, least: int) -> None:
        """Know a number, which is given by an expression over this symbol, as a size.

        The run ends here if the number is below ``least``, or too large for a size.
        """
        above = number - least
        self.end_if(Scalar(above.value, U64) >= FAR)
        for sizes in (self._not_negative, self._not_wrapped):
            sizes.difference_update([d for d in sizes if name in d.symbols])  # type: ignore[union-attr]
        index = ir.IndexType.get()
        value, at = (emit("arith.index_cast", index, n.value) for n in (above + 1, number))
        anchor = emit("arith.constant", index, value=_index_attribute(0)).owner
        self.scopes.append(Scope(SizePlace(anchor), symbol=name, is_block=False))
        self.define(self.scopes[-1], name, value, dim, at)

    @property
    def _block(self) -> Scope | None:
        return next((scope for scope in reversed(self.scopes) if scope.is_block), None)

    def place_of(self, dim: Dim) -> SizePlace:
        names = dim.symbols if isinstance(dim, Sym) else frozenset()
        inner = (s.place for s in reversed(self.scopes) if s.symbol and s.symbol in names)
        return next(inner, self.entry)

    def index(self, dim: Dim) -> ir.Value:
        parts = _rest(dim)
        if parts is None or dim in self.place_of(dim).index:
            return super().index(dim)
        a, b = parts
        if bounds(a + b)[0] < 0 or bounds(2 * b - a - 1)[0] < 0:
            return super().index(dim)
        place = self.place_of(dim)
        value, size = Scalar(self.index(a), I64), Scalar(self.index(b), I64)
        with place.point:
            result = value
            if bounds(b - a - 1)[0] < 0:
                result = (value >= size).select(value - size, result)
            if bounds(a)[0] < 0:
                result = (value < 0).select(value + size, result)
        place.index[dim] = result.value
        return result.value

    # --- forbidden cases ---------------------------------------------------------------------

    def forbid(self, fn: Any, x: TensorValue | Scalar) -> None:
        shape = x.shape if isinstance(x, TensorValue) else ()
        violation = self.pointwise(fn, [x], TensorType(BOOL, shape))
        if shape:
            axes = range(len(shape))
            violation = self.reduce(lambda a, e: a | e, 0, violation, axes, TensorType(BOOL, ()))
        self.note(self.scalar(violation))

    @property
    def is_straight(self) -> bool:
        """True if the builder emits rounds that may become SIMD code."""
        return self._block is not None and self._block.straight

    @property
    def loop_around(self) -> ir.Operation | None:
        """The counted loop in each round of which the builder emits, and in no branch of it."""
        return None if self._found is not None or self._block is None else self._block.loop

    def loops_around(self, *values: ir.Value) -> list[ir.Operation]:
        """The counted loops in each round of which the builder emits with these values as they are.

        Innermost first; they follow each other without a branch between them.
        """
        loops: list[ir.Operation] = []
        for scope in reversed(self.scopes if self._found is None else ()):
            if not scope.is_block:
                continue
            loop = scope.loop
            if loop is None or any(is_inside(value, loop) for value in values):
                break
            loops.append(loop)
        return loops

    def note(self, found: Scalar) -> None:
        """Void the run of the kernel if ``found`` is true.

        What is emitted next runs nevertheless in rounds that may become SIMD code.
        """
        if not self.is_straight:
            self.end_if(found)
            return
        scope, type_ = self._block, int_type(8)
        assert scope is not None and scope.loop is not None
        if scope.cell is None:
            with self.entry.point:
                scope.cell = emit(
                    "memref.alloca",
                    ir.MemRefType.get([], type_),
                    operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
                    **{NOTED: ir.UnitAttr.get()},
                )
            with ir.InsertionPoint(scope.loop):
                nothing = emit("arith.constant", type_, value=ir.IntegerAttr.get(type_, 0))
                _write(nothing, scope.cell)
        before = emit("memref.load", type_, scope.cell)
        _write(emit("arith.ori", type_, before, store(found)), scope.cell)

    def end_if(self, found: Scalar) -> None:
        """End the run of the kernel here, as a void one, if ``found`` is true."""
        self._is_bounded = True
        if self._found is not None:
            self._found.append(found)
            return
        ir.Operation.create(ASSERT, operands=[(~found).value], attributes={"msg": ir.StringAttr.get("void")})

    @contextmanager
    def only_if(self, taken: Scalar) -> Iterator[None]:
        """Emit what counts if ``taken`` is true: for what is found else, the run does not end."""
        assert self._found is None
        violations = self._found = []
        try:
            yield
        finally:
            self._found = None
        if violations:
            any_violation = functools.reduce(operator.or_, violations)
            rare = emit("llvm.intr.expect", int_type(1), any_violation.value, constant(False, BOOL).value)
            aside = ir.Operation.create("scf.if", operands=[rare], regions=2)
            with ir.InsertionPoint(aside.regions[0].blocks.append()):
                self.end_if(taken)
                ir.Operation.create("scf.yield")

    def settle(self, scope: Scope) -> None:
        """End the run behind a loop whose rounds have noted something."""
        if scope.cell is not None:
            self.end_if(load(emit("memref.load", int_type(8), scope.cell), BOOL))

    def violation(self) -> TensorValue | None:
        """A 0-d bool, which is false: a void run ends before it is written."""
        if not self._is_bounded:
            return None
        return TensorValue(None, TensorType(BOOL, ()), constant(False, BOOL))

    # --- places on axes ----------------------------------------------------------------------

    def update_at(
        self,
        combine: Callable[[Scalar, Scalar], Scalar],
        x: TensorValue,
        value: TensorValue,
        places: Mapping[int, TensorValue],
        start: int,
    ) -> TensorValue:
        return update_in_rounds(self, combine, x, value, places, start)

    def position(self, where: Any, size: Dim) -> ir.Value:
        """The place on an axis of this size that an index names, as an ``index`` value.

        A run in which the axis has no such place is void, and accesses another one.
        """
        if isinstance(where, int):
            return self.index(position_within(self, where, size))
        if isinstance(where, Sym) and self._is_on_axis(where, size):
            return self.index(where)
        if isinstance(where, Sym) and bounds(where + size)[0] >= 0 <= bounds(size - where - 1)[0]:
            number = self.scalar(where)
            turned = (number < 0).select(number + self.size(size), number)
            return emit("arith.index_cast", ir.IndexType.get(), turned.value)
        index = self.scalar(where).cast(I64)
        low, high = self.within.get(index.value, (-1, 0))
        if low >= 0 and high < bounds(size)[0]:
            return emit("arith.index_cast", ir.IndexType.get(), index.value)
        key = (where if isinstance(where, Sym) else index.value, size)
        if key not in self._places:
            if self.is_straight and not self._is_linear(index.value):
                forbid_outside(self, index, size)
                place = clamped(self, index, size)
            else:
                place = on_axis(self, index, size, where)
            self._places[key] = emit("arith.index_cast", ir.IndexType.get(), place.value)
        return self._places[key]

    def _is_linear(self, value: ir.Value) -> bool:
        """True if a value steps evenly from round to round of the innermost loop."""
        assert self._block is not None and self._block.loop is not None
        loop = self._block.loop
        block, waiting = loop.regions[0].blocks[0], [value]
        while waiting:
            value = waiting.pop()
            if isinstance(value, ir.BlockArgument):
                if value.owner == block and value.arg_number:
                    return False
                continue
            producer = value.owner.operation
            if producer.block != block:
                continue
            if producer.name not in _LINEAR:
                return False
            waiting += list(producer.operands)
        return True

    def _is_on_axis(self, where: Sym, size: Dim) -> bool:
        """True if an index is in range in all rounds, or else the run ends before the loop."""
        if not self._least(where)[0]:
            return False  # negative ones count from the end
        proven, least, loops = self._least(size - where - 1)
        if proven or not loops:
            return proven or self._ends_on_axis(where, size)
        outer = loops[-1]
        inner = {scope.symbol for scope in loops}
        assert outer.loop is not None
        with ir.InsertionPoint(outer.loop):
            void = self.scalar(least) < 0
            for scope in loops:
                span = scope.span
                assert span is not None
                if not (isinstance(span, Sym) and inner & span.symbols):
                    void = void & (self.scalar(span) > 0)
            self.end_if(void)
        return True

    def _ends_on_axis(self, where: Sym, size: Dim) -> bool:
        """True if an index steps as the loop around does, up to a number that is known before it.

        A run that would go on behind the axis ends before the loop.
        """
        scope = self._block
        if scope is None or scope.ends is None or scope.index is None or self._found is not None:
            return False
        ahead = where - scope.index
        if any(isinstance(d, Sym) and scope.symbol in d.symbols for d in (ahead, size)):
            return False
        begin, end = scope.ends
        with ir.InsertionPoint(scope.loop):
            behind = end + self.scalar(ahead) > self.scalar(size)
            self.end_if(behind & (end > begin))
        return True

    def _least(self, dim: Dim) -> tuple[bool, Dim, list[Scope]]:
        """True if an expression is not negative in any round, and else what would show it.

        That is the least value that it has in the loops of the list, innermost first, which follow
        each other without a branch between them.
        """
        loops: list[Scope] = []
        least, complete = dim, True
        for scope in reversed(self.scopes):
            if bounds(dim)[0] >= 0:
                break
            if not (scope.is_block or (isinstance(dim, Sym) and scope.symbol in dim.symbols)):
                continue
            end = None if scope.span is None else at_the_end(dim, scope.symbol, scope.span)
            complete = complete and end is not None
            if end is not None:
                dim = end
            if complete:
                least = dim
                loops.append(scope)
        return bounds(dim)[0] >= 0, least, loops


def _rest(dim: Dim) -> tuple[Dim, Dim] | None:
    """The dividend and the divisor of an expression that is a remainder."""
    if isinstance(dim, Sym) and len(dim.terms) == 1:
        ((atoms, factor),) = dim.terms
        if factor == 1 and len(atoms) == 1 and isinstance(atoms[0], tuple) and atoms[0][0] == "%":
            return atoms[0][1], atoms[0][2]
    return None


def _write(value: ir.Value, cell: ir.Value) -> None:
    ir.Operation.create("memref.store", operands=[value, cell])


def _index_attribute(value: int) -> ir.IntegerAttr:
    return ir.IntegerAttr.get(ir.IndexType.get(), value)
