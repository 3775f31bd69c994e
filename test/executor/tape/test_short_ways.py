"""What small arrays go through on the tape: the same results and errors as by any other way."""

from __future__ import annotations

import threading

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.ir import gradient_mode
from profuse.executor.tape.node import SPECIAL

X = np.linspace(-2, 1, 12).reshape(3, 4)
REDUCTIONS = ("sum", "mean", "max", "min")


def leaf(x=X):
    return pf.array(x, requires_grad=True)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_reductions_have_numpys_bits_and_the_gradients_of_traces(name, dtype, axis, keepdims):
    x = X.astype(dtype)
    by_numpy = getattr(x, name)(axis=axis, keepdims=keepdims)
    seed = np.cos(np.arange(by_numpy.size)).reshape(by_numpy.shape).astype(dtype)
    _, pull = pf.vjp(lambda x: getattr(x, name)(axis=axis, keepdims=keepdims), x)
    (want,) = pull(seed)
    for call in (getattr(pf.Array, name), getattr(np, name)):
        for _ in range(10):  # the rule is recorded on the way
            a = leaf(x)
            y = call(a, axis=axis, keepdims=keepdims)
            assert y.dtype == dtype and y.shape == by_numpy.shape
            if dtype is not np.float16:  # sums of which are rounded once
                np.testing.assert_array_equal(y.data, by_numpy)
            g = pf.gradients(y, a, seed)
            assert g.dtype == dtype and g.shape == x.shape
            np.testing.assert_allclose(g, want, rtol=2e-3 if dtype is np.float16 else 1e-6)


def test_reductions_name_the_users_line_and_see_writes():
    for call in (lambda x: x.max(axis=0), lambda x: np.max(x, axis=0)):  # where it is called
        for _ in range(10):
            call(leaf()).sum().backward()
        y = np.exp(leaf())
        z = call(y)
        y += 1.0
        with pytest.raises(pf.GradientError, match=r"test_short_ways\.py:\d+.*max needs"):
            z.sum().backward()
        assert z.node.loc.line == call.__code__.co_firstlineno


def test_functions_of_numpy_name_the_users_line():
    def call(x):
        return np.tanh(x)

    for _ in range(3):
        assert call(leaf()).node.loc.line == call.__code__.co_firstlineno + 1


@pytest.mark.parametrize("name", REDUCTIONS)
def test_what_a_reduction_saves_is_packed(name):
    packed = []

    def pack(x):
        packed.append(x)
        return x

    a = leaf()
    with pf.saved_arrays_hooks(pack, lambda x: x):
        y = getattr(a, name)()
    assert len(packed) == (2 if name in ("max", "min") else 0)
    np.testing.assert_allclose(pf.gradients(y, a), pf.gradients(getattr(a, name)(), a))


def test_a_reduction_under_no_grad_is_not_noted():
    a = leaf()
    with pf.no_grad():
        assert a.sum().node is None and np.mean(a, axis=1).node is None and (a + a).node is None
    assert a.sum().node is not None


def test_modes_of_one_thread_leave_others_alone():
    """What is asked first is whether any thread has the mode, then whether this one has."""
    inside, done = threading.Event(), threading.Event()
    seen = []

    def other():
        with pf.no_grad(), pf.saved_arrays_hooks(seen.append, lambda x: x):
            inside.set()
            done.wait(30)
            seen.append(np.exp(leaf()).node)

    assert not gradient_mode.OFF and not SPECIAL
    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(30)
    try:
        a = leaf()
        y = (np.tanh(a) * a).sum()
        np.testing.assert_allclose(pf.gradients(y, a), np.tanh(X) + X * (1 - np.tanh(X) ** 2))
        assert not seen and len(gradient_mode.OFF) == len(SPECIAL) == 1
    finally:
        done.set()
        thread.join()
    assert seen == [None], "nothing is noted there, so that nothing is packed"
    assert not gradient_mode.OFF and not SPECIAL


def test_gradient_mode_is_as_before_after_errors():
    y = np.exp(leaf()).sum()
    y.backward()
    for create_graph in (False, True):
        with pytest.raises(pf.GradientError):
            y.backward(create_graph=create_graph)
        assert gradient_mode.gradient_mode() and not gradient_mode.OFF


def test_small_gradients_have_memory_of_their_own():
    """They are filled, so that a leaf has one that may be written to; large ones are repeated."""
    for n in (3, 100):
        for _ in range(10):
            a = leaf(np.ones((n, n)))
            a.sum().backward()
        assert a.grad.flags.writeable and a.grad.flags.owndata
        a.grad += 1
        np.testing.assert_array_equal(a.grad, np.full((n, n), 2.0))


def test_attributes_of_arrays_are_those_of_ndarrays():
    a = leaf()
    with pf.no_grad():
        assert np.asarray(a) is a.data and np.array(a) is not a.data
    missing = [name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(a, name)]
    assert missing == []
    with pytest.raises(AttributeError, match="nothing"):
        a.nothing  # noqa: B018
    assert a.device == "cpu" and a.ctypes.data == a.data.ctypes.data
    float(a.sum())  # by a number


def test_a_gradient_is_that_of_other_runs_of_the_same_nodes():
    """Chains, several roots, leaves as roots, and results that lead nowhere."""
    a, b = leaf(), leaf(X + 1)
    y, z = np.tanh(a) * b, (a * 2.0).sum()
    ga, gb = pf.gradients([y, z], [a, b], [np.ones_like(X), None], retain_graph=True)
    np.testing.assert_allclose(ga, (1 - np.tanh(X) ** 2) * (X + 1) + 2)
    np.testing.assert_allclose(gb, np.tanh(X))
    np.testing.assert_allclose(pf.gradients(y, b, np.ones_like(X), retain_graph=True), np.tanh(X))
    same, other = pf.gradients([a, z], [a, b], [np.full_like(X, 3), None], allow_unused=True)
    np.testing.assert_allclose(same, np.full_like(X, 5))
    assert other is None
