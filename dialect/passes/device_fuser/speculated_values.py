"""Operands of device groups that stand for values of the run: constants in the group, operands of its fallback.

A group is made for the values that observers have seen (R3.36, R3.37). Sizes among them are freed like those
of tensors: of the view of an array the way of regrouping its axes stays, of the target of a sum the axes of
size 1 (R3.40, R3.43).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from mlir import ir

from ...dataclass import dataclass
from ...errors import InternalError
from ...guards.view_constraints import view_constraint, view_shape
from ...ir.attrs import DYNAMIC
from ...ir.op import op_named
from ...ir.symbolic import Dim, Sym, symbol
from ...ir.types import BOOL_SCALAR, INT_SCALAR, TENSOR, TensorType
from ...ir.types import type_of as type_of_value
from ...mlir.context import loc_of
from ...mlir.facts import is_conditional, speculated_value
from ...mlir.rewrite import attrs_of, body_of, create, is_a, replace, type_of, types_of, users, walk
from ...ops.late import Late
from ...reasons import Kind, Reason

_VIEWS = {("reshape", "shape"), ("reshape_copy", "shape")}
_TARGETS = {("sum_to_size", "sizes")}


@dataclass(frozen=True)
class ValueCheck:
    """One comparison of a value of the run with the one that a group is made for (R3.38).

    Attributes:
        operand: of the call: the value.
        kind: ``"bool"``; ``"target"``, the sizes of a sum; ``"view"``, those of a view; ``"value"``.
        value: what it was.
        late: number of the `late` op in the fallback that takes the sizes.
        constraint: of a view: see `view_constraint`.
    """

    operand: int
    kind: Literal["bool", "target", "view", "value"]
    value: Any
    late: int = -1
    constraint: str = ""


def take_operands(fallback: ir.Operation) -> None:
    """Let a fallback use the values of the run: its conditional constants go (R3.36)."""
    for op in [op for op in walk(fallback) if is_conditional(op)]:
        replace(op, [op.operands[0]])


def take_constants(callee: ir.Operation) -> list[ValueCheck] | Reason:
    """Let the function of a group use the profiled values, and free the sizes among them (R3.37).

    The arguments that stood for values of the run are still there, without a use.

    Returns what has to be compared, in the order of the operands; or the reason why that cannot be told:
    the sizes of an array that is viewed are not known. Raises InternalError for an argument that something
    but a conditional constant reads as well.
    """
    lates = [op for op in walk(callee) if is_a(op, Late)]
    checks: list[ValueCheck] = []
    for k, argument in enumerate(body_of(callee).arguments):
        constants = [op for op in users(argument) if is_conditional(op)]
        if constants and len(constants) != len(users(argument)):
            loc = loc_of(callee.location)
            raise InternalError(f"operand {k} of a device group is read beside its conditional constant", loc=loc)
        for constant in constants:
            of_constant = _checks(k, constant, lates)
            if isinstance(of_constant, Reason):
                return of_constant
            checks += of_constant
    for check in checks:
        if check.kind in ("view", "target"):
            _free(check, lates[check.late])
    for op in [op for op in walk(callee) if is_conditional(op)]:
        value = speculated_value(op.results[0])
        assert value is not None
        constant = create(op_named("constant"), [], {"value": value[1]}, types_of(op.results), op)
        replace(op, list(constant.results))
    return list(dict.fromkeys(checks))


def _checks(operand: int, constant: ir.Operation, lates: Sequence[ir.Operation]) -> list[ValueCheck] | Reason:
    """What has to be compared for the uses of one conditional constant."""
    speculated = speculated_value(constant.results[0])
    assert speculated is not None
    value = speculated[1]
    if type_of_value(value) == BOOL_SCALAR:
        return [ValueCheck(operand, "bool", value)]
    checks = []
    for use in constant.results[0].uses:
        user = use.owner.operation
        place = _place(user, use.operand_number)
        if place in _TARGETS:
            rank = _rank(user)
            if rank is None or rank < len(value or ()):
                return Reason(Kind.UNKNOWN_OPERAND, str(place[0]), 0, loc=loc_of(user.location))
            checks.append(ValueCheck(operand, "target", value, lates.index(user)))
        elif place in _VIEWS:
            viewed = type_of(user.operands[0])
            shape = viewed.shape if isinstance(viewed, TensorType) else None
            if shape is None or not all(isinstance(size, int) for size in shape):
                return Reason(Kind.VARYING_SIZE, str(place[0]), 0, loc=loc_of(user.location))
            constraint = view_constraint(shape, value)  # type: ignore[arg-type]
            if constraint is None:
                text = f"sizes {list(shape)} are no view of sizes {list(value)}"
                return Reason(Kind.TYPES, str(place[0]), detail=text, loc=loc_of(user.location))
            checks.append(ValueCheck(operand, "view", value, lates.index(user), constraint))
        else:
            checks.append(ValueCheck(operand, "value", value))
    return checks or [ValueCheck(operand, "value", value)]


def _place(user: ir.Operation, operand: int) -> tuple[str, str] | None:
    """The op and the attribute that an operand gives; None for an op that is not late."""
    if not is_a(user, Late):
        return None
    attrs = attrs_of(user)
    number = operand - (len(user.operands) - len(attrs["names"]))
    return (attrs["op"], attrs["names"][number]) if number >= 0 else None


def _rank(late: ir.Operation) -> int | None:
    """The rank of the array that an op takes, as far as it is known."""
    type_ = type_of(late.operands[0])
    return type_.rank if isinstance(type_, TensorType) else None


def _free(check: ValueCheck, late: ir.Operation) -> None:
    """Put an op whose sizes follow from those of its operand in the place of one that has profiled sizes."""
    x, rank = late.operands[0], _rank(late)
    assert rank is not None
    sizes: Sequence[Dim]
    if check.kind == "view":
        sizes = view_shape(check.constraint, [symbol(f"s{axis}") for axis in range(rank)])
        cls = op_named(attrs_of(late)["op"])
        shape, numbers = _given(sizes, x, late)
        new = create(cls, [x, *numbers], {"shape": shape}, types_of(late.results), late)
        replace(late, list(new.results))
        return
    if not check.value:
        replace(late, [x])
        return
    first = rank - len(check.value)
    sizes = [1 if size == 1 else symbol(f"s{first + axis}") for axis, size in enumerate(check.value)]
    shape, numbers = _given(sizes, x, late)
    # Of the second operand the sizes count alone.
    false = create(op_named("constant"), [], {"value": False}, [BOOL_SCALAR], late).results[0]
    like = create(op_named("full"), [false, *numbers], {"shape": shape}, [TENSOR], late).results[0]
    new = create(op_named("sum_to"), [x, like], {}, types_of(late.results), late)
    replace(late, list(new.results))


def _given(sizes: Sequence[Dim], x: ir.Value, at: ir.Operation) -> tuple[tuple[int, ...], list[ir.Value]]:
    """Sizes as an attribute, and the numbers for those of its entries that follow from the sizes of ``x``."""
    shape = tuple(size if isinstance(size, int) else DYNAMIC for size in sizes)
    return shape, [_number(size, x, at) for size in sizes if isinstance(size, Sym)]


def _number(size: Sym, x: ir.Value, at: ir.Operation) -> ir.Value:
    def built(name: str, operands: Sequence[ir.Value], **attrs: Any) -> ir.Value:
        return create(op_named(name), operands, attrs, [INT_SCALAR], at).results[0]

    return size.fold(
        lambda leaf: built("dim", [x], axis=int(leaf[1:])),
        lambda number: built("constant", [], value=number),
        lambda op, a, b: built({"*": "mul", "//": "floor_div", "+": "add"}[op], [a, b]),
    )
