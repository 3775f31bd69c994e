"""Biases of products: a library that adds the bias while it stores a product saves a memory pass.

A product takes in ``product + bias`` if the bias has one number per column and the product's own
dtype. For a product of halves, it also takes in the rounding that follows the sum.

The sum stays a kernel in three cases. If the product is rounded before the sum, as products of f16
are, the library could not round twice. If the sum need not be in memory, the kernel that uses it
adds the bias at no cost. And for products with a vector, a pass over the result costs little.
"""

from __future__ import annotations

from dataclasses import replace

from ...dialect.dataclass import dataclass
from ...dialect.mlir.rewrite import ops_in
from . import affine as ix
from .access import operand_view
from .graph import Body, Compute, Graph, Product, Read, RowMajorReshape, Tensor
from .halves import drop_unused, narrowed, rounding, widened
from .memory import reshape_root

_KINDS = ("matmul", "batch_matmul")


@dataclass(frozen=True)
class _BiasSum:
    """``product + bias``.

    Attributes:
        op: the addition.
        path: reinterpretations from the product's result to the operand of the addition.
        bias: the other operand, one element per column.
        rounding: the operation that rounds the sum to halves; None = the sum is used as it is.
    """

    op: Compute
    path: tuple[RowMajorReshape, ...]
    bias: Read
    rounding: Compute | None = None

    @property
    def result(self) -> Tensor:
        return (self.rounding or self.op).outputs[0]


def take_in_biases(graph: Graph) -> None:
    """Let products add their biases, where the biased sum is the only use of the product."""
    stored = _stored(graph)
    for product in [op for op in graph.operations if isinstance(op, Product)]:
        sum_ = _sum(graph, product)
        if sum_ is not None and sum_.result not in stored:
            sum_ = _rounded(graph, product, sum_)
        if sum_ is not None and sum_.result in stored:
            _take_in(graph, product, sum_)


def _take_in(graph: Graph, product: Product, sum_: _BiasSum) -> None:
    total = sum_.result
    moved: list[Product | RowMajorReshape] = [product, *sum_.path]
    for op in moved:
        graph.operations.remove(op)
        op.output.element = total.element
    # At the place of the sum, everything that the bias depends on has been computed.
    place = graph.operations.index(sum_.op)
    graph.operations[place : place + 1] = [_vector(product, sum_), *moved]
    moved[-1].output, total.producer, total.number = total, moved[-1], 0
    if sum_.rounding is not None and product.bias is not None:
        graph.operations.remove(sum_.rounding)
        halves = widened(product.bias)
        assert halves is not None, "`_rounded` has seen them"
        product.bias = narrowed(graph, product, halves)
        drop_unused(graph, halves.path)


def _stored(graph: Graph) -> set[Tensor]:
    """Tensors that have to be in memory because of one reader, whatever the other readers are."""
    roots = list(graph.outputs)
    for op in graph.operations:
        if isinstance(op, Product):
            roots += [operand_view(op.left)[0], operand_view(op.right)[0]]
        elif isinstance(op, RowMajorReshape) and op.mapping is None:
            roots.append(op.source)
    return set(map(reshape_root, roots))


def _sum(graph: Graph, product: Product) -> _BiasSum | None:
    """The addition of a bias, if it is the only use of a product; else None."""
    if product.kind not in _KINDS or product.init is not None:
        return None
    uses = graph.uses()
    tensor, path = product.output, list[RowMajorReshape]()
    while True:
        users = uses.get(tensor, [])
        if len(users) != 1:
            return None
        (user,) = users
        if isinstance(user, Compute):
            bias = _bias(user, tensor)
            return None if bias is None else _BiasSum(user, tuple(path), bias)
        # A row-major reshape keeps the columns if the last axis keeps its size.
        if not isinstance(user, RowMajorReshape) or user.output.dims[-1:] != product.output.dims[-1:]:
            return None
        path.append(user)
        tensor = user.output


def _rounded(graph: Graph, product: Product, sum_: _BiasSum) -> _BiasSum | None:
    """The sum with its rounding to halves, if the bias has that dtype; libraries mix no dtypes."""
    op, halves = rounding(graph, sum_.result, product.halves), widened(sum_.bias.tensor)
    if op is None or halves is None or halves.dtype != product.halves:
        return None
    return replace(sum_, rounding=op)


def _bias(op: Compute, product: Tensor) -> Read | None:
    """The vector that an elementwise addition adds to each row of ``product``; None = no vector."""
    if op.is_reduction or op.is_scan or len(op.reads) != 2 or not _is_addition(op.body):
        return None
    loops = tuple(op.loops)
    if op.axes != [loops] or op.outputs[0].dims != product.dims:
        return None
    places = [k for k, r in enumerate(op.reads) if r.tensor is product and r.is_elementwise]
    if not places:
        return None
    bias = op.reads[1 - places[0]]
    atoms = set().union(*map(ix.atoms_of, bias.index)) if bias.index else set()
    return bias if atoms == {loops[-1]} else None


def _is_addition(body: Body) -> bool:
    """True if a region only adds its two inputs."""
    if body.block is None or body.extracts:
        return False
    first, *rest = ops_in(body.block)
    left, right, _ = body.block.arguments
    return (
        first.name == "arith.addf"
        and list(first.operands) in ([left, right], [right, left])
        and [op.name for op in rest] == ["linalg.yield"]
        and rest[0].operands[0] == first.results[0]
    )


def _vector(product: Product, sum_: _BiasSum) -> Compute:
    """Make the bias a view of rank 1 and an operand of the product."""
    column, dims = sum_.op.loops[-1], product.output.dims[-1:]
    index = ix.substituted(sum_.bias.index, lambda k: ix.atom(0) if k == column else None)
    output = Tensor(dims, sum_.bias.tensor.element)
    bias = Compute(
        f"{product.name}_bias",
        dims,
        (False,),
        [Read(sum_.bias.tensor, index)],
        [None],
        [output],
        [(0,)],
        Body(view=0, used=frozenset([0])),
        combiners=[None],
        location=sum_.op.location,
    )
    output.producer = bias
    product.bias = output
    return bias
