"""NumPy functions as a source of graphs: one trace per argument structure, rank and dtype.

Arguments and results are arrays, NumPy numbers and Python numbers, which may be nested in tuples,
lists and dicts. Results share memory with arguments, and with each other, as those of Python do
(`results`); where Python may not run calls, they have memory of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import get_ident
from types import FunctionType
from typing import TYPE_CHECKING, Any, SupportsIndex

from ...dialect.errors import ProfuseError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.importers.numpy.capture.tracer import trace, trace_inline
from ...dialect.importers.numpy.python.generators import has_drawn
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.importers.numpy.tracing.recorder import Policy
from ...dialect.ir.device import HOST
from ...dialect.trees.pytree import TreeDef, flatten_call
from ..arguments.user_input import check_arity, check_length
from ..routing.ledger import NoGraph
from ..routing.verdict import Cause
from ..settings.knobs import knobs, loop_bytes
from ..settings.plain import debugged
from .device_arguments import present
from .graph_source import GraphSource, Leaves
from .graphs import Graphs, kinds_of
from .variants import Key

if TYPE_CHECKING:
    from .function import GraphFunction
    from .saved.file import StoredGraph

_NO_OWN_TRACE = 256


class NumPySource(GraphSource):
    """A function written in plain NumPy.

    Args:
        fn: the function.
    """

    raises = False

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn
        self.has_code = not getattr(type(fn), "only_traced", False)
        self.shares_memory = getattr(type(fn), "shares_memory", False)
        self._named: FunctionType | None = None
        self._no_own_trace: dict[Key, None] = {}  # calls in traces that are recorded there

    def graph(self, graphs: Graphs, key: Key, leaves: list, args: tuple, kwargs: dict[str, Any], home: str) -> Trace:
        """The trace of a call; raises `NoGraph` where the function itself raises an error.

        Most ints that decide sizes never change, and kernels are better if they know them: the
        first graph holds for one value of each.
        """
        raises, outer = graphs.raises, graphs.traced_by
        graphs.traced_by = get_ident()
        try:
            return trace(
                self.fn,
                args,
                kwargs,
                name=graphs.name,
                loop_bytes=loop_bytes(),
                most_ops=None if raises else knobs.trace_ops,
                neural_ops=knobs.neural_ops,
                # What differentiates has no Python that would run it anyway.
                writes=home == HOST and not (raises and self.has_code),
                draws=home == HOST,
                loops=_loops(raises),
                fixes_sizes=not (graphs.variants.get(key) or raises),
                exact=knobs.exact,
            )
        except ProfuseError as error:
            if raises and has_drawn(error):
                raise NoGraph(Cause.RAISED, error) from None  # Python draws what comes before the error
            raise
        except Exception as error:
            if (raises or home != HOST) and not has_drawn(error):
                raise
            # Python raises it again, and leaves the effects that the function has had before it.
            raise NoGraph(Cause.RAISED, raised=error) from None
        finally:
            graphs.traced_by = outer
            debugged()  # from Python 3.12 on, a trace changes the version that emitted code compares

    def flatten(self, graphs: Graphs, args: tuple, kwargs: dict[str, Any]) -> Leaves:
        """Leaves and structure of a call; raises `NoGraph` for arguments that no graph can take."""
        may_leave = not graphs.raises and current() is None
        try:
            if may_leave:
                check_length(args, kwargs)
            return flatten_call(self.fn, args, kwargs, generators=True)
        except ProfuseError as error:
            if not may_leave:
                raise
            refused = error
        check_arity(self.fn, graphs.name, args, kwargs)
        graphs.ledger.refuse(None, refused)
        raise NoGraph(Cause.ARGUMENTS, refused, by=graphs.ledger.by_kinds)

    def inline(self, graphs: Graphs, leaves: list, tree: TreeDef, args: tuple, kwargs: dict) -> Any:
        """Handle a call within another function's trace.

        If the graph was made while profiling mode was off, or is made now in that mode, its trace
        is inlined (R2.14). Otherwise, and if ranks or dtypes of arguments are unknown, the Python
        function is called and its operations are recorded in the outer trace. So they are where
        the outer trace is one of this function: each level would be traced for each one above it.
        """
        from ...dialect.importers.numpy.capture.inline import example_of, inline_trace  # no plain call needs it

        examples = [example_of(leaf) for leaf in leaves]
        if graphs.traced_by == get_ident() or any(example is None for example in examples):
            return trace_inline(self.fn, args, kwargs, leaves)
        key = (tree, kinds_of(examples))
        variant = graphs.find(graphs.variants.get(key, ()), examples, plain=False)
        if variant is None and not knobs.profiling_mode and key not in self._no_own_trace:
            try:
                variant = graphs.trace(key, examples, *tree.unflatten(examples))
            except (ProfuseError, NoGraph) as error:
                raised = error.raised if isinstance(error, NoGraph) else None
                if isinstance(raised, RecursionError):
                    raise raised from None  # so would the outer trace end, after as many again
                # The function may use values of the outer trace, so a trace of its own fails. If it
                # fails for another reason, the call below raises the error in the outer trace.
                if len(self._no_own_trace) < _NO_OWN_TRACE:
                    self._no_own_trace[key] = None
                return trace_inline(self.fn, args, kwargs, leaves)
        if (
            variant is None
            or variant.trace.has_effects
            or not (variant.executor.joins_traces and variant.trace.tells_gradients)
        ):
            return trace_inline(self.fn, args, kwargs, leaves)
        variant.executor.count_invocation()
        return inline_trace(variant.trace, leaves)

    def stored(self, graphs: Graphs) -> list[StoredGraph]:
        """The traces that other processes can use."""
        from ...dialect.importers.numpy.capture.stored_trace import trace_to_json
        from ...dialect.ops.host_call import calls_users_functions
        from .saved.file import StoredGraph

        with graphs.lock:
            every = graphs.every()
        # A trace that closes over device arrays is valid in this process only.
        host = [v.trace for v in every if v.executor.options.processor.is_host]
        # Others would not be called again, need the caller's arrays, or functions of this process.
        portable = [t for t in host if t.tells_gradients and not (t.has_effects or t.takes_generators)]
        portable = [t for t in portable if not calls_users_functions(t.module)]
        traces = [t for t in portable if t.holds_what_it_held()]
        return [StoredGraph({"trace": trace_to_json(t)}, tuple(present(t.captured))) for t in traces]

    def __reduce__(self) -> tuple:
        return NumPySource, (self.fn,)

    def reduced(self, function: GraphFunction, protocol: SupportsIndex) -> str | tuple:
        """Pickle and copy like the Python function, without profiles and plans."""
        from .pickling import reduced  # loaded by what pickles and copies

        return reduced(function, self, protocol)

    def by_name(self, function: GraphFunction) -> FunctionType | None:
        """A copy of the Python function that can be imported by its name; None if not a function.

        The name of a decorated function refers to the `GraphFunction`, so no pickler could import the
        function itself by that name. The copy has the name ``<name>._by_name``.
        """
        if self._named is None and isinstance(self.fn, FunctionType):
            from .pickling import importable

            copy = importable(self.fn, function.__module__, getattr(function, "__qualname__", ""))
            self._named = self._named or copy
        return self._named

    def __repr__(self) -> str:
        return f"profuse.jit of {self.fn!r}"


def _loops(raises: bool) -> Policy | None:
    """The policy that says which loops of the source stay loops; None = none of them does.

    Where Python may not run a function, loops over single elements stay loops as well.
    """
    if not knobs.source_loops:
        return None
    return Policy(rounds=knobs.unroll_rounds, elements=raises)
