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

# What emitted dispatchers know of it, as three 64-bit numbers: nonzero while they are right, the
# thread, the plan. Whoever sets `LAST.plan` from Python sets the first byte to 0.
RECENT = bytearray(24)


def last_executed_graph() -> Module | None:
    """The graph of the plan that ran last in this thread; None when there is none any more.

    It is a plain value: ``pf.last_executed_graph().to_mlir()`` is its IR text.
    """
    plan = None if LAST.plan is None else LAST.plan()
    return None if plan is None else plan.graph
