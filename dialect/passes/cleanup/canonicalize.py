"""Small rewrites that are right for every value of the types that are known.

Kept out on purpose: ``x + 0.0`` (changes -0.0), complex arithmetic with 1 (turns inf into nan),
anything that changes a dtype, and anything by which a caller would get an array that shares
memory where NumPy gives a fresh one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from mlir import ir

from ...errors import ProfuseError
from ...ir.op import Fusion, Op, op_named
from ...ir.types import ScalarType, TensorType
from ...ir.types import type_of as type_of_value
from ...mlir.facts import (
    CONSTANTS,
    constant_value,
    escapes,
    is_constant,
    is_fresh,
    known_type,
    sharing_matters,
)
from ...mlir.memory import Memory
from ...mlir.rewrite import (
    attrs_of,
    create,
    defining_op,
    functions,
    is_terminator,
    is_used,
    op_class,
    replace,
    symbol_of,
    type_of,
    walk_inner_first,
)
from ...ops.speculation import Subgraph
from ..base import Pass, register_pass

Rule = Callable[[ir.Operation, dict[str, Any]], "ir.Value | None"]
RULES: dict[str, list[Rule]] = {}
_OUTSIDE_KERNELS: set[Rule] = set()

_IDEMPOTENT = ("abs", "relu", "floor", "ceil", "trunc", "rint", "positive")
_INVOLUTIONS = ("neg", "conj", "bitwise_not")


@register_pass
@dataclass(frozen=True)
class Canonicalize(Pass):
    """Peephole rewrites: neutral operands, ops that undo each other, moves that move nothing.

    ``numbers``: 0-d constants become Python numbers in fusion functions, too, where
    `insert-casts` has yet to make promotion explicit.
    """

    name: ClassVar[str] = "canonicalize-profuse"
    counts_changes: ClassVar[bool] = True
    numbers: bool = False

    def run(self, module: ir.Module) -> None:
        shared = sharing_matters(module)
        for func in functions(module):
            memory, careful = Memory(func), shared[symbol_of(func)]
            for op in walk_inner_first(func):
                self._visit(op, careful, memory)

    def _visit(self, op: ir.Operation, careful: bool, memory: Memory) -> None:
        cls = op_class(op)
        if cls is None or cls.name not in RULES or len(op.results) != 1:
            return
        if memory.is_touched(op):
            return
        new = _rewritten(cls, op, in_kernel=not careful and not self.numbers)
        if new is None:
            return
        if memory.may_stand_for(new) and self._allowed(cls, op, new, careful):
            replace(op, [new])
            self.count("ops-rewritten")
        else:
            _discard(new)

    def _allowed(self, cls: type[Op], op: ir.Operation, new: ir.Value, careful: bool) -> bool:
        old = op.results[0]
        # A reshape copies where the strides of its operand do not allow a view.
        copies = cls.fusion is not Fusion.VIEW or cls.name == "reshape"
        if careful and copies and escapes(old) and (not is_fresh(new) or escapes(new)):
            return False
        return _types_allow(old, new)


def _discard(value: ir.Value) -> None:
    """Erase an op that a rule has made in vain, with the constants made for it."""
    made = defining_op(value)
    if made is None or is_used(made):
        return
    makers = list(map(defining_op, made.operands))
    made.erase()
    for maker in makers:
        if maker is not None and maker.name in CONSTANTS and not is_used(maker):
            maker.erase()


def _rewritten(cls: type[Op], op: ir.Operation, *, in_kernel: bool) -> ir.Value | None:
    try:
        attrs = attrs_of(op)
        for rule in RULES[cls.name]:
            if in_kernel and rule in _OUTSIDE_KERNELS:
                continue
            new = rule(op, attrs)
            if new is not None:
                return new
    except ProfuseError:
        return None  # ill-typed; the op itself is where that is reported
    return None


def _types_allow(old: ir.Value, new: ir.Value) -> bool:
    """Types may differ only where every user reads the new one for itself."""
    if old.type == new.type:
        return True
    for use in old.uses:
        user = use.owner.operation
        cls = op_class(user)
        if cls is None or is_terminator(user) or cls.regions or issubclass(cls, Subgraph):
            return False
    return True


def rule(*names: str, in_kernels: bool = True) -> Callable[[Rule], Rule]:
    """Decorator: a rewrite of ops of these names, to an existing or newly made value."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES.setdefault(name, []).append(function)
        if not in_kernels:
            _OUTSIDE_KERNELS.add(function)
        return function

    return add


