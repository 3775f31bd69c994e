"""ONNX's control flow: `If`, `Loop` and `Scan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .....errors import ShapeError, TraceError
from ....numpy.tracing.current import current
from ....numpy.tracing.operators import Recording
from ....numpy.tracing.traced_control import cond, required, while_loop
from ...array_values import constant_or_created, is_size, item_of, owned
from ...foreign_graph import ForeignBlock, ValueRef
from ...size_values import as_array, as_size
from ...time_steps import steps
from ..onnx_table import NodeResults, onnx_op

_MOST_UNROLLED = 1024  # rounds of a loop that carries sequences


def _is_open(x: Any) -> bool:
    """True of what only a run tells: arrays that are traced, and open numbers."""
    return isinstance(x, Recording) and (not is_size(x) or x.is_open)


@onnx_op("If", whole=True)
def _if(call: Any, condition: Any, /) -> Any:
    if not _is_open(condition):
        return NodeResults(call.run_block(0 if bool(np.all(condition)) else 1))
    truth = np.reshape(as_array(condition), ())

    def branch(number: int) -> tuple[Any, ...]:
        return tuple(map(as_array, call.run_block(number)))

    try:
        return NodeResults(cond(truth, lambda: branch(0), lambda: branch(1)))
    except ShapeError as error:
        return NodeResults(_only(branch, truth, error))


def _only(branch: Callable[[int], tuple[Any, ...]], truth: Any, error: ShapeError) -> tuple[Any, ...]:
    """The outputs of the branch that fits the sizes of this call, where the other one fits none of them.

    A run that would take the other one is void.
    """
    for number in (0, 1):
        try:
            outputs = branch(number)
        except ShapeError:
            continue
        holds = truth if number == 0 else np.logical_not(truth)
        return tuple(required(x, holds, f"the other branch does not fit the sizes: {error.what}") for x in outputs)
    raise error


@onnx_op("Loop", whole=True)
def _loop(call: Any, trips: Any, condition: Any, /, *carried: Any) -> Any:
    body = call.node.blocks[0]
    count = len(carried)
    is_limited = trips is None or not _is_open(trips)
    limit = None if trips is None else as_size(trips)
    if (
        _goes_on(body, call.interpreter.graph.constants)
        and limit is not None
        and (condition is None or not _is_open(condition))
    ):
        if condition is not None and not bool(np.all(condition)):
            limit = 0
        return _counted(call, limit, carried)
    if current() is None or (is_limited and any(isinstance(x, list) for x in carried)):
        return _unrolled(call, limit, condition, carried)
    if len(body.outputs) - 1 > count:
        return _gathered(call, limit, condition, carried)
    return NodeResults(_while(call, limit, condition, carried)[1])


def _goes_on(body: ForeignBlock, constants: Any) -> bool:
    """True if the condition that a round leaves is the one it was given, or the constant true."""
    output = body.outputs[0]
    makers = {number: node for node in body.nodes for number in node.results}
    while isinstance(output, ValueRef):
        if output.number == body.inputs[1]:
            return True
        if output.number in constants:
            return bool(np.all(constants[output.number]))
        node = makers.get(output.number)
        if node is None:
            return False
        if node.op == "Constant":
            return bool(np.all(node.attributes.get("value", False)))
        if node.op != "Identity":
            return False
        output = node.operands[0]
    return False


def _counted(call: Any, limit: Any, carried: tuple[Any, ...]) -> Any:
    count = len(carried)
    if any(isinstance(x, list) for x in carried):
        return _unrolled(call, limit, True, carried)

    def step(at: Any, values: tuple) -> tuple[tuple, tuple]:
        _, *rest = call.run_block(0, as_array(at), np.bool_(True), *values)
        arrays = tuple(map(as_array, rest))
        return arrays[:count], arrays[count:]

    values, stacks = steps(limit, tuple(map(as_array, carried)), step)
    return NodeResults((*values, *stacks))


def _unrolled(call: Any, limit: Any, condition: Any, carried: Sequence[Any]) -> Any:
    """A loop whose rounds are all recorded."""
    values: tuple[Any, ...] = tuple(carried)
    rows: list[tuple[Any, ...]] = []
    at, last = 0, None if limit is None else int(limit)
    going = condition
    while last is None or at < last:
        if going is not None and _is_open(going):
            raise TraceError("a Loop that carries sequences ends by a condition that only a run tells")
        if going is not None and not bool(np.all(going)):
            break
        if at >= _MOST_UNROLLED and current() is not None:
            raise TraceError(f"a Loop that carries sequences has more than {_MOST_UNROLLED} rounds")
        going, *rest = call.run_block(0, np.int64(at), np.bool_(True) if going is None else going, *values)
        values = tuple(rest[: len(carried)])
        rows.append(tuple(map(as_array, rest[len(carried) :])))
        at += 1
    if not rows and len(call.node.results) > len(carried):
        raise TraceError("a Loop without rounds has no outputs whose shape is known")
    return NodeResults((*values, *(np.stack(column) for column in zip(*rows, strict=True))))


def _while(call: Any, limit: Any, condition: Any, carried: Sequence[Any]) -> tuple[Any, tuple[Any, ...]]:
    first = np.bool_(True) if condition is None else np.reshape(as_array(condition), ())

    def goes_on(state: tuple) -> Any:
        at, going, _ = state
        return going if limit is None else np.logical_and(going, at < limit)

    def body(state: tuple) -> tuple:
        at, going, values = state
        going, *rest = call.run_block(0, at, going, *values)
        return at + 1, np.reshape(as_array(going), ()), tuple(map(as_array, rest))

    start = _own(np.int64(0))
    at, _, values = while_loop(goes_on, body, (start, _own(first), tuple(map(as_array, carried))))
    return at, values


def _own(x: Any) -> Any:
    return x if isinstance(x, Recording) else owned(np.asarray(x))


def _gathered(call: Any, limit: Any, condition: Any, carried: Sequence[Any]) -> Any:
    """A loop that ends by a condition, and gathers outputs: room is made for as many as there may be rounds."""
    if limit is None:
        raise TraceError("a Loop gathers outputs and has no limit of rounds", hint="give it a trip count")
    count = len(carried)
    start = np.bool_(True) if condition is None else np.reshape(as_array(condition), ())

    def step(at: Any, state: tuple) -> tuple[tuple, tuple]:
        going, rounds, *values = state

        def run() -> tuple[Any, ...]:
            on, *rest = call.run_block(0, as_array(at), going, *values)
            return (np.reshape(as_array(on), ()), rounds + 1, *map(as_array, rest))

        def rest_of(shapes: tuple) -> tuple[Any, ...]:
            return (going, rounds, *values, *(constant_or_created("zeros", s, d) for s, d in shapes))

        probe = run()
        shapes = tuple((tuple(map(int, y.shape)), y.dtype) for y in probe[2 + count :])
        results = cond(going, lambda: run(), lambda: rest_of(shapes))
        return tuple(results[: 2 + count]), tuple(results[2 + count :])

    first = (_own(start), _own(np.int64(0)), *map(as_array, carried))
    (_, rounds, *values), stacks = steps(limit, first, step)
    number = rounds.item()
    return NodeResults((*values, *(stack[:number] for stack in stacks)))


@onnx_op("Scan")
def _scan(
    call: Any,
    /,
    *operands: Any,
    num_scan_inputs: int,
    scan_input_axes: Sequence[int] | None = None,
    scan_input_directions: Sequence[int] | None = None,
    scan_output_axes: Sequence[int] | None = None,
    scan_output_directions: Sequence[int] | None = None,
) -> Any:
    count = len(operands) - num_scan_inputs
    first, scanned = operands[:count], list(operands[count:])
    directions = scan_input_directions or (0,) * num_scan_inputs
    for k, axis in enumerate(scan_input_axes or (0,) * num_scan_inputs):
        scanned[k] = np.moveaxis(scanned[k], axis, 0)
        if directions[k]:
            scanned[k] = np.flip(scanned[k], 0)

    def step(at: Any, values: tuple) -> tuple[tuple, tuple]:
        results = tuple(map(as_array, call.run_block(0, *values, *(item_of(x, at) for x in scanned))))
        return results[:count], results[count:]

    values, stacks = steps(scanned[0].shape[0], tuple(first), step, keeps_sizes=True)
    outputs = []
    for k, stack in enumerate(stacks):
        if scan_output_directions and scan_output_directions[k]:
            stack = np.flip(stack, 0)
        axis = scan_output_axes[k] if scan_output_axes else 0
        outputs.append(np.moveaxis(stack, 0, axis) if axis else stack)
    return NodeResults((*values, *outputs))


@onnx_op("Scan-1")
def _scan_of_batches(
    call: Any, lengths: Any, /, *operands: Any, num_scan_inputs: int, directions: Sequence[int] | None = None
) -> Any:
    """Before version 9 all operands had a batch axis, and each batch was a scan of its own."""
    if lengths is not None:
        raise TraceError("Scan with lengths of sequences is not supported")
    rows = [
        _scan(call, *(x[k] for x in operands), num_scan_inputs=num_scan_inputs, scan_input_directions=directions)
        for k in range(int(operands[0].shape[0]))
    ]
    return NodeResults(np.stack(column) for column in zip(*rows, strict=True))
