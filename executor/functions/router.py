"""The router, which decides who serves each call of a function: by the verdicts of the ledger and by its graph."""

from __future__ import annotations

from collections.abc import Callable
from sys import is_finalizing
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ArgumentError, TraceError
from ...dialect.importers.numpy.capture.tracer import is_tracing
from ...dialect.importers.numpy.python.generators import is_plain_generator
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.importers.numpy.tracing.traced import is_on_tape
from ...dialect.ir.device import HOST
from ...dialect.trees.pytree import TreeDef
from ..arguments.device_kinds import flat_leaves
from ..arguments.plain_calls import flat_key
from ..memory.destinations import Destinations
from ..memory.output_pool import readable
from ..routing.ledger import NoGraph
from ..routing.verdict import Cause
from ..settings.plain import CHECKPOINT, plain
from ..settings.strict import is_strict
from ..settings.strict import refused as strict_refused
from ..tiers.choice import AnyExecutor
from .device_arguments import are_plain, holds_tensors
from .emission import Calls, Emission
from .graph_calls import GraphCalls
from .graphs import Graphs, kinds_of
from .in_python import PythonCalls

if TYPE_CHECKING:
    from ..tape.repeated_calls import Repeats
    from .tensor_calls import TensorCalls
    from .variants import Variant


