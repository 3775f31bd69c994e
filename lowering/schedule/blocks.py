"""Row blocks: two products, and the nest between them, take a block of rows at a time.

In attention, the scores of all queries and keys are by far the largest array: the first product
makes them, a nest turns each row into weights, and the second product multiplies these by the
values. Where each row of the second product's left operand depends on the same row of the first
product's result alone, the three run for `ROWS` rows or more at a time. The scores and the weights
of one block stay in cache, and the workspace has room for the blocks that are computed at the same
time.

The rows of a block follow from sizes alone, so the number of threads does not change the bits of
results. Few rows would cost time: the library packs the right operands anew in each call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .affine import AffineIndex
from .block_steps import BlockStep, Window, is_read_outside, must_wait
from .graph import Compute, Product, Tensor
from .groups import Aligned, Group, Grouper, Loop, loop_index, stored_roots
from .memory import element_bytes, reshape_root

if TYPE_CHECKING:
    from .nests import Nest

ROWS = 128  # of a block, or a multiple
_PER_BLOCK = 128  # multiplications per element of a first product that `ROWS` rows suffice for
LEAST = 1 << 20  # bytes of a first product's whole result; smaller ones stay in cache anyway
WIDEST = 384  # multiplications per element of that result, in both products; more cost more than
# memory traffic, and their right operands leave no cache to the rows of a block


@dataclass(eq=False)
class Blocks(BlockStep):
    """Two products and the nest between them, as one step.

    Attributes:
        first: the product whose result is never stored as a whole.
        group: what computes the left operand of ``second``; None = it is the result of ``first``.
        second: the product that reads it.
        aligned: the loops of ``group`` that blocks divide.
    """

    first: Product
    group: Group | None
    second: Product
    aligned: Aligned | None = None

    @property
    def parts(self) -> list[Group | Product]:
        return [self.first, *([] if self.group is None else [self.group]), self.second]

    @property
    def block_rows(self) -> int:
        return _height(self.first, self.second)

    @property
    def rows(self) -> Dim:
        return self.second.output.dims[-2]

    @property
    def matrices(self) -> Dim:
        return ix.product(self.second.output.dims[:-2])

    @property
    def nest(self) -> Nest | None:
        """The loops of ``group``."""
        return None if self.group is None else self.nests[self.group]


def form_blocks(grouper: Grouper) -> None:
    """Join products that can run in blocks of rows, with what stands between them."""
    for second in [s for s in grouper.steps if isinstance(s, Product)]:
        blocks = next((b for b in _candidates(second, grouper) if _is_possible(b, grouper)), None)
        if blocks is not None:
            if blocks.group is not None:
                blocks.group.aligned = blocks.aligned
            grouper.replace(blocks.parts, blocks)


def _candidates(second: Product, grouper: Grouper) -> Iterator[Blocks]:
    """The ways to join a product with those from which its left operand is made."""
    result = _left_root(second) if is_plain(second) else None
    home = None if result is None else grouper.home.get(result)
    if isinstance(home, Product):
        yield Blocks(home, None, second, windows=[Window([home.output], _height(home, second))])
    elif isinstance(home, Group) and result is not None:
        is_whole = is_read_outside(result, [home, second], grouper)
        for first in dict.fromkeys(map(grouper.home.get, grouper.reads(home))):
            if not isinstance(first, Product) or not is_plain(first):
                continue  # of a vector there are no rows
            aligned = _aligned(home, first, result, grouper)
            if aligned is not None:
                windowed = [first.output, *([] if is_whole else [result])]
                windows = [Window([tensor], _height(first, second)) for tensor in windowed]
                yield Blocks(first, home, second, aligned, windows=windows)


def _is_possible(blocks: Blocks, grouper: Grouper) -> bool:
    """True if nothing needs more of a block's results than its rows."""
    first, second = blocks.first, blocks.second
    if not is_plain(first) or first.kind != second.kind or not _is_worth(blocks):
        return False
    if first.output.dims[:-1] != second.left.dims[:-1]:
        return False
    *inner, _ = blocks.parts
    if is_read_outside(first.output, blocks.parts, grouper):
        return False
    if any(grouper.home.get(root) in inner for root in stored_roots(second.right)):
        return False
    return not must_wait(blocks, grouper)


def is_plain(op: Product) -> bool:
    added = (op.init, op.bias, op.halves)
    return op.kind in ("matmul", "batch_matmul") and all(part is None for part in added)


def _is_worth(blocks: Blocks) -> bool:
    """False if a result is known to be small, to have one row, or to take many multiplications.

    How many they are may not be known: those of two matrices are many, as of layers and chains of
    products, unless rows are reduced in between, as for weights of attention.
    """
    first, second, group = blocks.first, blocks.second, blocks.group
    size = ix.product(first.output.dims) * element_bytes(first.output.element)
    width = _width(first, second)
    is_small = isinstance(size, int) and size < LEAST
    is_wide = isinstance(width, int) and width > WIDEST
    if not isinstance(width, int) and first.kind == "matmul":
        is_wide = group is None or not any(op.is_reduction for op in group.members)
    return not (is_small or is_wide or first.output.dims[-2] == 1)


