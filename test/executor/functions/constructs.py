"""The programs of the table of constructs in docs/tracing.md, one for each row."""

from __future__ import annotations

import functools
import hashlib
import os
import random
import sys
import threading
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import profuse as pf

Program = tuple[Callable[..., Any], Callable[[int], tuple]]
PROGRAMS: dict[str, Callable[[], Program]] = {}


def row(construct: str) -> Callable[[Callable[[], Program]], Callable[[], Program]]:
    """Enter what makes a function, and its arguments at each call, for a row of the table."""

    def enter(make: Callable[[], Program]) -> Callable[[], Program]:
        assert construct not in PROGRAMS, construct
        PROGRAMS[construct] = make
        return make

    return enter


def _array(turn: int) -> tuple[np.ndarray]:
    return (np.random.default_rng(turn).random(24) + 0.1,)


def _square(turn: int) -> tuple[np.ndarray]:
    return (np.random.default_rng(turn).random((4, 4)) + np.eye(4),)


class _Net:
    def __init__(self) -> None:
        self.scale, self.act, self.steps = 2.0, np.tanh, 0
        self.w = np.ones(24)

    @property
    def gain(self) -> float:
        return self.scale + 1.0


@row("`x * net.gain`, with a property of the user's")
def _property() -> Program:
    net = _Net()
    return lambda x: x * net.gain + 1.0, _array


@row('`get("s")`, `get = table.get`')
def _held_read() -> Program:
    get = {"s": 2.0}.get
    return lambda x: x * get("s") + 1.0, _array


@row("`model.act(x)`, where `model.act` is bound to a ufunc")
def _act() -> Program:
    model = _Net()
    return lambda x: model.act(x) + 1.0, _array


@row('`os.environ["N"]`')
def _environment() -> Program:
    os.environ["CONSTRUCT_OF_A_TEST"] = "3"
    return lambda x: x * float(os.environ["CONSTRUCT_OF_A_TEST"]) + 1.0, _array


@row("`from settings import gain`")
def _import() -> Program:
    sys.modules["construct_of_a_test"] = settings = types.ModuleType("construct_of_a_test")
    settings.gain = 3.0  # type: ignore[attr-defined]

    def f(x):
        from construct_of_a_test import gain

        return x * gain + 1.0

    return f, _array


@row("`rng.normal(size=3)`")
def _draw() -> Program:
    rng = np.random.default_rng(5)
    return lambda x: x[:3] * rng.normal(size=3) + 1.0, _array


@row("`if W.any():` of an array from outside")
def _contents() -> Program:
    weights = np.ones(24)

    def f(x):
        if weights.any():
            return x * 2.0 + 1.0
        return x

    return f, _array


@row("`for i in range(len(x)):` with elements, branches, `break`, `continue` and `return`")
def _loop() -> Program:
    def f(x):
        total = 0.0
        for i in range(len(x)):
            if x[i] < 0.2:
                continue
            if x[i] > 1.5:
                return -1.0
            total += x[i]
            if total > 9.0:
                break
        return total

    return f, _array


@row("`while moved > tol:`")
def _while() -> Program:
    def f(x):
        moved, k = x.max(), 0
        while moved > 1e-3:
            moved = moved * 0.5
            k += 1
        return k

    return f, _array


@row("`if x is y:` of arrays")
def _same_array() -> Program:
    kept = np.arange(4.0)

    def f(x):
        if x is kept:
            return x * 2.0
        return x + kept

    return f, lambda k: (np.ones(4),)


@row('`if x[i] < 0: raise ValueError(f"{x[i]}")`')
def _raise() -> Program:
    def f(x):
        total = 0.0
        for i in range(x.shape[0]):
            if x[i] < 0:
                raise ValueError(f"{x[i]}")
            total += x[i]
        return total

    return f, _array


@row("`assert np.all(x > 0), text`")
def _assert() -> Program:
    def f(x):
        assert np.all(x > 0), f"{x.min()}"
        return np.sqrt(x) + 1.0

    return f, _array


@row("`kept.append(x[i])` in a `for`, of a list that the function has made")
def _append() -> Program:
    def f(x):
        kept = []
        for i in range(x.shape[0]):
            if x[i] > 0.5:
                kept.append(x[i] * 2.0)  # noqa: PERF401
        return np.array(kept).sum() + len(kept)

    return f, _array


@row("`self.t += 1`, `self.w = self.w + x`")
def _attributes() -> Program:
    net = _Net()

    def f(x):
        net.steps += 1
        net.w = net.w * 0.5 + x
        return net.w.sum() + net.steps

    return f, _array


@row("`x[1:] += x[:-1]`, of an argument")
def _write() -> Program:
    def f(x):
        x[1:] += x[:-1].copy()
        return x.sum()

    return f, _array


