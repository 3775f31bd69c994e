"""Tracing: run a NumPy function once on recording arguments and keep the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import field
from typing import Any

import numpy as np

from ... import ops
from ...dataclass import dataclass
from ...errors import Loc, TraceError, WriteError
from ...ir.program import Module
from ..numpy import assignment, creation, joins, linalg, methods, reductions, selection, ufuncs
from ..python.effects import effects_refused, labelled
from ..python.journal import Journal, holds_tracer
from ..python.scope import Scope
from ..python.state import StateRead, state_reads
from .current import recording, trace_error
from .leaves import leaf_kind
from .mutation import check_writes
from .operators import as_value, recorder_of, wrap
from .pytree import TreeDef, flatten, flatten_call, leaf_names, unflatten
from .recorder import Recorder
from .trace_guards import TraceGuard
from .traced import Traced, is_tracing

# These modules are imported because they register ops and handlers.
_TABLES = (
    ops, assignment, creation, joins, linalg, methods, reductions, selection, ufuncs,
)  # fmt: skip


@dataclass
class Trace:
    """A function as a graph.

    The graph holds for every call with the same argument structure, Python-number types, dtypes
    and ranks for which `accepts` is true; sizes and values of Python numbers are free otherwise.

    Attributes:
        module: inputs are the argument leaves, then ``captured``; outputs the result's leaves.
        in_tree: structure of ``(args, kwargs)``.
        out_tree: structure of the result.
        captured: arrays the function closes over, by reference; a device's among them.
        guards: numbers that tracing baked into the graph.
        kinds: per argument leaf, `leaves.leaf_kind`.
        names: per argument leaf, what the user calls it.
        strict: the function asks for strict fusion (R1.46).
        remarks: sentences on how the graph was made.
        writes: argument leaves that the function writes to, in order. What they hold afterwards are
            the last outputs of the graph, one each.
        returned: pairs of a result and the argument leaf of ``writes`` that it is; the graph has no
            output for such a result.
        reads: what the function has read from outside of the call; the graph holds for that alone.
        held: per captured array of the host, its dtype and shape. Plain Python code may have read
            either, so that the graph holds for these alone.
    """

    module: Module
    in_tree: TreeDef
    out_tree: TreeDef
    captured: list[Any]
    guards: list[TraceGuard]
    kinds: tuple[Any, ...] = ()
    names: tuple[str, ...] = ()
    strict: bool = False
    remarks: tuple[str, ...] = ()
    reads: tuple[StateRead, ...] = ()
    writes: tuple[int, ...] = ()
    returned: tuple[tuple[int, int], ...] = ()
    held: tuple[tuple[Any, ...] | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.held = self._held()

    def _held(self) -> tuple[tuple[Any, ...] | None, ...]:
        return tuple(
            [(a.dtype, a.shape) if isinstance(a, np.ndarray) else None for a in self.captured]
        )

    def holds_what_it_held(self) -> bool:
        """True if what the function reads from outside is what it was when tracing.

        Of captured arrays, that is dtypes and shapes: their contents are inputs of the graph.
        """
        for read in self.reads:
            if not read.holds():
                return False
        return not self.captured or self._held() == self.held

    def result(self, outputs: Sequence[Any], leaves: Sequence[Any]) -> Any:
        """The result of a call, from the outputs of the graph and the argument leaves."""
        found = list(outputs[: len(outputs) - len(self.writes)])
        for place, leaf in self.returned:
            found.insert(place, leaves[leaf])
        return self.out_tree.unflatten(found)

    def changed(self) -> list[StateRead]:
        """What the function reads from outside, and is something else by now."""
        return [read for read in self.reads if not read.holds()]

    def accepts(self, leaves: Sequence[Any]) -> bool:
        """True if the baked numbers hold for these leaves, and captured arrays kept their types."""
        return self.holds_what_it_held() and all(guard.holds(leaves) for guard in self.guards)

    def signature(self) -> str:
        """Dtypes, ranks and kinds of numbers that the graph holds for, in words.

        The text of a graph says nothing of these: graphs that hold for others may print the same.
        """
        held = [(h[0], len(h[1])) for h in self.held if h is not None]
        return " ".join(_kind_text(kind) for kind in (*self.kinds, *held))

    def depths(self) -> list[int]:
        """In how many containers each argument leaf was passed."""
        # The tuple or dict of arguments, and the pair of these two, contain every leaf.
        return [depth - 2 for depth in self.in_tree.depths()]

    def explain(self) -> list[str]:
        """One sentence per baked number, and the remarks."""
        return [*(guard.explain() for guard in self.guards), *self.remarks]


def _kind_text(kind: Any) -> str:
    """A `leaves.leaf_kind` in words, without the byte order, which kernels never see."""
    if isinstance(kind, type):
        return kind.__name__
    dtype, rank, *device = kind
    return f"{np.dtype(dtype).name}[{rank}]{''.join(device)}"


def trace(
    fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None, *,
    name: str = "main", loop_bytes: int | None = None, most_ops: int | None = None,
    writes: bool = False,
) -> Trace:  # fmt: skip
    """Record ``fn(*args, **kwargs)`` without computing anything.

    Args:
        fn: the function.
        args: its example arguments.
        kwargs: the same, by name.
        name: name of the graph.
        loop_bytes: what the gradient of a loop may keep of its rounds; None = anything.
        most_ops: the longest graph that may be recorded; None = any.
        writes: writes to arguments become results (`Trace.writes`); else they are refused.

    What the function can reach is left as it was, whatever happens. Raises TraceError for what
    cannot become a graph, such as effects on objects from outside, ShapeError / DTypeError /
    BoundsError as NumPy would, and ArgumentError / DTypeError for arguments that cannot be passed.
    A TraceError has the numbers that the trace had assumed by then (`TraceError.guards`).
    """
    kwargs = dict(kwargs or {})
    leaves, in_tree = flatten_call(fn, args, kwargs)
    names = tuple(leaf_names(fn, in_tree))
    labels = tuple(n.replace("'", "", 2) for n in names)
    written: set[int] = set()
    while True:
        rec = Recorder(name, leaves, fn)
        rec.loop_bytes, rec.most_ops = loop_bytes, most_ops
        rec.entry, rec.journal, rec.scope = trace.__code__, Journal(), Scope(rec, fn)
        try:
            out_tree, returned = _record(rec, fn, in_tree, names, written)
            reads = _reads(rec, fn, in_tree)
            break
        except TraceError as error:
            error.guards = _guards(rec, labels)
            if not (writes and isinstance(error, WriteError) and error.leaf not in written):
                raise
            written.add(error.leaf)
    return Trace(
        Module(rec.program), in_tree, out_tree, [a for a, _, _ in rec.captured.values()],
        _guards(rec, labels), tuple(map(leaf_kind, leaves)), names, rec.strict, tuple(rec.remarks),
        reads, tuple(sorted(written)), returned,
    )  # fmt: skip


def _reads(rec: Recorder, fn: Callable, in_tree: TreeDef) -> tuple[StateRead, ...]:
    """What the function has read from outside, by itself and through graphs that have joined."""
    args, kwargs = in_tree.unflatten(rec.leaves)
    labels = {id(value): label for value, label in labelled(args, kwargs, fn)}
    statics = [(value, labels.get(id(value), "an argument")) for value in in_tree.statics()]
    found = [*state_reads(rec.scope, [(fn, "self"), *statics]), *rec.inner_reads]
    return tuple({(r.step, id(r.holder), r.key): r for r in found}.values())


def _guards(rec: Recorder, labels: tuple[str, ...]) -> list[TraceGuard]:
    return [TraceGuard(g.expr, g.expected, g.loc, labels) for g in rec.guards]


def _record(
    rec: Recorder, fn: Callable, in_tree: TreeDef, names: tuple[str, ...], written: Set[int]
) -> tuple[TreeDef, tuple[tuple[int, int], ...]]:
    """Run the function on the recorder's inputs and close the graph.

    ``written``: the arguments that it writes to, in whose place it gets copies; these are outputs
    after those of the function.

    Returns the structure of the results, and which result is which written argument itself.
    """
    with recording(rec), effects_refused(rec):
        given = [_argument(rec, k, names[k], copied=k in written) for k in range(len(rec.leaves))]
        traced_args, traced_kwargs = unflatten(in_tree, given)
        for argument, label in labelled(traced_args, traced_kwargs, fn):
            rec.journal.watch(argument, label)
        rec.journal.watch(fn, "self")
        called = rec.callee(fn)
        try:
            result = called(*traced_args, **traced_kwargs)
        except Exception as error:
            # NumPy hides why it could not store a traced value in an array.
            hidden = error.__cause__ if isinstance(error, (TypeError, ValueError)) else None
            found = rec.refused or hidden  # a refusal that was caught may have led to this error
            if isinstance(found, TraceError):
                raise found from None
            raise
        out_leaves, out_tree = flatten(result)
        for static in out_tree.statics():
            if holds_tracer(static):
                raise trace_error(
                    f"the result has traced values in an object of type {type(static).__name__}",
                    "return arrays and numbers in tuples, lists, dicts or dataclasses",
                )
        own = {id(given[k]): k for k in written}
        returned = tuple((j, own[id(x)]) for j, x in enumerate(out_leaves) if id(x) in own)
        results = [x for x in out_leaves if id(x) not in own]
        outputs = tuple(as_value(rec, x) for x in (*results, *(given[k] for k in sorted(written))))
        for value in outputs:
            rec.check_visible(value)
        if rec.refused is not None:
            raise rec.refused
    rec.check_captured()
    rec.finish((*rec.inputs, *rec.capture_inputs), outputs)
    check_writes(rec)
    return out_tree, returned


def _argument(rec: Recorder, number: int, label: str, *, copied: bool) -> Any:
    value, leaf = rec.inputs[number], rec.leaves[number]
    if isinstance(leaf, np.ndarray):
        if copied:
            return Traced(rec, rec.emit("copy", [value])[0])
        return Traced(rec, value, owner=f"argument {label}", leaf=number)
    if type(leaf) is bool:
        # Code asks ``flag is True``, to which a traced value cannot answer.
        code = getattr(rec.fn, "__code__", None)
        return rec.bake(value, code and Loc(code.co_filename, code.co_firstlineno))
    return wrap(rec, value)


def trace_inline(
    fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any]
) -> Any:
    """Call ``fn`` on traced arguments: its operations join the trace in progress.

    Raises TraceError if one of ``leaves``, those of the arguments, belongs to another trace.
    """
    return recorder_of(leaves).callee(fn)(*args, **kwargs)


creation.enter_substitutes()

__all__ = ["Trace", "is_tracing", "trace", "trace_inline"]
