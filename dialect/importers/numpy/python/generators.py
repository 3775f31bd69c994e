"""The objects that draw random numbers: Python's and NumPy's generators."""

from __future__ import annotations

import functools
import threading
from contextlib import suppress
from typing import Any

import numpy as np

_REENTRANT = type(threading.RLock())
_PATIENCE = 1.0  # seconds; longer, two threads would wait for each other
_own: list[Any] = []  # the generator of `own_generator`, once it is made
_making = threading.Lock()
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


def is_plain_generator(value: Any) -> bool:
    """True for a `np.random.Generator`, and for no object of a subclass."""
    kind: Any = type(value)
    return kind.__name__ == "Generator" and kind.__module__ == "numpy.random._generator"


def restores(generator: Any) -> bool:
    """True for bit generators of NumPy, whose state is all that they have."""
    return type(generator.bit_generator).__module__.startswith("numpy.random.")


def state_of_generator(generator: Any) -> Any:
    """The state of a generator of random numbers; None = it is the system's, which has no state to restore."""
    if hasattr(generator, "bit_generator"):
        return generator.bit_generator.state
    if hasattr(generator, "getstate"):
        try:
            return generator.getstate()
        except NotImplementedError:
            return None
    return generator.get_state(legacy=False) if hasattr(generator, "get_state") else generator.state


def put_state(generator: Any, state: Any) -> None:
    """Give a generator back a state that `state_of_generator` has told."""
    if hasattr(generator, "bit_generator"):
        generator.bit_generator.state = state
    elif hasattr(generator, "setstate"):
        generator.setstate(state)
    elif hasattr(generator, "set_state"):
        generator.set_state(state)
    else:
        generator.state = state


def same_state(a: Any, b: Any) -> bool:
    """True if two states of generators are equal."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same_state(a[k], b[k]) for k in a)
    return np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b


def reentrant(generator: Any) -> Any:
    """The lock that other threads need to draw, if this thread can draw while it has it."""
    bits = getattr(generator, "bit_generator", generator)
    lock = getattr(bits, "lock", None)
    return lock if isinstance(lock, _REENTRANT) else None


def locked(generator: Any) -> Any:
    """The same, which this thread has now; None if it does not get it."""
    lock = reentrant(generator)
    return lock if lock is not None and lock.acquire(timeout=_PATIENCE) else None


def own_generator() -> Any:
    """The generator of this package, which `profuse.nn` draws from, made at its first use: one in a process."""
    if not _own:
        with _making:
            if not _own:
                _own.append(np.random.Generator(np.random.Philox()))
    return _own[0]


def is_own_generator(value: Any) -> bool:
    """True for the generator of `own_generator`."""
    return bool(_own) and _own[0] is value


def note_drawn(error: BaseException) -> None:
    """Have an error that the function itself raised tell that it had drawn before."""
    with suppress(AttributeError):
        error.__profuse_drawn__ = True  # type: ignore[attr-defined]


def has_drawn(error: BaseException) -> bool:
    """True if the function had drawn before it raised this error."""
    return getattr(error, "__profuse_drawn__", False)
