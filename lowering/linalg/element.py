"""One element of a tensor in MLIR: its types, constants, and operations of one result.

Every function here emits at the current insertion point and location of the `mlir` bindings.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import numpy as np
from mlir import ir

from ...dialect.errors import LoweringError
from ...dialect.ir.dtypes import BF16, BOOL, F16, F32, F64, DType

Number = Union[bool, int, float]
HALF = (F16, BF16)


def compute_type(dtype: DType) -> ir.Type:
    """The MLIR type a value of this dtype has inside a body (bool: i1)."""
    return int_type(1) if dtype is BOOL else storage_type(dtype)


def storage_type(dtype: DType) -> ir.Type:
    """The MLIR type of one element in memory: signless integers, bool as i8, bf16 as i16."""
    # LLVM's own bf16 flushes subnormals on some targets and crashes the code generator on others.
    if dtype.kind in "biu" or dtype is BF16:
        return int_type(dtype.bits)
    if dtype is F32:
        return ir.F32Type.get()
    if dtype is F64:
        return ir.F64Type.get()
    if dtype is F16:
        return ir.F16Type.get()
    if dtype.is_complex:
        return ir.ComplexType.get(storage_type(dtype.part))
    raise LoweringError(f"no kernel is generated for {dtype.numpy} values")


def int_type(bits: int) -> ir.Type:
    """The signless integer type of this width."""
    return ir.IntegerType.get_signless(bits)


# Marks a select whose first value is rarely taken; `emit.rare` makes versions of loops without it.
RARE = "profuse.rare"
PART = "profuse.part"  # loops, first and size: elsewhere, the result is the first input
WINDOW = "profuse.window"  # of a read whose result is unused where a clamp changes its index
GUARDED = "guarded"  # value of the mark where the loop without it must not run in vain
# Of the length of a complex number, and of the sum of squares that it is the root of.
LENGTH, SQUARES = "profuse.length", "profuse.squares"


def emit(name: str, type_: ir.Type, *operands: ir.Value, **attributes: ir.Attribute) -> ir.Value:
    """Create a one-result operation at the insertion point and return its result."""
    return ir.Operation.create(name, results=[type_], operands=list(operands), attributes=attributes).result


def sliced(
    name: str,
    type_: ir.Type,
    values: Sequence[ir.Value],
    starts: Sequence[int | ir.Value],
    sizes: Sequence[int | ir.Value],
    steps: Sequence[int | ir.Value],
) -> ir.Value:
    """``tensor.extract_slice`` or ``tensor.insert_slice``, with literal numbers as attributes."""
    open_ = ir.ShapedType.get_dynamic_size()
    operands, counts, static = list(values), [1] * len(values), []
    for listed in (starts, sizes, steps):
        static.append([n if isinstance(n, int) else open_ for n in listed])
        dynamic = [n for n in listed if not isinstance(n, int)]
        operands += dynamic
        counts.append(len(dynamic))
    offsets, extents, strides = map(ir.DenseI64ArrayAttr.get, static)
    return emit(
        name,
        type_,
        *operands,
        static_offsets=offsets,
        static_sizes=extents,
        static_strides=strides,
        operandSegmentSizes=ir.DenseI32ArrayAttr.get(counts),
    )


def constant_value(value: Number, dtype: DType) -> ir.Value:
    """An ``arith.constant`` of this real dtype; integers wrap, floats round to nearest."""
    type_ = compute_type(dtype)
    if dtype is BOOL:
        attr = ir.IntegerAttr.get(type_, int(bool(value)))
    elif dtype.is_int:
        wrapped = int(value) & ((1 << dtype.bits) - 1)
        sign = wrapped >> (dtype.bits - 1)
        attr = ir.IntegerAttr.get(type_, wrapped - (sign << dtype.bits))
    elif dtype is BF16:
        bits = np.array(value, np.float32).astype(dtype.numpy).view(np.int16)
        attr = ir.IntegerAttr.get(type_, int(bits))
    else:
        attr = ir.FloatAttr.get(type_, float(value))
    return emit("arith.constant", type_, value=attr)
