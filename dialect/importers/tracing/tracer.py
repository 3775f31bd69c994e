"""Tracing: run a NumPy function once on recording arguments and keep the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np

from ... import ops
from ...dataclass import dataclass
from ...errors import Loc, TraceError
from ...ir.program import Module
from ..numpy import assignment, creation, joins, linalg, methods, reductions, selection, ufuncs
from ..python.effects import effects_refused, labelled
from ..python.journal import Journal, holds_tracer
from ..python.scope import Scope
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
    held: tuple[tuple[Any, ...] | None, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.held = self._held()

    def _held(self) -> tuple[tuple[Any, ...] | None, ...]:
        return tuple(
            [(a.dtype, a.shape) if isinstance(a, np.ndarray) else None for a in self.captured]
        )

    def holds_what_it_held(self) -> bool:
        """True if the captured arrays have the dtypes and shapes that they had when tracing."""
        return not self.captured or self._held() == self.held

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
) -> Trace:  # fmt: skip
    """Record ``fn(*args, **kwargs)`` without computing anything.

    Args:
        fn: the function.
        args: its example arguments.
        kwargs: the same, by name.
        name: name of the graph.
        loop_bytes: what the gradient of a loop may keep of its rounds; None = anything.
        most_ops: the longest graph that may be recorded; None = any.

    What the function can reach is left as it was, whatever happens. Raises TraceError for what
    cannot become a graph, such as effects on objects from outside, ShapeError / DTypeError /
    BoundsError as NumPy would, and ArgumentError / DTypeError for arguments that cannot be passed.
    A TraceError has the numbers that the trace had assumed by then (`TraceError.guards`).
    """
    kwargs = dict(kwargs or {})
    leaves, in_tree = flatten_call(fn, args, kwargs)
    names = tuple(leaf_names(fn, in_tree))
    rec = Recorder(name, leaves, fn)
    rec.loop_bytes, rec.most_ops = loop_bytes, most_ops
    rec.entry, rec.journal, rec.scope = trace.__code__, Journal(), Scope(rec, fn)
    labels = tuple(n.replace("'", "", 2) for n in names)
    try:
        out_tree = _record(rec, fn, in_tree, names)
    except TraceError as error:
        error.guards = _guards(rec, labels)
        raise
    return Trace(
        Module(rec.program), in_tree, out_tree, [a for a, _, _ in rec.captured.values()],
        _guards(rec, labels), tuple(map(leaf_kind, leaves)), names, rec.strict, tuple(rec.remarks),
    )  # fmt: skip


def _guards(rec: Recorder, labels: tuple[str, ...]) -> list[TraceGuard]:
    return [TraceGuard(g.expr, g.expected, g.loc, labels) for g in rec.guards]


def _record(rec: Recorder, fn: Callable, in_tree: TreeDef, names: tuple[str, ...]) -> TreeDef:
    """Run the function on the recorder's inputs and close the graph; the results' structure."""
    with recording(rec), effects_refused(rec):
        traced_args, traced_kwargs = unflatten(in_tree, [
            _argument(rec, value, leaf, label)
            for value, leaf, label in zip(rec.inputs, rec.leaves, names, strict=True)
        ])  # fmt: skip
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
        outputs = tuple(as_value(rec, leaf) for leaf in out_leaves)
        for value in outputs:
            rec.check_visible(value)
        if rec.refused is not None:
            raise rec.refused
    rec.check_captured()
    rec.finish((*rec.inputs, *rec.capture_inputs), outputs)
    check_writes(rec)
    return out_tree


def _argument(rec: Recorder, value: int, leaf: Any, label: str) -> Any:
    if isinstance(leaf, np.ndarray):
        return Traced(rec, value, owner=f"argument {label}")
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
