"""A leaf whose kernels run on a device: it calls C functions of the driver and the array library.

Kernels run on the array library's current stream, in memory of the library's allocator. The
allocator reuses memory in stream order, so the leaf can free the intermediates when its function
returns, before the kernels have ended.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import accumulate

import numpy as np

from ....dialect.ir.device import index_of
from ....dialect.ir.dtypes import dtype_named
from ....dialect.ir.size_algebra import parse_dim
from ...cuda.launching.device_plans import MOST_GRID, Action, DeviceKernel, LaunchChoice, Multiply, Start
from ...cuda.nvidia.driver_api import LEGACY_STREAM, DriverError
from ...exchange.dlpack import device_word, row_major
from ...memory.offsets import size_of
from ..conditions.described_reads import BYTES, address, description
from ..conditions.host_reads import combine, is_literal
from ..leaf_spec import KernelStep
from ..leaf_values import ArrayValue
from ..number_values import NUMBERS
from ..refs import DescribedRef
from .leaf import LeafWriter
from .leaf_body import KernelOutput

_BYTE = np.dtype(np.uint8)


class DeviceLeaf(LeafWriter):
    """Writes a leaf whose kernels run on a device; see `leaf.LeafWriter`."""

    base = stream = launched = ""

    def begin(self) -> None:
        w, kernel = self.w, self.leaf.steps[0].kernel
        assert isinstance(kernel, DeviceKernel)
        assert self.leaf.exchange is not None
        self.index, self.exchange = index_of(kernel.device), self.leaf.exchange
        self.direct = kernel.direct
        context = w.alloca("ptr")
        self.check_status(w.call_address(self.direct.current, "i32", f"ptr {context}"))
        current = w.load("i64", context)
        self.leave_unless(w.op(f"icmp eq i64 {current}, {w.number(self.direct.context)}"))
        stream, type_ = w.alloca("ptr"), device_word(kernel.device) & 0xFFFFFFFF
        self.check_status(
            w.call_address(self.exchange.stream, "i32", f"i32 {type_}", f"i32 {self.index}", f"ptr {stream}")
        )
        handle = w.load("i64", stream)
        none = w.op(f"icmp eq i64 {handle}, 0")
        self.stream = w.op(f"select i1 {none}, i64 {LEGACY_STREAM}, i64 {handle}")
        self.launched = w.alloca("i64")
        w.store("i64", 0, self.launched)
        *self.offsets, self.total = self.starts(self.places)
        sizes = dict.fromkeys(step.workspace for step in self.leaf.steps)
        workspace = functools.reduce(functools.partial(combine, w, "max"), map(self.size, sizes))
        if (self.total, workspace) != ("0", "0"):
            self.base = self.new_array((self.plus(self.total, workspace),), _BYTE).data

    def end(self) -> None:
        assert self.cells.launched is not None
        self.w.add_to_cell(self.cells.launched, self.w.load("i64", self.launched))

    def check_status(self, status: str) -> None:
        self.leave_unless(self.w.op(f"icmp eq i32 {status}, 0"), clear=True)

    # --- memory -----------------------------------------------------------------------------

    def new_array(self, words: Sequence[str], dtype: np.dtype) -> KernelOutput:
        """A new contiguous array of the library, owned; if that fails, Python serves the call."""
        w, exchange = self.w, self.exchange
        made_of = [w.object(arg) for arg in exchange.made_of(dtype, self.index)]
        static = [int(word) for word in words if is_literal(word)]
        if len(static) == len(words):
            arguments = [w.object(tuple(static)), w.object(row_major(tuple(static)))]
            array = self.python_call(exchange.empty, *arguments, *made_of, names=exchange.keywords)
        else:
            steps = accumulate(reversed(words[1:]), lambda a, b: w.op(f"mul i64 {a}, {b}"), initial="1")
            arguments = [self.tuple_of(list(words)), self.tuple_of(list(steps)[::-1])]
            array = self.python_call(exchange.empty, *arguments, *made_of, names=exchange.keywords)
            for reference in reversed(arguments):
                self.let_go(reference)
        self.own(self.raise_unless(array, (Exception,)))
        at = w.alloca(f"[{BYTES} x i8]")
        self.check_status(w.call_address(exchange.describe, "i32", f"ptr {array}", f"ptr {at}"))
        return KernelOutput(address(w, at), array)

    def place(self, offset: str) -> str:
        """The address at a byte offset in the block of intermediates."""
        return self.plus(self.base, offset)

    # --- kernels ----------------------------------------------------------------------------

    def step(self, index: int, step: KernelStep, timed: str) -> None:
        start = self.start(step, timed)
        sizes, outputs = self.leaf.sizes(step), []
        for spec, result in zip(step.abi.outputs, step.results, strict=True):
            if result in self.places.where:
                output = KernelOutput(self.place(self.offsets[self.places.where[result]]), None)
            else:
                dims = [self.size(size_of(parse_dim(dim), sizes)) for dim in spec.dims]
                output = self.new_array(dims, dtype_named(spec.dtype).numpy)
            self.kernel_outputs[result] = output
            outputs.append(output.data)
        inputs = [self.operand(operand) for operand in step.operands]
        self.run(step.actions, {"input": inputs, "scalar": inputs, "output": outputs})
        self.stop(index, step, start)

    def operand(self, operand: int) -> str:
        """The number or address that a kernel takes for an operand."""
        value = self.leaf.values[operand]
        if isinstance(value, NUMBERS):
            return self.computed[operand]
        if isinstance(value, ArrayValue):
            assert isinstance(value.ref, DescribedRef)
            return address(self.w, description(self.w, value.ref))
        return self.kernel_outputs[operand].data

    def run(self, actions: Sequence[Action], by_kind: dict[str, list[str]]) -> None:
        w = self.w
        for action in actions:
            if isinstance(action, Start):
                self.launch(action, by_kind)
                continue
            if isinstance(action, Multiply):
                self.multiply(action, by_kind)
                continue
            then, other, on = w.name(), w.name(), w.name()
            w.branch(self.holds(action, by_kind["input"]), then, other)
            for label, side in ((then, action.then), (other, action.otherwise)):
                w.label(label)
                self.run(side, by_kind)
                w.jump(on)
            w.label(on)

    def holds(self, pick: LaunchChoice, inputs: list[str]) -> str:
        w, condition = self.w, "true"
        for kind, subject, number in pick.conditions:
            if kind == "aligned":
                assert isinstance(subject, int)
                rest = w.op(f"urem i64 {inputs[subject]}, {number}")
                one = w.op(f"icmp eq i64 {rest}, 0")
            elif kind == "below":
                one = w.op(f"icmp slt i64 {self.size(subject)}, {number}")
            else:
                rest = w.op(f"srem i64 {self.size(subject)}, {number}")
                one = w.op(f"icmp eq i64 {rest}, 0")
            condition = w.op(f"and i1 {condition}, {one}")
        return condition

    def launch(self, start: Start, by_kind: dict[str, list[str]]) -> None:
        """Start one kernel. The GIL is released: the driver waits if the device's queue is full."""
        w = self.w
        grid = [self.size(size) for size in start.grid]
        on = w.name()
        for size, word in zip(start.grid, grid, strict=True):
            if not isinstance(size, int):
                w.unless(w.op(f"icmp ne i64 {word}, 0"), on)
                self.leave_unless(w.op(f"icmp ule i64 {word}, {MOST_GRID}"))
        words = [self.argument(argument, by_kind) for argument in start.arguments]
        slots, pointers = (w.alloca(f"[{len(words)} x i64]") for _ in range(2))
        for k, word in enumerate(words):
            w.store("i64", word, w.element(slots, k))
            w.store("ptr", w.element(slots, k), w.element(pointers, k))
        numbers = [*grid, *map(self.size, start.block), self.size(start.shared)]
        narrow = [f"i32 {w.op(f'trunc i64 {number} to i32')}" for number in numbers]
        function = w.address(start.function)
        stream = w.op(f"inttoptr i64 {self.stream} to ptr")
        thread = w.call("PyEval_SaveThread", "ptr")
        status = w.call_address(
            self.direct.launch, "i32", f"ptr {function}", *narrow, f"ptr {stream}", f"ptr {pointers}", "ptr null"
        )
        w.call("PyEval_RestoreThread", "void", f"ptr {thread}")
        self.check_status(status)
        w.store("i64", w.op(f"add i64 {w.load('i64', self.launched)}, 1"), self.launched)
        w.jump(on)
        w.label(on)

    def multiply(self, product: Multiply, by_kind: dict[str, list[str]]) -> None:
        """Start a matrix product of cuBLAS, by a Python call."""
        w = self.w
        words = [self.argument(argument, by_kind) for argument in product.operands]
        words = [self.stream, *words, *map(self.size, product.values)]
        numbers = []
        for word in words:
            number = self.check(w.call("PyLong_FromSsize_t", "ptr", f"i64 {word}"))
            numbers.append(self.own(number))
        result = self.raise_unless(self.python_call(product.start, *numbers), left=(MemoryError, DriverError))
        w.call("Py_DecRef", "void", f"ptr {result}")
        for number in reversed(numbers):
            self.let_go(number)

    def argument(self, argument: tuple, by_kind: dict[str, list[str]]) -> str:
        kind, what = argument
        if kind == "size":
            return self.size(what)
        if kind == "workspace":
            return self.place(self.plus(self.total, self.size(what)))
        return by_kind[kind][what]
