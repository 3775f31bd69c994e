"""Functions of libraries between kernels, in emitted code."""

import gc
import sys
import threading

import numpy as np
import profuse as pf
import pytest
from dispatched import described, hits, is_native
from internals import same
from profuse.dialect.ir.dtypes import F32
from profuse.dialect.ir.types import TensorType
from profuse.dialect.ops import host_call
from profuse.executor.dispatch.host_calls import expect
from profuse.executor.memory.offsets import Refused
from profuse.executor.settings.knobs import knobs


@pytest.fixture(autouse=True)
def python():
    with pf.knobs.override(unsupported="python"):
        yield


A = np.eye(4) * 3 + np.arange(16.0).reshape(4, 4) / 7
B = np.arange(12.0).reshape(4, 3)
HELD = np.linspace(1, 2, 4)


def inverse(a, b):
    return np.linalg.inv(a * 2 + 1) @ b + b


def returned(a):
    return np.linalg.inv(a + 1), (a * 2).sum(axis=0)


def several(a):
    u, s, vh = np.linalg.svd(a * 2)
    return (u * s) @ vh, s


def scalars(a):
    return np.linalg.det(a + 1) * a + np.linalg.norm(a * 2, 2)


def bare(a):
    return np.linalg.inv(a)


def chained(a):
    return np.sort(np.linalg.inv(a * 2), axis=0) + np.linalg.cholesky(a @ a.T + 1)


def numbers(a, q, n):
    return np.percentile(a * 2, q) + np.roll(np.fft.rfft(a + 1, n).real, 1)


def inside(d, pair):
    d["p"] = np.linalg.solve(pair[0] + 1, d["p"] * 2) - pair[1]
    return d["p"].sum()


def captured(a):
    return np.interp(a * 0.5, HELD, HELD * 2) + a


def written(a, out):
    out[:] = np.linalg.inv(a * 2) + out
    return out.sum()


CALLS = [
    (inverse, lambda: (A, B)),
    (returned, lambda: (A,)),
    (several, lambda: (A,)),
    (scalars, lambda: (A,)),
    (bare, lambda: (A,)),
    (chained, lambda: (A,)),
    (numbers, lambda: (A[0].copy(), 40.0, 4)),
    (inside, lambda: ({"p": HELD.copy()}, [A, HELD])),
    (captured, lambda: (A,)),
    (written, lambda: (A, np.ones((4, 4)))),
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("fn", "args"), CALLS, ids=lambda x: getattr(x, "__name__", ""))
def test_calls_are_those_of_the_python_dispatcher(fn, args):
    """Results, what is written, and counts."""
    native, other = pf.jit(fn), pf.jit(fn)
    for _ in range(12):
        ours, theirs = args(), args()
        found = native(*ours)
        with knobs.override(native_dispatch=False):
            expected = other(*theirs)
        same(found, expected)
        same(ours, theirs)
    assert hits(native) >= 6, native.explain()
    assert not other.state().emitted
    counters = {
        k: v
        for k, v in native.state().counters.items()
        if k not in ("compiles", "kernels_checked", "kernels_partly_checked")
    }
    assert counters.items() <= other.state().counters.items()
    assert counters["python_calls"] == 0


def test_functions_that_raise_do_so_as_in_python():
    f, singular = pf.jit(inverse), np.full((4, 4), -0.5)
    for _ in range(6):
        f(A, B)
    before = hits(f)
    assert before
    for _ in range(5):
        with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
            f(singular, B)
    assert hits(f) == before
    same(f(A, B), pf.jit(inverse)(A, B))
    assert hits(f) == before + 1


def test_other_sizes_and_kinds_of_what_is_given_are_left_to_python():
    """A guard behind the function misses; the call is counted once, as in Python."""

    def chosen(x):
        return x[x > 0] * 2 + 1

    f = pf.jit(chosen)
    for k in (5, 5, 5, 5, 7, 5, 9, 3, 5, 4, 4):
        x = np.where(np.arange(12) < k, 1.0, -1.0)
        np.testing.assert_array_equal(f(x), chosen(x))
    assert f.state().counters["calls"] == 11
    g = pf.jit(lambda x: np.unique(x + 0.0) * 2)
    for k in range(40):
        x = np.arange(12.0) % (3 + k % 5)
        np.testing.assert_array_equal(g(x), np.unique(x) * 2)
    assert g.state().counters["calls"] == 40


def test_leaves_that_give_up_are_not_tried_for_ever(monkeypatch):
    """The function runs twice in a call that is given up."""
    met = []
    monkeypatch.setattr(host_call, "_called", lambda *names: lambda args: met.append(args) or np.unique(*args))

    def fn(x):
        return np.unique(x * 2 + 1) * 2 + 1

    f = pf.jit(fn, strategy=[("static", 1)])
    for _ in range(6):
        f(np.arange(5.0))
    assert is_native(f, np.arange(5.0)) and len(met) == 7
    for k in range(200):
        x = np.arange(5.0) % (2 + k % 2)
        np.testing.assert_array_equal(f(x), np.array([1.0, 3.0, 5.0])[: 2 + k % 2] * 2 + 1)
    assert 207 < len(met) < 207 + 30


def test_nothing_leaks():
    f, g = pf.jit(inverse), pf.jit(several)
    singular = np.full((4, 4), -0.5)

    def go(times):
        for _ in range(times):
            f(A, B), g(A)
            with pytest.raises(np.linalg.LinAlgError):
                f(singular, B)
        gc.collect()
        return [sys.getrefcount(x) for x in (A, B, singular)], sys.getallocatedblocks()

    go(20)
    assert is_native(f, A, B) and is_native(g, A)
    counts, blocks = go(300)
    after, more = go(300)
    assert after == counts and abs(more - blocks) < 50


def test_threads_share_a_leaf():
    f = pf.jit(several)
    for _ in range(6):
        f(A)
    failed = []

    def work(k):
        for n in range(50):
            a = A + k + n
            u, s = f(a)
            if not (np.allclose(u, a * 2) and np.allclose(s, np.linalg.svd(a * 2)[1])):
                failed.append((k, n))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failed and hits(f) > 150


def test_into_and_donated_arguments_stay_in_python():
    """What a function gives may not fit when an argument is overwritten."""
    f = pf.jit(inverse, donate=("b",))
    for _ in range(6):
        b = B.copy()
        np.testing.assert_allclose(f(A, b), inverse(A, B))
    out = np.empty((4, 3))
    for _ in range(6):
        np.testing.assert_allclose(f.into(out, A, B), inverse(A, B))
    assert described(lambda: f(A, B[:2])) == described(lambda: pf.jit(inverse)(A, B[:2]))


def test_guards_on_values_that_emitted_code_does_not_hold_are_refused():
    with pytest.raises(Refused, match="a guard checks what emitted code does not hold"):
        expect([TensorType(F32, (3,))], [7], {})


@pytest.mark.parametrize("function", [lambda x: x[0], lambda x: x[1:, 0], lambda x: (x * 2, x[:1])[1]])
def test_parts_of_arguments_are_copies_in_all_tiers_where_errors_are_raised(function):
    """So `unsupported="raise"` says: a write to a result would else be seen in the argument from some call on."""
    jitted = pf.jit(function, unsupported="raise", background=False)
    x = np.arange(6.0).reshape(2, 3)
    for _ in range(6):
        result = jitted(x)
        np.testing.assert_array_equal(result, function(x))
        assert not np.shares_memory(result, x)
    assert jitted.state().tier == "optimized"
