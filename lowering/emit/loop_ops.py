"""Creating the operations of the loop stage: constants, sizes, addresses, loads and stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Union

from mlir import ir
from mlir.dialects import scf

from ...dialect.errors import InternalError
from ...dialect.ir.symbolic import Dim
from ..math import expand
from ..schedule.graph import Buffer, definition

Range = tuple[ir.Value, ir.Value]  # where a loop begins and ends

IN_PLACE = "profuse.in_place"  # of a nest that may write to the very elements it has just read
OVER_BLOCKS = "profuse.over_blocks"  # of a loop that unrolling would make much vector code of
STRAIGHT = "profuse.straight"  # of a loop whose inner loop has become straight code
IN_ORDER = "profuse.in_order"  # of an addition whose place in the sum is fixed
EXPANDED = "profuse.expanded"  # of what gives the result of a function's expansion
SCALAR = "profuse.scalar"  # of a loop that is slower with vectors
_FLOAT_PREDICATES = {"oeq": 1, "oge": 3, "olt": 4, "ole": 5, "ord": 7, "uno": 14}  # of arith.cmpf
_EQUAL, _LESS = 0, 2  # of arith.cmpi


EXTENT = "profuse.extent"  # of a loop: the size expression that its index stays below


class Pair(NamedTuple):
    """A complex number: two floats, so that nothing complex is left for the stages that follow."""

    real: ir.Value
    imag: ir.Value


Element = Union[ir.Value, Pair]


def is_splat(buffer: Buffer) -> bool:
    """True if a buffer is a constant whose elements are all equal."""
    return buffer.kind == "constant" and ir.DenseElementsAttr(buffer.value).is_splat


def iterations(loop: ir.Operation) -> int | None:
    """The number of rounds of a loop; None = that is not known."""
    low, high, step = (literal(v) for v in list(loop.operands)[:3])
    if low is None or high is None or step is None:
        return None
    return -(-(high - low) // step)


def literal(value: ir.Value) -> int | None:
    """The int that a value is a constant of; None = it is no constant."""
    op = definition(value)
    if op is None or op.name != "arith.constant":
        return None
    number: int = ir.IntegerAttr(op.attributes["value"]).value
    return number


def base_of(pointer: ir.Value) -> ir.Value:
    """The base that an address is computed from; different bases never overlap."""
    op = definition(pointer)
    while op is not None and op.name == "llvm.getelementptr":
        pointer = op.operands[0]
        op = definition(pointer)
    return pointer


def noalias() -> ir.DictAttr:
    """Attributes of a pointer to memory that no other argument of its function reaches."""
    return ir.DictAttr.get({"llvm.noalias": ir.UnitAttr.get()})


class Opaque:
    """A run-time index with no linear form, as an atom."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __hash__(self) -> int:
        return hash(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.value == other.value


class Ops:
    """Types and constructors of operations, at the current insertion point and location.

    ``word`` is the type of index arithmetic. `math.expand` explains the rest.
    """

    def __init__(self, slow_subnormals: bool = False, fused: bool = False) -> None:
        self.slow_subnormals, self.fused = slow_subnormals, fused
        self.i1 = ir.IntegerType.get_signless(1)
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)
        self.i8 = ir.IntegerType.get_signless(8)
        self.f32 = ir.F32Type.get()
        self.f64 = ir.F64Type.get()
        self.index = ir.IndexType.get()
        self.word = self.i64
        self.pointer = ir.Type.parse("!llvm.ptr")
        self.no_signed_zeros = ir.Attribute.parse("#arith.fastmath<nsz>")
        self.rounded = ir.Attribute.parse("#arith.fastmath<none>")
        self._nsw = ir.Attribute.parse("#arith.overflow<nsw>")
        self._offsets: dict[ir.Type, ir.Operation] = {}
        self._templates: list[ir.Module] = []

    def create(self, name: str, type_: ir.Type, *operands: ir.Value, **attributes: Any) -> ir.Value:
        """An operation with one result."""
        return ir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes).results[0]

    def constant(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        """An integer constant; its type is ``word`` by default."""
        type_ = type_ or self.word
        return self.create("arith.constant", type_, value=ir.IntegerAttr.get(type_, value))

    def float_constant(self, value: float, type_: ir.Type) -> ir.Value:
        return self.create("arith.constant", type_, value=ir.FloatAttr.get(type_, value))

    def add(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Word sum that cannot overflow."""
        return self.create("arith.addi", self.word, a, b, overflowFlags=self._nsw)

    def subtract(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Word difference that cannot overflow."""
        return self.create("arith.subi", self.word, a, b, overflowFlags=self._nsw)

    def mul(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Word product that cannot overflow."""
        return self.create("arith.muli", self.word, a, b, overflowFlags=self._nsw)

    def binary(self, op: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """An operator of size expressions with Python's semantics; operands may be negative."""
        if op == "+":
            return self.add(a, b)
        if op == "*":
            return self.mul(a, b)
        if op in ("//", "%"):
            divisor = self._no_zero(b)
            rest = self.create("arith.remsi", self.word, a, divisor)  # has the sign of ``a``
            rest = self.create("arith.remsi", self.word, self.add(rest, divisor), divisor)
            if op == "%":
                return rest
            whole = self.create("arith.subi", self.word, a, rest)
            return self.create("arith.divsi", self.word, whole, divisor)
        return self.create({"max": "arith.maxsi", "min": "arith.minsi"}[op], self.word, a, b)

    def digit(self, a: ir.Value, b: ir.Value, rest: bool) -> ir.Value:
        """``a // b``, or ``a % b`` if ``rest``, of an index and a size, which are not negative."""
        divisor = self.create("arith.maxsi", self.word, b, self.constant(1))
        return self.create("arith.remui" if rest else "arith.divui", self.word, a, divisor)

    def _no_zero(self, divisor: ir.Value) -> ir.Value:
        """The divisor, or 1 in place of 0: empty arrays have divisors of 0, which must not trap."""
        is_zero = self.equal(divisor, self.constant(0))
        return self.select(is_zero, self.constant(1), divisor)

    def compare(self, predicate: str, a: ir.Value, b: ir.Value) -> ir.Value:
        """Comparison of floats, e.g. ``"olt"``."""
        code = ir.IntegerAttr.get(self.i64, _FLOAT_PREDICATES[predicate])
        return self.create("arith.cmpf", self.i1, a, b, predicate=code)

    def equal(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """True where two integers are equal."""
        predicate = ir.IntegerAttr.get(self.i64, _EQUAL)
        return self.create("arith.cmpi", self.i1, a, b, predicate=predicate)

    def less(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """True where one signed integer is less than another."""
        predicate = ir.IntegerAttr.get(self.i64, _LESS)
        return self.create("arith.cmpi", self.i1, a, b, predicate=predicate)

    def least(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """The lesser of two words."""
        return self.create("arith.minsi", self.word, a, b)

    def select(self, condition: ir.Value, a: ir.Value, b: ir.Value) -> ir.Value:
        """``a`` where a condition holds, else ``b``."""
        return self.create("arith.select", a.type, condition, a, b)

    def cast_index(self, value: ir.Value, type_: ir.Type) -> ir.Value:
        """Convert a value between ``index``, i64 and words."""
        if value.type == type_:
            return value
        if self.index not in (value.type, type_):
            narrower = type_.width < value.type.width
            return self.create("arith.trunci" if narrower else "arith.extsi", type_, value)
        return self.create("arith.index_cast", type_, value)

    def offset(self, base: ir.Value, index: ir.Value, element: ir.Type) -> ir.Value:
        """Pointer ``base + index`` elements."""
        template = self._offsets.get(element)
        if template is None:
            template = self._offsets[element] = self._offset_template(element)
        copy = template.clone(ir.InsertionPoint.current)
        copy.operands[0], copy.operands[1] = base, index
        return copy.results[0]

    def _offset_template(self, element: ir.Type) -> ir.Operation:
        if isinstance(element, ir.ComplexType):
            element = f"!llvm.array<2 x {element.element_type}>"
        # The bindings cannot set the no-wrap flags of this operation; parsing can.
        text = f"""llvm.func @t(%p: !llvm.ptr, %i: i64) {{
          %q = llvm.getelementptr inbounds %p[%i] : (!llvm.ptr, i64) -> !llvm.ptr, {element}
          llvm.return
        }}"""
        self._templates.append(ir.Module.parse(text))
        function = self._templates[-1].body.operations[0]
        return function.regions[0].blocks[0].operations[0].operation

    def unread(self, type_: ir.Type) -> Element:
        """A value that nothing reads: 0, since MLIR aborts when it folds casts of LLVM's undef."""
        if isinstance(type_, ir.ComplexType):
            return Pair(*[self.float_constant(0.0, type_.element_type)] * 2)
        if isinstance(type_, ir.IntegerType):
            return self.constant(0, type_)
        return self.float_constant(0.0, type_)

    def load(self, pointer: ir.Value, element: ir.Type) -> Any:
        """The element at an address; a complex one is a `Pair`."""
        if isinstance(element, ir.ComplexType):
            part = element.element_type
            return Pair(*(self.load(p, part) for p in self._parts(pointer, part)))
        return self.create("llvm.load", element, pointer)

    def store(self, value: Element, pointer: ir.Value) -> None:
        if isinstance(value, Pair):
            for part, place in zip(value, self._parts(pointer, value.real.type), strict=True):
                self.store(part, place)
            return
        ir.Operation.create("llvm.store", operands=[value, pointer])

    def _parts(self, pointer: ir.Value, part: ir.Type) -> tuple[ir.Value, ir.Value]:
        """The addresses of the parts of a complex number."""
        return pointer, self.offset(pointer, self.constant(1, self.i64), part)

    def alloca(self, count: int, element: ir.Type, alignment: int = 64) -> ir.Value:
        """Stack memory for ``count`` elements."""
        if isinstance(element, ir.ComplexType):
            count, element = 2 * count, element.element_type
        return self.create(
            "llvm.alloca",
            self.pointer,
            self.constant(count),
            elem_type=ir.TypeAttr.get(element),
            alignment=ir.IntegerAttr.get(self.i64, alignment),
        )

    def loop(self, low: ir.Value, high: ir.Value, step: ir.Value, carried: Sequence[ir.Value]) -> scf.ForOp:
        """An `scf.for` whose body is still empty."""
        return scf.ForOp(low, high, step, list(carried))

    def expand(self, function: str, operands: Sequence[ir.Value]) -> ir.Value | None:
        """A function of the `math` dialect, if it has an inline expansion."""
        return expand(function, operands, slow_subnormals=self.slow_subnormals, fused=self.fused)

    def call(self, callee: str, operands: Sequence[ir.Value]) -> None:
        """A call without results."""
        ir.Operation.create(
            "func.call", operands=list(operands), attributes={"callee": ir.FlatSymbolRefAttr.get(callee)}
        )


class Sizes:
    """Size expressions as words, emitted once each at one insertion point."""

    def __init__(self, ops: Ops, names: dict[str, ir.Value]) -> None:
        self.ops, self.names = ops, names
        self._known: dict[Dim, ir.Value] = {}

    def value(self, dim: Dim, point: ir.InsertionPoint) -> ir.Value:
        """The value of ``dim``; operations go to ``point``, which must dominate every use."""
        value = self._known.get(dim)
        if value is None:
            with point:
                if isinstance(dim, int):
                    value = self.ops.constant(dim)
                else:
                    value = dim.fold(self._leaf, lambda n: self.value(n, point), self.ops.binary)
            self._known[dim] = value
        return value

    def _leaf(self, name: str) -> ir.Value:
        try:
            return self.names[name]
        except KeyError:
            raise InternalError(f"size symbol {name!r} is not an argument") from None
