"""What users give the tape, and what they do with its arrays: taken, or refused at once, in words."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError, GradientError, ShapeError, TraceError


def leaf(*values):
    return pf.array(np.array(values, float), requires_grad=True)


def test_hooks_that_cannot_be_called_are_refused_where_they_are_registered():
    x = leaf(1, 2)
    y = x * 2
    for register in (
        x.register_hook,
        x.register_post_accumulate_grad_hook,
        y.node.register_prehook,
        y.node.register_hook,
    ):
        with pytest.raises(ArgumentError, match="a hook must be a function, not int"):
            register(3)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad, [2, 2])


def test_a_complex_gradient_of_a_real_result_is_refused():
    x, g = leaf(1, 2), np.array([1, 1j])
    for call in (
        lambda: (x * 2).backward(g),
        lambda: pf.gradients(x * 2, [x], [g]),
        lambda: pf.vjp(lambda x: x * 2, x.data)[1](g),
        lambda: pf.vjp(np.sum, x.data)[1](1j),
        lambda: pf.jit(lambda x: pf.vjp(lambda x: x * 2, x)[1](g), unsupported="raise")(x.data),
    ):
        with pytest.raises(ArgumentError, match=r"a complex gradient is given to a (real )?result"):
            call()
    np.testing.assert_array_equal(pf.vjp(lambda x: x * 2, x.data)[1](np.array([1, 2]))[0], [2, 4])


def test_gradients_takes_what_can_be_gone_through():
    net = {"w": leaf(1, 2), "b": leaf(3, 4)}

    def loss():
        return (net["w"] * net["b"] * net["b"]).sum()

    for parameters in (net.values(), (x for x in net.values()), list(net.values())):
        of_w, of_b = pf.gradients(loss(), parameters)
        np.testing.assert_array_equal(of_w, [9, 16])
        np.testing.assert_array_equal(of_b, [6, 16])
    for wrong in (net, np.ones(2), "w", [], [1.0]):
        with pytest.raises(ArgumentError, match="inputs must be an Array, or a sequence"):
            pf.gradients(loss(), wrong)


def test_gradients_in_a_trace_names_what_there_is_instead():
    with pytest.raises(TraceError, match=r"function that is traced\n.*pf.grad or pf.vjp"):
        pf.grad(lambda x: pf.gradients((x * x).sum(), [x])[0].sum())(np.ones(2))


def test_a_gradient_of_a_result_that_is_none_is_refused():
    _, pull = pf.vjp(lambda x: None, np.ones(2))
    with pytest.raises(ArgumentError, match="another structure than the result"):
        pull(np.ones(2))
    _, pull = pf.vjp(lambda x: {"y": x * 2, "n": None}, np.ones(2))
    np.testing.assert_array_equal(pull({"y": np.ones(2), "n": None})[0], [2, 2])


class Units(np.ndarray):
    """Its products are others than those of plain arrays."""

    def __mul__(self, other):
        return NotImplemented


class Readable:
    """What NumPy makes an array of."""

    def __array__(self, dtype=None, copy=None):
        return np.arange(3.0)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
@pytest.mark.parametrize("kind", ["masked", "matrix", "units"])
def test_arrays_whose_operators_are_others_are_refused(kind):
    """A mask was ignored, and a matrix gave a gradient of another shape."""
    x, c = leaf(1, 2, 3), np.arange(3.0)
    other = {"masked": np.ma.array(c, mask=[0, 1, 0]), "matrix": np.matrix(c), "units": c.view(Units)}[kind]
    for call in (lambda: x * other, lambda: np.add(x, other), lambda: np.where(c > 1, x, other), lambda: x @ other.T):
        with pytest.raises(ArgumentError, match=r"(?s)beside an array of the tape: .*np.asarray\(x\)"):
            call()


@pytest.mark.parametrize("other", [np.array([1, 2, 3], object), np.arange(3).astype("m8[s]")], ids=["object", "times"])
def test_results_that_hold_no_numbers_are_refused_where_they_would_lose_a_gradient(other):
    x = leaf(1, 2, 3)
    with pytest.raises(GradientError, match=r"mul of an array that requires gradients has a result of \w+"):
        x * other
    assert (x.detach() * other).dtype == (x.data * other).dtype
    assert not (x == np.array([1, 2, 4], object)).requires_grad


def test_what_numpy_makes_an_array_of_is_an_operand(tmp_path):
    lent = np.memmap(tmp_path / "x", float, "w+", shape=(3,))
    lent[:] = np.arange(3)
    for other in (range(3), memoryview(np.arange(3.0)), Readable(), [0, 1, 2], lent):
        x = leaf(1, 2, 3)
        np.multiply(x, other).sum().backward()
        np.testing.assert_array_equal(x.grad, [0, 1, 2])


def test_a_gradient_that_is_assigned_is_an_array():
    x, n = leaf(1, 2), leaf(3)[0].detach()
    n.requires_grad = True
    x.grad, n.grad = [1, 2], 5
    (x * n).sum().backward()
    assert x.grad.dtype == float and type(n.grad) is np.float64
    np.testing.assert_array_equal(x.grad, [4, 5])
    assert n.grad == 8


@pf.custom_vjp
class Cropped:
    """Its gradient has another shape than its argument."""

    def forward(x):
        return x * 2, None

    def backward(saved, g):
        return g[:1]


def test_a_gradient_of_another_shape_than_the_argument_is_told_with_its_line():
    x = leaf(1, 2, 3)
    loss = Cropped(x).sum()
    for call in (loss.backward, lambda: pf.grad(lambda x: Cropped(x).sum())(x.data)):
        with pytest.raises(ShapeError, match=r"(?s)test_from_users.py:\d+: .*\(1,\).*the backward of a pf.custom_vjp"):
            call()


def test_leaves_can_be_pickled():
    w = leaf(1, 2, 3)
    (w * 2).sum().backward()
    half = pf.array(np.ones(2, ml_dtypes.bfloat16), requires_grad=True)
    model = {"w": w, "frozen": w.detach()[1:], "scale": pf.array(2.5, requires_grad=True), "half": half}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        copy = pickle.loads(pickle.dumps(model, protocol))
        assert [x.requires_grad for x in copy.values()] == [True, False, True, True]
        assert all(type(x) is pf.Array and x.is_leaf and x.grad is None for x in copy.values())
        np.testing.assert_array_equal(copy["frozen"], [2, 3])
        (copy["w"] * copy["scale"]).sum().backward()
        np.testing.assert_array_equal(copy["w"].grad, [2.5] * 3)
        assert copy["scale"].grad == 6 and copy["half"].dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(w.grad, [2, 2, 2])
    with pytest.raises(GradientError, match="only leaves can be pickled"):
        pickle.dumps(w * 2)
