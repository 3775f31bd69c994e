"""Results lie in memory as NumPy's do, whichever tier has made them (`keep-layouts`)."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

FORMS = {
    "chain": lambda a, b, axes: a * 2 + 1,
    "transposed": lambda a, b, axes: np.exp(a.transpose(axes)) * 3,
    "two operands": lambda a, b, axes: a * b + np.tanh(b),
    "both transposed": lambda a, b, axes: np.maximum(np.sqrt(a.T), np.sin(b.T)),
    "a branch": lambda a, b, axes: np.where(a > 0.5, a, b).transpose(axes) - 1,
    "reduced": lambda a, b, axes: (a * 2).transpose(axes).sum(axis=len(axes) // 2) * 1.5,
    "two results": lambda a, b, axes: (a * 2 + 1, (np.exp(b) * 2).T),
    "a view": lambda a, b, axes: (a * b).transpose(axes),
}


def strides(array):
    """Steps in memory; the step of an axis of size 1 says nothing."""
    return [step for step, size in zip(array.strides, array.shape, strict=True) if size != 1]


def laid_out(rng, shape, kind, axes):
    """An array of a shape with another layout, or of a shape that broadcasts to it."""
    if kind == "fortran":
        return np.asfortranarray(rng.random(shape))
    if kind == "permuted":
        back = [axes.index(k) for k in range(len(axes))]
        return rng.random([shape[k] for k in axes]).transpose(back)
    if kind == "strided":
        return rng.random([2 * size for size in shape])[tuple(slice(None, None, 2) for _ in shape)]
    if kind == "reversed":
        return rng.random(shape)[tuple(slice(None, None, -1) for _ in shape)]
    if kind == "broadcast":
        return rng.random([1 if k in axes[::2] else size for k, size in enumerate(shape)])
    return rng.random(shape)


KINDS = st.sampled_from(["c", "fortran", "permuted", "strided", "reversed", "broadcast"])


@pytest.mark.parametrize("profiling", [True, False])
@given(data=st.data())
@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
def test_strides_are_those_of_numpy(data, profiling):
    rank = data.draw(st.integers(2, 4), "rank")
    axes = data.draw(st.permutations(range(rank)), "axes")
    form = FORMS[data.draw(st.sampled_from(sorted(FORMS)), "form")]
    # Keys of the other executor say of layouts only whether an array is C-contiguous.
    kinds = KINDS if profiling else st.sampled_from(["c", "broadcast"])
    first, second = data.draw(kinds, "first"), data.draw(kinds, "second")
    before = pf.set_profiling_mode(profiling)
    try:
        compare(pf.jit(lambda a, b: form(a, b, axes)), form, data, (axes, first, second))
    finally:
        pf.set_profiling_mode(before)


def compare(f, form, data, drawn):
    axes, first, second = drawn
    rank, rng = len(axes), np.random.default_rng(0)
    # With new sizes comes a fallback, and a dynamic kernel, which knows of strides that change only
    # which one is 1.
    known = {first, second} <= {"c", "fortran"}
    for _ in range(2 if known else 1):
        sizes = st.lists(st.integers(2 if known else 1, 5), min_size=rank, max_size=rank)
        shape = data.draw(sizes, "shape")
        a, b = (laid_out(rng, shape, kind, axes) for kind in (first, second))
        want = form(a, b, axes)
        for _ in range(3):
            found = f(a, b)
            f.wait()
            several = isinstance(want, tuple)
            pairs = zip(found, want, strict=True) if several else [(found, want)]
            for ours, theirs in pairs:
                np.testing.assert_allclose(ours, theirs, 1e-12)
                assert strides(ours) == strides(theirs)
                assert ours.flags.writeable


def test_a_result_in_another_order_is_dispatched_natively():
    f = pf.jit(lambda x: x.T * 2 + 1)
    x = np.random.default_rng(1).random((6, 8))
    for _ in range(4):
        y = f(x)
        f.wait()
    np.testing.assert_array_equal(y, x.T * 2 + 1)
    assert y.strides == (8, 64)
    assert f.state().tier == "optimized"
    assert "3 hits, 0 misses" in f.explain()
    assert "dispatched in Python" not in f.explain()
    y[:] = 0  # its memory is nobody else's
    np.testing.assert_array_equal(f(x), x.T * 2 + 1)


def test_large_results_are_views_of_memory_of_their_own():
    f = pf.jit(lambda x: np.exp(x.T) + 1)
    x = np.random.default_rng(1).random((300, 200))
    for _ in range(4):
        f(x)
        f.wait()
    one, two = f(x), f(2 * x)
    assert not np.shares_memory(one, two)
    np.testing.assert_allclose(one, np.exp(x.T) + 1)
    assert one.flags.f_contiguous


def test_into_takes_any_layout():
    f = pf.jit(lambda x: x.T * 2 + 1)
    x = np.random.default_rng(1).random((6, 8))
    for out in (np.empty((8, 6)), np.empty((6, 8)).T, np.empty((16, 12))[::2, ::2]):
        for _ in range(3):
            f.into(out, x)
            f.wait()
            np.testing.assert_array_equal(out, x.T * 2 + 1)
            out[:] = 0


@pytest.mark.parametrize("ops", [128, 2])
def test_an_array_and_its_transpose_are_arrays_of_their_own(ops):
    """Also where the group is full, and the view is taken of what its kernel has made."""

    def both(x):
        y = x * 2 + 1
        return y, y.T

    with pf.knobs.override(max_fusion_ops=ops):
        f = pf.jit(both)
        x = np.random.default_rng(1).random((6, 8))
        for _ in range(4):
            y, t = f(x)
            f.wait()
            np.testing.assert_array_equal(t, y.T)
        assert f.state().counters["kernel_launches"] > 0
    y[0, 0] = -1
    assert t[0, 0] != -1


def test_a_change_of_layout_is_a_miss_and_is_right():
    f = pf.jit(lambda x: np.tanh(x) * 2)
    x = np.random.default_rng(1).random((6, 8))
    for array in (x, np.asfortranarray(x), x, np.asfortranarray(x)):
        for _ in range(3):
            y = f(array)
            f.wait()
            np.testing.assert_allclose(y, np.tanh(x) * 2)
            assert y.strides == (np.tanh(array) * 2).strides
    assert f.state().tier == "optimized"
