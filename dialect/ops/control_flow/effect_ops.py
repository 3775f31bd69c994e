"""Ops that do something beside computing values: they warn, or raise what NumPy raises."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import ModelError, RangeError, ShapeError
from ...ir.attrs import BOOL, STR
from ...ir.op import Attrs, Failure, Fusion, Op, Rounding, Values, attr, operand, result
from ...ir.types import Type
from ..sizes import tensor_type

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue
    from ...ir.gradients import GradientBuilder

_printed: set[tuple[str, str]] = set()
_lock = threading.Lock()


class Warn(Op, name="warn"):
    """Print a message to stderr, once per site and process (R1.1).

    ``site`` is where in the user's source the warning stands; texts at one site count apart.
    """

    pure = False
    message = attr(STR)
    site = attr(STR, default="")
    no_gradient = True

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        key = (attrs["site"], attrs["message"])
        with _lock:
            if key in _printed:
                return ()
            _printed.add(key)
        where = f"{attrs['site']}: " if attrs["site"] else ""
        print(f"{where}warning: {attrs['message']}", file=sys.stderr)
        return ()


class Require(Op, name="require", rounding=Rounding.MOVES):
    """``x`` itself, if all elements of ``condition`` are true; else raises ShapeError(message).

    For what NumPy refuses because of contents, such as the maximum of no elements. With
    ``overflow`` it raises RangeError, as Python does for results that no float has, and with
    ``of_model`` ModelError, for an exception of a model of another system.
    """

    fusion = Fusion.POINTWISE
    lowers_complex = True
    failure = Failure.CONTENTS
    x = operand()
    condition = operand()
    out = result()
    message = attr(STR)
    overflow = attr(BOOL, default=False)
    of_model = attr(BOOL, default=False)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return g

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (tensor_type(types[0]).without_layout(),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x, condition = args
        if not np.all(condition):
            error = ModelError if attrs.get("of_model") else RangeError if attrs.get("overflow") else ShapeError
            raise error(attrs["message"])
        return np.array(x)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        x, condition = args
        b.forbid(lambda c: (c.ne(0)).eq(0), condition)
        return b.pointwise(lambda e: e, (x,), types[0])
