"""Results in a foreign byte order: copies and parts of arguments keep it in NumPy.

Kernels read native numbers, and so a graph reads foreign arrays through copies. Where a result may
have the byte order of what it was made of, Python runs the calls with such arrays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.errors import TraceError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.ir.op import Fusion
from ...dialect.ir.types import TensorType
from ...dialect.ops.elementwise.families import Elementwise
from ...dialect.ops.elementwise.select import Cast
from ...dialect.ops.reductions.reduce import Reduction
from ...dialect.ops.reductions.scan import Scan

FOREIGN_ORDER = TraceError(
    "an array in a foreign byte order is an argument, or read, and a result may keep that order",
    hint="convert it outside of the function: x.astype(x.dtype.newbyteorder('='))",
)
# Ops whose results have the machine's byte order in NumPy, whatever that of their operands is.
_NATIVE = (Elementwise, Reduction, Scan)


def keeps_byte_order(trace: Trace) -> bool:
    """True if a result may have the byte order of an argument: copies and parts of it have."""
    main = trace.module.main
    if trace.is_native:
        return True
    makers = {r: instr for instr in main.body.instrs for r in instr.results}
    inputs = set(main.inputs)
    for value in main.outputs[: len(main.outputs) - len(trace.writes)]:
        hint = trace.hints.get(value)
        if not isinstance(hint, TensorType) or hint.rank == 0:
            continue
        instr = makers.get(value)
        may_copy = value in trace.copied
        while instr is not None and instr.op.aliases and not instr.blocks:
            value, may_copy = instr.operands[0], may_copy or instr.op.layout_decides
            instr = makers.get(value)
        if value in inputs and not may_copy:
            continue  # the caller's array itself
        is_native = instr is not None and (issubclass(instr.op, _NATIVE) or instr.op.fusion is Fusion.CONTRACTION)
        if not is_native or (instr is not None and instr.op is Cast):
            return True
    return False


def has_foreign(arrays: Sequence[Any]) -> bool:
    """True if one of these is an array in a foreign byte order."""
    return any(type(x) is np.ndarray and not x.dtype.isnative for x in arrays)
