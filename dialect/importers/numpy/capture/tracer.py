"""Tracing: run a NumPy function once on recording arguments and keep the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dataclass import dataclass
from ....errors import ArgumentError, Loc, TraceError
from ....ir.program import Module
from ....trees.leaves import leaf_kind
from ....trees.pytree import TreeDef, flatten, flatten_call, positional_names, unflatten
from ..python.generators import note_drawn
from ..python.objects import CONTENTS
from ..python.users_code import runs_later
from ..tracing.current import recording, trace_error
from ..tracing.effect_results import output_values, outputs_of
from ..tracing.mutation import check_writes, read_copies
from ..tracing.operators import recorder_of, wrap
from ..tracing.recorder import Policy, Recorder
from ..tracing.trace_guards import TraceGuard, leaves_of, numbers_of
from ..tracing.traced import TracedArray, is_tracing
from ..world.effects import effects_refused, labelled
from ..world.journal import Journal
from ..world.opaque import check_seen
from ..world.places import MISSING, StateRead
from ..world.restoring import holds_tracer
from ..world.shadows import Shadows
from ..world.stores import PlaceStore
from ..world.substitutes import original_of
from .code_names import named
from .outer_state import state_reads
from .scope import TraceScope
from .trace import Trace, takes_generators
from .traced_call import Restart, TracedCall
from .watched_frames import called
from .watching import TraceWatch

if TYPE_CHECKING:
    from ..world.given import Containers, Given


def trace(
    fn: Callable[..., Any],
    args: tuple = (),
    kwargs: dict[str, Any] | None = None,
    *,
    name: str = "main",
    loop_bytes: int | None = None,
    most_ops: int | None = None,
    neural_ops: bool = False,
    writes: bool = False,
    draws: bool = False,
    loops: Policy | None = None,
    fixes_sizes: bool = False,
    exact: bool = False,
) -> Trace:
    """Record ``fn(*args, **kwargs)`` without computing anything.

    Args:
        fn: the function.
        args: its example arguments.
        kwargs: the same, by name.
        name: name of the graph.
        loop_bytes: what the gradient of a loop may keep of its rounds; None = anything.
        most_ops: the longest graph that may be recorded; None = any.
        neural_ops: what `profuse.nn` offers is recorded as ops, not as what these are composed of.
        writes: writes to arguments become results (`Trace.writes`); else they are refused.
        draws: draws from generators become inputs (`Trace.draws`); else they are refused.
        loops: which loops of the source are recorded as such; None = their rounds are, one by one.
        fixes_sizes: the graph holds for one value of each int argument that decides sizes.
        exact: what may differ from NumPy in the last bit is refused.

    What the function can reach is left as it was, whatever happens. Raises TraceError for what
    cannot become a graph, such as effects on objects from outside, ShapeError / DTypeError /
    BoundsError as NumPy would, and ArgumentError / DTypeError for arguments that cannot be passed.
    A TraceError has the numbers that the trace had assumed by then (`TraceError.guards`).
    """
    kwargs = dict(kwargs or {})
    fixed: tuple[Any, ...] = ()
    call = TracedCall(fn, *flatten_call(fn, args, kwargs, draws), writes=writes)
    call.fixable = len(call.arguments) if fixes_sizes else 0
    while True:
        rec = Recorder(name, call.leaves, fn)
        rec.loop_bytes, rec.most_ops, rec.neural_ops = loop_bytes, most_ops, neural_ops
        rec.entry, rec.journal, rec.scope = trace.__code__, Journal(), TraceScope(rec, fn)
        rec.watch = TraceWatch(rec)
        rec.journal.codes, rec.journal.watched = rec.scope.codes, rec.watch.codes
        if not call.shadowed:
            rec.journal.meets_hidden = check_seen
        rec.takes_writes, rec.draws.are_taken = writes, draws
        rec.lifts_new, rec.lazy_sizes = call.lifts_new, call.lazy_sizes
        rec.policy, rec.memory, rec.exact = loops, call.memory, exact
        rec.numbers.fixable, rec.numbers.size_leaves = call.fixable, dict(call.fixed)
        try:
            recorded = _record(rec, call)
            if call.fixes(rec):
                continue
            reads = (*_reads(rec, call), *_absences(recorded.stores))
            if draws and (rec.draws.made or takes_generators(call.in_tree)):
                from ..world.draws import settle  # few functions draw

                objects = (read.value for read in reads)
                fixed = settle(rec.draws.made, args, kwargs, objects, named(rec.scope))
            break
        except Restart:
            continue
        except Exception as error:
            if isinstance(error, TraceError):
                # What the function assigns is no argument, which is all that calls are told by.
                error.guards = [
                    guard for guard in _guards(rec, call) if all(n < len(call.arguments) for n in leaves_of(guard.expr))
                ]
            elif rec.draws.has_drawn:
                note_drawn(error)
            # A branch of a function that a recorded loop calls is no reason to leave the loop.
            if rec.source is not None and rec.source.open and _has_branches(error, rec):
                continue
            if rec.source is not None and rec.source.learns(error):
                continue
            if call.learns(error, rec):
                continue
            if not _has_branches(error, rec):
                if call.plain is None:
                    raise
                raise call.plain from None
            call.shadowed = True  # it may be that branches were all that was in the way
    return Trace(
        Module(rec.program),
        call.in_tree,
        recorded.out_tree,
        [array for array, _, _ in rec.captures.known.values()],
        _guards(rec, call),
        tuple(map(leaf_kind, call.leaves)),
        call.names,
        rec.strict,
        tuple(rec.remarks),
        reads,
        tuple(call.slots),
        tuple(recorded.stores),
        recorded.writes,
        recorded.sources,
        recorded.containers,
        tuple(rec.draws.made),
        fixed,
        rec.hints,
        rec.layouts.copies(),
        rec.layouts.orders(),
        rec.is_native,
        rec.flow.overwrites,
        rec.flow.notes_writes,
        rec.flow.is_switched_on,
    )


def _has_branches(error: Exception, rec: Recorder) -> bool:
    """True if the trace is to start anew, and to record branches as such."""
    if not isinstance(error, TraceError) or not (error.of_contents and error.is_undone):
        return False
    if rec.policy is None or "branches" in rec.memory:
        return False
    rec.memory["branches"] = True
    rec.memory.pop("loops", None)  # decisions on statements which are others now
    return True


@dataclass
class _Recorded:
    """The record of a trace, as the fields of `Trace`."""

    out_tree: TreeDef
    stores: Sequence[PlaceStore] = ()
    writes: tuple[int, ...] = ()
    sources: tuple[Any, ...] | None = None
    containers: Containers | None = None


def _reads(rec: Recorder, call: TracedCall) -> tuple[StateRead, ...]:
    """The values that the function has read from outside, by itself and through graphs that have joined."""
    traced = {id(x) for x in call.values} | rec.captures.created.keys()

    def is_plain(array: np.ndarray, itself: bool) -> bool:
        if id(array) in traced:
            return False
        return itself or rec.shadows is None or not rec.shadows.has(array)

    reached, classes = [(call.fn, "self"), *call.statics()], call.in_tree.classes()
    reads = [*state_reads(rec.scope, rec.watch, reached, is_plain, rec.shadows, classes), *rec.inner_reads]
    for read in reads:
        place = read.place
        if place.facet is CONTENTS:
            text = f"what {place.name} holds ({place.holder.nbytes} bytes)"
            rec.remark(f"{text} is compared at each call: Python needs it")
    slots = {slot.id for slot in call.slots}
    return tuple({(r.place.id, r.is_absent): r for r in reads if r.place.id not in slots}.values())


def _absences(stores: Sequence[PlaceStore]) -> Iterator[StateRead]:
    """That there is nothing yet where the function makes attributes and items of what it reads."""
    new = (s.place for s in stores if s.is_new and s.place.node is None)
    return (StateRead(place, MISSING) for place in new)


def _guards(rec: Recorder, call: TracedCall) -> list[TraceGuard]:
    labels = tuple(name.replace("'", "", 2) for name in call.names)
    return [TraceGuard(g.expr, g.expected, g.loc, labels) for g in rec.numbers.guards]


_LATER = "generators and coroutines are not supported: what they give is not there yet"


def _record(rec: Recorder, call: TracedCall) -> _Recorded:
    """Run the function on the recorder's inputs and close the graph."""
    fn, count = call.fn, len(call.arguments)
    with recording(rec), effects_refused(rec):
        tracers = [_argument(rec, call, k, name) for k, name in enumerate(call.names)]
        in_tree = call.in_tree
        shadows = None
        if call.shadowed:
            slots = {slot.id: x for slot, x in zip(call.slots, tracers[count:], strict=True)}
            shadows = rec.shadows = Shadows(rec, slots)
        if runs_later(fn):
            raise ArgumentError(_LATER, hint="make a list or tuple of it; write functions without yield and async")
        callee = rec.callee(fn)
        if shadows is not None:
            for static, label in call.statics():
                rec.journal.watch(static, label)
                shadows.of(static, label)
            in_tree = in_tree.with_statics(lambda static: shadows.of(static, "an argument"))
        containers = _containers(rec, call, in_tree)
        if containers is None:
            traced_args, traced_kwargs = unflatten(in_tree, tracers[:count])
        else:
            traced_args, traced_kwargs = containers.build(tracers[:count])
        for argument, label in labelled(traced_args, traced_kwargs, fn):
            rec.journal.watch(argument, label)
        rec.journal.watch(fn, "self")
        try:
            with rec.watch:
                result = called(callee, traced_args, traced_kwargs)
            rec.watch.check_shadows()
        except Exception as error:
            # NumPy hides why it could not store a traced value in an array.
            hidden = error.__cause__ if isinstance(error, (TypeError, ValueError)) else None
            cause = rec.refused or hidden  # a refusal that was caught may have led to this error
            if isinstance(cause, TraceError):
                raise cause from None
            raise
        if rec.source is not None:
            rec.source.check_closed()
        recorded, outputs = _results(rec, call, result, tracers, containers)
        if rec.source is not None:
            outputs = rec.source.settled(outputs)
        if rec.asks_unseen:
            from ..tracing.identity import check_unseen  # few functions may have asked

            check_unseen(rec)
        if rec.refused is not None:
            raise rec.refused
        replaced = set() if containers is None else containers.replaced(tracers[:count])
        _check_slots(rec, call, replaced)
    rec.captures.check()
    if shadows is not None:
        rec.captures.drop_unused({*outputs, *rec.draws.arrays})
    inputs = (*rec.inputs, *rec.captures.inputs, *(draw.value for draw in rec.draws.made))
    recorded.writes = tuple(map(inputs.index, rec.written))
    if recorded.containers is not None and recorded.sources is not None:
        recorded.sources = recorded.containers.numbered(recorded.sources, behind=len(inputs))
    rec.draws.examples.clear()
    rec.finish(inputs, outputs)
    read_copies(rec)
    check_writes(rec)
    return recorded


