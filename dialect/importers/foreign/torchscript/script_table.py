"""TorchScript's operators: its own, and those of ATen for all else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ...numpy.handlers.masks import Masked
from ...numpy.tracing.mutation import is_immutable
from ...numpy.tracing.operators import Recording
from ..aten.all_aten import ATEN
from ..foreign_graph import ForeignBlock, ForeignNode
from ..interpreter import NodeContext
from ..operator_table import OperatorTable
from .script_containers import ScriptList, plain

# Operators whose results may be operands, or views of these, by their schemas; and those of which torch's code says so.
_ALIASING = frozenset(
    (
        *("_conj", "_reshape_alias", "adjoint", "alias", "broadcast_to", "chunk", "conj", "contiguous", "detach"),
        *("diagonal", "dsplit", "expand", "expand_as", "flatten", "hsplit", "imag", "lift_fresh", "linalg_diagonal"),
        *("mH", "mT", "matrix_H", "moveaxis", "movedim", "narrow", "numpy_T", "permute", "positive", "ravel", "real"),
        *("reshape", "reshape_as", "resolve_conj", "resolve_neg", "slice", "split", "split_with_sizes", "squeeze"),
        *("swapaxes", "swapdims", "t", "tensor_split", "to", "transpose", "unflatten", "unfold", "unsqueeze", "view"),
        *("view_as", "view_as_complex", "view_as_real", "vsplit", "select", "unbind"),
        *("alpha_dropout", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_tensors", "conj_physical", "dropout"),
        *("einsum", "feature_alpha_dropout", "feature_dropout", "type_as"),
    )
)
# Of these, those whose result is the operand itself where nothing is to be done, and else another tensor.
_ITSELF = frozenset(("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout"))
# Of these, those whose result is another tensor in any case.
_NEW = frozenset(("transpose", "permute", "unsqueeze", "view", "slice", "select", "t", "swapaxes", "narrow"))


class ScriptTable(OperatorTable):
    """Operators by their names: those of TorchScript with the namespace, those of ATen without."""

    def _inherited(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        return _with_lists(handler)

    def with_rest(self, block: ForeignBlock, place: int) -> ForeignNode | None:
        node, rest = block.nodes[place], block.nodes[place + 1 :]
        if not rest:
            return None
        sides = []
        for side in node.blocks:
            pairs = zip(side.outputs, node.results, strict=True)
            joints = [ForeignNode("prim::unchecked_cast", (output,), {}, (result,)) for output, result in pairs]
            sides.append(ForeignBlock((), [*side.nodes, *joints, *rest], block.outputs))
        numbers = tuple(-1 - k for k in range(len(block.outputs)))  # nobody refers to them
        return ForeignNode(node.op, node.operands, {}, numbers, (), tuple(sides), node.loc)

    def missing(self, block: ForeignBlock) -> list[ForeignNode]:
        """The nodes that run in every call and have no handler.

        Branches are not looked into: a trace takes those alone that its arguments lead to, and most
        of what functions of torch have inlined is for others.
        """
        return [node for node in _always_run(block) if self.find(node.op) is None]


def _always_run(block: ForeignBlock) -> list[ForeignNode]:
    nodes: list[ForeignNode] = []
    for node in block.nodes:
        nodes.append(node)
        if node.op == "prim::Loop":
            nodes += _always_run(node.blocks[0])
    return nodes


def _with_lists(handler: Callable[..., Any]) -> Callable[..., Any]:
    """A handler of ATen, to which lists are tuples; what it gives several of for one result is a list.

    Views are NumPy's in places where torch makes new tensors, to which scripts write.
    """

    @functools.wraps(handler)
    def call(context: Any, *operands: Any, **attributes: Any) -> Any:
        operands = tuple(map(plain, operands))
        results = handler(context, *operands, **{name: plain(value) for name, value in attributes.items()})
        base = context.node.op.partition(".")[0]
        if base not in _ALIASING and not base.endswith("_"):
            results = _apart(results, operands)
        if (base not in _ALIASING and not base.endswith("_")) or base in _NEW:
            _note_new(context, results, operands)
        elif any(results is operand for operand in operands) and base not in _ITSELF:
            context.interpreter.distinct[id(results)] = None  # torch may have made another tensor
        if len(context.node.results) == 1 and type(results) in (tuple, list):
            return ScriptList(results)
        return results

    return call


def _note_new(context: NodeContext, result: Any, operands: tuple[Any, ...]) -> None:
    """Note a tensor that torch makes anew: it is no other one that there is."""
    if hasattr(result, "ndim"):
        is_new = not any(result is operand for operand in operands)
        context.interpreter.distinct[id(result)] = result if is_new else None


def is_distinct(context: NodeContext, value: Any) -> bool:
    """True for a tensor that is the same object as another one where and only where torch's is."""
    distinct = context.interpreter.distinct
    if id(value) in distinct:
        return distinct[id(value)] is value
    return hasattr(value, "ndim") and any(value is argument for argument in context.interpreter.arguments)


def _apart(result: Any, operands: tuple[Any, ...]) -> Any:
    """A result in memory of its own, not in that of an operand."""
    if type(result) in (tuple, list):
        return type(result)(_apart(part, operands) for part in result)
    return np.copy(result) if any(_shares(result, operand) for operand in operands) else result


def _shares(result: Any, operand: Any) -> bool:
    if type(operand) is tuple:
        return any(_shares(result, part) for part in operand)
    if not (hasattr(result, "ndim") and hasattr(operand, "ndim")):
        return False
    if type(result) is Masked:  # whose elements, which a mask picks, are copies
        return result is operand
    if isinstance(result, Recording):
        if not isinstance(operand, Recording) or is_immutable(result):
            return False
        storage = getattr(result, "storage", None)
        return result is operand or (storage is not None and storage is getattr(operand, "storage", None))
    return isinstance(operand, np.ndarray) and np.may_share_memory(result, operand)


TORCHSCRIPT = ScriptTable("TorchScript", base=ATEN, home=(f"{__package__}.all_torchscript", "TORCHSCRIPT"))
script = TORCHSCRIPT.register
