"""The origin of each result of a trace: the array that owns its memory, and the way from there.

`Results` has what follows from it: which arrays the graph gives, and which views are made of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import Loc, TraceError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.importers.numpy.tracing.layouts import Copied
from ...dialect.ir.op import Attrs, Op
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import ScalarType, TensorType
from ...dialect.ops.indexing.inplace import Borrow
from ...dialect.ops.indexing.scatter import Copy
from ...dialect.ops.indexing.slicing import Pick, Slice
from ...dialect.ops.manipulation.permute import Permutation
from ...dialect.ops.manipulation.shape import ExpandDims, Reshape, Squeeze
from ...dialect.ops.queries import Dim, Size, ToTensor
from .result_orders import ValueOrders

# Views that lie in memory as the arrays do which kernels make, or that a group turns itself.
_KEPT = (Reshape, Squeeze, ExpandDims, Permutation, ToTensor)


@dataclass(eq=False)
class ResultView:
    """A result that is a view of another value, or an array itself.

    Attributes:
        root: the array: an input, or what an op has made.
        chain: the instructions that lead from there to the result, and make numbers for them.
        arrays: the arrays that the graph gives for it.
        numbers: numbers that only the graph computes.
        flags: those that tell which array a branch or a loop has given.
        may_copy: the layout in memory decides whether it is a copy.
    """

    root: int
    chain: list[Instr] = field(default_factory=list)
    arrays: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    flags: list[int] = field(default_factory=list)
    may_copy: bool = False


LAYOUT_DECIDES = TraceError(
    "the layout of an array in memory decides what results share", hint="say which: make a copy, y.copy()"
)


class Origins:
    """The origins of the results of a trace.

    Attributes:
        program: the graph without writes, which gives the results.
        inputs: those of the graph.
        instrs: what leads to the results.
        graph: the graph, which tells as well which arrays its branches and loops give.
        raw: by values that these give, the names of what the graph gives; the value is the array that it is.
    """

    def __init__(self, trace: Trace, orders: bool) -> None:
        self._has_orders = orders
        self.program, same = _without_copies(trace)
        self._hints, self._laid, self._copied = trace.hints, trace.laid, trace.copied
        self._same = same
        kinds = [*trace.kinds, *[()] * len(trace.captured)]  # those of scalars are types
        self._arrays = {v for v, kind in zip(self.program.inputs, kinds, strict=False) if not isinstance(kind, type)}
        self.inputs = frozenset(self.program.inputs)
        self.instrs = list(_with_views(self.program.body.instrs, trace.copied, same))
        self._made = {r: instr for instr in self.instrs for r in instr.results}
        roots = [self._root(v) for v in dict.fromkeys(self.program.outputs)]
        self._copies: set[int] = set()  # instructions that may copy, and have a result
        self._fronts: dict[int, None] = {}  # arrays of which a result is some rows, if in C order
        self._shared = {root for root, count in Counter(roots).items() if count > 1}
        self._writes = bool(trace.writes)
        self.graph = trace.module.main
        self._chosen: dict[int, Instr] = {}  # by what branches and loops give, what takes the array that it is
        self.raw: dict[int, int] = {}  # by the same, how the program names what the graph gives
        if any(root in self._made and self._made[root].blocks for root in roots):
            self._choose(list(dict.fromkeys(roots)))

    def _choose(self, roots: Sequence[int]) -> None:
        """Have the graph tell which arrays branches and loops give, and the program take these."""
        from .choice_flags import Flags, chosen_array  # few functions give what these choose
        from .result_choices import Choices

        choices = Choices(self.graph, self, self._same)
        ways = choices.ways(roots, self._root, self.inputs)
        if not ways:
            return
        flags = Flags(self.graph, choices, ways)
        self.graph = flags.program
        self.program.types, self.program.count = dict(self.graph.types), self.graph.count
        for value, some in ways.items():
            links = [link for way in some for link, _ in way.links]
            for link in links:
                if link.op is _Taken and link.attrs["take"] is None:
                    raise _copied(link)
            if self._writes and any(link.op.layout_decides or link.attrs.get("order") for link in links):
                raise LAYOUT_DECIDES
            self.raw[value] = raw = self.program.new_value(self.program.type_of(value))
            self._chosen[value] = chosen_array(raw, value, {way: flags.of[value, way] for way in some}, choices)
            self._shared |= {self._root(way.root) for way in some}
        with_chosen = ([instr, *(self._chosen[v] for v in instr.results if v in self._chosen)] for instr in self.instrs)
        self.instrs = [instr for some in with_chosen for instr in some]

    def is_array(self, value: int) -> bool:
        """True if an input is an array, and no scalar of NumPy's."""
        return value in self._arrays

    def taken(self, value: int, loc: Loc | None) -> Instr | None:
        """What takes the view of which a value is a copy; None = it is none that NumPy views."""
        view = self._copied.get(value)
        return None if view is None else _taken(value, view, self._same)

    def layouts(self, values: Sequence[int]) -> ValueOrders | None:
        """The orders in which the axes of values lie in memory; None where all have an axis at most."""
        if not self._has_orders:
            return None
        flat = all(self.is_number(v) or self.rank(v) in (0, 1) for v in values)
        if flat and not self._fronts:
            return None
        return ValueOrders(self.program, self._hints, self._laid, values, self._fronts)

    def check_own(self, view: ResultView) -> None:
        """Raise TraceError for a copy, if it is one, that another result is part of, too."""
        for instr in view.chain:
            if instr.op.layout_decides or instr.attrs.get("order") is not None:
                if id(instr) in self._copies:
                    raise TraceError(
                        "the layout of an array in memory decides what results share",
                        loc=instr.loc,
                        hint="say which: make a copy, y.copy()",
                    )
                self._copies.add(id(instr))

    def is_outside(self, view: ResultView) -> bool:
        """True if a result is to be taken of what owns its memory, behind the graph."""
        if view.root in self.inputs or view.root in self._shared or view.root in self._chosen:
            return True
        in_order = True  # the axes lie in memory in their order
        for instr in reversed(view.chain):
            if issubclass(instr.op, Permutation):
                in_order = False
            elif issubclass(instr.op, Reshape):
                in_order = True  # a copy, if it was not so before
            elif instr.op is _Taken:
                if instr.attrs["order"] != "C":
                    return True
                in_order = True
            elif instr.op.aliases and not issubclass(instr.op, _KEPT):
                if not (in_order and _is_front(instr)):
                    return True
                self._fronts[view.root] = None
        return False

    def view(self, value: int) -> ResultView | None:
        """The view that a result is; None of a number, and of an array that the graph makes for it."""
        if self.is_number(value):
            return None
        view = ResultView(self._root(value))
        if view.root != value and not self.rank(view.root):
            if not self.rank(value):
                return None
            if view.root in self._shared:
                raise TraceError(
                    "results share the memory of an array without axes",
                    loc=self._made[value].loc,
                    hint="return copies of it: y.copy()",
                )
        self._follow(value, view)
        if view.may_copy and self._writes and view.root in self._chosen:
            raise LAYOUT_DECIDES
        return view

    def _follow(self, value: int, view: ResultView) -> None:
        """Add what leads to a value, and the arrays from which it does."""
        root = self._root(value)
        while value != root:
            instr = self._made[value]
            (shared,) = instr.op.shared_operands(instr.results.index(value), len(instr.operands))
            if instr.op is _Taken and instr.attrs["take"] is None:
                raise _copied(instr)
            view.chain.append(instr)
            view.may_copy |= instr.op.layout_decides or instr.attrs.get("order") is not None
            for k, operand in enumerate(instr.operands):
                if k != shared:
                    self._number(operand, view)
            value = instr.operands[shared]
        chosen = self._chosen.get(root)
        if root not in self.inputs:
            view.arrays.append(root)
        if chosen is None or any(chosen is other for other in view.chain):
            return
        view.chain.append(chosen)
        for operand in chosen.operands[1:]:
            if not self.is_number(operand):
                self._follow(operand, view)
            elif operand in self._made or operand in self.inputs:
                self._number(operand, view)
            else:
                view.flags.append(operand)

    def _root(self, value: int) -> int:
        """The array of which a value is a view."""
        while value not in self.inputs:
            instr = self._made.get(value)
            if instr is None or instr.blocks or self.is_number(value):
                break
            shared = instr.op.shared_operands(instr.results.index(value), len(instr.operands))
            if len(shared) != 1 or self.is_number(instr.operands[shared[0]]):
                break
            if instr.op is Pick and not self.rank(value):
                break  # a NumPy scalar
            value = instr.operands[shared[0]]
        return value

    def _number(self, value: int, view: ResultView) -> None:
        """Add what computes a number of inputs, of sizes and numbers; others the graph gives."""
        instr = self._made.get(value)
        if instr is None:
            return
        todo, chain = [value], []
        while todo:
            v = todo.pop()
            instr = self._made.get(v)
            if instr is None:
                if v in self.inputs and self.is_number(v):
                    continue
                break
            if instr.blocks or instr.op.writes:
                break
            chain.append(instr)
            if instr.op not in (Dim, Size):
                if not self.is_number(v):
                    break
                todo += instr.operands
            elif not set(instr.operands) <= self.inputs:
                break
        else:
            view.chain += chain
            return
        view.numbers.append(value)

    def is_number(self, value: int) -> bool:
        return isinstance(self.program.type_of(value), ScalarType)

    def rank(self, value: int) -> int | None:
        hint = self._hints.get(value)
        return hint.rank if isinstance(hint, TensorType) else None


