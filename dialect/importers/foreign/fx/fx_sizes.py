"""The operators of FX graphs: ATen's, and those of Python that compute with sizes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....ops.custom_rules import CustomRule, key_of
from ...numpy.python.pausing import apart
from ...numpy.tracing.current import current, trace_error
from ...numpy.tracing.operators import Recording, op
from ...numpy.tracing.traced import Traced
from ..array_values import captured
from ..aten.all_aten import ATEN
from ..aten.demands import demanded
from ..foreign_graph import ForeignBlock
from ..interpreter import Interpreter, NodeContext
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


@FX.register("profuse::demanded")
def _demanded(call: NodeContext, x: Any, holds: tuple[Any, ...], reason: str) -> Any:
    for each in holds:
        x = demanded(x, each, reason)
    return x


@FX.register("profuse::custom_gradient")
def _custom_gradient(call: NodeContext, x: Any, inputs: tuple[Any, ...], read: tuple[Any, ...]) -> Any:
    """The result of a function with a gradient of its own, which a block of the node computes."""
    if current() is None:
        return x
    is_kept = tuple(not isinstance(value, (int, float, complex)) or isinstance(value, Recording) for value in read)
    fixed = tuple(value for value, keeps in zip(read, is_kept, strict=True) if not keeps)
    saved = [value for value, keeps in zip(read, is_kept, strict=True) if keeps]
    block = call.node.blocks[0]
    rule = CustomRule("autograd.Function", OwnGradient(call.interpreter, block, is_kept, fixed), (repr(block), fixed))
    attrs = {"inputs": len(inputs), "saved": len(saved), "index": 0, "key": key_of(rule)}
    return op("custom_result", *inputs, *saved, x, **attrs)


@FX.register("profuse::gradient_slot")
def _gradient_slot(call: NodeContext, x: Any) -> Any:
    raise trace_error(
        "the backward half of a function is apart from the function", "run this part of the model in torch"
    )


class OwnGradient:
    """Computes the gradients of the arguments of a function by its own backward half."""

    def __init__(
        self, interpreter: Interpreter, block: ForeignBlock, is_kept: tuple[bool, ...], fixed: tuple[Any, ...]
    ) -> None:
        self._table, self._graph, self._block = interpreter.table, interpreter.graph, block
        self._is_kept, self._fixed = is_kept, fixed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, OwnGradient):
            return False
        return self._block is other._block and (self._is_kept, self._fixed) == (other._is_kept, other._fixed)

    def __hash__(self) -> int:
        return hash((id(self._block), self._is_kept, self._fixed))

    def __call__(self, saved: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
        kept, fixed = iter(saved), iter(self._fixed)
        read = [next(kept) if is_kept else next(fixed) for is_kept in self._is_kept]
        return list(apart(self._run, (*gradients, *read)))

    def _run(self, values: Sequence[Any]) -> tuple[Any, ...]:
        return Interpreter(self._table, self._graph).run(self._block, values)
