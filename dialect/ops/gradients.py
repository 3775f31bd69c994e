"""Undefined tensors in gradients: absent, which is not the same as full of zeros (R1.24, R1.43).

At run time an undefined tensor is None. Only the ops of this file and control flow may meet one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from ..ir.attrs import STR
from ..ir.op import Attrs, Op, attr, operand, result
from ..ir.types import BOOL_SCALAR, TensorType, Type


class AutogradZero(Op, name="autograd_zero"):
    """An undefined tensor: a gradient that nothing flows into."""

    out = result()

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return None


class _OfTensors(Op):
    """Family of ops of which every operand is a tensor."""

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        for index, type_ in enumerate(types):
            if not isinstance(type_, TensorType):
                yield f"operand {index} must be a tensor, not {type_}"


class AutogradAdd(_OfTensors, name="autograd_add"):
    """The sum of two gradients, either of which may be undefined."""

    a = operand()
    b = operand()
    out = result()

    @classmethod
    def shared_operands(cls, result: int, count: int) -> tuple[int, ...]:
        return (0, 1)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        a, b = args
        if a is None or b is None:
            return b if a is None else a
        return np.add(a, b)


class Definedness(_OfTensors):
    """Family of tests of which of some tensors are defined.

    One tensor that is ``decisive`` (defined or not) settles the ``outcome``.
    """

    grads = operand(variadic=True)
    out = result()
    decisive: ClassVar[bool] = True
    outcome: ClassVar[bool] = False

    @classmethod
    def decide(cls, defined: Sequence[bool | None]) -> bool | None:
        """The outcome from what is known of each tensor; None = it depends on the others."""
        if cls.decisive in defined:
            return cls.outcome
        return None if None in defined else not cls.outcome

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (BOOL_SCALAR,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return cls.decide([grad is not None for grad in args])


class AnyNonzero(Definedness, name="any_nonzero"):
    """Whether any of the tensors is defined."""

    outcome = True


class AllNonzero(Definedness, name="all_nonzero"):
    """Whether all of the tensors are defined."""

    decisive = False


class AllZero(Definedness, name="all_zero"):
    """Whether all of the tensors are undefined."""


class GradOf(_OfTensors, name="grad_of"):
    """Run the block if any of the incoming gradients is defined; else all results are undefined.

    ``forward`` names the op whose gradient it is. The block ends in ``profuse.yield``. It cannot
    be evaluated: `lower-grad-blocks` makes an ``scf.if`` of it.
    """

    regions = 1
    grads = operand(variadic=True)
    outs = result(variadic=True)
    forward = attr(STR, default="")

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return ()


__all__ = [
    "AllNonzero", "AllZero", "AnyNonzero", "AutogradAdd", "AutogradZero", "Definedness",
    "GradOf",
]  # fmt: skip
