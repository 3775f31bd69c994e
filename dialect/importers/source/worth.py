"""Whether a recorded loop is faster than Python's own.

Each round runs in the plan's Python: what computes with arrays becomes kernels, but index
arithmetic, elements and slices at an index of the loop are ops one by one, which cost several times
what Python and NumPy take for them. This is the one place to relax where loops become kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...ir.program import Block, Instr
from ...ir.types import TensorType
from ...ops.control_flow.control import For, While
from ...ops.create import Constant
from ...ops.indexing.inplace import Put
from ...ops.queries import Dim, Size

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_ROUNDS = 16  # of a loop whose number of rounds is not known


def is_worth_it(rec: Recorder, block: Block) -> bool:
    """True if ops with arrays outnumber those that only find or write elements and views."""
    work = found = 0
    for instr in block.walk():
        if not instr.blocks and not _is_free(instr):
            is_work = _is_work(rec, instr)
            work, found = work + is_work, found + (not is_work)
    return work > 0 and work >= found


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


__all__ = ["is_worth_it", "ops_in"]
