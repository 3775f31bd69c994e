"""Functions of NumPy and SciPy that have no op, and run on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...ops.host.rule import rule_named
from ..numpy.handlers import host
from ..numpy.tracing.operators import Recording


def on_host(function: str, *args: Any, **named: Any) -> Any:
    """The result of a function of the host's table by its whole name; a host call where an operand is traced."""
    if any(isinstance(x, Recording) for x in (*args, *named.values())):
        return host.call(function, args, named)
    with np.errstate(all="ignore"):
        return rule_named(function).function(*args, **named)
