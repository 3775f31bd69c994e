"""Places in the user's source, which entries leave open, so that moved code is still found.

A function does not become another one because a line was added above it, or because a notebook has
named its cells after a new process. So an entry says "the third place of the graph" where its
compile said ``model.py:12``, and who reads it puts in its own places. For that to be exact the key
says which ops share a place.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ....dialect.errors import Loc

# As `Module.to_mlir` ends lines.
_LOCATION = re.compile(r' loc\("((?:[^"\\]|\\.)*)":(\d+):(\d+)\)$', re.MULTILINE)
_ESCAPE = re.compile(r"\\([0-9A-F]{2}|.)")


@dataclass(frozen=True)
class Places:
    """The places that IR text names.

    Attributes:
        bare: the text without them.
        listed: each place once, in order.
        indices: which of these each op that has one is at.
    """

    bare: str
    listed: tuple[Loc, ...]
    indices: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> Places:
        """Those of a graph as `Module.to_mlir` prints it."""
        listed: dict[Loc, int] = {}
        indices = [
            listed.setdefault(Loc(_unquoted(m[1]), int(m[2]), int(m[3])), len(listed))
            for m in _LOCATION.finditer(text)
        ]
        return cls(_LOCATION.sub(" loc", text), tuple(listed), tuple(indices))


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(lambda m: m[1] if len(m[1]) == 1 else chr(int(m[1], 16)), text)
