"""Deliberate faults of a worker, for tests: ``PROFUSE_WORKER_FAULT=segv@f,hang@g``.

Each item is ``FAULT@PLACE``. A place is the name of a graph (`CompileRequest.name`), for its
compile; ``graph:group``, for the compile of one fusion function; ``graph:group:check``, for the
check of its kernel; or ``start``, for the start of the process. Only worker processes read the
variable.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable

VARIABLE = "PROFUSE_WORKER_FAULT"
START = "start"


def meet(name: str) -> None:
    """Cause the faults that the variable names for this place."""
    for item in os.environ.get(VARIABLE, "").split(","):
        fault, _, where = item.partition("@")
        if where == name:
            _FAULTS[fault]()


def _segv() -> None:
    ctypes.string_at(0)


def _hang() -> None:
    # Holds the GIL, as MLIR does during a pass.
    ctypes.PyDLL(None).sleep(3600)


def _hog() -> None:
    blocks = []
    while True:
        blocks.append(bytearray(b"\1") * (16 << 20))
        time.sleep(0.005)


def _noise() -> None:
    os.write(REPLIES.fileno(), b"this is no frame")


def _wrong() -> None:
    from .frames import frame
    from .protocol import PROTOCOL

    head = b'{"v": %d, "kind": "result", "body": {}, "sections": []}\0' % PROTOCOL
    os.write(REPLIES.fileno(), frame(head))


def _close() -> None:
    os.close(REPLIES.fileno())
    _hang()


class _Replies:
    """The file descriptor of the worker's replies; 1 until the worker has copied its stdout."""

    fd = 1

    def fileno(self) -> int:
        return self.fd


REPLIES = _Replies()
_FAULTS: dict[str, Callable[[], object]] = {
    "segv": _segv,
    "abort": os.abort,
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "exit": lambda: sys.exit("gave up"),
    "hang": _hang,
    "slow": lambda: time.sleep(0.5),
    "hog": _hog,
    "raise": lambda: 1 // 0,
    "noise": _noise,
    "wrong": _wrong,
    "close": _close,
}
