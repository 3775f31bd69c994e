"""`warn`: a warning that a traced function keeps in its graph (R1.1)."""

from __future__ import annotations

from ...dialect.importers.tracing.current import current, user_loc
from ...dialect.ops.control_flow.effects import Warn
from .knobs import knobs


def warn(message: str) -> None:
    """Print ``message`` to stderr whenever this line runs, but once only.

    Inside a traced function it becomes part of the graph, so that it is printed when the branch
    or loop body around it runs, not when it is traced. With the ``disable_warning_prints`` knob
    set nothing is printed, nor put into graphs that are traced then.
    """
    if knobs.disable_warning_prints:
        return
    loc = user_loc()
    attrs = {"message": str(message), "site": f"{loc.file}:{loc.line}" if loc else ""}
    recorder = current()
    if recorder is None:
        Warn.evaluate(attrs)
    else:
        recorder.emit(Warn, [], attrs)