# --- what rules ask --------------------------------------------------------------------------


def _tensor(value: ir.Value) -> TensorType | None:
    """The type of a tensor of known dtype."""
    type_ = type_of(value)
    return type_ if isinstance(type_, TensorType) and type_.dtype is not None else None


def _unchanged(op: ir.Operation, attrs: dict[str, Any], value: ir.Value) -> bool:
    """True if the op's result certainly has the dtype and shape of ``value``."""
    cls, mine = op_class(op), _tensor(value)
    if cls is None or mine is None:
        return False
    inferred = cls.infer([known_type(v) for v in op.operands], attrs)[0]
    if not isinstance(inferred, TensorType) or inferred.dtype is not mine.dtype:
        return False
    # The other operands are Python numbers, or sizes: an elementwise op keeps even unknown shapes.
    return cls.fusion is Fusion.POINTWISE or (mine.is_complete and inferred.shape == mine.shape)


def _is_number(value: ir.Value, wanted: float, *, negative_zero: bool = False) -> bool:
    """True for a constant Python number equal to ``wanted``, the sign of zero included."""
    found = constant_value(value) if is_constant(value) else None
    if type(found) not in (bool, int, float) or found != wanted:
        return False
    return type(found) is not float or bool(np.signbit(found)) == negative_zero


def _inner(value: ir.Value, *names: str) -> ir.Operation | None:
    """The op that makes ``value`` if it has one of these names."""
    made = defining_op(value)
    cls = op_class(made) if made is not None else None
    return made if cls is not None and cls.name in names else None


def _kind(value: ir.Value) -> str:
    type_ = _tensor(value)
    return type_.dtype.kind if type_ and type_.dtype else ""


# --- arithmetic ------------------------------------------------------------------------------


