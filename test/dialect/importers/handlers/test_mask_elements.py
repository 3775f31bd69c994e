"""What needs the elements that a mask picks has them from the host, between kernels."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError

X = np.array([3.0, -1, 2, 5, -4, 1.5])


def assigned(x):
    y = x[x > 0]
    y[0] = 9
    return y.sum(), y * 2


def viewed_and_added_to(x):
    y = x[x > 0]
    z = y[:]
    y += 1
    return z, y.max(), z.sum()


def written_through_a_view(x):
    y = x[x > 0]
    v = y.reshape(2, 2)
    v[0] = 7
    return y.sum(), y


def written_in_both_views(x):
    y = x[x > 0]
    z = y[:]
    z += 1
    y[1] = 0
    return z, y.sum()


def sorted_in_place(x):
    y = x[x > 0]
    y.sort()
    return y, y.sum()


def sorted_and_written_back(x):
    y = x[x > 0]
    s = np.sort(y)
    z = np.zeros(6)
    z[x > 0] = y * 2
    return s, z


def changed_after_sorting(x):
    y = x[x > 0]
    s = np.sort(y)
    y *= 2
    return y, s, y.sum()


def real_part_written(x):
    y = (x + 1j * x)[x > 0]
    y.real[:] = 3
    return y


def array_written_afterwards(x):
    x = x.copy()
    y = x[x > 0]
    x[:] = 0
    return y, y.sum()


def added_to_by_an_array(x):
    y = x[x > 0]
    z = y
    z += np.arange(4.0)
    return y, z.sum()


CASES = {
    "returned": lambda x: x[x > 0],
    "of two masks": lambda x: x[x > 0][:1] + x[x < 0],
    "beside an array": lambda x: x[x > 0] + np.ones(4),
    "sorted": lambda x: np.sort(x[x > 0]),
    "reshaped": lambda x: x[x > 0].reshape(-1, 1),
    "one of them": lambda x: x[x > 0][0],
    "accumulated": lambda x: x[x > 0].cumsum(),
    "concatenated": lambda x: np.concatenate([x[x > 0], x[x < 0]]),
    "median": lambda x: np.median(x[x > 0]),
    "mask of a mask": lambda x: x[x > 0][x[x > 0] > 2],
    "product": lambda x: x[x > 0] @ np.ones(4),
    "transposed": lambda x: np.stack([x, x], 1)[x > 0].T,
    "a list": lambda x: x[[True, False] * 3],
    "a bool": lambda x: x[True],
} | {
    f.__name__: f
    for f in (
        assigned,
        viewed_and_added_to,
        written_through_a_view,
        written_in_both_views,
        sorted_in_place,
        sorted_and_written_back,
        changed_after_sorting,
        real_part_written,
        array_written_afterwards,
        added_to_by_an_array,
    )
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CASES)
def test_elements_are_those_of_numpy_at_each_tier(name):
    fn = CASES[name]
    expected = fn(X.copy())
    f = pf.jit(fn, unsupported="raise")
    for _ in range(3):
        found = f(X.copy())
        f.wait()
        pairs = zip(found, expected, strict=True) if type(expected) is tuple else [(found, expected)]
        for a, b in pairs:
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(a, b)
    assert f.state().counters["traces"] == 1


def test_what_stays_at_its_places_calls_nothing():
    f = pf.jit(lambda x: np.tanh(x[x > 0]).sum() + x[x > 0].mean())
    f(X)
    assert "runs on the host" not in f.explain()


def test_jitted_functions_in_a_trace_take_what_a_mask_picks():
    double = pf.jit(lambda y: np.sort(y) * 2)
    f = pf.jit(lambda x: double(x[x > 0]) + 1, unsupported="raise")
    for _ in range(3):
        np.testing.assert_allclose(f(X), np.sort(X[X > 0]) * 2 + 1)
        f.wait()
    g = pf.jit(lambda x: pf.grad(lambda y: (y**3).sum())(x[x > 0]), unsupported="raise")
    np.testing.assert_allclose(g(X), 3 * X[X > 0] ** 2)


def test_a_recursion_on_what_a_mask_picks_is_pythons():
    def quicksort(a):
        if len(a) <= 1:
            return a
        pivot = a[len(a) // 2]
        return np.concatenate([sort(a[a < pivot]), a[a == pivot], sort(a[a > pivot])])

    sort = pf.jit(quicksort, unsupported="python")
    for _ in range(3):
        np.testing.assert_array_equal(sort(X), np.sort(X))
    assert "depends on array contents" in sort.explain() and "ndarray.view" not in sort.explain()


def test_elements_of_a_mask_outside_of_a_branch_are_refused():
    def fn(x):
        y = x[x > 0]
        return pf.cond(x.sum() > 0, lambda: np.sort(y)[0], lambda: y[0])

    with pytest.raises(TraceError, match="picked outside of it"):
        pf.jit(fn, unsupported="raise")(X)
    assert pf.jit(fn, unsupported="python")(X) == 1.5


@pytest.mark.sampled(3)
@pytest.mark.parametrize("other", [np.arange(3.0), np.ones((1, 3)), np.arange(3), 2.0])
@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3), (5, 2, 1)])
def test_operators_in_place_keep_the_shape_or_raise(shape, other):
    """NumPy makes no axis of what a mask has picked longer: (3, 1) += (3,) is an error."""

    def fn(x, mask, other):
        picked = x[mask]
        picked += other
        return picked

    x, mask = np.arange(float(np.prod(shape))).reshape(shape), np.array([True, False, True, True, False])
    f = pf.jit(fn, background=False)
    try:
        expected = fn(x, mask, other)
    except ValueError:
        for _ in range(3):
            with pytest.raises(ValueError, match="broadcast"):
                f(x, mask, other)
        return
    for _ in range(3):
        found = f(x, mask, other)
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