@row('`p["w"] -= rate * p["g"]`, of an argument')
def _items() -> Program:
    def f(p):
        p["w"] -= 0.1 * p["g"]
        return p["w"].sum()

    return f, lambda turn: ({"w": _array(turn)[0], "g": np.ones(24)},)


@row('`with np.errstate(all="ignore"):`')
def _errstate() -> Program:
    def f(x):
        with np.errstate(all="ignore"):
            return np.log(x) + 1.0

    return f, _array


@row("`try: x[99]`, with `except IndexError`")
def _caught() -> Program:
    def f(x):
        try:
            return x[99] * 2.0 + x
        except IndexError:
            return x * 3.0 + 1.0

    return f, _array


@row("`try: x[99]`, with `except IndexError as error`")
def _caught_by_name() -> Program:
    def f(x):
        try:
            return x[99] * 2.0 + x
        except IndexError as error:
            return x * len(str(error))

    return f, _array


@row("`table(3)`, with `functools.lru_cache`")
def _cached() -> Program:
    @functools.lru_cache
    def table(n):
        return np.arange(n) + 1.0

    return lambda x: x[:3] * table(3) + 1.0, _array


@row("`np.linalg.inv(x)`, `np.sort(x)`")
def _host() -> Program:
    return lambda x: np.sort(np.linalg.inv(x) * 2.0, axis=1) + 1.0, _square


@row("`solve(x)`, of which `pf.host` has told")
def _host_function() -> Program:
    solve = pf.host(_solved, like=np.array)
    return lambda x: solve(x * 2.0) * 3.0 + 1.0, _square


def _solved(x):
    with threading.Lock():  # no trace sees through that
        return np.linalg.solve(x, np.eye(len(x)))


@row("`record(loss)`, `record = losses.append`")
def _held_write() -> Program:
    losses: list[float] = []
    record = losses.append

    def f(x):
        record(float(x.sum()))
        return x * 2.0 + len(losses)

    return f, _array


@row("`settings.history.append(loss)`, of a module")
def _module_list() -> Program:
    settings = types.ModuleType("construct_of_a_test")
    settings.history = []  # type: ignore[attr-defined]

    def f(x):
        settings.history.append(float(x.sum()))
        return x * 2.0 + len(settings.history)

    return f, _array


@row("`with lock:`")
def _lock() -> Program:
    lock = threading.Lock()

    def f(x):
        with lock:
            return x * 2.0 + 1.0

    return f, _array


@row("`float(path.read_text())`, `np.load(path)`, `db.execute(…)`")
def _file() -> Program:
    path = Path(__file__)
    return lambda x: x * len(path.read_text()) + 1.0, _array


@row("`random.random()`, `time.time()`")
def _chance() -> Program:
    def f(x):
        return x * (random.random() * 0.0 + time.time() * 0.0 + 2.0)

    return f, _array


_count = 0


@row("`count += 1` of a global")
def _global() -> Program:
    def f(x):
        global _count
        _count += 1
        return x * 2.0 + 1.0

    return f, _array


@row("`print(x.sum())`")
def _print() -> Program:
    def f(x):
        print(x.sum())
        return x * 2.0 + 1.0

    return f, _array


@row('`f"{x.max()}"`, where no exception takes it')
def _text() -> Program:
    return lambda x: x * len(f"{x.max():.1f}") + 1.0, _array


@row("`try: … raise ValueError`, with an `except` that catches it")
def _raised_and_caught() -> Program:
    def f(x):
        try:
            if x.min() < 0:
                raise ValueError
            return x * 2.0 + 1.0
        except ValueError:
            return x

    return f, _array


@row("`names[int(x[0])]`, of a list")
def _list_index() -> Program:
    factors = [2.0, 3.0]
    return lambda x: x * factors[int(x[0] > 0.5)] + 1.0, _array


@row('`with np.errstate(all="raise"):`')
def _raising_errstate() -> Program:
    def f(x):
        with np.errstate(all="raise"):
            return np.log(x) + 1.0

    return f, _array


@row("`digest.update(…)` of `hashlib`, and other functions of C that nobody has told to be pure")
def _of_c() -> Program:
    def f(x):
        digest = hashlib.sha256()
        digest.update(b"a")
        return x * digest.digest()[0] + 1.0

    return f, _array


@row("`pf.grad(f)`, where `f` raises as contents decide")
def _gradient() -> Program:
    def f(x):
        if x.min() < 0:
            raise ValueError
        return (x * x).sum()

    return f, _array


@row('`pf.jit(f, unsupported="raise")`, where `f` is Python\'s')
def _refused() -> Program:
    return lambda x: x * len(f"{x.max():.1f}") + 1.0, _array
