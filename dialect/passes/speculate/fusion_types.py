"""Requirements on the types of a fusion group's operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from mlir import ir

from ...guards.checks import devices_of
from ...ir.device import HOST
from ...ir.dtypes import I64, DType
from ...ir.types import ScalarType, TensorType, Type
from ...mlir.rewrite import defining_op, is_a, op_class, type_of
from ...ops.control_flow.control import For
from ...ops.sizes import product
from ...ops.speculation import FusionGroup
from ...reasons import Kind, Reason

_SMALL = 1 << 12  # elements, which a kernel copies in less time than evaluating an op takes


def number_refusal(dtypes: Sequence[DType | None] | None, types: Sequence[Type]) -> Reason | None:
    """The reason why a Python integer cannot be cast: NumPy raises OverflowError where a kernel would wrap."""
    for dtype, type_ in zip(dtypes or (), types, strict=False):
        if dtype is None or not isinstance(type_, ScalarType):
            continue
        if not dtype.is_int or dtype is I64 or not type_.dtype.is_int:
            continue
        if not isinstance(type_.value, int):
            return Reason(Kind.UNSURE_INTEGER, detail=str(dtype))
        info = np.iinfo(dtype.numpy)
        if not info.min <= type_.value <= info.max:
            return Reason(Kind.LARGE_INTEGER, detail=str(dtype), subject=str(type_.value))
    return None


def replaces_part_of_carried(op: ir.Operation, types: Sequence[Type]) -> bool:
    """True for an op that replaces a part of a large array which a counted loop carries.

    Evaluated by itself, it writes into that array (`executor.memory.overwrites.Overwrites`). A kernel
    would copy the array in each round.
    """
    x = types[0] if types else None
    if not isinstance(x, TensorType) or not devices_of(types) <= {HOST}:
        return False
    size = product(x.shape) if x.shape is not None else None
    if isinstance(size, int) and size <= _SMALL:
        return False
    source: ir.Operation | None = op
    while source is not None:
        cls = op_class(source)
        if cls is None or not cls.can_overwrite():
            return False
        value = source.operands[0]
        source = defining_op(value)
    return value.owner.owner.name == f"{For.dialect}.{For.name}"


def argument_types(values: Sequence[ir.Value]) -> list[Type]:
    """The types that a group's arguments are checked for; an unknown layout may be any, per axis."""
    return list(map(_argument_type, values))


def _argument_type(value: ir.Value) -> Type:
    type_, source = type_of(value), defining_op(value)
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    if is_a(source, FusionGroup) and type_.strides is not None:
        return replace(type_, strides="contiguous")  # however NumPy laid it out when profiled
    return type_ if type_.strides is not None else replace(type_, strides=(None,) * len(type_.shape))
