"""Tracing: run a NumPy function once on recording arguments and keep the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from .... import ops
from ....dataclass import dataclass
from ....errors import Loc, TraceError
from ....ir.program import Module
from ....ir.types import Type
from ....ops.control_flow.control import LOOPS
from ....ops.indexing.inplace import Borrow
from ..handlers import assignment, creation, joins, linalg, methods, reductions, selection, ufuncs
from ..python.generators import is_plain_generator, note_drawn
from ..python.objects import CONTENTS
from ..tracing.current import recording, trace_error
from ..tracing.effect_results import output_values, outputs_of
from ..tracing.layouts import Copied, Laid
from ..tracing.leaves import kind_of, leaf_kind
from ..tracing.mutation import check_writes, read_copies
from ..tracing.operators import recorder_of, wrap
from ..tracing.pytree import TreeDef, flatten, flatten_call, leaf_names, positional_names, unflatten
from ..tracing.recorder import Policy, Recorder
from ..tracing.trace_guards import TraceGuard, numbers_of
from ..tracing.traced import TracedArray, is_tracing
from ..world.effects import effects_refused, labelled
from ..world.hidden import check_seen
from ..world.journal import Journal, holds_tracer
from ..world.places import MISSING, Place, StateRead
from ..world.shadows import Shadows
from ..world.stores import Store
from ..world.substitutes import original_of
from .scope import Scope
from .state import named, state_reads
from .watching import Watch

if TYPE_CHECKING:
    from ..world.draws import Draw
    from ..world.given import Containers, Given

# These modules are imported because they register ops and handlers.
_TABLES = (
    ops, assignment, creation, joins, linalg, methods, reductions, selection, ufuncs,
)  # fmt: skip
_RESTARTS = 16  # of one trace for what it assigns; a call that needs more has no graph


@dataclass
class Trace:
    """A function as a graph.

    The graph holds for every call with the same argument structure, Python-number types, dtypes
    and ranks for which `accepts` is true; sizes and values of Python numbers are free otherwise.

    Attributes:
        module: inputs are the argument leaves, then ``captured``, then what is drawn; outputs the
            result's leaves.
        in_tree: structure of ``(args, kwargs)``.
        out_tree: structure of the result.
        captured: arrays the function closes over, by reference; a device's among them.
        guards: numbers that tracing baked into the graph.
        kinds: per argument leaf, `leaves.leaf_kind`.
        names: per argument leaf, what the user calls it.
        strict: the function asks for strict fusion (R1.46).
        remarks: sentences on how the graph was made.
        slots: attributes and items that the function assigns. What they hold before the call are
            inputs of the graph, after the argument leaves.
        stores: what the function assigns, in order.
        writes: inputs whose arrays the function writes to, in order. What they hold afterwards are
            the last outputs of the graph, one each.
        sources: for each leaf of the result, and after these for each leaf of ``stores``, the
            number of an output, or ``~k`` for input ``k`` itself; None = the outputs are the leaves
            of the result. Containers among the arguments are numbered behind the inputs.
        containers: these, if there are effects and any containers.
        reads: what the function has read from outside of the call; the graph holds for that alone.
        lends: the graph writes to arrays of the caller's where they are, if it may (`Borrow`).
        draws: what each call draws from random generators before the graph runs, in order.
        generators: those that the function reads, if others are arguments: the code was traced for
            different ones, so that calls with one of these are left to Python.
        held: per captured array of the host, its dtype and shape. Plain Python code may have read
            either, so that the graph holds for these alone.
        plain: arrays from outside that the code has got as they are: the graph holds for their
            contents alone.
        hints: what is known of the values of the graph, for who admits it; empty afterwards.
        copied: copies where NumPy has views, likewise.
        laid: how values lie in memory, where their ops do not tell, likewise.
        is_native: arrays in a foreign byte order would be treated in another way.
        overwrites: the function writes to arrays under `no_grad`.
        notes_writes: it writes to arrays elsewhere, which the tape would note.
        asks_for_gradients: it switches gradient mode on, whatever the mode of the caller is.
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
    slots: tuple[Place, ...] = ()
    stores: tuple[Store, ...] = ()
    writes: tuple[int, ...] = ()
    sources: tuple[int, ...] | None = None
    containers: Containers | None = None
    draws: tuple[Draw, ...] = ()
    generators: tuple[Any, ...] = ()
    hints: dict[int, Type] = field(default_factory=dict)
    copied: dict[int, Copied] = field(default_factory=dict)
    laid: dict[int, Laid] = field(default_factory=dict)
    is_native: bool = False
    overwrites: bool = False
    notes_writes: bool = False
    asks_for_gradients: bool = False
    held: tuple[tuple[Any, ...] | None, ...] = field(init=False)
    lends: bool = field(init=False)
    plain: tuple[np.ndarray, ...] = field(init=False)

    def __post_init__(self) -> None:
        places = (read.place for read in self.reads)
        self.plain = tuple([np.asarray(p.holder) for p in places if p.facet is CONTENTS])
        self.held = self._held()
        self.lends = bool(self.writes) and any(i.op is Borrow for i in self.module.main.body.instrs)

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
        if self.slots and self.slot_kinds() != self.slot_kinds_held:
            return False
        return not self.captured or self._held() == self.held

    @property
    def slot_kinds_held(self) -> tuple[Any, ...]:
        """What the trace has assumed of the slots."""
        return self.kinds[self.in_tree.leaves :]

    @property
    def has_effects(self) -> bool:
        """True if calls write to what was there before them, or draw random numbers."""
        return self.sources is not None or bool(self.draws or self.generators)

    @property
    def tells_gradients(self) -> bool:
        """False if how gradients flow does not follow from the graph alone."""
        return not (self.overwrites or self.asks_for_gradients)

    @property
    def takes_generators(self) -> bool:
        """True if an argument is a random generator, which may be another one at each call."""
        return _takes_generators(self.in_tree)

    @property
    def bakes_floats(self) -> bool:
        """True if the graph holds for one value of some float or complex number alone."""
        return any(guard.is_float for guard in self.guards)

    def slot_kinds(self) -> tuple[Any, ...]:
        """What a trace would assume of the slots now; None for one that is no leaf."""
        return tuple([_kind_of(slot) for slot in self.slots])

    def changed(self) -> list[StateRead]:
        """What the function reads from outside, and is something else by now."""
        return [read for read in self.reads if not read.holds()]

    def accepts(self, leaves: Sequence[Any]) -> bool:
        """True if the baked numbers hold for these leaves, and captured arrays kept their types."""
        if not self.holds_what_it_held():
            return False
        if self.slots and self.guards:
            leaves = [*leaves, *(slot.find() for slot in self.slots)]
        return all(guard.holds(leaves) for guard in self.guards)

    def signature(self) -> str:
        """Dtypes, ranks and kinds of numbers that the graph holds for, in words.

        The text of a graph says nothing of these: graphs that hold for others may print the same.
        """
        held = [(h[0], len(h[1])) for h in self.held if h is not None]
        drawn = [draw.kind for draw in self.draws]
        return " ".join(_kind_text(kind) for kind in (*self.kinds, *held, *drawn))

    def depths(self) -> list[int]:
        """In how many containers each argument leaf was passed."""
        # The tuple or dict of arguments, and the pair of these two, contain every leaf.
        return [depth - 2 for depth in self.in_tree.depths()]

    def explain(self) -> list[str]:
        """One sentence per baked number, and the remarks."""
        return [*(guard.explain() for guard in self.guards), *self.remarks]


