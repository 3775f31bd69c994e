"""The values that a pullback is given, and those that it computes again: a minimum cut in bytes moved.

A value that is kept is written by the forward half and read by the reverse one; a value that is
computed again costs no memory where it fuses with what reads it. So only elementwise ops and views
are computed again. A budget below 1 lets products, reductions and the like be computed again as
well, those with the fewest operations per byte first, until what is kept takes no more than that
share of what it takes without a budget. A smaller budget never keeps more.

The last bits of what is computed again may differ, as products fuse with sums. So what decides is
kept: results of comparisons, and what the reverse half compares for equality, as it does to find
the elements that are the maximum. Of an array that the reverse half sums a gradient to the shape
of, sizes are kept, or an array whose sizes cost nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from ..analysis.alias import SHAPED_LIKE
from ..analysis.min_cut import UNCUT, minimum_cut
from ..dataclass import dataclass
from ..ir.attrs import DYNAMIC
from ..ir.op import Fusion
from ..ir.postorder import postorder
from ..ir.program import Block, Instr
from ..ir.types import TensorType
from ..ops.create import Constant, Full
from ..ops.elementwise.compare import Eq, Ne
from ..ops.elementwise.families import Compare
from ..ops.gradient_ops import CustomResult
from ..ops.linalg.contract import Matmul
from ..ops.manipulation.shape import BroadcastTo
from ..ops.queries import Dim, Size
from ..ops.reductions.reduce import Reduction, reduced_axes
from ..ops.sizes import normalize_axis
from .rerun import nested, values_read

if TYPE_CHECKING:
    from ..importers.numpy.tracing.recorder import Recorder

_SOURCE, _SINK = -1, -2
_TYPICAL = 64  # in place of a size that is not known: what has size 1 for sure is smaller
_FREE = (Constant, Full, Dim, Size)  # made of numbers alone, or of shapes


@dataclass(frozen=True)
class Residuals:
    """The values that pass from a forward half to a reverse one.

    Attributes:
        kept: the values that are kept.
        again: what the reverse half computes from them, each after what it needs.
        bytes: what `kept` takes beyond arguments and what is in memory anyway, for arrays of the
            sizes of the example arguments.
    """

    kept: list[int]
    again: list[Instr]
    bytes: int


def residuals(
    rec: Recorder,
    reverse: Block,
    variables: Collection[int],
    in_memory: Collection[int] = (),
    budget: float = 1.0,
    shaped: Collection[int] = (),
) -> Residuals:
    """The values to keep for a reverse half, which computes others from them.

    The reverse half is changed: it computes these where it first reads them, and may read sizes in
    place of arrays. Values count as large as the example arguments make them.

    Args:
        rec: the trace of the forward half.
        reverse: the reverse half, which reads values of the forward one.
        variables: values that are never computed again.
        in_memory: values that are written whether they are kept or not.
        budget: which part of the bytes that are kept without a budget may be, from 0 to 1. Where
            that cannot be reached, the fewest bytes are kept that can be.
        shaped: values that cost nothing to keep if the reverse half reads their sizes alone.
    """
    _read_sizes(rec, reverse, shaped)
    _read_sizes_alone(rec, reverse)
    cut = _Cut(rec, reverse, variables, in_memory, shaped)
    best = cut.residuals(())
    most = budget * best.bytes
    allowed: list[int] = []
    for value in cut.costly() if budget < 1 else ():
        if best.bytes <= most:
            break
        allowed.append(value)
        candidate = cut.residuals(allowed)
        best = candidate if candidate.bytes < best.bytes else best
    best = _of_shapes(rec, best, shaped)
    _compute(reverse, best.again)
    return best


def _of_shapes(rec: Recorder, cut: Residuals, shaped: Collection[int]) -> Residuals:
    """The same with some of the arrays whose sizes are kept in place of the sizes."""
    sizes = {
        v: instr
        for v in cut.kept
        if (instr := rec.defs.get(v)) is not None and instr.op is Dim and instr.operands[0] in shaped
    }
    values = [instr.operands[0] if (instr := sizes.get(v)) is not None else v for v in cut.kept]
    return Residuals(list(dict.fromkeys(values)), [*sizes.values(), *cut.again], cut.bytes)


def _compute(reverse: Block, again: Sequence[Instr]) -> None:
    """Insert instructions into a block, each before the first one that needs it.

    Sizes are taken as soon as an array is there, as they would else keep it until they are needed.
    """
    makers = {r: instr for instr in again for r in instr.results}
    sizes: dict[int, list[Instr]] = {}
    for instr in again:
        if issubclass(instr.op, (Dim, Size)):
            sizes.setdefault(instr.operands[0], []).append(instr)
    instrs: list[Instr] = []

    def place(wanted: Iterable[int]) -> None:
        for value in postorder(wanted, lambda v: makers[v].operands if v in makers else ()):
            if value in makers:
                maker = makers[value]
                for instr in (maker, *(s for r in maker.results for s in sizes.get(r, ()))):
                    instrs.append(instr)
                    for r in instr.results:
                        del makers[r]

    for instr in reverse.instrs:
        place((*instr.operands, *values_read(*instr.blocks)))
        instrs.append(instr)
    place(reverse.outputs)
    reverse.instrs = instrs


class _Cut:
    """The graph that is cut: of the values that a reverse half may be computed from."""

    def __init__(
        self,
        rec: Recorder,
        reverse: Block,
        variables: Collection[int],
        in_memory: Collection[int],
        shaped: Collection[int],
    ) -> None:
        self.rec, self.in_memory, self.shaped = rec, in_memory, shaped
        self.fixed = {*variables, *_compared(reverse)}
        self.uncounted = {*variables, *in_memory}
        self.read = dict.fromkeys(values_read(reverse))

    def residuals(self, allowed: Collection[int]) -> Residuals:
        """The minimum cut where costly ops may be computed again of which results are allowed."""

        def remade(value: int) -> Instr | None:
            instr = None if value in self.fixed else _remade(self.rec, value)
            return instr if instr is None or value in allowed or _is_cheap(instr) else None

        def operands(value: int) -> Sequence[int]:
            instr = remade(value)
            return () if instr is None else instr.operands

        seen = list(postorder(self.read, operands))
        edges = [(_out(v), _SINK, UNCUT) for v in self.read]
        for value in seen:
            cost = self._memory(value) if allowed else self._moved(value)
            edges.append((_in(value), _out(value), cost))
            if remade(value) is None:
                edges.append((_SOURCE, _in(value), UNCUT))
            edges += [(_out(v), _in(value), UNCUT) for v in operands(value)]
        later = minimum_cut(edges, _SOURCE, _SINK)
        kept = {v: None for v in seen if _out(v) in later and _in(v) not in later}
        again: dict[int, Instr] = {}
        for value in postorder(self.read, lambda v: () if v in kept else operands(v)):
            instr = None if value in kept else remade(value)
            if instr is not None:
                again[id(instr)] = instr
        bytes_ = sum(_bytes(self.rec, v) for v in kept if v not in self.uncounted)
        return Residuals(list(kept), list(again.values()), bytes_)

    def _moved(self, value: int) -> int:
        """The bytes that keeping a value moves; none for sizes that an array in the caller's hands has."""
        definition = self.rec.defs.get(value)
        if definition is not None and definition.op is Dim and definition.operands[0] in self.shaped:
            return 0
        return _cost(self.rec, value, value in self.in_memory)

    def _memory(self, value: int) -> int:
        """The price of keeping a value where memory is short.

        A value that the reverse half reads is there at some time even if it is computed again; what
        it would be computed from takes memory beside it.
        """
        if value in self.uncounted:
            return 1
        size = max(_bytes(self.rec, value), 1)
        return 16 * size if value in self.read else 17 * size

    def costly(self) -> list[int]:
        """The values that a budget lets be computed again, in the order in which it does."""
        ratios = {}

        def operands(value: int) -> Sequence[int]:
            instr = None if value in self.fixed else _remade(self.rec, value)
            return () if instr is None else instr.operands

        for value in postorder(self.read, operands):
            instr = None if value in self.fixed else _remade(self.rec, value)
            if instr is not None and not _is_cheap(instr):
                ratios[value] = _operations(self.rec, instr) / max(_bytes(self.rec, value), 1)
        # Of equal ones every second one goes first, then of the others again: those that are kept
        # are evenly spread, so that few values are computed again at a time.
        places = {v: k for k, v in enumerate(ratios, 1)}
        return sorted(ratios, key=lambda v: (ratios[v], places[v] & -places[v]))


