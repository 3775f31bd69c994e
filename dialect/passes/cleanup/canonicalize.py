"""Small rewrites that are right for every value of the types that are known.

Kept out on purpose: ``x + 0.0`` (changes -0.0), complex arithmetic with 1 (turns inf into nan),
anything that changes a dtype, and anything by which a caller would get an array that shares
memory where NumPy gives a fresh one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

import numpy as np
from mlir import ir

from ...errors import ProfuseError
from ...ir.op import Fusion, Op
from ...ir.types import ScalarType, TensorType
from ...ir.types import type_of as type_of_value
from ...mlir.facts import constant_value, escapes, is_constant, is_constant_op, is_fresh, known_type
from ...mlir.rewrite import create, defining_op, is_terminator, is_used, op_class, replace, type_of, walk_inner_first
from ...ops.create import Constant
from ...ops.elementwise.binary import Add, Div, Mul, Sub
from ...ops.elementwise.compare import BitwiseNot, BitwiseOr, BitwiseXor, LogicalNot, ShiftLeft, ShiftRight
from ...ops.elementwise.powers import Pow
from ...ops.elementwise.select import Cast
from ...ops.elementwise.special import Relu
from ...ops.elementwise.unary import Abs, Ceil, Conj, Floor, Neg, Positive, Rint, Trunc
from ...ops.gradient_ops import CustomResult, FlatAtZero, Passed, StopGradient, SumTo
from ...ops.indexing.scatter import Conform, Copy
from ...ops.late import Late
from ...ops.manipulation.permute import Permutation, Transpose
from ...ops.manipulation.shape import BroadcastTo, ExpandDims, Reshape, Squeeze
from ...ops.speculation import Subgraph
from ..base import register_pass
from ..patterns import Match, Pattern, PatternPass
from .bind_late import BINDING

Rule = Callable[[Match], "ir.Value | None"]
RULES: list[Pattern] = [BINDING]


@register_pass
@dataclass(frozen=True)
class Canonicalize(PatternPass):
    """Peephole rewrites: neutral operands, ops that undo each other, moves that move nothing, `bind-late`.

    ``numbers``: 0-d constants become Python numbers in fusion functions, too, where
    `insert-casts` has yet to make promotion explicit. ``gradients``: ops that give an operand as it
    is, but with another gradient, stay.
    """

    name: ClassVar[str] = "canonicalize-profuse"
    patterns: ClassVar[Sequence[Pattern]] = RULES
    order = staticmethod(walk_inner_first)
    numbers: bool = False
    gradients: bool = False

    def wants(self, match: Match) -> bool:
        if self.gradients and issubclass(match.cls, (StopGradient, FlatAtZero, CustomResult)):
            return False
        if issubclass(match.cls, (Passed, Late)):
            return True  # it is its operand, or its op, itself, whoever writes to that
        return len(match.op.results) == 1 and not match.function.memory.is_touched(match.op)


def rule(*ops: type[Op], in_kernels: bool = True) -> Callable[[Rule], Rule]:
    """Decorator: a rewrite of ops of these classes, to an existing or newly made value."""

    def add(find: Rule) -> Rule:
        rewrite = partial(_rewrite, find=find, in_kernels=in_kernels)
        RULES.append(Pattern("ops-rewritten", ops, rewrite))
        return find

    return add


def _rewrite(m: Match, *, find: Rule, in_kernels: bool) -> int | None:
    if not (in_kernels or m.function.careful or m.options.numbers):
        return None
    try:
        new = find(m)
    except ProfuseError:
        return 0  # ill-typed; the op itself is where that is reported
    if new is None:
        return None
    is_same = issubclass(m.cls, Passed)
    if (is_same or m.function.memory.may_stand_for(new)) and _allowed(m, new):
        replace(m.op, [new])
        return 1
    _discard(new)
    return 0


def _allowed(m: Match, new: ir.Value) -> bool:
    old = m.op.results[0]
    # A reshape copies where the strides of its operand do not allow a view.
    copies = m.cls.fusion is not Fusion.VIEW or m.cls.layout_decides
    copies = copies and m.cls is not SumTo  # which gives its operand where it sums nothing
    if m.function.careful and copies and escapes(old) and (not is_fresh(new) or escapes(new)):
        return False
    return _types_allow(old, new)


def _discard(value: ir.Value) -> None:
    """Erase an op that a rule has made in vain, with the constants made for it."""
    op = defining_op(value)
    if op is None or is_used(op):
        return
    makers = list(map(defining_op, op.operands))
    op.erase()
    for maker in makers:
        if maker is not None and is_constant_op(maker) and not is_used(maker):
            maker.erase()


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


# --- what rules ask --------------------------------------------------------------------------


def _tensor(value: ir.Value) -> TensorType | None:
    """The type of a tensor of known dtype."""
    type_ = type_of(value)
    return type_ if isinstance(type_, TensorType) and type_.dtype is not None else None


def _unchanged(m: Match, value: ir.Value) -> bool:
    """True if the op's result certainly has the dtype and shape of ``value``."""
    mine = _tensor(value)
    if mine is None:
        return False
    inferred = m.cls.infer([known_type(v) for v in m.op.operands], m.attrs)[0]
    if not isinstance(inferred, TensorType) or inferred.dtype is not mine.dtype:
        return False
    # The other operands are Python numbers, or sizes: an elementwise op keeps even unknown shapes.
    return m.cls.fusion is Fusion.POINTWISE or (mine.is_complete and inferred.shape == mine.shape)


