"""One layout in memory for what a loop carries: in its first round, and in all later ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mlir import ir

from ...ir.device import HOST
from ...ir.op import Fusion
from ...ir.types import TENSOR, TensorType, Type
from ...mlir.nesting import is_inside
from ...mlir.rewrite import (
    attrs_of,
    create,
    defining_op,
    is_terminator,
    op_class,
    ops_in,
    set_type,
    terminator_of,
    type_of,
    walk,
)
from ...mlir.typed_values import constant_type
from ...ops.control_flow.control import For
from ...ops.elementwise.families import Elementwise
from ...ops.indexing.scatter import Copy
from ...ops.manipulation.permute import Transpose
from ...ops.manipulation.shape import ExpandDims
from ..shapes.orders import add_samples, is_in_order, order_of, sample_of

Order = tuple[int, ...]  # axes, from the outermost in memory to the innermost
_MADE = (Fusion.POINTWISE, Fusion.REDUCTION, Fusion.CONTRACTION)


def put_in_order(func: ir.Operation) -> list[tuple[ir.Value, ...]]:
    """Have counted loops begin with arrays in C order where rounds hand on arrays that they make.

    What kernels make is C-contiguous. Else the carried array would have one layout in the first
    round, and another in all later ones, and so had all that shares its type. Where NumPy would lay
    what a round makes as the array before it, the loop carries a transposed array: this one is in C
    order, and so is what rounds compute element by element, which reads and writes memory in one
    order then. Nothing is copied where a function writes into arrays: whose memory a write reaches
    would be another one. Returns what a round is given of each such array, what it hands on, and
    what the loop results in.
    """
    if any((cls := op_class(op)) is not None and cls.writes for op in walk(func)):
        return []
    loops = [op for op in walk(func) if op_class(op) is For]
    return [tied for loop in loops for tied in _begin_in_order(loop)]


def _begin_in_order(loop: ir.Operation) -> list[tuple[ir.Value, ...]]:
    """`put_in_order` of one loop."""
    body = loop.regions[0].blocks[0]
    numbers = [k for k in range(len(loop.results)) if _begins_out_of_order(loop, k)]
    if not numbers:
        return []
    samples = _samples(loop)
    turned = _Turned(loop)
    for k in numbers:
        init, carried = loop.operands[3 + k], body.arguments[1 + k]
        next_value, type_ = terminator_of(body).operands[k], type_of(carried)
        assert isinstance(type_, TensorType) and type_.shape is not None
        if type_of(init) == TENSOR:
            set_type(init, type_)  # as in the first round
        order = order_of(samples.get(next_value))
        if not _turns(next_value, samples) or order != order_of(samples.get(carried)):
            order = None
        turned.carry(k, order or tuple(range(len(type_.shape))))
    if not turned.is_empty:
        for op in ops_in(body):
            if len(op.results) == 1 and _turns(op.results[0], samples):
                order = order_of(samples[op.results[0]])
                assert order is not None
                turned.compute(op, order)
        turned.hand_on()
    end = terminator_of(body)
    return [(body.arguments[1 + k], end.operands[k], loop.results[k]) for k in numbers]


def _begins_out_of_order(loop: ir.Operation, k: int) -> bool:
    """True if a loop begins with an array in another order, in the place of those that it makes."""
    body = loop.regions[0].blocks[0]
    next_value = terminator_of(body).operands[k]
    type_, end = type_of(body.arguments[1 + k]), type_of(next_value)
    return (
        isinstance(type_, TensorType)
        and type_.is_complete
        and type_.device == HOST
        and isinstance(type_.strides, tuple)
        and type_.defined is not False
        and _is_made_in(next_value, loop)
        and isinstance(end, TensorType)
        and (end.dtype, end.shape) == (type_.dtype, type_.shape)
    )


def _is_made_in(value: ir.Value, loop: ir.Operation) -> bool:
    """True if a round makes an array anew: what computes it returns no view."""
    source = defining_op(value)
    cls = None if source is None else op_class(source)
    return cls is not None and is_inside(value, loop) and cls.fusion in _MADE and not cls.aliases


def _samples(loop: ir.Operation) -> dict[ir.Value, Any]:
    """Samples of the values of a round, the first one."""
    body = loop.regions[0].blocks[0]
    ops = [op for op in ops_in(body) if not is_terminator(op)]
    inside = {v for op in ops for v in op.results}
    inputs = {v for op in ops for v in op.operands if v not in inside}
    samples = {v: sample_of(_known(v)) for v in (*body.arguments, *inputs)}
    samples |= {v: sample_of(t) for v in inside if (t := constant_type(v)) is not None}
    add_samples([op for op in ops if op.results and op.results[0] not in samples], samples)
    return samples


def _turns(value: ir.Value, samples: dict[ir.Value, Any]) -> bool:
    """True if a value is computed element by element, in another order in memory than C's."""
    op = defining_op(value)
    cls = None if op is None else op_class(op)
    if op is None or cls is None or not issubclass(cls, Elementwise) or len(op.results) != 1:
        return False
    types = [_known(v) for v in (*op.operands, value)]
    if any(isinstance(t, TensorType) and t.shape is None for t in types):
        return False
    return not is_in_order(samples.get(value))


