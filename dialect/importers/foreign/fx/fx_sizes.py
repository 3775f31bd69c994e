"""The operators of FX graphs: ATen's, and those of Python that compute with sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from ...numpy.tracing.current import current, trace_error
from ...numpy.tracing.operators import op
from ...numpy.tracing.traced import Traced
from ..array_values import captured
from ..aten.all_aten import ATEN
from ..interpreter import NodeContext
from ..operator_table import OperatorTable

# What FX graphs call on sizes, by the names that the reader gives them.
PYTHON: dict[Callable, str] = {
    function: f"python.{function.__name__}"
    for function in (
        operator.add, operator.sub, operator.mul, operator.floordiv, operator.truediv, operator.mod, operator.pow,
        operator.neg, operator.getitem, operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
        operator.and_, operator.or_, math.floor, math.ceil, math.trunc, round, max, min,
    )
}  # fmt: skip


FX = OperatorTable("ATen", base=ATEN, home=(__name__, "FX"))


def _register(function: Callable, name: str) -> None:
    @FX.register(name)
    def handle(call: NodeContext, *operands: Any) -> Any:
        return function(*operands)


for _function, _name in PYTHON.items():
    _register(_function, _name)


@FX.register("sym_size.int")
def _size(call: NodeContext, x: Any, axis: int) -> Any:
    return x.shape[axis]


@FX.register("sym_numel")
def _numel(call: NodeContext, x: Any) -> Any:
    return math.prod(x.shape)


@FX.register("sym_max")
def _max(call: NodeContext, a: Any, b: Any) -> Any:
    return max(a, b)


@FX.register("sym_min")
def _min(call: NodeContext, a: Any, b: Any) -> Any:
    return min(a, b)


@FX.register("sym_float")
def _float(call: NodeContext, a: Any) -> Any:
    return float(a)


@FX.register("sym_sum")
def _sum(call: NodeContext, terms: Any) -> Any:
    return sum(terms)


@FX.register("profuse::input")
def _input(call: NodeContext, x: Any, sizes: tuple[int | None, ...], is_held: bool) -> Any:
    """An input, or what the graph holds, as a traced array; what follows from it knows the sizes that are numbers.

    A guard holds these, unless the caller does.
    """
    rec = current()
    if rec is None:
        return x
    x = captured(x)
    if all(size is None for size in sizes):
        return x
    for size, number in zip(x.shape, sizes, strict=True):
        if not is_held and number is not None and int(size) != number:
            raise trace_error(f"an input of sizes {sizes} has got another size", "call it with such sizes")
    return np.reshape(x, tuple(size if number is None else number for size, number in zip(x.shape, sizes, strict=True)))


@FX.register("profuse::stop_gradient")
def _stop_gradient(call: NodeContext, x: Any) -> Any:
    return op("stop_gradient", x) if isinstance(x, Traced) else x


__all__ = ["FX", "PYTHON"]