def _containers(rec: Recorder, call: TracedCall, tree: TreeDef) -> Given | None:
    """The containers of the arguments, if calls may assign to them; None if not."""
    if rec.shadows is None or not call.writes or call.in_tree.is_flat:
        return None
    from ..world.given import Given

    return Given(rec, rec.shadows, tree, positional_names(call.fn, len(tree.spec[2][0][2])))


def _results(
    rec: Recorder, call: TracedCall, result: Any, tracers: Sequence[Any], containers: Given | None
) -> tuple[_Recorded, tuple[int, ...]]:
    """The results and effects of the function, and the outputs of the graph that have them."""
    stores: list[PlaceStore] = []
    nodes: dict[int, Any] = {} if containers is None else containers.nodes()
    shadows = rec.shadows
    if shadows is not None:
        shadows.whole = nodes
        stores = shadows.stores()
        if stores and not call.writes:
            raise trace_error("the function changes what was there before the call")
        call.note(stores)
        if containers is not None:
            stores += shadows.stores_of(containers.entries)
    exits = () if rec.source is None else rec.source.exits.output
    has_effects = bool(stores or rec.written or exits)
    out_leaves, out_tree = flatten(result, nodes if has_effects else ())
    out_tree = _with_arrays(out_tree, out_leaves)
    for store in stores:
        store.tree = store.tree and _with_arrays(store.tree, store.leaves)
    out_tree = out_tree.with_statics(original_of if shadows is None else shadows.original)
    for static in out_tree.statics():
        if holds_tracer(static):
            raise trace_error(
                f"the result has traced values in an object of type {type(static).__name__}",
                "return arrays and numbers in tuples, lists, dicts or dataclasses",
            )
    for value in (*out_tree.statics(), *out_tree.keys()):
        if rec.journal.is_new(value) and not (shadows is not None and shadows.has(value)):
            raise trace_error(
                f"the result has an object of type {type(value).__name__} that the function makes: it would be one and "
                "the same for all calls",
                "return arrays and numbers in tuples, lists, dicts or dataclasses, or what is there before the call",
            )
    if not has_effects:
        outputs = output_values(rec, out_leaves)
        for value in outputs:
            rec.check_visible(value)
        return _Recorded(out_tree), outputs
    recorded = _Recorded(out_tree, stores)
    recorded.sources, outputs = outputs_of(rec, out_leaves, stores, tracers, nodes, exits)
    if containers is not None:
        recorded.containers = containers.containers(stores)
    return recorded, outputs


