"""Which objects draw random numbers: Python's and NumPy's generators."""

from __future__ import annotations

import functools
from typing import Any

_GENERATORS = frozenset({"Generator", "RandomState", "BitGenerator"})


def is_generator(value: Any) -> bool:
    """True for an object that draws random numbers and keeps a state."""
    kind: Any = type(value)
    return _draws(kind)


@functools.lru_cache(maxsize=1024)
def _draws(kind: Any) -> bool:
    # By name: neither module need be loaded, and another thread may be importing one right now.
    return any(
        (cls.__name__ in _GENERATORS and (cls.__module__ or "").startswith("numpy.random"))
        or (cls.__name__ == "Random" and cls.__module__ == "random")
        for cls in kind.__mro__
    )
