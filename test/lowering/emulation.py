"""Kernels of whole programs on the emulator."""

import numpy as np
from profuse.lowering.gpu.gpu_module import emit_gpu
from profuse.lowering.linalg.to_linalg import to_linalg
from simt import run


class Emulated:
    """The kernels of a `Program`, callable on arrays and Python numbers.

    Attributes:
        plan: the launch plan.
        used: names of the kernels that calls have launched.
    """

    def __init__(self, program):
        linalg = to_linalg(program)
        with linalg.context:
            self.module, self.plan = emit_gpu(linalg.body.operations[0].operation)
        self.used = set()

    def launched(self, *args):
        """Names of the kernels that a call launches, and kinds of its library products."""
        sizes = self.plan.abi.sizes(lambda k, axis: args[k].shape[axis])
        for k, axis in self.plan.abi.strides:
            sizes[f"stride{k}_{axis}"] = args[k].strides[axis] // args[k].itemsize
        steps = self.plan.launches(sizes, lambda k, count: args[k].ctypes.data % count == 0)
        return [getattr(step, "kernel", None) or step.kind for step in steps]

    def __call__(self, *args):
        outputs = run(self.module, self.plan, args)
        self.used.update(self.launched(*args))
        specs = self.plan.abi.outputs
        flags = [o for o, s in zip(outputs, specs, strict=True) if s.kind == "violation"]
        assert not any(map(np.any, flags)), "a kernel met an index out of range"
        return [o for o, s in zip(outputs, specs, strict=True) if s.kind != "violation"]


def misaligned(array):
    """A copy that starts one element past a multiple of 64 bytes."""
    array = np.asarray(array)
    raw = np.empty(array.nbytes + 128, np.uint8)
    start = -raw.ctypes.data % 64 + array.itemsize
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def aligned(array):
    """A copy, C-contiguous, that starts at a multiple of 64 bytes."""
    array = np.asarray(array)
    raw = np.empty(array.nbytes + 64, np.uint8)
    start = -raw.ctypes.data % 64
    copy = raw[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
