"""Interpretation of foreign graphs: on traced values it records them, on arrays it computes.

So a foreign graph becomes a function like any other, with tiers, guards, gradients and explanations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from ...dataclass import dataclass
from ...errors import ProfuseError, TraceError
from ..numpy.tracing.current import current
from .array_values import captured
from .foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ForeignType, Operand, ValueRef
from .operator_table import OperatorTable

_MOST_WAYS = 3  # one in another: what is behind them is in the graph up to eight times


@dataclass(slots=True)
class NodeContext:
    """The node that is being interpreted, as its handler sees it.

    Attributes:
        node: the node.
        interpreter: runs the node's blocks.
    """

    node: ForeignNode
    interpreter: Interpreter

    @property
    def type(self) -> ForeignType | None:
        """What the source says of the first result; None = nothing."""
        return self.node.types[0] if self.node.types else None

    def run_block(self, number: int, *values: Any) -> tuple[Any, ...]:
        """The outputs of a block of the node for these arguments."""
        return self.interpreter.run(self.node.blocks[number], values)


class Divided(TraceError):
    """A branch that contents decide gives values on its two ways that no one value of a graph can be.

    Raised by the handler of the branch, which leaves nothing of it behind.
    """


class Interpreter:
    """One run of a graph.

    Args:
        table: the operators.
        graph: the graph, whose operators have handlers.
        are_changed: its constants are arrays that others write to between runs: what is computed of them alone is
            recorded as well.

    Attributes:
        statements: control flow that is being recorded, the innermost statement last.
        arguments: of the graph.
        distinct: by identity, values that are new objects in the source as well, and None for those that may not be.
        ways: how many branches are open that hold all that is behind them.
    """

    def __init__(self, table: OperatorTable, graph: ForeignGraph, *, are_changed: bool = False) -> None:
        self.table, self.graph = table, graph
        self._values: dict[int, Any] = {} if are_changed else dict(graph.constants)
        self.statements: list[Any] = []
        self.arguments: tuple[Any, ...] = ()
        self.distinct: dict[int, Any] = {}
        self.ways = 0

    def run(self, block: ForeignBlock, values: Sequence[Any]) -> tuple[Any, ...]:
        """The outputs of a block for these arguments, one for each of its inputs.

        Raises what the handlers raise: errors of this package without a place get that of the node.
        """
        self._values.update(zip(block.inputs, values, strict=True))
        for place, node in enumerate(block.nodes):
            try:
                results = self._results(node)
            except Divided:
                whole = self.table.with_rest(block, place)
                if whole is None or self.ways >= _MOST_WAYS:
                    raise
                self.ways += 1
                outputs = self._results(whole)
                self.ways -= 1
                return outputs
            self._values.update(zip(node.results, results, strict=True))
        return tuple(self.value(output) for output in block.outputs)

    @contextmanager
    def assuming(self, value: Any, known: Any) -> Iterator[None]:
        """Have a value of the graph be another one, which a branch that is being recorded makes it."""
        numbers = [number for number, x in self._values.items() if x is value]
        self._values.update(dict.fromkeys(numbers, known))
        try:
            yield
        finally:
            self._values.update(dict.fromkeys(numbers, value))

    def value(self, operand: Operand) -> Any:
        """An operand with values in the place of references."""
        if type(operand) is ValueRef:
            if operand.number not in self._values:
                self._values[operand.number] = captured(self.graph.constants[operand.number])
            return self._values[operand.number]
        if type(operand) is tuple:
            return tuple(map(self.value, operand))
        return operand

    def producer(self, operand: Operand) -> ForeignNode | None:
        """The node that gives an operand; None for arguments and constants."""
        if type(operand) is not ValueRef:
            return None
        return self._producers.get(operand.number)

    @cached_property
    def _producers(self) -> dict[int, ForeignNode]:
        """The first node that gives a value, by the value's number."""
        return {number: node for node in reversed(list(self.graph.body.walk())) for number in node.results}

    @cached_property
    def counts(self) -> Counter[str]:
        """How many nodes of the graph there are of each operator."""
        return Counter(node.op for node in self.graph.body.walk())

    def _results(self, node: ForeignNode) -> tuple[Any, ...]:
        handler = self.table.handler(node)
        operands = map(self.value, node.operands)
        attributes = {name: self.value(x) for name, x in node.attributes.items()}
        rec = current()
        try:
            if rec is None:
                results = handler(NodeContext(node, self), *operands, **attributes)
            else:
                with rec.at(node.loc):
                    results = handler(NodeContext(node, self), *operands, **attributes)
        except ProfuseError as error:
            error.place(node.loc)
            raise
        if not node.results:
            return ()  # what its handler gives nobody reads
        return results if len(node.results) != 1 else (results,)
