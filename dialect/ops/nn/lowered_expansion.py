"""The lowering of a composition: that of each of its ops, with promotion made explicit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import LoweringError
from ...ir.dtypes import NUMBERS, DType
from ...ir.program import Instr, Program
from ...ir.types import ScalarType, TensorType
from ..sizes import as_tensor

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder


def lower_expansion(b: Builder, program: Program, args: Sequence[Any]) -> list[Any]:
    """The outputs of a program of ops without blocks, for operands as `Op.lower` takes them.

    Raises LoweringError for an op that has no lowering, and for an output that is undefined.
    """
    values = dict(zip(program.body.args, args, strict=True))
    for instr in program.body.instrs:
        types = tuple(program.type_of(v) for v in instr.results)
        numbers = [t.value if isinstance(t, ScalarType) else None for t in types]
        if types and all(n is not None for n in numbers):
            results: Sequence[Any] = numbers
        else:
            attrs = instr.op.full_attrs(instr.attrs)
            lowered = instr.op.lower(b, attrs, types, *_operands(b, program, instr, values))
            results = lowered if isinstance(lowered, (tuple, list)) else (lowered,)
        values.update(zip(instr.results, results, strict=True))
        for type_ in types:
            for size in (type_.shape or ()) if isinstance(type_, TensorType) else ():
                b.check_size(size)
    if any(v not in values for v in program.outputs):
        raise LoweringError("an undefined tensor has no place in a kernel")
    return [values[v] for v in program.outputs]


def _operands(b: Builder, program: Program, instr: Instr, values: dict[int, Any]) -> list[Any]:
    types = [program.type_of(v) for v in instr.operands]
    dtypes = instr.op.operand_dtypes(types, instr.op.full_attrs(instr.attrs)) or (None,) * len(types)
    return [_cast(b, values[v], dtype) for v, dtype in zip(instr.operands, dtypes, strict=True)]


def _cast(b: Builder, value: Any, dtype: DType | None) -> Any:
    """A value as a tensor of a dtype; None leaves it as it is."""
    if dtype is None:
        return value
    if isinstance(value, NUMBERS):
        return b.constant(np.array(value, dtype.numpy), TensorType(dtype, ()))
    return b.cast(as_tensor(b, value), dtype)
