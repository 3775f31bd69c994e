"""Source locations in cache entries: entries contain numbers in their place.

A cached result must still be found if a line is added above the user's function, or if a notebook
gives its cells new names. So an entry contains "location number 3 of the graph" instead of
``model.py:12``, and a reader fills in the locations of its own graph. To make the numbers
unambiguous, the key contains which ops share a location.
"""

from __future__ import annotations

import re

from ....dialect.dataclass import dataclass
from ....dialect.errors import Loc

# The form in which `Module.to_mlir` prints a location, at the end of a line.
_LOCATION = re.compile(r' loc\("((?:[^"\\]|\\.)*)":(\d+):(\d+)\)$', re.MULTILINE)
_ESCAPE = re.compile(r"\\([0-9A-F]{2}|.)")


@dataclass(frozen=True)
class SourceLocations:
    """The source locations (*places*) in IR text.

    Attributes:
        bare: the text without its locations.
        listed: the distinct locations, in order of appearance.
        indices: for each op that has a location, the index of the location in ``listed``.
    """

    bare: str
    listed: tuple[Loc, ...]
    indices: tuple[int, ...]

    @classmethod
    def of(cls, text: str) -> SourceLocations:
        """The locations in a graph that `Module.to_mlir` has printed."""
        listed: dict[Loc, int] = {}
        indices = [
            listed.setdefault(Loc(_unquoted(m[1]), int(m[2]), int(m[3])), len(listed)) for m in _LOCATION.finditer(text)
        ]
        return cls(_LOCATION.sub(" loc", text), tuple(listed), tuple(indices))


def _unquoted(text: str) -> str:
    return _ESCAPE.sub(lambda m: m[1] if len(m[1]) == 1 else chr(int(m[1], 16)), text)
