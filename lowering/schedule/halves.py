"""Products of f16 and bf16: a library that takes halves needs no copies of them in f32.

Lowered, such a product is one of f32 whose operands are converted first. A library that sums halves
up in f32, and rounds once, computes the same from the halves themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from mlir import ir

from . import index as ix
from .graph import Compute, Graph, Product, Reshape, Tensor, definition, results

_HALVES = {"f16": "f16", "i16": "bf16"}  # by storage type
_FROM_HALF = {"f16": ["arith.extf"], "bf16": ["arith.extui", "arith.shli", "arith.bitcast"]}
_UPPER = 16  # a bf16 is the upper bits of an f32


@dataclass(frozen=True)
class _Operand:
    """What an operand in f32 is made from.

    Attributes:
        half: the tensor of halves.
        dtype: ``"f16"`` or ``"bf16"``.
        path: operations from the conversion, which is first, to the operand.
    """

    half: Tensor
    dtype: str
    path: tuple[Compute | Reshape, ...]


def narrow_products(graph: Graph) -> None:
    """Let products of halves read them, and write them where their result is rounded to them."""
    for op in [op for op in graph.operations if isinstance(op, Product)]:
        left, right = _operand(op.left), _operand(op.right)
        if left is None or right is None or left.dtype != right.dtype or op.init is not None:
            continue
        op.halves = left.dtype
        op.left, op.right = _moved(graph, op, left), _moved(graph, op, right)
        users = graph.uses().get(op.output, [])
        if len(users) == 1 and _is_rounding(users[0]):
            graph.operations.remove(users[0])
            op.output = users[0].outputs[0]
            op.output.producer, op.output.number = op, 0
        for step in (*left.path[::-1], *right.path[::-1]):
            uses = graph.uses()
            if step in graph.operations and not any(t in uses for t in results(step)):
                graph.operations.remove(step)


def _operand(tensor: Tensor) -> _Operand | None:
    path: list[Compute | Reshape] = []
    while str(tensor.element) == "f32":
        op = tensor.producer
        if not isinstance(op, (Compute, Reshape)):
            return None
        path.insert(0, op)
        if isinstance(op, Reshape):
            tensor = op.source
        elif op.body.view is not None:
            tensor = op.reads[op.body.view].tensor
        elif _is_elementwise(op):
            tensor = op.reads[0].tensor
            dtype = _HALVES.get(str(tensor.element), "")
            if _names(op) != _FROM_HALF.get(dtype):
                return None
            return _Operand(tensor, dtype, tuple(path))
        else:
            return None
    return None


def _moved(graph: Graph, product: Product, operand: _Operand) -> Tensor:
    """The operand as halves: its views and reinterpretations, without the conversion."""
    tensor = operand.half
    for op in operand.path[1:]:
        output = Tensor(results(op)[0].dims, tensor.element)
        if isinstance(op, Reshape):
            made: Compute | Reshape = replace(op, source=tensor, output=output)
        else:
            reads = [replace(r, tensor=tensor) if k == op.body.view else r
                     for k, r in enumerate(op.reads)]  # fmt: skip
            made = replace(op, reads=reads, outputs=[output])
        output.producer = made
        graph.operations.insert(graph.operations.index(product), made)
        tensor = output
    return tensor


def _is_rounding(op: Any) -> bool:
    return isinstance(op, Compute) and _is_elementwise(op) and _names(op) == ["arith.truncf"] and (
        str(op.outputs[0].element) == "f16"
    )  # fmt: skip


def _is_elementwise(op: Compute) -> bool:
    """Whether each element is computed from the one that has its place in another tensor."""
    if op.is_reduction or op.is_scan or (len(op.reads), len(op.outputs)) != (1, 1):
        return False
    loops = tuple(op.loops)
    return op.reads[0].index == tuple(map(ix.atom, loops)) and op.axes[0] == loops


def _names(op: Compute) -> list[str] | None:
    """Operations of a body that are applied one after the other; None if it is anything else."""
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
