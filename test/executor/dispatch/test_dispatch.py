"""Calls in emitted code do, count and raise what the Python dispatcher does."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from cached_graphs import PACKAGE_PARENT
from dispatched import BIG, INDEX, X, Y, gathered, hits, is_native, mixed, outcome, pair, scaled, warm
from every_case import EVERY_CASE
from internals import FOLDER, emitted_call, entries_alive, entry_of, last_executor
from profuse.dialect.errors import ArgumentError
from profuse.executor.dispatch import attach
from profuse.executor.settings.knobs import knobs
from profuse.lowering.cpu import loader


def misaligned(shape=(4, 4)):
    raw = np.zeros(4 * int(np.prod(shape)) + 1, np.uint8)
    out = raw[1:].view(np.float32).reshape(shape)
    out[...] = 2
    return out


class Sub(np.ndarray):
    pass


def frozen(array):
    out = array.copy()
    out.flags.writeable = False
    return out


ODD = {
    "subclass": X.view(Sub),
    "read-only": frozen(X),
    "byte-swapped": X.astype(">f4"),
    "misaligned": misaligned(),
    "transposed": X.T,
    "strided": np.repeat(X, 2, axis=1)[:, ::2],
    "reversed": X[::-1],
    "broadcast": np.broadcast_to(X[0], (4, 4)),
    "other dtype": X.astype(np.float64),
    "other rank": X[0],
    "other sizes": X[:2],
    "empty": X[:0],
    "0-d": np.array(2, np.float32),
    "scalar": np.float32(2),
    "number": 2.0,
    "bool": True,
    "list": [1.0, 2.0, 3.0, 4.0],
    "none": None,
    "string": "x",
    "object": X.astype(object),
    "equal dtype": X.view(np.dtype(np.float32, metadata={"a": 1})),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ODD)
def test_odd_arguments(name):
    calls = [(X, Y)] * 4 + [(ODD[name], Y)] * 4 + [(X, ODD[name])] * 2 + [(X, Y)] * 3
    got, counted = outcome(mixed, calls, native=True)
    expected, python = outcome(mixed, calls, native=False)
    assert got == expected
    assert counted == python


def listed(x, y):
    return [x - y, x + 1]


def matmul(x, y):
    return np.exp(x @ y)


SEQUENCES = {
    "pair": (pair, [(X, Y)] * 5 + [(X[:2], Y[:2])] * 3 + [(X, Y)] * 2),
    "list": (listed, [(X, Y)] * 5),
    "scalar": (lambda x: x.sum(), [(X,)] * 5 + [(X[0],)] * 4 + [(X,)]),
    "complex": (lambda x: (x * x).sum(), [(X.astype(np.complex128),)] * 5),
    "index": (gathered, [(X, INDEX)] * 5 + [(X, INDEX + 1)] * 2 + [(X, -INDEX)] + [(X, INDEX)] * 2),
    "int": (scaled, [(X, 3)] * 5 + [(X, -1), (X, 2**63 - 1), (X, 2**63), (X, -(2**70)), (X, 7)]),
    "float": (scaled, [(X, 0.5)] * 5 + [(X, float("nan")), (X, 1e300), (X, True), (X, 2)]),
    "bool": (scaled, [(X, True)] * 4 + [(X, False)] * 2),
    "big": (mixed, [(BIG, BIG)] * 5),
    "back and forth": (mixed, [(BIG[:n], BIG[:n]) for n in (4, 4, 5, 5, 6, 6, 7, 4, 5, 6, 7, 7, 1, 4, 0, 5, 6)]),
    "row sizes": (pair, [(BIG[:n, :k], BIG[:n, :k]) for n in (4, 5, 6) for k in (70, 70, 3, 3, 1, 1)] * 2),
    "changing": (mixed, [(BIG[:n], BIG[:n]) for n in (4, 4, 5, 5, 6, 6, 7, 7, 300, 1, 0, 8, 4)]),
    "matmul": (matmul, [(X, Y)] * 5 + [(BIG[:70], BIG[:70])] * 5),
    "zero rank": (mixed, [(np.array(1.5), np.array(2.5))] * 5),
    "empty": (mixed, [(X[:0], Y[:0])] * 5 + [(X, Y)] * 2),
    "size one": (mixed, [(X[:1], Y[:1])] * 4 + [(X[::4], Y[::4])] * 3 + [(X[:1].T, Y[:1].T)] * 2),
    "dtypes": (mixed, [(X.astype(t), Y.astype(t)) for t in "fdifdihfdi?" for _ in range(3)]),
    "strided": (mixed, [(X.T, Y[::-1])] * 5 + [(X, Y)] * 3 + [(X.T, Y[::-1])] * 2),
    "captured": (lambda x: x * Y + X, [(X,)] * 5 + [(X[0],)] * 3),
    "identity": (lambda x, y: (x, x + y), [(X, Y)] * 4),
    "nested": (lambda x, y: {"a": x + y}, [(X, Y)] * 4),
    "trees": (lambda p, k=None: p["a"] * p["b"][0] + k, [({"a": X, "b": (Y, 2)}, X)] * 4),
    "nothing": (lambda: 3.0, [()] * 4),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", SEQUENCES)
def test_sequences(name):
    fn, calls = SEQUENCES[name]
    got, counted = outcome(fn, calls, native=True)
    expected, python = outcome(fn, calls, native=False)
    assert got == expected
    assert counted == python


def test_calls_are_native_and_misses_are_not():
    f = warm(mixed, X, Y)
    assert is_native(f, X, Y)
    assert is_native(f, frozen(X), X[::1])
    for other in (X[:2], X.T, X.astype(np.float64), misaligned(), X.view(Sub)):
        assert not is_native(f, other, other)
    before = hits(f)
    with pytest.raises(ArgumentError):
        f(X)
    f(x=X, y=Y)
    assert hits(f) == before


def test_dispatchers_do_not_need_llvms_linker(monkeypatch):
    monkeypatch.setattr(loader, "_link", None)
    f = warm(lambda x, y: x * 3 + y, X, Y)
    assert is_native(f, X, Y)


def test_one_tree_for_several_specialisations():
    f = warm(scaled, X, 2.0)
    for args in ((X[0], 2.0), (X.astype(np.float64), 2.0), (X, 2), (X[0], X[0])):
        for _ in range(3):
            f(*args)
    cells = entry_of(f).cells
    assert len(cells) == 5
    for args in ((X, 1.0), (X[0], 2.0), (X.astype(np.float64), 2.0), (X, 2), (X[0], X[0])):
        assert is_native(f, *args)
        assert np.allclose(f(*args), scaled(*args), atol=1e-6)


def test_fallbacks_are_leaves_of_the_tree():
    """A call that outer guards miss stays in emitted code, and says what they missed."""
    sizes = {n: (BIG[:n, :4], BIG[:n, 4:8]) for n in (4, 5, 6, 7)}
    packed = {n: tuple(a.copy() for a in args) for n, args in sizes.items()}
    f = warm(mixed, *packed[4])
    for n in (5, 5, 5, 6, 6, 6, 7, 7, 7):
        f(*packed[n])
    state = f.state()
    assert len(entry_of(f).cells) == 3, "two static specialisations and one dynamic"
    before = [(s.hits, s.misses) for s in state.specializations]
    for n in (7, 4, 5, 6, 5):
        assert is_native(f, *packed[n])
    after = f.state()
    gained = [(s.hits - h, s.misses - m) for s, (h, m) in zip(after.specializations, before, strict=True)]
    assert gained == [(1, 4), (2, 2), (2, 0)]
    for name, by in (("calls", 5), ("guard_misses", 6), ("fallback_calls", 6), ("guard_hits", 5)):
        assert after.counters[name] - state.counters[name] == by
    executor = last_executor(f)
    first = executor.optimized.guards[0]
    assert [t.shape for t in first.last_miss] == [(5, 4), (5, 4)]
    is_native(f, *packed[7])
    f(*sizes[6])  # not contiguous: Python sees this one
    assert [t.strides for t in first.last_miss] == [(70, 1), (70, 1)]
    is_native(f, *packed[7])
    assert [t.shape for t in first.last_miss] == [(7, 4), (7, 4)]


def test_rebuilding_keeps_all_counts():
    f = warm(mixed, X, Y)
    for k in range(1, 5):
        kind = "fdih"[k - 1]
        for _ in range(10):
            f(X.astype(kind), Y.astype(kind))
            f(X, Y)
    assert f.state().counters["calls"] == 3 + 80


def test_flush_goes_back_to_python():
    f = warm(mixed, X, Y)
    calls = f.state().counters["calls"]
    f.flush()
    assert not f.state().emitted
    f(X, Y)
    assert f.state().tier == "profiling"
    assert f.state().counters["calls"] == calls + 1
    f(X, Y)
    assert is_native(f, X, Y)


def test_code_goes_with_the_function():
    gc.collect()
    before = entries_alive()
    f = warm(mixed, X, Y)
    call, ref = emitted_call(f), weakref.ref(f)
    assert entries_alive() == before + 1
    del f
    gc.collect()
    assert ref() is None
    assert np.allclose(call(X, Y), mixed(X, Y), atol=1e-6)
    with pytest.raises(ReferenceError):
        call(X)
    del call
    gc.collect()
    assert entries_alive() == before


def test_finalizers_of_a_cycle_may_call():
    f, results = warm(mixed, X, Y), []

    class Holder:
        def __init__(self, call):
            self.call, self.me = call, self

        def __del__(self):
            results.append(self.call(X, Y))

    for _ in range(5):
        Holder(emitted_call(f))
    gc.collect()
    assert len(results) == 5


def test_last_executed_graph_in_every_thread():
    """R2.4: also of threads that only ever ran emitted code."""
    f, g = warm(mixed, X, Y), warm(scaled, X, 2.0)
    f(X, Y)
    assert pf.last_executed_graph().main.name == "mixed"
    g(X, 2.0)
    assert pf.last_executed_graph().main.name == "scaled"
    seen = []

    def work():
        seen.append(pf.last_executed_graph())
        f(X, Y)
        seen.append(pf.last_executed_graph().main.name)

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen == [None, "mixed"] * 3
    assert pf.last_executed_graph().main.name == "scaled"


def test_knob_switches_it_off():
    with knobs.override(native_dispatch=False):
        f = pf.jit(mixed)
        for _ in range(4):
            f(X, Y)
        assert not f.state().emitted


def test_refusal_is_an_event_and_changes_nothing(monkeypatch):
    monkeypatch.setattr(attach, "refusal", lambda: "this build is strange")
    f = pf.jit(mixed)
    for _ in range(4):
        assert np.allclose(f(X, Y), mixed(X, Y))
    assert not f.state().emitted
    assert any(e.kind == "dispatch-refused" and "strange" in e.reason for e in pf.events())
    assert f.state().counters["guard_hits"] == 3


INTERRUPT = """
import _thread, collections, itertools, signal, threading
import numpy as np, profuse as pf
from internals import emitted_call
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs of a shell
x = np.ones((4, 4), np.float32)
f = pf.jit(lambda a, b: np.tanh(a + b))
for _ in range(3): f(x, x)
assert f.state().emitted

