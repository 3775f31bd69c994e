"""Checks of fused GPU code: of operands, and of values that were constants when profiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..guards.mismatch import fits_relaxed
from ..guards.relaxed import relaxed, sizes_match
from ..ir.attrs import I64_ARRAY
from ..ir.op import Attrs, Op, attr, operand, result
from ..ir.types import BOOL_SCALAR, ListType, Type
from .speculation import Guard


class CudaGuard(Guard, name="cuda_guard"):
    """Compare with the expected types, but let sizes other than 0 and 1 differ (R3.42)."""

    behavior = "relaxed"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (*map(relaxed, attrs["types"]), BOOL_SCALAR)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return (*args, fits_relaxed(attrs["types"], args))


class SizeEq(Op, name="size_eq"):
    """Compare the target sizes of a sum with those that were profiled; either may be None (R3.43).

    ``sizes`` is a list of numbers. ``reference`` is empty where None was profiled.
    """

    sizes = operand()
    passed = result()
    reference = attr(I64_ARRAY)
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (BOOL_SCALAR,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return sizes_match(args[0], attrs["reference"])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not isinstance(types[0], ListType):
            yield f"operand 0 must be a list, not {types[0]}"
        for size in attrs["reference"]:
            if size < 0:
                yield f"reference has a negative size: {size}"


__all__ = ["CudaGuard", "SizeEq"]
