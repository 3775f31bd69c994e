"""How training begins: no step waits for a compiler, and with a warm disk none needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from profuse.executor.compile.worker import pool as pools

HERE = str(Path(__file__).parent)
PARENT = str(Path(pf.__file__).parents[1])
SEEN = (
    "profiled_runs",
    "evaluated_ops",
    "compiles",
    "kernel_launches",
    "disk_hits",
    "disk_misses",
    "profiles_restored",
    "guard_misses",
    "in_process_compiles",
)


def loss(w, b, x, y):
    d = np.tanh(x @ w + b) - y
    return (d * d).mean()


def data():
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s) for s in ((8, 4), (4,), (32, 8), (32, 4))]


def by_hand(steps):
    """The losses of gradient descent, with derivatives written out."""
    w, b, x, y = data()
    found = []
    for _ in range(steps):
        h = np.tanh(x @ w + b)
        d = h - y
        g = 2 * d / d.size * (1 - h * h)
        found.append((d * d).mean())
        w, b = w - 0.5 * x.T @ g, b - 0.5 * g.sum(0)
    return found


def by_grad(steps, after, **options):
    """The same by a gradient in a jitted function; ``after``: called with it after each step."""
    w, b, x, y = data()
    f = pf.jit(pf.value_and_grad(loss, wrt=("w", "b")), **options)
    found = []
    for _ in range(steps):
        value, (gw, gb) = f(w, b, x, y)
        w, b = w - 0.5 * gw, b - 0.5 * gb
        found.append(value)
        after(f)
    return found


def by_tape(steps, after, **options):
    """The same by a jitted loss on the tape, whose halves are compiled apart."""
    w, b, x, y = data()
    leaves = [pf.array(p, requires_grad=True) for p in (w, b)]
    f = pf.jit(loss, **options)
    found = []
    for _ in range(steps):
        value = f(*leaves, x, y)
        value.backward()
        with pf.no_grad():
            for p in leaves:
                p -= 0.5 * p.grad
                p.grad = None
        found.append(float(value))
        after(f)
    return found


WAYS = {"grad": by_grad, "tape": by_tape}
HALVES = {"grad": 1, "tape": 2}  # kernels of a step, each with a compile of its own
COMPILES = {"grad": 1, "tape": 3}  # with the graph that has the halves


def seen(f):
    """What has happened until now, as plain data."""
    state = f.state()
    return {"tier": state.tier, **{name: state.counters[name] for name in SEEN}}


def process(way, steps, waits, folder):
    """What each step of a new process has found, and whether it has loaded the compiler."""
    script = f"""
import json, sys
sys.path.insert(0, {HERE!r})
from test_training_starts import WAYS, by_hand, seen
import numpy as np
steps = []
def after(f):
    steps.append(seen(f))
    if {waits}:
        f.wait(60)
found = WAYS[{way!r}]({steps}, after)
np.testing.assert_allclose(found, by_hand({steps}), rtol=1e-9)
print(json.dumps([steps, "mlir" in sys.modules]))
"""
    env = {
        **os.environ,
        "PYTHONPATH": PARENT,
        "PROFUSE_CACHE": "on",
        "PROFUSE_BACKGROUND": "on",
        "PROFUSE_CACHE_DIR": str(folder),
    }
    done = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize("way", WAYS)
def test_a_second_process_trains_natively_from_its_first_step(way, tmp_path):
    cold, loads_mlir = process(way, 6, True, tmp_path)
    assert cold[0]["compiles"] == cold[0]["kernel_launches"] == 0 < cold[0]["evaluated_ops"]
    assert cold[-1]["disk_misses"] == COMPILES[way]
    assert cold[-1]["kernel_launches"] - cold[-2]["kernel_launches"] == HALVES[way]
    assert not loads_mlir, "workers compile"

    warm, loads_mlir = process(way, 3, False, tmp_path)
    for k, step in enumerate(warm, 1):
        assert step["tier"] == "optimized"
        assert (step["profiled_runs"], step["evaluated_ops"]) == (0, 0)
        assert step["kernel_launches"] == k * HALVES[way]
        assert step["disk_hits"] == step["profiles_restored"] == COMPILES[way]
        assert (step["disk_misses"], step["guard_misses"], step["in_process_compiles"]) == (0, 0, 0)
    assert not loads_mlir


@pytest.mark.parametrize("way", WAYS)
def test_no_step_of_a_cold_process_waits_for_a_compiler(way, monkeypatch):
    """Compiles end after the steps: a step that waited for one would find it ended."""
    go_on, compiled = threading.Event(), pools.compile_cached
    begun = []

    def held_up(*args, **options):
        begun.append(go_on.wait(20))
        return compiled(*args, **options)

    monkeypatch.setattr(pools, "compile_cached", held_up)
    steps, functions = [], []

    def after(f):
        steps.append(seen(f))
        functions[:] = [f]

    with pf.knobs.override(background=True, cache=False):
        try:
            found = WAYS[way](5, after)
        finally:
            go_on.set()
        (f,) = functions
        assert f.wait(60) and begun and all(begun)
    np.testing.assert_allclose(found, by_hand(5), rtol=1e-9)
    assert [step["tier"] for step in steps] == ["profiling", *["compiling"] * 4]
    assert {step["compiles"] for step in steps} == {step["in_process_compiles"] for step in steps}
    assert steps[-1]["compiles"] == steps[-1]["kernel_launches"] == 0
    assert f.state().counters["compiles"] > 0
