"""Access paths: which memory a value certainly is, as views of the op that made that memory.

`alias.Aliases` says what may share memory; this says what must: a value is its root's memory seen
through a path of view ops. Values without an access may be one thing or another (what a loop
hands on, a reshape that copies where the layout asks for it). Memory of which every write goes
through accesses, and which is not written while a value without one may still be read, behaves
like a variable: `functional` makes it one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..dataclass import dataclass
from ..ir.attrs import DYNAMIC
from ..ir.program import Block, Instr
from ..ir.types import ScalarType, TensorType, Type
from ..ops.control_flow.control import ControlFlow, For, If, While
from ..ops.create import Constant, Full, Iota
from ..ops.indexing.scatter import Copy
from ..ops.indexing.slicing import Pick, Slice
from ..ops.manipulation.shape import ExpandDims, Reshape, Squeeze
from ..ops.queries import Dim, Rank, Size
from ..ops.speculation import Identity
from ..reasons import Kind, Reason
from .alias import OUTSIDE, Aliases

_C_ORDER = (Full, Iota, Copy)  # ops whose results have C order whatever their operands
_KEEPS_ORDER = (Reshape, ExpandDims, Squeeze)
_SIZES = (Constant, Dim, Size, Rank)  # ops whose results are as good as known


class ViewPath(NamedTuple):
    """Memory of ``root`` through view ops, each named by the result that it defined."""

    root: Any
    path: tuple[Any, ...] = ()


class Conflict(NamedTuple):
    """A write that gives, or may give, the result of another op elements unlike NumPy's."""

    write: Instr
    view: Instr


@dataclass(frozen=True)
class _Spot:
    """The place where an op stands: its number in a walk over the body, and the loops around it."""

    time: int
    loops: tuple[int, ...]


