"""Helpers of the dispatch tests: functions warmed up to emitted code, and what a call does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import profuse as pf
from internals import emitted_hits
from profuse.executor.settings.knobs import knobs

X = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
Y = np.linspace(2, 3, 16, dtype=np.float32).reshape(4, 4)
INDEX = np.array([0, 3, 1])
BIG = np.linspace(0, 1, 300 * 70, dtype=np.float32).reshape(300, 70)


def mixed(x, y):
    return np.tanh(x + y) * x


def pair(x, y):
    z = x * y
    return z, z.sum(), z


def gathered(x, i):
    return x[i] * 2 + 1


def scaled(x, k):
    return x * k + k


def warm(fn: Callable[..., Any], *args: Any, runs: int = 3) -> Any:
    """A jitted function that dispatches these arguments in emitted code."""
    f = pf.jit(fn)
    for _ in range(runs):
        f(*args)
    assert f.state().emitted, f.explain()
    return f


def hits(f: Any) -> int:
    """Complete native calls so far."""
    return emitted_hits(f)


def is_native(f: Any, *args: Any, **kwargs: Any) -> bool:
    """Whether this call is answered by emitted code."""
    before = hits(f)
    f(*args, **kwargs)
    return hits(f) == before + 1


def described(call: Callable[[], Any]) -> Any:
    """What a call does, comparable: types and bytes of its results, or its error."""
    try:
        return _describe(call())
    except Exception as error:
        return type(error), str(error)


def _describe(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return type(value), [_describe(v) for v in value]
    if isinstance(value, dict):
        return {key: _describe(v) for key, v in value.items()}
    array = np.asarray(value)
    return (type(value), array.dtype, array.shape, array.strides, array.flags.writeable, (array.tobytes()))


def outcome(fn: Callable[..., Any], calls: Iterable[tuple], *, native: bool) -> tuple[list, dict]:
    """What each call of a new jitted function does, and all that is counted in the end."""
    with knobs.override(native_dispatch=native):
        f = pf.jit(fn)
        done = [described(lambda args=args: f(*args)) for args in calls]
        assert native or not f.state().emitted
        state = f.state()
    # How far a check gets depends on the time.
    counted = {name: n for name, n in state.counters.items() if "_checked" not in name}
    counted["guards"] = [(s.guard, s.hits, s.misses, s.executor) for s in state.specializations]
    lines = f.explain().splitlines()
    counted["text"] = [w for w in lines if " ms" not in w and "checked" not in w and "dispatched in Python" not in w]
    return done, counted
