"""Changes of the calls of device groups together with the functions that these call."""

from __future__ import annotations

from collections.abc import Container

from ...analysis.readers import drop_unread, readers
from ...errors import InternalError
from ...ir.program import Instr, Program


def drop_results(program: Program, call: Instr, body: Program, among: Container[int] | None = None) -> int:
    """Take the results that nothing reads from a call and from its function; returns how many.

    What only these have needed goes from the function as well, which nothing else may call.

    Args:
        among: only the results of these numbers; None = all.
    """
    if len(body.outputs) != len(call.results):
        raise InternalError(f"@{body.name} does not have the results that it is called for")
    users = readers(program.body)
    unread = [k for k, r in enumerate(call.results) if not users.get(r) and (among is None or k in among)]
    outputs = body.outputs
    call.results = _without(call.results, unread)
    body.body.outputs = _without(outputs, unread)
    drop_unread(body.body, [outputs[k] for k in unread])
    return len(unread)


def _without(values: tuple[int, ...], gone: list[int]) -> tuple[int, ...]:
    return tuple(v for k, v in enumerate(values) if k not in gone)
