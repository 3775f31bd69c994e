"""A graph of another system as plain data, in which nothing of that system's objects is left.

Readers make it once, from FX graphs, TorchScript, ONNX or StableHLO. It can be pickled, it outlives
the objects that it was read from, and no state guard of a trace has to watch it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import Loc
from .model_texts import ModelTexts

Operand = Any  # a `ValueRef`, a plain Python value, a NumPy array, or a tuple of operands


@dataclass(frozen=True, slots=True)
class ValueRef:
    """A value of a foreign graph, by its number, which is unique in the graph and its blocks."""

    number: int


@dataclass(frozen=True, slots=True)
class ForeignType:
    """What the source says of a value.

    Attributes:
        dtype: of the elements; None = unknown.
        shape: sizes, each an int, or None where it is unknown or a symbol; None = unknown rank.
        strides: in elements, where the source promises them for a result; else None.
    """

    dtype: np.dtype | None = None
    shape: tuple[int | None, ...] | None = None
    strides: tuple[int, ...] | None = None


@dataclass(slots=True)
class ForeignNode:
    """One operation.

    Attributes:
        op: name of the operator in the table of its source, such as ``"addmm"`` or ``"Gemm"``.
        operands: the positional operands.
        attributes: the operands by name.
        results: the numbers of the values that it gives.
        types: what the source says of each result; None = nothing.
        blocks: the bodies of control flow.
        loc: the place in the user's model; None = unknown.
        operand_types: what the source says of each positional operand; empty = nothing.
    """

    op: str
    operands: tuple[Operand, ...]
    attributes: Mapping[str, Operand]
    results: tuple[int, ...]
    types: tuple[ForeignType | None, ...] = ()
    blocks: tuple[ForeignBlock, ...] = ()
    loc: Loc | None = None
    operand_types: tuple[ForeignType | None, ...] = ()


@dataclass(slots=True)
class ForeignBlock:
    """A straight list of nodes, which sees the values of the blocks around it.

    Attributes:
        inputs: the numbers of its arguments.
        nodes: in the order of execution.
        outputs: its results.
    """

    inputs: tuple[int, ...]
    nodes: list[ForeignNode]
    outputs: tuple[Operand, ...]

    def walk(self) -> Iterator[ForeignNode]:
        """All nodes, those of inner blocks behind the node that holds these."""
        for node in self.nodes:
            yield node
            for block in node.blocks:
                yield from block.walk()


@dataclass(slots=True)
class ForeignGraph:
    """A whole graph.

    Attributes:
        name: of the function that it becomes, in messages and in IR.
        body: its nodes; ``body.inputs`` are the arguments, in order.
        parameters: the names of the arguments, as users write them.
        constants: arrays by the numbers of the values that they are; they are captured, not copied,
            so that later writes to them are seen.
        source: what the graph is, for users: ``"the ONNX model yolo.onnx"``.
        input_types: what the source asks of each argument; None = nothing.
        defaults: the number of the constant that an argument is where a call leaves it out, by its name.
        texts: the model's; None = it has none.
    """

    name: str
    body: ForeignBlock
    parameters: tuple[str, ...]
    constants: Mapping[int, np.ndarray]
    source: str
    input_types: tuple[ForeignType | None, ...] = ()
    defaults: Mapping[str, int] = field(default_factory=dict)
    texts: ModelTexts | None = None

    def with_constants(self, arrays: Sequence[np.ndarray]) -> ForeignGraph:
        """The graph with arrays as constants in the place of its first inputs."""
        count = len(arrays)
        constants = dict(zip(self.body.inputs, arrays, strict=False))
        body = ForeignBlock(self.body.inputs[count:], self.body.nodes, self.body.outputs)
        return ForeignGraph(
            self.name,
            body,
            self.parameters[count:],
            {**self.constants, **constants},
            self.source,
            self.input_types[count:],
            self.defaults,
        )

    def with_inputs(self, numbers: Sequence[int]) -> ForeignGraph:
        """The graph with constants of these numbers as further inputs, behind all others."""
        body = ForeignBlock((*self.body.inputs, *numbers), self.body.nodes, self.body.outputs)
        constants = {number: array for number, array in self.constants.items() if number not in numbers}
        parameters = (*self.parameters, *(f"tensor_{k}" for k in range(len(numbers))))
        return ForeignGraph(self.name, body, parameters, constants, self.source, self.input_types, self.defaults)
