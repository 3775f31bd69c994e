"""The reader of ONNX models: the only module that imports the package `onnx`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ....errors import DTypeError, FileError, IRError, Loc, TraceError
from ....ir.dtypes import dtype_of
from ..foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from ..operator_table import OperatorTable

_OWN_DOMAINS = ("", "ai.onnx")
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
_DEFAULTS = 4  # since this version of the format, weights that are inputs can be given others
_BROADCASTING = 7  # since this version, binary operators broadcast as NumPy's


def read_model(path: str | os.PathLike, table: OperatorTable) -> ForeignGraph:
    """The graph of a model in a file, with its external weights.

    Raises FileError if it cannot be read, IRError if it is no valid model, and what `graph_of` raises.
    """
    onnx = _package()
    name = os.fspath(path)
    try:
        model = onnx.load(name)
    except OSError as error:
        raise FileError(f"cannot read {name}: {error.strerror or error}") from None
    except Exception as error:  # protobuf's errors, and those of external data
        raise FileError(f"{name} is no ONNX model that can be read: {error}") from None
    return graph_of(model, table, os.path.basename(name))


def graph_of(model: Any, table: OperatorTable, name: str = "model.onnx") -> ForeignGraph:
    """The graph of a model in memory.

    Args:
        model: an ``onnx.ModelProto``.
        table: operators that are not in it are replaced by their functions, where they have these.
        name: of the file, for places in messages.

    Functions are inlined. Weights become constants, which are copies. Raises IRError if the model is not valid, and
    TraceError or DTypeError for what no graph can hold, with the place.
    """
    onnx = _package()
    try:
        onnx.checker.check_model(model)
    except Exception as error:  # checker's errors, and those of its C++
        raise IRError(f"{name} is no valid ONNX model: {error}") from None
    for entry in model.opset_import:
        newest = _newest_version(onnx, entry.domain)
        if newest is not None and entry.version > newest:
            raise IRError(
                f"{name} is of version {entry.version} of {entry.domain or 'ONNX'}'s operators; the package onnx "
                f"{onnx.__version__} knows them up to version {newest}",
                hint="install a newer onnx, or export the model with an older opset_version",
            )
    return _GraphReader(_inlined(model, table), table, name).graph()


def _newest_version(onnx: Any, domain: str) -> int | None:
    """The newest version of a domain's operators that is known; None for a domain that is not."""
    versions = onnx.helper.OP_SET_ID_VERSION_MAP
    return max((version for name, version in versions if name == (domain or "ai.onnx")), default=None)


def _package() -> Any:
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


def _inlined(model: Any, table: OperatorTable) -> Any:
    """The model without calls of functions, its own and those of operators that are not in the table."""
    onnx = _package()
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    versions = {entry.domain: entry.version for entry in model.opset_import}
    tried: set[tuple[str, str]] = set()
    while True:
        missing = {
            (node.domain, node.op_type)
            for node in _nodes(model.graph)
            if _operator(node, versions) not in table and _has_function(onnx, node, versions)
        } - tried
        if not missing:
            return model
        tried |= missing
        chosen = [node for node in _nodes(model.graph) if (node.domain, node.op_type) in missing]
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
        changed = (_CHANGED.get(node.op_type, 0) for node in _nodes(function))
        if not any(entry.version < change <= version for change in changed):
            entry.version = version


def _typed(graph: Any) -> Any:
    """All values of a graph, and those of graphs inside of it, that have a type."""
    yield from (*graph.input, *graph.value_info, *graph.output)
    for tensor in graph.initializer:
        yield _package().helper.make_tensor_value_info(tensor.name, tensor.data_type, tensor.dims)
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


def _nodes(graph: Any) -> Any:
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                yield from _nodes(inner)


def _operator(node: Any, versions: Mapping[str, int]) -> str:
    """The name of a node's operator in the table."""
    if node.domain not in _OWN_DOMAINS:
        return f"{node.domain}.{node.op_type}"
    version = versions.get("", versions.get("ai.onnx", 1))
    return f"{node.op_type}-1" if version < _CHANGED.get(node.op_type, 0) else node.op_type