def _width(first: Product, second: Product) -> Dim:
    """Multiplications of both products per element of the first one's result."""
    return first.left.dims[-1] + second.output.dims[-1]


def _height(first: Product, second: Product) -> int:
    """Rows of a block: the wider the right operands of matrices, the more it takes to pack them.

    A single matrix has fewer blocks for threads to share. As a whole, it would run in chunks of
    `ROWS` rows as well.
    """
    width = _width(first, second)
    if first.kind != "batch_matmul" or not isinstance(width, int):
        return ROWS
    return ROWS * max(width // _PER_BLOCK, 1)


def _left_root(second: Product) -> Tensor | None:
    """The computed tensor whose rows are those of the left operand; None = they are others."""
    left, (tensor, offset) = second.left, second.left_view
    root = reshape_root(tensor)
    if offset != ix.over_axes(ix.row_major(left.dims)) or root.dims[-2:] != left.dims[-2:]:
        return None
    return root if ix.product(root.dims) == ix.product(left.dims) else None


# --- rows of a nest ----------------------------------------------------------------------------


def _aligned(group: Group, first: Product, result: Tensor, grouper: Grouper) -> Aligned | None:
    """The loops of a group over the rows of ``first``, of which ``result`` has the same rows."""
    if group.lane is not None or any(op.placed or op.partial for op in group.members):
        return None
    candidates: set[Aligned | None] = set()
    for op in group.members:
        for access in grouper.accesses[op]:
            if first.output in stored_roots(access.tensor):
                index = None
                if access.tensor is first.output and not access.reinterpreted and access.index:
                    index = group.index_of(op, access.index)
                candidates.add(None if index is None else loops_of_rows(index, first.output.dims, group.outer))
    if len(candidates) != 1:
        return None
    (aligned,) = candidates
    if aligned is None:
        return None
    around = {*aligned.batch, aligned.rows}
    if not around <= set(group.outer) or any(group.reduced(op) & around for op in group.members):
        return None
    return aligned if _axes(group, result) == [*aligned.batch, aligned.rows] else None


def loops_of_rows(index: Sequence[AffineIndex], dims: Sequence[Dim], outer: Sequence[Loop]) -> Aligned | None:
    """The loops, among ``outer``, that the index of an element of an array of these sizes follows.

    The array has the axes matrix, row and column, or the last two of these.
    """
    *batch, rows, _ = index
    row = rows.single
    if not isinstance(row, Loop) or row.extent != dims[-2]:
        return None
    loops: list[Loop] = []
    for expr in batch:
        if expr.const != 0:
            return None
        loops = [loop for loop in outer if loop in expr.terms]
        strides = dict(zip(loops, ix.row_major([g.extent for g in loops]), strict=True))
        if expr.terms != strides or ix.product(g.extent for g in loops) != dims[0]:
            return None
    return None if row in loops else Aligned(tuple(loops), row)


def _axes(group: Group, result: Tensor) -> list[Loop]:
    """The loops along the axes of a result of the group, without columns and axes of size 1."""
    producer = result.producer
    number = result.number
    loops = [group.loops[producer][k] for k in producer.axes[number][:-1]]  # type: ignore[index,union-attr]
    return [loop for loop in loops if loop.extent != 1]


# --- memory of a block -------------------------------------------------------------------------


def share_window(step: Blocks, grouper: Grouper) -> None:
    """Let the nest write its result onto the rows that it reads, if it reads no element later.

    A row is read and written by one iteration of the nest. Its elements may be read in stages
    before the one that writes them, or by the writer itself.
    """
    nest = step.nest
    if nest is None or len(step.windows) < 2:
        return
    group, source = nest.group, step.first.output
    result = step.windows[1].tensors[0]
    writer = result.producer
    assert isinstance(writer, Compute)
    if source.element != result.element or source.dims[-2:] != result.dims[-2:]:
        return
    if writer.is_reduction or not nest.inner(writer):
        return
    *_, column = (loop_index(group.loops[writer][k]) for k in writer.axes[result.number])
    for op in group.members:
        is_before = bool(nest.inner(op)) and nest.place[op] < nest.place[writer]
        for access in grouper.accesses[op]:
            if access.tensor is result:
                return
            if access.tensor is source and not is_before:
                assert access.index is not None, "`_aligned` has seen it"
                if op is not writer or group.index_of(op, access.index)[-1] != column:
                    return
    step.windows[0].tensors.append(result)
    del step.windows[1]
