"""The CUDA driver of this process, and the modules of kernels that it has loaded.

The driver is looked for once, on first use; if there is none, the reason is remembered. An error
after which the CUDA context cannot be used any more (an illegal address, for example) is remembered
as well: from then on, `driver` raises DriverError, so nothing touches the device.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ....dialect.ir.device import index_of
from .driver_api import Driver, DriverError


class _Process:
    """The driver of this process, or why there is none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.driver: Driver | None = None
        self.absent = ""
        self.lost = ""
        self.modules: dict[tuple[int, bytes], Any] = {}


_process = _Process()


def driver() -> Driver:
    """The driver; raises DriverError if there is none, or if the device is lost."""
    if _process.lost:
        raise DriverError(_process.lost, "lost", sticky=True)
    current = _process.driver
    if current is None:
        current = _find()
    return current


def _find() -> Driver:
    with _process.lock:
        if _process.driver is None and not _process.absent:
            from .bindings import BindingsDriver

            try:
                _process.driver = BindingsDriver()
            except DriverError as error:
                _process.absent = error.what
        if _process.driver is None:
            raise DriverError(_process.absent, "absent")
        return _process.driver


def module_of(device: int, image: bytes) -> Any:
    """The module of machine code on a device, loaded once per process.

    Modules are never unloaded, because their kernels may still run when no plan refers to them any
    more. Equal graphs have equal code, so there are only as many modules as different code.
    """
    module = _process.modules.get((device, image))
    if module is None:
        module = _process.modules[device, image] = driver().load(device, image)
    return module


def lose(error: DriverError) -> None:
    """Remember a sticky error: from now on, `driver` raises DriverError."""
    _process.lost = f"the device was lost to an earlier error: {error.what}"


def unavailable(device: str) -> str:
    """The reason why nothing can run on a device; "" = it can."""
    try:
        count = driver().device_count()
    except DriverError as error:
        return error.what
    return "" if index_of(device) < count else f"there are {count} devices, and no {device}"


@contextmanager
def using(other: Driver | None, absent: str = "") -> Iterator[None]:
    """Use another driver in a ``with`` block; None = no driver, for the reason ``absent``."""
    before = _process.driver, _process.absent, _process.lost, _process.modules
    _process.driver, _process.absent, _process.lost, _process.modules = other, absent, "", {}
    try:
        yield
    finally:
        _process.driver, _process.absent, _process.lost, _process.modules = before
