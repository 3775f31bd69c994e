"""Compute at compile time what depends on nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, ClassVar

import numpy as np
from mlir import ir

from ...errors import ProfuseError
from ...ir.attrs import SYMBOL
from ...ir.dtypes import NUMBERS, dtype_of
from ...ir.op import Op, unbared
from ...ir.symbolic import Sym
from ...ir.types import ListedType, ScalarType, TensorType, Type, known_value, listed_type
from ...mlir.facts import constant_value, escapes, is_constant, known_type
from ...mlir.rewrite import create, ops_in, replace, terminator_of, type_of, walk_inner_first
from ...ops.control_flow.control import If
from ...ops.create import Constant
from ...ops.elementwise.families import Elementwise
from ...ops.elementwise.select import Cast
from ...ops.host_call import PythonCall
from ...ops.speculation import Guard, Identity
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass

_INT64 = range(-(2**63), 2**63)


def _branch(m: Match) -> int:
    """Put the block that is taken in the place of the ``scf.if``."""
    op = m.op
    if not is_constant(op.operands[0]):
        return 0
    region = op.regions[0 if constant_value(op.operands[0]) else 1]
    if not len(region.blocks):
        if len(op.results):
            return 0
        op.erase()
        return 1
    block = region.blocks[0]
    end = terminator_of(block)
    values = list(end.operands)
    for inner in ops_in(block):
        if inner != end:
            inner.move_before(op)
    replace(op, values)
    return 1


def _evaluated(m: Match) -> int:
    """Put constants in the place of a pure op whose results can be computed now."""
    op = m.op
    if not (_may_fold(m.cls) and _may_be_known(op)):  # type: ignore[arg-type]
        return 0
    # A constant must not be written.
    if any(map(m.function.memory.is_written, op.results)):
        return 0
    values = _values(m)
    if values is None or not _fit(values, op):
        return 0
    # Asked last: the answer follows all views of a result.
    if m.function.careful and any(map(escapes, op.results)):
        return 0
    replace(op, [_constant(v, r, op) for v, r in zip(values, op.results, strict=True)])
    return 1


@register_pass
@dataclass(frozen=True)
class Fold(PatternPass):
    """Evaluate pure ops of constants, sizes that types know, and ``scf.if`` of a constant.

    Results of more than ``max-elements`` elements are left to run time, and so are those larger
    than what they are made from (filling is cheaper than loading), those that a caller would get
    as an array of its own, and whatever raises: the user must see that where the op stands.
    """

    name: ClassVar[str] = "fold"
    patterns: ClassVar[Sequence[Pattern]] = (
        Pattern("branches-taken", (If,), _branch),
        Pattern("ops-folded", (Op,), _evaluated),
    )
    order = staticmethod(walk_inner_first)
    max_elements: int = 4096


def _values(m: Match) -> Sequence[Any] | None:
    """The values of the results; None where they have to be computed at run time."""
    cls, op = m.cls, m.op
    try:
        types = [known_type(v) for v in op.operands]
        if issubclass(cls, Elementwise) and cls.may_be_huge(list(map(known_value, types))):
            return None
        inferred = cls.infer(types, m.attrs)
    except ProfuseError:
        return None
    numbers = list(map(known_value, inferred))
    if numbers and all(map(_is_literal, numbers)):
        return numbers
    if not all(map(is_constant, op.operands)) or _warns(cls, types, inferred):
        return None
    args = [constant_value(v) for v in op.operands]
    limit = min(m.options.max_elements, max(1, *map(np.size, args), 1))
    if not all(_elements(t) <= limit for t in inferred):
        return None
    try:
        # As tier 0 does: a call must not warn on one tier and not on another.
        with np.errstate(all="ignore"):
            result = cls.evaluate(m.attrs, *args)
    except Exception:
        # Whatever it is, it belongs to run time, where tier 0 reports it.
        return None
    values = unbared(result, len(op.results))
    return values if all(_representable(v, limit) for v in values) else None


def _is_literal(value: Any) -> bool:
    """True for a value that is known without symbols."""
    items = value if isinstance(value, tuple) else (value,)
    return not any(item is None or isinstance(item, Sym) for item in items)


def _elements(type_: Type) -> int:
    """Number of elements, as far as sizes are known."""
    shape = type_.shape if isinstance(type_, TensorType) else None
    return prod(d for d in shape or () if isinstance(d, int))


def _representable(value: Any, limit: int) -> bool:
    """True if a constant op can hold the value."""
    if type(value) is int:
        return value in _INT64
    if isinstance(value, (np.ndarray, np.generic)):
        try:
            dtype_of(value.dtype)
        except ProfuseError:
            return False
        return value.size <= limit
    return type(value) in NUMBERS or listed_type(value) is not None


def _may_be_known(op: ir.Operation) -> bool:
    """False for an op that makes tensors of what is not constant, as most do: neither types nor operands tell them."""
    return all(map(is_constant, op.operands)) or any(
        isinstance(type_of(r), (ScalarType, ListedType)) for r in op.results
    )


@cache
def _may_fold(cls: type[Op]) -> bool:
    # Observers and guards are there to see run-time values, not to be evaluated.
    return (
        cls.pure
        and not cls.regions
        and not issubclass(cls, (Constant, Identity, Guard, PythonCall))
        and not any(a.kind is SYMBOL for a in cls.attrs.values())
    )


def _warns(cls: type[Op], types: Sequence[Type], inferred: Sequence[Type]) -> bool:
    """True for casts of which NumPy warns, because they drop the imaginary part."""
    return cls is Cast and _kind(types[0]) == "c" != _kind(inferred[0])


def _kind(type_: Type) -> str:
    dtype = type_.dtype if isinstance(type_, (ScalarType, TensorType)) else None
    return dtype.kind if dtype else "c"


def _fit(values: Sequence[Any], op: ir.Operation) -> bool:
    """True if each value is of the kind and dtype that the op's result type says."""
    if len(values) != len(op.results):
        return False
    for value, result in zip(values, op.results, strict=True):
        stated = type_of(result)
        if isinstance(stated, ListedType) or listed_type(value) is not None:
            if listed_type(value) != stated:  # None is also the undefined tensor
                return False
            continue
        if isinstance(stated, ScalarType) != (type(value) in NUMBERS):
            return False
        if not isinstance(stated, (ScalarType, TensorType)):
            return False
        if stated.dtype is not None and stated.dtype is not dtype_of(
            type(value) if type(value) in NUMBERS else value.dtype
        ):
            return False
    return True


def _constant(value: Any, result: ir.Value, op: ir.Operation) -> ir.Value:
    """A constant of the type that users of ``result`` know."""
    return create(Constant, [], {"value": value}, [type_of(result)], op).results[0]
