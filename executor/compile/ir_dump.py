"""Dumps of graphs: the whole graph when a tier begins, and the IR at every pass boundary (R1.49).

The knob ``dump`` names the destination: ``stderr``, or a folder. In a folder each dump is a file of
its own, and the numbers of the files follow the order of events. If the folder cannot be written,
the process prints one line and logs one event; calls and compiles go on.
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
"""A callback of `run_pipeline` between two passes: (pass before, pass after, module)."""

_numbers = itertools.count()


def dump_graph(where: str, title: str, name: str, text: Callable[[], str]) -> None:
    """Dump a whole graph of the function ``name``; ``text`` is called only if dumps are on."""
    if where:
        _dump(where, f"{title}: {name}", text())


def boundary_dump(where: str, name: str) -> Boundary:
    """A callback that dumps the graph ``name`` at every pass boundary."""

    def dump(before: str, after: str, module: ir.Module) -> None:
        _dump(where, f"after {before or 'start'}, before {after or 'end'}: {name}", str(module))

    return dump


def _dump(where: str, title: str, text: str) -> None:
    if where == "stderr":
        print(f"// ----- {title}\n{text}", file=sys.stderr)
        return
    from ..files import write_whole
    from ..settings.event_log import is_lost
    from ..settings.events import give_up

    if is_lost(where):
        return
    number = next(_numbers)
    words = re.sub(r"[^\w.-]+", "-", title)
    path = Path(where) / f"{os.getpid()}-{number:05d}-{words}.mlir"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, f"// ----- {title}\n{text}")
    except OSError as error:
        give_up("dumps", where, error)
