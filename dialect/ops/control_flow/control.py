"""Control flow: upstream's ``scf.if``, ``scf.while`` and ``scf.for``, declared so that programs
can hold them and the executor can run them.

Their blocks follow `scf`: an ``if`` has a then and an else block; a ``while`` a block that yields
the condition followed by the values passed on, and a body block; a ``for`` a body whose arguments
are the induction variable and the carried values.  Types of results are those the blocks yield,
so `infer` says nothing of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ...ir.op import Attrs, Op, operand, result
from ...ir.types import BOOL_SCALAR, INT_SCALAR, TENSOR, ScalarType, TensorType, Type, merge_types

DIALECT = "scf"


class ControlFlow(Op):
    """Family of ops that run blocks; the executor, not `evaluate`, runs those."""

    undifferentiable = "`differentiate` runs its blocks backwards itself"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return ()


class If(ControlFlow, name="if", dialect=DIALECT):
    """Run the first block if the condition holds, else the second."""

    regions = 2
    condition = operand()
    yielded = result(variadic=True)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not _is_scalar(types[0], BOOL_SCALAR):
            yield f"the condition must be an i1, not {types[0]}"


class While(ControlFlow, name="while", dialect=DIALECT):
    """Run the first block, and as long as its condition holds, the second and the first again.

    The second block yields the arguments of the first."""

    regions = 2
    inits = operand(variadic=True)
    yielded = result(variadic=True)


class For(ControlFlow, name="for", dialect=DIALECT):
    """Run the block for the induction variable from lower to upper (excluded) by step."""

    regions = 1
    lower_bound = operand()
    upper_bound = operand()
    step = operand()
    inits = operand(variadic=True)
    yielded = result(variadic=True)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        for word, type_ in zip(("lower bound", "upper bound", "step"), types, strict=False):
            if not _is_scalar(type_, INT_SCALAR):
                yield f"the {word} must be an i64, not {type_}"


LOOPS: tuple[type[Op], ...] = (For, While)


class IfThenElse(Op, name="if_then_else"):
    """One of two values that are both there already (R1.45); shares memory with the one taken."""

    condition = operand()
    a = operand()
    b = operand()
    out = result()
    undifferentiable = "`if-then-else` makes it of branches, after gradients"

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return (1, 2)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        _, a, b = types
        if isinstance(a, TensorType) and isinstance(b, TensorType):
            return (merge_types(a, b),)
        if isinstance(a, ScalarType) and isinstance(b, ScalarType) and a.dtype is b.dtype:
            return (ScalarType(a.dtype, a.value if a == b else None),)
        return (a if a == b else TENSOR,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return args[1] if args[0] else args[2]

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if not _is_scalar(types[0], BOOL_SCALAR):
            yield f"the condition must be an i1, not {types[0]}"
        if type(types[1]) is not type(types[2]):
            yield f"chooses between {types[1]} and {types[2]}"


def _is_scalar(type_: Type, wanted: ScalarType) -> bool:
    return isinstance(type_, ScalarType) and type_.dtype is wanted.dtype
