"""Panels: a product whose right operand a nest computes, for a block of columns at a time.

A convolution is the product of its weights with a matrix of windows: a row for each weight of a
filter, a column for each pixel of the result. That matrix is several times as large as the image.
A step of panels computes it for some rows of the result's pixels, multiplies it while it is in the
cache, and runs the nest that reads the result, as a bias and an activation, on the same pixels.
Nothing in this is about convolutions: the right operand may be any array of which trailing axes
are the columns. Or leading ones, behind those of the batch: in the gradient by the weights, the
windows are the columns, and each block has some of the elements of windows for all pixels.

Each block packs the left operand anew in the library. So a block has several times as many columns
as that has rows, and products with few blocks stay apart: threads share these by rows. The columns
of a block follow from sizes alone, so the number of threads does not change the bits of results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ...dialect.dataclass import dataclass
from ...dialect.ir.size_algebra import sym_max
from ...dialect.ir.symbolic import Dim, Sym
from ...dialect.ops.sizes import is_nonnegative
from . import affine as ix
from .affine import AffineIndex
from .block_steps import BlockStep, Window, is_read_outside, must_wait
from .blocks import is_plain, loops_of_rows
from .graph import Product, Tensor, WindowLayout
from .groups import Aligned, Group, Grouper, Loop, stored_roots
from .library_calls import form
from .memory import reshape_root
from .small import is_small

_PER_ROW = 1  # columns of a block, for each row of the left operand
_COLUMNS = 128  # of a block, at least
_TRANSPOSED = 2  # times as many columns, where those of a block are its rows: the library packs these once more
_DEPTH = 128  # elements of a column, at least, where columns are rows: sums of fewer are stores above all
_BLOCKS = 4  # of a step, at least


@dataclass(frozen=True)
class _Axes:
    """The axes of an array that is a right operand.

    Attributes:
        rows: number of the first axis along the columns of the matrix.
        batch: number of the axes that name a matrix.
        width: columns for each index of axis ``rows``.
        transposed: the array has the columns of the matrix in front of its rows.
    """

    rows: int
    batch: int
    width: Dim
    transposed: bool = False


@dataclass(eq=False)
class Panels(BlockStep):
    """A product, the nest that computes its right operand, and the one that reads its result.

    The rows of a block are those of `rows`: each is `width` neighbouring columns of the product.

    Attributes:
        panel: what computes the right operand.
        product: the product.
        epilogue: what reads its result; None = the result is stored.
        axes: those of the right operand.
        height: rows of a block.
        aligned: by group, the loops that blocks divide.
    """

    panel: Group
    product: Product
    epilogue: Group | None
    axes: _Axes
    height: Dim
    aligned: dict[Group, Aligned]

    @property
    def parts(self) -> list[Group | Product]:
        return [self.panel, self.product, *([] if self.epilogue is None else [self.epilogue])]

    @property
    def block_rows(self) -> Dim:
        return self.height

    @property
    def width(self) -> Dim:
        """Columns of the product for each row of a block."""
        return self.axes.width

    @property
    def rows(self) -> Dim:
        (tensor,) = self.panel.outputs
        return tensor.dims[self.axes.rows]

    @property
    def matrices(self) -> Dim:
        return ix.product(self.product.output.dims[:-2])

    def columns_of(self, group: Group) -> Dim:
        """Iterations of the divided loop of a group for each row of a block."""
        return 1 if self.aligned[group].rows.extent == self.rows else self.width


def form_panels(grouper: Grouper) -> None:
    """Join products with the nests that compute their right operands, where that pays."""
    for product in [s for s in grouper.steps if isinstance(s, Product)]:
        step = _panels(product, grouper)
        if step is None or must_wait(step, grouper):
            continue
        with_epilogue = _with_epilogue(step, grouper)
        if with_epilogue is not None and not must_wait(with_epilogue, grouper):
            step = with_epilogue
        for group, aligned in step.aligned.items():
            group.aligned = aligned
        grouper.replace(step.parts, step)


def _panels(product: Product, grouper: Grouper) -> Panels | None:
    """A product and the group that computes its right operand, if they can run in blocks."""
    if not is_plain(product) or form(product) not in ("matmul", "batch_matmul"):
        return None
    if is_small(product):
        return None
    tensor, offset = product.right_view
    root = reshape_root(tensor)
    group = grouper.home.get(root)
    if not isinstance(group, Group) or len(group.members) != 1 or group.outputs != [root]:
        return None
    if is_read_outside(root, [group, product], grouper) or _is_read_twice(product, root):
        return None
    axes = _axes_of(root, product, offset)
    (op,) = group.members
    if axes is None or op.is_reduction or op.is_scan or op.placed or op.partial or group.lane is not None:
        return None
    height = _height(product, root, axes, grouper)
    if height is None:
        return None
    loops = [group.loops[op][loop] for loop in op.axes[0]]
    rows = loops[axes.rows]
    aligned = Aligned(tuple(g for g in loops[: axes.batch] if g.extent != 1), rows)
    if len({*aligned.batch, rows}) != len(aligned.batch) + 1 or rows not in group.outer:
        return None
    depth, columns = product.right.dims[-2], height * axes.width
    above = ix.row_major(root.dims[axes.batch : axes.rows])
    strides = [
        *(0,) * axes.batch,
        *(above if axes.transposed else [s * columns for s in above]),
        *ix.row_major(root.dims[axes.rows :]),
    ]
    layout = WindowLayout(tuple(strides), frozenset([rows]))
    window = Window([root], height, layout, (columns, depth) if axes.transposed else (depth, columns))
    return Panels(group, product, None, axes, height, {group: aligned}, windows=[window])


def _axes_of(root: Tensor, product: Product, offset: AffineIndex) -> _Axes | None:
    """The axes of an array of more dimensions that are those of the right operand; None = none are."""
    *batch, depth, columns = product.right.dims
    dims, matrices = root.dims, ix.product(batch)
    if _is_in_order(offset, product.right.dims):
        for rows in reversed(range(1, len(dims))):
            width = ix.product(dims[rows + 1 :])
            if dims[rows] == 1 or ix.product(dims[rows:]) != columns or width == 0:
                continue
            for first in reversed(range(rows + 1)):
                if ix.product(dims[:first]) == matrices and ix.product(dims[first:rows]) == depth:
                    return _Axes(rows, first, width)
        return None
    turned = (*range(len(batch)), len(batch) + 1, len(batch))
    if not _is_in_order(offset, product.right.dims, turned):
        return None
    for rows, size in enumerate(dims):
        if size == 1 or ix.product(dims[:rows]) != matrices:
            continue
        for last in range(rows + 1, len(dims) + 1):
            width = ix.product(dims[rows + 1 : last])
            if ix.product(dims[rows:last]) == columns and ix.product(dims[last:]) == depth and width != 0:
                return _Axes(rows, rows, width, transposed=True)
        return None
    return None


def _is_in_order(offset: AffineIndex, dims: Sequence[Dim], axes: Sequence[int] | None = None) -> bool:
    """True if elements at this offset follow each other, along the last of some axes first."""
    order = range(len(dims)) if axes is None else axes
    steps = zip(order, ix.row_major([dims[k] for k in order]), strict=True)
    return offset.const == 0 and all(dims[k] == 1 or offset.coefficient(k) == step for k, step in steps)


def _height(product: Product, root: Tensor, axes: _Axes, grouper: Grouper) -> Dim | None:
    """Rows of a block; None = the product is better computed as a whole."""
    *batch, height, _ = product.output.dims
    rows, width = root.dims[axes.rows], axes.width
    sizes = (rows, width, height, product.left.dims[-1])
    if any(_is_opaque(size, grouper) for size in sizes):
        return None
    if axes.transposed and isinstance(product.right.dims[-2], int) and product.right.dims[-2] < _DEPTH:
        return None
    turned = _TRANSPOSED if axes.transposed else 1
    columns = sym_max(turned * _PER_ROW * height, turned * _COLUMNS)
    if rows == 0 or width == 0:
        return None
    blocks = sym_max(ix.ceil_div(rows * width, columns), 1)
    fixed = sym_max(ix.ceil_div(rows, blocks), 1)
    count = ix.product(batch) * ix.ceil_div(rows, fixed)
    return None if isinstance(count, int) and count < _BLOCKS else fixed


def _is_opaque(size: Dim, grouper: Grouper) -> bool:
    """True if a size has no closed form over those of arguments: no memory may depend on it."""
    graph = grouper.graph
    return isinstance(size, Sym) and not size.symbols.isdisjoint((*graph.opaque, *graph.strides))


def _is_read_twice(product: Product, root: Tensor) -> bool:
    """True if the left operand is the right one in another form, or made of it."""
    return root in (reshape_root(product.left_view[0]), *stored_roots(product.left))


# --- the nest that reads the result --------------------------------------------------------------


def _with_epilogue(step: Panels, grouper: Grouper) -> Panels | None:
    """The step with the one group that reads its result, if that can run in blocks, too."""
    product = step.product
    result = product.output
    readers = [s for s in grouper.steps if result in grouper.reads(s)]
    group = readers[0] if len(readers) == 1 else None
    if result.buffer is not None or not isinstance(group, Group):
        return None
    if group.lane is not None or any(op.placed or op.partial for op in group.members):
        return None
    aligned = {_aligned(index, step, group) for index in _indices(group, result, grouper)}
    if len(aligned) != 1:
        return None
    (one,) = aligned
    if one is None:
        return None
    around = {*one.batch, one.rows}
    if not around <= set(group.outer) or any(group.reduced(op) & around for op in group.members):
        return None
    batch = (0,) * (result.rank - 2)
    height, columns = product.output.dims[-2], step.block_rows * step.width
    layout = WindowLayout((*batch, columns, 1), frozenset([one.rows]))
    window = Window([result], step.block_rows, layout, (height, columns))
    both = {**step.aligned, group: one}
    return Panels(step.panel, product, group, step.axes, step.block_rows, both, windows=[*step.windows, window])


def _indices(group: Group, result: Tensor, grouper: Grouper) -> Iterator[Sequence[AffineIndex] | None]:
    """The indices at which a group reads a tensor, over its loops; None = an index is not known."""
    for op in group.members:
        for access in grouper.accesses[op]:
            if result in stored_roots(access.tensor):
                is_known = access.tensor is result and not access.reinterpreted and access.index is not None
                yield group.index_of(op, access.index or ()) if is_known else None


def _aligned(index: Sequence[AffineIndex] | None, step: Panels, group: Group) -> Aligned | None:
    """The loops over matrices and rows of a block that an index of the result follows."""
    if index is None or any(map(ix.has_digits, index)):
        return None
    rows, width = step.rows, step.width
    columns = index[-1]
    low = high = columns.const  # of the part that the other loops make
    divided: Loop | None = None
    for loop, coefficient in columns.terms.items():
        if not isinstance(loop, Loop):
            return None
        if (coefficient, loop.extent) in ((width, rows), (1, rows * width)) and divided is None:
            divided = loop
        elif isinstance(coefficient, int) and coefficient < 0:
            low = low + coefficient * (loop.extent - 1)
        else:
            high = high + coefficient * (loop.extent - 1)
    if divided is None:
        return None
    whole = width if divided.extent == rows else 1
    if not is_nonnegative(low) or not is_nonnegative(whole - 1 - high):
        return None  # what is read is in another row
    if any(divided in i.terms for i in index[:-1]):
        return None
    dims = (*step.product.output.dims[:-2], divided.extent, 1)
    return loops_of_rows([*index[:-2], ix.atom(divided), ix.constant(0)], dims, group.outer)