def _known(value: ir.Value) -> Type:
    return constant_type(value) or type_of(value)


class _Turned:
    """Arrays of a loop with their axes in the order in which they lie in memory."""

    def __init__(self, loop: ir.Operation) -> None:
        self.loop, self.body = loop, loop.regions[0].blocks[0]
        self._found: dict[tuple[ir.Value, Order], ir.Value] = {}
        self._carried: list[tuple[int, Order]] = []

    @property
    def is_empty(self) -> bool:
        """True if all that is carried has its axes as they were."""
        return not self._carried

    def carry(self, k: int, order: Order) -> None:
        """Have the loop begin with an array in this order, which is C order of its axes."""
        init, carried = self.loop.operands[3 + k], self.body.arguments[1 + k]
        type_ = type_of(carried)
        assert isinstance(type_, TensorType) and type_.shape is not None
        turned_type = replace(type_, shape=tuple(type_.shape[a] for a in order), strides="contiguous")
        is_turned = list(order) != sorted(order)
        if is_turned:
            init = _transpose(init, order, self.loop)
        copy = create(Copy, [init], {}, [turned_type], self.loop, self.loop.location)
        self.loop.operands[3 + k] = copy.results[0]
        result = self.loop.results[k]
        for value in (carried, result):
            set_type(value, turned_type)
        if not is_turned:
            set_type(terminator_of(self.body).operands[k], turned_type)
            return
        self._carried.append((k, order))
        following = ops_in(self.loop.operation.block)
        behind = following[following.index(self.loop) + 1]
        for value, before in ((carried, ops_in(self.body)[0]), (result, behind)):
            readers = list(value.uses)
            view = _transpose(value, _inverse(order), before)
            for use in readers:
                use.owner.operation.operands[use.operand_number] = view
            self._found[view, order] = value

    def compute(self, op: ir.Operation, order: Order) -> None:
        """Compute an elementwise op with the axes in this order, and put them back behind it."""
        cls, (old,) = op_class(op), op.results
        assert cls is not None
        type_ = type_of(old)
        assert isinstance(type_, TensorType) and type_.shape is not None
        turned = replace(type_, shape=tuple(type_.shape[a] for a in order), strides=None)
        operands = [self._operand(v, order, op) for v in op.operands]
        result = create(cls, operands, attrs_of(op), [turned], op, op.location).results[0]
        view = _transpose(result, _inverse(order), op)
        old.replace_all_uses_with(view)
        self._found[view, order] = result
        op.erase()

    def hand_on(self) -> None:
        """Hand on what is carried in its order."""
        end = terminator_of(self.body)
        for k, order in self._carried:
            value = self._found[end.operands[k], order]
            set_type(value, type_of(self.body.arguments[1 + k]))
            end.operands[k] = value
        for view in dict.fromkeys(view for view, _ in self._found):
            source = defining_op(view)
            if source is not None and not list(view.uses) and op_class(source) is Transpose:
                source.erase()

    def _operand(self, value: ir.Value, order: Order, before: ir.Operation) -> ir.Value:
        """An operand of an op whose result has its axes in this order."""
        type_ = _known(value)
        if not isinstance(type_, TensorType) or type_.shape == ():
            return value
        if (value, order) not in self._found:
            assert type_.shape is not None
            if not is_inside(value, self.loop):
                before = self.loop
            added = len(order) - len(type_.shape)
            whole = value
            if added:
                attrs = {"axes": tuple(range(added))}
                types = ExpandDims.infer([type_], attrs)
                whole = create(ExpandDims, [value], attrs, types, before).results[0]
            self._found[value, order] = _transpose(whole, order, before)
        return self._found[value, order]


def _transpose(value: ir.Value, order: Sequence[int], before: ir.Operation) -> ir.Value:
    attrs: dict[str, Any] = {"perm": tuple(order)}
    types = Transpose.infer([_known(value)], attrs)
    return create(Transpose, [value], attrs, types, before, before.location).results[0]


def _inverse(order: Order) -> Order:
    return tuple(map(order.index, range(len(order))))
