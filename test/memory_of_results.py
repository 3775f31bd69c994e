"""What a program can see of the memory of results: what they share, flags, byte order, kinds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np


def leaves(value: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and arrays in nested containers, each with where it is."""
    if isinstance(value, (tuple, list)):
        for k, item in enumerate(value):
            yield from leaves(item, f"{place}[{k}]")
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{place}[{key!r}]")
    else:
        yield place, value


def kind(leaf: Any) -> str:
    """An array or scalar by type, dtype with its byte order, and flags."""
    found = type(leaf).__name__
    if isinstance(leaf, (np.ndarray, np.generic)):
        found += f" {leaf.dtype.str}"
    if isinstance(leaf, np.ndarray):
        names = ("c_contiguous", "f_contiguous", "writeable")
        found += f" {leaf.shape}" + "".join(f" {n}" for n in names if getattr(leaf.flags, n))
    return found


def memory(result: Any, given: Any = ()) -> dict[Any, str]:
    """What can be seen of the memory of a result, beside that of what the function was given.

    Keys are places, and pairs of places that hold the same array or share memory.
    """
    results = list(leaves(result, "result"))
    found: dict[Any, str] = {place: kind(leaf) for place, leaf in results}
    arrays = [(p, x) for p, x in (*leaves(given, "given"), *results) if isinstance(x, np.ndarray)]
    inside = len([p for p, _ in arrays if p.startswith("given")])
    for (j, (p, a)), (_, (q, b)) in itertools.combinations(enumerate(arrays), 2):
        if j < inside and q.startswith("given"):
            continue  # the caller's own affair
        if a is b:
            found[p, q] = "is"
        elif a.size and b.size and np.may_share_memory(a, b) and np.shares_memory(a, b):
            found[p, q] = "shares"
    return found
