"""Calls, loops and branches of StableHLO."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....ir.dtypes import dtype_of
from ...numpy.tracing.operators import op
from ...numpy.tracing.traced import is_tracing
from ...numpy.tracing.traced_control import cond, fori_loop, while_loop
from ..array_values import is_constant, is_number, is_size
from ..foreign_graph import ForeignBlock, ForeignNode, Operand, ValueRef
from ..interpreter import NodeContext
from ..size_values import as_array
from .hlo_elementwise import STABLEHLO
from .hlo_values import arrays

_INT = np.dtype(np.int32)


@STABLEHLO.register("func.call")
def _call(call: NodeContext, *operands: Any, **_: Any) -> Any:
    results = call.run_block(0, *operands)
    return results[0] if len(results) == 1 else results


@STABLEHLO.register("stablehlo.while")
def _while(call: NodeContext, *inits: Any) -> Any:
    """A loop; one that counts to a bound that does not change is a ``for`` loop."""
    carried = tuple(_carried(x) for x in inits)
    counter = _counter(call.node)
    if counter is None:
        results = while_loop(
            lambda values: call.run_block(0, *values)[0],
            lambda values: _arrays(call, call.run_block(1, *values)),
            carried,
        )
    else:
        results = _counted(call, counter, carried)
    return results[0] if len(results) == 1 else tuple(results)


def _carried(x: Any) -> Any:
    """A value that a loop may replace by an array."""
    return as_array(x, _INT) if is_size(x) else np.asarray(x) if is_number(x) else x


def _arrays(call: NodeContext, values: tuple) -> tuple:
    types = call.node.types
    return tuple(as_array(x, t.dtype) if t is not None and t.dtype else x for x, t in zip(values, types, strict=True))


def _counter(node: ForeignNode) -> tuple[int, Operand] | None:
    """Which carried value counts rounds by ones, and below which bound; None = the loop is another one."""
    test, body = node.blocks
    if len(test.nodes) != 1 or test.nodes[0].op != "stablehlo.compare":
        return None
    (compare,) = test.nodes
    left, right = compare.operands
    is_below = compare.attributes.get("comparison_direction") == "LT" and test.outputs == (
        ValueRef(compare.results[0]),
    )
    if not is_below or type(left) is not ValueRef or left.number not in test.inputs:
        return None
    number = test.inputs.index(left.number)
    if type(right) is ValueRef and right.number in test.inputs:
        bound = test.inputs.index(right.number)
        if body.outputs[bound] != ValueRef(body.inputs[bound]):
            return None
        right = node.operands[bound]
    return (number, right) if _steps_by_one(body, number) else None


def _steps_by_one(body: ForeignBlock, number: int) -> bool:
    output = body.outputs[number]
    producer = next((n for n in body.nodes if type(output) is ValueRef and output.number in n.results), None)
    if producer is None or producer.op != "stablehlo.add":
        return False
    this = ValueRef(body.inputs[number])
    others = [x for x in producer.operands if x != this]
    return this in producer.operands and len(others) == 1 and isinstance(others[0], np.generic) and others[0] == 1


def _counted(call: NodeContext, counter: tuple[int, Operand], carried: tuple) -> tuple:
    number, bound = counter
    dtype = carried[number].dtype
    lower, upper = carried[number], call.interpreter.value(bound)

    def body(k: Any, values: tuple) -> tuple:
        count = op("cast", op("to_tensor", k), dtype=_dtype(dtype))
        full = (*values[:number], count, *values[number:])
        results = _arrays(call, call.run_block(1, *full))
        return (*results[:number], *results[number + 1 :])

    others = (*carried[:number], *carried[number + 1 :])
    # A number of the module is no array here, whose element a run would have to read.
    first, last = (int(x) if is_constant(x) and x.ndim == 0 else x for x in (lower, upper))
    results = fori_loop(first, last, body, others)
    end = np.maximum(*arrays((lower, upper)))
    return (*results[:number], end, *results[number:])


def _dtype(dtype: np.dtype) -> Any:
    return dtype_of(dtype)


@STABLEHLO.register("stablehlo.if")
def _if(call: NodeContext, condition: Any) -> Any:
    if not is_tracing([condition]):
        return _branch(call, 0 if condition else 1)
    return cond(condition, lambda: _branch(call, 0), lambda: _branch(call, 1))


@STABLEHLO.register("stablehlo.case")
def _case(call: NodeContext, index: Any) -> Any:
    """The branch of this number; the last one for numbers that no branch has."""
    return _of_number(call, index, 0)


def _of_number(call: NodeContext, index: Any, first: int) -> Any:
    last = len(call.node.blocks) - 1
    if first == last:
        return _branch(call, last)
    holds = index == first
    if not is_tracing([holds]):
        return _branch(call, first) if holds else _of_number(call, index, first + 1)
    return cond(holds, lambda: _branch(call, first), lambda: _of_number(call, index, first + 1))


def _branch(call: NodeContext, number: int) -> Any:
    results = _arrays(call, call.run_block(number))
    return results[0] if len(results) == 1 else results
