"""Decides which operations are inlined, and lists the tensors that an operation then reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.ir.size_algebra import bounds
from ...dialect.ir.symbolic import Dim
from . import affine as ix
from .affine import AffineIndex, row_major
from .body import CHEAP
from .graph import Compute, Graph, Product, Read, RowMajorReshape, Source, Tensor
from .memory import strides_of

Element = tuple[Tensor, tuple[AffineIndex | None, ...], bool]  # True: read through a window

_LEAST = 2  # of a size that is not known: those that are 1 are literals
_INLINE_LIMIT = 400  # largest cost of an inlined expression; larger ones make too much code


@dataclass(frozen=True)
class Access:
    """A read of a tensor that is not inlined.

    Attributes:
        tensor: the tensor.
        index: one expression per axis, over the loops of the reading operation; None = the body
            computes the index.
        reinterpreted: True if a reshape lets the operation read the tensor with another shape.
        window: the index of a read through a window, of which ``index`` is None: where it is not on
            the axes of the tensor, another element is read there, and not used.
    """

    tensor: Tensor
    index: tuple[AffineIndex, ...] | None
    reinterpreted: bool = False
    window: tuple[AffineIndex, ...] | None = None


def accesses(op: Compute) -> list[Access]:
    """The reads of one operation, including those of all operations that are inlined into it."""
    loops: list[AffineIndex | None] = [ix.atom(k) for k in op.loops]
    result: dict[Access, None] = {}
    # An explicit stack and a set of seen elements: inlined chains may be long and share parts.
    seen: set[Element] = set()
    waiting = list(_reads(op, loops))[::-1]
    while waiting:
        element = waiting.pop()
        if element in seen:
            continue
        seen.add(element)
        tensor, index, window = element
        producer = tensor.producer
        if isinstance(producer, Compute) and not producer.anchor:
            values = producer.loop_values(tensor.number, index)
            waiting += list(_reads(producer, values, window))[::-1]
        elif isinstance(producer, RowMajorReshape) and tensor.buffer is None:
            if producer.mapping is not None and not producer.source.required:
                source = tuple(m.substitute(index.__getitem__) for m in producer.mapping)
                waiting.append((producer.source, source, window))
            else:
                result[Access(producer.source, None, reinterpreted=True)] = None
                result[_access(tensor, index, window)] = None
        elif producer is not None:
            result[_access(tensor, index, window)] = None
    return list(result)


def _access(tensor: Tensor, index: Sequence[AffineIndex | None], window: bool) -> Access:
    indices = _known(index)
    return Access(tensor, None, window=indices) if window else Access(tensor, indices)


def _reads(op: Compute, loops: Sequence[AffineIndex | None], window: bool = False) -> Iterator[Element]:
    """The elements that one iteration of an operation reads.

    ``window``: it is read through a window itself.
    """
    for number, read in enumerate(op.reads):
        if number in op.body.used:
            yield read.tensor, tuple(a.substitute(loops.__getitem__) for a in read.index), window
    for number, init in enumerate(op.inits):
        if init is not None:
            yield init, tuple(loops[k] for k in op.axes[number]), window
    windows = op.body.windows
    for tensor, index in windows:
        yield tensor, tuple(a.substitute(loops.__getitem__) for a in index), True
    for tensor in op.body.extracts:
        if all(tensor is not other for other, _ in windows):
            yield tensor, (None,) * tensor.rank, window


def _known(index: Sequence[AffineIndex | None]) -> tuple[AffineIndex, ...] | None:
    if any(i is None for i in index):
        return None
    return tuple(index)  # type: ignore[arg-type]


def choose_anchors(graph: Graph) -> None:
    """Decide for every operation whether it is inlined into its consumers.

    An operation that is not inlined is an *anchor*: it is computed once, in its own place. Anchors
    are reductions, results of the function, operands of library products and of reinterpretations,
    and expensive expressions with several readers.
    """
    for tensor in graph.outputs:
        require(tensor)
    for op in graph.operations:
        if isinstance(op, Product):
            op.left_view, op.right_view = operand_view(op.left), operand_view(op.right)
            if op.bias is not None:
                op.bias_view = operand_view(op.bias, bias_readable)
            for operand in (*op.read_through_views, op.init):
                if operand is not None:
                    _require_unless_stored(operand)
        elif isinstance(op, RowMajorReshape) and op.mapping is None:
            _require_unless_stored(op.source)
    uses = graph.uses()
    # Only through windows an operation has one place that its readers do not show; most graphs have none.
    has_windows = any(isinstance(op, Compute) and op.body.windows for op in graph.operations)
    costs: dict[Tensor, int] = {}
    saved: dict[Compute, int] = {}  # costs that the sum over operands would count again
    for op in graph.operations:
        if not isinstance(op, Compute):
            continue
        # An operand that is constant along a loop is computed outside of it, so it is not counted.
        reads = [r.tensor for k, r in enumerate(op.reads) if k in op.body.used and _covers(op, r)]
        total = op.body.cost + sum(_cost(t, costs) for t in [*reads, *op.body.extracts])
        op.cost = total = total - saved.get(op, 0)
        place = _only_place(op, uses) if has_windows else None
        op.anchor = (
            op.is_reduction
            or any(t.required for t in op.outputs)
            or total > _INLINE_LIMIT
            or (
                total > CHEAP
                and op.body.view is None
                # A single element is computed once per nest, outside its loops.
                and any(e != 1 for e in op.extents)
                and place is None
                and _recomputed(op, uses)
            )
        )
        if place is not None and not op.anchor:
            user, ways = place
            saved[user] = saved.get(user, 0) + (ways - 1) * total
        for tensor in op.outputs:
            costs[tensor] = 0 if op.anchor else total


def _cost(tensor: Tensor, costs: dict[Tensor, int]) -> int:
    while isinstance(tensor.producer, RowMajorReshape) and tensor.producer.mapping is not None:
        tensor = tensor.producer.source
    return costs.get(tensor, 0)


def _recomputed(op: Compute, uses: dict[Tensor, list]) -> bool:
    """True if inlining would compute some element more than once."""
    readers = [(t, user) for t in op.outputs for user in uses.get(t, ())]
    if len(readers) != 1:
        return True
    tensor, user = readers[0]
    if not isinstance(user, Compute):
        return not (isinstance(user, RowMajorReshape) and user.mapping is not None)
    if tensor in user.body.extracts:
        return True
    for number, read in enumerate(user.reads):
        if read.tensor is tensor and number in user.body.used and (not _covers(user, read) or _overlaps(user, read)):
            return True
    is_seen_through = user.body.view is not None and not any(t.required for t in user.outputs)
    return is_seen_through and _recomputed(user, uses)


def _covers(op: Compute, read: Read) -> bool:
    """True if every iteration reads a different element."""
    return _covered(op, read.index)


def _overlaps(op: Compute, read: Read) -> bool:
    """True if several iterations read the same element, as windows that overlap do.

    A size that is not known counts as more than 1.
    """
    for index in read.index:
        reach = 0.0  # at least, of the loops with smaller coefficients
        loops = [(abs(c), op.extents[g]) for g, c in index.terms.items() if isinstance(g, int) and isinstance(c, int)]
        for coefficient, extent in sorted(loops, key=lambda pair: pair[0]):
            least = bounds(extent, (_LEAST, inf))[0]
            if least > 1 and reach and coefficient <= reach:
                return True
            reach += coefficient * (max(least, 1) - 1)
    return False


def _covered(op: Compute, index: Sequence[AffineIndex]) -> bool:
    atoms = set().union(*map(ix.atoms_of, index)) if index else set()
    return all(loop in atoms or op.extents[loop] == 1 for loop in op.loops)


def _only_place(op: Compute, uses: dict[Tensor, list]) -> tuple[Compute, int] | None:
    """The operation of which each place reads one element, also by windows; in how many ways.

    ``lap[1:] += now[:-1]`` reads an element of ``lap`` as what is added to, and as what stays: the
    place decides which of them counts. Operations with one reader are seen through.
    """
    if len(op.outputs) != 1 or op.is_reduction:
        return None
    ways, windows = 0, False
    places: set[tuple[Compute, tuple[AffineIndex, ...]]] = set()
    tensor = op.outputs[0]
    waiting = [(tensor, tuple(map(ix.atom, range(tensor.rank))))]
    while waiting:
        tensor, index = waiting.pop()
        for user in dict.fromkeys(uses.get(tensor, ())):
            sites = _sites(user, tensor)
            if sites is None:
                return None
            for site, is_window in sites:
                windows |= is_window
                at = ix.substituted(index, site.__getitem__)
                readers = uses.get(user.outputs[0], ())
                if user.is_reduction or user.outputs[0].required or len(readers) != 1:
                    places.add((user, at))
                    ways += 1
                    continue
                axes: dict[Any, AffineIndex] = {g: ix.atom(k) for k, g in enumerate(user.axes[0])}
                waiting.append((user.outputs[0], ix.substituted(at, axes.__getitem__)))
    if not windows or len(places) != 1:
        return None
    ((user, at),) = places
    return (user, ways) if _covered(user, at) else None


def _sites(user: Any, tensor: Tensor) -> list[tuple[tuple[AffineIndex, ...], bool]] | None:
    """The places where an operation reads a tensor, over its loops, each with True if it does so through a window."""
    if not isinstance(user, Compute) or len(user.outputs) != 1 or tensor in user.inits:
        return None
    direct = [(read.index, False) for k, read in enumerate(user.reads) if read.tensor is tensor and k in user.body.used]
    windows = [(index, True) for other, index in user.body.windows if other is tensor]
    return None if tensor in user.body.extracts and not windows else [*direct, *windows]


def require(tensor: Tensor) -> None:
    """Mark a tensor as required in memory; for a reinterpretation, mark its source as well."""
    tensor.required = True
    while isinstance(tensor.producer, RowMajorReshape):
        tensor = tensor.producer.source
        if isinstance(tensor.producer, Source):
            return
        tensor.required = True


def _require_unless_stored(tensor: Tensor) -> None:
    if isinstance(tensor.producer, Source):
        return
    require(tensor)


def operand_view(
    tensor: Tensor, readable: Callable[[Tensor, AffineIndex], bool] | None = None
) -> tuple[Tensor, AffineIndex]:
    """The stored tensor that a product reads for ``tensor``, and an offset in it.

    The offset is in elements, as an expression over the axes of ``tensor``.

    A strided view is read in place if the library can do so, as ``readable`` decides (default:
    `library_readable`). Otherwise the view itself is stored.
    """
    root, index = view_root(tensor)
    offset = ix.linear(index, strides_of(root))
    if root is not tensor and not (readable or library_readable)(tensor, offset):
        root, offset = tensor, ix.over_axes(row_major(tensor.dims))
    return root, offset


def library_readable(tensor: Tensor, offset: AffineIndex) -> bool:
    """True if the last two axes are a matrix with one unit stride and a leading dimension."""
    if any(isinstance(a, ix.Quotient) for a in offset.terms):
        return False
    strides = [offset.coefficient(k) if d != 1 else None for k, d in enumerate(tensor.dims)]
    if tensor.rank == 1:
        return strides[0] is None or _positive(strides[0], 1)
    rows, columns = strides[-2:]
    height, width = tensor.dims[-2:]
    if columns in (None, 1):
        return rows is None or _positive(rows, width)
    return rows in (None, 1) and _positive(columns, height)


def bias_readable(tensor: Tensor, offset: AffineIndex) -> bool:
    """True if the elements of a vector are contiguous."""
    return tensor.dims == (1,) or offset.terms == {0: 1}


def _positive(stride: Dim, least: Dim) -> bool:
    """True if a stride is certainly usable as a leading dimension for rows of this width."""
    if isinstance(stride, int):
        # Rows of unknown width may overlap, as in windows that slide by 1.
        return isinstance(least, int) and stride >= max(least, 1)
    # A product of sizes is the width of some larger array; run-time strides may be anything.
    is_width = all(coefficient > 0 for _, coefficient in stride.terms)
    return is_width and not any(s.startswith("stride") for s in stride.symbols)


def view_root(tensor: Tensor) -> tuple[Tensor, list[AffineIndex]]:
    """The tensor at the end of a chain of views, and its index over the axes of ``tensor``."""
    index: list[AffineIndex] = [ix.atom(k) for k in range(tensor.rank)]
    while True:
        producer = tensor.producer
        if not isinstance(producer, Compute) or producer.body.view is None or tensor.required:
            return tensor, index
        read = producer.reads[producer.body.view]
        loops = producer.loop_values(tensor.number, index)
        tensor, index = read.tensor, list(ix.substituted(read.index, loops.__getitem__))
