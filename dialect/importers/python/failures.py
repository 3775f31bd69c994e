"""What decides whether an op raises an error: nothing, sizes, or contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.op import Failure, Op
from ...ir.types import ScalarType, TensorType, Type
from ...ops.elementwise.binary import Pow
from ...ops.elementwise.families import Elementwise, PartialBinary

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder


def decides(rec: Recorder, op: type[Op], operands: Sequence[int], hints: Sequence[Type]) -> Failure:
    """What decides whether recording this op, or running it for other arguments, raises an error.

    It is `Failure.NEVER` where the outcome is the same for all arguments of these dtypes and ranks.
    """
    if op.failure is not Failure.SIZES:
        return op.failure
    arrays = {o for o, h in zip(operands, hints, strict=True) if _rank(h)}
    numbers = [o for o, h in zip(operands, hints, strict=True) if isinstance(h, ScalarType)]
    unknown = any(number not in rec.known for number in numbers)
    if not issubclass(op, Elementwise):
        return Failure.CONTENTS if unknown or any(map(_is_open, hints)) else Failure.SIZES
    if issubclass(op, Pow) and _of_ints(hints) and (arrays or unknown):
        # A negative exponent raises an error where the base is an integer.
        exponent = _number(rec, operands[-1])
        if exponent is None or exponent < 0:
            return Failure.CONTENTS
        if operands[-1] in rec.leaf_of:
            return Failure.SIZES
    if not arrays:
        if not issubclass(op, PartialBinary) or len(numbers) < len(operands):
            return Failure.NEVER
        return Failure.CONTENTS if unknown else Failure.SIZES
    if len(arrays) == 1:
        return Failure.NEVER
    return Failure.CONTENTS if any(_is_open(rec.hints[a]) for a in arrays) else Failure.SIZES


def _rank(hint: Type) -> int:
    return len(hint.shape or ()) if isinstance(hint, TensorType) else 0


def _is_open(hint: Type) -> bool:
    """True for an array with a size that depends on contents."""
    return isinstance(hint, TensorType) and None in (hint.shape or ())


def _of_ints(hints: Sequence[Type]) -> bool:
    return all(getattr(h, "dtype", None) is not None and h.dtype.is_int for h in hints)  # type: ignore[union-attr]


def _number(rec: Recorder, value: int) -> Any:
    """The number that a value has for the example arguments; None if that is not known."""
    found = rec.known.get(value)
    return found if isinstance(found, (int, float, np.number)) else None


__all__ = ["decides"]
