"""Control flow on tensors: ``scf`` operations whose blocks are lowered as functions are.

Carried tensors stay tensors; numbers, Python's and those of arrays without axes, are carried as
elements. Every carried value has one type in all rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mlir import ir

from ...dialect.errors import LoweringError, ProfuseError
from ...dialect.ir.dtypes import BOOL, I64
from ...dialect.ir.op import Op
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.size_algebra import inside_loop
from ...dialect.ir.symbolic import FAR, LOOP
from ...dialect.ir.types import ScalarType, TensorType, Type
from ...dialect.mlir.context import to_location
from ...dialect.ops.control_flow.control import ControlFlow, For, If, While
from ...dialect.ops.control_flow.induction import Induction, induction
from ...dialect.ops.create import Constant
from ...dialect.ops.elementwise.binary import Add, Mul, Sub
from ...dialect.ops.elementwise.compare import Compare
from ...dialect.ops.elementwise.families import Elementwise, MathUnary
from ...dialect.ops.elementwise.powers import Pow
from ...dialect.ops.elementwise.unary import Neg
from ...dialect.ops.indexing.additions import IndexPut
from ...dialect.ops.indexing.scatter import PickScatter
from ...dialect.ops.queries import Count
from .element import emit, storage_type
from .environment import Environment, located
from .loop_builder import LoopBuilder
from .number_arithmetic import lower_number
from .parts import PARTS
from .ranges import Ranges
from .scalar import Scalar, constant
from .selects import is_little, is_within, parity
from .stored_element import load, store
from .tensor_builder import Builder, TensorValue

# Holds the blocks of an operation until the types of its results are known.
_HOLDER = "profuse.holder"
_NEAR = 2**61  # an int is far from the end of 64 bits up to there, and so is its sum with another


def has_control_flow(function: Program) -> bool:
    """True for a function that needs a `LoopEnvironment`."""
    return any(instr.blocks for instr in function.body.instrs)


class LoopEnvironment(Environment):
    """The values of a function with control flow; its builder is a `LoopBuilder`."""

    builder: LoopBuilder

    def __init__(self, function: Program, builder: Builder) -> None:
        super().__init__(function, builder)
        self.loops = 0
        self.ranges = Ranges(function)
        self.compared: dict[int, Instr] = {}  # the results of comparisons so far

    def run(self, instr: Instr) -> None:
        if instr.op is Count:
            self._count(instr)
            return
        if not issubclass(instr.op, ControlFlow):
            super().run(instr)
            return
        with to_location(instr.loc) if instr.loc else ir.Location.current:
            try:
                {For: self._for, While: self._while, If: self._if}[instr.op](instr)
            except ProfuseError as error:
                raise located(error, instr.loc) from error

    def _count(self, instr: Instr) -> None:
        """Define the symbol of a number that sizes depend on, unless the number is known."""
        (operand,), (number,) = instr.operands, instr.results
        attrs = Count.full_attrs(instr.attrs)
        type_ = Count.taken_for(self.types[operand], attrs)
        if self.types[operand].value is None:  # type: ignore[union-attr]
            value = self.builder.scalar(self.values[operand])
            if attrs["equals"]:
                self.builder.end_if(value.ne(self.builder.size(type_.value)))  # type: ignore[arg-type]
            else:
                name = Count.name_of(attrs)
                self.builder.count(name, value, type_.value, attrs["least"])  # type: ignore[arg-type]
        self.types[number], self.values[number] = type_, type_.value

    def lower(self, instr: Instr, attrs: dict, types: tuple[Type, ...], args: list[Any]) -> Any:
        self.builder.within = {
            self.values[v].value: (range_.low, range_.high)
            for v, range_ in self.ranges.operands.get(id(instr), {}).items()
            if isinstance(self.values[v], Scalar)
        }
        if instr.op in PARTS:
            result = PARTS[instr.op](self.builder, attrs, types, *args)
            if result is not None:
                return result
        if issubclass(instr.op, Compare):
            self.compared[instr.results[0]] = instr
        if types and all(isinstance(t, ScalarType) for t in types):
            operands = [self.types[v] for v in instr.operands]
            bounded = instr.results[0] in self.ranges.bounded
            ranges = self.ranges.operands.get(id(instr), {})
            near = [v in ranges and ranges[v].within(-_NEAR, _NEAR) for v in instr.operands]
            return lower_number(self.builder, instr.op, attrs, types, operands, args, bounded, near)
        return super().lower(instr, attrs, types, args)

    # --- values that blocks pass on ----------------------------------------------------------

    def _raw(self, number: int) -> ir.Value:
        """A value as it is carried."""
        type_, value = self.types[number], self.values[number]
        if isinstance(type_, TensorType) and type_.rank:
            return value.value
        return store(self.builder.scalar(value).cast(_dtype(type_)))

    def _adopt(self, number: int, type_: Type, value: ir.Value) -> None:
        """Define a value that is carried."""
        if isinstance(type_, TensorType) and type_.rank:
            self.types[number], self.values[number] = type_, TensorValue(value, type_)
            return
        scalar = load(value, _dtype(type_))
        if isinstance(type_, ScalarType):
            self.types[number], self.values[number] = ScalarType(type_.dtype), scalar
        else:
            assert isinstance(type_, TensorType)
            self.types[number] = type_
            self.values[number] = TensorValue(None, type_, scalar)

    def _types(self, values: Sequence[int]) -> list[Type]:
        """The types that values have in each round: nothing is known of numbers."""
        return [_carried(self.types[v]) for v in values]

    def _check(self, outputs: Sequence[int], types: Sequence[Type]) -> None:
        for value, type_ in zip(outputs, types, strict=True):
            actual = _carried(self.types[value])
            if actual != type_:
                raise LoweringError(f"a loop carries {type_}, and then {actual}")

    def _block(self, block: Block) -> None:
        for instr in block.instrs:
            self.run(instr)

    # --- loops -------------------------------------------------------------------------------

    def _for(self, instr: Instr) -> None:
        b = self.builder
        (body,) = instr.blocks
        bounds, inits = instr.operands[:3], instr.operands[3:]
        counter = induction([self.types[v] for v in bounds], f"{LOOP}{self.loops}")
        self.loops += 1
        types = self._types(inits)
        lower, upper, step = (b.scalar(self.values[v]) for v in bounds)
        low, end, by = self._counted(bounds, lower, upper, step)
        carried = [self._raw(v) for v in inits]
        up = _steps_up(self.types[bounds[2]])
        if up and _change_places(body, types):
            # After two rounds each array is where it was: so many rounds copy none of them.
            pairs = ((end - low + by - 1) // by).maximum(0) // 2
            middle = low + pairs * 2 * by
            carried = self._rounds(instr, counter, types, (low, middle, by), carried, 2)
            low = middle
        start = None if up else (lower, step)
        carried = self._rounds(instr, counter, types, (low, end, by), carried, 1, start)
        for value, type_, result in zip(instr.results, types, carried, strict=True):
            self._adopt(value, type_, result)

    def _rounds(
        self,
        instr: Instr,
        counter: Induction,
        types: Sequence[Type],
        bounds: tuple[Scalar, Scalar, Scalar],
        carried: Sequence[ir.Value],
        times: int,
        start: tuple[Scalar, Scalar] | None = None,
    ) -> list[ir.Value]:
        """An ``scf.for`` of a loop's body, some times in a row; returns what it carries in the end.

        ``start``: first index and step of a loop that counts its rounds.
        """
        b = self.builder
        (body,) = instr.blocks
        low, end, by = bounds
        index = ir.IndexType.get()
        stride = by if times == 1 else by * times
        loop = ir.Operation.create(
            "scf.for",
            results=[v.type for v in carried],
            operands=[_index(low), _index(end), _index(stride), *carried],
            regions=1,
        )
        block = loop.regions[0].blocks.append(index, *[v.type for v in carried])
        span, step = counter.span, by.known if times > 1 else 0
        span = None if span is None else span - (times - 1) * step
        by_one = bool(counter.symbol) and span is None and times == by.known == 1
        with (
            inside_loop(counter.symbol, span),
            b.inside(
                block,
                symbol=counter.symbol,
                span=span,
                loop=loop,
                index=counter.type.value if by_one and start is None else None,
                ends=(low, end),
                straight=_is_straight(body, types),
            ) as scope,
        ):
            at, *values = block.arguments
            with scope.place.point:
                number = Scalar(emit("arith.index_cast", storage_type(I64), at), I64)
                if start is not None:
                    number = start[0] + number * start[1]
                    at = _index(number)
                if counter.symbol:
                    base = b.scalar(counter.base)
                    index_of: Any = counter.type.value
                    b.define(scope, counter.symbol, _index(number - base), index_of, at)
            for turn in range(times):
                value: Any = number if not turn else number + turn * step
                if counter.symbol:
                    value = counter.type.value + turn * step  # type: ignore[operator]
                self.types[body.args[0]] = ScalarType(I64, value if counter.symbol else None)
                self.values[body.args[0]] = value
                for arg, type_, raw in zip(body.args[1:], types, values, strict=True):
                    self._adopt(arg, type_, raw)
                self._block(body)
                self._check(body.outputs, types)
                values = [self._raw(v) for v in body.outputs]
            ir.Operation.create("scf.yield", operands=values)
        b.settle(scope)
        return list(loop.results)

    def _counted(
        self, bounds: Sequence[int], lower: Scalar, upper: Scalar, step: Scalar
    ) -> tuple[Scalar, Scalar, Scalar]:
        """Bounds and step of an ``scf.for``, which steps upwards.

        A step that may be negative makes it count rounds, from 0 on.
        """
        b = self.builder
        for value, scalar in zip(bounds, (lower, upper, step), strict=True):
            if self.types[value].value is None:  # type: ignore[union-attr]
                far = (scalar > FAR) | (scalar < -FAR)
                b.note(far)
        if _steps_up(self.types[bounds[2]]):
            return lower, upper, step
        if self.types[bounds[2]].value is None:  # type: ignore[union-attr]
            b.note(step.eq(0))
        up = step > 0
        span = up.select(upper - lower, lower - upper)
        size = up.select(step, -step)
        rounds = ((span + size - 1) // size).maximum(0)
        return constant(0, I64), rounds, constant(1, I64)

    def _while(self, instr: Instr) -> None:
        b = self.builder
        before, after = instr.blocks
        types = self._types(instr.operands)
        inits = [self._raw(v) for v in instr.operands]
        holder = ir.Operation.create(_HOLDER, regions=2)
        first = holder.regions[0].blocks.append(*[v.type for v in inits])
        with b.inside(first):
            for value, type_, arg in zip(before.args, types, first.arguments, strict=True):
                self._adopt(value, type_, arg)
            self._block(before)
            condition = b.scalar(self.values[before.outputs[0]]).cast(BOOL)
            types_after = self._types(before.outputs[1:])
            values = [self._raw(v) for v in before.outputs[1:]]
            ir.Operation.create("scf.condition", operands=[condition.value, *values])
        results = [v.type for v in values]
        second = holder.regions[1].blocks.append(*results)
        with b.inside(second):
            for value, type_, arg in zip(after.args, types_after, second.arguments, strict=True):
                self._adopt(value, type_, arg)
            self._block(after)
            self._check(after.outputs, types)
            carried = [self._raw(v) for v in after.outputs]
            ir.Operation.create("scf.yield", operands=carried)
        loop = ir.Operation.create("scf.while", results=results, operands=inits, regions=2)
        first.append_to(loop.regions[0])
        second.append_to(loop.regions[1])
        holder.erase()
        for value, type_, result in zip(instr.results, types_after, loop.results, strict=True):
            self._adopt(value, type_, result)

    def _if(self, instr: Instr) -> None:
        b = self.builder
        condition = b.scalar(self.values[instr.operands[0]]).cast(BOOL)
        within = is_within(self, instr)
        if within is not None:
            self._adopt(instr.results[0], ScalarType(BOOL), store(within))
            return
        if is_little(self, instr):
            self._both_sides(instr, condition)
            return
        holder = ir.Operation.create(_HOLDER, regions=2)
        types: list[Type] = []
        blocks = []
        for number, side in enumerate(instr.blocks):
            block = holder.regions[number].blocks.append()
            blocks.append(block)
            with b.inside(block):
                self._block(side)
                if number:
                    self._check(side.outputs, types)
                types = self._types(side.outputs)
                raw = [self._raw(v) for v in side.outputs]
                ir.Operation.create("scf.yield", operands=raw)
        results = [v.type for v in raw]
        branch = ir.Operation.create("scf.if", results=results, operands=[condition.value], regions=2)
        for block, region in zip(blocks, branch.regions, strict=True):
            block.append_to(region)
        holder.erase()
        for value, type_, result in zip(instr.results, types, branch.results, strict=True):
            self._adopt(value, type_, result)

    def _both_sides(self, instr: Instr, condition: Scalar) -> None:
        """Compute both sides of a branch; what the one forbids that is not taken is allowed."""
        b = self.builder
        chosen, is_other = parity(condition.value)
        results: list[list[ir.Value]] = []
        types: list[Type] = []
        for side, truth in zip(instr.blocks, (condition, ~condition), strict=True):
            with b.only_if(truth):
                self._block(side)
            if results:
                self._check(side.outputs, types)
            types = self._types(side.outputs)
            results.append([self._raw(v) for v in side.outputs])
        results = results[::-1] if is_other else results
        for value, type_, first, second in zip(instr.results, types, *results, strict=True):
            raw = emit("arith.select", first.type, chosen, first, second)
            self._adopt(value, type_, raw)


def _is_straight(body: Block, types: Sequence[Type]) -> bool:
    """True if LLVM may make SIMD code of rounds, as far as can be told beforehand.

    It makes none of rounds that branch, wait for a sum of floats of the round before, or write
    where data decide.
    """
    if any(instr.blocks for instr in body.instrs):
        return False
    linear = {body.args[0]}
    inside = {*body.args, *(r for instr in body.instrs for r in instr.results)}
    for instr in body.instrs:
        if instr.op in (Constant, Add, Sub, Mul, Neg) and linear.issuperset(v for v in instr.operands if v in inside):
            linear.update(instr.results)
        if instr.op in (PickScatter, IndexPut) and not linear.issuperset(v for v in instr.operands[2:] if v in inside):
            return False
    for arg, value, type_ in zip(body.args[1:], body.outputs, types, strict=True):
        if isinstance(type_, TensorType) and type_.rank:
            continue
        if not (_dtype(type_).is_int or _dtype(type_) is BOOL or _is_sum(body, arg, value)):
            return False
    return True


def _is_sum(body: Block, arg: int, value: int) -> bool:
    """True if rounds only add to a float, and compute functions meanwhile."""
    readers = [i for i in body.instrs for v in i.operands if v == arg]
    users = [i for i in body.instrs for v in i.operands if v == value]
    return (
        len(readers) == 1
        and not users
        and readers[0].op in (Add, Sub)
        and readers[0].results[0] == value
        and (readers[0].op is Add or readers[0].operands[0] == arg)
        and any(_is_function(i.op) for i in body.instrs)
    )


def _is_function(op: type[Op]) -> bool:
    """True if an op takes so long that a vector of them pays."""
    return issubclass(op, (MathUnary, Pow)) or (issubclass(op, Elementwise) and op.of_numbers)


def _change_places(body: Block, types: Sequence[Type]) -> bool:
    """True if a round hands on one of its arrays in the place of another one."""
    return any(
        value in body.args[1:] and value != arg and isinstance(type_, TensorType) and type_.rank
        for arg, value, type_ in zip(body.args[1:], body.outputs, types, strict=True)
    )


def _dtype(type_: Type) -> Any:
    dtype = getattr(type_, "dtype", None)
    if dtype is None:
        raise LoweringError(f"a loop carries {type_}")
    return dtype


def _carried(type_: Type) -> Type:
    if isinstance(type_, TensorType):
        return TensorType(type_.dtype, type_.shape)
    return ScalarType(_dtype(type_))


def _steps_up(type_: Type) -> bool:
    value = type_.value if isinstance(type_, ScalarType) else None
    return isinstance(value, int) and value > 0


def _index(scalar: Scalar) -> ir.Value:
    return emit("arith.index_cast", ir.IndexType.get(), scalar.value)
