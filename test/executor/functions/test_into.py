"""`into`: results in the caller's arrays, the same from both dispatchers."""

from __future__ import annotations

import gc
import sys
import threading

import numpy as np
import profuse as pf
import pytest
from every_case import fewer
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import emitted_hits
from profuse.dialect.errors import ArgumentError, DTypeError, ShapeError, TraceError
from profuse.executor.observe.timeline import Timeline
from profuse.executor.settings.knobs import knobs

X = np.linspace(-1, 1, 64 * 48).reshape(64, 48)
Y = np.linspace(2, 3, 64 * 48).reshape(64, 48)
WANT = np.tanh(X + Y) * X


def mixed(x, y):
    return np.tanh(x + y) * x


def nested(x, y):
    return {"a": x * 2, "b": [x.sum(), (y - x)[1:]]}


def ready(fn, *args, native=True, runs=4, **kwargs):
    """A function whose calls of `into` have settled."""
    with knobs.override(native_dispatch=native, cache=False):
        f = pf.jit(fn, background=False, **kwargs)
        for _ in range(runs):
            f.into(_like(fn(*args)), *args)
    return f


def _like(value):
    if isinstance(value, dict):
        return {k: _like(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_like(v) for v in value)
    return np.empty_like(value)


def hits(f):
    return emitted_hits(f, into=True)


@pytest.fixture(params=[True, False], ids=["native", "python"])
def f(request):
    made = ready(mixed, X, Y, native=request.param)
    assert made.state().emitted_into == request.param
    with knobs.override(native_dispatch=request.param):
        yield made


def test_the_array_given_is_returned_and_holds_the_result(f):
    out = np.full_like(X, np.nan)
    before = dict(f.state().counters)
    with pytest.MonkeyPatch.context() as patch:  # no other memory is asked for
        patch.setattr("profuse.executor.memory.output_pool.empty", None)
        assert f.into(out, X, Y) is out
    np.testing.assert_allclose(out, WANT, rtol=1e-12)
    after = f.state().counters
    assert after["output_copies"] == before["output_copies"]
    assert after["calls"] == before["calls"] + 1
    assert after["kernel_launches"] == before["kernel_launches"] + 1
    assert f(X, Y) is not out


def test_arrays_that_kernels_cannot_write_are_filled_by_a_copy(f):
    wide = np.zeros((64, 96))
    given = {
        "strided": wide[:, ::2],
        "transposed": np.zeros((48, 64)).T,
        "reversed": np.zeros_like(X)[::-1],
        "misaligned": np.zeros(X.nbytes + 1, np.uint8)[1:].view(np.float64).reshape(X.shape),
    }
    for name, out in given.items():
        before = f.state().counters["output_copies"]
        assert f.into(out, X, Y) is out
        np.testing.assert_allclose(out, WANT, rtol=1e-12, err_msg=name)
        assert f.state().counters["output_copies"] == before + 1
    assert not wide[:, 1::2].any()


@pytest.fixture(scope="module")
def small():
    return {native: ready(mixed, X[:8], Y[:8], native=native) for native in (True, False)}


@pytest.mark.parametrize("native", [True, False])
@settings(max_examples=fewer(60), deadline=None)
@given(shift=st.integers(0, 90), step=st.sampled_from([1, -1]), which=st.integers(0, 1))
def test_overlapping_an_argument_changes_no_value(small, native, shift, step, which):
    """As with NumPy's out=: as if the result were there before anything is written."""
    f = small[native]
    memory = np.linspace(-1, 1, 48 * 8 * 3)
    arg = memory[100 : 100 + 384].reshape(8, 48)[::step]
    out = memory[100 + shift - 45 :][:384].reshape(8, 48)
    args = (arg, Y[:8]) if which == 0 else (Y[:8], arg)
    want = mixed(*args)
    f.into(out, *args)
    np.testing.assert_allclose(out, want, rtol=1e-12)


def test_an_array_next_to_an_argument_is_written_directly():
    f = ready(mixed, X[:8], Y[:8])
    memory = np.linspace(-1, 1, 384 * 3)
    before_it, arg, behind_it = memory.reshape(3, 8, 48)
    for out in (before_it, behind_it):
        before, copies = hits(f), f.state().counters["output_copies"]
        f.into(out, arg, Y[:8])
        assert (hits(f), f.state().counters["output_copies"]) == (before + 1, copies)


@pytest.mark.parametrize("native", [True, False])
def test_nested_results(native):
    f = ready(nested, X, Y, native=native)
    out = {"a": np.empty_like(X), "b": [np.empty(()), np.empty((63, 48))]}
    assert f.into(out, X, Y) is out
    want = nested(X, Y)
    np.testing.assert_allclose(out["a"], want["a"])
    np.testing.assert_allclose(out["b"][0], want["b"][0], atol=1e-9)
    np.testing.assert_allclose(out["b"][1], want["b"][1])


def test_results_that_are_one_value_fill_each_array():
    def twice(x, y):
        z = np.tanh(x) * y
        return z, z, x

    f = ready(twice, X, Y)
    out = tuple(np.empty_like(X) for _ in range(3))
    f.into(out, X, Y)
    for got, want in zip(out, twice(X, Y), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)


def test_refusals_in_words(f):
    frozen = np.empty_like(X)
    frozen.flags.writeable = False
    untouched = np.zeros((3, 3))
    for out, error, said in (
        (frozen, ArgumentError, "read-only"),
        (untouched, ShapeError, r"has shape \(3, 3\), the result \(64, 48\)"),
        (X.astype(np.float32), DTypeError, "is of float32, the result of float64"),
        (np.zeros((64, 48, 1)), ShapeError, "has shape"),
        ((np.empty_like(X),), ArgumentError, "the arrays given are"),
        (None, ArgumentError, "the arrays given are"),
        (2.0, ArgumentError, "no array but float"),
    ):
        with pytest.raises(error, match=said):
            f.into(out, X, Y)
    assert not untouched.any()
    with pytest.raises(ArgumentError, match=r"called wrongly|takes|missing"):
        f.into(np.empty_like(X), X)
    with pytest.raises(ArgumentError, match="share memory"):
        both = np.empty_like(X)
        ready(lambda x, y: (x + y, x - y), X, Y).into((both, both), X, Y)


def test_inside_a_trace_it_is_refused(f):
    with pytest.raises(TraceError, match="into is called while another function is traced"):
        pf.jit(lambda x: f.into(np.empty_like(X), x, x))(X)


def test_keyword_arguments_and_later_sizes(f):
    out = np.empty_like(X)
    np.testing.assert_allclose(f.into(out, X, y=Y), WANT, rtol=1e-12)
    for n in (3, 5, 64, 1, 0):
        out = np.empty_like(X[:n])
        for _ in range(3):
            f.into(out, X[:n], Y[:n])
            np.testing.assert_allclose(out, WANT[:n], rtol=1e-12)


def test_void_launches_and_misses_still_fill_the_array():
    f = ready(lambda x, i: np.tanh(x)[i] * 2, X, np.array([0, 3]))
    out = np.empty((2, 48))
    with pytest.raises(IndexError):
        f.into(out, X, np.array([0, 99]))
    f.into(out, X, np.array([5, 6]))
    np.testing.assert_allclose(out, np.tanh(X)[5:7] * 2, rtol=1e-12)


def test_captured_arrays_are_arguments_too():
    held = X.copy()
    f = ready(lambda y: (held + y)[::-1] * held, Y)
    want = (held + Y)[::-1] * held
    f.into(held, Y)  # the array that the function itself reads
    np.testing.assert_allclose(held, want, rtol=1e-12)


def test_without_profiling_and_from_text():
    with pf.knobs.override(profiling_mode=False, cache=False):
        f = pf.jit(mixed, background=False)
        out = np.empty_like(X)
        for _ in range(3):
            assert f.into(out, X, Y) is out
            np.testing.assert_allclose(out, WANT, rtol=1e-12)
        assert f.state().counters["kernel_launches"] >= 2


def test_flush_and_threads():
    f = ready(mixed, X, Y)
    wrong = []

    def work(k):
        out = np.empty_like(X)
        for n in range(60):
            f.into(out, X + k, Y)
            if not np.allclose(out, mixed(X + k, Y)):
                wrong.append(k)
            if k == 0 and n % 20 == 19:
                f.flush()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_no_reference_is_lost_or_kept():
    f = ready(mixed, X, Y)
    out = np.empty_like(X)

    def go(times):
        for _ in range(times):
            f.into(out, X, Y)
            f.into(out, out, Y)  # overlaps: goes to Python

    go(20)
    gc.collect()
    counts = [sys.getrefcount(o) for o in (out, X, Y)]
    blocks = sys.getallocatedblocks()
    go(300)
    gc.collect()
    assert [sys.getrefcount(o) for o in (out, X, Y)] == counts
    assert abs(sys.getallocatedblocks() - blocks) < 200
    before = hits(f)
    f.into(out, X, Y)
    assert hits(f) == before + 1


def test_a_trace_shows_these_calls(f):
    made = Timeline()
    made.start()
    try:
        f.into(np.empty_like(X), X, Y)
        f(X, Y)
    finally:
        made.stop()
    f.into(np.empty_like(X), X, Y)
    assert [call.tier for call in made.calls] == ["optimized", "optimized"]
