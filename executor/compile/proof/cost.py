"""Estimates the time of a check from shapes, so that large kernels can be checked in part."""

from __future__ import annotations

import math

from ....dialect.ir.dtypes import F32, F64
from ....dialect.ir.program import Program
from ....dialect.ops.linalg.contract import Matmul
from .rows import Rows, literal_shape

# Times in seconds on a processor of 3 GHz, estimated on the high side.
_NUMPY = 2e-9  # per element of an op in NumPy
_KERNEL = 0.3e-9  # per element of an op in a kernel
_MOVED = 5e-9  # per element that `reference.nudge` moves
_LIBRARY = 5e-12  # per multiply-add and byte of the dtype, in a library's product
_PLAIN = 1e-9  # per multiply-add in any other product
_BYTE = 0.8e-9  # per byte that a launch places, copies and compares


def estimate(function: Program, placed: int, rows: Rows | None) -> tuple[float, float]:
    """Estimated seconds of one launch, and of the reference evaluations that judge it.

    Values with symbolic sizes are ignored, because checks give symbols small sizes.

    Args:
        function: the fusion function.
        placed: bytes of all arrays of a run.
        rows: the rows that are evaluated; None = all.
    """
    launch, reference = placed * _BYTE, 0.0
    for instr in function.body.walk():
        size = max((_elements(function, v) for v in (*instr.operands, *instr.results)), default=0)
        share = 1.0 if rows is None else rows.share(instr)
        launch += size * _KERNEL
        # There are two evaluations, and the second one has moved operands.
        reference += share * size * (2 * _NUMPY + _MOVED)
        if issubclass(instr.op, Matmul):
            a, b = (literal_shape(function, v) or () for v in instr.operands)
            dtype = getattr(function.type_of(instr.results[0]), "dtype", None)
            each = _LIBRARY * dtype.itemsize if dtype in (F32, F64) else _PLAIN
            seconds = _elements(function, instr.results[0]) * (a[-1] if a and b else 0) * each
            launch += seconds
            reference += share * 2 * seconds
    return launch, reference


def _elements(function: Program, value: int) -> int:
    return math.prod(literal_shape(function, value) or (0,))
