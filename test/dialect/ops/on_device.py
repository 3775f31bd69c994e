"""Kernels of conformance cases on a GPU: arrays go there with the strides they have."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from profuse.dialect.ir.program import Program
from profuse.executor.cuda.call import DeviceCall
from profuse.executor.cuda.device_target import device_target
from profuse.executor.cuda.exchange.arrays import DeviceArray
from profuse.executor.cuda.exchange.libraries import NUMPY, OwnMemory
from profuse.executor.cuda.launching.launch import GroupRunner
from profuse.executor.cuda.nvidia.driver import driver
from profuse.executor.settings.events import Counters
from profuse.lowering.gpu.gpu_stages import compile_image


def run_on_device(program: Program, args: Sequence[Any], device: str) -> tuple:
    """The results of a fusion function, as host arrays."""
    target = device_target(device)
    artifact = compile_image(program, target.gpu, target.gpu_image)
    runner: Callable[..., Any] = GroupRunner(artifact, device, _never)
    with DeviceCall(device, NUMPY, Counters()) as call:
        out = runner(*[placed(a, device, call) for a in args])
        out = out if isinstance(out, tuple) else (out,)
        found = tuple(np.asarray(call.result(o, set())) for o in out)
        call.finish()
    return found


def placed(value: Any, device: str, call: DeviceCall) -> Any:
    """An array with its strides, and all that lies between its elements, on a device."""
    if not isinstance(value, np.ndarray) or not value.ndim:
        return value
    low, high = np.lib.array_utils.byte_bounds(value)
    nbytes = high - low if value.size else 0
    stream = call.stream(0)
    memory = OwnMemory(0, nbytes, stream)
    if nbytes:
        raw = np.frombuffer((ctypes.c_char * nbytes).from_address(low), np.uint8)
        driver().to_device(0, memory.pointer, raw, stream)
    start = memory.pointer + (value.ctypes.data - low if nbytes else 0)
    return DeviceArray(device, value.shape, value.dtype, value.strides, NUMPY, memory, start)


def _never(*args: Any) -> Any:
    raise AssertionError("the kernel reports a violation")
