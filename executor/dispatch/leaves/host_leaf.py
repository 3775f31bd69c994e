"""A leaf whose kernels run on the host."""

from __future__ import annotations

from functools import reduce

from ....dialect.ir.dtypes import dtype_named
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import Dim
from ....lowering.abi import TensorSpec
from ...memory.output_pool import ALIGN_FROM
from ...memory.placement import bytes_of, size_of
from ..conditions.host_reads import elements_of, pointer_to
from ..layout import LAYOUT
from ..leaf_spec import ArrayValue, HostKernel, MadeValue, Step
from ..number_values import NUMBERS
from .body import Made
from .leaf import LeafWriter

# A kernel that reads and writes at least this many bytes runs without the GIL even before its first
# timed run: it very likely takes longer than releasing the GIL does.
RELEASE_BYTES = 1 << 16


class HostLeaf(LeafWriter):
    """Writes a leaf whose kernels run on the host; see `leaf.LeafWriter`."""

    base = ""  # address of the memory for intermediates

    def begin(self) -> None:
        if self.places.where:
            inner = [
                v for k in self.places.where if isinstance(v := self.leaf.values[k], MadeValue)
            ]
            *self.offsets, total = self.starts(self.places)
            self.base = self.block(total, inner)

    def step(self, index: int, step: Step, numbers: dict[int, str], timed: str) -> None:
        w, abi = self.w, step.abi
        start = self.start(step, timed)
        sizes = self.leaf.sizes(step)
        moved: list[Dim] = []  # bytes
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
        workspace = self.workspace(step.workspace)
        data, taken = [], []
        for operand in step.operands:
            value = self.leaf.values[operand]
            if isinstance(value, NUMBERS):
                data.append(numbers[operand])
                continue
            assert isinstance(value, (ArrayValue, MadeValue))
            taken.append(bytes_of(value.dtype.itemsize, value.sizes))
            if isinstance(value, ArrayValue):
                data.append(elements_of(w, value.ref))
            else:
                data.append(self.number_of(self.made[operand].data))
        data += [self.number_of(pointer) for pointer in pointers]
        data.append(workspace)
        data += [self.size(size) for size in sizes.values()]
        data += [self.stride(step, operand, axis) for operand, axis in abi.strides]
        slots = w.alloca(f"[{len(data)} x i64]")
        for k, word in enumerate(data):
            w.store("i64", word, w.element(slots, k))
        self.launch(index, step, slots, [*moved, *taken, step.workspace])
        repeatable = not self.leaf.donated and not self.leaf.overwrites
        self.overwritten = not (repeatable or self.leaf.targets.keys().isdisjoint(step.results))
        for void in voids:
            self.leave_unless(w.op(f"icmp eq i8 {w.load('i8', void)}, 0"))
        self.stop(index, step, start)
        for result, spec in zip(step.results, abi.results, strict=True):
            if not spec.dims and result in self.leaf.outputs:
                self.scalar(result)

    def number_of(self, pointer: str) -> str:
        return self.w.op(f"ptrtoint ptr {pointer} to i64")

    def stride(self, step: Step, operand: int, axis: int) -> str:
        value = self.leaf.values[step.operands[operand]]
        assert isinstance(value, (ArrayValue, MadeValue))
        return self.size(value.stride(axis))

    def output(self, spec: TensorSpec, dims: tuple[Dim, ...], result: int | None) -> Made:
        """Memory for one output; on the stack for rank 0, which is returned as a NumPy scalar."""
        w, dtype = self.w, dtype_named(spec.dtype).numpy
        if not dims:
            return Made(w.alloca("[16 x i8]"), None)
        if result is not None and result in self.leaf.targets:
            given = pointer_to(w, self.leaf.targets[result].ref)
            w.call("Py_IncRef", "void", f"ptr {given}")
            self.own(given)
            return Made(w.field("ptr", given, LAYOUT.data), given)
        if result is not None and result in self.places.where:
            offset = self.offsets[self.places.where[result]]
            return Made(w.op(f"getelementptr i8, ptr {self.base}, i64 {offset}"), None)
        nbytes = bytes_of(dtype.itemsize, dims)
        descr = w.object(dtype)
        words = [self.size(dim) for dim in dims]
        if isinstance(nbytes, int):
            small = nbytes < ALIGN_FROM
            array = self.small_array(words, descr) if small else self.big_array(words, descr)
        else:
            array = self.array_of_either_size(nbytes, words, descr)
        self.own(array)
        return Made(w.field("ptr", array, LAYOUT.data), array)

    def launch(self, index: int, step: Step, slots: str, moved: list[Dim]) -> None:
        """Call the kernel; the GIL is released for kernels that are likely to run long."""
        w = self.w
        total = reduce(self.plus, map(self.size, moved), "0")
        assert isinstance(step.kernel, HostKernel)
        kernel = w.address(step.kernel.address)
        big = w.op(f"icmp sge i64 {total}, {RELEASE_BYTES}")
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

    def scalar(self, value: int) -> None:
        known = self.leaf.values[value]
        assert isinstance(known, MadeValue)
        descr = self.w.object(known.dtype)
        made = self.made[value]
        if value in self.leaf.numbers:
            made.array = self.element(made.data, known.dtype.kind)
            return
        made.array = self.check(
            self.w.call("PyArray_Scalar", "ptr", f"ptr {made.data}", f"ptr {descr}", "ptr null")
        )
        self.own(made.array)

    def element(self, data: str, kind: str) -> str:
        """The element at an address, a bool, an i64, a double or two, as Python's number."""
        w = self.w
        if kind == "c":
            parts = (f"double {w.load('double', w.element(data, k))}" for k in range(2))
            return self.own(self.check(w.call("PyComplex_FromDoubles", "ptr", *parts)))
        if kind == "b":
            word = w.op(f"zext i8 {w.load('i8', data)} to i64")
            return self.own(self.check(w.call("PyBool_FromLong", "ptr", f"i64 {word}")))
        return self.python_number(kind == "f", w.load("i64", data))