def _read_sizes_alone(rec: Recorder, reverse: Block) -> None:
    """Replace arrays of which a block reads nothing but the shape by zeros of that shape."""
    instrs = list(reverse.walk())
    shapes = {i.operands[1] for i in instrs if _is_like(i)}
    others = {v for i in instrs for v in (i.operands[:1] if _is_like(i) else i.operands)}
    others |= {v for i in instrs for block in i.blocks for v in block.outputs}
    shapes -= others.union(reverse.outputs)
    zeros, zeros_block = {}, Block()
    for value in values_read(reverse):
        hint = rec.hints[value]
        if value in shapes and isinstance(hint, TensorType):
            rank = len(rec.shape(value))
            sizes = [_size(rec, value, axis) for axis in range(rank)]
            with rec.nested(zeros_block):
                (zero,) = rec.emit(Constant, [], {"value": np.zeros((), rec.dtype(value))})
                attrs = {"shape": (DYNAMIC,) * rank}
                zeros[value] = rec.emit(BroadcastTo, [zero, *sizes], attrs)[0]
    for instr in instrs:
        if _is_like(instr):
            x, like = instr.operands
            instr.operands = (x, zeros.get(like, like))
    _compute(reverse, zeros_block.instrs)


def _read_sizes(rec: Recorder, reverse: Block, shaped: Collection[int]) -> None:
    """Have a block read sizes of some arrays of the forward half as numbers, for which no elements have to be kept."""
    sizes: dict[int, int] = {}
    for block in nested(reverse):
        queries = [i for i in block.instrs if i.op is Dim and i.operands[0] in shaped]
        for instr in queries:
            (value,) = instr.operands
            sizes[instr.results[0]] = _size(rec, value, normalize_axis(instr.attrs["axis"], len(rec.shape(value))))
        if queries:
            block.instrs = [i for i in block.instrs if i not in queries]
    reverse.replace(sizes)


