"""What Python asks of traced values beside arithmetic: their class, their text, their truth."""

import bdb
import numbers
from queue import SimpleQueue

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture.tracer import trace
from tracing import call, check

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("value", "classes"),
    [
        (X, (np.ndarray,)),
        (np.array(2.5), (np.ndarray,)),
        (np.float64(2), (np.floating, float, numbers.Number)),
        (np.int32(2), (np.integer,)),
        (np.True_, (np.bool,)),
        (True, (bool, int)),
        (3, (int, numbers.Integral)),
        (2.5, (float,)),
        (1j, (complex,)),
    ],
)
def test_isinstance_tells_what_numpy_would_give(value, classes):
    kinds = (np.ndarray, np.generic, bool, int, float, complex, np.floating, np.integer)
    traced = trace(lambda x: [isinstance(x, k) for k in (*classes, *kinds)], (value,))
    seen = call(traced, value)
    assert seen == [isinstance(value, k) for k in (*classes, *kinds)]
    assert all(seen[: len(classes)])


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: isinstance(x.sum(), np.generic) and isinstance(x * 2, np.ndarray),
        lambda x: isinstance(np.zeros(2), np.ndarray) and isinstance(x.shape[0], int),
        lambda x: np.isscalar(x.shape[0]) and np.isscalar(x.mean()),
    ],
)
def test_results_have_a_class_too(fn):
    assert fn(X) is True
    check(fn, X)


def test_a_branch_on_the_class_takes_numpys_side():
    def scaled(x, k):
        return x * k if isinstance(k, (int, float)) else x @ k

    check(scaled, X, 2, again=[(X * 2, 5)])
    check(scaled, X, X.T)


def test_a_number_as_text_is_baked_under_a_guard():
    traced = trace(lambda x: {"2": x * 2}[str(x.shape[0])], (X,))
    assert [g.expected for g in traced.guards] == [2]
    np.testing.assert_array_equal(call(traced, X), X * 2)
    check(lambda x, k: f"{x.shape[1]} {k} {k:.1f} %s" % k, X, 2.5, guards=2)


def test_the_class_of_a_traced_value_does_not_stop_jit_in_jit():
    inner = pf.jit(lambda x, k: x * k if isinstance(k, int) else x)
    outer = pf.jit(lambda x, k: inner(x, k) + inner(x, x.shape[0]))
    for _ in range(3):
        np.testing.assert_array_equal(outer(X, 3), X * 3 + X * 2)
    assert outer.state().tier == "optimized"


def test_guards_tell_the_two_zeros_apart():
    traced = trace(lambda x, k: x * float(k), (X, 0.0))
    assert traced.accepts([X, 0.0]) and not traced.accepts([X, -0.0])
    assert trace(lambda x, k: x * float(k), (X, np.nan)).accepts([X, float("nan")])


def test_an_array_from_outside_is_indexed():
    table, index = np.arange(12.0).reshape(4, 3), np.array([3, 0, 3])
    traced = check(lambda i: np.take(table, i, axis=0), index, again=[(index[:1],)])
    assert traced.captured[0] is table
    assert check(lambda i: table[i], index, again=[(index[:1],)]).captured[0] is table


@pytest.mark.usefixtures("queues_are_pure")
def test_repr_is_a_number_in_the_trace_and_tells_what_is_traced_afterwards():
    queue = SimpleQueue()  # of C: what is put into it is not undone
    traced = trace(lambda x, k: queue.put((x, x.shape, k, repr(x.shape))), (X, 2.5))
    seen = list(queue.get())
    assert seen[3] == "(2, 3)" and [g.expected for g in traced.guards] == [2, 3]
    assert repr(seen[:3]) == (
        "[<traced float32 array, here of shape (2, 3)>, (<traced int, here 2>, <traced int, here "
        "3>), <traced float, here 2.5>]"
    )


def test_debuggers_read_what_is_traced_and_guard_nothing():
    shown = []

    class Stops(bdb.Bdb):
        def user_line(self, frame):
            if frame.f_code.co_name == "scaled" and "y" in frame.f_locals:
                shown.append(repr([frame.f_locals[name] for name in ("x", "n", "y")]))

    def scaled(x, n):
        y = (x * n).sum()
        return y + 1

    traced = Stops().runcall(trace, scaled, (X, 3))
    assert shown[0] == (
        "[<traced float32 array, here of shape (2, 3)>, <traced int, here 3>, <traced float32 array, here of shape ()>]"
    )
    assert traced.guards == []


def test_numpy_scalars_and_arrays_of_rank_0_are_traced_apart():
    def bumped(x):
        x += 1
        return x if isinstance(x, np.generic) else x * 2

    f = pf.jit(bumped)
    for _ in range(2):
        assert f(np.float64(1)) == 2
        with pytest.raises(pf.TraceError, match="would change argument 'x'"):
            f(np.array(1.0))
    assert f.state().counters["traces"] == 1
