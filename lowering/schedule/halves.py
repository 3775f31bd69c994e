"""Products of f16 and bf16 (*halves*): a library that takes halves needs no copies in f32.

Such a product is lowered to a product of f32 whose operands are converted first. A library that
adds up halves in f32 and rounds once computes the same result from the halves themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mlir import ir

from ...dialect.dataclass import dataclass
from .graph import Compute, Graph, Product, RowMajorReshape, Tensor, definition, results

_HALVES = {"f16": "f16", "i16": "bf16"}  # by storage type
# Bodies of conversions, as `lowering.linalg.scalar_cast` writes them.
_FROM_HALF = {"f16": ["arith.extf"], "bf16": ["arith.extui", "arith.shli", "arith.bitcast"]}
_TO_HALF = {
    "f16": ["arith.truncf"],
    "bf16": [
        "arith.bitcast",
        "arith.shrui",
        "arith.andi",
        "arith.addi",
        "arith.addi",
        "arith.shrui",
        "arith.cmpf",
        "arith.ori",
        "arith.select",
        "arith.trunci",
    ],
}
_UPPER = 16  # a bf16 is the upper bits of an f32


@dataclass(frozen=True)
class Widened:
    """The origin of an f32 tensor that contains converted halves.

    Attributes:
        half: the tensor of halves.
        dtype: ``"f16"`` or ``"bf16"``.
        path: the operations from the conversion (first) to the f32 tensor (last).
    """

    half: Tensor
    dtype: str
    path: tuple[Compute | RowMajorReshape, ...]


def narrow_products(graph: Graph) -> None:
    """Let products read halves directly, and write halves if their result is rounded anyway."""
    for op in [op for op in graph.operations if isinstance(op, Product)]:
        left, right = widened(op.left), widened(op.right)
        if left is None or right is None or left.dtype != right.dtype or op.init is not None:
            continue
        op.halves = left.dtype
        op.left, op.right = narrowed(graph, op, left), narrowed(graph, op, right)
        drop_unused(graph, left.path)
        drop_unused(graph, right.path)
        rounded = rounding(graph, op.output, op.halves)
        if rounded is not None:
            graph.operations.remove(rounded)
            (op.output,) = rounded.outputs
            op.output.producer, op.output.number = op, 0


def widened(tensor: Tensor) -> Widened | None:
    """The origin of an f32 tensor that only converts halves; None for any other tensor."""
    path: list[Compute | RowMajorReshape] = []
    while str(tensor.element) == "f32":
        op = tensor.producer
        if not isinstance(op, (Compute, RowMajorReshape)):
            return None
        path.insert(0, op)
        if isinstance(op, RowMajorReshape):
            tensor = op.source
        elif op.body.view is not None:
            tensor = op.reads[op.body.view].tensor
        elif _is_elementwise(op):
            tensor = op.reads[0].tensor
            dtype = _HALVES.get(str(tensor.element), "")
            if _names(op) != _FROM_HALF.get(dtype):
                return None
            return Widened(tensor, dtype, tuple(path))
        else:
            return None
    return None


def narrowed(graph: Graph, product: Product, found: Widened) -> Tensor:
    """An operand as halves: the same views and reshapes, applied without the conversion."""
    tensor = found.half
    for op in found.path[1:]:
        output = Tensor(results(op)[0].dims, tensor.element)
        if isinstance(op, RowMajorReshape):
            copy: Compute | RowMajorReshape = replace(op, source=tensor, output=output)
        else:
            reads = [replace(r, tensor=tensor) if k == op.body.view else r for k, r in enumerate(op.reads)]
            copy = replace(op, reads=reads, outputs=[output])
        output.producer = copy
        graph.operations.insert(graph.operations.index(product), copy)
        tensor = output
    return tensor


def drop_unused(graph: Graph, path: Sequence[Compute | RowMajorReshape]) -> None:
    """Remove the operations at the end of a chain that no other operation reads."""
    for op in reversed(path):
        uses = graph.uses()
        if op in graph.operations and not any(t in uses for t in results(op)):
            graph.operations.remove(op)


def rounding(graph: Graph, tensor: Tensor, dtype: str | None) -> Compute | None:
    """The operation that rounds an f32 tensor to halves, if it is the tensor's only reader."""
    users = graph.uses().get(tensor, [])
    if dtype is None or len(users) != 1 or not isinstance(users[0], Compute):
        return None
    (op,) = users
    if not _is_elementwise(op) or op.body.block is None or op.body.extracts:
        return None
    names = [view.operation.name for view in op.body.block.operations]
    names = [name for name in names if name != "arith.constant"]
    return op if names == [*_TO_HALF[dtype], "linalg.yield"] else None


def _is_elementwise(op: Compute) -> bool:
    """True if each element depends only on the element at the same index of the one input."""
    if op.is_reduction or op.is_scan or (len(op.reads), len(op.outputs)) != (1, 1):
        return False
    (read,) = op.reads
    same = op.axes[0] == tuple(op.loops) and op.outputs[0].dims == read.tensor.dims
    return same and read.is_elementwise


def _names(op: Compute) -> list[str] | None:
    """Names of a body's operations if they form a chain from the input; None otherwise."""
    if op.body.block is None or op.body.extracts:
        return None
    value = op.body.block.arguments[0]
    names: list[str] = []
    for view in op.body.block.operations:
        inner = view.operation
        if inner.name == "arith.constant":
            continue
        if inner.operands[0] != value:
            return None
        if inner.name == "linalg.yield":
            return names
        others = [definition(v) for v in list(inner.operands)[1:]]
        if not all(o is not None and _is_upper(o) for o in others):
            return None
        names.append(inner.name)
        value = inner.results[0]
    return None


def _is_upper(op: ir.Operation) -> bool:
    return op.name == "arith.constant" and str(op.attributes["value"]).split(" ")[0] == str(_UPPER)
