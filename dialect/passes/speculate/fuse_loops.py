"""Make one fusion group of a whole loop (R1.36): rounds cost no calls of kernels then."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.carried import merge_carried
from ...analysis.functional import functionalize
from ...ir.program import Instr
from ...mlir.context import loc_of
from ...mlir.decode import decode_function
from ...mlir.facts import is_constant_op
from ...mlir.parse import replace_function
from ...mlir.rewrite import (
    attrs_of,
    erase,
    is_terminator,
    op_class,
    refresh_signature,
    short_name,
    symbol_of,
    types_of,
    walk,
)
from ...mlir.typed_values import main_functions
from ...ops.control_flow.control import LOOPS
from ...ops.control_flow.native import stands_in_way
from ...ops.host_call import HostCall, shown
from ...ops.indexing.additions import AtIndices
from ...ops.indexing.scatter import Scatter
from ...reasons import Effect, Kind, Reason
from ..base import Pass, register_pass
from ..partition.outline import GroupRefused
from .left_devices import LeftDevices
from .loop_members import LoopOutliner, joined, loops_in
from .round_costs import rounds_apart
from .unseen import infer_unseen

PREFIX = "fusion_loop"
SEVERAL = "s"  # follows the prefix in names of functions with several loops
MOST_PARTS = 32  # writes in the loops that go together: the analysis takes time with their cube


@register_pass
@dataclass(frozen=True)
class FuseLoops(Pass):
    """Outline each loop, with all loops and branches in it, into a fusion group of its own.

    A loop is taken whole or not at all. Those before it whose results it alone reads go with it.
    All of its ops have to be lowered; products and calls on the host stay where they are, and then
    loops inside of such a loop may be taken. Writes into arrays that the graph has made become pure
    ops, also at indices that are known at run time: the kernel of a loop writes in place. What only
    the loop reads goes into the group with it. Numbers that sizes depend on in a loop get a count
    of their own, which the kernel holds them to. Loops that stay outside are noted with the reason.
    ``dynamic`` admits symbolic sizes. ``keep`` (``0:3``) are numbers of loops that stay, as
    `number_of` gives them, ``alone`` those of loops that no others go with. Under ``exact`` all
    stay: kernels of loops sum up in another order. Those stay, too, whose rounds are estimated to
    take less time in kernels of their own (`round_costs`), unless ``whole`` is set, and those that
    compute on the devices that ``leave`` names (cuda, or all): the fuser of device groups takes their
    ops, round by round (A7).
    """

    name: ClassVar[str] = "fuse-loops"
    dynamic: bool = False
    keep: str = ""
    alone: str = ""
    exact: bool = False
    whole: bool = False
    leave: str = ""

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            if any(op_class(op) in LOOPS for op in walk(func)):
                self._function(module, func)

    def _function(self, module: ir.Module, func: ir.Operation) -> None:
        """Take as many loops as can be: one that cannot is left as it was, with its writes."""
        refused: dict[int, Reason] = {}
        kept, alone = _numbers(self.keep), _numbers(self.alone)
        left = LeftDevices(self.leave, func)
        for number, loop in enumerate(loops_in(func)):
            if number in kept:
                refused[number] = Reason(Kind.NOT_LOWERED)
                continue
            reason = Reason(Kind.INEXACT) if self.exact else _refusal(loop)
            if reason is None and any(left.is_left((*types_of(o.operands), *types_of(o.results))) for o in walk(loop)):
                reason = Reason(Kind.LEFT_TO_DEVICE_FUSER)
            if reason is None and not self.whole:
                reason = rounds_apart(loop)
            if reason is not None:
                refused[number] = reason
        while True:
            chosen = _outermost(func, refused)
            if not chosen:
                break
            attempt = func.clone(ip=ir.InsertionPoint(func)).operation
            before = {symbol_of(f) for f in _private(module)}
            loops = list(loops_in(attempt))
            infer_unseen(attempt, [loops[number] for number in chosen])
            attempt = self._functionalized(attempt, chosen)
            failure = self._attempt(module, attempt, chosen, alone)
            if isinstance(failure, int):
                self.count("groups", failure)
                func.erase()
                refresh_signature(attempt)
                break
            erase(attempt)
            for function in [f for f in _private(module) if symbol_of(f) not in before]:
                function.erase()
            number, reason = failure
            if reason is None:
                alone.add(number)
            else:
                refused[number] = reason
        for reason in (r for number, r in refused.items() if number not in kept):
            self.note(dataclasses.replace(reason, effect=Effect.LOOP_IN_PLAN))

    def _functionalized(self, func: ir.Operation, chosen: Sequence[int]) -> ir.Operation:
        """A function with writes made pure: to what these loops use, and all others that can be."""
        program = decode_function(func)
        loops = list(_program_loops(program.body.instrs))
        views = {r: i for i in program.body.walk() if i.op.aliases for r in i.results}
        bases = {
            _viewed(value, views)
            for n in chosen
            for block in loops[n].blocks
            for i in block.walk()
            for value in i.operands
        }
        made_pure, _ = functionalize(program, at_run_time=lambda write: _viewed(write.operands[0], views) in bases)
        if made_pure:
            self.count("ops-made-pure", made_pure)
        merge_carried(program)
        return replace_function(func, program)

    def _attempt(
        self, module: ir.Module, func: ir.Operation, chosen: Sequence[int], alone: set[int]
    ) -> int | tuple[int, Reason | None]:
        """Outline these loops of a function; returns the number of groups.

        Else the loop that cannot be outlined, and why: None = not with those that go with it.
        """
        loops = list(loops_in(func))
        waiting, groups = list(chosen), 0
        while waiting:
            number = waiting.pop()  # the last one: those before may go with it
            loop = loops[number]
            others = [] if number in alone else [loops[n] for n in waiting]
            partners = joined(loop, others)
            if partners and sum(map(_parts, [loop, *partners])) > MOST_PARTS:
                others = partners = []
            waiting = [n for n in waiting if not any(loops[n] == op for op in partners)]
            try:
                prefix = f"{PREFIX}{SEVERAL if partners else ''}{number}"
                LoopOutliner(module, loop, prefix, self.dynamic, others).run()
            except GroupRefused as error:
                return number, None if partners else error.reason
            groups += 1
        return groups


def _numbers(text: str) -> set[int]:
    return {int(number) for number in text.split(":") if number}


def _parts(loop: ir.Operation) -> int:
    """The number of ops in a loop that replace a part of an array."""
    return sum((cls := op_class(op)) is not None and issubclass(cls, (Scatter, AtIndices)) for op in walk(loop))


def number_of(name: str) -> int | None:
    """The number of the loop of which a fusion function was made; None for other functions."""
    rest = name[len(PREFIX) :].split("_")[0] if name.startswith(PREFIX) else ""
    rest = rest.removeprefix(SEVERAL)
    return int(rest) if rest.isdigit() else None


def has_several(name: str) -> bool:
    """True if a fusion function was made of several loops."""
    return number_of(name) is not None and name.startswith(PREFIX + SEVERAL)


def _private(module: ir.Module) -> list[ir.Operation]:
    return [op.operation for op in module.body.operations if "sym_visibility" in op.attributes]


def _viewed(value: int, views: Mapping[int, Instr]) -> int:
    """The value whose memory a value shows."""
    while value in views:
        value = views[value].operands[0]
    return value


def _program_loops(instrs: Sequence[Instr]) -> Iterator[Instr]:
    """The loops of a program, in the order of those of its function."""
    for instr in instrs:
        if instr.op in LOOPS:
            yield instr
        for block in instr.blocks:
            yield from _program_loops(block.instrs)


def _outermost(func: ir.Operation, refused: dict[int, Reason]) -> list[int]:
    """The loops that are in no other one, those that are refused left aside."""
    chosen, inside = [], set[ir.Operation]()
    for number, loop in enumerate(loops_in(func)):
        if any(loop == other for other in inside) or number in refused:
            continue
        chosen.append(number)
        inside.update(op for op in walk(loop) if op != loop)
    return chosen


def _refusal(loop: ir.Operation) -> Reason | None:
    """Why an op in a loop keeps the loop out of kernels, as far as its class tells."""
    for op in walk(loop):
        cls = op_class(op)
        if is_terminator(op) or is_constant_op(op):
            continue
        kind = Kind.NEVER_FUSED if cls is None else stands_in_way(cls)
        if kind is None:
            continue
        detail = shown(attrs_of(op)["function"]) if cls is not None and issubclass(cls, HostCall) else ""
        return Reason(kind, detail=detail, op=short_name(op), loc=loc_of(op.location))
    return None
