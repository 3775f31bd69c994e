"""The reader of ONNX models; beside it, only `inlining` uses the package `onnx`."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ....errors import DTypeError, FileError, IRError, Loc, TraceError
from ....ir.dtypes import dtype_of
from ..foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef
from ..model_texts import Keys, ModelTexts
from ..operator_table import OperatorTable
from .inlining import OWN_DOMAINS, inlined, nodes_of, operator_of, package
from .onnx_texts import UNKNOWN
from .text_prologue import split

_DEFAULTS = 4  # since this version of the format, weights that are inputs can be given others
# Dtypes of quantised weights that no array of a graph has, and those that hold the same numbers.
_NARROW: dict[str, type] = {
    **dict.fromkeys(("INT4", "INT2"), np.int8),
    **dict.fromkeys(("UINT4", "UINT2"), np.uint8),
    **dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT4E2M1"), np.float32),
}
_BROADCASTING = 7  # since this version, binary operators broadcast as NumPy's


def read_model(path: str | os.PathLike, table: OperatorTable) -> ForeignGraph:
    """The graph of a model in a file, with its external weights.

    Raises FileError if it cannot be read, IRError if it is no valid model, and what `graph_of` raises.
    """
    onnx = package()
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
    onnx = package()
    try:
        _check(onnx, model)
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
    return split(_GraphReader(inlined(model, table), table, name).graph())


def _check(onnx: Any, model: Any) -> None:
    """Have the package check a model, which may leave the ranks of its inputs and outputs open, as exporters do."""
    values = [value.type for value in (*model.graph.input, *model.graph.output)]
    tensors = [type_.tensor_type for type_ in values if type_.WhichOneof("value") == "tensor_type"]
    of_any_rank = [tensor for tensor in tensors if not tensor.HasField("shape")]
    for tensor in of_any_rank:
        tensor.shape.SetInParent()  # a scalar's, which says no more to the checker
    try:
        onnx.checker.check_model(model)
    finally:
        for tensor in of_any_rank:
            tensor.ClearField("shape")


def _newest_version(onnx: Any, domain: str) -> int | None:
    """The newest version of a domain's operators that is known; None for a domain that is not."""
    versions = onnx.helper.OP_SET_ID_VERSION_MAP
    return max((version for name, version in versions if name == (domain or "ai.onnx")), default=None)


