"""Calls on device arrays: from the caller's arrays to an executor and back, whatever fails.

A call that the device fails is computed on the host, at tier 0, with its reason kept; nothing was
written that the caller can see. What failed for lack of memory is tried again by the next call,
anything else is not. After an error that loses the device nothing on it can be read, either.
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
    """Host arrays as arrays of a device, to which they are copied when a kernel reads them.

    Those of rank 0 stay, as kernels take them from the host.
    """
    return [
        DeviceArray.of_host(leaf, device, NUMPY) if _has_axes(leaf) else leaf for leaf in leaves
    ]


def _has_axes(leaf: Any) -> bool:
    return isinstance(leaf, np.ndarray) and leaf.ndim > 0


def call(run: Run, executor: AnyExecutor, leaves: Sequence[Any], captured: Sequence[Any]) -> list:
    """Outputs of an executor, device arrays among them as arrays of the caller's library.

    Args:
        run: calls an executor.
        leaves: arguments.
        captured: arrays that the function closes over; those of the host are copied to the device
            for this call.

    Raises DeviceError where not even the host can compute them, as it cannot read them.
    """
    first = next(leaf for leaf in leaves if isinstance(leaf, DeviceArray))
    home, library = first.device, first.library
    inputs = [*leaves, *(_captured(array, home, library) for array in captured)]
    failure = executor.device_failure
    if not failure:
        try:
            driver()  # without one there is no point in compiling for it
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
    given = {id(x.owner) for x in inputs if isinstance(x, DeviceArray) and x.owner is not None}
    with DeviceCall(home, library, executor.counters, executor.note_slower) as call:
        for value in inputs:
            if isinstance(value, DeviceArray) and value.owner is not None:
                call.join(value)
        outputs = run(executor, list(inputs))
        found = [
            call.result(out, given) if isinstance(out, DeviceArray) else out for out in outputs
        ]
        call.finish()
    return found


def _evaluated(executor: AnyExecutor, inputs: list) -> list:
    return executor.evaluate(inputs)


def _note(executor: AnyExecutor, error: DriverError) -> str:
    """Keep why a call left the device, and whether the next one should."""
    if error.sticky:
        lose(error)
    if not error.transient:
        executor.device_failure = error.what
    reason = Reason(Kind.OFF_DEVICE, subject="the device", detail=error.what)
    if reason not in executor.reasons:
        executor.reasons.append(reason)
    log("device-fallback", executor.options.name, error.what, transient=error.transient)
    return error.what
