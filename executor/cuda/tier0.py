"""Tier 0 on device arrays: each op computes on the host, and its results belong to the device.

An array is copied to the host when the first op reads it. Results of ops stay on the host until a
kernel or the caller needs them on the device. So a run of tier 0 alone copies each argument and
each result once. All copies are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...dialect.ir.device import DeviceTensor
from ...dialect.ir.op import Fusion
from ...dialect.ir.program import Instr, Module
from .active_call import current_call
from .call import DeviceCall
from .exchange.arrays import DeviceArray

Evaluate = Callable[..., Any]
Adapt = Callable[[Instr, Evaluate], Evaluate]


def adapter(module: Module, home: str) -> Adapt:
    """An adapter with which the ops of a graph take and return device arrays.

    Args:
        module: the graph; if it contains ops that write memory, copies of arrays are not kept.
        home: device of the arrays that ops without array operands make.
    """
    writes = any(instr.op.writes for instr in module.main.body.walk())

    def adapt(instr: Instr, evaluate: Evaluate) -> Evaluate:
        if instr.op.fusion is Fusion.QUERY and instr.operands:
            return lambda *args: evaluate(*map(_stand_in, args))

        def run(*args: Any) -> Any:
            call = current_call()
            device = _device(args, home)
            out = evaluate(*[_on_host(arg, call, writes) for arg in args])
            return out if device is None else _placed(out, device, call, writes)

        return run

    return adapt


def _stand_in(value: Any) -> Any:
    """A host array without the elements of a device array: queries read only size and dtype."""
    return value.stand_in() if isinstance(value, DeviceTensor) else value


def _device(args: tuple, home: str) -> str | None:
    """The device of an op's results; None = the host, if all its array operands are there."""
    arrays = [
        a
        for arg in args
        for a in (arg if isinstance(arg, (list, tuple)) else (arg,))
        if isinstance(a, (DeviceTensor, np.ndarray))
    ]
    device = next((a.device for a in arrays if isinstance(a, DeviceTensor)), None)
    return device or (home if not arrays else None)


def _on_host(value: Any, call: DeviceCall, written: bool) -> Any:
    if isinstance(value, DeviceArray):
        return value.on_host(call, written=written)
    if isinstance(value, (list, tuple)):
        return type(value)(_on_host(item, call, written) for item in value)
    return value


def _placed(value: Any, device: str, call: DeviceCall, written: bool) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(_placed(item, device, call, written) for item in value)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        return DeviceArray.of_host(array, device, call.library, written=written)
    return value
