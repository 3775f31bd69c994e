"""Finishing a captured backward run: where its hooks and accumulations stand (R4.31 - R4.40).

A tracer may push what calls code of users to the end of a graph. These steps move it to where the
eager run has it: *behind* an op means immediately behind. None changes a value. With
``keep_order``, calls of code of users and accumulations do not pass each other: captures record
them in the order of the eager run already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..errors import IRError
from ..ir.program import Instr, Program
from ..ops.backward import KEPT, USERS_CODE, AccumulateGrad, CallHook, FinalCallbacks, ListGet, ValidateGrads
from .alias import uses
from .tidy import is_pure

Step = Callable[[Program, bool], int]
"""Changes a program in place; how many ops it has moved or removed."""

_GAP = 1 << 256  # between the labels of neighbours: room for as many moves to one place as bits


class _Order:
    """The top block of a program, whose ops are moved one by one; `done` writes it back.

    Ops are a list linked in both directions, with labels that grow from the first to the last.
    """

    def __init__(self, program: Program, keep: bool) -> None:
        self.program, self.keep = program, keep
        instrs = program.body.instrs
        self.defs = {r: instr for instr in instrs for r in instr.results}
        self._users: dict[int, list[Instr]] = {}
        for instr in instrs:
            for value in uses(instr):
                self._users.setdefault(value, []).append(instr)
        self._first = first = Instr(FinalCallbacks, (), ())  # in front of all
        self._next: dict[int, Instr | None] = {}
        self._previous: dict[int, Instr] = {}
        self._at: dict[int, int] = {id(first): 0}
        before = first
        for instr in instrs:
            self._link(before, instr)
            before = instr
        self._next[id(before)] = None
        self._label()
        self.moved = 0

    def __iter__(self) -> Iterator[Instr]:
        following = self._next[id(self._first)]
        while following is not None:
            yield following
            following = self._next[id(following)]

    def done(self) -> int:
        """Write the ops back; how many have been moved."""
        if self.moved:
            self.program.body.instrs[:] = self
        return self.moved

    def at(self, instr: Instr) -> int:
        """A number that is larger the later the op comes."""
        return self._at[id(instr)]

    def maker(self, value: int) -> Instr | None:
        """The op that computes a value; None for an element of a list, and for an input."""
        instr = self.defs.get(value)
        return None if instr is None or self.is_head(instr) else instr

    def is_head(self, instr: Instr) -> bool:
        """True if an op takes an element out of an input of the graph."""
        return instr.op is ListGet and instr.operands[0] in self.program.inputs

    def latest(self, values: Sequence[int]) -> Instr | None:
        """The last op that computes one of some values."""
        makers = [m for v in values if (m := self.maker(v)) is not None]
        return max(makers, key=self.at, default=None)

    def users(self, values: Sequence[int]) -> list[Instr]:
        """The ops that read any of some values, in order."""
        users = {id(i): i for v in values for i in self._users.get(v, ())}
        return sorted(users.values(), key=self.at)

    def own(self, instr: Instr) -> list[Instr]:
        """The elements of lists that this op alone reads: its hook, and what that unpacks."""
        heads = []
        for value in instr.operands:
            head = self.defs.get(value)
            if (
                head is not None
                and self.is_head(head)
                and head.operands[0] in self.program.inputs[3:]
                and all(user is instr for user in self._users[value])
            ):
                heads.append(head)
        return heads

    def move_behind(self, instr: Instr, anchor: Instr) -> None:
        """Move an op up, with what is its own, immediately behind another one."""
        if self.at(anchor) >= self.at(instr):
            return
        if self.keep:
            before = self._previous[id(instr)]
            while before is not anchor and self._may_pass(instr, before):
                before = self._previous[id(before)]
            anchor = before
        self._place(instr, anchor)

    def _may_pass(self, instr: Instr, before: Instr) -> bool:
        """True if an op may move in front of the one before it, where the order is kept."""
        if instr.op is CallHook:
            return self.is_head(before)
        return before.op not in USERS_CODE

    def move_before(self, instr: Instr, user: Instr) -> None:
        """Move an op, with what is its own, immediately in front of a later one."""
        if self.keep:
            behind = self._next[id(instr)]
            while behind is not None and behind is not user and behind.op not in USERS_CODE:
                behind = self._next[id(behind)]
            user = behind or user
        self._place(instr, self._previous[id(user)])

    def _place(self, instr: Instr, before: Instr) -> None:
        """Put an op, with what is its own in front, behind the op ``before``."""
        group = [*self.own(instr), instr]
        ids = set(map(id, group))
        while id(before) in ids:
            before = self._previous[id(before)]
        at: Instr | None = before
        for op in group:
            at = self._next[id(at)]
            if at is not op:
                break
        else:
            return  # it is there
        for op in group:
            self._unlink(op)
        behind = self._next[id(before)]
        start = self.at(before)
        step = _GAP if behind is None else (self.at(behind) - start) // (len(group) + 1)
        for k, op in enumerate(group, 1):
            self._link(before, op)
            self._at[id(op)] = start + k * step
            before = op
        self._next[id(before)] = behind
        if behind is not None:
            self._previous[id(behind)] = before
        if not step:
            self._label()
        self.moved += 1

    def _link(self, before: Instr, instr: Instr) -> None:
        self._next[id(before)], self._previous[id(instr)] = instr, before

    def _unlink(self, instr: Instr) -> None:
        before, behind = self._previous[id(instr)], self._next[id(instr)]
        self._next[id(before)] = behind
        if behind is not None:
            self._previous[id(behind)] = before

    def _label(self) -> None:
        self._at.update((id(instr), k * _GAP) for k, instr in enumerate(self, 1))


def _hooks(program: Program, kind: str) -> list[Instr]:
    """The calls of hooks of one kind, in order."""
    calls = (i for i in program.body.instrs if i.op is CallHook)
    return [call for call in calls if call.attrs["hook_type"] == kind]


def _moved_up(program: Program, keep: bool, moves: Sequence[tuple[Instr, Sequence[int]]]) -> int:
    """Move ops behind the last one that computes one of their values; how many have moved."""
    if not moves:
        return 0
    order = _Order(program, keep)
    for instr, values in moves:
        anchor = order.latest(values)
        if anchor is not None:
            order.move_behind(instr, anchor)
    return order.done()


def _moved_down(program: Program, keep: bool, calls: Sequence[Instr]) -> int:
    """Move ops in front of the first one that uses their results; how many have moved."""
    if not calls:
        return 0
    order = _Order(program, keep)
    for call in calls:
        user = next(iter(order.users(call.results)), None)
        if user is not None:
            order.move_before(call, user)
    return order.done()


def move_unpack_hooks(program: Program, keep_order: bool = False) -> int:
    """Put each call of an unpack hook right in front of its first user (R4.33)."""
    return _moved_down(program, keep_order, _hooks(program, "unpack_hook"))


def move_tensor_pre_hooks(program: Program, keep_order: bool = False) -> int:
    """Put each call of a tensor hook behind the gradient that it is given (R4.34)."""
    calls = _hooks(program, "tensor_pre_hook")
    return _moved_up(program, keep_order, [(call, call.operands[1:]) for call in calls])


def move_pre_hooks(program: Program, keep_order: bool = False) -> int:
    """Put each call of a prehook as early as its arguments allow (R4.35)."""
    calls = _hooks(program, "pre_hook")
    return _moved_up(program, keep_order, [(call, call.operands[1:]) for call in calls])


def move_accumulations(program: Program, keep_order: bool = False) -> int:
    """Put each accumulation behind the later of its leaf and its gradient (R4.36)."""
    accumulations = [instr for instr in program.body.instrs if instr.op is AccumulateGrad]
    return _moved_up(program, keep_order, [(instr, instr.operands) for instr in accumulations])


def move_pre_hooks_late(program: Program, keep_order: bool = False) -> int:
    """Put each call of a prehook, last to first, right in front of what uses its results (R4.37)."""
    return _moved_down(program, keep_order, _hooks(program, "pre_hook")[::-1])


def move_post_accumulate_hooks(program: Program, keep_order: bool = False) -> int:
    """Put each call of a post-accumulate hook, last to first, behind its accumulation (R4.38)."""
    calls = _hooks(program, "post_acc_grad_hook")
    if not calls:
        return 0
    order = _Order(program, keep_order)
    anchors: dict[int, Instr | None] = {}
    for call in reversed(calls):
        leaf = call.operands[-1]
        if leaf not in anchors:
            added = (u for u in order.users([leaf]) if u.op is AccumulateGrad)
            anchors[leaf] = next(added, None)
        anchor = anchors[leaf]
        if anchor is None:
            raise IRError("a post-accumulate hook is called on a leaf that accumulates nothing", loc=call.loc)
        order.move_behind(call, anchor)
    return order.done()


def move_post_hooks(program: Program, keep_order: bool = False) -> int:
    """Put each call of a posthook that replaces nothing, last to first, behind its node (R4.39).

    That is behind the latest of its arguments and of what else uses these, and behind the
    post-accumulate hook of an accumulation.
    """
    calls = [call for call in _hooks(program, "post_hook") if not call.results]
    if not calls:
        return 0
    order = _Order(program, keep_order)
    for call in reversed(calls):
        values = call.operands[1:]
        anchors = [m for v in values if (m := order.maker(v)) is not None]
        anchors += [u for u in order.users(values) if not (u.op is CallHook and u.attrs["hook_type"] == "post_hook")]
        anchor = max(anchors, key=order.at, default=None)
        if anchor is None or order.is_head(anchor):
            continue
        if anchor.op is AccumulateGrad:
            leaf = anchor.operands[0]
            hooks = [
                u
                for u in order.users([leaf])
                if u.op is CallHook and u.attrs["hook_type"] == "post_acc_grad_hook" and u.operands[-1] == leaf
            ]
            anchor = max([anchor, *hooks], key=order.at)
        order.move_behind(call, anchor)
    return order.done()


def fold_validation(program: Program, keep_order: bool = False) -> int:
    """Remove the checks of gradients whose types are known to be those that are asked for (R4.19)."""
    stands: dict[int, int] = {}
    kept: list[Instr] = []
    removed = 0
    for instr in program.body.instrs:
        instr.replace(stands)
        if instr.op is ValidateGrads:
            types = instr.attrs["types"]
            if all(program.type_of(v) == t for v, t in zip(instr.operands, types, strict=False)):
                stands |= dict(zip(instr.results, instr.operands, strict=False))
                removed += 1
                continue
        kept.append(instr)
    program.body.instrs[:] = kept
    program.body.outputs = tuple(stands.get(v, v) for v in program.body.outputs)
    return removed


def remove_unused(program: Program, keep_order: bool = False) -> int:
    """Remove ops that nobody needs; calls of code of users and reads of inputs stay (R4.40)."""
    used = set(program.outputs)
    kept: list[Instr] = []
    for instr in reversed(program.body.instrs):
        reads_input = not used.isdisjoint(instr.results) or (
            instr.op is ListGet and instr.operands[0] in program.inputs
        )
        if reads_input or not is_pure(instr) or instr.op in KEPT:
            used |= uses(instr)
            kept.append(instr)
    removed = len(program.body.instrs) - len(kept)
    program.body.instrs[:] = reversed(kept)
    return removed


STEPS: dict[str, Step] = {
    "fold-validation": fold_validation,
    "move-unpack-hooks": move_unpack_hooks,
    "move-tensor-pre-hooks": move_tensor_pre_hooks,
    "move-pre-hooks": move_pre_hooks,
    "move-accumulations": move_accumulations,
    "move-pre-hooks-late": move_pre_hooks_late,
    "move-post-accumulate-hooks": move_post_accumulate_hooks,
    "move-post-hooks": move_post_hooks,
    "remove-unused-gradients": remove_unused,
}
"""The steps in their order, by the names of their passes (R4.29)."""
