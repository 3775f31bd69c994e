"""Calls in emitted code, hits and every way out, for a memory checker (``make memcheck``).

Raises AssertionError where the calls did not take the ways that they are here for.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import profuse as pf

sys.path.insert(0, str(Path(__file__).parents[1]))
from dispatched import BIG, INDEX, X, gathered, hits, mixed, pair, scaled, warm

ROUNDS, THREADS = 200, 3
State = namedtuple("State", "first second")


def calls() -> None:
    f, g = warm(mixed, X, X), warm(pair, X, X)
    index, number, big = warm(gathered, X, INDEX), warm(scaled, X, 2), warm(mixed, BIG, BIG)
    for n in (2, 2, 3, 3, 3):
        f(X[:n].copy(), X[:n].copy())
    before = [hits(each) for each in (f, g, index, number, big)]

    def work() -> None:
        for k in range(ROUNDS):
            _ = f(X, X), g(X, X), number(X, k), index(X, INDEX), big(BIG, BIG)
            _ = f(X[:3].copy(), X[:3].copy()), f(X.T, X.T), f(X.astype(np.float64), X)
            for call, *args in ((index, X, INDEX + 9), (number, X, 2**2000), (f, X)):
                try:
                    call(*args)
                except (IndexError, pf.ProfuseError):
                    continue
                raise AssertionError("no error")

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = [hits(each) for each in (f, g, index, number, big)]
    assert all(b - a >= ROUNDS * THREADS for a, b in zip(before, after, strict=True))
    for _ in range(3):
        f.flush()
        for _ in range(4):
            f(X, X)


def nested(table, x, k=2):
    return State({"sum": table["a"] * x + table["b"][0]}, [table["b"][0] - k, None])


def containers() -> None:
    """Arguments by keyword, in containers and baked, and results in containers."""
    table = {"a": X, "b": (X + 1, "name")}

    def repeated(x, k):
        for _ in range(k):
            x = x * 2 + 1
        return x + 1

    f, g = warm(nested, table, X), warm(repeated, X, 2)
    for _ in range(3):
        f(table, X, k=3), g(X, 3)
    before = hits(f), hits(g)
    for k in range(ROUNDS):
        fresh = {"a": X.copy(), "b": (X + k, "".join(["na", "me"]))}
        _ = f(fresh, X), f(table, X, k=k), g(X, 2), g(X, 3)
        for other in ({"b": table["b"], "a": X}, {"a": X}, {"a": X, "b": [X]}, 3, {}):
            try:
                f(other, X)
            except (KeyError, TypeError, AttributeError, pf.ProfuseError):
                continue
    assert hits(f) - before[0] >= 2 * ROUNDS and hits(g) - before[1] == 2 * ROUNDS
    f.flush()


if __name__ == "__main__":
    with pf.knobs.override(background=False, cache=False):
        calls()
        containers()
    gc.collect()  # the code of all of them