def _with_arrays(tree: TreeDef, leaves: Sequence[Any]) -> TreeDef:
    """A structure that tells arrays without axes from scalars."""
    return tree.with_arrays([isinstance(x, np.ndarray) and not x.ndim for x in leaves])


def _check_slots(rec: Recorder, call: TracedCall, replaced: set[int]) -> None:
    """Raise TraceError if the graph holds for one number in a place that calls assign.

    ``replaced``: the numbers of the leaves that are items of arguments, and are assigned.
    """
    for number in {k for guard in rec.numbers.guards for k in numbers_of(guard.expr)}:
        is_assigned = number >= len(call.arguments) or number in replaced
        if is_assigned and not isinstance(call.leaves[number], bool):
            raise trace_error(f"{call.names[number]} changes from call to call, and decides here")


def _argument(rec: Recorder, call: TracedCall, number: int, label: str) -> Any:
    if number in call.fixed:
        return rec.numbers.bake(rec.inputs[number], call.fixed[number])
    value, leaf = rec.inputs[number], rec.leaves[number]
    if isinstance(leaf, np.ndarray):
        return TracedArray(rec, value, owner=f"argument {label}", is_input=True)
    if type(leaf) is bool:
        # Code asks ``flag is True``, to which a traced value cannot answer.
        code = getattr(rec.fn, "__code__", None)
        return rec.numbers.bake(value, code and Loc(code.co_filename, code.co_firstlineno))
    return wrap(rec, value)


def trace_inline(fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any]) -> Any:
    """Call ``fn`` on traced arguments: its operations join the trace in progress.

    Raises TraceError if one of ``leaves``, those of the arguments, belongs to another trace.
    """
    return called(recorder_of(leaves).callee(fn), args, kwargs)


__all__ = ["is_tracing", "trace", "trace_inline"]
