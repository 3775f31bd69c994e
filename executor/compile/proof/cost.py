"""Estimates the time of a check from shapes, so that large kernels can be checked in part."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ....dialect.ir.dtypes import F32, F64
from ....dialect.ir.program import Instr, Program
from ....dialect.ir.symbolic import evaluate
from ....dialect.ir.types import TensorType
from ....dialect.ops.linalg.contract import Matmul
from .loop_rounding import has_loops, weighted
from .sampled_rows import CheckedRows

# Times in seconds on a processor of 3 GHz, estimated on the high side.
_NUMPY = 2e-9  # per element of an op in NumPy
_KERNEL = 0.3e-9  # per element of an op in a kernel
_MOVED = 5e-9  # per element that `reference.nudge` moves
_LIBRARY = 5e-12  # per multiply-add and byte of the dtype, in a library's product
_PLAIN = 1e-9  # per multiply-add in any other product
_CALL = 1e-6  # per op of a loop, whatever its size
_BYTE = 0.8e-9  # per byte that a launch places, copies and compares


def estimate(function: Program, placed: int, rows: CheckedRows | None) -> tuple[float, float]:
    """Estimated seconds of one launch, and of the reference evaluations that judge it.

    Values with symbolic sizes are ignored, because checks give symbols small sizes.

    Args:
        function: the fusion function.
        placed: bytes of all arrays of a run.
        rows: the rows that are evaluated; None = all.
    """
    launch, reference = placed * _BYTE, 0.0
    loops = has_loops(function)
    for instr, times in weighted(function):
        size = _largest(function, instr, {})
        share = 1.0 if rows is None else rows.share(instr)
        launch += times * size * _KERNEL
        # There are two evaluations, and the second one has moved operands.
        reference += times * share * size * (2 * _NUMPY + _MOVED)
        if loops:
            reference += times * _CALL * 3
        if issubclass(instr.op, Matmul):
            seconds = _product(function, instr, {})
            launch += seconds
            reference += share * 2 * seconds
    return launch, reference


def evaluation(function: Program, sizes: Mapping[str, int]) -> float:
    """Estimated seconds of one evaluation, op by op, for these sizes of symbols."""
    seconds = 0.0
    loops = has_loops(function)
    for instr, times in weighted(function):
        seconds += times * _largest(function, instr, sizes) * _NUMPY
        if loops:
            seconds += times * _CALL
        if issubclass(instr.op, Matmul):
            seconds += _product(function, instr, sizes)
    return seconds


def _product(function: Program, instr: Instr, sizes: Mapping[str, int]) -> float:
    a, b = (_shape(function, value, sizes) for value in instr.operands)
    dtype = getattr(function.type_of(instr.results[0]), "dtype", None)
    each = _LIBRARY * dtype.itemsize if dtype in (F32, F64) else _PLAIN
    return _elements(function, instr.results[0], sizes) * (a[-1] if a and b else 0) * each


def _largest(function: Program, instr: Instr, sizes: Mapping[str, int]) -> int:
    values = (*instr.operands, *instr.results)
    return max((_elements(function, value, sizes) for value in values), default=0)


def _elements(function: Program, value: int, sizes: Mapping[str, int]) -> int:
    return math.prod(_shape(function, value, sizes) or (0,))


def _shape(function: Program, value: int, sizes: Mapping[str, int]) -> tuple[int, ...]:
    """The shape of a value; () if it is no array, or a size is neither literal nor known."""
    type_ = function.type_of(value)
    shape = type_.shape if isinstance(type_, TensorType) else None
    if shape is not None and None in shape:
        return ()  # it follows from the index of a loop
    try:
        return tuple(evaluate(dim, sizes) for dim in shape or ())  # type: ignore[arg-type]
    except (LookupError, TypeError):
        return ()
