"""Evaluating tensors at an index, inside the loops of a nest.

A value is emitted in the outermost scope in which its index is defined, and remembered there. So a
value that does not depend on a loop is computed outside of it, and a value with several readers is
computed once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.errors import InternalError
from ...dialect.ir.symbolic import Dim
from ...dialect.ops.sizes import is_nonnegative
from ..schedule import affine as ix
from ..schedule.affine import AffineIndex, Atom
from ..schedule.graph import Buffer, Compute, Graph, Source, Tensor, direct_reads, viewed
from ..schedule.groups import Loop
from ..schedule.memory import buffer_of, offset_of
from .loop_ops import EXTENT, Opaque, Ops, Sizes, is_splat

Position = tuple[AffineIndex, ...]


class BlockScope:
    """One block under construction.

    Attributes:
        block: the block to which operations are added.
        before: the operation before which they are added (an inner loop under construction); None =
            the end of the block.
        memo: key -> value that has been emitted in this scope.
        conditional: True for a branch, whose operations may not move to an outer scope.
    """

    __slots__ = ("before", "block", "conditional", "memo")

    def __init__(self, block: ir.Block, conditional: bool = False) -> None:
        self.block, self.conditional = block, conditional
        self.before: ir.Operation | None = None
        self.memo: dict[Any, Any] = {}

    def point(self) -> ir.InsertionPoint:
        if self.before is not None:
            return ir.InsertionPoint(self.before)
        return ir.InsertionPoint(self.block)


@dataclass(eq=False)
class _Element:
    """One iteration of an inlined operation that waits for its operands.

    Attributes:
        op: the operation.
        loops: the index of each of its loops.
        depth: number of the scope in which it is emitted.
        reads: the elements that it reads in any case and that have not been visited yet.
    """

    op: Compute
    loops: list[AffineIndex]
    depth: int
    reads: Iterator[tuple[Tensor, Position]]


class ValueEmitter:
    """Values at indices; a nest derives from it and says where members are stored.

    Args:
        pointers: of every buffer the function can reach.
        names: size symbols and run-time strides as words.

    Attributes:
        versions: True = loops get versions without values that are rarely needed (`emit.rare`).
    """

    versions = False

    def __init__(
        self, ops: Ops, graph: Graph, block: ir.Block, pointers: dict[Buffer, ir.Value], names: dict[str, ir.Value]
    ) -> None:
        self.ops, self.graph = ops, graph
        self.scopes = [BlockScope(block)]
        self.pointers = pointers
        self.sizes = Sizes(ops, names)
        self.atoms: dict[Atom, tuple[ir.Value, int]] = {}
        self.symbol_values = {v: names[n] for n, v in graph.symbols.items()}
        self.may_be_off = False

    # --- scopes --------------------------------------------------------------------------------

    @property
    def scope(self) -> BlockScope:
        return self.scopes[-1]

    @contextmanager
    def at(self, depth: int):
        """Emit in an outer scope, as if the inner ones were not open."""
        saved, self.scopes = self.scopes, self.scopes[: depth + 1]
        try:
            with self.scope.point():
                yield
        finally:
            self.scopes = saved

    @contextmanager
    def branch(self, op: ir.Operation, block: ir.Block):
        """Emit into a region of ``op``, which has just been created in the current scope."""
        enclosing = self.scope
        saved, enclosing.before = enclosing.before, op
        self.scopes = [*self.scopes, BlockScope(block, conditional=True)]
        try:
            with ir.InsertionPoint(block):
                yield
        finally:
            self.scopes = self.scopes[:-1]
            enclosing.before = saved

    @contextmanager
    def through_window(self):
        """Read elements at indices that may be off their axes; then the values are not used."""
        saved, self.may_be_off = self.may_be_off, True
        try:
            yield
        finally:
            self.may_be_off = saved

    @contextmanager
    def loop(
        self, atom: Atom, low: ir.Value, high: ir.Value, step: int | ir.Value = 1, carried: Sequence[ir.Value] = ()
    ):
        """Emit inside a loop; yields the `scf.ForOp`, which `end_loop` must close."""
        enclosing = self.scope
        by = self.size(step) if isinstance(step, int) else step
        with enclosing.point():
            op = self.ops.loop(low, high, by, carried)
            if isinstance(atom, Loop):
                op.operation.attributes[EXTENT] = ir.StringAttr.get(str(atom.extent))
        enclosing.before = op.operation
        self.scopes = [*self.scopes, BlockScope(op.body)]
        self.atoms[atom] = (op.induction_variable, len(self.scopes) - 1)
        try:
            with ir.InsertionPoint(op.body):
                yield op
        finally:
            self.scopes = self.scopes[:-1]
            enclosing.before = None
            del self.atoms[atom]

    def end_loop(self, values: Sequence[ir.Value] = ()) -> None:
        """Terminate the current loop's body."""
        with ir.InsertionPoint(self.scope.block):
            ir.Operation.create("scf.yield", operands=list(values))

    def remembered(self, key: Any) -> Any:
        for scope in reversed(self.scopes):
            value = scope.memo.get(key)
            if value is not None:
                return value
        return None

    def once(self, key: Any, index: Sequence[AffineIndex], make: Callable[[], Any]) -> Any:
        """Call ``make`` once in the outermost scope that defines the indices; returns its value."""
        value = self.remembered(key)
        if value is None:
            with self.at(self.depth_of(index)):
                value = self.scope.memo[key] = make()
        return value

    def depth_of(self, index: Sequence[AffineIndex]) -> int:
        """The outermost scope in which every atom of these expressions has a value."""
        depth = 0
        for expr in index:
            for atom in ix.atoms_of(expr):
                depth = max(depth, self._atom(atom)[1])
        return max(depth, self.conditional_depth())

    def conditional_depth(self) -> int:
        for depth in range(len(self.scopes) - 1, 0, -1):
            if self.scopes[depth].conditional:
                return depth
        return 0

    def _atom(self, atom: Atom) -> tuple[ir.Value, int]:
        try:
            return self.atoms[atom]
        except KeyError:
            raise InternalError(f"index {atom} is not defined here") from None

    def size(self, dim: Any) -> ir.Value:
        """A size as a word."""
        return self.sizes.value(dim, self.scopes[0].point())

    # --- indices and addresses -----------------------------------------------------------------

    def index_value(self, index: AffineIndex) -> ir.Value:
        """An index expression as a word."""
        return self.once(("index", index), [index], lambda: self._sum(index))

    def index_data(self, index: AffineIndex, type_: ir.Type) -> ir.Value:
        """An index expression as a value of a body: ``index`` or i64."""
        return self.ops.cast_index(self.index_value(index), type_)

    def _sum(self, index: AffineIndex) -> ir.Value:
        total = None
        for atom, coefficient in index.terms.items():
            if isinstance(atom, ix.Quotient):
                inner = self.index_value(atom.of)
                value = self.ops.digit(inner, self.size(atom.by), atom.rest)
            else:
                value = self._atom(atom)[0]
            if coefficient != 1:
                value = self.ops.mul(value, self.size(coefficient))
            total = value if total is None else self.ops.add(total, value)
        if total is None:
            return self.size(index.const)
        if index.const != 0:
            total = self.ops.add(total, self.size(index.const))
        return total

    def address(self, buffer: Buffer, base: ir.Value, offset: AffineIndex) -> ir.Value:
        """Pointer to an element; the part of the offset from outer scopes is added outside."""
        depths = {a: self.depth_of([ix.atom(a)]) for a in offset.terms}
        pointer = base
        terms: dict[Atom, Any] = {}
        constant = offset.const
        for depth in sorted({*depths.values(), *([0] if constant != 0 else [])}):
            part = {a: c for a, c in offset.terms.items() if depths[a] == depth}
            step = AffineIndex(part, constant)
            constant = 0
            terms.update(part)
            key = ("address", buffer, AffineIndex(terms, offset.const))
            next_pointer = self.remembered(key)
            if next_pointer is None:
                value = self.index_value(step)
                with self.at(max(depth, self.conditional_depth())):
                    next_pointer = self.ops.offset(pointer, value, buffer.element)
                    self.scope.memo[key] = next_pointer
            pointer = next_pointer
        return pointer

    def load(self, buffer: Buffer, base: ir.Value, offset: AffineIndex) -> ir.Value:
        """The element at an offset."""
        return self.once(
            ("load", buffer, offset),
            [offset],
            lambda: self.ops.load(self.address(buffer, base, offset), buffer.element),
        )

    def pointer(self, buffer: Buffer) -> ir.Value:
        try:
            return self.pointers[buffer]
        except KeyError:
            raise InternalError(f"{buffer} is not an argument of this nest") from None

    def tensor_of(self, value: ir.Value) -> Tensor:
        """The tensor of an SSA value of the linalg function."""
        return self.graph.values[value]

    # --- values --------------------------------------------------------------------------------

    def value(self, tensor: Tensor, index: Sequence[AffineIndex]) -> ir.Value:
        """The element of a tensor."""
        tensor, index = viewed(tensor, tuple(index))
        element = self.remembered((tensor, index))
        if element is not None:
            return element
        producer = tensor.producer
        if isinstance(producer, Compute):
            if self.is_inlined(producer):
                return self.inline(producer, tensor, index)
            return self.reload(tensor, index)
        if isinstance(producer, Source) and is_splat(producer.buffer):
            return self._splat(producer.buffer)
        if producer is None:
            with self.at(0):
                return self.ops.unread(tensor.element)
        return self.stored(tensor, index)

    def is_inlined(self, op: Compute) -> bool:
        """True if elements of an operation's results are computed where they are read."""
        return not op.anchor

    def reload(self, tensor: Tensor, index: Position) -> ir.Value:
        """The element of a result that is not inlined."""
        return self.stored(tensor, index)

    def stored(self, tensor: Tensor, index: Sequence[AffineIndex]) -> ir.Value:
        """The element of a tensor that is in memory."""
        buffer = buffer_of(tensor)
        if self.may_be_off:
            index = [self._kept_within(i, dim) for i, dim in zip(index, tensor.dims, strict=True)]
        return self.load(buffer, self.pointer(buffer), offset_of(tensor, index))

    def _kept_within(self, index: AffineIndex, dim: Dim) -> AffineIndex:
        """An index, clamped to its axis unless it is known to be on it."""
        low, high = _reach(index)
        is_low = low is None or not is_nonnegative(low)
        is_high = high is None or not is_nonnegative(dim - 1 - high)
        if not (is_low or is_high):
            return index

        def clamp() -> Opaque:
            value, ops = self.index_value(index), self.ops
            if is_low:
                value = ops.create("arith.maxsi", ops.word, value, self.size(0))
            if is_high:
                value = ops.least(value, self.size(dim - 1))
            atom = Opaque(value)
            self.atoms[atom] = value, len(self.scopes) - 1
            return atom

        return ix.atom(self.once(("within", index, dim), [index], clamp))

    def _splat(self, buffer: Buffer) -> ir.Value:
        attribute = ir.DenseElementsAttr(buffer.value).get_splat_value()
        return self.constant_value(buffer.element, attribute)

    def constant_value(self, type_: ir.Type, attribute: ir.Attribute) -> ir.Value:
        """A constant, once per function."""
        key = ("constant", type_, attribute)
        memo = self.scopes[0].memo
        if key not in memo:
            with self.scopes[0].point():
                memo[key] = self.ops.create("arith.constant", type_, value=attribute)
        return memo[key]

    def inline(self, op: Compute, tensor: Tensor, index: Position) -> ir.Value:
        """Compute an element of an inlined operation, as far outside of the loops as possible.

        Its operands are computed first. An explicit stack is used, because a chain of operations
        may exceed Python's recursion limit. Elements that only a branch reads are computed there.
        """
        waiting = [self._element(op, tensor, index)]
        values: list[ir.Value] = []
        while waiting:
            element = waiting[-1]
            with self.at(element.depth):
                missing = next(filter(None, map(self._missing, element.reads)), None)
                if missing is None:
                    values = self._compute(element)
            if missing is None:
                waiting.pop()
            else:
                waiting.append(missing)
        return values[tensor.number]

    def _element(self, op: Compute, tensor: Tensor, index: Position) -> _Element:
        loops = [i if i is not None else ix.constant(0) for i in op.loop_values(tensor.number, index)]
        return _Element(op, loops, self.depth_of(index), direct_reads(op, loops))

    def _missing(self, read: tuple[Tensor, Position]) -> _Element | None:
        """The inlined element that ``read`` needs and that is not computed yet; None = none."""
        tensor, index = viewed(*read)
        op = tensor.producer
        if not isinstance(op, Compute) or not self.is_inlined(op):
            return None
        return None if self.remembered((tensor, index)) else self._element(op, tensor, index)

    def _compute(self, element: _Element) -> list[ir.Value]:
        op, loops = element.op, element.loops
        values = self.body(op, loops, {})
        for output, axes, value in zip(op.outputs, op.axes, values, strict=True):
            self.scope.memo[output, tuple(loops[k] for k in axes)] = value
        return values

    def body(
        self,
        op: Compute,
        loops: Sequence[AffineIndex],
        accumulators: dict[int, ir.Value],
        inputs: dict[int, ir.Value] | None = None,
        in_order: bool = False,
    ) -> list[ir.Value]:
        """Emit one iteration of an operation in the current scope; returns its new elements.

        ``accumulators``: output number -> previous element. ``inputs``: input number -> what the
        iteration gets in place of the element that it reads. ``in_order``: no sum may be added up
        in another order than that of the iterations.
        """
        from .iteration import BodyEmitter

        emitter = BodyEmitter(self, op, loops, accumulators, inputs or {}, in_order)
        if op.location is not None:
            with op.location:
                return emitter.run()
        return emitter.run()


def _reach(index: AffineIndex) -> tuple[Dim | None, Dim | None]:
    """The least and the largest value of an index over loops; None = not known."""
    low, high = index.const, index.const
    for atom, coefficient in index.terms.items():
        if not isinstance(atom, Loop) or not isinstance(coefficient, int):
            return None, None
        way = (atom.extent - 1) * coefficient
        low, high = (low, high + way) if coefficient > 0 else (low + way, high)
    return low, high