def _takes_generators(tree: TreeDef) -> bool:
    return any(is_plain_generator(static) for static in tree.statics())


def _kind_of(slot: Place) -> Any:
    return kind_of(slot.find())


def _kind_text(kind: Any) -> str:
    """A `leaves.leaf_kind` in words, without the byte order, which kernels never see."""
    if isinstance(kind, type):
        return kind.__name__
    dtype, rank, *device = kind
    return f"{np.dtype(dtype).name}[{rank}]{''.join(device)}"


def trace(
    fn: Callable[..., Any], args: tuple = (), kwargs: dict[str, Any] | None = None, *,
    name: str = "main", loop_bytes: int | None = None, most_ops: int | None = None,
    writes: bool = False, draws: bool = False, loops: Policy | None = None,
    fixes_sizes: bool = False, exact: bool = False,
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
    call = _Call(fn, *flatten_call(fn, args, kwargs, draws), writes=writes)
    call.fixable = len(call.arguments) if fixes_sizes else 0
    while True:
        rec = Recorder(name, call.leaves, fn)
        rec.loop_bytes, rec.most_ops = loop_bytes, most_ops
        rec.entry, rec.journal, rec.scope = trace.__code__, Journal(), Scope(rec, fn)
        rec.watch = Watch(rec)
        rec.journal.codes, rec.journal.watched = rec.scope.codes, rec.watch.codes
        if not call.shadowed:
            rec.journal.meets_hidden = check_seen
        rec.takes_writes, rec.draws.are_taken = writes, draws
        rec.lifts_new, rec.lazy_sizes = call.lifts_new, call.lazy_sizes
        rec.policy, rec.memory, rec.exact = loops, call.memory, exact
        rec.numbers.fixable, rec.numbers.size_leaves = call.fixable, dict(call.fixed)
        try:
            found = _record(rec, call)
            if call.fixes(rec):
                continue
            reads = (*_reads(rec, call), *_absences(found.stores))
            if draws and (rec.draws.made or _takes_generators(call.in_tree)):
                from ..world.draws import settle  # few functions draw

                held = (read.value for read in reads)
                fixed = settle(rec.draws.made, args, kwargs, held, named(rec.scope))
            break
        except _Again:
            continue
        except Exception as error:
            if isinstance(error, TraceError):
                # What the function assigns is no argument, which is all that calls are told by.
                error.guards = [
                    guard for guard in _guards(rec, call)
                    if all(n < len(call.arguments) for n in numbers_of(guard.expr))
                ]  # fmt: skip
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
        Module(rec.program), call.in_tree, found.out_tree,
        [array for array, _, _ in rec.captures.known.values()], _guards(rec, call),
        tuple(map(leaf_kind, call.leaves)), call.names, rec.strict, tuple(rec.remarks), reads,
        tuple(call.slots), tuple(found.stores), found.writes, found.sources, found.containers,
        tuple(rec.draws.made), fixed, rec.hints,
        rec.layouts.copies(), rec.layouts.orders(), rec.is_native,
        rec.flow.overwrites, rec.flow.notes_writes, rec.flow.is_switched_on,
    )  # fmt: skip


