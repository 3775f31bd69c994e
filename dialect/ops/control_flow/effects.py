"""Ops that do something beside computing values."""

from __future__ import annotations

import sys
import threading
from typing import Any

from ...ir.attrs import STR
from ...ir.op import Attrs, Op, attr

_printed: set[tuple[str, str]] = set()
_lock = threading.Lock()


class Warn(Op, name="warn"):
    """Print a message to stderr, once per site and process (R1.1).

    ``site`` is where in the user's source the warning stands; texts at one site count apart.
    """

    pure = False
    message = attr(STR)
    site = attr(STR, default="")
    no_gradient = True

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        key = (attrs["site"], attrs["message"])
        with _lock:
            if key in _printed:
                return ()
            _printed.add(key)
        where = f"{attrs['site']}: " if attrs["site"] else ""
        print(f"{where}warning: {attrs['message']}", file=sys.stderr)
        return ()
