"""Make dtype promotion explicit inside fusion functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from mlir import ir

from ...ir.dtypes import I64, DType
from ...ir.op import op_named
from ...ir.types import ScalarType, TensorType, Type
from ...mlir.facts import constant_value, is_constant, kernel_bodies
from ...mlir.rewrite import attrs_of, blocks_in, body_of, create, functions, op_class, ops_in, symbol_of, type_of
from ...mlir.typed_values import constant_type
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class InsertCasts(Pass):
    """Cast operands to the dtypes that ops compute in, inside fusion functions only.

    A Python number becomes a 0-d tensor of that dtype; a constant one is converted here and now.
    """

    name: ClassVar[str] = "insert-casts"
    counts_changes: ClassVar[bool] = True

    def run(self, module: ir.Module) -> None:
        kernels = kernel_bodies(module)
        for func in functions(module):
            if symbol_of(func) in kernels:
                self._cast_in(body_of(func), {})

    def _cast_in(self, block: ir.Block, outer: dict[tuple[ir.Value, DType], ir.Value]) -> None:
        """Cast in a block and in those inside of it, which see the casts around them."""
        casts = dict(outer)
        for op in ops_in(block):
            self._cast_operands(op, casts)
            for inner in blocks_in(op):
                self._cast_in(inner, casts)

    def _cast_operands(self, op: ir.Operation, casts: dict[tuple[ir.Value, DType], ir.Value]) -> None:
        cls = op_class(op)
        types = [constant_type(v) or type_of(v) for v in op.operands]
        dtypes = cls.operand_dtypes(types, attrs_of(op)) if cls is not None else None
        if dtypes is None:
            return
        for index, (dtype, type_) in enumerate(zip(dtypes, types, strict=True)):
            if dtype is None or not _differs(type_, dtype):
                continue
            value = op.operands[index]
            if (value, dtype) not in casts:
                casts[value, dtype] = _cast(value, type_, dtype, op)
                self.count("casts")
            op.operands[index] = casts[value, dtype]


def _differs(type_: Type, dtype: DType) -> bool:
    return isinstance(type_, ScalarType) or (isinstance(type_, TensorType) and type_.dtype is not dtype)


def _cast(value: ir.Value, type_: Type, dtype: DType, user: ir.Operation) -> ir.Value:
    """``value`` as a tensor of ``dtype``, made before ``user``."""
    shape = type_.shape if isinstance(type_, TensorType) else ()
    result = TensorType(dtype, shape)
    if isinstance(type_, ScalarType) and is_constant(value):
        folded = np.array(constant_value(value), dtype.numpy)
        return create(op_named("constant"), [], {"value": folded}, [result], user).results[0]
    # An index of a loop, for instance, of which nothing is known.
    fits = isinstance(type_, ScalarType) and type_.dtype.is_int and dtype.is_int
    attrs = {"dtype": dtype, "fits": fits and dtype is not I64}
    return create(op_named("cast"), [value], attrs, [result], user).results[0]
