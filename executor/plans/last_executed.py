"""The graph that this thread executed last, held weakly (R2.4)."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...dialect.ir.program import Module
    from .plan import Plan


class _Last(threading.local):
    plan: weakref.ref[Plan] | None = None


LAST = _Last()

# A cache for emitted dispatchers, which saves them from setting `LAST.plan` at each call. Three
# 64-bit numbers: nonzero if the cache is valid, the identifier of a thread, and a number for the
# plan that the thread ran last. Python code that sets `LAST.plan` sets the first byte to 0.
RECENT = bytearray(24)


def last_executed_graph() -> Module | None:
    """The graph of the plan that ran last in this thread; None if that plan no longer exists.

    ``pf.last_executed_graph().to_mlir()`` is its IR text.
    """
    plan = None if LAST.plan is None else LAST.plan()
    return None if plan is None else plan.graph
