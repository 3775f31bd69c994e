"""The call on device arrays that each thread is running."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from .nvidia.driver_api import DriverError

if TYPE_CHECKING:
    from .call import DeviceCall


class _Active(threading.local):
    call: DeviceCall | None = None


active = _Active()


def current_call() -> DeviceCall:
    """The call that this thread is running; raises DriverError outside of any call."""
    if active.call is None:
        raise DriverError("a kernel of a device runs outside of a call", "internal")
    return active.call