def _is_number(value: ir.Value, wanted: float) -> bool:
    """True for a constant Python number equal to ``wanted``; -0.0 is not taken for 0."""
    number = constant_value(value) if is_constant(value) else None
    if type(number) not in (bool, int, float) or number != wanted:
        return False
    return type(number) is not float or not np.signbit(number)


def _inner(m: Match, wanted: type[Op]) -> Match | None:
    """The op that makes the first operand, if it is of this class."""
    source = defining_op(m.op.operands[0])
    cls = op_class(source) if source is not None else None
    if source is None or cls is None or not issubclass(cls, wanted):
        return None
    return Match(source, cls, m.function, m.options)


def _kind(value: ir.Value) -> str:
    type_ = _tensor(value)
    return type_.dtype.kind if type_ and type_.dtype else ""


# --- arithmetic ------------------------------------------------------------------------------


# In fusion functions numbers have been made tensors, so that promotion is explicit.
@rule(Add, Sub, Mul, Div, in_kernels=False)
def _rank_0_constant(m: Match) -> ir.Value | None:
    """A 0-d constant becomes a Python number where promotion stays the same (R1.47)."""
    op = m.op
    for k in (0, 1):
        array, other = constant_value(op.operands[k]), _tensor(op.operands[1 - k])
        if not isinstance(array, np.ndarray) or array.shape or array.dtype.kind not in "biuf":
            continue
        number = array.item()
        # An int beyond i64 has no attribute; float() is exact for every float dtype.
        if other is None or (isinstance(number, int) and not -(2**63) <= number < 2**63):
            continue
        number = number if isinstance(number, (bool, int)) else float(number)
        types = [known_type(v) for v in op.operands]
        before = m.cls.infer(types, m.attrs)
        number_type = type_of_value(number)
        assert isinstance(number_type, ScalarType)
        types[k] = ScalarType(number_type.dtype, number)
        if m.cls.infer(types, m.attrs) != before:
            continue
        constant = create(Constant, [], {"value": number}, [number_type], op)
        operands = list(op.operands)
        operands[k] = constant.results[0]
        return create(m.cls, operands, m.attrs, [type_of(op.results[0])], op).results[0]
    return None


def _neutral(number: int, kinds: str, sides: Sequence[int]) -> Rule:
    """The rule that leaves out a number on one of these sides, for tensors of these kinds."""

    def find(m: Match) -> ir.Value | None:
        for side in sides:
            x, other = m.op.operands[1 - side], m.op.operands[side]
            if _is_number(other, number) and _kind(x) in tuple(kinds) and _unchanged(m, x):
                return x
        return None

    return find


rule(Mul)(_neutral(1, "biuf", (1, 0)))
rule(Add, BitwiseOr, BitwiseXor)(_neutral(0, "iu", (1, 0)))
rule(Sub)(_neutral(0, "iuf", (1,)))
rule(ShiftLeft, ShiftRight)(_neutral(0, "biu", (1,)))
rule(Div)(_neutral(1, "f", (1,)))
rule(Pow)(_neutral(1, "iuf", (1,)))


