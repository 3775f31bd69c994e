"""The reader of TorchScript: inlined graphs of `torch.jit` as plain nodes.

Modules disappear: their parameters and buffers are constants, arrays that share torch's memory, and so
are their other attributes. Attributes that a graph assigns are threaded through its blocks as values, so
that nothing of it has an effect but in-place operators; buffers to which these write are inputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ....errors import Loc, TraceError
from ..foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, Operand, ValueRef
from ..torch_values import numpy_dtype, shared_array
from .named_tuples import result_shape
from .script_graph import ScriptGraph, attribute, parameters_of
from .script_nodes import (
    is_changing,
    number_of,
    operator_name,
    place_of,
    schema_of,
    statistics_of,
    walk,
    written_values,
)

_DROPPED = frozenset({"device", "layout", "pin_memory", "non_blocking", "generator", "requires_grad"})
_UNINITIALIZED = "uninitialized"
_OBJECTS = frozenset({"ClassType", "InterfaceType"})


@dataclass(frozen=True, slots=True)
class _Object:
    """A module, by its path from the one whose method is read."""

    path: str

    def at(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name


def read_script(function: Any, module: Any, name: str, source: str) -> ScriptGraph:
    """A `torch.jit.ScriptFunction`, or a method of a `torch.jit.ScriptModule`, as a graph.

    Args:
        function: has ``inlined_graph`` and ``schema``.
        module: whose method it is; None = a function.
        name: of the function that it becomes.
        source: what it is, for users.

    Raises TraceError for attributes of classes that are no modules, and tensors that no array can be.
    """
    return _ScriptReader(function, module).read(name, source)


class _ScriptReader:
    """One reading.

    Args:
        function: what is read.
        module: whose method it is.
    """

    def __init__(self, function: Any, module: Any) -> None:
        self._function, self._module = function, module
        self._graph = function.inlined_graph  # nodes live as long as it does
        self._numbers = 0
        self._values: dict[str, Operand | _Object] = {}
        self._constants: dict[int, np.ndarray] = {}
        self._tensors: dict[str, int] = {}
        self._attributes: dict[str, Any] = {}
        self._paths: dict[int, tuple[str, Any]] | None = None
        self._buffers: dict[str, int] = {}  # to which something writes
        self._current: dict[str, Operand] = {}  # what attributes hold that the graph assigns
        self._grad_mode: bool | None = None
        self._requires: dict[str, bool] = {}
        self._written = written_values(self._graph)

    def read(self, name: str, source: str) -> ScriptGraph:
        """The whole function."""
        values = list(self._graph.inputs())
        if self._module is not None:
            self._values[values.pop(0).debugName()] = _Object("")
        inputs = [self._new(value) for value in values]
        nodes: list[ForeignNode] = []
        for value in values:
            self._in_memory(value, nodes)
        state = list(dict.fromkeys((*self._assigned(self._graph), *self._changed_containers())))
        self._buffers = {path: self._number() for path in self._written_attributes() if path not in state}
        initial = {path: self._number() for path in state}
        self._current = {path: ValueRef(number) for path, number in initial.items()}
        self._read_nodes(self._graph, nodes)
        outputs = [self._operand(value) for value in self._graph.outputs()]
        result = outputs[0] if len(outputs) == 1 else tuple(outputs)
        body = ForeignBlock(
            (*inputs, *self._buffers.values(), *initial.values()),
            nodes,
            (result, *(self._current[path] for path in state)),
        )
        parameters = parameters_of(self._function.schema, self._module is not None, len(values))
        shapes = tuple(result_shape(value.type()) for value in self._graph.outputs())
        names = (*(p.name for p in parameters), *_names("buffer", self._buffers), *_names("state", state))
        return ScriptGraph(
            ForeignGraph(name, body, names, self._constants, source),
            parameters,
            self._attributes,
            tuple(self._buffers),
            tuple(state),
            self._tensors,
            shapes[0] if len(shapes) == 1 else ("tuple", shapes),
            self._grad_mode,
            self._requires,
            any(node.kind() in ("aten::__is__", "aten::__isnot__") for node in walk(self._graph)),
            tuple([k for k, value in enumerate(values) if value.debugName() in self._written]),
        )

    # --- values ---------------------------------------------------------------------------------

    def _number(self) -> int:
        self._numbers += 1
        return self._numbers - 1

    def _new(self, value: Any) -> int:
        number = self._number()
        self._values[value.debugName()] = ValueRef(number)
        return number

    def _operand(self, value: Any) -> Operand:
        operand = self._values[value.debugName()]
        if isinstance(operand, _Object):
            raise TraceError(f"the module {operand.path or 'itself'} is used as a value", loc=place_of(value.node()))
        return operand

    def _constant(self, value: Any, nodes: list[ForeignNode], loc: Loc | None) -> Operand:
        """A plain operand for what torch's bindings make of a constant or an attribute."""
        if type(value) in (list, tuple):
            return tuple(self._constant(part, nodes, loc) for part in value)
        if isinstance(value, dict):
            parts = [self._constant(part, nodes, loc) for item in value.items() for part in item]
            number = self._number()
            nodes.append(ForeignNode("prim::DictConstruct", tuple(parts), {}, (number,), loc=loc))
            return ValueRef(number)
        if _is_tensor(value):
            path = self._path_of(value)
            if path in self._buffers or path in self._tensors:
                return ValueRef(self._buffers[path] if path in self._buffers else self._tensors[path])
            return self._tensor(value, path)
        if value is None or type(value) in (bool, int, float, complex, str):
            return value
        if type(value).__name__ == "device":
            return str(value)
        raise TraceError(f"the graph has a constant of type {type(value).__name__}", loc=loc)

    def _tensor(self, tensor: Any, path: str | None) -> ValueRef:
        """A new constant, for what the module has there; None = it is none of the module's."""
        number = self._number()
        self._constants[number] = shared_array(tensor)
        if path is not None:
            self._tensors[path] = number
        return ValueRef(number)

    def _path_of(self, tensor: Any) -> str | None:
        """The path of a parameter or buffer, to which lists of the module may lead as well; None for other tensors."""
        if self._paths is None:
            named = [] if self._module is None else [*self._module.named_parameters(), *self._module.named_buffers()]
            self._paths = {id(tensor): (path, tensor) for path, tensor in named}
        entry = self._paths.get(id(tensor))
        return None if entry is None else entry[0]

    def _in_memory(self, value: Any, nodes: list[ForeignNode]) -> None:
        """Have a tensor that in-place operators write be an array, though it has no axes."""
        if value.debugName() in self._written:
            old, new = self._values[value.debugName()], self._new(value)
            nodes.append(ForeignNode("prim::InMemory", (old,), {}, (new,), loc=place_of(value.node())))

    # --- nodes ----------------------------------------------------------------------------------

    def _read_nodes(self, block: Any, nodes: list[ForeignNode]) -> None:
        for node in block.nodes():
            read = getattr(self, "_" + node.kind().replace("::", "_"), self._node)
            read(node, nodes)
            if node.kind() not in ("prim::Constant", "prim::GetAttr"):
                for value in node.outputs():
                    self._in_memory(value, nodes)

    def _prim_Constant(self, node: Any, nodes: list[ForeignNode]) -> None:
        value = node.output()
        kind = value.type().kind()
        if kind == "NoneType":
            self._values[value.debugName()] = None
        elif kind == "FunctionType":
            self._values[value.debugName()] = str(value.type())
        else:
            self._values[value.debugName()] = self._constant(value.toIValue(), nodes, place_of(node))

    def _prim_Uninitialized(self, node: Any, nodes: list[ForeignNode]) -> None:
        self._append(nodes, node, "prim::Uninitialized", ())

    def _prim_isinstance(self, node: Any, nodes: list[ForeignNode]) -> None:
        kinds = tuple(type_.annotation_str for type_ in node.tys("types"))
        self._append(nodes, node, "prim::isinstance", (self._operand(node.input()), kinds))

    def _prim_TupleSlice(self, node: Any, nodes: list[ForeignNode]) -> None:
        self._append(nodes, node, "prim::TupleSlice", (self._operand(node.input()), node.i("beg"), node.i("end")))

    def _prim_GetAttr(self, node: Any, nodes: list[ForeignNode]) -> None:
        holder = self._holder(node)
        path, value = holder.at(node.s("name")), node.output()
        name = value.debugName()
        if path in self._current:
            self._values[name] = self._current[path]
        elif value.type().kind() in _OBJECTS:
            if not hasattr(attribute(self._module, path), "named_modules"):
                raise TraceError(f"{path} is an object of {value.type()}, a class of the user's", loc=place_of(node))
            self._values[name] = _Object(path)
        else:
            self._values[name] = self._attribute(path, nodes, place_of(node))

    def _attribute(self, path: str, nodes: list[ForeignNode], loc: Loc | None) -> Operand:
        """What the module has: a parameter or buffer, or another attribute."""
        if path in self._buffers:
            return ValueRef(self._buffers[path])
        if path in self._tensors:
            return ValueRef(self._tensors[path])
        value = attribute(self._module, path)
        if _is_tensor(value):
            return self._tensor(value, path)
        self._attributes[path] = value
        return self._constant(value, nodes, loc)

    def _prim_SetAttr(self, node: Any, nodes: list[ForeignNode]) -> None:
        path = self._holder(node).at(node.s("name"))
        self._current[path] = self._operand(list(node.inputs())[1])

    def _aten_is_grad_enabled(self, node: Any, nodes: list[ForeignNode]) -> None:
        self._values[node.output().debugName()] = self._gradient_mode()

    def _gradient_mode(self) -> bool:
        import torch

        self._grad_mode = torch.is_grad_enabled()
        return self._grad_mode

    def _prim_requires_grad(self, node: Any, nodes: list[ForeignNode]) -> None:
        """Have the handler know of all parameters that have been read, since lists lead to some."""
        self._requires = {path: attribute(self._module, path).requires_grad for path in self._tensors}
        tensors = tuple(map(ValueRef, self._tensors.values()))
        operands = (self._operand(node.input()), self._gradient_mode(), tensors, tuple(self._requires.values()))
        self._append(nodes, node, "prim::requires_grad", operands)

    def _holder(self, node: Any) -> _Object:
        holder = self._values[next(iter(node.inputs())).debugName()]
        if not isinstance(holder, _Object):
            raise TraceError(f"{node.kind()} of an object that is no module", loc=place_of(node))
        return holder

    def _prim_If(self, node: Any, nodes: list[ForeignNode]) -> None:
        condition = self._operand(node.input())
        paths = self._assigned(node)
        before, blocks = self._current, []
        for block in node.blocks():
            self._current = dict(before)
            inner: list[ForeignNode] = []
            self._read_nodes(block, inner)
            outputs = (*map(self._operand, block.outputs()), *(self._current[path] for path in paths))
            blocks.append(ForeignBlock((), inner, outputs))
        self._current = before
        self._control(nodes, node, (condition,), tuple(blocks), paths)

    def _prim_Loop(self, node: Any, nodes: list[ForeignNode]) -> None:
        operands = tuple(map(self._operand, node.inputs()))
        paths = self._assigned(node)
        (block,) = node.blocks()
        before = self._current
        numbers = [self._new(value) for value in block.inputs()]
        states = [self._number() for _ in paths]
        self._current = {**before, **{path: ValueRef(n) for path, n in zip(paths, states, strict=True)}}
        inner: list[ForeignNode] = []
        for value in block.inputs():
            self._in_memory(value, inner)
        self._read_nodes(block, inner)
        outputs = (*map(self._operand, block.outputs()), *(self._current[path] for path in paths))
        self._current = before
        body = ForeignBlock((*numbers, *states), inner, outputs)
        initial = tuple(before[path] for path in paths)
        self._control(nodes, node, (*operands, *initial), (body,), paths)

    def _control(
        self, nodes: list[ForeignNode], node: Any, operands: tuple, blocks: tuple[ForeignBlock, ...], paths: list[str]
    ) -> None:
        """Append a statement whose last results are the attributes that it assigns."""
        results = [self._new(value) for value in node.outputs()]
        behind = [self._number() for _ in paths]
        self._current = {**self._current, **{path: ValueRef(n) for path, n in zip(paths, behind, strict=True)}}
        nodes.append(ForeignNode(node.kind(), operands, {}, (*results, *behind), (), blocks, place_of(node)))

    def _assigned(self, holder: Any) -> list[str]:
        """The paths of attributes that the nodes of a graph, or in the blocks of a node, assign."""
        return list(dict.fromkeys(path for node, path in self._accesses(holder) if node.kind() == "prim::SetAttr"))

    def _changed_containers(self) -> list[str]:
        """The paths of lists and dictionaries that the nodes of the graph change."""
        changed = {next(iter(node.inputs())).debugName() for node in walk(self._graph) if is_changing(node)}
        reads = [(n, path) for n, path in self._accesses(self._graph) if n.kind() == "prim::GetAttr"]
        kinds = ("ListType", "DictType")
        return [p for n, p in reads if n.output().debugName() in changed and n.output().type().kind() in kinds]

    def _written_attributes(self) -> list[str]:
        """The paths of tensors to which in-place operators write."""
        statistics = {value.debugName() for node in walk(self._graph) for value in statistics_of(node)}
        reads = [(n, path) for n, path in self._accesses(self._graph) if n.kind() == "prim::GetAttr"]
        paths = [path for n, path in reads if n.output().debugName() in self._written]
        paths += [path for n, path in reads if n.output().debugName() in statistics and self._trains(path)]
        return list(dict.fromkeys(paths))

    def _trains(self, path: str) -> bool:
        """True if the module that has a buffer is in training."""
        holder = path.rpartition(".")[0]
        return bool((attribute(self._module, holder) if holder else self._module).training)

    def _accesses(self, holder: Any) -> Iterator[tuple[Any, str]]:
        """The nodes that read and assign attributes of modules, with the paths of these."""
        objects = dict(self._values)
        for node in walk(holder):
            if node.kind() not in ("prim::GetAttr", "prim::SetAttr"):
                continue
            owner = objects.get(next(iter(node.inputs())).debugName())
            if not isinstance(owner, _Object):
                continue
            path = owner.at(node.s("name"))
            if node.kind() == "prim::GetAttr" and node.output().type().kind() in _OBJECTS:
                objects[node.output().debugName()] = _Object(path)
            else:
                yield node, path

    def _node(self, node: Any, nodes: list[ForeignNode]) -> None:
        kind = node.kind()
        operands = [self._operand(value) for value in node.inputs()]
        schema = schema_of(node)
        if schema is None:
            self._append(nodes, node, kind, tuple(operands))
            return
        if (number := number_of(node, schema)) is not None:
            operands[1] = number
        kept: list[Operand] = []
        named: dict[str, Operand] = {}
        by_name = False
        for argument, operand in zip(schema.arguments, operands, strict=False):
            if argument.name in _DROPPED:
                by_name = True
                continue
            if argument.name == "dtype":
                operand = self._dtype(operand, node, nodes)
            elif argument.name == "memory_format":
                operand = _FORMATS.get(operand) if type(operand) is int else operand
            by_name |= argument.kwarg_only or argument.name == "alpha"  # which some overloads have by place
            if by_name:
                named[argument.name] = operand
            else:
                kept.append(operand)
        kept += operands[len(schema.arguments) :]  # of ``format``
        overload = f".{schema.overload_name}" if schema.overload_name else ""
        self._append(nodes, node, operator_name(kind, schema) + overload, tuple(kept), named)

    def _dtype(self, operand: Operand, node: Any, nodes: list[ForeignNode]) -> Operand:
        """The NumPy dtype in the place of TorchScript's number of one."""
        if operand is None:
            return None
        if type(operand) is int:
            return numpy_dtype(operand)
        number = self._number()
        nodes.append(ForeignNode("prim::NumPyDtype", (operand,), {}, (number,), loc=place_of(node)))
        return ValueRef(number)

    def _append(
        self,
        nodes: list[ForeignNode],
        node: Any,
        op: str,
        operands: tuple[Operand, ...],
        attributes: dict[str, Operand] | None = None,
    ) -> None:
        results = tuple(self._new(value) for value in node.outputs())
        nodes.append(ForeignNode(op, operands, attributes or {}, results, (), (), place_of(node)))


_FORMATS = {0: "contiguous_format", 1: "preserve_format", 2: "channels_last", 3: "channels_last_3d"}


def _is_tensor(value: Any) -> bool:
    return hasattr(value, "layout") and hasattr(value, "detach")


def _names(kind: str, paths: Any) -> list[str]:
    return [f"{kind}_{k}" for k in range(len(paths))]