class _Taken(Op):
    """A view that NumPy has in place of a copy in the graph (`Copied`)."""

    aliases = {0: 0}

    @classmethod
    def full_attrs(cls, given: Mapping[str, Any]) -> dict[str, Any]:
        return dict(given)  # no graph has them

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return attrs["take"](*args)


def _with_views(instrs: Sequence[Instr], copied: Mapping[int, Copied], same: Mapping[int, int]) -> Iterator[Instr]:
    """Instructions, and behind each those that take views in place of its copies."""
    for instr in instrs:
        views = [v for v in instr.results if v in copied]
        if len(views) < len(instr.results) or not views:
            yield instr
        for v in views:
            yield _taken(v, copied[v], same)


def _taken(value: int, view: Copied, same: Mapping[int, int]) -> Instr:
    """What takes a view in place of a copy."""
    operands = tuple([same.get(x, x) for x in (view.source, *view.operands)])
    return Instr(_Taken, operands, (value,), {"take": view.take, "order": view.order}, (), view.loc)


def _copied(instr: Instr) -> TraceError:
    return TraceError(
        "a result is a view in NumPy, and a copy in a graph", loc=instr.loc, hint="return a copy of it: y.copy()"
    )


def _is_front(instr: Instr) -> bool:
    """True if a view of an array in C order is contiguous: rows that follow one another."""
    if instr.op is Pick:
        return instr.attrs.get("axis", 0) == 0
    if instr.op is not Slice:
        return False
    axes, steps = instr.attrs.get("axes"), instr.attrs.get("steps")
    count = len(instr.attrs["starts"])
    return count == 1 and (axes is None or tuple(axes) == (0,)) and tuple(steps or (1,)) == (1,)


