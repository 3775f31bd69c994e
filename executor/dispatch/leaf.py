"""The machine code of one specialisation, once its tests have passed."""

from __future__ import annotations

import time
from dataclasses import dataclass

from ...dialect.dtypes import dtype_named
from ...dialect.symbolic import parse_dim
from ...lowering.abi import TensorSpec
from ..arrays import ALIGN_FROM
from .body import Body
from .cells import LeafCells, Settings, Shared
from .layout import C_CONTIGUOUS, LAYOUT
from .memory import lay_out
from .reads import emit_size, emit_test, pointer_to, stride
from .spec import ArrayValue, Leaf, MadeValue, NumberValue, Size, Step, bytes_of, size_of
from .text import Writer

# Bytes read and written from which a kernel is taken to run for longer than the GIL takes to
# release, even if it has never been timed.
RELEASE_BYTES = 1 << 16
_CLOCK = time.CLOCK_MONOTONIC  # what `time.perf_counter` reads


@dataclass
class _Made:
    """An output in the making: its data, and the object where it is an array already."""

    data: str
    array: str | None


class LeafWriter(Body):
    """Writes one leaf; every way out returns from the function or goes to ``miss``."""

    def __init__(
        self, w: Writer, leaf: Leaf, cells: LeafCells, number: int, shared: Shared,
        settings: Settings,
    ) -> None:  # fmt: skip
        super().__init__(w, settings)
        self.leaf, self.cells = leaf, cells
        self.number, self.shared = number, shared
        self.made: dict[int, _Made] = {}
        self.places = lay_out(leaf.steps, leaf.values, leaf.outputs)
        self.base = ""  # of what the kernels hand to each other

    def write(self) -> None:
        w = self.w
        hits = w.op(f"add i64 {w.load('i64', w.place(self.cells.hits))}, 1")
        every = self.settings.time_every
        rest = w.op(f"urem i64 {hits}, {every}")
        timed = w.op(f"icmp eq i64 {rest}, {2 % every}")
        for known in (*self.leaf.values.values(), *self.leaf.checked()):
            if isinstance(known, ArrayValue):
                self.known |= {size: emit_size(w, size) for size in known.sizes}
        for ref, axis in self.leaf.strides():
            self.strides[ref, axis] = stride(w, ref, axis)
        numbers = self.numbers()
        if self.places.offsets:
            inner = [
                v for k in self.places.offsets if isinstance(v := self.leaf.values[k], MadeValue)
            ]
            self.base = self.block(self.places.total, inner)
        for index, step in enumerate(self.leaf.steps):
            self.step(index, step, numbers, timed)
        result = self.results()
        self.remember()
        w.add_to_cell(self.cells.hits)
        self.note_misses()
        w.store("i64", self.number, w.place(self.shared.current))
        self.check_signals(timed, result)
        w.do(f"ret ptr {result}")

    def check_signals(self, timed: str, result: str) -> None:
        """Deliver signals now and then even to a caller that never runs Python between calls."""
        w = self.w
        ask, failed, on = w.name(), w.name(), w.name()
        w.branch(timed, ask, on)
        w.label(ask)
        status = w.call("PyErr_CheckSignals", "i32")
        w.branch(w.op(f"icmp eq i32 {status}, 0"), on, failed)
        w.label(failed)
        self.drop([result])
        w.do("ret ptr null")
        w.label(on)

    # --- one kernel -------------------------------------------------------------------------

    def numbers(self) -> dict[int, str]:
        """Python numbers as the 8 bytes that kernels take; ints too big for that go to Python."""
        w, out = self.w, {}
        used = {operand for step in self.leaf.steps for operand in step.operands}
        for value in sorted(used):
            known = self.leaf.values[value]
            if not isinstance(known, NumberValue):
                continue
            given = f"ptr {pointer_to(w, known.position)}"
            if known.kind is float:
                found = w.call("PyFloat_AsDouble", "double", given)
                out[value] = w.op(f"bitcast double {found} to i64")
            else:
                overflow = w.alloca("i32")
                out[value] = w.call("PyLong_AsLongLongAndOverflow", "i64", given, f"ptr {overflow}")
                self.leave_unless(w.op(f"icmp eq i32 {w.load('i32', overflow)}, 0"))
        return out

    def step(self, index: int, step: Step, numbers: dict[int, str], timed: str) -> None:
        w, abi = self.w, step.abi
        start = self.start(step, timed)
        sizes = self.leaf.sizes(step)
        moved: list[Size] = []  # bytes
        results, voids, pointers = iter(step.results), [], []
        for spec in abi.outputs:
            dims = tuple(size_of(parse_dim(dim), sizes) for dim in spec.dims)
            result = None if spec.kind == "violation" else next(results)
            made = self.output(spec, dims, result)
            pointers.append(made.data)
            moved.append(bytes_of(dtype_named(spec.dtype).itemsize, dims))
            if result is None:
                voids.append(made.data)
            else:
                self.made[result] = made
        scratch = size_of(parse_dim(abi.workspace), sizes)
        workspace = self.workspace(scratch)
        data, taken = [], []
        for operand in step.operands:
            value = self.leaf.values[operand]
            if isinstance(value, NumberValue):
                data.append(numbers[operand])
                continue
            taken.append(bytes_of(value.dtype.itemsize, value.sizes))
            if isinstance(value, ArrayValue):
                data.append(w.field("i64", pointer_to(w, value.ref), LAYOUT.data))
            else:
                data.append(self.number_of(self.made[operand].data))
        data += [self.number_of(pointer) for pointer in pointers]
        data.append(workspace)
        data += [self.size(size) for size in sizes.values()]
        data += [self.element_stride(step, operand, axis) for operand, axis in abi.strides]
        slots = w.alloca(f"[{len(data)} x i64]")
        for k, word in enumerate(data):
            w.store("i64", word, w.element(slots, k))
        self.launch(index, step, slots, [*moved, *taken, scratch])
        self.overwritten = self.leaf.donated > 0 and not self.leaf.targets.keys().isdisjoint(
            step.results
        )
        for void in voids:
            self.leave_unless(w.op(f"icmp eq i8 {w.load('i8', void)}, 0"))
        self.stop(index, step, start)
        for result, spec in zip(
            step.results, [s for s in abi.outputs if s.kind != "violation"], strict=True
        ):
            if not spec.dims and result in self.leaf.outputs:
                self.scalar(result)

    def number_of(self, pointer: str) -> str:
        return self.w.op(f"ptrtoint ptr {pointer} to i64")

    def element_stride(self, step: Step, operand: int, axis: int) -> str:
        value = self.leaf.values[step.operands[operand]]
        if isinstance(value, MadeValue):
            size: Size = 1
            for inner in value.sizes[axis + 1 :]:
                size = inner if size == 1 else ("*", size, inner)
            return self.size(size)
        assert isinstance(value, ArrayValue)
        return self.w.op(f"sdiv i64 {self.strides[value.ref, axis]}, {value.dtype.itemsize}")

    def output(self, spec: TensorSpec, dims: tuple[Size, ...], result: int | None) -> _Made:
        """Memory for one output: on the stack for rank 0, which leaves as a NumPy scalar."""
        w, dtype = self.w, dtype_named(spec.dtype).numpy
        if not dims:
            return _Made(w.alloca("[16 x i8]"), None)
        if result is not None and result in self.leaf.targets:
            given = pointer_to(w, self.leaf.targets[result].ref)
            w.call("Py_IncRef", "void", f"ptr {given}")
            self.owned.append(given)
            return _Made(w.field("ptr", given, LAYOUT.data), given)
        if result is not None and result in self.places.offsets:
            offset = self.size(self.places.offsets[result])
            return _Made(w.op(f"getelementptr i8, ptr {self.base}, i64 {offset}"), None)
        nbytes = bytes_of(dtype.itemsize, dims)
        descr = w.object(dtype)
        words = [self.size(dim) for dim in dims]
        if isinstance(nbytes, int):
            small = nbytes < ALIGN_FROM
            array = self.small_array(words, descr) if small else self.big_array(words, descr)
        else:
            array = self.array_of_either_size(nbytes, words, descr)
        self.owned.append(array)
        return _Made(w.field("ptr", array, LAYOUT.data), array)

    def launch(self, index: int, step: Step, slots: str, moved: list[Size]) -> None:
        """Call the kernel, with the GIL released if that is worth it."""
        w = self.w
        total: Size = sum(size for size in moved if isinstance(size, int))
        for size in moved:
            if not isinstance(size, int):
                total = ("+", total, size)
        kernel = w.address(step.address)
        big = w.op(f"icmp sge i64 {self.size(total)}, {RELEASE_BYTES}")
        slow = w.op(f"icmp ne i64 {w.load('i64', w.place(self.cells.slow[index]))}, 0")
        release, keep, on = w.name(), w.name(), w.name()
        w.branch(w.op(f"or i1 {big}, {slow}"), release, keep)
        w.label(release)
        thread = w.call("PyEval_SaveThread", "ptr")
        w.do(f"call void {kernel}(ptr {slots})")
        w.call("PyEval_RestoreThread", "void", f"ptr {thread}")
        w.jump(on)
        w.label(keep)
        w.do(f"call void {kernel}(ptr {slots})")
        w.jump(on)
        w.label(on)

    # --- time -------------------------------------------------------------------------------

    def start(self, step: Step, timed: str) -> str:
        """Nanoseconds now if this hit is timed, else 0."""
        w = self.w
        before, ask, on = w.name(), w.name(), w.name()
        w.jump(before)
        w.label(before)
        w.branch(timed, ask, on)
        w.label(ask)
        now = self.now()
        w.jump(on)
        w.label(on)
        return w.op(f"phi i64 [ 0, %{before} ], [ {now}, %{ask} ]")

    def stop(self, index: int, step: Step, start: str) -> None:
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
        read = w.alloca("[2 x i64]")
        w.call("clock_gettime", "i32", f"i32 {_CLOCK}", f"ptr {read}")
        seconds = w.op(f"mul i64 {w.load('i64', read)}, 1000000000")
        return w.op(f"add i64 {seconds}, {w.load('i64', w.element(read, 1))}")

    # --- results ----------------------------------------------------------------------------

    def scalar(self, value: int) -> None:
        known = self.leaf.values[value]
        assert isinstance(known, MadeValue)
        descr = self.w.object(known.dtype)
        made = self.made[value]
        made.array = self.check(
            self.w.call("PyArray_Scalar", "ptr", f"ptr {made.data}", f"ptr {descr}", "ptr null")
        )
        self.owned.append(made.array)

    def results(self) -> str:
        """What is returned; every reference that was made is in it or dropped."""
        w, found = self.w, [self.made[o].array or "" for o in self.leaf.outputs]
        if self.leaf.container == "leaf":
            self.drop([r for r in self.owned if r != found[0]])
            return found[0]
        kind = "Tuple" if self.leaf.container == "tuple" else "List"
        holder = self.check(w.call(f"Py{kind}_New", "ptr", f"i64 {len(found)}"))
        for k, reference in enumerate(found):
            if reference in found[:k]:
                w.call("Py_IncRef", "void", f"ptr {reference}")
            w.call(f"Py{kind}_SetItem", "i32", f"ptr {holder}", f"i64 {k}", f"ptr {reference}")
        self.drop([r for r in self.owned if r not in found])
        return holder

    def note_misses(self) -> None:
        """Keep what `explain` says of the guards that were missed on the way to this leaf."""
        w, cells = self.w, self.cells
        if cells.when is None:
            return
        w.store("i64", w.add_to_cell(self.shared.clock), w.place(cells.when))
        for value in self.leaf.checked():
            ref, first, rank = value.ref, cells.missed[value.ref], len(value.sizes)
            w.store("i64", emit_test(w, ("flags", ref, C_CONTIGUOUS)), w.place(first))
            for axis in range(rank):
                w.store("i64", self.size(("dim", ref, axis)), w.place(first + 1 + axis))
                w.store("i64", self.strides[ref, axis], w.place(first + 1 + rank + axis))

    def remember(self) -> None:
        """Tell `last_executed_graph`, unless it knows that this thread's last plan was this one."""
        w = self.w
        recent = w.address(self.settings.recent)
        me = w.op(f"ptrtoint ptr {w.place(self.cells.hits)} to i64")
        thread = w.call("PyThreadState_GetID", "i64", f"ptr {w.call('PyThreadState_Get', 'ptr')}")
        places = [w.element(recent, k) for k in range(3)]
        known = [w.load("i64", place) for place in places]
        valid = w.op(f"icmp ne i64 {known[0]}, 0")
        same = w.op(f"and i1 {w.op(f'icmp eq i64 {known[1]}, {thread}')}, {valid}")
        ask, on = w.name(), w.name()
        mine = w.op(f"icmp eq i64 {known[2]}, {me}")
        w.branch(w.op(f"and i1 {same}, {mine}"), on, ask)
        w.label(ask)
        status = w.call(
            "PyObject_SetAttr", "i32", f"ptr {w.object(self.settings.last)}",
            f"ptr {w.object('plan')}", f"ptr {w.object(self.leaf.remembered)}",
        )  # fmt: skip
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
