"""Two texts side by side: which lines differ, and where in the line."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

MAX_LINES = 3000  # a side: beyond that comparing takes longer than anyone would read
CONTEXT = 3

Parts = list[tuple[bool, str]]  # pieces of a line, and whether the other side lacks them

_OP = re.compile(r'"?([a-z_]+\.[\w.]+)|\w+')  # what a line is about: its op, or its first word
_TOKEN = re.compile(r"[\w.]+|\s+|.")
_ALIKE = 0.35  # less than this in common: the line is a different one


@dataclass(frozen=True)
class Row:
    """A line of the comparison.

    Attributes:
        kind: ``"same"``, ``"changed"``, ``"removed"``, ``"added"``, or ``"gap"``: lines left out.
        left, right: line numbers from 1, None = there is none on that side.
        before, after: the line's text, in pieces.
    """

    kind: str
    left: int | None = None
    right: int | None = None
    before: Parts = field(default_factory=list)
    after: Parts = field(default_factory=list)


def side_by_side(before: str, after: str) -> list[Row] | None:
    """Rows around every difference; None = the texts are too long to compare."""
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > MAX_LINES:
        return None
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    rows: list[Row] = []
    for group in matcher.get_grouped_opcodes(CONTEXT):
        if rows or group[0][1]:
            rows.append(Row("gap"))
        for tag, a, b, c, d in group:
            if tag == "equal":
                rows += [
                    Row("same", a + k + 1, c + k + 1, _whole(old[a + k]), _whole(new[c + k])) for k in range(b - a)
                ]
            else:
                rows += _different(old, new, range(a, b), range(c, d))
    return rows


def _different(old: list[str], new: list[str], left: range, right: range) -> Iterator[Row]:
    """Lines that differ, those of the same op side by side."""
    keys = [_key(old[k]) for k in left], [_key(new[k]) for k in right]
    for tag, a, b, c, d in difflib.SequenceMatcher(None, *keys, autojunk=False).get_opcodes():
        if tag == "equal":
            for k in range(b - a):
                i, j = left[a + k], right[c + k]
                before, after = _parts(old[i], new[j])
                yield Row("changed", i + 1, j + 1, before, after)
        else:
            for i in left[a:b]:
                yield Row("removed", i + 1, None, _whole(old[i]))
            for j in right[c:d]:
                yield Row("added", None, j + 1, after=_whole(new[j]))


def _key(line: str) -> str:
    head, _, defined = line.partition(" = ")
    match = _OP.search(defined if head.lstrip().startswith("%") else line)
    return (match[1] or match[0]) if match else line


def _whole(line: str) -> Parts:
    return [(False, line)]


def _parts(before: str, after: str) -> tuple[Parts, Parts]:
    """Both lines in pieces, those apart that only one of them has."""
    a, b = _TOKEN.findall(before), _TOKEN.findall(after)
    matcher = difflib.SequenceMatcher(None, a, b, autojunk=False)
    if matcher.quick_ratio() < _ALIKE:
        return _whole(before), _whole(after)
    left: Parts = []
    right: Parts = []
    for tag, i, j, k, m in matcher.get_opcodes():
        left.append((tag != "equal", "".join(a[i:j])))
        right.append((tag != "equal", "".join(b[k:m])))
    return [p for p in left if p[1]], [p for p in right if p[1]]