def _without_copies(trace: Trace) -> tuple[Program, dict[int, int]]:
    """The graph without writes, its results alone: the copies of what is written are the inputs.

    With it, the values that stand for others.
    """
    main = trace.module.main
    if not trace.writes and not any(instr.op.writes for instr in main.body.instrs):
        return Program("views", main.body, dict(main.types), main.count), {}
    count = len(main.outputs) - len(trace.writes)
    finals = {v: main.inputs[k] for k, v in zip(trace.writes, main.outputs[count:], strict=True)}
    same: dict[int, int] = {}
    instrs = []
    for instr in main.body.instrs:
        operands = tuple([same.get(v, v) for v in instr.operands])
        if instr.op in (Copy, Borrow) and finals.get(instr.results[0]) == operands[0]:
            same[instr.results[0]] = operands[0]
        elif instr.op.writes and not instr.blocks:
            for k, result in enumerate(instr.results):
                shared = instr.op.shared_operands(k, len(operands))
                if len(shared) == 1:
                    same[result] = operands[shared[0]]
        else:
            instrs.append(Instr(instr.op, operands, instr.results, instr.attrs, instr.blocks))
    outputs = tuple([same.get(v, v) for v in main.outputs[:count]])
    program = Program("views", Block(main.inputs, instrs, outputs), dict(main.types), main.count)
    return program, same
