"""Finishing a captured backward run: where its hooks and accumulations stand (R4.31 - R4.40).

A tracer may push what calls code of users to the end of a graph. These steps move it to where the
eager run has it: *behind* an op means immediately behind. None changes a value. With
``keep_order``, calls of code of users and accumulations do not pass each other: captures record
them in the order of the eager run already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..errors import IRError
from ..ir.program import Instr, Program
from ..ops.backward import (
    KEPT,
    AccumulateGrad,
    CallBackward,
    CallHook,
    ListGet,
    ValidateGrads,
)
from .tidy import is_pure

Step = Callable[[Program, bool], int]
"""Changes a program in place; how many ops it has moved or removed."""
_USERS_CODE = (CallHook, CallBackward, AccumulateGrad)


class _Order:
    """The top block of a program, whose ops are moved one by one."""

    def __init__(self, program: Program, keep: bool) -> None:
        self.program, self.keep = program, keep
        self.instrs = program.body.instrs
        self.defs = {r: instr for instr in self.instrs for r in instr.results}
        self._at: dict[int, int] = {}
        self._is_new = True
        self.moved = 0

    def at(self, instr: Instr) -> int:
        """The position of an op."""
        if self._is_new:
            self._at = {id(instr): k for k, instr in enumerate(self.instrs)}
            self._is_new = False
        return self._at[id(instr)]

    def hooks(self, kind: str) -> list[Instr]:
        """The calls of hooks of one kind, in order."""
        return [i for i in self.instrs if i.op is CallHook and i.attrs["hook_type"] == kind]

    def maker(self, value: int) -> Instr | None:
        """The op that computes a value; None for an element of a list, and for an input."""
        made = self.defs.get(value)
        return None if made is None or self.is_head(made) else made

    def is_head(self, instr: Instr) -> bool:
        """Whether an op takes an element out of an input of the graph."""
        return instr.op is ListGet and instr.operands[0] in self.program.inputs

    def latest(self, values: Sequence[int]) -> Instr | None:
        """The last op that computes one of some values."""
        made = [m for v in values if (m := self.maker(v)) is not None]
        return max(made, key=self.at, default=None)

    def users(self, values: Sequence[int]) -> Iterator[Instr]:
        """The ops that read any of some values, in order."""
        wanted = set(values)
        return (i for i in self.instrs if not wanted.isdisjoint(_read(i)))

    def own(self, instr: Instr) -> list[Instr]:
        """The elements of lists that this op alone reads: its hook, and what that unpacks."""
        found = []
        for value in instr.operands:
            made = self.defs.get(value)
            if made is not None and self.is_head(made) and next(
                (u for u in self.users([value]) if u is not instr), None
            ) is None and made.operands[0] in self.program.inputs[3:]:  # fmt: skip
                found.append(made)
        return found

    def move_behind(self, instr: Instr, anchor: Instr) -> None:
        """Move an op up, with what is its own, immediately behind another one."""
        start, end = self.at(anchor), self.at(instr)
        if self.keep:
            between = self.instrs[start + 1 : end]
            start += max((k + 1 for k, i in enumerate(between) if i.op in _USERS_CODE), default=0)
        if start >= end:
            return
        self._place(instr, start + 1)

    def move_up(self, found: Iterable[tuple[Instr, Sequence[int]]]) -> int:
        """Move ops behind the last one that computes one of their values; how many have moved."""
        for instr, values in found:
            anchor = self.latest(values)
            if anchor is not None:
                self.move_behind(instr, anchor)
        return self.moved

    def move_before(self, instr: Instr, user: Instr) -> None:
        """Move an op, with what is its own, immediately in front of a later one."""
        start, end = self.at(instr), self.at(user)
        if self.keep:
            between = self.instrs[start + 1 : end]
            end = start + 1 + next(
                (k for k, i in enumerate(between) if i.op in _USERS_CODE), len(between)
            )  # fmt: skip
        self._place(instr, end)

    def _place(self, instr: Instr, position: int) -> None:
        """Put an op, with what is its own in front, where the op at ``position`` was."""
        group = [*self.own(instr), instr]
        if self.instrs[position - len(group) : position] == group or (
            self.instrs[position : position + len(group)] == group
        ):  # fmt: skip
            return
        ids = set(map(id, group))
        before = [i for i in self.instrs[:position] if id(i) not in ids]
        behind = [i for i in self.instrs[position:] if id(i) not in ids]
        self.instrs[:] = [*before, *group, *behind]
        self._is_new = True
        self.moved += 1


def _read(instr: Instr) -> set[int]:
    """The values that an op reads, in its blocks as well."""
    found = set(instr.operands)
    for block in instr.blocks:
        found.update(block.outputs)
        for inner in block.instrs:
            found |= _read(inner)
    return found


def move_unpack_hooks(program: Program, keep_order: bool = False) -> int:
    """Each call of an unpack hook right in front of its first user (R4.33)."""
    order = _Order(program, keep_order)
    for call in order.hooks("unpack_hook"):
        user = next(order.users(call.results), None)
        if user is not None:
            order.move_before(call, user)
    return order.moved


def move_tensor_pre_hooks(program: Program, keep_order: bool = False) -> int:
    """Each call of a tensor hook behind the gradient that it is given (R4.34)."""
    order = _Order(program, keep_order)
    return order.move_up((call, call.operands[1:]) for call in order.hooks("tensor_pre_hook"))


def move_pre_hooks(program: Program, keep_order: bool = False) -> int:
    """Each call of a prehook as early as its arguments allow (R4.35)."""
    order = _Order(program, keep_order)
    return order.move_up((call, call.operands[1:]) for call in order.hooks("pre_hook"))


def move_accumulations(program: Program, keep_order: bool = False) -> int:
    """Each accumulation behind the later of its leaf and its gradient (R4.36)."""
    order = _Order(program, keep_order)
    found = [instr for instr in order.instrs if instr.op is AccumulateGrad]
    return order.move_up((instr, instr.operands) for instr in found)


def move_pre_hooks_late(program: Program, keep_order: bool = False) -> int:
    """Each call of a prehook, last to first, right in front of what uses its results (R4.37)."""
    order = _Order(program, keep_order)
    for call in reversed(order.hooks("pre_hook")):
        user = next(order.users(call.results), None)
        if user is not None:
            order.move_before(call, user)
    return order.moved


def move_post_accumulate_hooks(program: Program, keep_order: bool = False) -> int:
    """Each call of a post-accumulate hook, last to first, behind its accumulation (R4.38)."""
    order = _Order(program, keep_order)
    for call in reversed(order.hooks("post_acc_grad_hook")):
        leaf = call.operands[-1]
        anchor = next((u for u in order.users([leaf]) if u.op is AccumulateGrad), None)
        if anchor is None:
            raise IRError(
                "a post-accumulate hook is called on a leaf that accumulates nothing", loc=call.loc
            )
        order.move_behind(call, anchor)
    return order.moved


def move_post_hooks(program: Program, keep_order: bool = False) -> int:
    """Each call of a posthook that replaces nothing, last to first, behind its node (R4.39).

    That is behind the latest of its arguments and of what else uses these, and behind the
    post-accumulate hook of an accumulation.
    """
    order = _Order(program, keep_order)
    for call in reversed(order.hooks("post_hook")):
        if call.results:
            continue
        given = call.operands[1:]
        found = [m for v in given if (m := order.maker(v)) is not None]
        found += [
            u for u in order.users(given)
            if not (u.op is CallHook and u.attrs["hook_type"] == "post_hook")
        ]  # fmt: skip
        anchor = max(found, key=order.at, default=None)
        if anchor is None or order.is_head(anchor):
            continue
        if anchor.op is AccumulateGrad:
            leaf = anchor.operands[0]
            hooks = [c for c in order.hooks("post_acc_grad_hook") if c.operands[-1] == leaf]
            anchor = max([anchor, *hooks], key=order.at)
        order.move_behind(call, anchor)
    return order.moved


def fold_validation(program: Program, keep_order: bool = False) -> int:
    """Remove the checks of gradients whose types are known to be those that are asked for."""
    stands: dict[int, int] = {}
    kept: list[Instr] = []
    removed = 0
    for instr in program.body.instrs:
        _rename(instr, stands)
        if instr.op is ValidateGrads:
            wanted = instr.attrs["types"]
            if all(program.type_of(v) == t for v, t in zip(instr.operands, wanted, strict=False)):
                stands |= dict(zip(instr.results, instr.operands, strict=False))
                removed += 1
                continue
        kept.append(instr)
    program.body.instrs[:] = kept
    program.body.outputs = tuple(stands.get(v, v) for v in program.body.outputs)
    return removed


def _rename(instr: Instr, stands: dict[int, int]) -> None:
    if stands:
        instr.operands = tuple(stands.get(v, v) for v in instr.operands)
        for block in instr.blocks:
            for inner in block.instrs:
                _rename(inner, stands)
            block.outputs = tuple(stands.get(v, v) for v in block.outputs)


def remove_unused(program: Program, keep_order: bool = False) -> int:
    """Remove ops that nobody needs; calls of code of users and reads of inputs stay (R4.40)."""
    used = set(program.outputs)
    kept: list[Instr] = []
    for instr in reversed(program.body.instrs):
        reads_input = not used.isdisjoint(instr.results) or (
            instr.op is ListGet and instr.operands[0] in program.inputs
        )
        if reads_input or not is_pure(instr) or instr.op in KEPT:
            used |= _read(instr)
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

__all__ = ["STEPS", "Step"]