def _size(rec: Recorder, value: int, axis: int) -> int:
    """A size of a value of the forward half, if possible of what the value is made of.

    It is taken as soon as that is there: at the end of the half, it would keep the array alive.
    """
    while (definition := rec.defs.get(value)) is not None:
        ranks = [len(rec.shape(v)) for v in definition.operands if isinstance(rec.hints[v], TensorType)]
        attrs = definition.op.full_attrs(definition.attrs)
        if definition.op is Matmul and ranks == [2, 2]:
            value = definition.operands[axis]
        elif issubclass(definition.op, Reduction) and not attrs["keepdims"]:
            reduced = reduced_axes(attrs["axes"], ranks[0])
            axis = [k for k in range(ranks[0]) if k not in reduced][axis]
            (value,) = definition.operands
        else:
            break
    instrs = rec.blocks[-1].instrs
    end = len(instrs)
    size = rec.dim(value, axis)
    moved = instrs[end:]
    place = next((k for k, instr in enumerate(instrs) if instr is definition), None)
    if moved and place is not None:
        instrs[end:] = []
        instrs[place + 1 : place + 1] = moved
    return size


def _is_like(instr: Instr) -> bool:
    return issubclass(instr.op, SHAPED_LIKE)


def _in(value: int) -> int:
    return 2 * value


def _out(value: int) -> int:
    return 2 * value + 1


def _compared(block: Block) -> set[int]:
    """Values that are compared for equality."""
    return {v for i in block.walk() if issubclass(i.op, (Eq, Ne)) for v in i.operands}


def _remade(rec: Recorder, value: int) -> Instr | None:
    """The instruction that computes a value, if it can do so again."""
    definition = rec.defs.get(value)
    if definition is None or definition.blocks or definition.op.writes or definition.op.foreign:
        return None
    if issubclass(definition.op, (CustomResult, Compare)):
        return None
    costly = definition.op.fusion in (Fusion.CONTRACTION, Fusion.REDUCTION)
    return definition if costly or _is_cheap(definition) else None


def _is_cheap(instr: Instr) -> bool:
    """True if an instruction costs no memory where it runs again."""
    return issubclass(instr.op, _FREE) or instr.op.fusion in (Fusion.POINTWISE, Fusion.VIEW)


def _cost(rec: Recorder, value: int, is_written: bool) -> int:
    """Bytes that keeping a value moves: it is read again, and written unless it is in memory."""
    if not isinstance(rec.hints[value], TensorType):
        return 8
    definition = rec.defs.get(value)
    is_written |= definition is not None and definition.op.fusion in (Fusion.CONTRACTION, Fusion.NONE)
    return max(_bytes(rec, value), 1) * (1 if is_written else 2)


def _bytes(rec: Recorder, value: int) -> int:
    """The bytes that a value takes, with `_TYPICAL` for sizes that are not known."""
    hint = rec.hints[value]
    if not isinstance(hint, TensorType):
        return 8
    return _elements(rec, value) * rec.dtype(value).itemsize


def _elements(rec: Recorder, value: int) -> int:
    hint = rec.hints[value]
    shape = hint.shape or () if isinstance(hint, TensorType) else ()
    return prod(d if isinstance(d, int) else _TYPICAL for d in shape)


def _operations(rec: Recorder, instr: Instr) -> float:
    """About how many operations an instruction takes."""
    largest = max((_elements(rec, v) for v in (*instr.operands, *instr.results)), default=1)
    if instr.op.fusion is not Fusion.CONTRACTION:
        return largest
    # Of matrices, (m, k) by (k, n): the root of mk * kn * mn is mkn.
    return 2 * prod(float(_elements(rec, v)) for v in (*instr.operands, *instr.results)) ** 0.5
