"""``// expected-error`` comments in IR text, as in ``mlir-opt --verify-diagnostics``.

``// expected-error@+1 {{text}}``: an error on the next line (``@-1``, ``@below``, ``@above`` too;
without ``@`` on this line) whose message contains ``text``.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ..dialect.errors import IRError, Loc

_COMMENT = re.compile(r"//\s*expected-error(?:@(?P<where>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}")
_OFFSETS = {"above": -1, "below": 1}


def expected_errors(text: str) -> list[tuple[int, str]]:
    """(line, text) of every comment; line 0 = an error without a position."""
    errors = []
    for number, line in enumerate(text.splitlines(), start=1):
        for comment in _COMMENT.finditer(line):
            where = comment["where"]
            if where == "unknown":
                errors.append((0, comment["text"]))
            else:
                offset = _OFFSETS[where] if where in _OFFSETS else int(where or 0)
                errors.append((number + offset, comment["text"]))
    return errors


def compare(text: str, name: str, errors: Callable[[], list[tuple[str, str]]]) -> None:
    """Raise IRError unless the errors are exactly the expected ones, one comment for each."""
    missing = expected_errors(text)
    complaints = []
    for position, message in errors():
        line = _line(position)
        match = next((e for e in missing if e[0] == line and e[1] in message), None)
        if match is None:
            complaints.append((position or name, f"unexpected error: {message}"))
        else:
            missing.remove(match)
    complaints += [(f"{name}:{line}", f"expected error {want!r} was not produced") for line, want in missing]
    if complaints:
        (position, first), *more = complaints
        rest = [f"{where}: {what}" for where, what in more]
        raise IRError("\n".join([first, *rest]), loc=_loc(position))


def _line(position: str) -> int:
    match = re.search(r":(\d+)(?::\d+)?$", position)
    return int(match[1]) if match else 0


def _loc(position: str) -> Loc | None:
    match = re.fullmatch(r"(.*?):(\d+)(?::(\d+))?", position)
    return Loc(match[1], int(match[2]), int(match[3] or 0)) if match else None
