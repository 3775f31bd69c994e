"""The holders of an array: memory that nobody else can see may be written to."""

from __future__ import annotations

import sys

import numpy as np


def is_sole(items: list, k: int) -> bool:
    """True if nobody holds an item of a list but the list; views of an array hold it, too."""
    return _holders(items, k) <= _SOLE


def _holders(items: list, k: int) -> int:
    return sys.getrefcount(items[k])


_SOLE = _holders([np.empty(1)], 0)
"""The number that Python counts for an array that is in one list alone, which its versions do not agree on."""
