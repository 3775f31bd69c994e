"""Speculation: observers, guards, fused groups and their fallbacks (R1.16 to R1.42).

Subgraphs are private functions named by symbol, not regions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Literal

from ..guards.checks import symbol_name
from ..guards.mismatch import check_types
from ..ir.attrs import I64, SYMBOL, TYPE, TYPES, VALUE
from ..ir.op import Attrs, Op, attr, operand, result
from ..ir.symbolic import Sym
from ..ir.types import BOOL_SCALAR, TensorType, Type, with_shape


class Identity(Op):
    """Family of observers: one value through, unchanged."""

    aliases = {0: 0}
    input = operand()
    output = result()
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (types[0],)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return args[0]


class Profile(Identity, name="profile"):
    """Record the type of a tensor; ``profiled_type`` is what all records agree on (R1.18).

    Pure: an observer that nobody reads observes nothing anybody will ask for.
    """

    site = attr(I64)
    profiled_type = attr(TYPE, default=None)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not isinstance(types[0], TensorType):
            yield f"observes tensors, not {types[0]}"
        if not isinstance(attrs.get("profiled_type") or TensorType(), TensorType):
            yield f"profiled_type must be a tensor type, not {attrs['profiled_type']}"
        if attrs["site"] < 0:
            yield "site must not be negative"


class ProfileValue(Identity, name="profile_value"):
    """Record a value that is no tensor: how often it was None, and what it was otherwise (R1.23).

    ``none`` and ``present`` count hits; ``seen`` is there if every hit was the same number.
    """

    site = attr(I64)
    seen = attr(VALUE, default=None)
    none = attr(I64, default=0)
    present = attr(I64, default=0)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if isinstance(types[0], TensorType):
            yield f"observes values that are no tensors, not {types[0]}"
        for field in ("site", "none", "present"):
            if attrs[field] < 0:
                yield f"{field} must not be negative"


class ProfileCounter(Op, name="profile_counter"):
    """Count one finished profiling run (R1.20). Last op of the top block."""

    pure = False
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return ()


class Guard(Op):
    """Family of checks: the operands again, with the types they were checked for, and an i1.

    ``behavior`` says what the guard asks of sizes, in the words of the fusion strategy: that they
    are those of the types (static), or that equal symbols are equal sizes (dynamic); a relaxed
    guard lets sizes other than 0 and 1 differ.
    """

    behavior: ClassVar[Literal["static", "dynamic", "relaxed"]] = "static"
    inputs = operand(variadic=True)
    refined = result(variadic=True)
    passed = result()
    types = attr(TYPES)
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return (result,) if result < count else ()

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (*map(_checked_part, attrs["types"]), BOOL_SCALAR)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return (*args, check_types(attrs["types"], args))

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        expected = attrs["types"]
        if len(expected) != len(types):
            yield f"{len(types)} operands but {len(expected)} types"
        for index, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                yield f"operand {index} must be a tensor, not {type_}"
        for index, type_ in enumerate(expected):
            if not isinstance(type_, TensorType):
                yield f"expected type {index} must be a tensor type, not {type_}"


def _checked_part(type_: Type) -> Type:
    """What has been established once the check passed: sizes count only as a whole (R1.39)."""
    if isinstance(type_, TensorType) and None in (type_.shape or ()):
        return with_shape(type_, None)
    return type_


class TypeCheck(Guard, name="type_check"):
    """Compare what the expected types know with the tensors (R1.38, R1.39)."""


class DynamicGuard(Guard, name="dynamic_guard"):
    """Compare with types whose sizes are symbols: equal symbols, equal sizes (R1.40)."""

    behavior = "dynamic"

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from super().verify(types, attrs)
        tensors = [t for t in attrs["types"] if isinstance(t, TensorType)]
        dims = [d for t in tensors for d in t.shape or ()]
        for index, type_ in enumerate(tensors):
            if not type_.is_complete:
                yield f"expected type {index} must have a dtype and all sizes"
        bound = {symbol_name(d) for d in dims}
        used = {name for d in dims if isinstance(d, Sym) for name in d.symbols}
        for name in sorted(used - bound):
            yield f"no operand has a dimension that is just {name}"


class Subgraph(Op):
    """Family of calls of a private function of the same module."""

    inputs = operand(variadic=True)
    outputs = result(variadic=True)
    callee = attr(SYMBOL)
    undifferentiable = "profiles and guards come after gradients"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        # The number of results is the callee's; in the caller they are always bare.
        return ()


class FusionGroup(Subgraph, name="fusion_group"):
    """Run the fused kernel compiled from ``callee``, whose arguments have refined types."""


class FallbackGraph(Subgraph, name="fallback_graph"):
    """The unspecialised body of a group, run when its guard fails (R1.38)."""

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        # Unlike a kernel's or an executor's, results of an evaluated function may be views.
        return tuple(range(count))


class CallFallback(Subgraph, name="call_fallback"):
    """Call the executor made of a fallback graph, one level deeper (R1.41, R1.42)."""

    fallback = attr(I64, default=1)


__all__ = [
    "CallFallback", "DynamicGuard", "FallbackGraph", "FusionGroup", "Guard", "Profile",
    "ProfileCounter", "ProfileValue", "Subgraph", "TypeCheck",
]  # fmt: skip