class _Again(Exception):
    """A trace has found effects, and is to begin anew with what the call has noted of them."""


def _has_branches(error: Exception, rec: Recorder) -> bool:
    """True if the trace is to start anew, and to record branches as such."""
    if not isinstance(error, TraceError) or not (error.of_contents and error.is_undone):
        return False
    if rec.policy is None or "branches" in rec.memory:
        return False
    rec.memory["branches"] = True
    rec.memory.pop("loops", None)  # decisions on statements which are others now
    return True


class _Call:
    """The call that is traced, and what earlier traces of it have found.

    Attributes:
        leaves: example values of the graph's inputs: the argument leaves, then the slots.
        names: what the user calls them.
        slots: attributes and items that the function assigns.
        shadowed: the function gets shadows of what it reads; else the objects themselves, of which
            it may read plain values, but not change them.
        lifts_new: arrays that NumPy makes meanwhile are traced values, to which others can be
            written, but whose contents Python cannot read.
        lazy_sizes: `len` gives traced sizes; else numbers, which some functions need.
        plain: what was raised before that, and is to be told if it helps nothing.
        fixable: so many arguments become constants of the graph if they are ints and decide sizes.
        fixed: these, and the lines that need them.
    """

    def __init__(
        self, fn: Callable[..., Any], leaves: list[Any], in_tree: TreeDef, *, writes: bool
    ) -> None:
        self.fn, self.in_tree, self.writes = fn, in_tree, writes
        self.arguments = leaves
        self.argument_names = tuple(leaf_names(fn, in_tree))
        self.slots: list[Place] = []
        self.values: list[Any] = []
        self.shadowed = True
        self.lifts_new, self.lazy_sizes = False, True
        self.plain: TraceError | None = None
        self.memory: dict[str, Any] = {}  # see `Recorder.memory`
        self.restarts = 0
        self.fixable = 0
        self.fixed: dict[int, Loc | None] = {}

    @property
    def leaves(self) -> list[Any]:
        return [*self.arguments, *self.values]

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.argument_names, *(slot.name for slot in self.slots))

    def statics(self) -> list[tuple[Any, str]]:
        """The arguments that are no leaves, and what the user calls them."""
        args, kwargs = self.in_tree.unflatten(self.arguments)
        labels = {id(value): label for value, label in labelled(args, kwargs, self.fn)}
        return [(value, labels.get(id(value), "an argument")) for value in self.in_tree.statics()]

    def fixes(self, rec: Recorder) -> bool:
        """Make constants of the ints that have decided sizes; True if there are new ones.

        Graphs with loops keep them: loops of few rounds would be recorded round by round.
        """
        is_new = not rec.numbers.size_leaves.keys() <= self.fixed.keys()
        if not is_new or any(instr.op in LOOPS for instr in rec.program.body.walk()):
            return False
        self.fixed |= rec.numbers.size_leaves
        return True

    def learns(self, error: Exception, rec: Recorder) -> bool:
        """True if a new trace may end otherwise than with this error."""
        if isinstance(error, TraceError) and (error.of_world or not error.is_undone):
            return False
        if self.fixed:
            self.fixable, self.fixed = 0, {}
            return True
        if rec.gave_sizes and self.lazy_sizes:
            self.lazy_sizes = False
            return True
        if isinstance(error, TraceError) and rec.writes_new and not self.lifts_new:
            self.lifts_new, self.plain = True, error
            return True
        shadows = rec.shadows
        if shadows is not None and not shadows.is_empty and not shadows.has_hidden:
            self.shadowed = False
            self.lifts_new, self.plain = False, None
            self.slots, self.values = [], []
            return True
        return False

    def note(self, stores: Sequence[Store]) -> None:
        """Make slots of the places that are assigned; raises `_Again` if there are new ones."""
        known = {slot.id for slot in self.slots}
        new = [s.place for s in stores if s.place.id not in known]
        found = [place for place in new if _kind_of(place) is not None]
        if found:
            self.restarts += 1
            if self.restarts > _RESTARTS:
                raise TraceError(
                    "each trace assigns attributes or items of other objects than the one before",
                    hint="make the objects outside of the function",
                )
            self.slots += found
            self.values += [place.find() for place in found]
            raise _Again


