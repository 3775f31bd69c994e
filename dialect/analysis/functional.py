"""In-place ops made pure (R3.8): memory that a graph makes itself becomes a variable in SSA form.

Each root of `access.Accesses.writable` has a *content*, a value. A write makes a new content, of
which every view is taken anew; control flow hands contents on like loop-carried variables. What
cannot be told to behave so stays as it is, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..errors import Loc, ProfuseError
from ..ir.op import Op, View, op_named
from ..ir.program import Block, Instr, Program
from ..ir.types import TENSOR, TensorType
from ..ops.control_flow.control import ControlFlow, If
from ..ops.indexing.inplace import Writing
from ..ops.speculation import Identity
from ..reasons import Effect, Kind, Reason
from .must_alias import Accesses


def functionalize(program: Program, *, at_run_time: Callable[[Instr], bool] | None = None) -> tuple[int, list[Reason]]:
    """Make in-place ops of a program pure, in place.

    ``at_run_time``: which of those at indices known only at run time, too: evaluated op by op, such
    a write costs a copy of the whole array. Returns how many, and the reason for each that is left.
    """
    if not any(instr.op.writes for instr in program.body.walk()):
        return 0, []
    accesses = Accesses(program.body, program.type_of, at_run_time=at_run_time)
    converter = _Functionalizer(program, accesses)
    converter.block(program.body)
    return converter.made_pure, converter.kept


class _Functionalizer:
    def __init__(self, program: Program, accesses: Accesses) -> None:
        self.program, self.accesses = program, accesses
        self.aliases = accesses.aliases
        self.content: dict[int, int] = {}
        self.cache: dict[tuple[int, tuple[int, ...]], int] = {}  # (content, path) -> the view of it
        self.out: list[Instr] = []
        self.loc: Loc | None = None
        self.made_pure = 0
        self.kept: list[Reason] = []

    # --- blocks -------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        """Convert a block; contents and views of outer blocks may be used in it."""
        out, self.out = self.out, []
        cache, self.cache = self.cache, dict(self.cache)
        for instr in block.instrs:
            self.loc = instr.loc
            self.instr(instr)
        block.outputs = tuple(map(self.read, block.outputs))
        block.instrs, self.out, self.cache = self.out, out, cache

    def instr(self, instr: Instr) -> None:
        if issubclass(instr.op, ControlFlow):
            self.flow(instr)
        elif instr.op.writes:
            self.write(instr)
        elif not self.is_view(instr):
            instr.operands = tuple(map(self.read, instr.operands))
            self.out.append(instr)
            for result in instr.results:
                if self.is_variable(result):
                    self.content[result] = result

    def is_variable(self, value: int) -> bool:
        access = self.accesses.of.get(value)
        return access is not None and access.root in self.accesses.writable

    def is_view(self, instr: Instr) -> bool:
        """True for a view of a variable, which is taken where it is read. Observers stay."""
        if not all(r in self.accesses.views and self.is_variable(r) for r in instr.results):
            return False
        return bool(instr.results) and not issubclass(instr.op, Identity)

    # --- reading and writing ------------------------------------------------------------------

    def read(self, value: int) -> int:
        """The value to read in the place of ``value``: a view of what its memory holds now."""
        if not self.is_variable(value):
            return value
        access = self.accesses.of[value]
        return self.view(access.root, access.path)

    def view(self, root: int, path: tuple[int, ...]) -> int:
        content = self.content[root]
        if not path:
            return content
        view = self.cache.get((content, path))
        if view is None:
            instr, index = self.accesses.views[path[-1]]
            base = self.view(root, path[:-1])
            operands = (base, *map(self.read, instr.operands[1:]))
            types = [self.program.type_of(r) for r in instr.results]
            results = tuple(map(self.program.new_value, types))
            self.out.append(Instr(instr.op, operands, results, instr.attrs, (), instr.loc))
            for result, value in zip(instr.results, results, strict=True):
                self.cache[content, (*path[:-1], result)] = value
            view = results[index]
        return view

    def write(self, instr: Instr) -> None:
        if not self.is_variable(instr.operands[0]):
            roots = self.aliases.effects(instr).writes
            reasons = [self.accesses.kept[r] for r in roots if r in self.accesses.kept]
            reason = reasons[0] if reasons else Reason(Kind.NOT_OWN_MEMORY)
            self.kept.append(replace(reason, op=instr.op.name, loc=instr.loc, effect=Effect.WRITE_KEPT))
            instr.operands = tuple(map(self.read, instr.operands))
            self.out.append(instr)
            return
        assert issubclass(instr.op, Writing)
        self.made_pure += 1
        root, path = self.accesses.of[instr.operands[0]]
        target, *others = map(self.read, instr.operands)
        value = instr.op.as_pure(self.emit, instr.attrs, target, *others)
        self.program.types[value] = self.program.type_of(target)
        contents = {path: value}
        for end in range(len(path) - 1, -1, -1):
            value = self.put_back(root, path[: end + 1], value)
            contents[path[:end]] = value
        self.program.types[value] = self.program.type_of(root)
        self.content[root] = value
        self.cache.update({(value, p): v for p, v in contents.items()})

    def put_back(self, root: int, path: tuple[int, ...], new: int) -> int:
        """The array that the last view of ``path`` looks at, with the view's elements replaced."""
        instr, index = self.accesses.views[path[-1]]
        base, type_ = self.view(root, path[:-1]), self.program.type_of(instr.operands[0])
        rank = type_.rank if isinstance(type_, TensorType) else None
        others: tuple[int, ...] = ()
        if len(instr.results) > 1:
            others = tuple(self.view(root, (*path[:-1], r)) for r in instr.results)
        operands = tuple(map(self.read, instr.operands[1:]))
        attrs = instr.op.full_attrs(instr.attrs)
        return instr.op.put_back(self.emit, attrs, View(base, rank, new, operands, index, others))

    def emit(self, name: str, operands: Sequence[Any], attrs: Mapping[str, Any] | None = None) -> tuple[int, ...]:
        """Append an op; types of its results follow from those of its operands."""
        op: type[Op] = op_named(name)
        attrs = dict(attrs or {})
        types = [self.program.type_of(o) for o in operands]
        try:
            result_types = op.infer(types, op.full_attrs(attrs))
        except ProfuseError:
            result_types = (TENSOR,) * len(op.results)  # where it runs is where the user must see it
        results = tuple(map(self.program.new_value, result_types))
        self.out.append(Instr(op, tuple(operands), results, attrs, (), self.loc))
        return results

    # --- control flow -------------------------------------------------------------------------

    def flow(self, instr: Instr) -> None:
        """Hand the contents that an instruction changes in and out of its blocks."""
        written = self.aliases.effects(instr).writes
        roots = [r for r in self.content if r in written]
        instr.operands = tuple(map(self.read, instr.operands))
        if instr.op is not If:
            instr.operands += tuple(self.content[r] for r in roots)
        for block in instr.blocks:
            outer = dict(self.content)
            if instr.op is not If:
                args = self.fresh(roots)
                block.args += args
                self.content.update(zip(roots, args, strict=True))
            self.block(block)
            block.outputs += tuple(self.content[r] for r in roots)
            self.content = outer
        self.out.append(instr)
        results = self.fresh(roots)
        instr.results += results
        self.content.update(zip(roots, results, strict=True))

    def fresh(self, roots: Sequence[int]) -> tuple[int, ...]:
        """New values of the types that the roots have."""
        return tuple(self.program.new_value(self.program.type_of(r)) for r in roots)
