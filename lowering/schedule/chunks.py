"""Chunks: which loop of a step several threads share, and how large a part of it one of them takes.

A step runs in chunks if it is estimated to take long enough. The size of a chunk depends on sizes
alone, and never on the number of threads, so that results are the same bits for any number of them.

A loop whose iterations are independent is divided as it is. If reductions run along the loop, each
chunk has accumulators of its own, and these are merged in the order of the chunks.

Where sizes are symbolic, a nest has several loops to choose from (`DividedLoop`): a leading axis that
turns out to be short must not keep the nest on one thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Any

from mlir import ir

from ...dialect.dataclass import dataclass
from ...dialect.ir.size_algebra import sym_max, sym_min
from ...dialect.ir.symbolic import Dim
from ..thread_pool import CHUNK
from . import affine as ix
from .access import accesses
from .block_steps import BlockStep, Window
from .graph import Buffer, Combiner, Compute, Element, Tensor, definition
from .groups import Loop
from .library_calls import Calls
from .memory import buffer_or_none, element_bytes
from .nests import TILE, Nest, Scratch, is_wide

MOST = 64  # chunks of a step
MOST_APART = 16  # chunks that need memory of their own
_SOME = 4  # chunks of places that have an unknown number of numbers each
FEW = 8  # chunks; a loop with fewer is divided if there is no better one
_LINE = 512  # elements of an innermost loop: chunks of fewer would share pages and cache lines
_MERGED = 16  # iterations: merging the accumulators of a chunk of fewer costs too much
_BEHIND = 16  # numbers per place: each chunk of the places reads all of them

# Estimates in picoseconds, for one core of 2023 with AVX-512.
_CYCLE = 10  # a cycle of `Body.cost`, for an element of 4 bytes
BYTE = 10  # a byte that is read or written
MULTIPLY = {4: 20, 8: 40}  # a multiplication and addition of a matrix product, by bytes of element

_IDEMPOTENT = {
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
    "arith.andi",
    "arith.ori",
    "arith.maxsi",
    "arith.minsi",
    "arith.maxui",
    "arith.minui",
}
_NEUTRAL = {"arith.addf": 0, "arith.mulf": 1, "arith.addi": 0, "arith.muli": 1, "arith.xori": 0}


@dataclass(eq=False)
class Merged:
    """A result of a reduction along the divided loop.

    Attributes:
        tensor: the result.
        combiner: how two accumulators become one.
        buffer: the accumulators of all chunks; its first axis is that of the chunks.
    """

    tensor: Tensor
    combiner: Combiner
    buffer: Buffer | None = None

    @property
    def element(self) -> Element:
        return self.tensor.element

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Sizes of the accumulators of one chunk."""
        return self.tensor.dims


@dataclass(eq=False)
class DividedLoop:
    """A loop that may be divided.

    Attributes:
        loop: the loop of the nest; None = the step is a product.
        extent: iterations.
        unit: the iterations of every chunk but the last are a multiple of this number.
        most: largest number of chunks.
        merged: results of reductions along the loop.
        columns: True = the loop is the one over the columns of a product, False = over its rows, or
            over the matrices of a batch.
        calls: how the rows or columns of a product become calls of the library; None = the step is
            none, or a call does not depend on how many iterations it takes.
    """

    loop: Loop | None
    extent: Dim
    unit: int
    most: int = MOST
    merged: list[Merged] = field(default_factory=list)
    columns: bool = False
    calls: Calls | None = None

    @property
    def least(self) -> int:
        """Iterations of a chunk, where the loop has enough of them."""
        return self.unit if self.calls is None else self.calls.least

    @property
    def parts(self) -> int | None:
        """Number of chunks that the loop can have; None = that is not known."""
        return self.extent // self.least if isinstance(self.extent, int) else None


