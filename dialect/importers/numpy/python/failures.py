"""The facts that decide whether an op raises an error: none, sizes, or contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.op import Attrs, Failure, Op
from ....ir.types import ScalarType, TensorType, Type
from ....ops.create import Constant
from ....ops.elementwise.families import Compare, Elementwise, PartialBinary
from ....ops.elementwise.powers import Pow
from ....ops.indexing.inplace import Assign, InPlace, Put
from ....ops.indexing.scatter import Conform

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_ORDER = (Failure.NEVER, Failure.SIZES, Failure.CONTENTS)
# A Python integer that one of these meets must fit the dtype of the arrays.
_STORING = (Elementwise, InPlace, Assign, Conform, Put)


def decides(rec: Recorder, op: type[Op], operands: Sequence[int], hints: Sequence[Type]) -> Failure:
    """The facts that decide whether recording this op, or running it for other arguments, raises an error.

    It is `Failure.NEVER` where the outcome is the same for all arguments of these dtypes and ranks.
    """
    failures = [_of_arrays(rec, op, operands, hints), _of_integers(rec, op, operands, hints)]
    if issubclass(op, (Assign, Conform, Put)) and _stores_float(rec, operands, hints):
        failures.append(Failure.CONTENTS)
    return max(failures, key=_ORDER.index)


def fail_early(rec: Recorder, op: type[Op], operands: Sequence[int], hints: Sequence[Type], attrs: Attrs) -> None:
    """Raise the error that known numbers cause whatever arrays contain, as NumPy raises it."""
    if all(isinstance(h, ScalarType) and o in rec.known for o, h in zip(operands, hints, strict=True)):
        op.evaluate(attrs, *(rec.known[o] for o in operands))
    elif _integers(op, operands, hints):
        examples = [_example(rec, o, h) for o, h in zip(operands, hints, strict=True)]
        op_class, attrs = (Assign, {}) if op is Put else (op, attrs)
        op_class.evaluate(attrs, *examples[: 2 if op is Put else None])


def _of_arrays(rec: Recorder, op: type[Op], operands: Sequence[int], hints: Sequence[Type]) -> Failure:
    if op.failure is not Failure.SIZES:
        return op.failure
    arrays = {o for o, h in zip(operands, hints, strict=True) if _rank(h)}
    numbers = [o for o, h in zip(operands, hints, strict=True) if isinstance(h, ScalarType)]
    unknown = any(number not in rec.known for number in numbers)
    if not issubclass(op, Elementwise):
        return Failure.CONTENTS if unknown or any(map(_is_open, hints)) else Failure.SIZES
    scalars = len(arrays) + len(numbers) < len(operands)  # NumPy's, whose values are not known
    if issubclass(op, Pow) and _of_ints(hints) and (arrays or unknown or scalars):
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


def _of_integers(rec: Recorder, op: type[Op], operands: Sequence[int], hints: Sequence[Type]) -> Failure:
    """The facts that decide whether Python integers fit the dtype of the arrays that they meet."""
    integers = _integers(op, operands, hints)
    if any(o not in rec.known for o in integers):
        return Failure.CONTENTS
    definitions = [rec.defs.get(o) for o in integers]
    literal = all(m is not None and m.op is Constant for m in definitions)
    return Failure.NEVER if literal else Failure.SIZES


def _integers(op: type[Op], operands: Sequence[int], hints: Sequence[Type]) -> list[int]:
    """The Python integers that an op converts to the dtype of arrays of integers."""
    kinds = [(isinstance(h, ScalarType), getattr(h, "dtype", None)) for h in hints]
    if not issubclass(op, _STORING) or issubclass(op, Compare):
        return []
    if not any(d is not None and d.is_int and not python for python, d in kinds):
        return []
    return [o for o, (python, d) in zip(operands, kinds, strict=True) if python and d is not None and d.is_int]


def _stores_float(rec: Recorder, operands: Sequence[int], hints: Sequence[Type]) -> bool:
    """True if one float, which may be NaN, is stored in an array of integers."""
    dtypes = [getattr(h, "dtype", None) for h in hints]
    return any(d is not None and d.is_int for d in dtypes) and any(
        d is not None and d.is_float and not _rank(h) and o not in rec.known
        for o, h, d in zip(operands, hints, dtypes, strict=True)
    )


def _example(rec: Recorder, operand: int, hint: Type) -> Any:
    """A number that is known, or an array of ones: no op raises an error for these."""
    if isinstance(hint, ScalarType) and operand in rec.known:
        return rec.known[operand]
    dtype = getattr(hint, "dtype", None)
    return np.ones((1,) * _rank(hint), None if dtype is None else dtype.numpy)


def _rank(hint: Type) -> int:
    return len(hint.shape or ()) if isinstance(hint, TensorType) else 0


def _is_open(hint: Type) -> bool:
    """True for an array with a size that depends on contents."""
    return isinstance(hint, TensorType) and None in (hint.shape or ())


def _of_ints(hints: Sequence[Type]) -> bool:
    return all(getattr(h, "dtype", None) is not None and h.dtype.is_int for h in hints)  # type: ignore[union-attr]


def _number(rec: Recorder, value: int) -> Any:
    """The number that a value has for the example arguments; None if that is not known."""
    number = rec.known.get(value)
    return number if isinstance(number, (int, float, np.number)) else None
