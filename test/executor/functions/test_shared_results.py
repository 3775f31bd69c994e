"""Results that are arguments, or views of them: NumPy's objects and memory."""

import numpy as np
import profuse as pf
import pytest


@pytest.fixture(autouse=True)
def python():
    """The default, which the other tests turn off."""
    with pf.knobs.override(unsupported="python"):
        yield


def calls(function, *args, times=4):
    """The results of so many calls, the last of which are served by a plan."""
    f = pf.jit(function)
    return f, [f(*args) for _ in range(times)]


VIEWS = {
    "part": lambda x: x[1:, ::-1],
    "row": lambda x: x[-1],
    "column": lambda x: x[:, x.shape[1] // 2],
    "transpose": lambda x: x.T,
    "reshape": lambda x: x.reshape(2, -1),
    "ravel": lambda x: x.ravel(),
    "window": lambda x: x[: len(x) - 1].reshape(-1)[2:],
    "new axis": lambda x: x[:, None],
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_alone_need_no_python(name):
    x = np.arange(12.0).reshape(4, 3)
    f, results = calls(VIEWS[name], x)
    for result in results:
        expected = VIEWS[name](x)
        assert result.base is not None and np.shares_memory(result, x)
        assert result.strides == expected.strides
        result += 1
        np.testing.assert_array_equal(result, VIEWS[name](x))
    assert f.state().emitted and f.state().counters["python_calls"] == 0


@pytest.mark.parametrize("name", VIEWS)
def test_views_beside_what_is_computed(name):
    view = VIEWS[name]
    x = np.arange(12.0).reshape(4, 3)
    f, _ = calls(lambda x: (np.tanh(x) * 2, view(x)), x)
    for y in (x, np.arange(24.0).reshape(4, 6), np.arange(12.0).reshape(3, 4).T):
        for _ in range(3):
            computed, part = f(y)
            np.testing.assert_allclose(computed, np.tanh(y) * 2)
            expected = view(y)
            np.testing.assert_array_equal(part, expected)
            assert np.shares_memory(part, y) == np.shares_memory(expected, y)
    counters = f.state().counters
    assert counters["guard_hits"] > 0 and counters["python_calls"] == 0


def test_a_view_that_is_not_there_is_an_error_of_numpys():
    def third(x):
        return x[:, 2], np.tanh(x)

    f, _ = calls(third, np.ones((2, 4)))
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 1 with size 2"):
        f(np.ones((2, 2)))
    np.testing.assert_array_equal(f(np.full((3, 4), 5.0))[0], np.full(3, 5.0))


@pytest.mark.parametrize("count", [2, 9])
def test_equal_results_beside_views_have_memory_of_their_own(count):
    f, results = calls(lambda x: (*[x * 2 for _ in range(count)], x.T), np.ones((2, 3)))
    assert f.state().emitted
    for *products, turned in results:
        assert turned.base is not None
        assert not any(np.shares_memory(a, b) for k, a in enumerate(products) for b in products[:k])


def test_an_argument_is_itself():
    x, y = np.ones(3), np.zeros(3)
    for function in (lambda x, y: x, lambda x, y: {"a": [x], "b": (y + 1, x)}):
        _, results = calls(function, x, y)
        for result in results:
            if isinstance(result, dict):
                assert result["a"][0] is x and result["b"][1] is x
                np.testing.assert_array_equal(result["b"][0], y + 1)
            else:
                assert result is x
    zero = np.array(2.0)
    assert all(found is zero for found in calls(lambda x: x, zero)[1])


def test_an_array_from_outside_is_itself():
    held = np.arange(4.0)
    _, results = calls(lambda x: (x * 2, held, held[1:]), np.ones(2))
    for _, whole, part in results:
        assert whole is held and np.shares_memory(part, held)


def test_what_numpy_copies_is_not_shared():
    x = np.arange(6.0).reshape(2, 3)
    copies = (
        lambda x: x.copy(),
        lambda x: x.flatten(),
        lambda x: np.array(x),
        lambda x: x[[0, 1]],
        lambda x: x.astype(float),
        lambda x: +x,
        lambda x: np.concatenate([x]),
    )
    for function in copies:
        for result in calls(function, x)[1]:
            assert not np.shares_memory(result, x)
    for result in calls(lambda x: (x.sum(), x.reshape(-1)), x.T)[1]:
        assert not np.shares_memory(result[1], x)  # NumPy copies what is not contiguous


def test_elements_are_numbers_that_kernels_give():
    f, results = calls(lambda x: (x[0], x * 2), np.arange(3.0))
    assert all(type(first) is np.float64 for first, _ in results)
    assert f.state().counters["python_calls"] == 0


def test_branches_on_sizes_share_where_they_return_the_argument():
    f = pf.jit(lambda x: x if len(x) < 2 else x[1:] * 2)
    for n in (1, 3, 1, 4, 1, 3, 3, 3):
        x = np.ones(n)
        result = f(x)
        assert (result is x) == (n < 2)
        np.testing.assert_array_equal(result, x if n < 2 else x[1:] * 2)


def writes(x):
    v = x[1:]
    v[0] = 9
    return v, x * 2, x


def swaps(x):
    first = x[0]
    x[0] = x[1]
    return first


def flattens(x):
    flat = x.reshape(-1)
    x[0] += 1
    return flat


@pytest.mark.parametrize("function", [writes, swaps, flattens])
def test_views_of_what_the_function_writes_to(function):
    f = pf.jit(function)
    for order in ("C", "F", "C", "F", "C", "C"):
        ours, theirs = (np.arange(6.0).reshape(3, 2).copy(order) for _ in range(2))
        found, expected = f(ours), function(theirs)
        np.testing.assert_array_equal(ours, theirs)
        whole = isinstance(found, tuple)
        pairs = zip(found, expected, strict=True) if whole else [(found, expected)]
        for a, b in pairs:
            np.testing.assert_array_equal(a, b)
            assert np.shares_memory(a, ours) == np.shares_memory(b, theirs)
    # Whether a reshape copies what is written later, only a run knows.
    assert f.state().counters["python_calls"] == (6 if function is flattens else 0)


class Window:
    def __init__(self):
        self.values, self.seen = np.arange(8.0), None

    def move(self, x):
        self.values[0] += x.sum()
        self.seen = x[1:]
        self.values = self.values[1:]
        return self.values[:2]


def test_attributes_that_become_views():
    ours, theirs, f = Window(), Window(), pf.jit(Window.move)
    for k in range(5):
        x, y = np.full(3, float(k)), np.full(3, float(k))
        before = ours.values
        found, expected = f(ours, x), theirs.move(y)
        np.testing.assert_array_equal(found, expected)
        np.testing.assert_array_equal(ours.values, theirs.values)
        assert np.shares_memory(ours.values, before) and np.shares_memory(found, ours.values)
        assert np.shares_memory(ours.seen, x)


@pytest.mark.parametrize("first", ["into", "call"])
def test_views_are_views_whoever_calls_first(first):
    f = pf.jit(lambda x: (x[1:], x * 2), background=False, unsupported="python")
    x, out = np.arange(4.0), (np.empty(3), np.empty(4))
    for k in range(4):
        if first == "into" or k:
            f.into(out, x)
        assert np.shares_memory(f(x)[0], x)
        f.into(out, x)
        np.testing.assert_array_equal(out[0], x[1:])
    assert f.state().counters["python_calls"] == 0


def test_views_are_views_behind_calls_on_the_tape():
    f = pf.jit(lambda x: (x[1:], x * 2), background=False, unsupported="python")
    x = np.arange(4.0)
    for _ in range(3):
        f(pf.array(x, requires_grad=True))[1].sum().backward()
        assert np.shares_memory(f(x)[0], x)


def test_graphs_of_calls_on_the_tape_serve_others_where_results_are_new():
    f = pf.jit(lambda x: np.tanh(x) @ x, background=False, unsupported="python")
    x = np.eye(4)
    for _ in range(3):
        f(pf.array(x, requires_grad=True)).sum().backward()
        np.testing.assert_array_equal(f(x), np.tanh(x) @ x)
    assert f.state().counters["traces"] == 1
