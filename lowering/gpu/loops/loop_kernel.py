"""One kernel of a function with loops: its parameters, and the arrays that it accesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Union

from mlir import ir

from ....dialect.dataclass import dataclass
from ....dialect.errors import InternalError, LoweringError
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import Dim, symbol
from ....dialect.mlir.rewrite import walk
from ...abi import CONTIGUOUS
from ...buffers.sharing.linear import constant_of
from ...buffers.signature import Signature
from ...buffers.temporaries import ALIGNMENT, LOOP, dim_of
from ...emit.loop_ops import Sizes
from ...schedule import affine as ix
from ...schedule.memory import element_bytes
from ..kernels.ops import PRIVATE, Address, GpuOps
from ..launch_plan import Argument, Launch
from ..void_runs import FLAG


class LoopMemory:
    """The arrays of a bufferised function.

    Attributes:
        signature: the function's.
        symbols: values that are sizes of its arguments, and what these are.
        flag: its output that tells of a void run; None = no run is void.
        workspace: bytes of workspace, as bufferisation has planned it and for small arrays that
            more than one kernel accesses.
    """

    def __init__(self, func: ir.Operation, signature: Signature, workspace: Dim) -> None:
        self.signature = signature
        arguments = list(func.regions[0].blocks[0].arguments)
        specs = [*signature.inputs, *signature.outputs]
        self._specs = dict(zip(arguments, specs, strict=False))
        self._numbers = {value: number for number, value in enumerate(arguments[: len(specs)])}
        names = map(symbol, signature.symbols)
        self.symbols: dict[ir.Value, Dim] = dict(zip(arguments[len(specs) + 1 :], names, strict=True))
        self.flag = signature.flag_of(func)
        self.workspace = workspace
        self._placed: dict[ir.Value, Dim] = {}
        for op in walk(func):
            if op.name == "memref.dim" and op.operands[0] in self._specs:
                axis = constant_of(op.operands[1])
                if axis is not None:
                    self.symbols[op.results[0]] = self.dims(op.operands[0])[axis]
            elif op.name == "memref.alloca" and LOOP not in op.attributes:
                self._placed[op.results[0]] = self._reserve(op.results[0], 1)

    def _reserve(self, array: ir.Value, times: Dim) -> Dim:
        """Find room for so many copies of an array; returns its place in the workspace."""
        place = self.workspace
        bytes_ = ix.product(self.dims(array)) * element_bytes(ir.MemRefType(array.type).element_type)
        self.workspace = place + ix.ceil_div(bytes_ * times, ALIGNMENT) * ALIGNMENT
        return place

    def copies(self, array: ir.Value, threads: Dim) -> Argument:
        """The argument by which a kernel gets memory for a copy of an array for each of so many threads."""
        return ("workspace", str(self._reserve(array, threads)), str(_stored(array)))

    def argument(self, array: ir.Value) -> Argument:
        """The argument by which a kernel gets an array that all of its threads share. Raises LoweringError."""
        if array in self._numbers:
            number = self._numbers[array]
            inputs = len(self.signature.inputs)
            if number >= inputs:
                return ("output", number - inputs)
            return ("scalar" if self._specs[array].kind == "scalar" else "input", number)
        if array in self._placed:
            offset: Dim | None = self._placed[array]
        elif isinstance(array, ir.BlockArgument) or array.owner.name != "memref.view":
            raise LoweringError("a round takes one array or another")
        else:
            offset = self.dim(array.owner.operands[1])
        if offset is None:
            raise InternalError("an array is at no known place of the workspace")
        return ("workspace", str(offset), str(_stored(array)))

    def is_scalar(self, array: ir.Value) -> bool:
        """True if an array is a Python number."""
        return array in self._specs and self._specs[array].kind == "scalar"

    def dim(self, value: ir.Value) -> Dim | None:
        """A size as an expression over the function's sizes; None = it is not made of these."""
        return dim_of(value, self.symbols)

    def dims(self, array: ir.Value) -> list[Dim]:
        """The sizes of an array that is no view of another one."""
        if array in self._specs:
            return [parse_dim(text) for text in self._specs[array].dims]
        type_ = ir.MemRefType(array.type)
        operands = iter(() if type_.has_static_shape else list(array.owner.operands)[2:])
        dims = []
        for size in type_.shape:
            dim = self.dim(next(operands)) if size == ir.ShapedType.get_dynamic_size() else size
            if dim is None:
                raise InternalError("an array has no known size")
            dims.append(dim)
        return dims

    def strides(self, array: ir.Value) -> list[Dim | None]:
        """Steps in elements along each axis; None = the caller passes the step."""
        spec = self._specs.get(array)
        if spec is None or spec.strides == CONTIGUOUS:
            return list(ix.row_major(self.dims(array)))
        return [None if text == "?" else parse_dim(text) for text in spec.strides]


