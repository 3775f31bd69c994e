"""Structured control flow under masks: threads that go another way wait."""

from __future__ import annotations

import numpy as np

from .grid import Active
from .machine import Machine, Marked, gather, merge
from .program import Instruction

LONGEST_LOOP = 1 << 20  # iterations


def _if(machine: Machine, each: Instruction, active: Active) -> None:
    (slot,) = each.operands
    machine.refuse_poison(slot, active, "a branch")
    condition = machine.values[slot]
    yes = active.mask & condition
    no = active.mask & ~condition
    if not no.any() or not yes.any():
        taken = 1 if no.any() else 0
        if taken < len(each.regions):
            machine.bind(each.results, machine.execute(each.regions[taken], active))
        return
    results = [
        machine.execute(code, Active(active.wave, mask)) for code, mask in zip(each.regions, (yes, no), strict=False)
    ]
    if each.results:
        machine.bind(each.results, merge(condition, *results))


def _for(machine: Machine, each: Instruction, active: Active) -> None:
    for slot in each.operands[:3]:
        machine.refuse_poison(slot, active, "a loop bound")
    low, high, step = (machine.values[slot] for slot in each.operands[:3])
    (code,) = each.regions
    if (bad := gather(step, active) <= 0).any():
        active.fault("endless", "the step of a loop is not positive", bad)
    carried, running = machine.marked(each.operands[3:]), active
    for trip in range(LONGEST_LOOP):
        index = low + trip * step
        if (staying := _narrowed(machine.left(running), index < high)) is None:
            break
        running = staying
        machine.bind(code.arguments, [Marked(index), *carried])
        new = machine.execute(code, running)
        carried = new if running is active else merge(running.mask, new, carried)
    else:
        _endless(each, active)
    machine.bind(each.results, carried)


def _while(machine: Machine, each: Instruction, active: Active) -> None:
    before, after = each.regions
    carried, running = machine.marked(each.operands), active
    results: list[Marked] = []
    for trip in range(LONGEST_LOOP):
        machine.bind(before.arguments, carried)
        condition, *values = machine.execute(before, running)
        machine.refuse_poison(before.terminator.operands[0], running, "the condition of a loop")
        results = values if trip == 0 else merge(running.mask, values, results)
        if (staying := _narrowed(machine.left(running), condition.value)) is None:
            break
        running = staying
        machine.bind(after.arguments, values)
        carried = machine.execute(after, running)
    else:
        _endless(each, active)
    machine.bind(each.results, results)


def _assert(machine: Machine, each: Instruction, active: Active) -> None:
    """End the threads for which the condition does not hold."""
    (slot,) = each.operands
    machine.refuse_poison(slot, active, "an assertion")
    failed = np.broadcast_to(~machine.values[slot], active.mask.shape)
    if (active.mask & failed).any():
        machine.end(active, failed)


def _narrowed(active: Active, condition: np.ndarray) -> Active | None:
    """Those of the threads for which the condition holds; None if there are none."""
    if not active.lanes.size:
        return None
    if condition.shape[0] == 1:
        return active if condition[0] else None
    mask = active.mask & condition
    count = np.count_nonzero(mask)
    if count == 0:
        return None
    return active if count == active.lanes.size else Active(active.wave, mask)


def _endless(each: Instruction, active: Active) -> None:
    active.site = each.site
    first = np.arange(active.lanes.size) == 0
    active.fault("endless", f"a loop runs for more than {LONGEST_LOOP} iterations", first)


ACTIONS = {"scf.if": _if, "scf.for": _for, "scf.while": _while, "cf.assert": _assert}
"""Actions of the ops that have regions, and of those that end threads."""
