"""What each op does: from names to actions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mlir import ir

from . import control, device, elementwise, vectors
from .faults import SimtError
from .grid import Active
from .machine import Machine, gather
from .program import Action, Instruction
from .types import constant_of, dtype_of, shape_of


def action_of(each: Instruction) -> Action:
    """The action of an op; raises SimtError if it is not emulated."""
    op, name = each.op, each.name
    if name in _BUILDERS:
        return _BUILDERS[name](op)
    for table in (control.ACTIONS, device.ACTIONS):
        if name in table:
            return table[name]
    if name in elementwise.FUNCTIONS:
        return _elementwise(op, elementwise.FUNCTIONS[name])
    if name in vectors.MOVES:
        return _move(op, vectors.MOVES[name](op))
    if name.startswith("arith.") and len(op.results) == 1:
        function = elementwise.conversion(op)
        if function is not None:
            return _elementwise(op, function)
    raise SimtError(f"{each.site}: this op is not emulated")


def _elementwise(op: ir.Operation, function: elementwise.Function) -> Action:
    """Compute for all threads, active or not; poison spreads from any operand."""
    divides = op.name in elementwise.DIVISIONS
    creates = elementwise.shift_is_poison if op.name in elementwise.SHIFTS else None
    creates = creates or elementwise.cast_is_poison(op) or elementwise.overflow_is_poison(op)

    def act(machine: Machine, each: Instruction, active: Active) -> None:
        operands = [machine.values[slot] for slot in each.operands]
        if divides and not operands[1].all():
            bad = gather(operands[1], active).reshape(active.lanes.size, -1) == 0
            if bad.any():
                active.fault("division", "divides by zero", bad.any(axis=1))
        value = function(*operands)
        marks = [p for slot in each.operands if (p := machine.poison.get(slot)) is not None]
        if creates is not None and (new := creates(*operands)).any():
            marks.append(new)
        machine.set(each.results[0], value, _union(marks, value.shape))

    return act


def _union(marks: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray | None:
    if not marks:
        return None
    poison = np.zeros(shape, bool)
    for mark in marks:
        poison |= vectors.with_rank(mark, len(shape))
    return poison


def _whole(function: elementwise.Function) -> Action:
    """Compute from whole vectors: one poison element makes all of the result poison."""

    def act(machine: Machine, each: Instruction, active: Active) -> None:
        value = function(*[machine.values[slot] for slot in each.operands])
        marks = [
            p.reshape(p.shape[0], -1).any(axis=1)
            for slot in each.operands
            if (p := machine.poison.get(slot)) is not None
        ]
        machine.set(each.results[0], value, _union(marks, value.shape))

    return act


def _move(op: ir.Operation, move: vectors.Move) -> Action:
    """Move values, and poison alike."""
    data = vectors.DATA_OPERANDS.get(op.name, len(op.operands))
    sizes = vectors.dynamic_sizes(op) if op.name in vectors.DATA_OPERANDS else []

    def act(machine: Machine, each: Instruction, active: Active) -> None:
        for slot, size in zip(each.operands[data:], sizes, strict=True):
            machine.refuse_poison(slot, active, "a position in a vector")
            position = machine.row(slot, active)
            if (bad := (position < 0) | (position >= size)).any():
                what = f"position {position[bad][0]} is out of bounds of {size} elements"
                active.fault("bounds", what, bad)
        operands = [machine.values[slot] for slot in each.operands]
        values = move(*operands)
        marks = [machine.poison.get(slot) for slot in each.operands[:data]]
        poison: np.ndarray | tuple[np.ndarray, ...] | None = None
        if any(p is not None for p in marks):
            full = [np.zeros(v.shape, bool) if p is None else p for v, p in zip(operands, marks, strict=False)]
            poison = move(*full, *operands[data:])
        if not isinstance(values, tuple):
            values, poison = (values,), None if poison is None else (poison,)
        for place, slot in enumerate(each.results):
            machine.set(slot, values[place], None if poison is None else poison[place])

    return act


def _select(_op: ir.Operation) -> Action:
    """Poison of the side that is not chosen is dropped."""

    def act(machine: Machine, each: Instruction, active: Active) -> None:
        condition, *sides = (machine.values[slot] for slot in each.operands)
        rank = sides[0].ndim
        mask = vectors.with_rank(condition, rank)
        value = np.where(mask, *sides)
        marks = [machine.poison.get(slot) for slot in each.operands]
        poison = None
        if any(p is not None for p in marks):
            of_condition, *of_sides = (False if p is None else p for p in marks)
            poison = np.where(mask, *of_sides)
            if of_condition is not False:
                poison = poison | vectors.with_rank(of_condition, rank)
            poison = np.broadcast_to(poison, value.shape) if poison.any() else None
        machine.set(each.results[0], value, poison)

    return act


def _constant(op: ir.Operation) -> Action:
    value = constant_of(op.attributes["value"])
    return lambda machine, each, active: machine.set(each.results[0], value)


def _poison(op: ir.Operation) -> Action:
    type_ = op.results[0].type
    value = np.zeros((1, *shape_of(type_)), dtype_of(type_))
    mark = np.ones(value.shape, bool)
    return lambda machine, each, active: machine.set(each.results[0], value, mark)


def _step(op: ir.Operation) -> Action:
    (count,) = shape_of(op.results[0].type)
    value = np.arange(count)[None]
    return lambda machine, each, active: machine.set(each.results[0], value)


def _create_mask(op: ir.Operation) -> Action:
    (count,) = shape_of(op.results[0].type)
    return _elementwise(op, lambda size: np.arange(count) < size[:, None])


def _extended(wide_of: Callable[[np.ndarray], np.ndarray]) -> Callable[[ir.Operation], Action]:
    """Products of full width, in Python's integers: low half, then high half."""

    def build(op: ir.Operation) -> Action:
        dtype = dtype_of(op.results[0].type)
        bits = dtype.itemsize * 8

        def act(machine: Machine, each: Instruction, active: Active) -> None:
            a, b = (wide_of(machine.values[slot]) for slot in each.operands)
            product = np.asarray(a * b, object)
            marks = [p for slot in each.operands if (p := machine.poison.get(slot)) is not None]
            for slot, half in zip(each.results, (product, product >> bits), strict=True):
                value = (half & (2**bits - 1)).astype(f"u{dtype.itemsize}").view(dtype)
                machine.set(slot, value, _union(marks, value.shape))

        return act

    return build


