"""A leaf whose kernels run on the host."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ....dialect.ir.dtypes import dtype_named
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import Dim
from ....lowering.abi import TensorSpec
from ...exchange.host_tensors import note_write
from ...memory.offsets import bytes_of, size_of
from ...memory.output_pool import ALIGN_FROM
from ..conditions.host_reads import combine, elements_of, pointer_to
from ..layout import LAYOUT
from ..leaf_spec import HostKernel, KernelStep
from ..leaf_values import ArrayValue, MadeValue
from ..number_values import NUMBERS
from ..refs import DescribedRef, Ref
from .leaf import LeafWriter
from .leaf_body import KernelOutput
from .lent_memory import lent_memory

if TYPE_CHECKING:
    from ...exchange.host_tensors import TensorClass

# A kernel that reads and writes at least this many bytes runs without the GIL even before its first
# timed run: it very likely takes longer than releasing the GIL does.
RELEASE_BYTES = 1 << 16


class HostLeaf(LeafWriter):
    """Writes a leaf whose kernels run on the host; see `leaf.LeafWriter`."""

    base = ""  # address of the memory for intermediates

    def begin(self) -> None:
        if self.places.where:
            inner = [v for k in self.places.where if isinstance(v := self.leaf.values[k], MadeValue)]
            *self.offsets, total = self.starts(self.places)
            self.base = self.block(total, inner)

    def step(self, index: int, step: KernelStep, timed: str) -> None:
        w, abi = self.w, step.abi
        start = self.start(step, timed)
        sizes = self.leaf.sizes(step)
        output_bytes: list[Dim] = []
        results, voids, pointers = iter(step.results), [], []
        for spec in abi.outputs:
            dims = tuple(size_of(parse_dim(dim), sizes) for dim in spec.dims)
            result = None if spec.kind == "violation" else next(results)
            output = self.output(spec, dims, result)
            pointers.append(output.data)
            output_bytes.append(bytes_of(dtype_named(spec.dtype).itemsize, dims))
            if result is None:
                voids.append(output.data)
            else:
                self.kernel_outputs[result] = output
        workspace = self.workspace(step.workspace)
        data, input_bytes = [], []
        for operand in step.operands:
            value = self.leaf.values[operand]
            if isinstance(value, NUMBERS):
                data.append(self.computed[operand])
                continue
            assert isinstance(value, (ArrayValue, MadeValue))
            input_bytes.append(bytes_of(value.dtype.itemsize, value.sizes))
            if isinstance(value, ArrayValue):
                data.append(elements_of(w, value.ref))
            else:
                data.append(self.number_of(self.kernel_outputs[operand].data))
        data += [self.number_of(pointer) for pointer in pointers]
        data.append(workspace)
        data += [self.size(size) for size in sizes.values()]
        data += [self.stride(step, operand, axis) for operand, axis in abi.strides]
        slots = w.alloca(f"[{len(data)} x i64]")
        for k, word in enumerate(data):
            w.store("i64", word, w.element(slots, k))
        self.launch(index, step, slots, [*output_bytes, *input_bytes, step.workspace])
        repeatable = not self.leaf.donated and not self.leaf.overwrites
        self.overwritten = not (repeatable or self.leaf.targets.keys().isdisjoint(step.results))
        for void in voids:
            self.leave_unless(w.op(f"icmp eq i8 {w.load('i8', void)}, 0"))
        self.stop(index, step, start)
        for result, spec in zip(step.results, abi.results, strict=True):
            if not spec.dims and result in self.leaf.outputs and self.kernel_outputs[result].array is None:
                self.scalar(result)

    def number_of(self, pointer: str) -> str:
        return self.w.op(f"ptrtoint ptr {pointer} to i64")

    def stride(self, step: KernelStep, operand: int, axis: int) -> str:
        value = self.leaf.values[step.operands[operand]]
        assert isinstance(value, (ArrayValue, MadeValue))
        return self.size(value.stride(axis))

    def output(self, spec: TensorSpec, dims: tuple[Dim, ...], result: int | None) -> KernelOutput:
        """Memory for one output; on the stack for rank 0, which is returned as a NumPy scalar."""
        w, dtype = self.w, dtype_named(spec.dtype).numpy
        if result is not None and result in self.leaf.targets:
            return self.target_output(self.leaf.targets[result].ref)
        if self.leaf.tensors is not None and result in self.leaf.outputs and result not in self.leaf.numbers:
            assert result is not None
            return self.tensor_output(result, dtype, self.leaf.tensors)
        if not dims:
            return KernelOutput(w.alloca("[16 x i8]"), None)
        if result is not None and result in self.places.where:
            offset = self.offsets[self.places.where[result]]
            return KernelOutput(w.op(f"getelementptr i8, ptr {self.base}, i64 {offset}"), None)
        nbytes = bytes_of(dtype.itemsize, dims)
        descr = w.object(dtype)
        words = [self.size(dim) for dim in dims]
        if isinstance(nbytes, int):
            small = nbytes < ALIGN_FROM
            array = self.small_array(words, descr) if small else self.big_array(words, descr)
        else:
            array = self.array_of_either_size(nbytes, words, descr)
        self.own(array)
        return KernelOutput(w.field("ptr", array, LAYOUT.data), array)

    def target_output(self, ref: Ref) -> KernelOutput:
        """The memory of an argument, which a kernel overwrites.

        The library of a tensor is told before: a write that is then left to Python is one as well.
        """
        w, target = self.w, pointer_to(self.w, ref)
        w.call("Py_IncRef", "void", f"ptr {target}")
        self.own(target)
        if not isinstance(ref, DescribedRef):
            return KernelOutput(w.field("ptr", target, LAYOUT.data), target)
        if self.leaf.noting is None:
            self.let_go(self.own(self.check(self.python_call(note_write, target))))
        return KernelOutput(w.op(f"inttoptr i64 {elements_of(w, ref)} to ptr"), target)

    def tensor_output(self, result: int, dtype: np.dtype, type_: TensorClass) -> KernelOutput:
        """Memory for an output that is returned as a tensor, and the tensor, whose axes may be in another order."""
        value = self.leaf.values[result]
        assert isinstance(value, MadeValue)
        self.leave_if_endless(value)
        dims = [self.size(dim) for dim in value.sizes]
        steps = accumulate(reversed(dims[1:]), lambda a, b: combine(self.w, "*", a, b), initial="1")
        strides = list(steps)[::-1] if dims else []
        order = self.leaf.turned.get(result, range(len(dims)))
        data, block = lent_memory(self.w, dims, [strides[k] for k in order], [dims[k] for k in order], dtype)
        self.leave_unless(self.w.op(f"icmp ne ptr {block}, null"))
        w, slot = self.w, self.w.alloca("ptr")
        w.store("ptr", "null", slot)
        status = w.call_address(type_.make, "i32", f"ptr {block}", f"ptr {slot}")
        tensor = w.load("ptr", slot)
        refused, on = w.name(), w.name()
        took = w.op(f"icmp eq i32 {status}, 0")
        w.branch(w.op(f"and i1 {took}, {w.op(f'icmp ne ptr {tensor}, null')}"), on, refused)
        w.label(refused)
        w.call("PyErr_Clear", "void")
        w.call("free", "void", f"ptr {block}")  # which the library owns only where it has made a tensor
        self.leave(raises=False)
        w.label(on)
        return KernelOutput(data, self.own(tensor))

    def launch(self, index: int, step: KernelStep, slots: str, moved: list[Dim]) -> None:
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
        w, result = self.w, self.leaf.values[value]
        assert isinstance(result, MadeValue)
        descr = w.object(result.dtype)
        output = self.kernel_outputs[value]
        if value in self.leaf.numbers:
            output.array = self.element(output.data, result.dtype.kind)
            return
        output.array = self.check(w.call("PyArray_Scalar", "ptr", f"ptr {output.data}", f"ptr {descr}", "ptr null"))
        self.own(output.array)

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
