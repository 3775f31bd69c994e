"""Which operands and results the gradient of an op reads: what a run has to keep for it.

The rule is recorded once, on stand-ins, and what its result depends on is looked up there. Shapes
and dtypes are no contents: a rule that asks for these alone reads nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ProfuseError
from ...ir.op import Op
from ...ops.elementwise.families import Elementwise
from ..python.journal import Journal
from ..python.scope import Scope
from ..tracing.current import recording
from ..tracing.leaves import NUMBERS
from ..tracing.operators import wrap
from ..tracing.recorder import Recorder
from .builder import TraceBuilder
from .needed import contents_read
from .rules import pulled

Reads = tuple[frozenset[int], frozenset[int]]  # operands, results


def reads_of(
    op: type[Op], attrs: Mapping[str, Any], operands: Sequence[Any], wanted: Sequence[bool]
) -> Reads:
    """Which operands and which results the gradients of the ``wanted`` operands depend on.

    Args:
        attrs: of the op, with defaults.
        operands: numbers, and whatever has a shape and a dtype; contents do not count.

    All of them, where recording the rule fails or depends on sizes. Raises TraceError for an op
    that has no gradient.
    """
    everything = frozenset(range(len(operands)))
    rec = Recorder("reads", [_like(x) for x in operands if type(x) not in NUMBERS])
    rec.journal, rec.scope, rec.entry = Journal(), Scope(rec, reads_of), reads_of.__code__
    with recording(rec):
        arrays = iter(rec.inputs)
        values = [
            rec.constant(_general(op, x)) if type(x) in NUMBERS else next(arrays) for x in operands
        ]
        results = rec.emit(op, values, attrs)
        found = everything, frozenset(range(len(results)))
        ys = [wrap(rec, v) for v in results]
        b = TraceBuilder(rec)
        b.wanted = wanted
        start = len(rec.program.body.instrs)
        gs = [b.op("positive", y) if _is_float(y) else None for y in ys]
        try:
            pulls = pulled(b, op, attrs, [b.value(v) for v in values], ys, gs)
        except ProfuseError:
            raise
        except Exception:  # a rule of the user's that is not made for traces
            return found
    if rec.guards:
        return found
    made = rec.program.body.instrs[start:]
    live = {g.value for g in pulls if hasattr(g, "value")} - {g.value for g in gs if g is not None}
    given = set(values) | set(results)
    for instr in reversed(made[sum(g is not None for g in gs) :]):
        if not live.isdisjoint(instr.results):
            live |= set(contents_read(instr))
    read = live & given
    return (
        frozenset(k for k, v in enumerate(values) if v in read),
        frozenset(k for k, v in enumerate(results) if v in read),
    )


def _like(x: Any) -> np.ndarray:
    """An array of the shape and dtype of an operand in next to no memory."""
    shape, dtype = x.shape, x.dtype
    return np.ndarray(shape, dtype, bytes(dtype.itemsize), strides=(0,) * len(shape))


def _general(op: type[Op], number: Any) -> Any:
    """A number in place of an operand; of an elementwise op, any one of the type decides alike."""
    return type(number)(3) if issubclass(op, Elementwise) else number


def _is_float(y: Any) -> bool:
    return np.dtype(getattr(y, "dtype", np.int64)).kind in "fcV"


__all__ = ["Reads", "reads_of"]
