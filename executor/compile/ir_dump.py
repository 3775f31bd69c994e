"""Dumps of graphs: whole ones as tiers begin, and the IR at every pass boundary (R1.49).

The knob ``dump`` says where to: ``stderr``, or a folder, in which each dump is a file of its own,
numbered in the order of events. A folder that cannot be written costs a line and an event, not the
call or the compile.
"""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mlir import ir

NO_OPT, SIMPLE, PROFILED, OPTIMISED = "no-opt", "simple executor", "profiled", "optimised"
"""Titles of whole-graph dumps."""

Boundary = Callable[[str, str, Any], None]
"""What `run_pipeline` calls between passes: with the names of both neighbours, and the module."""

_numbers = itertools.count()


def dump_graph(where: str, title: str, name: str, text: Callable[[], str]) -> None:
    """Dump a whole graph of the function ``name``; ``text`` is called only if anyone wants it."""
    if where:
        _dump(where, f"{title}: {name}", text())


def boundary_dump(where: str, name: str) -> Boundary:
    """Dumps of the graph ``name`` at every pass boundary."""

    def dump(before: str, after: str, module: ir.Module) -> None:
        _dump(where, f"after {before or 'start'}, before {after or 'end'}: {name}", str(module))

    return dump


def _dump(where: str, title: str, text: str) -> None:
    if where == "stderr":
        print(f"// ----- {title}\n{text}", file=sys.stderr)
        return
    from ..settings.event_log import is_lost
    from ..settings.events import give_up

    if is_lost(where):
        return
    number = next(_numbers)
    words = re.sub(r"[^\w.-]+", "-", title)
    path = Path(where) / f"{os.getpid()}-{number:05d}-{words}.mlir"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// ----- {title}\n{text}", encoding="utf-8")
    except OSError as error:
        give_up("dumps", where, error)
