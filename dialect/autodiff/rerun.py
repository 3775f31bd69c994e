"""Blocks of branches and loops recorded on other arguments, and values in the form they ask for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..importers.numpy.capture.inline import inline_block
from ..importers.numpy.tracing.operators import op, wrap
from ..ir.dtypes import dtype_of
from ..ir.program import Block, Instr
from ..ir.types import ScalarType

if TYPE_CHECKING:
    from ..importers.numpy.tracing.recorder import Recorder


def values_read(*blocks: Block) -> dict[int, None]:
    """The values from outside that blocks read, in the order of the first reads."""
    every = list(nested(*blocks))
    inner = {v for b in every for v in b.args}
    inner |= {r for b in every for i in b.instrs for r in i.results}
    uses = [o for b in every for i in b.instrs for o in i.operands]
    uses += [o for b in every for o in b.outputs]
    return dict.fromkeys(v for v in uses if v not in inner)


def nested(*blocks: Block) -> Iterator[Block]:
    """Blocks, each before those of its instructions."""
    for block in blocks:
        yield block
        for instr in block.instrs:
            yield from nested(*instr.blocks)


def rerun(rec: Recorder, block: Block, args: Sequence[int]) -> tuple[tuple[int, ...], Sequence[Instr]]:
    """Record a block on other arguments; returns its outputs and its instructions."""
    start = len(rec.blocks[-1].instrs)
    outputs = inline_block(rec, block, args)
    return outputs, rec.blocks[-1].instrs[start:]


def append(rec: Recorder, apart: Block) -> None:
    """Append the instructions of a block, which was recorded apart, to the current one."""
    here = rec.blocks[-1]
    here.instrs += apart.instrs
    for instr in apart.instrs:
        rec.home.update(dict.fromkeys(instr.results, here))


def zeros(rec: Recorder, value: int) -> Any:
    """Zeros of the shape and dtype of a value."""
    if isinstance(rec.hints[value], ScalarType):
        return wrap(rec, rec.constant(rec.dtype(value).type(0)))
    return np.zeros_like(wrap(rec, value))


def zeros_as_array(rec: Recorder, value: int) -> Any:
    """The same as an array, also in place of a number."""
    return as_array(rec, zeros(rec, value), value)


def array(rec: Recorder, value: int) -> Any:
    """A value as an array: of a number, one without axes."""
    traced = wrap(rec, value)
    if isinstance(rec.hints[value], ScalarType):
        return op("to_tensor", traced, dtype=dtype_of(rec.dtype(value)))
    return traced


def as_array(rec: Recorder, g: Any, value: int) -> Any:
    """A gradient as an array, so that both branches and all rounds give the same type."""
    if isinstance(rec.hints[g.value], ScalarType):
        return op("to_tensor", g, dtype=dtype_of(rec.dtype(value)))
    return g