@dataclass(eq=False)
class Chunks:
    """The division of a step's iterations into chunks.

    Attributes:
        choices: the loops that may be divided. Sizes decide on one of them when the step runs: the
            first one that can have `FEW` chunks, else the first one of those with the most; of a
            product, rows if two chunks can have as many as they need.
        work: pairs (picoseconds, sizes): their products add up to the estimated time of the step.
        apart: memory in the workspace, of which each chunk needs its own.
        joined: True = a thread may run any number of neighbouring chunks as one, in the memory of the
            first one: that stays in its cache.
    """

    choices: list[DividedLoop]
    work: tuple[tuple[int, tuple[Dim, ...]], ...]
    apart: list[Scratch | Window] = field(default_factory=list)
    joined: bool = False

    @property
    def grain(self) -> int | None:
        """Iterations of a chunk; None = they depend on sizes that are known only at run time."""
        work, only = 0.0, self.choices[0]
        for cost, dims in self.work:
            size = ix.product(dims)
            if not isinstance(size, int):
                return None
            work += cost * size
        if not isinstance(only.extent, int) or len(self.choices) > 1:
            return None
        parts = int(min(max(work / CHUNK, 1.0), float(only.most)))
        if only.calls is None:
            return _ceiling(_ceiling(only.extent, only.unit), parts) * only.unit
        parts = min(parts, max(only.extent // only.calls.least, 2))
        grain = only.extent // only.unit // parts * only.unit
        lowest = only.calls.lowest(only.unit)
        return None if lowest is None else max(grain, lowest)

    @property
    def count(self) -> int | None:
        """Number of chunks; None = it depends on sizes that are known only at run time."""
        grain, only = self.grain, self.choices[0]
        if grain is None or not isinstance(only.extent, int):
            return None
        lowest = 1 if only.calls is None else only.calls.lowest(only.unit)
        assert lowest is not None, "a grain is known"
        return max((only.extent - lowest) // max(grain, 1) + 1, 1)

    @property
    def of_calls(self) -> bool:
        """True if chunks are calls, or parts of one."""
        return self.choices[0].calls is not None

    @property
    def by_number(self) -> bool:
        """True if chunks are launched by their numbers, so that a thread may take several as one."""
        return self.of_calls or self.joined

    @property
    def is_one(self) -> bool:
        """True if the sizes say that the whole step is one chunk."""
        return self.count == 1

    @property
    def merged(self) -> list[Merged]:
        """Results that are merged if one of some loops is divided."""
        return list(dict.fromkeys(m for choice in self.choices for m in choice.merged))

    @property
    def in_memory(self) -> list[Any]:
        """The objects that may need memory for each chunk: `Merged`, `Scratch` and `Window` objects."""
        return [*self.merged, *self.apart]

    def needing(self, owner: Merged | Scratch | Window) -> list[int]:
        """Numbers of the choices with which one of ``in_memory`` needs memory for each chunk."""
        numbers = range(len(self.choices))
        return [k for k in numbers if owner in self.apart or owner in self.choices[k].merged]

    def dims(self, owner: Merged | Scratch | Window) -> tuple[Dim, ...]:
        """Sizes of the memory of all chunks for one of ``in_memory``."""
        needing = self.needing(owner)
        first = self.choices[needing[0]]
        count: Dim = max(self.choices[k].most for k in needing)
        if len(needing) == 1:
            count = sym_max(sym_min(first.most, first.extent), 1)
        # The loops before the one that is divided are too short for `FEW` chunks.
        short = {c.extent: FEW * c.unit for c in self.choices[: needing[0]]}
        return (count, *(sym_min(d, short[d]) if d in short else d for d in owner.dims))


def nest_chunks(nest: Nest, apart: list[Any]) -> Chunks | None:
    """The division of a nest; None = it is whole. ``apart``: its temporaries in the workspace."""
    choices: list[DividedLoop] = []
    by_tensor: dict[Tensor, Merged] = {}
    for loop in _candidates(nest):
        merged = _merged(nest, loop, by_tensor)
        if merged is None:
            continue
        division = DividedLoop(
            loop, loop.extent, _unit(nest, loop, bool(merged)), _most(nest, loop, bool(merged or apart)), merged
        )
        symbolic, parts = [c for c in choices if c.parts is None], division.parts
        if parts is None or parts >= FEW:
            choices = [*symbolic, division]
        elif not symbolic and (not choices or parts > (choices[0].parts or 0)):
            choices = [division]
        if parts is not None and parts >= FEW:
            break
    if not choices:
        return None
    chunks = Chunks(choices, tuple(_work(nest)), apart)
    return None if chunks.is_one else chunks


def _candidates(nest: Nest) -> Iterator[Loop]:
    """Loops whose iterations are independent, except for reductions; best first."""
    op = nest.placed
    if op is not None:
        loops, last = nest.group.loops[op], nest.stages[0].parallel
        placed = [loops[k] for k in op.placed]
        rows = [g for g in placed if _most(nest, g, False) > 1]
        every = [*nest.outer, *(g for g in last if g not in placed), *rows]
        yield from (g for g in every if g.extent != 1)
        return
    inside: list[Loop] = []
    columns = [g for g in (nest.group.lane,) if g is not None and is_wide(g)]
    if len(nest.stages) == 1 and not nest.tail and not nest.scratch:
        stage = nest.stages[0]
        inside = [*stage.parallel, *stage.reduced]
        if columns:
            inside = [*stage.reduced, *(g for g in stage.parallel if g not in columns)]
    yield from (g for g in (*nest.outer, *inside, *columns) if g.extent != 1)


def _most(nest: Nest, loop: Loop, needs_memory: bool) -> int:
    """Largest number of chunks of a loop."""
    behind = _behind(nest, loop)
    if behind is not None:
        return min(behind // _BEHIND, MOST_APART) if isinstance(behind, int) else _SOME
    return MOST_APART if needs_memory else MOST


def _behind(nest: Nest, loop: Loop) -> Dim | None:
    """Numbers that are added at each place, if a loop is over the places; else None."""
    op = nest.placed
    if op is None:
        return None
    loops = nest.group.loops[op]
    placed = [loops[k] for k in op.placed]
    if loop not in placed:
        return None
    return ix.product(g.extent for g in nest.stages[0].parallel if g not in placed)


def _unit(nest: Nest, loop: Loop, merges: bool) -> int:
    if loop is nest.group.lane and is_wide(loop):
        return TILE
    if nest.tiling is not None and loop in (nest.tiling.rows, nest.tiling.lane):
        return nest.tiling.extent
    innermost = any(loop is (*stage.parallel, *stage.reduced)[-1] for stage in nest.stages)
    if any(stage.in_memory for stage in nest.stages):
        innermost = any(loop is stage.parallel[-1] for stage in nest.stages if stage.parallel)
    return _LINE * 8 if innermost and merges else _LINE if innermost else _MERGED if merges else 1


def _merged(nest: Nest, loop: Loop, by_tensor: dict[Tensor, Merged]) -> list[Merged] | None:
    """The results of reductions along a loop; None = some of them cannot be merged.

    ``by_tensor``: the objects for results that are merged along other loops as well.
    """
    merges = []
    for op in nest.group.members:
        if loop not in nest.group.reduced(op):
            continue
        if op.is_scan or op.extremum:
            return None
        for number, tensor in enumerate(op.outputs):
            combiner = op.combiners[number]
            if combiner is None or combiner.ordered or buffer_or_none(tensor) is None:
                return None
            if not starts_neutral(op.inits[number], combiner):
                return None
            merges.append(by_tensor.setdefault(tensor, Merged(tensor, combiner)))
    return merges


def starts_neutral(init: Tensor | None, combiner: Combiner) -> bool:
    """True if several accumulators of one result may each start with its initial value."""
    if init is not None and combiner.op in _IDEMPOTENT:
        return True
    if init is None or combiner.op not in _NEUTRAL or not isinstance(init.producer, Compute):
        return False
    constant = None if init.producer.body.fill is None else definition(init.producer.body.fill)
    if constant is None or constant.name != "arith.constant":
        return False
    value = constant.attributes["value"]
    kind = ir.FloatAttr if isinstance(value, ir.FloatAttr) else ir.IntegerAttr
    return kind(value).value == _NEUTRAL[combiner.op]


def _work(nest: Nest) -> Iterator[tuple[int, tuple[Dim, ...]]]:
    for op in nest.group.members:
        placed = [nest.group.loops[op][k] for k in op.placed] if nest.places else []
        loops = tuple(g.extent for g in nest.group.loops[op] if g.extent != 1 and g not in placed)
        moved = sum(element_bytes(t.element) for t in op.outputs if t.buffer is not None)
        widest = max((element_bytes(t.element) for t in op.outputs), default=4)
        for access in accesses(op):
            if access.tensor.producer not in nest.group.loops:
                moved += element_bytes(access.tensor.element)
        yield _CYCLE * op.cost * max(widest, 4) // 4 + BYTE * moved, loops


def _ceiling(a: int, b: int) -> int:
    return -(-a // b)


def block_chunks(step: BlockStep) -> Chunks | None:
    """The division of a step in blocks: into whole blocks."""
    work = [one for nest in step.nests.values() for one in _work(nest)]
    for op in step.products:
        cost = MULTIPLY[element_bytes(op.output.element)]
        work.append((cost, (*op.output.dims, op.left.dims[-1])))
    blocks = DividedLoop(None, step.extent, 1, MOST_APART)
    chunks = Chunks([blocks], tuple(work), step.temporaries, joined=True)
    return None if chunks.is_one else chunks