@rule(Neg, Conj, BitwiseNot)
def _twice_is_nothing(m: Match) -> ir.Value | None:
    inner = _inner(m, m.cls)
    if inner is None:
        return None
    x = inner.op.operands[0]
    return x if _unchanged(inner, x) else None


@rule(LogicalNot)
def _not_not(m: Match) -> ir.Value | None:
    inner = _inner(m, LogicalNot)
    return inner.op.operands[0] if inner and _kind(inner.op.operands[0]) == "b" else None


@rule(Abs, Relu, Floor, Ceil, Trunc, Rint, Positive)
def _twice_is_once(m: Match) -> ir.Value | None:
    x, inner = m.op.operands[0], _inner(m, m.cls)
    return x if inner and _tensor(inner.op.operands[0]) and _unchanged(m, x) else None


@rule(StopGradient, FlatAtZero)
def _passed(m: Match) -> ir.Value | None:
    return m.op.operands[0]


@rule(CustomResult)
def _custom(m: Match) -> ir.Value | None:
    return m.op.operands[CustomResult.chosen(m.attrs)]


@rule(Positive)
def _positive(m: Match) -> ir.Value | None:
    x = m.op.operands[0]
    return x if _kind(x) in tuple("iufc") else None


@rule(Cast)
def _cast(m: Match) -> ir.Value | None:
    x, dtype = m.op.operands[0], m.attrs["dtype"]
    mine = _tensor(x)
    if mine is None:
        return None
    if mine.dtype is dtype:
        return x
    inner = _inner(m, Cast)
    source = _tensor(inner.op.operands[0]) if inner else None
    if inner is None or source is None or source.dtype is not dtype:
        return None
    # There and back through a dtype that holds every value of the first.
    fits = np.can_cast(dtype.numpy, mine.dtype.numpy, "safe")  # type: ignore[union-attr]
    return inner.op.operands[0] if fits else None


@rule(Copy)
def _copy(m: Match) -> ir.Value | None:
    x = m.op.operands[0]
    return x if _tensor(x) is not None else None


@rule(Conform)
def _conforms(m: Match) -> ir.Value | None:
    value, like = map(_tensor, m.op.operands)
    if value is None or like is None or value.dtype is not like.dtype:
        return None
    return m.op.operands[0] if value.is_complete and value.shape == like.shape else None


# --- moves -----------------------------------------------------------------------------------


@rule(Reshape, BroadcastTo, Squeeze, ExpandDims, SumTo)
def _same_shape(m: Match) -> ir.Value | None:
    x = m.op.operands[0]
    return x if _unchanged(m, x) else None


@rule(Reshape)
def _reshape_reshape(m: Match) -> ir.Value | None:
    inner = _inner(m, Reshape)
    if inner is None or len(m.op.operands) > 1:
        return None
    x = inner.op.operands[0]
    source, middle = _tensor(x), _tensor(m.op.operands[0])
    # Static types on both sides prove that the inner reshape cannot fail.
    if source is None or middle is None or not (source.is_static and middle.is_static):
        return None
    return create(Reshape, [x], m.attrs, [type_of(m.op.results[0])], m.op).results[0]


@rule(Permutation)
def _permutations(m: Match) -> ir.Value | None:
    """An identity goes; a permutation of a permutation is one."""
    inner = _inner(m, Permutation)
    source = (inner or m).op.operands[0]
    source_type = type_of(source)
    if not isinstance(source_type, TensorType) or source_type.rank is None:
        return None
    order = _permutation(m, source_type.rank)
    if inner is not None:
        first = _permutation(inner, source_type.rank)
        order = tuple(first[axis] for axis in order)
    if order == tuple(range(source_type.rank)):
        return source
    if inner is None:
        return None
    out = type_of(m.op.results[0])
    return create(Transpose, [source], {"perm": order}, [out], m.op).results[0]


def _permutation(m: Match, rank: int) -> tuple[int, ...]:
    assert issubclass(m.cls, Permutation)
    return m.cls.permutation(rank, m.attrs)
