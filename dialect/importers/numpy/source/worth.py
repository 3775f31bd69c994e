"""An estimate: is a recorded loop faster than Python's own?

A loop of ops that kernels have becomes a kernel. Rounds of any other loop run in the plan's Python:
what computes with arrays becomes kernels there, but index arithmetic, elements and slices at an
index of the loop are ops one by one, which cost several times what Python and NumPy take for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....ir.program import Block, Instr
from ....ir.types import TensorType
from ....ops.control_flow.control import For, While
from ....ops.control_flow.native import stands_in_way
from ....ops.create import Constant
from ....ops.indexing.inplace import Put
from ....ops.queries import Dim, Size

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_ROUNDS = 16  # of a loop whose number of rounds is not known


def is_worth_it(rec: Recorder, block: Block) -> bool:
    """True for a round that a kernel can have, or whose ops are worth a loop in the plan.

    They are if those with arrays, and loops that kernels can have, outnumber those that only find
    or write elements and views.
    """
    if _is_native(block):
        return True
    work, rest = _counted(rec, block)
    return work > 0 and work >= rest


def _counted(rec: Recorder, block: Block) -> tuple[int, int]:
    work = rest = 0
    for instr in block.instrs:
        if instr.op in (For, While) and all(map(_is_native, instr.blocks)):
            work += 1
        elif instr.blocks:
            inside = [_counted(rec, inner) for inner in instr.blocks]
            work, rest = work + sum(w for w, _ in inside), rest + sum(f for _, f in inside)
        elif not _is_free(instr):
            is_work = _is_work(rec, instr)
            work, rest = work + is_work, rest + (not is_work)
    return work, rest


def _is_native(block: Block) -> bool:
    """True if no op keeps a loop with this body out of kernels."""
    return all(i.op is Constant or stands_in_way(i.op) is None for i in block.walk())


def _is_free(instr: Instr) -> bool:
    """True for what takes as long in NumPy."""
    op = instr.op
    is_view = bool(op.aliases) and not op.writes and len(instr.operands) == 1
    return op in (Constant, Dim, Size) or is_view


def _is_work(rec: Recorder, instr: Instr) -> bool:
    op = instr.op
    if issubclass(op, Put) or (op.aliases and not op.writes):
        return False
    return any(_has_axes(rec, value) for value in instr.results)


def _has_axes(rec: Recorder, value: int) -> bool:
    hint = rec.hints[value]
    return isinstance(hint, TensorType) and bool(hint.shape)


def ops_in(rec: Recorder, block: Block) -> int:
    """About how many ops a round has, where the rounds of inner loops count each."""
    return sum(_ops_of(rec, instr) for instr in block.instrs)


def _ops_of(rec: Recorder, instr: Instr) -> int:
    inside = sum(ops_in(rec, block) for block in instr.blocks)
    if instr.op is While:
        return inside * _ROUNDS
    if instr.op is not For:
        return inside + 1
    bounds = [rec.known.get(value) for value in instr.operands[:3]]
    if any(type(bound) is not int for bound in bounds):
        return inside * _ROUNDS
    return inside * len(range(*bounds))  # type: ignore[arg-type]