def plain():
    while True: f(x, x)

def without_bytecode():
    collections.deque(map(emitted_call(f), itertools.repeat(x), itertools.repeat(x)), maxlen=0)

for loop in (plain, without_bytecode):
    threading.Timer(0.2, _thread.interrupt_main).start()
    try:
        loop()
    except KeyboardInterrupt:
        print("interrupted")
"""


def test_keyboard_interrupt_is_delivered():
    environment = os.environ | {"PYTHONPATH": f"{PACKAGE_PARENT}:{FOLDER}"}
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPT], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["interrupted"] * 2, done.stderr


UNDER_CHECKS = (
    "test_dispatch.py::test_odd_arguments[list]",
    "test_dispatch.py::test_odd_arguments[subclass]",
    "test_dispatch.py::test_sequences[nested]",
    "test_dispatch_arguments.py::test_nothing_is_leaked",
    "test_dispatch_arguments.py::test_items_live_until_the_call_ends",
    "test_dispatch_arguments.py::test_nested_results",
    "test_dispatch_leaks.py",
    "test_dispatch_threads.py::test_new_plans_while_threads_call",
    "../cuda/test_device_dispatch.py::test_nothing_is_leaked",
    "../cuda/test_device_dispatch.py::test_items_live_until_the_call_ends",
    "../cuda/test_device_dispatch.py::test_products_are_started_by_python[matmul-dynamic]",
)


@pytest.mark.slow
@pytest.mark.skipif("PROFUSE_INNER_TESTS" in os.environ, reason="is what runs inside")
def test_under_a_checking_interpreter():
    """Calls in emitted code again, among threads too, with CPython's own checks of memory and use.

    By default a few of each kind: of odd arguments, of containers, of what may leak, of threads and of devices.
    """
    environment = os.environ | {"PROFUSE_INNER_TESTS": "1"}
    whole = sorted({test.partition("::")[0] for test in UNDER_CHECKS})
    chosen = [str(Path(__file__).parent / test) for test in (whole if EVERY_CASE else UNDER_CHECKS)]
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *chosen],
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
