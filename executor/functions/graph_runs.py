"""Runs of graphs: the results of a call, their memory in Python, and the effects of the function.

What finds here that a graph cannot compute a call says so by `NoGraph`: who then runs it is not decided here.
"""

from __future__ import annotations

from collections.abc import Sequence
from sys import is_finalizing
from typing import Any

from ...dialect.errors import ProfuseError
from ...dialect.importers.numpy.tracing.traced import is_on_tape
from ..interpret.evaluate import evaluate
from ..memory.destinations import Destinations
from ..memory.output_pool import readable
from ..plans.processor import backend_of
from ..routing.ledger import NoGraph
from ..routing.verdict import Cause
from ..tiers.choice import AnyExecutor
from .byte_order import FOREIGN_ORDER, has_foreign
from .device_arguments import present
from .emission import Emission
from .graphs import Graphs
from .in_python import Exchanging
from .variants import Variant


class GraphRuns:
    """Computes calls of one function by their graphs.

    Args:
        graphs: of the function.
        emission: its emitted code.
        exchanging: the call with tensors that is under way.
    """

    def __init__(self, graphs: Graphs, emission: Emission, exchanging: Exchanging) -> None:
        self.graphs, self._emission, self._exchanging = graphs, emission, exchanging

    def run_call(
        self, variant: Variant, leaves: Sequence[Any], originals: Sequence[Any], args: tuple, kwargs: dict[str, Any]
    ) -> Any:
        """The result of a call, with the effects that the function has.

        Args:
            variant, leaves, originals, args, kwargs: as `GraphCalls.serve` has them.

        Raises NoGraph where Python has to run the call, which has had no effect then, SoonerInPython within a limit of
        loops, and TraceError if there is no Python for it.
        """
        trace = variant.trace
        captured = present(trace.captured)
        exchange = self._exchanging.call
        if exchange is not None:
            for array, tensor in zip(captured, trace.captured, strict=True):
                if array is not tensor:
                    exchange.note(array, tensor)
        objects: Sequence[Any] | None = None
        if variant.is_untaped and is_on_tape(originals):
            from .tape_calls import untaped

            objects, originals = originals, untaped(originals)
        slots = [slot.find() for slot in trace.slots]
        if variant.keeps_byte_order and has_foreign([*originals, *captured, *slots]):
            raise self._refusal(FOREIGN_ORDER)
        if trace.has_effects:
            from .write_back import run_with_effects  # few processes need it

            arrays = [*originals, *slots, *captured]
            inputs = [*leaves, *(readable(value, self.graphs.own) for value in slots)]
            return run_with_effects(self, variant, inputs, arrays, objects, args, kwargs)
        memory, may_be_pythons = variant.memory, variant.trial.may_be_pythons
        arrays = [*originals, *captured] if memory is not None else []
        orders = () if memory is None else memory.orders(arrays)
        if orders is None and may_be_pythons:
            from .results import ORDER_UNKNOWN

            raise self._refusal(ORDER_UNKNOWN)
        try:
            outputs = self.run(variant.executor, self.graphs.inputs(variant, leaves))
            if memory is not None:
                outputs = memory.put(outputs, arrays, orders)
        except ProfuseError as error:
            if self.graphs.raises or not may_be_pythons:
                raise
            variant.executor.counters.calls -= 1  # Python counts the call
            # Python raises what NumPy raises, or computes what the graph cannot.
            raise NoGraph(Cause.FAILED, error) from None
        if objects is not None:
            outputs = variant.untaped.retaped(outputs, objects)
        return trace.out_tree.unflatten(outputs)

    def _refusal(self, error: ProfuseError) -> NoGraph:
        """The reason why a call is Python's, though there is a graph; told once."""
        self.graphs.ledger.tell(error)
        return NoGraph(Cause.MEMORY, error)

    def run(self, executor: AnyExecutor, inputs: list, into: Destinations | None = None) -> list:
        """Run an executor, with the results in memory of their own, or in ``into``."""
        self.graphs.ledger.latest = None
        executor.counters.calls += 1
        if is_finalizing():  # nothing can be imported any more, nor a plan be made
            outputs = evaluate(executor.module, inputs)
            if into is not None:
                into.fill(outputs)
            return outputs
        self._emission.current = executor
        return executor.run(inputs, into)

    def run_on_tape(self, executor: AnyExecutor, inputs: list) -> list:
        """Run an executor on inputs any of which may be on the tape."""
        from .tape_calls import untaped

        self.graphs.ledger.latest = None
        executor.counters.calls += 1
        runner = executor.serving(inputs)
        outputs = runner.run(untaped(inputs) if runner is executor else inputs)
        self._emission.current = runner
        return outputs

    def on_device(self, variant: Variant, leaves: list) -> Any:
        """The result of a call on a device, whose backend moves arguments and handles failures."""
        executor, captured = variant.executor, self.graphs.inputs(variant, ())
        if is_finalizing():
            outputs = self.run(executor, [*leaves, *captured])
        else:
            backend = backend_of(executor.options.processor.device)
            outputs = backend.call(self.run, executor, leaves, captured)
        return variant.trace.out_tree.unflatten(outputs)
