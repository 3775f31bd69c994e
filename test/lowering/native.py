"""Calling kernels directly: slots filled by hand, so that lowering is tested on its own."""

import ctypes

import numpy as np
from mlir import ir
from profuse.dialect.ir.dtypes import dtype_named
from profuse.dialect.ir.size_algebra import parse_dim
from profuse.dialect.ir.symbolic import evaluate
from profuse.dialect.mlir.context import context
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.cpu.cpu_stages import compile_linalg, compile_program
from profuse.lowering.cpu.loader import load
from profuse.lowering.target import host_target

DIALECTS = ("func", "arith", "math", "scf", "tensor", "linalg")
GUARD = 64  # bytes around every buffer that a kernel must leave alone


def aligned(shape, dtype, offset=0):
    """An uninitialised array, 64-byte aligned plus ``offset`` bytes, between two guards."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=int)) * dtype.itemsize
    raw = np.full(size + 3 * GUARD + offset, 0xA5, np.uint8)
    start = GUARD + -(raw.ctypes.data + GUARD) % 64 + offset
    array = raw[start : start + size].view(dtype).reshape(shape)
    return array, (raw, start, size)


def untouched(frame):
    """True if a kernel wrote nothing around a buffer made by `aligned`."""
    raw, start, size = frame
    return bool((raw[:start] == 0xA5).all() and (raw[start + size :] == 0xA5).all())


class Kernel:
    """A loaded kernel, callable on arrays; returns a list of arrays."""

    def __init__(self, artifact):
        self.artifact = artifact
        self.loaded = load(artifact)
        self.function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.loaded.address)

    @property
    def stages(self):
        return self.artifact.stages

    def slots(self, *args, symbols=None):
        """The slot array of one call, its outputs, the frames to check, and what must live on."""
        abi = self.artifact.abi
        sizes = abi.sizes(lambda k, axis: args[k].shape[axis])
        assert not symbols or sizes == {n: symbols[n] for n in sizes}
        slots, outputs, frames, alive = [], [], [], []
        for value, spec in zip(args, abi.inputs, strict=True):
            if spec.kind == "scalar":
                packed = np.array([value], dtype_named(spec.dtype).numpy).tobytes()
                slots.append(int.from_bytes(packed.ljust(8, b"\0"), "little"))
            else:
                value = np.asarray(value)
                alive.append(value)
                slots.append(value.ctypes.data)
        for spec in abi.outputs:
            shape = [evaluate(parse_dim(d), sizes) for d in spec.dims]
            array, frame = aligned(shape, dtype_named(spec.dtype).numpy)
            outputs.append(array)
            frames.append(frame)
            slots.append(array.ctypes.data)
        workspace, frame = aligned((abi.workspace_size(sizes),), np.uint8)
        frames.append(frame)
        slots.append(workspace.ctypes.data)
        slots += [sizes[n] for n in abi.symbols]
        slots += [args[i].strides[axis] // args[i].itemsize for i, axis in abi.strides]
        packed = np.array([s & (2**64 - 1) for s in slots], np.uint64)
        return packed, outputs, frames, alive

    def __call__(self, *args, symbols=None):
        slots, outputs, frames, _alive = self.slots(*args, symbols=symbols)
        self.function(slots.ctypes.data)
        assert all(map(untouched, frames)), "the kernel wrote out of bounds"
        kinds = [spec.kind for spec in self.artifact.abi.outputs]
        violations = [out for out, kind in zip(outputs, kinds, strict=True) if kind == "violation"]
        assert not any(map(np.any, violations)), "the kernel met an index out of range"
        return [out for out, kind in zip(outputs, kinds, strict=True) if kind != "violation"]


def parse(text):
    """A linalg module in this thread's context."""
    ctx = context()
    for dialect in DIALECTS:
        _ = ctx.dialects[dialect]
    with ctx, ir.Location.unknown():
        return ir.Module.parse(text)


def kernel_of(text, keep_stages=True):
    """The kernel of a linalg function given as text."""
    return Kernel(compile_linalg(parse(text), host_target(), keep_stages=keep_stages))


def run(function, args, symbols=None):
    """Results of a `Program` on arrays and Python numbers; same contract as `reference.run`."""
    kernel = Kernel(compile_program(function, host_target(), keep_stages=True))
    outputs = kernel(*args, symbols=symbols)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def built(program, in_place=False, target=None):
    """The kernel of a program, by default for this host, with the texts of its stages."""
    target = target or host_target()
    return Kernel(compile_program(program, target, keep_stages=True, in_place=in_place))


def same_bits(program, *args, kernel=None, target=None):
    """Assert that a kernel, for this host or a target, gives tier 0's bits; returns the kernel."""
    kernel = kernel or built(program, target=target)
    for found, wanted in zip(kernel(*args), Evaluator(program)(args), strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        assert found.tobytes() == np.ascontiguousarray(wanted).tobytes()
    return kernel
