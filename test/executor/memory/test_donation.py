"""`jit(donate=…)`: what may be overwritten is, nothing else ever is, and values stay the same."""

from __future__ import annotations

import gc
import sys
from dataclasses import replace

import numpy as np
import profuse as pf
import pytest
from dispatched import hits
from every_case import EVERY_CASE
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import last_executor
from profuse.dialect.errors import KnobError
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.settings.knobs import knobs

N = 24
X = np.linspace(-1, 1, N * N).reshape(N, N)
W = np.linspace(-0.3, 0.4, N * N).reshape(N, N).T.copy()


@pytest.fixture(autouse=True)
def uncached():
    with knobs.override(cache=False):
        yield


def ready(fn, *args, native=True, strategy=None, runs=4):
    with knobs.override(native_dispatch=native):
        f = pf.jit(fn, donate="x", strategy=strategy, background=False)
        for _ in range(runs):
            f(*(a.copy() if isinstance(a, np.ndarray) else a for a in args))
    assert f.state().emitted == native, f.explain()
    return f


def donated(f):
    return f.state().counters["donated_results"]


# What the kernels can do in place of x, and what they cannot.
IN_PLACE = {
    "elementwise": lambda x, w: np.tanh(x * 2 + w) - x,
    "row": lambda x, w: x * w[0] + x,
    "product": lambda x, w: np.tanh(x @ w),
    "residual": lambda x, w: np.tanh(x @ w) * 0.5 + x,
    "running sum": lambda x, w: np.cumsum(x, axis=0) + w,
    "choice": lambda x, w: np.where(x > w, x, 0.5 * w),
    "column scales": lambda x, w: x.sum(axis=1) * w,
}
APART = {
    "transposed": lambda x, w: x.T * 2 + x,
    "reversed": lambda x, w: x[::-1] * w,
    "shifted": lambda x, w: np.concatenate([x[1:], x[:1]]) * w,
    "bare product": lambda x, w: x @ w,
    "other type": lambda x, w: (x * w).astype(np.float32),
    "other shape": lambda x, w: (x * w)[1:],
    "gathered": lambda x, w: x[:, np.array([1, 0] * (N // 2))] + x,
    "normalised rows": lambda x, w: x - x.mean(axis=1, keepdims=True) * w,
}


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", IN_PLACE)
def test_results_take_the_memory_of_the_argument(name, native):
    f = ready(IN_PLACE[name], X, W, native=native)
    state, before = X.copy(), donated(f)
    for _ in range(5):
        want = IN_PLACE[name](state, W)
        result = f(state, W)
        assert result is state
        np.testing.assert_allclose(result, want, rtol=1e-12)
    assert donated(f) == before + 5


@pytest.mark.parametrize("native", [True, False])
def test_one_of_several_results_takes_the_memory_that_all_are_made_of(native):
    def fn(x, w):
        return w * 2 - 1, x + w, np.where(w > 0, x * w, w)

    f = ready(fn, X, W, native=native)
    before = donated(f)
    for _ in range(3):
        state = X.copy()
        results = f(state, W)
        assert sum(r is state for r in results) == 1
        for got, want in zip(results, fn(X, W), strict=True):
            np.testing.assert_array_equal(got, want)
    assert donated(f) == before + 3


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", APART)
def test_kernels_that_cannot_leave_the_argument_alone(name, native):
    f = ready(APART[name], X, W, native=native)
    x = X.copy()
    got, want = f(x, W), APART[name](X, W)
    for a, b in zip(*((v if isinstance(v, tuple) else (v,)) for v in (got, want)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)
    assert np.array_equal(x, X)
    assert donated(f) == 0
    assert "Nothing is made in the memory of donated arguments" in f.explain()


@pytest.mark.parametrize("native", [True, False])
def test_only_plain_memory_that_nobody_else_has_is_overwritten(native):
    fn = IN_PLACE["residual"]
    f = ready(fn, X, W, native=native)
    whole = np.vstack([X, X])
    frozen = X.copy()
    frozen.flags.writeable = False
    wide = np.repeat(X, 2, axis=1)
    given = {
        "view": (whole[:N], W),
        "read-only": (frozen, W),
        "strided": (wide[:, ::2], W),
        "transposed": (X.copy().T, W),
        "reversed": (X.copy()[::-1], W),
        "both arguments": (W, W),
        "part of the other": (whole[: 2 * N][N:], whole[:N]),
        "other dtype": (X.astype(np.float32), W.astype(np.float32)),
    }
    for name, (x, w) in given.items():
        before = x.copy(), w.copy(), donated(f)
        got = f(x, w)
        np.testing.assert_allclose(got, fn(*before[:2]), rtol=1e-4, err_msg=name)
        assert np.array_equal(x, before[0]), name
        assert np.array_equal(w, before[1]), name
        assert not np.shares_memory(got, x), name
        assert donated(f) == before[2], name


def test_arguments_that_are_not_donated_never_change():
    f = ready(lambda x, w: np.tanh(w) * 2 + x, X, W)
    w = W.copy()
    for _ in range(3):
        f(X.copy(), w)
    assert np.array_equal(w, W)
    captured = X.copy()
    g = ready(lambda x: x * 2 + captured, X)
    result = g(captured)
    assert np.array_equal(captured, X)
    np.testing.assert_allclose(result, 3 * X)


@pytest.mark.parametrize("native", [True, False])
def test_what_a_later_group_reads_is_kept(native):
    def fn(x, w):
        for _ in range(3):
            w = np.tanh(w @ w) + x
        return w * 2 + 1

    with knobs.override(max_fusion_ops=2):
        f = ready(fn, X, W, native=native)
        state = X.copy()
        for _ in range(3):
            np.testing.assert_allclose(f(state.copy(), W), fn(state, W), rtol=1e-12)


@pytest.mark.parametrize("native", [True, False])
def test_an_early_result_leaves_alone_what_is_read_later(native):
    def fn(x, w):
        y = x * w + 1
        return y, np.tanh(y @ w) - x

    with knobs.override(max_fusion_ops=2):
        f = ready(fn, X, W, native=native)
    for _ in range(3):
        x = X.copy()
        for got, want in zip(f(x, W), fn(X, W), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-12)


def test_several_arguments_and_structures():
    def fn(x, w, k):
        return {"a": np.tanh(x["s"]) * k + w}

    f = pf.jit(fn, donate=["x", 1], background=False)
    for _ in range(4):
        x, w = {"s": X.copy()}, W.copy()
        got = f(x, w, 2.0)
        np.testing.assert_allclose(got["a"], np.tanh(X) * 2 + W, rtol=1e-12)
    assert got["a"] is x["s"]
    assert np.array_equal(w, W)


def test_bad_settings_in_words():
    for bad in ("y", 5, ["x", "q"], 1.5):
        with pytest.raises(KnobError, match="expected names or positions of parameters"):
            pf.jit(IN_PLACE["row"], donate=bad)


def test_misses_and_fallbacks_give_right_values():
    fn = IN_PLACE["elementwise"]
    f = ready(fn, X, W)
    for n in (N, 3, 5, 3, N, 7, 7, N):
        x, w = X[:n].copy(), W[:n].copy()
        np.testing.assert_allclose(f(x.copy(), w), fn(x, w), rtol=1e-12)


def test_no_reference_is_lost_or_kept():
    f = ready(IN_PLACE["row"], X, W)
    x = X.copy()

    def go(times):
        for _ in range(times):
            assert f(x, W) is x

    go(10)
    gc.collect()
    counts, blocks = sys.getrefcount(x), sys.getallocatedblocks()
    before = hits(f)
    go(300)
    gc.collect()
    assert hits(f) == before + 300
    assert sys.getrefcount(x) == counts
    assert abs(sys.getallocatedblocks() - blocks) < 200


def test_loops_written_in_place_are_declared_independent():
    """Else LLVM would find the addresses equal when it runs, and not vectorise."""
    f = ready(lambda x, w: x * w + 1, X, W)
    request = last_executor(f).request
    assert request.in_place
    made = [
        next(iter(compile_graph(replace(request, in_place=on, keep_stages=True)).kernels.values()))
        for on in (True, False)
    ]
    assert made[0].abi.in_place == ((0, 0), (0, 1))
    assert made[1].abi.in_place == ()
    assert "llvm.loop.parallel_accesses" in made[0].stages["llvm"]
    assert "noalias" not in made[0].stages["loops"]
    assert "noalias" in made[1].stages["loops"]


@pytest.mark.parametrize(
    "fn", [lambda x, w: w @ x.T, lambda x, w: x.T @ w, lambda x, w: w @ w + x[0]], ids=["right", "left", "bias"]
)
def test_products_do_not_overwrite_what_they_read_a_view_of(fn):
    f = ready(fn, X, W)
    np.testing.assert_allclose(f(X.copy(), W), fn(X, W), rtol=1e-9, atol=1e-12)
    assert donated(f) == 0


def _grown(data, x, w):
    """A random expression of the two arrays, as a function of them."""
    unary = [
        np.tanh,
        lambda a: a * 0.5 + 1,
        lambda a: a[::-1],
        lambda a: a.T,
        lambda a: a - a[0],
        lambda a: a - a.mean(axis=1, keepdims=True),
        lambda a: a.sum(axis=0) + a,
        lambda a: np.where(a > 0, a, -a),
    ]
    binary = [np.add, np.multiply, np.matmul, np.maximum, lambda a, b: a * b[0] + b]
    plan = []
    for k in range(data.draw(st.integers(1, 5))):
        two = data.draw(st.booleans())
        plan.append(
            (
                data.draw(st.sampled_from(binary if two else unary)),
                [data.draw(st.integers(0, k + 1)) for _ in range(1 + two)],
            )
        )

    def fn(x, w):
        known = [x, w]
        for op, operands in plan:
            known.append(op(*(known[o] for o in operands)))
        return known[-1]

    return fn


@settings(max_examples=40 if EVERY_CASE else 15, deadline=None)
@given(st.data())
def test_random_graphs_give_what_they_give_without_donation(data):
    fn = _grown(data, X, W)
    size = data.draw(st.integers(1, 3))
    with knobs.override(cache=False, max_fusion_ops=size * size * 3):
        plain = pf.jit(fn, background=False)
        given = pf.jit(fn, donate="x", background=False)
        for scale in (1.0, 0.5, 0.25, 2.0):
            x = X * scale
            want = plain(x, W)
            got = given(x.copy(), W)
            np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("native", [True, False])
@pytest.mark.parametrize("name", ["elementwise", "residual"])
def test_dynamic_kernels_do_so_for_all_sizes(name, native):
    fn = IN_PLACE[name]
    f = ready(fn, X, W, native=native, strategy=[("dynamic", 1)])
    before = donated(f)
    for n in (N, 5, 17, 2, 64):
        x, w = np.full((n, n), 0.5), np.eye(n)
        want = fn(x.copy(), w)
        assert f(x, w) is x
        np.testing.assert_allclose(x, want, rtol=1e-12)
    assert donated(f) == before + 5


def test_without_profiling_nothing_is_overwritten():
    with pf.knobs.override(profiling_mode=False):
        f = pf.jit(IN_PLACE["row"], donate="x", background=False)
        x = X.copy()
        for _ in range(3):
            np.testing.assert_allclose(f(x, W), IN_PLACE["row"](X, W), rtol=1e-12)
        assert np.array_equal(x, X)


def test_arrays_that_cannot_be_given_miss_no_guard():
    """Views and overlaps are Python's: it is no guard that does not hold."""
    counted = {}
    for native in (True, False):
        with knobs.override(native_dispatch=native, cache=False, check="off"):
            f = pf.jit(lambda x, y: x * 2 + y, donate="x", background=False, strategy=[("static", 1), ("dynamic", 2)])
            for k in range(30):
                n = (8, 8, 8, 16, 8, 16)[k % 6]
                memory = np.ones((n, n), np.float32)
                x = memory.copy() if k % 5 else memory[:]
                f(x, np.ones((n, n), np.float32) if k % 7 else x)
            assert f.state().emitted is native
            counted[native] = f.state().counters
    assert counted[True] == counted[False]
    assert counted[True]["guard_misses"] == 10
