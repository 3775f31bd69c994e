"""Runs a launch plan: kernels and library products in order, on emulated memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from mlir import ir
from profuse.dialect.ir.dtypes import dtype_named
from profuse.dialect.ir.size_algebra import parse_dim
from profuse.dialect.ir.symbolic import evaluate

from .faults import SimtError
from .kernel import contents, empty, holding, run_kernel
from .memory import MemRef
from .program import Program, decode
from .types import storage_dtype


def programs(module: ir.Module) -> dict[str, Program]:
    """The kernels of all ``gpu.gpu_module`` in a module, by name."""
    found = {}
    for outer in module.body.operations:
        if outer.operation.name != "gpu.module":
            continue
        for op in outer.operation.regions[0].blocks[0].operations:
            if op.operation.name == "gpu.func":
                program = decode(op.operation, module)
                found[program.name] = program
    return found


def parse(text: str) -> ir.Module:
    """A module of stock dialects, in a context of its own."""
    with ir.Context(), ir.Location.unknown():
        return ir.Module.parse(text)


def run(module: ir.Module | str, plan: Any, inputs: Sequence[Any]) -> list[np.ndarray]:
    """The outputs of a fusion function by emulation.

    Args:
        module: with the kernels, or its text.
        plan: a ``LaunchPlan`` of `profuse.lowering.gpu.launch_plan`.
        inputs: arrays, of the sizes and strides that the plan's ABI takes, and Python numbers.

    Raises:
        KernelFault: a kernel did something undefined, or an output was not wholly written.
    """
    return _Run(parse(module) if isinstance(module, str) else module, plan, inputs).outputs()


class _Run:
    """Memory of one call."""

    def __init__(self, module: ir.Module, plan: Any, inputs: Sequence[Any]) -> None:
        self.plan, self.inputs = plan, inputs
        self.programs = programs(module)
        abi = plan.abi
        self.sizes = abi.sizes(lambda k, axis: inputs[k].shape[axis])
        for k, axis in abi.strides:
            self.sizes[f"stride{k}_{axis}"] = inputs[k].strides[axis] // inputs[k].itemsize
        for k, (value, spec) in enumerate(zip(inputs, abi.inputs, strict=True)):
            if spec.kind != "scalar":
                self._check_input(k, value, spec)
        self.input_memory = {
            k: holding(np.asarray(value, dtype_named(spec.dtype).numpy), f"input {k}")
            for k, (value, spec) in enumerate(zip(inputs, abi.inputs, strict=True))
            if spec.kind != "scalar"
        }
        self.shapes = [tuple(map(self._size, spec.dims)) for spec in abi.outputs]
        self.output_memory = [
            empty(shape, dtype_named(spec.dtype).numpy, f"output {k}")
            for k, (spec, shape) in enumerate(zip(abi.outputs, self.shapes, strict=True))
        ]
        self.steps = list(plan.launches(self.sizes, self._aligned))
        self.workspace = empty([self._size(abi.workspace)], np.int8, "the workspace", self._workspace_unit())

    def outputs(self) -> list[np.ndarray]:
        """Run all steps; the results."""
        for step in self.steps:
            if hasattr(step, "kernel"):
                self._launch(step)
            else:
                self._product(step)
        return [
            contents(memory, shape, dtype_named(spec.dtype).numpy)
            for memory, shape, spec in zip(self.output_memory, self.shapes, self.plan.abi.outputs, strict=True)
        ]

    def _size(self, text: str) -> int:
        return evaluate(parse_dim(text), self.sizes)

    def _check_input(self, number: int, array: np.ndarray, spec: Any) -> None:
        """Raise SimtError if a guard would have kept this array from the kernels."""
        shape = tuple(map(self._size, spec.dims))
        if array.shape != shape or array.dtype != dtype_named(spec.dtype).numpy:
            given = f"{array.dtype}{list(array.shape)}"
            raise SimtError(f"input {number} is {given}; the plan takes {spec.dtype}{list(shape)}")
        if spec.strides == "contiguous":
            fits = array.flags.c_contiguous
        else:
            fits = all(
                text == "?" or n == 1 or stride == int(text) * array.itemsize
                for text, n, stride in zip(spec.strides, shape, array.strides, strict=True)
            )
        if not fits and array.size:
            raise SimtError(f"input {number} has strides {array.strides}, not {spec.strides}")

    def _aligned(self, number: int, count: int) -> bool:
        return self.inputs[number].ctypes.data % count == 0

    def _workspace_unit(self) -> int:
        """Bytes of the smallest elements that the workspace is used for."""
        places = []
        for step in self.steps:
            if hasattr(step, "kernel"):
                places += step.arguments
            else:
                matrices = (step.left, step.right, step.output, step.bias)
                places += [m.argument for m in matrices if m is not None]
        sizes = [dtype_named(p[2]).itemsize for p in places if p[0] == "workspace"]
        return min(sizes, default=1)

    def _argument(self, argument: tuple) -> Any:
        match argument:
            case ("input", number):
                return self.input_memory[number]
            case ("output", number):
                return self.output_memory[number]
            case ("workspace", offset, name):
                start, dtype = self._size(offset), storage_dtype(dtype_named(name).numpy)
                room = (self.workspace.buffer.slot_bytes - start) // dtype.itemsize
                return self.workspace.viewed(start, dtype, (room,))
            case ("size", text):
                return self._size(text)
            case ("stride", number, axis):
                return self.sizes[f"stride{number}_{axis}"]
            case ("scalar", number):
                return self.inputs[number]
        raise SimtError(f"no such kind of kernel argument: {argument!r}")

    def _launch(self, step: Any) -> None:
        try:
            program = self.programs[step.kernel]
        except KeyError:
            raise SimtError(f"the module has no kernel @{step.kernel}") from None
        run_kernel(
            program,
            [self._size(n) for n in step.grid],
            [self._size(n) for n in step.block],
            [self._argument(a) for a in step.arguments],
            self._size(step.shared),
        )

    def _product(self, step: Any) -> None:
        """What the library would do: accumulate in f32 at least, round once."""
        dtype, output = (dtype_named(n).numpy for n in (step.dtype, step.output_dtype))
        wide = np.float64 if dtype.itemsize == 8 else np.float32
        left, right = (self._read(m, dtype).astype(wide) for m in (step.left, step.right))
        result = np.matmul(left, right)
        if step.bias is not None:
            result = result + self._read(step.bias, output).astype(wide)
        if step.accumulate:
            result = result + self._read(step.output, output).astype(wide)
        ref, places = self._places(step.output, output)
        start = places * ref.dtype.itemsize // ref.buffer.unit
        ref.buffer.raw.view(ref.dtype)[places] = result.astype(output)
        for unit in range(ref.dtype.itemsize // ref.buffer.unit):
            ref.buffer.defined[start + unit] = True

    def _read(self, matrix: Any, dtype: np.dtype) -> np.ndarray:
        ref, places = self._places(matrix, dtype)
        start = places * ref.dtype.itemsize // ref.buffer.unit
        if not ref.buffer.defined[start].all():
            raise SimtError(f"a library product reads {ref}, parts of which nothing has written")
        return ref.buffer.raw.view(ref.dtype)[places]

    def _places(self, matrix: Any, dtype: np.dtype) -> tuple[MemRef, np.ndarray]:
        """The memory of a matrix, and where its elements are in it."""
        # What kernels take for integers, as they do bf16, are numbers here.
        ref = replace(self._argument(matrix.argument), dtype=dtype)
        dims = [self._size(n) for n in matrix.dims]
        places = np.full(dims, self._size(matrix.offset) + ref.offset // ref.dtype.itemsize)
        for axis, text in enumerate(matrix.strides):
            steps = np.arange(dims[axis]) * self._size(text)
            places = places + steps.reshape(-1, *(1,) * (len(dims) - axis - 1))
        end = ref.buffer.slot_bytes // ref.dtype.itemsize
        if places.size and not (places.min() >= 0 and places.max() < end):
            raise SimtError(f"a library product leaves the bounds of {ref}")
        return ref, places
