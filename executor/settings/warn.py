"""`warn`: a warning that a traced function keeps in its graph (R1.1)."""

from __future__ import annotations

from ...dialect.importers.numpy.tracing.current import current, user_loc
from ...dialect.ops.control_flow.effect_ops import Warn
from .knobs import knobs


def warn(message: str) -> None:
    """Print ``message`` to stderr when this line runs, once per line, message and process.

    Inside a traced function the warning becomes part of the graph: it is printed when the branch or
    loop body around it runs, not when it is traced. While the ``disable_warning_prints`` knob is
    set, nothing is printed, and traces put no warnings into graphs.
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
