"""Which values a pullback is given, and which it computes again: a minimum cut in bytes moved.

A value that is kept is written by the forward half and read by the reverse one; a value that is
computed again costs no memory where it fuses with what reads it. So only elementwise ops and views
are computed again; products, reductions, scatters and loops never are.

The last bits of what is computed again may differ, as products fuse with sums. So what decides is
kept: results of comparisons, and what the reverse half compares for equality, as it does to find
the elements that are the maximum. Of an array that the reverse half sums a gradient to the shape
of, sizes are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ...analysis.min_cut import UNCUT, minimum_cut
from ...ir.attrs import DYNAMIC
from ...ir.op import Fusion
from ...ir.postorder import postorder
from ...ir.program import Block, Instr
from ...ir.types import TensorType
from ...ops.create import Constant, Full
from ...ops.elementwise.compare import Eq, Ne
from ...ops.elementwise.families import Compare
from ...ops.gradients import CustomResult
from ...ops.manipulation.shape import BroadcastTo
from ...ops.queries import Dim, Size
from .builder import SHAPED_LIKE
from .flow import values_read

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_SOURCE, _SINK = -1, -2
_FREE = (Constant, Full, Dim, Size)  # made of numbers alone, or of shapes


def residuals(
    rec: Recorder, reverse: Block, variables: Collection[int], in_memory: Collection[int] = ()
) -> tuple[list[int], list[Instr]]:
    """The values to keep for a reverse half, and what it computes from them, in order.

    The reverse half is changed: it may read sizes in place of arrays. Values count as large as the
    example arguments make them.

    Args:
        rec: the trace of the forward half.
        reverse: the reverse half, which reads values of the forward one.
        variables: values that are never computed again.
        in_memory: values that are written whether they are kept or not.
    """
    _read_sizes_alone(rec, reverse)
    read = list(values_read(reverse))
    fixed = {*variables, *_compared(reverse)}

    def remade(value: int) -> Instr | None:
        return None if value in fixed else _cheap(rec, value)

    def operands(value: int) -> Sequence[int]:
        made = remade(value)
        return () if made is None else made.operands

    seen = list(postorder(read, operands))
    edges = [(_out(v), _SINK, UNCUT) for v in read]
    for value in seen:
        edges.append((_in(value), _out(value), _cost(rec, value, value in in_memory)))
        if remade(value) is None:
            edges.append((_SOURCE, _in(value), UNCUT))
        edges += [(_out(v), _in(value), UNCUT) for v in operands(value)]
    later = minimum_cut(edges, _SOURCE, _SINK)
    kept = {v: None for v in seen if _out(v) in later and _in(v) not in later}
    again: dict[int, Instr] = {}
    for value in postorder(read, lambda v: () if v in kept else operands(v)):
        made = None if value in kept else remade(value)
        if made is not None:
            again[id(made)] = made
    return list(kept), list(again.values())


def _read_sizes_alone(rec: Recorder, reverse: Block) -> None:
    """Replace arrays of which a block reads nothing but the shape by zeros of that shape."""
    instrs = list(reverse.walk())
    shapes = {i.operands[1] for i in instrs if _is_like(i)}
    others = {v for i in instrs for v in (i.operands[:1] if _is_like(i) else i.operands)}
    others |= {v for i in instrs for block in i.blocks for v in block.outputs}
    shapes -= others.union(reverse.outputs)
    zeros, made = {}, Block()
    for value in values_read(reverse):
        hint = rec.hints[value]
        if value in shapes and isinstance(hint, TensorType):
            rank = len(rec.shape(value))
            sizes = [rec.dim(value, axis) for axis in range(rank)]
            with rec.nested(made):
                (zero,) = rec.emit(Constant, [], {"value": np.zeros((), rec.dtype(value))})
                attrs = {"shape": (DYNAMIC,) * rank}
                zeros[value] = rec.emit(BroadcastTo, [zero, *sizes], attrs)[0]
    for instr in instrs:
        if _is_like(instr):
            x, like = instr.operands
            instr.operands = (x, zeros.get(like, like))
    reverse.instrs[:0] = made.instrs


def _is_like(instr: Instr) -> bool:
    return issubclass(instr.op, SHAPED_LIKE)


def _in(value: int) -> int:
    return 2 * value


def _out(value: int) -> int:
    return 2 * value + 1


def _compared(block: Block) -> set[int]:
    """Values that are compared for equality."""
    return {v for i in block.walk() if issubclass(i.op, (Eq, Ne)) for v in i.operands}


def _cheap(rec: Recorder, value: int) -> Instr | None:
    """The instruction that computes a value, if it may do so again."""
    made = rec.defs.get(value)
    if made is None or made.blocks or made.op.writes or issubclass(made.op, CustomResult):
        return None
    if issubclass(made.op, _FREE):
        return made
    is_cheap = made.op.fusion in (Fusion.POINTWISE, Fusion.VIEW)
    return made if is_cheap and not issubclass(made.op, Compare) else None


def _cost(rec: Recorder, value: int, is_written: bool) -> int:
    """Bytes that keeping a value moves: it is read again, and written unless it is in memory."""
    hint = rec.hints[value]
    if not isinstance(hint, TensorType):
        return 8
    known = [d if isinstance(d, int) else 1 for d in hint.shape or ()]
    made = rec.defs.get(value)
    is_written |= made is not None and made.op.fusion in (Fusion.CONTRACTION, Fusion.NONE)
    return max(prod(known) * rec.dtype(value).itemsize, 1) * (1 if is_written else 2)


__all__ = ["residuals"]