# In fusion functions numbers have been made tensors, so that promotion is explicit.
@rule("add", "sub", "mul", "div", in_kernels=False)
def _rank_0_constant(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    """A 0-d constant becomes a Python number where promotion stays the same (R1.47)."""
    cls = op_class(op)
    assert cls is not None
    for k in (0, 1):
        held, other = constant_value(op.operands[k]), _tensor(op.operands[1 - k])
        if not isinstance(held, np.ndarray) or held.shape or held.dtype.kind not in "biuf":
            continue
        number = held.item()
        # An int beyond i64 has no attribute; float() is exact for every float dtype.
        if other is None or (isinstance(number, int) and not -(2**63) <= number < 2**63):
            continue
        number = number if isinstance(number, (bool, int)) else float(number)
        types = [known_type(v) for v in op.operands]
        before = cls.infer(types, attrs)
        known = type_of_value(number)
        assert isinstance(known, ScalarType)
        types[k] = ScalarType(known.dtype, number)
        if cls.infer(types, attrs) != before:
            continue
        made = create(op_named("constant"), [], {"value": number}, [known], op)
        operands = list(op.operands)
        operands[k] = made.results[0]
        return create(cls, operands, attrs, [type_of(op.results[0])], op).results[0]
    return None


@rule("mul")
def _times_one(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    a, b = op.operands
    for x, other in ((a, b), (b, a)):
        if _is_number(other, 1) and _kind(x) in tuple("biuf") and _unchanged(op, attrs, x):
            return x
    return None


@rule("add", "bitwise_or", "bitwise_xor")
def _plus_zero(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    a, b = op.operands
    for x, other in ((a, b), (b, a)):
        if _is_number(other, 0) and _kind(x) in ("i", "u") and _unchanged(op, attrs, x):
            return x
    return None


@rule("sub")
def _minus_zero(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x, other = op.operands
    if _is_number(other, 0) and _kind(x) in tuple("iuf") and _unchanged(op, attrs, x):
        return x
    return None


@rule("shift_left", "shift_right")
def _shift_by_zero(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x, other = op.operands
    return x if _is_number(other, 0) and _kind(x) and _unchanged(op, attrs, x) else None


@rule("div")
def _over_one(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x, other = op.operands
    return x if _is_number(other, 1) and _kind(x) == "f" and _unchanged(op, attrs, x) else None


@rule("pow")
def _to_the_first(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x, other = op.operands
    if _is_number(other, 1) and _kind(x) in tuple("iuf") and _unchanged(op, attrs, x):
        return x
    return None


@rule(*_INVOLUTIONS)
def _twice_is_nothing(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    inner = _inner(op.operands[0], op_class(op).name)  # type: ignore[union-attr]
    if inner is None:
        return None
    x = inner.operands[0]
    return x if _unchanged(inner, attrs_of(inner), x) else None


@rule("logical_not")
def _not_not(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    inner = _inner(op.operands[0], "logical_not")
    return inner.operands[0] if inner and _kind(inner.operands[0]) == "b" else None


@rule(*_IDEMPOTENT)
def _twice_is_once(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x = op.operands[0]
    inner = _inner(x, op_class(op).name)  # type: ignore[union-attr]
    return x if inner and _tensor(inner.operands[0]) and _unchanged(op, attrs, x) else None


@rule("positive")
def _positive(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x = op.operands[0]
    return x if _kind(x) in tuple("iufc") else None


@rule("cast")
def _cast(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x, dtype = op.operands[0], attrs["dtype"]
    mine = _tensor(x)
    if mine is None:
        return None
    if mine.dtype is dtype:
        return x
    inner = _inner(x, "cast")
    source = _tensor(inner.operands[0]) if inner else None
    if inner is None or source is None or source.dtype is not dtype:
        return None
    # There and back through a dtype that holds every value of the first.
    return inner.operands[0] if np.can_cast(dtype.numpy, mine.dtype.numpy, "safe") else None  # type: ignore[union-attr]


@rule("copy")
def _copy(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x = op.operands[0]
    return x if _tensor(x) is not None else None


@rule("conform")
def _conforms(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    value, like = map(_tensor, op.operands)
    if value is None or like is None or value.dtype is not like.dtype:
        return None
    return op.operands[0] if value.is_complete and value.shape == like.shape else None


# --- moves -----------------------------------------------------------------------------------


@rule("reshape", "broadcast_to", "squeeze", "expand_dims")
def _same_shape(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    x = op.operands[0]
    return x if _unchanged(op, attrs, x) else None


@rule("reshape")
def _reshape_reshape(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    inner = _inner(op.operands[0], "reshape")
    if inner is None or len(op.operands) > 1:
        return None
    source, middle = _tensor(inner.operands[0]), _tensor(op.operands[0])
    # Static types on both sides prove that the inner reshape cannot fail.
    if source is None or middle is None or not (source.is_static and middle.is_static):
        return None
    cls = op_named("reshape")
    return create(cls, [inner.operands[0]], attrs, [type_of(op.results[0])], op).results[0]


_PERMUTATIONS = ("transpose", "swapaxes", "moveaxis")


@rule(*_PERMUTATIONS)
def _permutations(op: ir.Operation, attrs: dict[str, Any]) -> ir.Value | None:
    """An identity goes; a permutation of a permutation is one."""
    x = op.operands[0]
    inner = _inner(x, *_PERMUTATIONS)
    source = inner.operands[0] if inner else x
    known = type_of(source)
    if not isinstance(known, TensorType) or known.rank is None:
        return None
    order = _permutation(op, attrs, known.rank)
    if inner is not None:
        first = _permutation(inner, attrs_of(inner), known.rank)
        order = tuple(first[axis] for axis in order)
    if order == tuple(range(known.rank)):
        return source
    if inner is None:
        return None
    cls = op_named("transpose")
    return create(cls, [source], {"perm": order}, [type_of(op.results[0])], op).results[0]


def _permutation(op: ir.Operation, attrs: dict[str, Any], rank: int) -> tuple[int, ...]:
    return op_class(op).permutation(rank, attrs)  # type: ignore[union-attr]