@dataclass
class _Recorded:
    """What a trace has recorded, as the fields of `Trace`."""

    out_tree: TreeDef
    stores: Sequence[Store] = ()
    writes: tuple[int, ...] = ()
    sources: tuple[Any, ...] | None = None
    containers: Containers | None = None


def _reads(rec: Recorder, call: _Call) -> tuple[StateRead, ...]:
    """What the function has read from outside, by itself and through graphs that have joined."""
    traced = {id(x) for x in call.values} | rec.captures.created.keys()

    def is_plain(array: np.ndarray, itself: bool) -> bool:
        if id(array) in traced:
            return False
        return itself or rec.shadows is None or not rec.shadows.has(array)

    reached = [(call.fn, "self"), *call.statics()]
    found = [*state_reads(rec.scope, rec.watch, reached, is_plain, rec.shadows), *rec.inner_reads]
    for read in found:
        place = read.place
        if place.facet is CONTENTS:
            held = f"what {place.name} holds ({place.holder.nbytes} bytes)"
            rec.remark(f"{held} is compared at each call: Python needs it")
    slots = {slot.id for slot in call.slots}
    return tuple({
        (r.place.id, r.is_absent): r for r in found if r.place.id not in slots
    }.values())  # fmt: skip


def _absences(stores: Sequence[Store]) -> Iterator[StateRead]:
    """That there is nothing yet where the function makes attributes and items of what it reads."""
    new = (s.place for s in stores if s.is_new and s.place.node is None)
    return (StateRead(place, MISSING) for place in new)


def _guards(rec: Recorder, call: _Call) -> list[TraceGuard]:
    labels = tuple(name.replace("'", "", 2) for name in call.names)
    return [TraceGuard(g.expr, g.expected, g.loc, labels) for g in rec.numbers.guards]


