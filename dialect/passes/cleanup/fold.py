"""Compute at compile time what depends on nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar

import numpy as np
from mlir import ir

from ...errors import ProfuseError
from ...ir.attrs import SYMBOL
from ...ir.dtypes import dtype_of
from ...ir.op import Op, op_named
from ...ir.symbolic import Sym
from ...ir.types import ScalarType, TensorType, Type
from ...mlir.facts import (
    CONSTANTS,
    constant_value,
    escapes,
    is_constant,
    known_type,
    sharing_matters,
)
from ...mlir.memory import Memory
from ...mlir.rewrite import (
    attrs_of,
    create,
    functions,
    op_class,
    ops_in,
    replace,
    symbol_of,
    terminator_of,
    type_of,
    walk_inner_first,
)
from ...ops.speculation import Guard, Identity
from ..base import Pass, register_pass

_NUMBERS = (bool, int, float, complex)
_INT64 = range(-(2**63), 2**63)


@register_pass
@dataclass(frozen=True)
class Fold(Pass):
    """Evaluate pure ops of constants, sizes that types know, and ``scf.if`` of a constant.

    Results of more than ``max-elements`` elements are left to run time, and so are those larger
    than what they are made from (filling is cheaper than loading), those that a caller would get
    as an array of its own, and whatever raises: the user must see that where the op stands.
    """

    name: ClassVar[str] = "fold"
    counts_changes: ClassVar[bool] = True
    max_elements: int = 4096

    def run(self, module: ir.Module) -> None:
        shared = sharing_matters(module)
        for func in functions(module):
            memory, careful = Memory(func), shared[symbol_of(func)]
            for op in walk_inner_first(func):
                self._visit(op, careful, memory)

    def _visit(self, op: ir.Operation, careful: bool, memory: Memory) -> None:
        if op.name == "scf.if":
            self._branch(op)
            return
        cls = op_class(op)
        if cls is None or op.name in CONSTANTS or not _may_fold(cls):
            return
        # A constant must not be written.
        if any(map(memory.is_written, op.results)):
            return
        values = self._values(cls, op)
        if values is None or not _fit(values, op):
            return
        # Asked last: the answer follows all views of a result.
        if not (careful and any(map(escapes, op.results))):
            replace(op, [_constant(v, r, op) for v, r in zip(values, op.results, strict=True)])
            self.count("ops-folded")

    def _values(self, cls: type[Op], op: ir.Operation) -> Sequence[Any] | None:
        """Values of the results, or None."""
        try:
            attrs = attrs_of(op)
            types = [known_type(v) for v in op.operands]
            if _may_be_huge(cls, types):
                return None
            inferred = cls.infer(types, attrs)
        except ProfuseError:
            return None
        found = [t.value if isinstance(t, ScalarType) else None for t in inferred]
        if found and not any(v is None or isinstance(v, Sym) for v in found):
            return found
        if not all(map(is_constant, op.operands)) or _warns(cls, types, inferred):
            return None
        args = [constant_value(v) for v in op.operands]
        limit = min(self.max_elements, max(1, *map(np.size, args), 1))
        if not all(_elements(t) <= limit for t in inferred):
            return None
        return self._evaluate(cls, attrs, args, limit)

    def _evaluate(
        self, cls: type[Op], attrs: dict[str, Any], args: Sequence[Any], limit: int
    ) -> Sequence[Any] | None:
        try:
            # As tier 0 does: a call must not warn on one tier and not on another.
            with np.errstate(all="ignore"):
                result = cls.evaluate(attrs, *args)
        except Exception:
            # Whatever it is, it belongs to run time, where tier 0 reports it.
            return None
        values = result if isinstance(result, tuple) else (result,)
        return values if all(_representable(v, limit) for v in values) else None

    def _branch(self, op: ir.Operation) -> None:
        """Put the block that is taken in the place of the ``scf.if``."""
        if not is_constant(op.operands[0]):
            return
        taken = op.regions[0 if constant_value(op.operands[0]) else 1]
        if not len(taken.blocks):
            if not len(op.results):
                op.erase()
                self.count("branches-taken")
            return
        block = taken.blocks[0]
        end = terminator_of(block)
        values = list(end.operands)
        for inner in ops_in(block):
            if inner != end:
                inner.move_before(op)
        replace(op, values)
        self.count("branches-taken")


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
    return type(value) in _NUMBERS


def _may_fold(cls: type[Op]) -> bool:
    # Observers and guards are there to see run-time values, not to be evaluated.
    return (
        cls.pure
        and not cls.regions
        and not issubclass(cls, (Identity, Guard))
        and not any(a.kind is SYMBOL for a in cls.attrs.values())
    )


def _may_be_huge(cls: type[Op], types: Sequence[Type]) -> bool:
    """True for powers and shifts of Python ints: these grow until they take all memory."""
    if cls.name not in ("pow", "shift_left") or not all(isinstance(t, ScalarType) for t in types):
        return False
    last = types[-1]
    return isinstance(last, ScalarType) and type(last.value) is int and abs(last.value) > 64


def _warns(cls: type[Op], types: Sequence[Type], inferred: Sequence[Type]) -> bool:
    """True for casts that NumPy warns of: the imaginary part goes."""
    return cls.name == "cast" and _kind(types[0]) == "c" != _kind(inferred[0])


def _kind(type_: Type) -> str:
    dtype = type_.dtype if isinstance(type_, (ScalarType, TensorType)) else None
    return dtype.kind if dtype else "c"


def _fit(values: Sequence[Any], op: ir.Operation) -> bool:
    """True if each value is of the kind and dtype that the op's result type says."""
    if len(values) != len(op.results):
        return False
    for value, result in zip(values, op.results, strict=True):
        stated = type_of(result)
        if isinstance(stated, ScalarType) != (type(value) in _NUMBERS):
            return False
        if not isinstance(stated, (ScalarType, TensorType)):
            return False
        if stated.dtype is not None and stated.dtype is not dtype_of(
            type(value) if type(value) in _NUMBERS else value.dtype
        ):
            return False
    return True


def _constant(value: Any, result: ir.Value, op: ir.Operation) -> ir.Value:
    """A constant of the type that users of ``result`` know."""
    cls = op_named("constant")
    return create(cls, [], {"value": value}, [type_of(result)], op).results[0]
