"""Emits the code of one specialisation that runs after its tests have passed."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ....dialect.ir.device import HOST
from ....dialect.ir.symbolic import Dimension, Sym, symbol
from ....dialect.trees.containers import CONTAINERS, Container
from ....dialect.trees.pytree import LEAF, static_of
from ...memory.offsets import Moment, Placement, bytes_of, lay_out
from ..conditions.argument_reads import pointer as argument
from ..conditions.host_reads import emit_leaf, emit_test, pointer_to, stride
from ..counter_table import LeafCells, Settings, Shared
from ..host_calls import is_from_host, reads_host
from ..leaf_spec import KernelStep, Leaf, Noting
from ..leaf_values import ArrayValue, MadeValue, Value
from ..llvm_writer import Writer
from ..number_ops import NumberWriter
from ..number_values import NUMBERS, Number, NumberValue, SizeNumber
from ..refs import Inside, OnTape, Stride, position_of
from .host_steps import HostSteps
from .leaf_body import KernelOutput

_CLOCK = time.CLOCK_MONOTONIC  # what `time.perf_counter` reads
_BY_C = ("tuple", "list", "dict")  # the containers that C functions make


def _made(container: Container, meta: Any, *items: Any) -> Any:
    return container.made(meta, items)


def places_of(steps: Sequence[KernelStep], values: Mapping[int, Value], lasting: Sequence[int]) -> Placement:
    """Places for what a kernel makes that only kernels see: such arrays need no objects."""
    results = {result: values[result] for step in steps for result in step.results if result not in lasting}
    nbytes = {
        result: bytes_of(value.dtype.itemsize, value.sizes)
        for result, value in results.items()
        # The host's of rank 0 lie on the stack.
        if isinstance(value, MadeValue) and (value.sizes or value.device != HOST)
    }
    return lay_out([Moment(step.results, {*step.results, *step.operands}) for step in steps], nbytes)


class LeafWriter(HostSteps):
    """Writes the code of one leaf; each exit returns from the function or jumps to ``miss``.

    The subclasses in `host_leaf` and `device_leaf` write the parts that depend on the processor.
    """

    def __init__(
        self, w: Writer, leaf: Leaf, cells: LeafCells, number: int, shared: Shared, settings: Settings
    ) -> None:
        super().__init__(w, settings)
        self.leaf, self.cells = leaf, cells
        self.number, self.shared = number, shared
        self.kernel_outputs: dict[int, KernelOutput] = {}
        self.computed: dict[int, str] = {}
        lasting = [*leaf.outputs, *leaf.targets, *leaf.host_operands]
        self.places = places_of(leaf.steps, leaf.values, lasting)

    def write(self) -> None:
        w = self.w
        hits = w.op(f"add i64 {w.load('i64', w.place(self.cells.hits))}, 1")
        self.spare(hits)
        every = self.settings.time_every
        rest = w.op(f"urem i64 {hits}, {every}")
        timed = w.op(f"icmp eq i64 {rest}, {2 % every}")
        for value in (*self.leaf.values.values(), *self.leaf.checked()):
            if isinstance(value, ArrayValue) and not is_from_host(value.ref):
                leaves = [s for size in value.sizes if isinstance(size, Sym) for s in size.symbols]
                self.known |= {leaf: emit_leaf(w, leaf) for leaf in leaves}
        for ref, axis in self.leaf.strides():
            if not is_from_host(ref):
                self.strides[ref, axis] = stride(w, ref, axis)
        for value in self.leaf.values.values():
            if isinstance(value, ArrayValue):
                self.known |= dict(self.elements(value))
        self.number_writer = NumberWriter(w, self._number, self.leave_unless)
        self.compute(of_host=False)
        self.keep_items()
        self.begin()
        for index, step in enumerate(self.leaf.steps):
            self.between(index)
            self.step(index, step, timed)
        self.between(len(self.leaf.steps))
        self.remember()
        self.end()
        w.add_to_cell(self.cells.hits)
        self.note_misses()
        w.store("i64", self.number, w.place(self.shared.current))
        self.counted = True
        result = self.results()
        self.check_signals(timed, result)
        w.do(f"ret ptr {result}")

    def elements(self, value: ArrayValue) -> Iterator[tuple[Stride, str]]:
        """The strides of an array that have been read so far, in elements."""
        for axis in range(len(value.sizes)):
            nbytes = self.strides.get((value.ref, axis))
            if nbytes is not None:
                itemsize = value.dtype.itemsize
                yield Stride(value.ref, axis, itemsize), self.w.op(f"sdiv i64 {nbytes}, {itemsize}")

    def keep_items(self) -> None:
        """Own arrays inside of containers and of the tape's: later code might remove them there."""
        w = self.w
        for place in w.kept.values():  # references that tests took, for this leaf or for another
            self.own(w.load("ptr", place))
            w.store("ptr", "null", place)
        values = (*self.leaf.values.values(), *self.leaf.checked())
        lent: list[Any] = [position_of(v.ref) for v in values if isinstance(v, ArrayValue)]
        lent += self.leaf.lent
        for position in dict.fromkeys(lent):
            if isinstance(position, (Inside, OnTape)):
                item = argument(w, position)
                w.call("Py_IncRef", "void", f"ptr {item}")
                self.own(item)

    def check_signals(self, timed: str, result: str) -> None:
        """Handle pending signals at each timed hit: the caller may never run Python in between."""
        w = self.w
        ask, failed, on = w.name(), w.name(), w.name()
        w.branch(timed, ask, on)
        w.label(ask)
        status = w.call("PyErr_CheckSignals", "i32")
        w.branch(w.op(f"icmp eq i32 {status}, 0"), on, failed)
        w.label(failed)
        self.set_error_aside()
        self.drop([result])
        self.end_in_error()
        w.label(on)

    # --- arguments --------------------------------------------------------------------------

    def compute(self, *, of_host: bool) -> None:
        """Write code for Python numbers, as the 8 bytes that kernels take; for a larger int, Python takes over.

        ``of_host``: those that follow from what functions have given, as draws do; else all others.
        """
        operands = {operand for step in self.leaf.steps for operand in step.operands}
        for value in sorted(operands.union(self.leaf.outputs, self.leaf.host_operands)):
            number = self.leaf.values[value]
            if isinstance(number, NUMBERS) and value not in self.computed and reads_host(number) == of_host:
                self.computed[value] = self.number_writer.word(number)

    def _number(self, value: NumberValue | SizeNumber) -> str:
        """A number among the arguments, or a size, as a double or an i64."""
        w = self.w
        if isinstance(value, SizeNumber):
            return self.size(value.size)
        pointer = f"ptr {pointer_to(w, value.position)}"
        if value.kind is float:
            return w.call("PyFloat_AsDouble", "double", pointer)
        overflow = w.alloca("i32")
        word = w.call("PyLong_AsLongLongAndOverflow", "i64", pointer, f"ptr {overflow}")
        self.leave_unless(w.op(f"icmp eq i32 {w.load('i32', overflow)}, 0"))
        return word

    # --- parts that depend on the processor -------------------------------------------------

    def begin(self) -> None:
        """Write the code before the first kernel call."""

    def step(self, index: int, step: KernelStep, timed: str) -> None:
        """Write one kernel call."""
        raise NotImplementedError

    def end(self) -> None:
        """Write the code after the last kernel call, where the call can no longer be repeated."""

    # --- time -------------------------------------------------------------------------------

    def start(self, step: KernelStep, timed: str) -> str:
        """The present time in nanoseconds if this hit is timed, else 0."""
        w = self.w
        ask, on, before = w.name(), w.name(), w.here()
        w.branch(timed, ask, on)
        w.label(ask)
        now = self.now()
        w.jump(on)
        w.label(on)
        return w.op(f"phi i64 [ 0, %{before} ], [ {now}, %{ask} ]")

    def stop(self, index: int, step: KernelStep, start: str) -> None:
        w = self.w
        ask, on = w.name(), w.name()
        w.branch(w.op(f"icmp ne i64 {start}, 0"), ask, on)
        w.label(ask)
        spent = w.op(f"sub i64 {self.now()}, {start}")
        if step.guard is not None:
            w.add_to_cell(self.cells.nanoseconds[step.guard], spent)
            first = all(s.guard != step.guard for s in self.leaf.steps[:index])
            if first:
                w.add_to_cell(self.cells.timed[step.guard])
        slow = w.op(f"icmp sge i64 {spent}, {self.settings.release_from}")
        w.store("i64", w.op(f"zext i1 {slow} to i64"), w.place(self.cells.slow[index]))
        w.jump(on)
        w.label(on)

    def now(self) -> str:
        w = self.w
        timespec = w.alloca("[2 x i64]")
        w.call("clock_gettime", "i32", f"i32 {_CLOCK}", f"ptr {timespec}")
        seconds = w.op(f"mul i64 {w.load('i64', timespec)}, 1000000000")
        return w.op(f"add i64 {seconds}, {w.load('i64', w.element(timespec, 1))}")

    # --- results ----------------------------------------------------------------------------

    def results(self) -> str:
        """The object to return; it takes over the references to the results, others are dropped."""
        objects = [self.turned(o) for o in self.leaf.outputs]
        if self.leaf.noting is not None:
            objects = self.noted(self.leaf.noting, objects)
        if self.leaf.structure == LEAF:
            self.drop([r for r in self.owned if r != objects[0]])
            return objects[0]
        built = self.built(self.leaf.structure, iter(objects))
        self.drop(self.owned)
        return built

    def turned(self, output: int) -> str:
        """An array that a kernel has made, a view of it in the wanted order, or a number."""
        number = self.leaf.values[output]
        if isinstance(number, NUMBERS):
            return self.number_object(number, self.computed[output])
        w, array = self.w, self.kernel_outputs[output].array or ""
        order = self.leaf.turned.get(output)
        if order is None or self.leaf.tensors is not None:
            return array
        axes, dims = w.alloca(f"[{len(order)} x i64]"), w.alloca("{ ptr, i64 }")
        for k, axis in enumerate(order):
            w.store("i64", str(axis), w.element(axes, k))
        w.store("ptr", axes, dims)
        w.store("i64", str(len(order)), w.element(dims, 1))  # the length is an i32: little-endian
        view = w.call("PyArray_Transpose", "ptr", f"ptr {array}", f"ptr {dims}")
        return self.own(self.check(view))

    def number_object(self, value: Number, word: str) -> str:
        """A Python number as an object, of which the leaf owns a reference."""
        w = self.w
        if isinstance(value, NumberValue):
            pointer = pointer_to(w, value.position)
            w.call("Py_IncRef", "void", f"ptr {pointer}")
            return self.own(pointer)
        return self.python_number(value.kind is float, word)

    def python_number(self, is_float: bool, word: str) -> str:
        """The object of a double or an i64, of which these are the bits."""
        w = self.w
        if not is_float:
            return self.own(self.check(w.call("PyLong_FromLongLong", "ptr", f"i64 {word}")))
        number = w.op(f"bitcast i64 {word} to double")
        return self.own(self.check(w.call("PyFloat_FromDouble", "ptr", f"double {number}")))

    def noted(self, noting: Noting, arrays: list[str]) -> list[str]:
        """The objects that `Noting.function` makes of the results of kernels; the leaf owns them."""
        w = self.w
        result = self.own(self.check(self.python_call(noting.function, *self.objects_at(noting.arguments), *arrays)))
        if noting.count == 1:
            return [result] * len(noting.chosen)
        return [self.check(w.call("PyTuple_GetItem", "ptr", f"ptr {result}", f"i64 {k}")) for k in noting.chosen]

    def built(self, spec: tuple, arrays: Iterator[str]) -> str:
        """A new reference to an object of this structure; the leaf still owns the arrays."""
        w = self.w
        if spec[0] in ("leaf", "static"):
            leaf = next(arrays) if spec[0] == "leaf" else w.object(static_of(spec))
            w.call("Py_IncRef", "void", f"ptr {leaf}")
            return leaf
        kind, meta, items = spec
        # Items come first: making them may run Python code, which must not see a partly filled
        # container.
        values = [self.owned_item(inner, arrays) for inner in items]
        if kind not in _BY_C:
            make = meta if kind == "namedtuple" else functools.partial(_made, CONTAINERS[kind], meta)
            return self.made_by(make, values)
        size = [] if kind == "dict" else [f"i64 {len(items)}"]
        holder = self.check(w.call(f"Py{kind.capitalize()}_New", "ptr", *size))
        container = f"ptr {holder}"
        if kind == "dict":
            self.own(holder)
            for key, item in zip(meta, values, strict=True):
                pair = f"ptr {w.object(key)}", f"ptr {item}"
                status = w.call("PyDict_SetItem", "i32", container, *pair)
                self.demand(w.op(f"icmp eq i32 {status}, 0"))
            self.disown(holder)
        else:
            for k, item in enumerate(values):
                w.call(f"Py{kind.capitalize()}_SetItem", "i32", container, f"i64 {k}", f"ptr {item}")
        for item in reversed(values):
            self.disown(item)
            if kind == "dict":  # a dict takes references of its own
                self.drop([item])
        return holder

    def owned_item(self, spec: tuple, arrays: Iterator[str]) -> str:
        return self.own(self.built(spec, arrays))

    def made_by(self, kind: Callable[..., Any], items: list[str]) -> str:
        """The object that a function makes of owned items; the items are dropped afterwards."""
        result = self.check(self.python_call(kind, *items))
        for item in reversed(items):
            self.let_go(item)
        return result

    def note_misses(self) -> None:
        """Store flags, sizes and strides of the arrays whose outer guards this call has missed.

        `explain` reports them as the latest miss.
        """
        w, cells = self.w, self.cells
        if cells.when is None:
            return
        w.store("i64", w.add_to_cell(self.shared.clock), w.place(cells.when))
        for value in self.leaf.checked():
            ref, first, rank = value.ref, cells.missed[value.ref], len(value.sizes)
            w.store("i64", emit_test(w, value.contiguous), w.place(first))
            if value.tracked:
                noted = emit_test(w, ("noted", position_of(ref)))
                w.store("i64", noted, w.place(first + 1))
            for axis in range(rank):
                step = stride(w, ref, axis) if is_from_host(ref) else self.strides[ref, axis]
                w.store("i64", self.size(symbol(Dimension(ref, axis))), w.place(first + 2 + axis))
                w.store("i64", step, w.place(first + 2 + rank + axis))

    def remember(self) -> None:
        """Set `last_executed.LAST.plan`, unless `RECENT` says that it is this plan already."""
        w = self.w
        recent = w.address(self.settings.recent)
        me = w.op(f"ptrtoint ptr {w.place(self.cells.hits)} to i64")
        thread = w.call("PyThreadState_GetID", "i64", f"ptr {w.call('PyThreadState_Get', 'ptr')}")
        places = [w.element(recent, k) for k in range(3)]
        words = [w.load("i64", place) for place in places]
        valid = w.op(f"icmp ne i64 {words[0]}, 0")
        same = w.op(f"and i1 {w.op(f'icmp eq i64 {words[1]}, {thread}')}, {valid}")
        ask, on = w.name(), w.name()
        mine = w.op(f"icmp eq i64 {words[2]}, {me}")
        w.branch(w.op(f"and i1 {same}, {mine}"), on, ask)
        w.label(ask)
        status = w.call(
            "PyObject_SetAttr",
            "i32",
            f"ptr {w.object(self.settings.last)}",
            f"ptr {w.object('plan')}",
            f"ptr {w.object(self.leaf.remembered)}",
        )
        failed, write = w.name(), w.name()
        w.branch(w.op(f"icmp eq i32 {status}, 0"), write, failed)
        w.label(failed)
        w.call("PyErr_Clear", "void")
        w.jump(on)
        w.label(write)
        for place, word in zip(places, ("1", thread, me), strict=True):
            w.store("i64", word, place)
        w.jump(on)
        w.label(on)
