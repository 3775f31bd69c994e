"""Leaves for calls with arrays of the tape: one node for the whole call, or plain results wrapped.

Such a leaf has the tests and kernels of a leaf for plain arrays. Before them it reads what the
arrays of the tape hold and whether gradients are noted; behind them Python makes a node of the
results, or arrays that have none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..memory.offsets import Refused
from ..plans.differentiable import DiffOp
from ..tape.array import Array
from .conditions.tape_reads import slots
from .leaf_spec import Leaf, Noting
from .leaf_values import ArrayValue, HostValue, MadeValue, Test, Value
from .number_values import ComputedNumber, KnownNumber, NumberValue, SizeNumber
from .reader import LeafSubgraph
from .refs import OnTape, position_of


def detached(values: Sequence[Value]) -> list[Value]:
    """The values as they are inside of a subgraph, where nothing requires gradients."""
    return [replace(v, tracked=False) if isinstance(v, ArrayValue) else v for v in values]


def noting_of(subgraph: LeafSubgraph, op: DiffOp) -> Noting:
    """The call that makes a node of a run of a subgraph."""
    return Noting(op.noted, tuple(map(_given, subgraph.operands)), subgraph.chosen, op.real)


def read_tape(leaf: Leaf, inputs: Sequence[Value]) -> None:
    """Have a leaf take arrays of the tape, and return such arrays.

    ``inputs``: those of the call. Raises Refused where the fields of such arrays cannot be told.
    """
    slots()
    if leaf.numbers or any(not isinstance(leaf.values.get(o), MadeValue) for o in leaf.outputs):
        raise Refused("a call with arrays of the tape returns a number")
    arrays = [v for v in inputs if isinstance(v, ArrayValue) and v.tracked]
    positions = tuple(p for v in arrays if isinstance(p := position_of(v.ref), OnTape))
    is_noted = leaf.noting is not None
    leaf.tests = [Test(("mode",), 1), Test(("noting", positions), int(is_noted)), *leaf.tests]
    if not is_noted:
        leaf.tests.append(Test(("taped", positions), 1))  # the results of other calls are plain arrays
        count = len(leaf.outputs)
        function = Array if count == 1 else _arrays
        leaf.noting = Noting(function, (), tuple(range(count)), count)


def _arrays(*outputs: Any) -> tuple[Array, ...]:
    return tuple(map(Array, outputs))


def _given(value: Value) -> Any:
    """The object in a call that an operand of a subgraph stands for."""
    if isinstance(value, NumberValue):
        return value.position
    if isinstance(value, (KnownNumber, SizeNumber, ComputedNumber)):
        raise Refused("a differentiable subgraph takes a number that is computed before it")
    if isinstance(value, (MadeValue, HostValue)):
        raise Refused("a differentiable subgraph takes what another one has made")
    position = position_of(value.ref)
    return position.position if isinstance(position, OnTape) else position
