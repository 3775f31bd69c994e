"""What nodes of TorchScript's graphs say of themselves: operators, schemas, places, what they write to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ....errors import Loc
from ..torch_values import users_place

_TRACED_FRAME = re.compile(r"^(?P<file>/[^\n(]+)\((?P<line>\d+)\): ", re.MULTILINE)


def schema_of(node: Any) -> Any:
    """The schema of an operator; None = it has none, as control flow."""
    import torch

    text = node.schema()
    return None if text == "(no schema)" else torch._C.parse_schema(text)


def operator_name(kind: str, schema: Any) -> str:
    """The name of an operator in the table: those of ATen without the namespace.

    What neither takes nor gives tensors works on Python's values: its name keeps the namespace.
    """
    namespace, _, name = kind.partition("::")
    if namespace != "aten":
        return kind
    types = [argument.type for argument in schema.arguments] + [result.type for result in schema.returns]
    return name if any("Tensor" in str(type_) for type_ in types) else kind


def is_in_place(node: Any) -> bool:
    """True for an operator of ATen that writes to its first operand."""
    name = node.kind().partition("::")[2]
    return node.kind().startswith("aten::") and name.endswith("_") and not name.endswith("__")


def statistics_of(node: Any) -> list[Any]:
    """The running statistics of a batch norm, to which it writes in training."""
    return list(node.inputs())[3:5] if node.kind() == "aten::batch_norm" else []


def has_inputs(node: Any) -> bool:
    """True for a node that takes a value."""
    return next(iter(node.inputs()), None) is not None


def walk(holder: Any) -> Iterator[Any]:
    """The nodes of a graph or block, or in the blocks of a node, those of inner blocks included."""
    for block in holder.blocks() if hasattr(holder, "blocks") else (holder,):
        for node in block.nodes():
            yield node
            yield from walk(node)


def place_of(node: Any) -> Loc | None:
    """The place in the user's model that a node comes from; None = torch has noted none."""
    text = node.sourceRange()
    if not text:
        return None
    frame = next((f for f in _TRACED_FRAME.finditer(text) if "/torch/" not in f["file"]), None)
    return Loc(frame["file"], int(frame["line"])) if frame is not None else users_place(text)


__all__ = ["has_inputs", "is_in_place", "operator_name", "place_of", "schema_of", "statistics_of", "walk"]
