"""The tape's core: values and gradients of runs, against those of the joint graph."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest

RNG = np.random.default_rng(7)


def leaf(*shape: int, dtype: type = np.float64) -> pf.Array:
    return pf.array(RNG.standard_normal(shape).astype(dtype), requires_grad=True)


def test_gradients_of_a_run_are_those_of_the_joint_graph():
    w, x, y = leaf(3, 4), RNG.standard_normal((4, 5)), RNG.standard_normal((3, 5))

    def loss(w):
        return ((w @ x - y) ** 2).mean()

    value = loss(w)
    assert value.node is not None
    value.backward()
    np.testing.assert_allclose(float(value), loss(w.data))
    np.testing.assert_allclose(w.grad, pf.grad(loss)(w.data))


def test_any_python_between_operations():
    x = pf.array([0.31, 1.73], requires_grad=True)
    steps = []
    y = x
    while float(y.sum()) < 20:  # a loop on contents, which no trace can have
        y = y * 2 if y[0] < 1 else y + x
        steps.append(str(y))
    y.sum().backward()
    assert len(steps) > 3
    h = 1e-6

    def run(v):
        y = v
        while y.sum() < 20:
            y = y * 2 if y[0] < 1 else y + v
        return y.sum()

    found = [(run(x.data + h * e) - run(x.data - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(x.grad, found, rtol=1e-6)


def test_gradient_mode_and_detached_arrays():
    x = leaf(3)
    with pf.no_grad():
        assert not (x * 2).requires_grad
        with pf.enable_grad():
            assert (x * 2).requires_grad
    assert (x * 2).requires_grad and not (x.detach() * 2).requires_grad

    @pf.no_grad
    def quiet(x):
        return x * 2

    assert not quiet(x).requires_grad and not pf.no_grad()(quiet)(x).requires_grad
    with pf.no_grad():
        assert type(np.asarray(x * 2)) is np.ndarray and type(np.asarray(x)) is np.ndarray
    assert type(np.asarray(x.detach())) is np.ndarray
    for convert in (np.asarray, np.array, lambda x: np.array([x, x]), np.asarray([1.0]).dot):
        with pytest.raises(pf.GradientError, match="would lose"):
            convert(x[:1] * 2)


def test_any_order():
    x = pf.array([0.5, -1.2], requires_grad=True)
    (first,) = pf.gradients((np.tanh(x) ** 2).sum(), [x], create_graph=True)
    (second,) = pf.gradients(first.sum(), [x], create_graph=True)
    third = pf.gradients(second.sum(), x)

    def f(x):
        return (np.tanh(x) ** 2).sum()

    one = pf.grad(f)
    two = pf.grad(lambda x: one(x).sum())
    three = pf.grad(lambda x: two(x).sum())
    for found, wanted in zip((first, second, third), (one, two, three), strict=True):
        np.testing.assert_allclose(found.data, wanted(x.data), rtol=1e-12)


def test_what_cannot_be_differentiated_says_so():
    x = leaf(3)
    with pytest.raises(pf.GradientError, match="requires no gradient"):
        (x.detach() * 2).sum().backward()
    with pytest.raises(pf.ArgumentError, match="reduce it"):
        (x * 2).backward()
    with pytest.raises(pf.GradientError, match=r"np\.apply_along_axis has no gradient"):
        np.apply_along_axis(np.sum, 0, x)
    with pytest.raises(pf.GradientError, match="allow_unused"):
        pf.gradients((x * 2).sum(), leaf(2))
    with pytest.raises(pf.DTypeError, match="int64 has no gradient"):
        pf.array([1, 2], requires_grad=True)


def test_a_second_backward_says_who_freed():
    x = leaf(3)
    y = np.exp(x).sum()
    y.backward(retain_graph=True)
    y.backward()
    np.testing.assert_allclose(x.grad, 2 * np.exp(x.data))
    with pytest.raises(pf.GradientError, match=r"sum.*was freed(.|\n)*retain_graph=True"):
        y.backward()


def test_a_write_to_what_a_gradient_needs_is_told():
    x = leaf(3)
    y = x * 1.0
    z = np.exp(y).sum() + (y * y).sum()
    y += 1
    with pytest.raises(pf.GradientError, match=r"mul needs was written to afterwards"):
        z.backward()


def test_writes_have_gradients():
    a = pf.array([1.0, 2.0, 3.0], requires_grad=True)
    z = pf.array(np.zeros(3))
    z[0] = a[1] * 2
    z[1:] = a[:2]
    z *= a
    np.testing.assert_array_equal(z.data, [4, 2, 6])
    np.testing.assert_array_equal(pf.gradients(z.sum(), a), [4 + 2, 2 + 1 + 3, 2])
