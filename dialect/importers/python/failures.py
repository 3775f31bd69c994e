"""What decides whether an op raises an error: nothing, sizes, or contents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ...ir.op import Op
from ...ir.types import ScalarType, TensorType, Type
from ...ops.elementwise.families import Elementwise, PartialBinary

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

# Ops beside the elementwise ones that fail for no sizes and no contents.
_TOTAL = frozenset({
    "constant", "dim", "size", "rank", "dtype_code", "to_tensor", "copy", "sum", "prod", "mean",
    "any", "all", "var", "std", "cumsum", "cumprod", "transpose", "expand_dims",
})  # fmt: skip
_BY_INDEX = frozenset({"take", "gather", "index"})


def may_fail(
    rec: Recorder, op: type[Op], operands: Sequence[int], hints: Sequence[Type]
) -> Literal["contents", "sizes"] | None:
    """What decides whether recording this op, or running it for other arguments, raises.

    It is None where the outcome is the same for all arguments of these dtypes and ranks.
    """
    if op.name in _TOTAL:
        return None
    arrays = {o for o, h in zip(operands, hints, strict=True) if _rank(h)}
    numbers = [o for o, h in zip(operands, hints, strict=True) if isinstance(h, ScalarType)]
    unknown = any(number not in rec.known for number in numbers)
    if issubclass(op, Elementwise):
        if op.name == "pow" and _of_ints(hints) and (arrays or unknown):
            # A negative exponent raises an error where the base is an integer.
            exponent = _number(rec, operands[-1])
            if exponent is None or exponent < 0:
                return "contents"
            if operands[-1] in rec.leaf_of:
                return "sizes"
        if not arrays:
            partial = issubclass(op, PartialBinary) and len(numbers) == len(operands)
            return ("contents" if unknown else "sizes") if partial else None
        if len(arrays) == 1:
            return None
        return "contents" if any(_is_open(rec.hints[a]) for a in arrays) else "sizes"
    if op.name in _BY_INDEX:
        return "contents"
    return "contents" if unknown or any(map(_is_open, hints)) else "sizes"


def _rank(hint: Type) -> int:
    return len(hint.shape or ()) if isinstance(hint, TensorType) else 0


def _is_open(hint: Type) -> bool:
    """True for an array of which a size depends on contents."""
    return isinstance(hint, TensorType) and None in (hint.shape or ())


def _of_ints(hints: Sequence[Type]) -> bool:
    return all(getattr(h, "dtype", None) is not None and h.dtype.is_int for h in hints)  # type: ignore[union-attr]


def _number(rec: Recorder, value: int) -> Any:
    """The number that a value is, for the example arguments at least; None if it is none."""
    found = rec.known.get(value)
    return found if isinstance(found, (int, float, np.number)) else None


__all__ = ["may_fail"]
