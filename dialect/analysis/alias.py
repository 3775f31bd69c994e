"""Alias analysis: which values may share memory, who writes it, and what may move past what.

Works on blocks of `program.Instr`; values are whatever identifies them (integers in programs,
`ir.Value` in the mirror that passes make of a function, see `mlir.aliases`).

Memory is named by its *roots*: values whose op allocates it, or `OUTSIDE`, the memory of whoever
calls (arguments may all share it). A view has the roots of what it views; a value that control
flow hands on has those of everything it may be. One root stands for the memory of every
execution of its op. Answers are conservative: "may" is never answered with a wrong no.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..ir.op import Fusion
from ..ir.program import Block, Instr
from ..ir.types import ListedType, ListType, ScalarType, TensorType, Type
from ..ops.control_flow.control import ControlFlow, For, If, While
from ..ops.create import Constant
from ..ops.gradient_ops import SumTo
from ..ops.indexing.scatter import Conform
from ..ops.indexing.slicing import Pick
from ..ops.queries import Dim, Size
from ..ops.speculation import FallbackGraph

SHAPED_LIKE = (SumTo, Conform)
"""Ops whose result has the shape of the second operand, of which they read nothing else."""
Roots = frozenset[Any]
NOTHING: Roots = frozenset()


class _Outside:
    def __repr__(self) -> str:
        return "OUTSIDE"


OUTSIDE = _Outside()


class Effects(NamedTuple):
    """Roots of the memory that an instruction, nested ones included, reads and writes.

    ``ordered``: it has an effect besides, and keeps its place among such.
    """

    reads: Roots
    writes: Roots
    ordered: bool = False


class Aliases:
    """Alias information of one function body.

    Args:
        body: its block; later changes of it are not seen.
        type_of: type of a value. Python numbers have no memory.
        shared: roots known from elsewhere, for a body that uses values from outside of it.
    """

    def __init__(self, body: Block, type_of: Callable[[Any], Type], shared: dict[Any, Roots] | None = None) -> None:
        self.body, self._type_of = body, type_of
        self.roots: dict[Any, Roots] = dict(shared or {})
        self.constants: set[Any] = set()
        self._effects: dict[int, Effects] = {}
        self._written: Roots | None = None
        for arg in body.args:
            self._grow(arg, frozenset([OUTSIDE]))
        self._changed = True
        while self._changed:
            self._changed = False
            self._visit(body)

    # --- questions ----------------------------------------------------------------------------

    def of(self, value: Any) -> Roots:
        """Roots of the memory of a value; none for Python numbers."""
        return self.roots.get(value, NOTHING)

    def writers(self, value: Any) -> list[Instr]:
        """Instructions, innermost, that may write the memory of a value."""
        mine = self.of(value)
        return [i for i in self.writing() if mine & self.effects(i).writes]

    def writing(self) -> Iterator[Instr]:
        """Every innermost instruction that writes, in order."""
        return (i for i in self.body.walk() if not i.blocks and self.effects(i).writes)

    def written(self) -> Roots:
        """Roots of all memory that is ever written."""
        if self._written is None:
            self._written = NOTHING.union(*(self.effects(i).writes for i in self.body.instrs))
        return self._written

    def is_written(self, value: Any) -> bool:
        """True if the memory of a value may be written after it is made."""
        return bool(self.of(value) & self.written())

    def escapes(self, value: Any) -> bool:
        """True if memory of a value may be seen by the caller or by an unknown op."""
        seen: set[Any] = {OUTSIDE}
        for output in self.body.outputs:
            seen |= self.of(output)
        for instr in self.body.walk():
            if instr.op is None or instr.op is FallbackGraph:
                for operand in instr.operands:
                    seen |= self.of(operand)
        return bool(self.of(value) & seen)

    def order(self, block: Block) -> Iterator[tuple[int, int]]:
        """Pairs of instructions of a block, by number, of which the first must stay before the second (R3.17).

        They are those that touch the same memory, one of them writing it, and those that have an
        effect; what other pairs imply is left out, as is what follows from operands.
        """
        written = self.written()
        readers: dict[Any, list[int]] = {}  # root -> those that have read it since it was written
        writers: dict[Any, int] = {}
        last: int | None = None
        for n, instr in enumerate(block.instrs):
            effects = self.effects(instr)
            reads = effects.reads & written
            before = {writers[root] for root in reads | effects.writes if root in writers}
            for root in effects.writes:
                before.update(readers.pop(root, ()))
                writers[root] = n
            for root in reads - effects.writes:
                readers.setdefault(root, []).append(n)
            if effects.ordered:
                before.update([] if last is None else [last])
                last = n
            yield from ((k, n) for k in sorted(before))

    def effects(self, instr: Instr) -> Effects:
        """The memory that an instruction reads and writes."""
        effects = self._effects.get(id(instr))
        if effects is None:
            effects = self._effects[id(instr)] = self._effects_of(instr)
        return effects

    # --- how they are answered ----------------------------------------------------------------

    def _effects_of(self, instr: Instr) -> Effects:
        roots = frozenset().union(*map(self.of, instr.operands))
        if instr.op is None:
            return Effects(roots | {OUTSIDE}, roots | {OUTSIDE}, True)
        if instr.blocks:
            inner = [self.effects(i) for block in instr.blocks for i in block.instrs]
            return Effects(
                roots.union(*(e.reads for e in inner)),
                NOTHING.union(*(e.writes for e in inner)),
                any(e.ordered for e in inner),
            )
        writes = NOTHING.union(*(self.of(instr.operands[k]) for k in instr.op.writes))
        reads = NOTHING if instr.op.fusion is Fusion.QUERY else roots
        return Effects(reads, writes, not instr.op.pure and not instr.op.writes)

    def _visit(self, block: Block) -> None:
        for instr in block.instrs:
            if instr.op is not None and issubclass(instr.op, ControlFlow):
                self._flow(instr)
                continue
            if instr.op is Constant:
                self.constants.update(instr.results)
            for result, roots in zip(instr.results, result_roots(instr, self._type_of, self.of), strict=True):
                self._grow(result, roots)

    def _flow(self, instr: Instr) -> None:
        """Give results and block arguments the roots of the values that ``scf`` hands to them."""
        operands = instr.operands
        if instr.op is For:
            (body,) = instr.blocks
            for source in (operands[3:], body.outputs):
                self._pass(source, body.args[1:])
                self._pass(source, instr.results)
        elif instr.op is While:
            before, after = instr.blocks
            self._pass(operands, before.args)
            self._pass(after.outputs, before.args)
            self._pass(before.outputs[1:], after.args)
            self._pass(before.outputs[1:], instr.results)
        for block in instr.blocks:
            self._visit(block)
            if instr.op is If:
                self._pass(block.outputs, instr.results)

    def _pass(self, sources: Iterable[Any], targets: Iterable[Any]) -> None:
        for source, target in zip(sources, targets, strict=True):
            self._grow(target, self.of(source))

    def _grow(self, value: Any, roots: Roots) -> None:
        if isinstance(self._type_of(value), (ScalarType, ListedType)):
            roots = NOTHING
        old = self.roots.get(value)
        new = roots if old is None else old | roots
        if new != old:
            self.roots[value], self._changed = new, True


def result_roots(instr: Instr, type_of: Callable[[Any], Type], of: Callable[[Any], Roots]) -> tuple[Roots, ...]:
    """Roots of each result of an instruction without blocks."""
    by_result = []
    count = len(instr.operands)
    for index, result in enumerate(instr.results):
        type_ = type_of(result)
        if instr.op is None or isinstance(type_, ListType):
            shared: Iterable[int] = range(count)
        else:
            shared = instr.op.shared_operands(index, count)
        roots = NOTHING.union(*(of(instr.operands[k]) for k in shared))
        if instr.op is None:
            roots |= {OUTSIDE}
        elif instr.op is Pick and isinstance(type_, TensorType) and type_.rank == 0:
            roots = NOTHING  # a NumPy scalar, which is a copy
        if not roots:
            roots = frozenset([result])
        by_result.append(roots)
    return tuple(by_result)


def forbidden(aliases: Aliases, instr: Instr) -> str | None:
    """The reason why an instruction must not write what it writes, or None."""
    roots = aliases.effects(instr).writes
    if OUTSIDE in roots:
        return "may write memory of an argument, which the caller still sees"
    if roots & aliases.constants:
        return "may write a constant"
    return None


def uses(instr: Instr) -> set[Any]:
    """Every value that an instruction reads or hands on, those of nested blocks included."""
    values = set(instr.operands)
    for block in instr.blocks:
        values.update(block.outputs)
        for inner in block.walk():
            values.update(inner.operands)
            for nested in inner.blocks:
                values.update(nested.outputs)
    return values


def content_uses(instr: Instr) -> set[Any]:
    """`uses` without values of which an instruction reads the shape alone."""
    if issubclass(instr.op, (Dim, Size)):
        return set()
    if issubclass(instr.op, SHAPED_LIKE):
        return {instr.operands[0]}
    return uses(instr)


def block_content_uses(body: Block) -> set[Any]:
    """The values of which a function's body reads more than the shape.

    A view reads elements where those of its result are read.
    """
    read = set(body.outputs)
    for instr in reversed(body.instrs):
        if instr.op.fusion is not Fusion.VIEW or not read.isdisjoint(instr.results):
            read |= content_uses(instr)
    return read
