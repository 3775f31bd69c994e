"""Which call on device arrays each thread is in."""

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
    """The call that this thread is in; raises DriverError outside of any."""
    if active.call is None:
        raise DriverError("a kernel of a device runs outside of a call", "internal")
    return active.call
