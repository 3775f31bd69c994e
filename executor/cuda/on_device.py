"""Calls on device arrays: from the caller's arrays to an executor and back, also after failures.

If a call fails on the device, the host computes it at tier 0, and the executor keeps the reason.
The failed attempt has written nothing that the caller can see. After a lack of memory, the next
call tries the device again; after any other error, no call does. After an error that loses the
device, arrays on it cannot be read any more, not even for tier 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.errors import DeviceError
from ...dialect.reasons import Kind, Reason
from ..settings.events import log
from .call import DeviceCall
from .exchange.arrays import DeviceArray, as_leaf
from .exchange.libraries import NUMPY, Library
from .nvidia.driver import driver, lose
from .nvidia.driver_api import DriverError

if TYPE_CHECKING:
    from ..tiers.choice import AnyExecutor

Run = Callable[[Any, list], list]


def moved(leaves: Sequence[Any], device: str) -> list[Any]:
    """Arguments with host arrays as arrays of a device; they are copied when a kernel reads them.

    Arrays of rank 0 stay on the host until a kernel takes them.
    """
    return [DeviceArray.of_host(leaf, device, NUMPY) if _has_axes(leaf) else leaf for leaf in leaves]


def _has_axes(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.ndim > 0


def call(run: Run, executor: AnyExecutor, leaves: Sequence[Any], captured: Sequence[Any]) -> list:
    """Run an executor; device arrays among its outputs become arrays of the caller's library.

    Args:
        run: calls the executor with a list of inputs.
        executor: the executor.
        leaves: the arguments, without their containers; one at least is a device array.
        captured: arrays that the function closes over; those of the host are copied to the device
            for this call.

    Raises DeviceError if the device fails and the host cannot take over.
    """
    first = next(leaf for leaf in leaves if isinstance(leaf, DeviceArray))
    home, library = first.device, first.library
    inputs = [*leaves, *(_captured(array, home, library) for array in captured)]
    failure = executor.device_failure
    if not failure:
        try:
            driver()  # raises if there is none: then compiling for the device is useless
            return _run(run, executor, inputs, home, library)
        except DriverError as error:
            failure = _note(executor, error)
    executor.counters.device_fallbacks += 1
    try:
        return _run(_evaluated, executor, inputs, home, library)
    except DriverError as error:
        if error.sticky:
            lose(error)
        raise DeviceError(
            f"{executor.options.name} cannot be computed on {home} ({failure}), and the host "
            f"cannot take over: {error.what}",
            hint="free memory of the device" if error.transient else "start a new process",
        ) from error


def _captured(array: Any, home: str, library: Library) -> Any:
    if not isinstance(array, np.ndarray):
        return as_leaf(array)
    return DeviceArray.of_host(array, home, library) if array.ndim else array


def _run(run: Run, executor: AnyExecutor, inputs: list, home: str, library: Library) -> list:
    owners = {id(x.owner) for x in inputs if isinstance(x, DeviceArray) and x.owner is not None}
    with DeviceCall(home, library, executor.counters, executor.note_slower) as call:
        for value in inputs:
            if isinstance(value, DeviceArray) and value.owner is not None:
                call.join(value)
        outputs = run(executor, list(inputs))
        results = [call.result(out, owners) if isinstance(out, DeviceArray) else out for out in outputs]
        call.finish()
    return results


def _evaluated(executor: AnyExecutor, inputs: list) -> list:
    return executor.evaluate(inputs)


def _note(executor: AnyExecutor, error: DriverError) -> str:
    """Keep the reason why a call left the device, and return it.

    Unless the error is transient, later calls of the executor do not try the device.
    """
    if error.sticky:
        lose(error)
    if not error.transient:
        executor.device_failure = error.what
    reason = Reason(Kind.OFF_DEVICE, subject="the device", detail=error.what)
    if reason not in executor.reasons:
        executor.reasons.append(reason)
    log("device-fallback", executor.options.name, error.what, transient=error.transient)
    return error.what
