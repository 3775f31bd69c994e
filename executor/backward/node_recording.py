"""Recording of nodes, class by class, as ops of the graph (R4.20 - R4.28)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ProfuseError, ShapeError
from ...dialect.ir.attrs import DYNAMIC
from ...dialect.ir.program import Block, Instr, Program
from ...dialect.ir.types import BOOL_SCALAR, TENSOR, ScalarType, TensorType, Type, type_of
from ...dialect.ops.backward import CallBackward, CallGradient, CallHook
from ...dialect.ops.control_flow.control import If
from ...dialect.ops.create import Constant, Full
from ...dialect.ops.gradient_ops import AnyNonzero, AutogradZero
from ..plans.differentiable import DiffNode
from ..tape.bounds import with_bounds
from ..tape.custom_functions import CustomNode
from ..tape.eager_builder import Unsaved
from ..tape.node import Node
from ..tape.op_node import OpNode, PackedNode
from ..tape.plans import may_change
from .node_gradients import Lifted, RuleFunction, Sized, camel, function_of, tensor
from .walk_outline import Stand

if TYPE_CHECKING:
    from .capture import Capture


class _WalkReader:
    """Follows, node by node, what the walk has lifted."""

    def __init__(self, capture: Capture, node: Node) -> None:
        self.c = capture
        self.arrays, shapes, self.scalars, _, self.packed, _, self.numbers = capture.marks(node)
        self.shapes = shapes + len(node.metas)

    def value(self, x: Any) -> tuple[int | None, int | None, Any]:
        """The value of what was saved, the place of its shape, and its dtype."""
        kind = type(x)
        if kind is Stand and not x.packed:
            value = self.c.arrays[self.c.pattern[self.arrays]]
            at = self.shapes
            self.arrays += 1
            self.shapes += 1
            self.c.program.types[value] = tensor(self.c.shape(at), x.dtype)
            return value, at, x.dtype
        if kind is Stand:
            at = self.shapes
            type_ = tensor(self.c.shape(at), x.dtype)
            hook = self.c.hook_values[self.c.next_hook]
            (value,) = self.c.emit(
                CallHook,
                (hook, self.c.packed[self.packed]),
                [type_],
                hook_type="unpack_hook",
                replaced=1,
                present=(True,),
            )
            self.c.starts[self.c.next_hook] = len(self.c.order)
            self.c.next_hook += 1
            self.packed += 1
            self.shapes += 1
            return value, at, x.dtype
        if kind is Unsaved:
            at = self.shapes
            self.shapes += 1
            return None, None if x.is_unknown else at, x.dtype
        return None, None, None

    def number(self) -> int | None:
        """The value of the next number of the node, if that is passed."""
        self.numbers += 1
        return self.c.numbers.get(self.numbers - 1)


def record_op(c: Capture, node: OpNode, gs: Sequence[int | None]) -> list[int | None]:
    """An op of the table, by its rule (R4.21)."""
    operands, results = c.outline.saved[node]
    reader = _WalkReader(c, node)
    values: list[int] = []
    sizes: list[int] = []

    def part(x: Any, meta: tuple[Node, int] | None) -> Any:
        value, at, dtype = reader.value(x)
        if value is not None:
            values.append(value)
            return Lifted(c.program.type_of(value))
        if type(x) is Unsaved or x is None:
            if at is None:
                owner, index = (node, 0) if meta is None else meta
                at, dtype = c.meta_at(owner, index), owner.metas[index][1]
            sizes.extend(c.sizes_of(at))
            return Sized(tensor(c.shape(at), dtype))
        return x

    def operand(k: int, x: Any) -> Any:
        number = reader.number() if k in node.plan.numbers else None
        if number is None:
            return part(x, node.edges[k])
        values.append(number)
        return Lifted(c.program.type_of(number))

    xs = [operand(k, x) for k, x in enumerate(operands)]
    bounds = [reader.number() for _ in node.plan.bounds]
    for number in bounds:
        if number is not None:  # it follows the operands
            values.append(number)
            xs.append(Lifted(c.program.type_of(number)))
    attrs = with_bounds(node.plan.op, node.plan.attrs, [n is not None for n in bounds])
    ys = [part(y, (node, k)) for k, y in enumerate(results)]
    types = [None if g is None else c.program.type_of(g) for g in gs]
    wanted = [edge is not None for edge in node.edges]
    wanted += [False] * (len(xs) - len(wanted))
    key = _key(node, attrs, wanted, xs, ys, types)
    function = c.made.get(key)
    if function is None:
        base = f"{camel(node.plan.op.name)}Backward"
        count = c.counts.get(base, 0)
        function = _recorded(f"{base}{count}", node, attrs, wanted, xs, ys, types)
        c.counts[base] = count + 1
        c.made[key] = function
        c.functions[function.program.name] = function.program
    incoming = [g for g in gs if g is not None]
    gradients = iter(c.emit(CallGradient, (*incoming, *values, *sizes), function.types, callee=function.program.name))
    return [next(gradients) if there else None for there in function.given[: len(node.edges)]]


def _recorded(
    name: str, node: OpNode, attrs: Mapping[str, Any], wanted: Sequence[bool], xs: Any, ys: Any, types: Any
) -> RuleFunction:
    """The function of a node; with nothing known of sizes where symbols may be equal or not.

    Raises Unrecorded where the rule asks for what is known in a run alone.
    """
    plan = node.plan
    has_numbers = any(isinstance(x, Lifted) and isinstance(x.type, ScalarType) for x in xs)
    try:
        return function_of(name, plan.op, attrs, wanted, xs, ys, types)
    except ShapeError:
        pass
    except (ProfuseError, TypeError, ValueError) as error:
        raise Unrecorded(node, has_numbers=has_numbers) from error
    xs, ys = ([_without_symbols(x) for x in group] for group in (xs, ys))
    types = [None if t is None else _unknown(t) for t in types]
    try:
        return function_of(name, plan.op, attrs, wanted, xs, ys, types)
    except (ProfuseError, TypeError, ValueError) as error:
        raise Unrecorded(node, has_numbers=has_numbers) from error


class Unrecorded(Exception):
    """A node cannot be recorded, and has to be called as it is.

    ``has_numbers``: numbers among its operands were inputs.
    """

    def __init__(self, node: Node, *, has_numbers: bool = False) -> None:
        super().__init__(node.name)
        self.node, self.has_numbers = node, has_numbers


def _unknown(type_: TensorType) -> TensorType:
    """A type with unknown sizes in the place of symbols."""
    shape = tuple(d if isinstance(d, int) else None for d in type_.shape or ())
    return TensorType(type_.dtype, shape)


def _without_symbols(x: Any) -> Any:
    is_tensor = isinstance(x, (Lifted, Sized)) and isinstance(x.type, TensorType)
    return type(x)(_unknown(x.type)) if is_tensor else x


def _key(node: OpNode, attrs: Mapping[str, Any], wanted: Sequence[bool], xs: Any, ys: Any, types: Any) -> Any:
    shown = [(type(x), x.type) if isinstance(x, (Lifted, Sized)) else (type(x), repr(x)) for x in (*xs, *ys)]
    return node.plan.op, repr(attrs), tuple(wanted), tuple(shown), tuple(types)


def record_opaque(c: Capture, node: Node, gs: Sequence[int | None]) -> list[int | None]:
    """A node that is called as it is."""
    return _called(c, node, gs, [])


def record_custom(c: Capture, node: CustomNode, gs: Sequence[int | None]) -> list[int | None]:
    """A function with a gradient of its own, given what it has saved (R4.22)."""
    saved: list[int] = []
    # The call stands first among the hooks of the node, and functions that unpack behind it.
    call, c.next_hook = c.next_hook, c.next_hook + 1
    reader = _WalkReader(c, node)
    for group in c.outline.saved[node]:
        for x in group:
            if type(x) in (int, float):
                saved.append(c.scalars[reader.scalars])
                reader.scalars += 1
            else:
                value, _, _ = reader.value(x)
                if value is not None:
                    saved.append(value)
    c.next_hook = call
    name = f"CppNode{node.what}"
    count = c.counts.get(name, 0)
    c.counts[name] = count + 1
    c.origin = f"{name}{count} {c.origin}"
    return _called(c, node, gs, saved)


def _called(c: Capture, node: Node, gs: Sequence[int | None], saved: Sequence[int]) -> list[int | None]:
    hook = c.hook_values[c.next_hook]
    c.starts[c.next_hook] = len(c.order) + 1  # the node itself has run
    c.next_hook += 1
    present = (*[True] * len(saved), *(g is not None for g in gs))
    values = [*saved, *(g for g in gs if g is not None)]
    targets = [edge for edge in node.edges if edge is not None]
    types: list[Type] = [TENSOR] * len(targets)
    gradients = iter(c.emit(CallBackward, (hook, *values), types, present=present))
    return [None if edge is None else next(gradients) for edge in node.edges]


def record_diff(c: Capture, node: DiffNode, gs: Sequence[int | None]) -> list[int | None]:
    """A differentiable subgraph: its reverse half, op by op (R4.23)."""
    reader = _WalkReader(c, node)
    module = node.op.reverse.module
    program = module.main
    operands: list[int] = []
    for k in node.op.input_vjps:
        g = gs[k]
        operands.append(c.emit(AutogradZero, (), [TENSOR])[0] if g is None else g)
    for x in c.outline.saved[node][0]:
        value = reader.value(x)[0]
        if type(x) is float and may_change(x):
            value = reader.number()
        if value is None:
            value = c.emit(Constant, (), [_scalar(x)], value=x)[0]
        operands.append(value)
    if any(c.functions.setdefault(k, f) is not f for k, f in module.functions.items()):
        raise Unrecorded(node)  # another subgraph has a function of this name
    bound = dict(zip(program.inputs, operands, strict=True))
    results = iter(_pasted(c, program.body, bound, program, c.subgraph(node.op)))
    pulled: list[int | None] = []
    for edge in node.edges:
        g = next(results)
        if edge is None:
            pulled.append(None)
            continue
        target, index = edge
        type_ = tensor(c.shape(c.meta_at(target, index)), target.metas[index][1])
        if len(node.op.input_vjps) > 1:
            g = _defined(c, g, type_, c.sizes_of(c.meta_at(target, index)))
        c.program.types[g] = type_
        pulled.append(g)
    return pulled


def _scalar(x: Any) -> Type:
    type_ = type_of(x)
    return ScalarType(type_.dtype) if isinstance(type_, ScalarType) else type_


def _pasted(c: Capture, block: Block, values: dict[int, int], program: Program, name: str) -> list[int]:
    """Copy the ops of a block; returns what it yields. ``name`` begins the names of values."""
    into = c.body
    for instr in block.instrs:
        into.append(_copied(c, instr, values, program, name))
    return [values[v] for v in block.outputs]


def _copied(c: Capture, instr: Instr, values: dict[int, int], program: Program, name: str) -> Instr:
    def fresh(v: int) -> int:
        type_ = program.type_of(v)
        values[v] = c.program.new_value(TENSOR if isinstance(type_, TensorType) else type_)
        c.origins[values[v]] = f"{name}_{instr.op.name}"
        return values[v]

    operands = tuple(values[v] for v in instr.operands)
    blocks = []
    for block in instr.blocks:
        args = tuple(map(fresh, block.args))
        instrs = [_copied(c, inner, values, program, name) for inner in block.instrs]
        blocks.append(Block(args, instrs, tuple(values[v] for v in block.outputs)))
    results = tuple(map(fresh, instr.results))
    return Instr(instr.op, operands, results, dict(instr.attrs), tuple(blocks), instr.loc or c.loc)


def _defined(c: Capture, g: int, type_: TensorType, sizes: Sequence[int]) -> int:
    """A gradient that the reverse half may leave undefined: zeros of a type then (R2.27)."""
    (there,) = c.emit(AnyNonzero, (g,), [BOOL_SCALAR])
    (zero,) = c.emit(Constant, (), [_scalar(0)], value=0)
    shape = tuple(d if isinstance(d, int) else DYNAMIC for d in type_.shape or ())
    body, c.body = c.body, []
    (zeros,) = c.emit(Full, (zero, *sizes), [TENSOR], shape=shape, dtype=type_.dtype)
    other, c.body = c.body, body
    result = c.program.new_value(TENSOR)
    c.body.append(Instr(If, (there,), (result,), {}, (Block((), [], (g,)), Block((), other, (zeros,))), c.loc))
    return result


Record = Callable[[Any, Any, Sequence[Any]], list[Any]]
RECORDS: dict[type[Node], tuple[Record, bool]] = {
    OpNode: (record_op, True),
    PackedNode: (record_op, True),
    DiffNode: (record_diff, False),
    CustomNode: (record_custom, True),
}
"""Per class of nodes: what records it, and whether what it computes is validated (R4.19)."""
