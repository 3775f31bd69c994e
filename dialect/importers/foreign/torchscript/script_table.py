"""TorchScript's operators: its own, and those of ATen for all else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..aten.all_aten import ATEN
from ..foreign_graph import ForeignBlock, ForeignNode
from ..operator_table import OperatorTable
from .script_containers import ScriptList, plain


class ScriptTable(OperatorTable):
    """Operators by their names: those of TorchScript with the namespace, those of ATen without."""

    def _inherited(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        return _with_lists(handler)

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
    """A handler of ATen, to which lists are tuples; what it gives several of for one result is a list."""

    @functools.wraps(handler)
    def call(context: Any, *operands: Any, **attributes: Any) -> Any:
        results = handler(context, *map(plain, operands), **{name: plain(value) for name, value in attributes.items()})
        if len(context.node.results) == 1 and type(results) in (tuple, list):
            return ScriptList(results)
        return results

    return call


TORCHSCRIPT = ScriptTable("TorchScript", base=ATEN, home=(f"{__package__}.all_torchscript", "TORCHSCRIPT"))
script = TORCHSCRIPT.register

__all__ = ["TORCHSCRIPT", "ScriptTable", "script"]
