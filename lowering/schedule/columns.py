"""Reductions over leading axes: how many columns and rows a step takes, so that memory is fast.

The accumulators of such a stage are an array along the columns (`NestStage.in_memory`), and its inner
loop adds a row to them. Two things count (docs/cpu-lowering.md). Prefetchers follow one
run of addresses best, and lose it where a tile of columns ends and the next row begins. Adding
several rows at once saves loads and stores of accumulators, but makes several runs of addresses.
"""

from __future__ import annotations

from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .access import accesses
from .affine import AffineIndex
from .graph import Tensor
from .memory import element_bytes, strides_of
from .nests import TILE, Nest, NestStage

_ACCUMULATORS = 1 << 16  # bytes of the accumulators of a tile: some of the L2 cache
_FEW_ACCUMULATORS = 1 << 14  # bytes that stay in the L1 cache beside a row
_CACHED = 1 << 21  # bytes of an array that may come from a cache
_STREAMS = 8  # rows of arrays at once: rows of 4 KB share the 8 ways of a set of the L1 cache
_ROWS = 4
NARROW = 7  # columns that become straight code: less than a vector of most dtypes
_COST = 16  # largest cost of an iteration at which the time is that of memory
_CACHED_COST = 4  # largest cost at which it is that of a cache


def widen_tiles(nest: Nest) -> None:
    """Make the tiles of columns as wide as their accumulators may be.

    That has no effect on the order of additions, so results have the same bits.
    """
    stages = _stages(nest)
    if nest.tile is not None and len(stages) == len(nest.stages) and not _is_read_again(nest):
        _widen(nest, max(_bytes_of_accumulators(s) for s in stages))


def choose_rows(nest: Nest) -> None:
    """Choose the rows that a step adds (`NestStage.rows`), of a nest whose chunks are known.

    That has no effect on the order of additions either.
    """
    for stage in _over_rows(nest):
        extent = stage.reduced[-1].extent
        if isinstance(extent, int) and 0 < extent <= _ROWS and _streams(nest, stage) is None:
            stage.rows = extent  # rows that indices name: each begins a run of its own anyway
    for stage in _stages(nest):
        _choose_rows(nest, stage)


def _over_rows(nest: Nest) -> list[NestStage]:
    """The stages that reduce over rows in memory."""
    lane = nest.group.lane
    stages = [s for s in nest.stages if s.in_memory and s.reduced]
    if lane is None or nest.places or any(s.parallel[-1] is not lane for s in stages):
        return []
    return stages


def _stages(nest: Nest) -> list[NestStage]:
    """Those whose time is that of memory."""
    return [s for s in _over_rows(nest) if sum(op.cost for op in s.members) <= _COST]


def _is_read_again(nest: Nest) -> bool:
    """True if a later stage may find in a cache what an earlier one has read of a tile."""
    if len(nest.stages) == 1:
        return False
    nbytes = max((_bytes_read(nest, s, TILE) for s in nest.stages), key=_known)
    return _known(nbytes) <= _CACHED


def _known(size: Dim) -> int:
    """A size that is a number; 0 = it is none."""
    return size if isinstance(size, int) else 0


def _widen(nest: Nest, bytes_: int) -> None:
    lane = nest.group.lane
    assert lane is not None
    width = TILE
    while width * 2 * bytes_ <= _ACCUMULATORS:
        width *= 2
    nest.width = width
    if isinstance(lane.extent, int) and lane.extent <= width:
        nest.tile = None
    for scratch in nest.scratch.values():
        scratch.dims = tuple(width if g is nest.tile else g.extent for g in scratch.loops)


def _bytes_of_accumulators(stage: NestStage) -> int:
    """Bytes of all accumulators of one column."""
    return sum(
        element_bytes(t.element)
        for op in stage.reductions
        for t in op.outputs
        if not any(op.reduction[k] for k in op.axes[t.number])
    )


def _bytes_read(nest: Nest, stage: NestStage, width: Dim) -> Dim:
    """Bytes that a stage reads in all iterations of the nest, of so many columns."""
    lane = nest.group.lane
    loops = [*nest.outer, *stage.parallel, *stage.reduced]
    sizes = [g.extent for g in loops if g is not lane]
    return ix.product([*sizes, width]) * sum(bytes_ for bytes_, _ in _streams(nest, stage) or ())


def _streams(nest: Nest, stage: NestStage) -> list[tuple[int, Dim]] | None:
    """Of each array of which a stage reads rows: bytes of an element, elements from row to row.

    None = the stage computes where it reads.
    """
    streams: dict[tuple[Tensor, AffineIndex], tuple[int, Dim]] = {}
    for op in stage.members:
        for access in accesses(op):
            if access.index is None:
                return None
            index = nest.group.index_of(op, access.index)
            offset = ix.linear(index, strides_of(access.tensor))
            step = offset.coefficient(stage.reduced[-1])
            if step != 0:
                streams[access.tensor, offset] = element_bytes(access.tensor.element), step
    return list(streams.values())


def _choose_rows(nest: Nest, stage: NestStage) -> None:
    row, lane = stage.reduced[-1], stage.parallel[-1]
    if isinstance(lane.extent, int) and lane.extent <= NARROW and _has_sums(stage):
        return  # the loop over rows is the innermost one: see emit.few_columns
    streams = _streams(nest, stage)
    if not streams or _is_stored_by_rows(nest, stage):
        return
    rows = min(_ROWS, _STREAMS // len(streams))
    if rows < 2 or (isinstance(row.extent, int) and row.extent < rows):
        return
    is_divided = nest.chunks is not None and nest.chunks.choices[0].loop is lane
    if is_divided or any(step != lane.extent for _, step in streams):
        stage.rows = rows  # one row does not follow the other in memory
        return
    accumulators = lane.extent * _bytes_of_accumulators(stage)
    nbytes = _bytes_read(nest, stage, lane.extent)
    cached = _CACHED if sum(op.cost for op in stage.members) <= _CACHED_COST else 0
    alone = (accumulators, _FEW_ACCUMULATORS), (nbytes, cached)
    is_more, is_read = (s > most if isinstance(s, int) else None for s, most in alone)
    if is_more or is_read is False:
        stage.rows = rows
    elif is_more is None or is_read is None:
        stage.rows, stage.alone = rows, alone


def _has_sums(stage: NestStage) -> bool:
    combiners = [c for op in stage.reductions for c in op.combiners]
    return any(c is not None and c.is_float_sum for c in combiners)


def _is_stored_by_rows(nest: Nest, stage: NestStage) -> bool:
    """True if a stage stores something for each row."""
    return any(
        stage.reduced[-1] is nest.group.loops[op][k]
        for op in stage.members
        for tensor in op.outputs
        if tensor.buffer is not None
        for k in op.axes[tensor.number]
    )