class _GraphReader:
    """One reading of a model."""

    def __init__(self, model: Any, table: OperatorTable, name: str) -> None:
        self._onnx, self._model, self._name = _package(), model, name
        self._versions = {entry.domain: entry.version for entry in model.opset_import}
        self._count = 0
        self._place = 0
        self._constants: dict[int, np.ndarray] = {}

    def graph(self) -> ForeignGraph:
        graph = self._model.graph
        names: dict[str, int] = {}
        nodes: list[ForeignNode] = []
        self._read_weights(graph, names)
        # A weight that is an input, too, is what this input is where a call leaves it out; before this version of the
        # format, all weights were inputs. Inputs that may be left out come last, since Python wants it so.
        weights = dict(names)
        takes_weights = self._model.ir_version >= _DEFAULTS
        inputs = [value for value in graph.input if value.name not in weights or takes_weights]
        inputs.sort(key=lambda value: value.name in weights)
        numbers = [self._argument(value, names, nodes) for value in inputs]
        nodes += self._read_nodes(graph, names)
        outputs = []
        for value in graph.output:
            result = self._new()
            loc = Loc(f"{self._name}:{value.name}", 0)
            nodes.append(ForeignNode("profuse.Result", (self._operand(value.name, names),), {}, (result,), loc=loc))
            outputs.append(ValueRef(result))
        body = ForeignBlock(tuple(numbers), nodes, tuple(outputs))
        label = _identifier(graph.name or os.path.splitext(self._name)[0], set())
        taken: set[str] = set()
        parameters = tuple(_identifier(value.name, taken) for value in inputs)
        defaults = {x: weights[v.name] for x, v in zip(parameters, inputs, strict=True) if v.name in weights}
        return ForeignGraph(label, body, parameters, self._constants, f"the ONNX model {self._name}", defaults=defaults)

    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def _argument(self, value: Any, names: dict[str, int], nodes: list[ForeignNode]) -> int:
        """The number of an argument, whose type is checked by a node."""
        number, checked = self._new(), self._new()
        names[value.name] = checked
        attributes: dict[str, Any] = {"name": value.name}
        kind = value.type.WhichOneof("value")
        loc = Loc(f"{self._name}:{value.name}", 0)
        if kind == "tensor_type":
            tensor = value.type.tensor_type
            attributes["dtype"] = self._dtype(tensor.elem_type, loc)
            if tensor.HasField("shape"):
                attributes["shape"] = tuple(
                    d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in tensor.shape.dim
                )
        nodes.append(ForeignNode("profuse.Argument", (ValueRef(number),), attributes, (checked,), loc=loc))
        return number

    def _dtype(self, element: int, loc: Loc | None) -> np.dtype:
        try:
            return dtype_of(self._onnx.helper.tensor_dtype_to_np_dtype(element)).numpy
        except (DTypeError, KeyError):
            kinds = self._onnx.TensorProto.DataType
            name = kinds.Name(element) if element in kinds.values() else f"unknown elements ({element})"
            raise DTypeError(f"ONNX's tensors of {name} are not supported", loc=loc) from None

    def _read_weights(self, graph: Any, names: dict[str, int]) -> None:
        for tensor in graph.initializer:
            names[tensor.name] = number = self._new()
            self._constants[number] = self._array(tensor, Loc(f"{self._name}:{tensor.name}", 0))
        for sparse in graph.sparse_initializer:
            names[sparse.values.name] = number = self._new()
            self._constants[number] = self._dense(sparse)

    def _array(self, tensor: Any, loc: Loc | None) -> Any:
        """A tensor as an array; one number as NumPy's number, which kernels hold as a constant."""
        if tensor.data_type not in self._onnx.TensorProto.DataType.values():
            self._dtype(tensor.data_type, loc)
        try:
            array = self._onnx.numpy_helper.to_array(tensor)
        except Exception as error:  # of damaged tensors
            raise IRError(f"the tensor {tensor.name!r} cannot be read: {error}", loc=loc) from None
        if array.dtype.kind not in "OSU":  # texts are refused by the operators that get them
            self._dtype(tensor.data_type, loc)
        return array[()] if array.ndim == 0 else array

    def _dense(self, sparse: Any) -> np.ndarray:
        values = self._onnx.numpy_helper.to_array(sparse.values)
        indices = self._onnx.numpy_helper.to_array(sparse.indices)
        dense = np.zeros(tuple(sparse.dims), values.dtype)
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
        return dense

    def _operand(self, name: str, names: Mapping[str, int]) -> Any:
        if not name:
            return None
        if name not in names:
            raise IRError(f"{self._name} uses the value {name!r}, which nothing defines")
        return ValueRef(names[name])

    def _read_nodes(self, graph: Any, names: dict[str, int]) -> list[ForeignNode]:
        return [each for node in graph.node for each in self._nodes(node, names)]

    def _nodes(self, node: Any, names: dict[str, int]) -> list[ForeignNode]:
        """A node, behind those that prepare its operands."""
        self._place += 1
        loc = Loc(f"{self._name}:{node.name or node.op_type}", self._place)
        operands = tuple(self._operand(name, names) for name in node.input)
        attributes: dict[str, Any] = {}
        blocks: list[ForeignBlock] = []
        for attribute in sorted(node.attribute, key=lambda a: (a.name != "then_branch", a.name)):
            if attribute.type == attribute.GRAPH:
                blocks.append(self._block(attribute.g, names))
            else:
                attributes[attribute.name] = self._attribute(attribute, loc)
        version = self._versions.get("", self._versions.get("ai.onnx", 1))
        nodes = []
        if version < _BROADCASTING and attributes.pop("broadcast", 0) and "axis" in attributes:
            # The second operand lies along the axes of the first from this one on.
            aligned = self._new()
            axis = {"axis": attributes.pop("axis")}
            nodes.append(ForeignNode("profuse.Aligned", operands[:2], axis, (aligned,), loc=loc))
            operands = (operands[0], ValueRef(aligned))
        results = []
        for name in node.output:
            results.append(self._new())
            if name:
                names[name] = results[-1]
        op = _operator(node, self._versions)
        nodes.append(ForeignNode(op, operands, attributes, tuple(results), blocks=tuple(blocks), loc=loc))
        return nodes

    def _block(self, graph: Any, outer: Mapping[str, int]) -> ForeignBlock:
        names = dict(outer)
        self._read_weights(graph, names)
        inputs = []
        for value in graph.input:
            inputs.append(self._new())
            names[value.name] = inputs[-1]
        nodes = self._read_nodes(graph, names)
        outputs = tuple(self._operand(value.name, names) for value in graph.output)
        return ForeignBlock(tuple(inputs), nodes, outputs)

    def _attribute(self, attribute: Any, loc: Loc) -> Any:
        """The value of an attribute: numbers, texts, tuples of these, and arrays."""
        kind = attribute.type
        if kind == attribute.STRING:
            return _text(attribute.s)
        if kind == attribute.STRINGS:
            return tuple(map(_text, attribute.strings))
        if kind in (attribute.INT, attribute.FLOAT):
            return attribute.i if kind == attribute.INT else attribute.f
        if kind == attribute.INTS:
            return tuple(attribute.ints)
        if kind == attribute.FLOATS:
            return tuple(attribute.floats)
        if kind == attribute.TENSOR:
            return self._array(attribute.t, loc)
        if kind == attribute.SPARSE_TENSOR:
            return self._dense(attribute.sparse_tensor)
        if kind == attribute.TYPE_PROTO:
            return attribute.tp.WhichOneof("value")
        raise TraceError(f"an attribute {attribute.name!r} of this kind is not supported", loc=loc)


def _text(content: bytes) -> str | bytes:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content


def _identifier(name: str, taken: set[str]) -> str:
    """A name as Python's, which no other has: ``input.1`` is ``input_1``."""
    from keyword import iskeyword

    text = "".join(c if c.isalnum() else "_" for c in name if c.isascii()) or "_"
    if not text.isidentifier() or iskeyword(text):
        text = f"_{text}"
    while text in taken:
        text += "_"
    taken.add(text)
    return text


__all__ = ["graph_of", "read_model"]