class Accesses:
    """Accesses of one function body.

    Args:
        body: its block; later changes are not seen.
        type_of: type of a value.
        unordered: results in no known memory order, whatever their op says.
        raveled: results of reshapes that copy what is not contiguous, even of one axis.
        copied: results that are copies here and views in NumPy -> what they view there.
        at_run_time: the writes at indices known only at run time that may become new values; None =
            none.

    Attributes:
        of: value -> access.
        views: result of a view op -> the op and the number of the result.
        writable: roots of memory that is written and behaves like a variable.
        kept: why other memory that is written does not.
        conflicts: writes of which it hangs on the layout who sees them.
        missed: writes to what a copy was made of that is a view in NumPy and is used later, or
            to such a copy.
    """

    def __init__(
        self,
        body: Block,
        type_of: Callable[[Any], Type],
        unordered: Collection[Any] = (),
        raveled: Collection[Any] = (),
        copied: Mapping[Any, Any] = MappingProxyType({}),
        *,
        at_run_time: Callable[[Instr], bool] | None = None,
    ) -> None:
        self.type_of = type_of
        self._at_run_time = at_run_time
        self._unordered, self._raveled = frozenset(unordered), frozenset(raveled)
        self.aliases = Aliases(body, type_of)
        self.of: dict[Any, ViewPath] = {}
        self.views: dict[Any, tuple[Instr, int]] = {}
        self.makers: dict[Any, Instr] = {r: i for i in body.walk() for r in i.results}
        self.kept: dict[Any, Reason] = {}
        self.conflicts: list[Conflict] = []
        self.missed: list[Conflict] = []
        self._block(body)
        self._time = 0
        self._writes: list[tuple[_Spot, Instr]] = []
        self._spots: dict[Any, _Spot] = {}
        self._inside: dict[Any, tuple[int, ...]] = {}  # value -> loops that its op is in
        self._made: dict[Any, _Spot] = {}
        self._uses: list[tuple[_Spot, Any]] = []
        self._sizes: set[Any] = set()
        self._walk(body, ())
        self._uses += [(_Spot(self._time + 1, ()), value) for value in body.outputs]
        self._judge()
        for copy in copied:
            if self.aliases.of(copy) == {copy}:
                self._compare(copy, copied)
        roots = self.aliases.written() - {OUTSIDE} - self.aliases.constants
        self.writable = frozenset(r for r in roots if r not in self.kept)

    # --- what accesses there are --------------------------------------------------------------

    def _block(self, block: Block) -> None:
        for instr in block.instrs:
            if instr.op is not None and issubclass(instr.op, ControlFlow):
                {If: self._if, For: self._for, While: self._while}[instr.op](instr)
                continue
            for index, result in enumerate(instr.results):
                self._set([result], self._result(instr, index, result))

    def _result(self, instr: Instr, index: int, result: Any) -> ViewPath | None:
        roots = self.aliases.of(result)
        if not roots or instr.op is None:
            return None
        if roots == {result}:
            return ViewPath(result)
        shared = instr.op.shared_operands(index, len(instr.operands))
        source = self.of.get(instr.operands[shared[0]]) if len(shared) == 1 else None
        if source is None or isinstance(self.type_of(result), ScalarType):
            return None
        if instr.op.writes or issubclass(instr.op, Identity):
            return source
        if instr.op.layout_decides and not self._is_ordered(
            instr.operands[0], source, any_gaps=result not in self._raveled
        ):
            return None
        if self._may_be_scalar(instr, result):
            return None
        self.views[result] = (instr, index)
        return ViewPath(source.root, (*source.path, result))

    def _may_be_scalar(self, instr: Instr, result: Any) -> bool:
        """A pick of one element is a NumPy scalar, and thus a copy."""
        return instr.op is Pick and _rank(self.type_of(result)) is None

    def _is_ordered(self, value: Any, access: ViewPath, any_gaps: bool) -> bool:
        """True if a reshape of ``value`` certainly is a view: it is in C order, or has one axis.

        ``any_gaps``: one axis is enough, whatever lies between its elements.
        """
        rank = _rank(self.type_of(value))
        if any_gaps and rank is not None and rank <= 1:
            return True
        root = _rank(self.type_of(access.root))
        maker = self.makers.get(access.root)
        if access.root in self._unordered or maker is None or maker.op is None:
            return False
        if maker.op not in _C_ORDER and (root is None or root > 1):
            return False
        return all(_keeps_order(self.views[step][0]) for step in access.path)

    def _if(self, instr: Instr) -> None:
        for block in instr.blocks:
            self._block(block)
        for result, *sides in zip(instr.results, *(b.outputs for b in instr.blocks), strict=True):
            accesses = {self.of.get(v) for v in sides}
            self._set([result], accesses.pop() if len(accesses) == 1 else None)

    def _for(self, instr: Instr) -> None:
        (body,) = instr.blocks
        assumed = [self.of.get(v) for v in instr.operands[3:]]
        while True:
            self._set(body.args[1:], *assumed)
            self._block(body)
            if not self._weaken(assumed, body.outputs):
                break
        self._set(instr.results, *assumed)

    def _while(self, instr: Instr) -> None:
        before, after = instr.blocks
        assumed = [self.of.get(v) for v in instr.operands]
        while True:
            self._set(before.args, *assumed)
            self._block(before)
            # What a path goes through must be visible on the other side.
            passed = [a if (a := self.of.get(v)) in assumed else None for v in before.outputs[1:]]
            self._set(after.args, *passed)
            self._block(after)
            if not self._weaken(assumed, after.outputs):
                break
        self._set(instr.results, *passed)

    def _weaken(self, assumed: list[ViewPath | None], outputs: Sequence[Any]) -> bool:
        """Drop what a loop does not hand on as assumed; True if something was."""
        wrong = [k for k, v in enumerate(outputs) if assumed[k] and self.of.get(v) != assumed[k]]
        for k in wrong:
            assumed[k] = None
        return bool(wrong)

    def _set(self, values: Sequence[Any], *accesses: ViewPath | None) -> None:
        for value, access in zip(values, accesses, strict=True):
            self.of.pop(value, None)
            if access is not None:
                self.of[value] = access

    # --- when things happen -------------------------------------------------------------------

    def _walk(self, block: Block, loops: tuple[int, ...]) -> None:
        for instr in block.instrs:
            self._time += 1
            self._uses += [(_Spot(self._time, loops), value) for value in instr.operands]
            inner = (*loops, id(instr)) if instr.op in (For, While) else loops
            for nested in instr.blocks:
                for arg in nested.args:
                    self._note(arg, inner)
                self._walk(nested, inner)
            self._time += 1
            for result in instr.results:
                self._made[result] = _Spot(self._time, loops)
                self._note(result, loops)
            if not instr.blocks and self.aliases.effects(instr).writes:
                self._writes.append((_Spot(self._time, loops), instr))
            if instr.op in _SIZES or (
                instr.operands
                and self._sizes.issuperset(instr.operands)
                and all(isinstance(self.type_of(r), ScalarType) for r in instr.results)
            ):
                self._sizes.update(instr.results)

    def _note(self, value: Any, loops: tuple[int, ...]) -> None:
        self._inside[value] = loops
        if value not in self.of and self.aliases.of(value):
            self._spots[value] = _Spot(self._time, loops)

    # --- which memory behaves like a variable -------------------------------------------------

    def _judge(self) -> None:
        for spot, write in self._writes:
            roots = self.aliases.effects(write).writes
            reason = self._refusal(write)
            if reason is not None:
                self._keep(roots, reason)
            for value, other in self._spots.items():
                for root in self.aliases.of(value) & roots:
                    # A value that the write itself goes through is dealt with above.
                    if not self._is_past(root, spot, value, other):
                        self._keep(self.aliases.of(value) | roots, Reason(Kind.SHARED_MEMORY))
        for spot, write in self._writes:
            for view in self._uncertain_views(spot, write):
                self.conflicts.append(Conflict(write, view))

    def _keep(self, roots: Collection[Any], reason: Reason) -> None:
        for root in roots:
            self.kept.setdefault(root, reason)

    def _refusal(self, write: Instr) -> Reason | None:
        """The reason why a write cannot become the making of a new value, or None."""
        if write.op is None or write.op.writes != (0,):
            return Reason(Kind.UNKNOWN_WRITER)
        access = self.of.get(write.operands[0])
        if access is None:
            return Reason(Kind.SHARED_MEMORY)
        if write.attrs.get("index") == DYNAMIC and not self._are_usable(write.operands[2:], write):
            return Reason(Kind.RUN_TIME_INDEX)
        for step in access.path:
            view, _ = self.views[step]
            assert view.op is not None
            if not view.op.can_put_back():
                return Reason(Kind.THROUGH_VIEW, detail=view.op.name)
            if _rank(self.type_of(view.operands[0])) is None and view.op in _KEEPS_ORDER:
                return Reason(Kind.UNKNOWN_RANK)
            if not self._are_usable(view.operands[1:], write):
                return Reason(Kind.RUN_TIME_INDEX)
        return None

    def _are_usable(self, indices: Sequence[Any], write: Instr) -> bool:
        """True for indices by which views may be taken anew: no write changes them."""
        if self._at_run_time is not None and self._at_run_time(write):
            return all(isinstance(self.type_of(v), ScalarType) for v in indices)
        return self._sizes.issuperset(indices)

    def _is_past(self, root: Any, write: _Spot, value: Any, spot: _Spot) -> bool:
        """True if no write at ``write`` happens while ``value`` stands for memory of ``root``."""
        made_in = self._inside.get(root, ())
        common = [loop for loop in write.loops if loop in spot.loops]
        # Memory made anew in every round is not that of the round before.
        fresh = all(loop in made_in for loop in common)
        return self._is_carried(root, value) or (fresh and write.time < spot.time)

    def _is_carried(self, root: Any, value: Any) -> bool:
        """True for what a loop hands on, and views of it: ``root`` from a round before."""
        maker, loops = self.makers.get(value), self._inside.get(value, ())
        if maker is None:
            return bool(loops) and loops[-1] in self._inside.get(root, ())
        if maker.op is None or maker.blocks:
            return False
        shared = maker.op.shared_operands(maker.results.index(value), len(maker.operands))
        viewed = [v for v in (maker.operands[k] for k in shared) if root in self.aliases.of(v)]
        return bool(viewed) and all(v not in self.of and self._is_carried(root, v) for v in viewed)

    def _uncertain_views(self, spot: _Spot, write: Instr) -> Iterator[Instr]:
        """Ops whose result may or may not see a write: those that copy where the layout asks."""
        roots = self.aliases.effects(write).writes
        for value, other in self._spots.items():
            maker = self.makers.get(value)
            if maker is None or maker.op is None or not maker.op.layout_decides:
                continue
            shared = self.aliases.of(value) & roots
            if shared and not all(self._is_past(r, spot, value, other) for r in shared):
                yield maker

    # --- copies of what NumPy views -----------------------------------------------------------

    def _compare(self, copy: Any, copied: Mapping[Any, Any]) -> None:
        """Note the writes that NumPy's view would see or hand on, and ``copy`` does not."""
        start, maker = self._made[copy], self.makers[copy]
        viewed: set[Any] = set()
        waiting = [copied[copy]]
        while waiting:  # what is viewed may be such a copy itself
            new = self.aliases.of(waiting.pop()) - viewed
            viewed |= new
            waiting += [copied[root] for root in new if root in copied]
        uses = [(spot, v) for spot, v in self._uses if copy in self.aliases.of(v)]
        carried = any(v not in self._made for _, v in uses)  # from one round of a loop to the next
        for write, instr in self._writes:
            written = self.aliases.effects(instr).writes
            if copy in written or (viewed & written and any(_is_between(start, write, u, carried) for u, _ in uses)):
                self.missed.append(Conflict(instr, maker))


def _rank(type_: Type) -> int | None:
    return type_.rank if isinstance(type_, TensorType) else None


def _is_between(start: _Spot, write: _Spot, use: _Spot, carried: bool) -> bool:
    """True unless no write happens between the making of something and a use of it."""
    common = [loop for loop in write.loops if loop in use.loops]
    if carried or any(loop not in start.loops for loop in common):
        return bool(common) or write.time < use.time
    return start.time < write.time < use.time


def _keeps_order(view: Instr) -> bool:
    """True if a view of something in C order is in C order."""
    assert view.op is not None
    if view.op is Pick:
        return view.attrs.get("axis", 0) == 0
    if view.op is Slice:
        steps, axes = view.attrs.get("steps"), view.attrs.get("axes")
        return len(view.attrs["starts"]) <= 1 and steps in (None, (1,)) and axes in (None, (0,))
    return view.op in _KEEPS_ORDER
