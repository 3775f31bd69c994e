"""Numbers that a group of instructions has copies of, and views that it leaves outside. No MLIR."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from ..ir.op import Fusion
from ..ir.program import Instr, Program
from ..ops.create import Constant
from ..ops.nn.copies import ViewCopy
from .renumber import renumbered


def with_numbers(program: Program, members: Sequence[Instr], copied: Mapping[int, Instr]) -> list[Instr]:
    """The members of a group, which read copies among them of the numbers that ``copied`` makes.

    Constants are not copied: what makes a function of the group does that.
    """
    copies: dict[int, int] = {}
    out: list[Instr] = []

    def fresh(value: int) -> int:
        copies[value] = program.new_value(program.type_of(value))
        return copies[value]

    def copy(value: int) -> int:
        maker = copied.get(value)
        if maker is None or (maker.op is Constant and not maker.operands):
            return value
        if value not in copies:
            for operand in maker.operands:
                copy(operand)
            out.append(renumbered(maker, lambda v: copies.get(v, v), fresh))
        return copies[value]

    for instr in members:
        instr.operands = tuple(map(copy, instr.operands))
        out.append(instr)
    return out


def is_view(instr: Instr) -> bool:
    """True for a view, and for a copy of one that becomes a view again where it is in no group (R3.12)."""
    return instr.op.fusion is Fusion.VIEW or (issubclass(instr.op, ViewCopy) and bool(instr.attrs.get("implicit")))


def split_views(program: Program, members: Sequence[Instr], read: Container[int]) -> tuple[list[Instr], list[Instr]]:
    """Views that need not be results of a group, because they view what it reads; and the members then.

    A group would have to copy such a view. ``read``: the values that are read outside. Members that read
    one have a view of their own.
    """
    makers = {r: instr for instr in members for r in instr.results}
    movable: set[int] = set()
    for instr in members:
        inner = (makers[v] for v in instr.operands if v in makers)
        if is_view(instr) and all(id(maker) in movable for maker in inner):
            movable.add(id(instr))
    chosen: set[int] = set()
    needed: set[int] = set()
    for instr in reversed(members):
        if id(instr) in movable and any(r in read or r in needed for r in instr.results):
            chosen.add(id(instr))
            needed.update(instr.operands)
    outside: list[Instr] = []
    stands: dict[int, int] = {}
    for instr in members:
        operands = instr.operands
        instr.operands = tuple(stands.get(v, v) for v in operands)
        if id(instr) in chosen:
            outside.append(Instr(instr.op, operands, instr.results, dict(instr.attrs), (), instr.loc))
            stands.update((r, program.new_value(program.type_of(r))) for r in instr.results)
            instr.results = tuple(stands[r] for r in instr.results)
    inside: list[Instr] = []
    read_inside: set[int] = set()
    for instr in reversed(members):
        if id(instr) not in chosen or not read_inside.isdisjoint(instr.results):
            inside.append(instr)
            read_inside.update(instr.operands)
    return outside, inside[::-1]