def _add_extended(op: ir.Operation) -> Action:
    def act(machine: Machine, each: Instruction, active: Active) -> None:
        a, b = (machine.values[slot] for slot in each.operands)
        total = a + b
        carry = elementwise.unsigned(total) < elementwise.unsigned(a)
        marks = [p for slot in each.operands if (p := machine.poison.get(slot)) is not None]
        for slot, value in zip(each.results, (total, carry), strict=True):
            machine.set(slot, value, _union(marks, value.shape))

    return act


_BUILDERS: dict[str, Callable[[ir.Operation], Action]] = {
    "arith.constant": _constant,
    "arith.select": _select,
    "arith.cmpi": lambda op: _elementwise(op, elementwise.comparison(op)),
    "arith.cmpf": lambda op: _elementwise(op, elementwise.comparison(op)),
    "arith.addui_extended": _add_extended,
    "arith.mulsi_extended": _extended(lambda x: x.astype(object)),
    "arith.mului_extended": _extended(lambda x: elementwise.unsigned(x).astype(object)),
    "ub.poison": _poison,
    "vector.bitcast": lambda op: _whole(vectors.bitcast(op)),
    "vector.reduction": lambda op: _whole(vectors.reduction(op)),
    "vector.step": _step,
    "vector.create_mask": _create_mask,
}
