"""Functions of ONNX in models, in whose place come the nodes of their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....errors import FileError
from ..operator_table import OperatorTable

OWN_DOMAINS = ("", "ai.onnx")
# Operators that mean something else since a version of ONNX: older nodes have this suffix.
_CHANGED = {
    "Softmax": 13,
    "LogSoftmax": 13,
    "Hardmax": 13,
    "Reshape": 5,
    "DFT": 20,
    "Dropout": 7,
    "Resize": 11,
    "GroupNormalization": 21,
    "BatchNormalization": 7,
    "Scan": 9,
    "RoiAlign": 16,
    "PRelu": 7,
}


def package() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.inliner
        import onnx.numpy_helper
        import onnx.shape_inference
    except ImportError as error:
        raise FileError(
            f"ONNX models are read by the package onnx, which cannot be imported: {error}",
            hint="pip install 'profuse[onnx]'",
        ) from None
    return onnx


def inlined(model: Any, table: OperatorTable) -> Any:
    """The model without calls of functions, its own and those of operators that are not in the table."""
    onnx = package()
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    versions = {entry.domain: entry.version for entry in model.opset_import}
    tried: set[tuple[str, str]] = set()
    while True:
        missing = {
            (node.domain, node.op_type)
            for node in nodes_of(model.graph)
            if operator_of(node, versions) not in table and _has_function(onnx, node, versions)
        } - tried
        if not missing:
            return model
        tried |= missing
        chosen = [node for node in nodes_of(model.graph) if (node.domain, node.op_type) in missing]
        for node in chosen:
            _complete(onnx, node, versions)
        try:
            model = onnx.inliner.inline_selected_functions(
                model, [*missing], exclude=False, inline_schema_functions=True
            )
        except RuntimeError:  # of the inliner, where optional operands are missing
            model = _with_functions(onnx, model, chosen, versions)
        versions = {entry.domain: entry.version for entry in model.opset_import}


def _complete(onnx: Any, node: Any, versions: Mapping[str, int]) -> None:
    """Give a node the attributes that it leaves at their defaults, which the bodies of functions refer to."""
    schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    names = {attribute.name for attribute in node.attribute}
    for name, attribute in schema.attributes.items():
        if name not in names and attribute.default_value.name:
            node.attribute.append(attribute.default_value)


def _with_functions(onnx: Any, model: Any, chosen: list[Any], versions: Mapping[str, int]) -> Any:
    """The model with these nodes as calls of functions of its own, which are then inlined."""
    types = {value.name: value.type for value in _typed(onnx.shape_inference.infer_shapes(model).graph)}
    for number, node in enumerate(chosen):
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
        operands = [types.get(name, onnx.TypeProto()).SerializeToString() for name in node.input]
        if schema.has_context_dependent_function:
            text = schema.get_context_dependent_function(node.SerializeToString(), operands)
            function = onnx.FunctionProto.FromString(text)
        else:
            function = onnx.FunctionProto()
            function.CopyFrom(schema.function_body)
        _renew(function, versions)
        function.domain, function.name = "profuse.functions", f"{node.op_type}_{number}"
        model.functions.append(function)
        node.domain, node.op_type = function.domain, function.name
    model.opset_import.append(onnx.helper.make_opsetid("profuse.functions", 1))
    return onnx.inliner.inline_local_functions(model)


def _renew(function: Any, versions: Mapping[str, int]) -> None:
    """Give a function the model's version of the operators, without which it is not inlined, if it means the same."""
    for entry in function.opset_import:
        version = versions.get(entry.domain, entry.version)
        changed = (_CHANGED.get(node.op_type, 0) for node in nodes_of(function))
        if not any(entry.version < change <= version for change in changed):
            entry.version = version


def _typed(graph: Any) -> Any:
    """All values of a graph, and those of graphs inside of it, that have a type."""
    yield from (*graph.input, *graph.value_info, *graph.output)
    for tensor in graph.initializer:
        yield package().helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == attribute.GRAPH:
                yield from _typed(attribute.g)


def _has_function(onnx: Any, node: Any, versions: Mapping[str, int]) -> bool:
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(node.domain, 1), node.domain)
    except onnx.defs.SchemaError:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def nodes_of(graph: Any) -> Any:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from nodes_of(inner)


def operator_of(node: Any, versions: Mapping[str, int]) -> str:
    """The name of a node's operator in the table."""
    if node.domain not in OWN_DOMAINS:
        return f"{node.domain}.{node.op_type}"
    version = versions.get("", versions.get("ai.onnx", 1))
    return f"{node.op_type}-1" if version < _CHANGED.get(node.op_type, 0) else node.op_type
