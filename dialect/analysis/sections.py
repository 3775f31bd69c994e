"""A long graph cut into sections, each a graph of its own; equal parts become equal sections.

What a compile takes grows with the ops, and long graphs mostly repeat themselves: a step of a loop,
a layer. Cuts are made where few values pass and, among such places, at the same op of the part that
is repeated: then sections between them are the same graph, and are compiled once.

Calls of users' code that no other op waits for, as those of the hooks of leaves, are a section of
their own at the end, in a graph of any length: what stands in front of them is code without Python.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import field
from typing import Any

from ..dataclass import dataclass
from ..ir.program import Block, Instr, Program
from ..ops.backward import USERS_CODE, CallBackward, ValidateGrads
from ..ops.control_flow.control import If
from ..ops.create import Constant
from ..ops.gradient_ops import AnyNonzero, AutogradZero, Definedness
from .alias import uses
from .backward_lists import slot_lists
from .renumber import renumbered

LEAST = 256  # ops of a section, but of the last one; longer ones run no sooner
_NEVER = 1 << 40
_CONSTANT = (Constant, AutogradZero)


@dataclass(frozen=True)
class Section:
    """A section of a graph.

    Attributes:
        program: inputs are what it reads, in the order in which it does; outputs what is read
            behind it.
        inputs, outputs: which values of the whole graph these are.
        dying: those of the inputs that nothing behind it reads.
        slots: by number of a list (`backward_lists`), which of its elements code of users that it
            calls is found in; ``slots`` of ops in the section are numbers among these.
        calls: it is the last one, of calls of users' code alone; ``slots`` of its ops are those of
            the whole graph.
    """

    program: Program
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    dying: tuple[int, ...]
    slots: dict[int, tuple[int, ...]] = field(default_factory=dict)
    calls: bool = False


def sections(program: Program, least: int = LEAST) -> list[Section]:
    """The sections of a graph, of ``least`` to twice as many ops; one for a graph of fewer, without calls at its end.

    A graph that writes to arrays stays whole, as these may share memory across a cut, and so does
    one with a constant among its results. Constants belong to each section that reads them. What
    may be undefined passes no cut, as no graph takes it as an input; so a section may be longer.
    """
    instrs = [i for i in program.body.instrs if i.op not in _CONSTANT]
    constants = {i.results[0]: i for i in program.body.instrs if i.op in _CONSTANT}
    whole = [Section(program, program.inputs, program.outputs, ())]
    if not constants.keys().isdisjoint(program.outputs) or any(i.op.writes for i in program.body.walk()):
        return whole
    undefined = _undefined(program.body, set())
    rest, calls = _calls_apart(instrs, {*undefined, *constants})
    if len(rest) <= 2 * least and not calls:
        return whole
    instrs = rest + calls
    reads = [uses(i) for i in instrs]
    last = {v: k for k, values in enumerate(reads) for v in values}
    last |= dict.fromkeys(program.outputs, len(instrs))
    parts, start = [], 0
    for end in _ends(rest, undefined, least) if len(rest) > 2 * least else [len(rest)]:
        parts.append(_section(program, instrs[start:end], constants, last, end))
        start = end
    if calls:
        parts.append(_section(program, calls, constants, last, len(instrs), calls=True))
    return parts


def _calls_apart(instrs: Sequence[Instr], uncut: Container[int]) -> tuple[list[Instr], list[Instr]]:
    """The ops of a graph, and the calls of users' code behind the last one whose results other ops read.

    There are no such calls where they are all of the graph, or read a value of ``uncut``.
    """
    needed: set[int] = set()
    for k in range(len(instrs) - 1, -1, -1):
        instr = instrs[k]
        if instr.op not in USERS_CODE:
            needed |= uses(instr)
        elif not needed.isdisjoint(instr.results):
            break
    else:
        k = -1
    later = instrs[k + 1 :]
    calls = [i for i in later if i.op in USERS_CODE]
    rest = [*instrs[: k + 1], *(i for i in later if i.op not in USERS_CODE)]
    if not rest or any(v in uncut for i in calls for v in i.operands):
        return list(instrs), []
    return rest, calls


def _undefined(block: Block, values: set[int]) -> set[int]:
    """The values that may be undefined, or None, which gradients of users may return."""
    sure: dict[int, set[int]] = {}  # of a condition, what is defined where it holds
    for instr in block.instrs:
        for inner in instr.blocks:
            _undefined(inner, values)
        if issubclass(instr.op, Definedness):
            if instr.op is AnyNonzero and len(instr.operands) == 1:
                sure[instr.results[0]] = {*instr.operands}
        elif instr.op is If and instr.operands[0] in sure:
            then, other = (inner.outputs for inner in instr.blocks)
            defined = sure[instr.operands[0]]
            values.update(
                r
                for r, x, y in zip(instr.results, then, other, strict=True)
                if y in values or (x in values and x not in defined)
            )
        elif instr.op in (AutogradZero, CallBackward) or (
            instr.op is not ValidateGrads and not values.isdisjoint(uses(instr))
        ):
            values.update(instr.results)
    return values


def _ends(instrs: Sequence[Instr], undefined: Container[int], least: int) -> list[int]:
    """Behind how many ops the sections end."""
    passing, kinds = _passing(instrs, undefined), _kinds(instrs)
    ends, start = [], least
    while len(instrs) - start > least:
        window = range(start, start + least)
        place = min(window, key=lambda k: (passing[k], kinds[k - 1 : k + 3], k))
        if passing[place] < _NEVER:
            ends.append(place)
            start = place
        start += least
    return [*ends, len(instrs)]


def _passing(instrs: Sequence[Instr], undefined: Container[int]) -> list[int]:
    """For each place between ops, how many values that are made in front are read behind.

    Places of which no cut may be made have `_NEVER` or more.
    """
    positions = {r: k for k, i in enumerate(instrs) for r in i.results}
    last = {v: k for k, i in enumerate(instrs) for v in uses(i) if v in positions}
    changes = [0] * (len(instrs) + 2)
    for value, k in last.items():
        weight = _NEVER if value in undefined else 1
        changes[positions[value] + 1] += weight
        changes[k + 1] -= weight
    counts, count = [], 0
    for change in changes:
        count += change
        counts.append(count)
    return counts


def _kinds(instrs: Sequence[Instr]) -> list[int]:
    """A number for each op: the same one for ops that are alike and read values as far in front."""
    at: dict[int, int] = {}  # of values, where they were last made or read
    numbers: dict[Any, int] = {}
    kinds = []
    for k, instr in enumerate(instrs):
        distances = tuple(k - at[v] if v in at else -1 for v in instr.operands)
        attrs = {name: value for name, value in instr.attrs.items() if name != "slots"}
        key = instr.op, repr(attrs), instr.loc, distances, len(instr.blocks)
        kinds.append(numbers.setdefault(key, len(numbers)))
        at.update(dict.fromkeys((*uses(instr), *instr.results), k))
    return kinds


def _section(
    program: Program,
    instrs: Sequence[Instr],
    constants: dict[int, Instr],
    last: dict[int, int],
    end: int,
    *,
    calls: bool = False,
) -> Section:
    part = Program(program.name)
    values: dict[int, int] = {}
    inputs: dict[int, int] = {}
    into: list[Instr] = []

    def fresh(value: int) -> int:
        values[value] = part.new_value(program.type_of(value))
        return values[value]

    def known(value: int) -> int:
        if value in values:
            return values[value]
        constant = constants.get(value)
        if constant is None:
            inputs[value] = fresh(value)
        else:
            into.append(renumbered(constant, known, fresh))
        return values[value]

    for instr in instrs:
        copied = renumbered(instr, known, fresh)
        into.append(copied)  # behind the constants that it reads
    own = [r for i in instrs for r in i.results]
    outputs = [v for v in own if last.get(v, -1) >= end]
    part.body = Block(tuple(inputs.values()), into, tuple(values[v] for v in outputs))
    dying = tuple(v for v in inputs if last[v] < end)
    return Section(part, tuple(inputs), tuple(outputs), dying, {} if calls else _own_slots(part), calls)


def _own_slots(program: Program) -> dict[int, tuple[int, ...]]:
    """Number the ``slots`` anew, by list; what they have been."""
    by_list: dict[int, dict[int, int]] = {}
    for instr in program.body.walk():
        if instr.attrs.get("slots"):
            instr.attrs["slots"] = tuple(
                (numbers := by_list.setdefault(which, {})).setdefault(k, len(numbers))
                for which, k in zip(slot_lists(instr), instr.attrs["slots"], strict=True)
            )
    return {which: tuple(numbers) for which, numbers in by_list.items()}
