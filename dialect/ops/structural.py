"""The base of ops that are compiled only where their sizes are proven to fit.

NumPy checks sizes at run time. A kernel takes them on trust, so such an op is lowered only where
the sizes, symbolic ones included, provably fit; elsewhere tier 0 runs it, and checks.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import LoweringError
from ..ir.op import Attrs, Fusion, Op, Rounding
from ..ir.types import Shape, TensorType, Type
from ..reasons import Kind, Reason
from .sizes import tensor_type


class Proven(Op):
    """Family of ops with conditions on their sizes."""

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        """Raise LoweringError unless what NumPy would check at run time is known to hold.

        Called with complete types that `infer` accepts.
        """

    @classmethod
    def can_lower_types(cls, types: Sequence[Type], attrs: Attrs) -> Reason | None:
        reason = super().can_lower_types(types, attrs)
        if reason is None:
            try:
                cls.prove(types, attrs)
            except LoweringError as error:
                reason = Reason(Kind.UNPROVEN, detail=error.what)
        return reason


def unproven_sizes(cls: type[Op], types: Sequence[Type], attrs: Attrs) -> tuple[Any, ...]:
    """`ProfuseError.sizes` of why an op cannot be compiled for these types, which it takes."""
    if issubclass(cls, Proven):
        try:
            cls.prove(types, attrs)
        except LoweringError as error:
            return error.sizes
    return ()


class Structural(Proven, rounding=Rounding.MOVES):
    """Family of ops that move elements: the result has the dtype of the first operand."""

    fusion = Fusion.VIEW
    lowers_complex = True

    @classmethod
    def result_shape(cls, types: Sequence[Type], attrs: Attrs) -> Shape | None:
        """Shape of the result; None = unknown rank. Raises ShapeError."""
        raise NotImplementedError

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (TensorType(tensor_type(types[0]).dtype, cls.result_shape(types, attrs)),)

    @classmethod
    def view_of(cls, rank: int, attrs: Attrs) -> Callable[[np.ndarray], np.ndarray] | None:
        """What takes the result of an array of this rank as a view; None = `evaluate` computes it.

        It raises what NumPy raises.
        """
        return None

    @classmethod
    def bound(cls, attrs: Attrs, results: int) -> Callable[..., Any] | None:
        """`evaluate`, in a third of its time where the result is a view that the rank of the operand decides."""
        if cls.view_of.__func__ is Structural.view_of.__func__:  # type: ignore[attr-defined]
            return None
        views: dict[int, Any] = {}

        def call(*args: Any) -> Any:
            x = args[0]
            if type(x) is np.ndarray and len(args) == 1:
                rank = x.ndim
                if rank not in views:
                    views[rank] = cls.view_of(rank, attrs)
                view = views[rank]
                if view is not None:
                    return view(x)
            return cls.evaluate(attrs, *args)

        return call


def at_key(*key: Any) -> Callable[[np.ndarray], np.ndarray]:
    """What takes the part of an array that basic indexing with a key gives."""
    return operator.itemgetter(key)
