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


_CHANGING = frozenset(
    (
        "append",
        "extend",
        "insert",
        "pop",
        "popitem",
        "clear",
        "reverse",
        "remove",
        "sort",
        "_set_item",
        "Delete",
        "add_",
    )
)
# What gives its operands, or parts of them, without computing.
_PASSING = frozenset(
    (
        *("prim::ListConstruct", "prim::ListUnpack", "prim::TupleConstruct", "prim::TupleUnpack", "prim::TupleIndex"),
        *("aten::__getitem__", "prim::unchecked_cast", "prim::unchecked_unwrap_optional", "aten::_unwrap_optional"),
        *(
            "prim::data",
            "prim::DictConstruct",
            "aten::values",
            "aten::items",
            "aten::get",
            "aten::list",
            "aten::dropout",
        ),
    )
)


def is_changing(node: Any) -> bool:
    """True for an operator that changes the list or dictionary that is its first operand."""
    namespace, _, name = node.kind().partition("::")
    return namespace == "aten" and name in _CHANGING


def written_values(graph: Any) -> set[str]:
    """The names of values to whose memory in-place operators write, also through views and other names."""
    nodes = list(walk(graph))[::-1]
    written = {next(iter(node.inputs())).debugName() for node in nodes if is_in_place(node) and has_inputs(node)}
    pairs = [pair for node in nodes for pair in _passed(node)]
    before = -1
    while before != len(written):
        before = len(written)
        written.update(source for result, source in pairs if result in written)
    return written


def _passed(node: Any) -> Iterator[tuple[str, str]]:
    """Pairs of names: a result of a node, or a value within its blocks, and a value that it may be, or be a view of."""
    kind = node.kind()
    results = [value.debugName() for value in node.outputs()]
    sources = [value.debugName() for value in node.inputs()]
    if kind == "prim::If":
        for block in node.blocks():
            yield from zip(results, (value.debugName() for value in block.outputs()), strict=True)
    elif kind == "prim::Loop":
        (block,) = node.blocks()
        within = [value.debugName() for value in block.inputs()][1:]
        behind = [value.debugName() for value in block.outputs()][1:]
        for names in (results, within):
            yield from zip(names, sources[2:], strict=True)
            yield from zip(names, behind, strict=True)
    elif kind in _PASSING:
        yield from ((result, source) for result in results for source in sources)
    elif kind.startswith("aten::") and (schema := schema_of(node)) is not None:
        for argument, source in zip(schema.arguments, sources, strict=False):
            if argument.alias_info is not None:
                yield from ((result, source) for result in results)


# Of these, torch's executor takes a constant without axes in the second place for a number.
_NUMERIC = frozenset(("aten::add", "aten::sub", "aten::mul", "aten::div"))


def number_of(node: Any, schema: Any) -> complex | None:
    """The number that the second operand of a node is to torch's executor; None = it is a tensor.

    A trace has tensors for Python's numbers, which are to count as numbers in promotion; the executor
    makes numbers of all constants that might be such, before it runs a graph.
    """
    if node.kind() not in _NUMERIC or schema.overload_name != "Tensor":
        return None
    _, constant, *scale = node.inputs()
    if constant.node().kind() != "prim::Constant" or any(value.node().kind() != "prim::Constant" for value in scale):
        return None
    value = constant.toIValue()
    return value.item() if hasattr(value, "dim") and value.dim() == 0 else None


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