def _record(rec: Recorder, call: _Call) -> _Recorded:
    """Run the function on the recorder's inputs and close the graph."""
    fn, count = call.fn, len(call.arguments)
    with recording(rec), effects_refused(rec):
        given = [_argument(rec, call, k, name) for k, name in enumerate(call.names)]
        in_tree = call.in_tree
        shadows = None
        if call.shadowed:
            slots = {slot.id: x for slot, x in zip(call.slots, given[count:], strict=True)}
            shadows = rec.shadows = Shadows(rec, slots)
        called = rec.callee(fn)
        if shadows is not None:
            for static, label in call.statics():
                rec.journal.watch(static, label)
                shadows.of(static, label)
            in_tree = in_tree.with_statics(lambda static: shadows.of(static, "an argument"))
        containers = _containers(rec, call, in_tree)
        if containers is None:
            traced_args, traced_kwargs = unflatten(in_tree, given[:count])
        else:
            traced_args, traced_kwargs = containers.build(given[:count])
        for argument, label in labelled(traced_args, traced_kwargs, fn):
            rec.journal.watch(argument, label)
        rec.journal.watch(fn, "self")
        try:
            with rec.watch.on():
                result = called(*traced_args, **traced_kwargs)
            rec.watch.check_shadows()
        except Exception as error:
            # NumPy hides why it could not store a traced value in an array.
            hidden = error.__cause__ if isinstance(error, (TypeError, ValueError)) else None
            found = rec.refused or hidden  # a refusal that was caught may have led to this error
            if isinstance(found, TraceError):
                raise found from None
            raise
        if rec.source is not None:
            rec.source.check_closed()
        made, outputs = _results(rec, call, result, given, containers)
        if rec.source is not None:
            outputs = rec.source.settled(outputs)
        if rec.refused is not None:
            raise rec.refused
        replaced = set() if containers is None else containers.replaced(given[:count])
        _check_slots(rec, call, replaced)
    rec.captures.check()
    if shadows is not None:
        rec.captures.drop_unused({*outputs, *rec.draws.arrays})
    inputs = (*rec.inputs, *rec.captures.inputs, *(draw.value for draw in rec.draws.made))
    made.writes = tuple(map(inputs.index, rec.written))
    if made.containers is not None and made.sources is not None:
        made.sources = made.containers.numbered(made.sources, behind=len(inputs))
    rec.draws.examples.clear()
    rec.finish(inputs, outputs)
    read_copies(rec)
    check_writes(rec)
    return made


def _containers(rec: Recorder, call: _Call, tree: TreeDef) -> Given | None:
    """The containers of the arguments, if calls may assign to them; None if not."""
    if rec.shadows is None or not call.writes or call.in_tree.is_flat:
        return None
    from ..world.given import Given

    return Given(rec, tree, positional_names(call.fn, len(tree.spec[2][0][2])))


def _results(
    rec: Recorder, call: _Call, result: Any, given: Sequence[Any], containers: Given | None
) -> tuple[_Recorded, tuple[int, ...]]:
    """The results and effects of the function, and the outputs of the graph that have them."""
    stores: list[Store] = []
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
    if not has_effects:
        outputs = output_values(rec, out_leaves)
        for value in outputs:
            rec.check_visible(value)
        return _Recorded(out_tree), outputs
    found = _Recorded(out_tree, stores)
    found.sources, outputs = outputs_of(rec, out_leaves, stores, given, nodes, exits)
    if containers is not None:
        found.containers = containers.containers(stores)
    return found, outputs


def _with_arrays(tree: TreeDef, leaves: Sequence[Any]) -> TreeDef:
    """A structure that tells arrays without axes from scalars."""
    return tree.with_arrays([isinstance(x, np.ndarray) and not x.ndim for x in leaves])


def _check_slots(rec: Recorder, call: _Call, replaced: set[int]) -> None:
    """Raise TraceError if the graph holds for one number in a place that calls assign.

    ``replaced``: the numbers of the leaves that are items of arguments, and are assigned.
    """
    for number in {k for guard in rec.numbers.guards for k in numbers_of(guard.expr)}:
        is_assigned = number >= len(call.arguments) or number in replaced
        if is_assigned and not isinstance(call.leaves[number], bool):
            raise trace_error(f"{call.names[number]} changes from call to call, and decides here")


def _argument(rec: Recorder, call: _Call, number: int, label: str) -> Any:
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


def trace_inline(
    fn: Callable[..., Any], args: tuple, kwargs: dict[str, Any], leaves: Sequence[Any]
) -> Any:
    """Call ``fn`` on traced arguments: its operations join the trace in progress.

    Raises TraceError if one of ``leaves``, those of the arguments, belongs to another trace.
    """
    return recorder_of(leaves).callee(fn)(*args, **kwargs)


creation.enter_substitutes()

__all__ = ["Trace", "is_tracing", "trace", "trace_inline"]