class Router:
    """Has each call of a function served by its graph, or by Python.

    Args:
        graphs: of the function.
        attach: gets emitted code; see `Emission`.

    Attributes:
        emission: the emitted code, which hands calls that it does not serve to `call` and `into`.
        graph_calls: serves calls by graphs.
    """

    def __init__(self, graphs: Graphs, attach: Callable[[Calls | None, Calls | None], None]) -> None:
        self._graphs, self._ledger, self._own, self._fn = graphs, graphs.ledger, graphs.own, graphs.source.fn
        self.emission = Emission(graphs, attach, self.call, self.into)
        self._python = PythonCalls(graphs, self.emission)
        self.graph_calls = GraphCalls(graphs, self.emission, self._python)
        self._tensor_calls: TensorCalls | None = None

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run any call; settled specialisations get here only if there is no emitted code."""
        if is_finalizing():
            return self._call_at_end(args, kwargs)
        if (kwargs or not are_plain(map(id, map(type, args)))) and holds_tensors(args, kwargs):
            result = self._tensors().call(args, kwargs, self._with_arrays, self._call)
            self.emission.look()
            return result
        return self._call(args, kwargs)

    def _tensors(self) -> TensorCalls:
        if self._tensor_calls is None:
            from .tensor_calls import TensorCalls

            self._tensor_calls = TensorCalls(self._graphs, self._python)
        return self._tensor_calls

    def _with_arrays(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call that was one with tensors, in emitted code if there is any."""
        native = self.emission.native
        return self._call(args, kwargs) if native is None else native(*args, **kwargs)

    def _call(self, args: tuple, kwargs: dict[str, Any], is_noted: bool = False) -> Any:
        """Run a call without tensors of the host.

        ``is_noted``: it is one within a checkpointed call, which knows of it.
        """
        if CHECKPOINT.repeats is not None and not is_noted and current() is None:
            return self._call_in_checkpoint(CHECKPOINT.repeats, args, kwargs)
        why = plain()
        ledger = self._ledger
        if why is not None and self._python.is_plain(why, args, kwargs):
            args, kwargs = self._python.as_given(args, kwargs)
            if CHECKPOINT.repeats is not None:
                CHECKPOINT.repeats.note_python()
            return self._fn(*args, **kwargs)
        if ledger.recursion is not None and ledger.recursion.is_open:
            args, kwargs = self._python.as_given(args, kwargs)
            return ledger.recursion.call(self._fn, args, kwargs)  # by a star, the stack of C would go deeper
        if ledger.sooner.left:
            verdict = ledger.sooner.find(args, kwargs)
            if verdict is not None and current() is None:
                return self._python.call(verdict, args, kwargs)
        key = None if kwargs else flat_key(args)
        variant = None if key is None else self._graphs.flat.get(key)
        if variant is None or not variant.trace.holds_what_it_held():
            verdict = ledger.find(key, args, kwargs)
            if verdict is not None and not is_strict():
                return self._python.call(verdict, args, kwargs)
            result = self._call_any(key, args, kwargs)
        else:
            result = self.graph_calls.serve(variant, args, args, args, kwargs)
        self.emission.look()
        return result

    def _call_at_end(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call of a finalizer while the interpreter ends, when nothing can be imported.

        Python computes it, or a graph op by op that holds what Python cannot compute, as gradients.
        """
        self._ledger.latest = Cause.ENDING.verdict
        if not self._graphs.raises:
            return self._fn(*args, **kwargs)
        leaves, tree = self._graphs.source.flatten(self._graphs, args, kwargs)
        key = (tree, kinds_of(leaves))
        variant = self._graphs.find(self._graphs.variants.get(key, ()), leaves, plain=True)
        if variant is None or variant.trace.has_effects:
            return self._fn(*args, **kwargs)
        outputs = self.graph_calls.runs.run(variant.executor, self._graphs.inputs(variant, leaves))
        return variant.trace.out_tree.unflatten(outputs)

    def _call_any(self, flat: tuple | None, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call that `_flat` does not serve.

        Its arguments are nested, traced, new, on a device, need copies, or no graph can take them.
        """
        count = self._graphs.made
        try:
            result = self._call_graph(flat, args, kwargs)
        except NoGraph as error:
            refused = error
            if is_strict() and refused.raised is None and current() is None:
                why = refused.error or TraceError("; ".join(self._ledger.reasons))
                raise strict_refused(self._graphs.name, why) from None
        else:
            if self._graphs.made == count:  # a new graph may serve no other call
                self._ledger.withdraw(args, kwargs)
            return result
        if refused.key is None:
            self._ledger.propose(refused, flat, args, kwargs)
            return self._python.refuse(refused, args, kwargs)
        try:
            return self._python.refuse(refused, args, kwargs)
        except Exception:
            self._ledger.propose(refused, flat, args, kwargs)  # Python raises it as well
            raise

    def _call_graph(self, flat: tuple | None, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The same with a graph; raises `NoGraph` for calls that are left to Python."""
        flat_call = None if kwargs or flat is not None else flat_leaves(args)
        if flat_call is not None and self._graphs.options.device != HOST:
            flat, leaves = flat_call
            variant = self._graphs.on_device.get(flat)
            if variant is not None and variant.trace.holds_what_it_held():
                return self.graph_calls.runs.on_device(variant, leaves)
        leaves, tree = self._graphs.source.flatten(self._graphs, args, kwargs)
        if is_tracing(leaves):
            return self._graphs.source.inline(self._graphs, leaves, tree, args, kwargs)
        if self._ledger.recursion is not None and current() is not None:
            raise NoGraph(Cause.RECURSES)  # the trace of one level would trace the next
        originals = leaves
        if is_on_tape(leaves):
            from .tape_calls import graph_on_tape

            variant, leaves, is_plain = graph_on_tape(self._graphs, leaves, tree)
            if not is_plain:
                return self._run_on_tape(variant, leaves)
        else:
            leaves, home = self.graph_calls.placed([readable(leaf, self._own) for leaf in leaves])
            if home != HOST:
                self._check_no_generators(tree)
                flat = None if flat_call is None else flat
                variant = self._graphs.lookup(flat, leaves, tree, args, kwargs, home)
                return self.graph_calls.runs.on_device(variant, leaves)
            variant = self._graphs.lookup(flat, leaves, tree, args, kwargs)
        return self.graph_calls.serve(variant, leaves, originals, args, kwargs)

    def _call_in_checkpoint(self, repeats: Repeats, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call within a checkpointed one; where that is repeated, it is served as it was."""
        from .tape_calls import taped_inputs

        with repeats.call() as served:
            if not repeats.is_second or not (served.is_python or served.graph):
                return self._call(args, kwargs, True)
            if served.is_python:
                return self._fn(*args, **kwargs)
            leaves, _ = self._graphs.source.flatten(self._graphs, args, kwargs)
            inputs = self._graphs.inputs(served.graph, taped_inputs(leaves, self._own))
            return self._run_on_tape(served.graph, inputs)

    def _run_on_tape(self, variant: Variant, inputs: list) -> Any:
        """Run a graph on inputs any of which are of the tape."""
        from .tape_calls import as_arrays

        if CHECKPOINT.repeats is not None:
            CHECKPOINT.repeats.note_graph(variant)
        outputs = self.graph_calls.runs.run_on_tape(variant.executor, inputs)
        return variant.trace.out_tree.unflatten(as_arrays(outputs))

    def _check_no_generators(self, tree: TreeDef) -> None:
        """Raise `NoGraph` for a call on a device with a generator, which draws on the host."""
        if any(map(is_plain_generator, tree.statics())):
            error = ArgumentError(
                "a random generator is passed with arrays of a device, and draws on the host",
                hint="draw the numbers outside and pass them as an argument",
            )
            if self._graphs.raises:
                raise error
            self._ledger.refuse(None, error)
            raise NoGraph(Cause.NO_GRAPH, error)

    def into(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run a call of `into`, the first of whose arguments is where results are written."""
        if is_finalizing():
            result = self._call_at_end(args[1:], kwargs)
            return self._python.put(result, args[0])
        if holds_tensors(args, kwargs):
            return self._tensors().call(args, kwargs, self._into, self._into, first=1)
        return self._into(args, kwargs)

    def _into(self, args: tuple, kwargs: dict[str, Any]) -> Any:
        """Run such a call without tensors of the host."""
        why = plain()
        if why is not None and self._python.is_plain(why, args[1:], kwargs):
            own, named = self._python.as_given(args[1:], kwargs)
            return self._put(self._fn(*own, **named), args[0])
        try:
            executor, inputs, tree = self._resolved(args[1:], kwargs)
        except NoGraph as error:
            refused = error
        else:
            destinations = Destinations(args[0], tree, self._graphs.name)
            self.graph_calls.runs.run(executor, inputs, destinations)
            executor.counters.output_copies += destinations.copied
            if not is_finalizing():
                self.emission.write()
                self.emission.look()
            return args[0]
        return self._put(self._python.refuse(refused, args[1:], kwargs), args[0])

    def _put(self, result: Any, out: Any) -> Any:
        """Write what Python has given into ``out``, and return that."""
        return self._python.put(self._tensors().arrays(result) if holds_tensors((result,), {}) else result, out)

    def _resolved(self, args: tuple, kwargs: dict[str, Any]) -> tuple[AnyExecutor, list, TreeDef]:
        """The executor of a call, its inputs, and the structure of its results.

        Raises TraceError inside another function's trace.
        """
        leaves, tree = self._graphs.source.flatten(self._graphs, args, kwargs)
        flat, leaves = None if kwargs else flat_key(args), self.graph_calls.host_leaves(leaves)
        variant = self._graphs.lookup(flat, leaves, tree, args, kwargs, plain=True)
        unreported = self.graph_calls.unreported()
        if unreported is not None:
            raise NoGraph(unreported.cause)
        if variant.trace.has_effects:
            raise NoGraph(Cause.EFFECTS)
        return variant.executor, self._graphs.inputs(variant, leaves), variant.trace.out_tree
