"""About what a run takes, told from shapes: large kernels are checked as far as there is time."""

from __future__ import annotations

import math

from ....dialect.ir.dtypes import F32, F64
from ....dialect.ir.program import Program
from ....dialect.ops.linalg.contract import Matmul
from .rows import Rows, literal_shape

# Seconds on a processor of 3 GHz, rather too many: of an element of an op in NumPy and in a kernel,
# of an element that `reference.nudge` moves, of a multiplication and addition in a product of a
# library per byte of the dtype, and in any other product; and of a byte that a launch places,
# copies and compares.
_NUMPY, _KERNEL, _MOVED = 2e-9, 0.3e-9, 5e-9
_LIBRARY, _PLAIN = 5e-12, 1e-9
_BYTE = 0.8e-9


def estimate(function: Program, placed: int, rows: Rows | None) -> tuple[float, float]:
    """Seconds of one launch, which places so many bytes, and of telling what it should give.

    Symbolic sizes count for nothing: they are given small values.
    """
    launch, reference = placed * _BYTE, 0.0
    for instr in function.body.walk():
        size = max((_elements(function, v) for v in (*instr.operands, *instr.results)), default=0)
        share = 1.0 if rows is None else rows.share(instr)
        launch += size * _KERNEL
        # The second evaluation has operands moved.
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