@dataclass(frozen=True)
class KernelArray:
    """An array as a kernel sees it.

    Attributes:
        memory: elements, or the parts of complex ones.
        strides: steps along its axes, in elements.
        start: the place of the first element; None = it is the first one in memory.
    """

    memory: ir.Value
    strides: Sequence[ir.Value]
    start: ir.Value | None = None


class PairInMemory(NamedTuple):
    """The parts of a complex number, which lie side by side in memory."""

    real: ir.Value
    imag: ir.Value


Element = Union[ir.Value, PairInMemory]


class LoopKernel:
    """A ``gpu.func`` of a function with loops, under construction.

    Attributes:
        body: the block of what the kernel does.
        may_end: a thread may find that the run is void.
    """

    def __init__(self, block: ir.Block, memory: LoopMemory, name: str, is_first: bool) -> None:
        self.memory, self.name, self.may_end = memory, name, False
        self.ops = GpuOps(narrow=False)
        self.ops.word = self.ops.index
        self._types: list[ir.Type] = []
        self._given: list[Argument] = []
        self._arrays: dict[ir.Value, KernelArray] = {}
        self._scalars: dict[ir.Value, ir.Value] = {}
        with ir.InsertionPoint(block):
            self.function = ir.Operation.create(
                "gpu.func", regions=1, attributes={"sym_name": ir.StringAttr.get(name), "gpu.kernel": ir.UnitAttr.get()}
            )
        self._entry = self.function.regions[0].blocks.append()
        with ir.InsertionPoint(self._entry):
            self._mark = self.ops.constant(0).owner.operation
        names = {text: self._word(("size", text)) for text in memory.signature.symbols}
        self._sizes = Sizes(self.ops, names)
        self.body = self._entry
        if memory.flag is not None:
            self._begin(memory.flag, is_first)

    def _begin(self, flag: ir.Value, is_first: bool) -> None:
        """Clear the flag in the first step; in others, do nothing if an earlier one has set it."""
        ops = self.ops
        with ir.InsertionPoint(self._entry):
            zero = ops.constant(0, ops.i8)
            if is_first:
                self.store(zero, flag, [])
                return
            is_valid = ops.equal(self.load(flag, []), zero)
            guard = ir.Operation.create("scf.if", operands=[is_valid], regions=2)
        self.body = guard.regions[0].blocks.append()

    # --- parameters ------------------------------------------------------------------------------

    def _parameter(self, type_: ir.Type, argument: Argument) -> ir.Value:
        self._types.append(type_)
        self._given.append(argument)
        return self._entry.add_argument(type_, ir.Location.unknown())

    def _word(self, argument: Argument) -> ir.Value:
        value = self._parameter(self.ops.i64, argument)
        with ir.InsertionPoint(self._mark):
            return self.ops.cast_index(value, self.ops.index)

    def size(self, dim: Dim) -> ir.Value:
        """A size as an ``index``."""
        return self._sizes.value(dim, ir.InsertionPoint(self._mark))

    def _array(self, base: ir.Value) -> KernelArray:
        if base not in self._arrays:
            memory, argument = self.memory, self.memory.argument(base)
            type_ = ir.Type.parse(f"memref<?x{_stored(base)}>")
            pointer = self._parameter(type_, argument)
            strides = [
                self._word(("stride", argument[1], axis)) if dim is None else self.size(dim)
                for axis, dim in enumerate(memory.strides(base))
            ]
            self._arrays[base] = KernelArray(pointer, strides)
        return self._arrays[base]

    def own(self, base: ir.Value) -> None:
        """Let each thread have memory of its own in the place of a small array."""
        if base in self._arrays:
            return
        type_ = ir.MemRefType(base.type)
        count = math.prod(type_.shape) * (2 if _is_complex(base) else 1)
        with ir.InsertionPoint(self._mark):
            memory = self.ops.create(
                "memref.alloca",
                ir.Type.parse(f"memref<{count}x{_stored(base)}, {PRIVATE}>"),
                operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 0]),
            )
        strides = [self.size(step) for step in ix.row_major(type_.shape)]
        self._arrays[base] = KernelArray(memory, strides)

    def share(self, base: ir.Value, threads: Dim, number: ir.Value, count: ir.Value) -> None:
        """Let each thread have memory of its own in the place of a large array.

        Those of neighbours lie side by side, element by element.

        Args:
            threads: how many threads need one.
            number, count: this thread's number, and ``threads`` as a value.
        """
        type_ = ir.Type.parse(f"memref<?x{_stored(base)}>")
        pointer = self._parameter(type_, self.memory.copies(base, threads))
        steps = [self.ops.mul(self.size(dim), count) for dim in ix.row_major(self.memory.dims(base))]
        self._arrays[base] = KernelArray(pointer, steps, number)

    # --- elements --------------------------------------------------------------------------------

    def load(self, base: ir.Value, indices: Sequence[ir.Value]) -> Element:
        """An element of an array of the function."""
        if self.memory.is_scalar(base):
            return self._scalar(base)
        part = _stored(base)
        parts = [self.ops.load(place, part) for place in self._places(base, indices)]
        return PairInMemory(*parts) if _is_complex(base) else parts[0]

    def store(self, value: Element, base: ir.Value, indices: Sequence[ir.Value]) -> None:
        """Write an element of an array of the function."""
        parts = value if isinstance(value, PairInMemory) else (value,)
        for part, place in zip(parts, self._places(base, indices), strict=True):
            self.ops.store(part, place)

    def _scalar(self, base: ir.Value) -> ir.Value:
        """A Python number, which is a parameter itself."""
        if base not in self._scalars:
            ops, element = self.ops, ir.MemRefType(base.type).element_type
            wide = ops.i64 if isinstance(element, ir.IntegerType) else ops.f64
            value = self._parameter(wide, self.memory.argument(base))
            if element != wide and wide == ops.f64:
                raise LoweringError(f"a Python number stored as {element}")
            with ir.InsertionPoint(self._mark):
                self._scalars[base] = value if element == wide else ops.create("arith.trunci", element, value)
        return self._scalars[base]

    def _places(self, base: ir.Value, indices: Sequence[ir.Value]) -> list[Address]:
        """The places of the parts of an element."""
        ops, array = self.ops, self._array(base)
        total = array.start
        for index, step in zip(indices, array.strides, strict=True):
            offset = index if constant_of(step) == 1 else ops.mul(index, step)
            total = offset if total is None else ops.add(total, offset)
        if not _is_complex(base):
            return [Address(array.memory, total)]
        first = ops.constant(0) if total is None else ops.mul(total, ops.constant(2))
        return [Address(array.memory, first), Address(array.memory, ops.add(first, ops.constant(1)))]

    # --- completion ------------------------------------------------------------------------------

    def finish(self, blocks: Dim, threads: int) -> Launch:
        """Close the function; returns its launch by so many blocks of so many threads."""
        if self.body != self._entry:
            with ir.InsertionPoint(self.body):
                ir.Operation.create("scf.yield")
        with ir.InsertionPoint(self._entry):
            ir.Operation.create("gpu.return")
        self._mark.erase()
        attributes = self.function.attributes
        attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(self._types, []))
        attributes["known_block_size"] = ir.DenseI32ArrayAttr.get([threads, 1, 1])
        if self.may_end:
            flag = self._arrays[self.memory.flag].memory
            attributes[FLAG] = ir.IntegerAttr.get(self.ops.i64, flag.arg_number)
        return Launch(self.name, (str(blocks), "1", "1"), (str(threads), "1", "1"), tuple(self._given))


def _is_complex(base: ir.Value) -> bool:
    return isinstance(ir.MemRefType(base.type).element_type, ir.ComplexType)


def _stored(base: ir.Value) -> ir.Type:
    """The type of the numbers that lie in the memory of an array."""
    element = ir.MemRefType(base.type).element_type
    return element.element_type if isinstance(element, ir.ComplexType) else element