class _GraphReader:
    """One reading of a model."""

    def __init__(self, model: Any, table: OperatorTable, name: str) -> None:
        self._onnx, self._model, self._name = package(), model, name
        self._versions = {entry.domain: entry.version for entry in model.opset_import}
        self._count = 0
        self._place = 0
        self._constants: dict[int, np.ndarray] = {}
        self._words: dict[str, int] = {}
        self._zipped: dict[str, Any] = {}
        self._dequantised = _taken_only_by(model.graph, "DequantizeLinear")

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
        self._zipped = _zipped(graph)
        nodes += self._read_nodes(graph, names)
        outputs, kinds = [], []
        for value in graph.output:
            result = self._new()
            loc = Loc(f"{self._name}:{value.name}", 0)
            zipped = self._zipped.get(value.name)
            operand = self._operand(value.name if zipped is None else zipped.input[0], names)
            kinds.append(self._result_kind(value, loc))
            attributes = {"texts": True} if kinds[-1] == "texts" else {}
            nodes.append(ForeignNode("profuse.Result", (operand,), attributes, (result,), loc=loc))
            outputs.append(ValueRef(result))
        body = ForeignBlock(tuple(numbers), nodes, tuple(outputs))
        label = _identifier(graph.name or os.path.splitext(self._name)[0], set())
        taken: set[str] = set()
        parameters = tuple(_identifier(value.name, taken) for value in inputs)
        defaults = {x: weights[v.name] for x, v in zip(parameters, inputs, strict=True) if v.name in weights}
        texts = frozenset(x for x, v in zip(parameters, inputs, strict=True) if self._is_text(v))
        source = f"the ONNX model {self._name}"
        return ForeignGraph(
            label, body, parameters, self._constants, source, defaults=defaults, texts=self._texts(texts, tuple(kinds))
        )

    def _texts(self, arguments: frozenset[str], results: tuple[str | Keys | None, ...]) -> ModelTexts | None:
        if not (self._words or arguments or any(results)):
            return None
        self._note_texts([UNKNOWN])
        return ModelTexts(tuple(self._words), dict(self._words), arguments, results)

    def _note_texts(self, texts: Iterable[Any]) -> None:
        """Put texts into the vocabulary; bytes that are no UTF-8 are refused by the operators that get them."""
        for text in texts:
            if isinstance(text, str):
                self._words.setdefault(text, len(self._words))

    def _is_text(self, value: Any) -> bool:
        kind = value.type.WhichOneof("value")
        return kind == "tensor_type" and value.type.tensor_type.elem_type == self._onnx.TensorProto.STRING

    def _result_kind(self, value: Any, loc: Loc) -> str | Keys | None:
        """What an output is; see `ModelTexts.results`."""
        node = self._zipped.get(value.name)
        if node is None:
            return "texts" if self._is_text(value) else None
        attributes = {a.name: self._attribute(a, loc) for a in node.attribute}
        keys = attributes.get("classlabels_int64s") or attributes.get("classlabels_strings")
        if not keys or not all(isinstance(key, (int, str)) for key in keys):
            raise IRError(f"{self._name} has a ZipMap without keys", loc=loc)
        return tuple(keys)

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
            if self._is_text(value):
                attributes["texts"] = True
            else:
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
            loc = Loc(f"{self._name}:{tensor.name}", 0)
            self._constants[number] = self._array(tensor, loc, narrow=tensor.name in self._dequantised)
        for sparse in graph.sparse_initializer:
            names[sparse.values.name] = number = self._new()
            self._constants[number] = self._dense(sparse)

    def _array(self, tensor: Any, loc: Loc | None, *, narrow: bool = False) -> Any:
        """A tensor as an array; one number as NumPy's number, which kernels hold as a constant.

        ``narrow``: nothing but its numbers is looked at, so it may be of a wider dtype.
        """
        if tensor.data_type not in self._onnx.TensorProto.DataType.values():
            self._dtype(tensor.data_type, loc)
        try:
            array = self._onnx.numpy_helper.to_array(tensor)
        except Exception as error:  # of damaged tensors
            raise IRError(f"the tensor {tensor.name!r} cannot be read: {error}", loc=loc) from None
        wide = _NARROW.get(self._onnx.TensorProto.DataType.Name(tensor.data_type)) if narrow else None
        if wide is not None:
            array = array.astype(wide)
        elif array.dtype.kind in "OSU":
            self._note_texts(array.ravel().tolist())
        else:
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
        return [each for node in graph.node if not self._is_zip(node) for each in self._nodes(node, names)]

    def _is_zip(self, node: Any) -> bool:
        return any(name in self._zipped for name in node.output)

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
                is_narrow = not self._dequantised.isdisjoint(node.output)
                attributes[attribute.name] = self._attribute(attribute, loc, narrow=is_narrow)
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
        op = operator_of(node, self._versions)
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

    def _attribute(self, attribute: Any, loc: Loc, *, narrow: bool = False) -> Any:
        """The value of an attribute: numbers, texts, tuples of these, and arrays."""
        kind = attribute.type
        if kind == attribute.STRING:
            text = _text(attribute.s)
            if attribute.name in ("default_string", "value_string"):
                self._note_texts([text])
            return text
        if kind == attribute.STRINGS:
            texts = tuple(map(_text, attribute.strings))
            if attribute.name.endswith(("strings", "string_vocabulary")):
                self._note_texts(texts)
            return texts
        if kind in (attribute.INT, attribute.FLOAT):
            return attribute.i if kind == attribute.INT else attribute.f
        if kind == attribute.INTS:
            return tuple(attribute.ints)
        if kind == attribute.FLOATS:
            return tuple(attribute.floats)
        if kind == attribute.TENSOR:
            return self._array(attribute.t, loc, narrow=narrow)
        if kind == attribute.SPARSE_TENSOR:
            return self._dense(attribute.sparse_tensor)
        if kind == attribute.TYPE_PROTO:
            return attribute.tp.WhichOneof("value")
        raise TraceError(f"an attribute {attribute.name!r} of this kind is not supported", loc=loc)


def _zipped(graph: Any) -> dict[str, Any]:
    """The nodes, by the names of outputs, that make dictionaries of an array and of which nothing else is made."""
    taken = {name for node in nodes_of(graph) for name in node.input}
    outputs = {value.name for value in graph.output} - taken
    zips = [node for node in graph.node if (node.domain, node.op_type) == ("ai.onnx.ml", "ZipMap")]
    return {name: node for node in zips for name in node.output if name in outputs}


def _taken_only_by(graph: Any, op: str) -> set[str]:
    """The names of values that nodes of one operator alone take, and that are no outputs."""
    takers: dict[str, set[str]] = {}
    for node in nodes_of(graph):
        kind = node.op_type if node.domain in OWN_DOMAINS else ""
        for name in node.input:
            takers.setdefault(name, set()).add(kind)
        for attribute in node.attribute:
            for value in attribute.g.output:
                takers.setdefault(value.name, set()).add("")
    outputs = {value.name for value in (*graph.input, *graph.output)}
    return {name for name, kinds in takers.items() if kinds == {op}} - outputs


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
