"""Graphs of torch.fx, of ATen and of sizes, as foreign graphs."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch

from ....errors import TraceError
from ..foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ForeignType, Operand, ValueRef
from ..torch_values import DTYPES, numpy_dtype, shared_array, users_place
from .backward_halves import BackwardHalf, backward_halves
from .fx_sizes import PYTHON
from .memory_layout import memory_order

# Operators of several results, and those with the same operands that give the first of them alone.
_FIRST_ALONE = {"max_pool2d_with_indices": "max_pool2d", "max_pool2d_with_indices.default": "max_pool2d"}
# Operators that read memory as it lies, each with the place of its offset among the operands.
_OF_MEMORY = {"as_strided": 3, "as_strided_copy": 3, "as_strided_scatter": 4}
_OF_TORCH = frozenset(("layout", "device", "pin_memory", "non_blocking", "generator"))


def read(module: torch.fx.GraphModule, name: str, source: str, held: int = 0) -> ForeignGraph:
    """The graph of a module.

    Args:
        module: its nodes call operators of ATen and functions of Python on sizes.
        name: of the function that it becomes.
        source: what it is, for users.
        held: how many of its first inputs have the same sizes in all calls, as the caller sees to.

    Tensors that the graph holds are captured; they are not copied. Raises TraceError for nodes of another kind.
    """
    numbers: dict[torch.fx.Node, ValueRef | int] = {}
    inputs: list[int] = []
    parameters: list[str] = []
    nodes: list[ForeignNode] = []
    constants: dict[int, np.ndarray] = {}
    outputs: tuple[Operand, ...] = ()
    sized = _sizes_of_inputs(module)
    halves = {half.joined: half for half in backward_halves(module.graph)}
    inside = {node: half for half in halves.values() for node in (half.slot, *half.nodes)}
    bodies: dict[torch.fx.Node, list[ForeignNode]] = {joined: [] for joined in halves}
    for node in module.graph.nodes:
        if node.op == "output":
            if not inside.keys().isdisjoint(node.all_input_nodes):
                raise TraceError("a function returns what its backward pass has computed")
            result = _operand(node.args[0], numbers)
            outputs = result if isinstance(result, tuple) else (result,)
            continue
        constant = _known_size(node.meta.get("val")) if node.op == "call_function" else None
        if constant is not None:
            numbers[node] = constant
            continue
        if _is_whole_result(node):
            numbers[node] = numbers[node.args[0]]
            continue
        number = len(numbers)
        numbers[node] = ValueRef(number)
        if node.op == "placeholder":
            inputs.append(number)
            parameters.append(f"x{len(inputs) - 1}")
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt) and value.node.expr in sized:
                place, axis = sized[value.node.expr]  # so that what follows from the size knows whose it is
                numbers[node] = ValueRef(-number - 1)
                nodes.append(ForeignNode("sym_size.int", (ValueRef(place), axis), {}, (-number - 1,)))
            if isinstance(value, torch.Tensor):
                is_held = len(inputs) <= held
                numbers[node] = ValueRef(-number - 1)
                nodes.append(
                    ForeignNode("profuse::input", (ValueRef(number), _known_sizes(value), is_held), {}, (-number - 1,))
                )
        elif node.op == "get_attr":
            constants[number] = array = _captured(module, node)
            numbers[node] = ValueRef(-number - 1)
            nodes.append(ForeignNode("profuse::input", (ValueRef(number), array.shape, True), {}, (-number - 1,)))
        elif node in halves:
            nodes.append(_joined_node(halves[node], bodies[node], numbers))
        elif node.op == "call_function" and node in inside and node is inside[node].slot:
            continue  # an argument of the block
        elif node.op == "call_function":
            (bodies[inside[node].joined] if node in inside else nodes).append(
                ForeignNode(
                    _FIRST_ALONE[operator_name(node)] if _first_is_read_alone(node) else operator_name(node),
                    tuple(_operand(x, numbers) for x in node.args),
                    {key: _operand(x, numbers) for key, x in named_operands(node).items()},
                    (number,),
                    (_type(node.meta.get("val")),),
                    loc=users_place(node.meta.get("stack_trace")),
                )
            )
        else:
            raise TraceError(f"an FX graph has a node of kind {node.op}", loc=users_place(node.meta.get("stack_trace")))
    return ForeignGraph(name, ForeignBlock(tuple(inputs), nodes, outputs), tuple(parameters), constants, source)


def _joined_node(
    half: BackwardHalf, nodes: list[ForeignNode], numbers: dict[torch.fx.Node, ValueRef | int]
) -> ForeignNode:
    """A result with a gradient of its own: the result, the arguments, and what the block reads besides the gradient."""
    result, inputs, _, gradients = half.joined.args
    read = tuple(numbers[x] for x in half.read)
    free = tuple(x for x in dict.fromkeys(read) if isinstance(x, ValueRef))
    slot = numbers[half.slot]
    assert isinstance(slot, ValueRef)
    block = ForeignBlock((slot.number, *(x.number for x in free)), nodes, _operand(gradients, numbers))
    number = numbers[half.joined]
    assert isinstance(number, ValueRef)
    operands = (_operand(result, numbers), _operand(inputs, numbers), free)
    types = (_type(half.joined.meta.get("val")),)
    return ForeignNode(
        operator_name(half.joined),
        operands,
        {},
        (number.number,),
        types,
        (block,),
        users_place(half.joined.meta.get("stack_trace")),
    )


def operator_name(node: torch.fx.Node) -> str:
    """The name of a node's operator in the table."""
    target = node.target
    if isinstance(target, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
        whole = target.name() if isinstance(target, torch._ops.OpOverload) else target._qualified_op_name
        name = whole.removeprefix("aten::")
        return name if _order_of_source(node, name) is None else f"profuse::{name}"
    return PYTHON.get(target) or str(getattr(target, "__name__", target))


def named_operands(node: torch.fx.Node) -> dict[str, Any]:
    """The operands by name: those of the node that say something of values, and how the tensor lies that it reads."""
    named = {key: x for key, x in node.kwargs.items() if key not in _OF_TORCH}
    order = _order_of_source(node, operator_name(node).removeprefix("profuse::"))
    return named if order is None else {**named, "memory_order": order}


def reads_memory(node: torch.fx.Node) -> bool:
    """True for an operator that reads a tensor as it lies in memory, where nothing says how this is."""
    return operator_name(node) in _OF_MEMORY


def _order_of_source(node: torch.fx.Node, name: str) -> tuple[int, ...] | None:
    """How the tensor lies whose memory an operator of this name reads; None = it reads none, or nothing is known."""
    place = _OF_MEMORY.get(name)
    if place is None or not isinstance(node.args[0], torch.fx.Node):
        return None
    source = node.args[0].meta.get("val")
    offset = node.args[place] if len(node.args) > place else node.kwargs.get("storage_offset")
    if offset is not None and isinstance(source, torch.Tensor) and _is_of_input(source, node.graph):
        return None  # an offset counts from the beginning of memory of which the input may be a part
    return memory_order(source)


def _is_of_input(x: torch.Tensor, graph: torch.fx.Graph) -> bool:
    """True if a value shares memory with one that the graph does not make."""
    storage = x.untyped_storage()._cdata
    others = (node.meta.get("val") for node in graph.nodes if node.op in ("placeholder", "get_attr"))
    return any(isinstance(y, torch.Tensor) and y.untyped_storage()._cdata == storage for y in others)


def _first_is_read_alone(node: torch.fx.Node) -> bool:
    """True if nothing but the first of an operator's results is read, and there is an operator that gives it alone."""
    return operator_name(node) in _FIRST_ALONE and all(
        user.target is operator.getitem and user.args[1] == 0 for user in node.users
    )


def _is_whole_result(node: torch.fx.Node) -> bool:
    source = node.args[0] if node.target is operator.getitem else None
    return isinstance(source, torch.fx.Node) and source.op == "call_function" and _first_is_read_alone(source)


def _known_size(value: Any) -> int | None:
    """The value of a symbolic size that the trace has found to be one; a guard of the export holds it to that."""
    return value.node.maybe_as_int() if isinstance(value, torch.SymInt) else None


def _sizes_of_inputs(module: torch.fx.GraphModule) -> dict[Any, tuple[int, int]]:
    """The symbols that are sizes of inputs: each with the number of an input, and an axis."""
    places: dict[Any, tuple[int, int]] = {}
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    for place, node in enumerate(inputs):
        value = node.meta.get("val")
        for axis, size in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                places.setdefault(size.node.expr, (place, axis))
    return places


def _known_sizes(value: torch.Tensor) -> tuple[int | None, ...]:
    """The sizes of an input that are numbers for all calls; None for the others."""
    return tuple(size if type(size) is int else size.node.maybe_as_int() for size in value.shape)


def _captured(module: torch.fx.GraphModule, node: torch.fx.Node) -> np.ndarray:
    tensor = operator.attrgetter(str(node.target))(module)
    if not isinstance(tensor, torch.Tensor):
        raise TraceError(f"the graph holds a {type(tensor).__name__}", loc=users_place(node.meta.get("stack_trace")))
    if tensor.requires_grad:
        raise TraceError(
            "a tensor that the function reads, and that is no argument, requires gradients",
            loc=users_place(node.meta.get("stack_trace")),
            hint="pass it as an argument, or make it a parameter of the module",
        )
    return shared_array(tensor)


def _operand(x: Any, numbers: dict[torch.fx.Node, ValueRef | int]) -> Operand:
    if isinstance(x, torch.fx.Node):
        return numbers[x]
    if isinstance(x, (list, tuple)):
        return tuple(_operand(y, numbers) for y in x)
    if isinstance(x, torch.dtype):
        return numpy_dtype(x)
    if isinstance(x, torch.memory_format):
        return str(x).removeprefix("torch.")
    if isinstance(x, torch.layout | torch.device):
        return None
    if x is None or isinstance(x, (bool, int, float, complex, str)):
        return x
    raise TraceError(f"an FX graph has an operand of type {type(x).__name__}")


def _type(value: Any) -> ForeignType | None:
    dtype = DTYPES.get(str(value.dtype).removeprefix("torch.")) if isinstance(value, torch.Tensor) else None
    if dtype is None:
        return None
    return ForeignType(dtype, tuple(d if type(d) is int else None for d in value.shape))
