"""`grad`, `value_and_grad`, `vjp`, `jvp`: arguments, results, structures, errors."""

import pickle

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ArgumentError, TraceError

RNG = np.random.default_rng(3)
X, W = RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2))


@pytest.fixture(autouse=True)
def _no_cache():
    with pf.knobs.override(cache=False):
        yield


def loss(params, x):
    h = np.tanh(x @ params["w"] + params["b"])
    return (h * h).mean()


PARAMS = {"w": W, "b": np.array([0.1, -0.2]), "n": 3}


def by_hand(params, x):
    h = np.tanh(x @ params["w"] + params["b"])
    g = 2 * h / h.size * (1 - h * h)
    return {"w": x.T @ g, "b": g.sum(0)}, g @ params["w"].T


@pytest.mark.parametrize("strategy", [[("static", 2)], [("dynamic", 2)]], ids=str)
def test_trees_are_differentiated_leaf_by_leaf_on_every_tier(strategy):
    f = pf.value_and_grad(loss, background=False, strategy=strategy)
    wanted, _ = by_hand(PARAMS, X)
    for _ in range(4):
        value, found = f(PARAMS, X)
        np.testing.assert_allclose(value, loss(PARAMS, X))
        assert found["n"] is None
        for name in ("w", "b"):
            np.testing.assert_allclose(found[name], wanted[name], rtol=1e-12)
    counters = f.state().counters
    assert counters["compiles"] == 1
    assert counters["kernel_launches"] == 3
    assert not f.state().reasons


def test_several_arguments_by_position_and_name():
    wanted = by_hand(PARAMS, X)
    for wrt in ((0, 1), ("params", "x"), (0, "x"), (-2, -1)):
        found = pf.grad(loss, wrt=wrt)(PARAMS, X)
        np.testing.assert_allclose(found[0]["w"], wanted[0]["w"])
        np.testing.assert_allclose(found[1], wanted[1])
    found = pf.grad(loss, wrt="x")(PARAMS, x=X)
    np.testing.assert_allclose(found, wanted[1])
    np.testing.assert_allclose(pf.grad(loss, wrt=1)(PARAMS, x=X), wanted[1])


def test_auxiliary_results_come_along():
    def f(x):
        y = x * x
        return y.sum(), {"y": y, "n": len(x)}

    grad, aux = pf.grad(f, has_aux=True)(X)
    np.testing.assert_allclose(grad, 2 * X)
    np.testing.assert_allclose(aux["y"], X * X)
    assert aux["n"] == 4
    (value, aux), grad = pf.value_and_grad(f, has_aux=True)(X)
    np.testing.assert_allclose(value, (X * X).sum())
    np.testing.assert_allclose(grad, 2 * X)


def test_numbers_have_gradients_of_their_own_dtype():
    def f(k, x, c):
        return (x * k).sum() * k + c

    found = pf.grad(f, wrt=(0, 2))(0.5, X, np.float32(2))
    assert [g.dtype for g in found] == [np.float64, np.float32]
    np.testing.assert_allclose(found[0], X.sum())
    assert found[1] == 1


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_gradients_have_the_dtypes_of_arguments(dtype):
    x, w = X.astype(dtype), W.astype("f4")
    gx, gw = pf.grad(lambda x, w: np.tanh(x @ w).sum(), wrt=(0, 1))(x, w)
    assert (gx.dtype, gw.dtype) == (x.dtype, w.dtype)
    h = 1 - np.tanh(X @ W) ** 2
    np.testing.assert_allclose(gx, h @ W.T, rtol=2e-2 if dtype == "f2" else 1e-4, atol=1e-3)


def test_complex_gradients_descend():
    """The gradient is dL/dRe + 1j dL/dIm, as of two real arguments."""
    z = X[:, 0] + 1j * X[:, 1]

    def f(z):
        return (np.abs(np.exp(z) * (1 + 2j)) ** 2 + np.real(z * np.conj(z)) + np.imag(z * z)).sum()

    def parts(a, b):
        e = np.exp(2 * a) * 5
        return (e + a * a + b * b + 2 * a * b).sum()

    found = pf.grad(f)(z)
    a, b = pf.grad(parts, wrt=(0, 1))(z.real.copy(), z.imag.copy())
    np.testing.assert_allclose(found, a + 1j * b, rtol=1e-10)


def test_what_does_not_depend_has_zeros():
    found = pf.grad(lambda x, y: (x * 2).sum(), wrt=(0, 1))(X, W)
    np.testing.assert_array_equal(found[1], np.zeros_like(W))
    np.testing.assert_array_equal(pf.grad(lambda x: 3.0)(X), np.zeros_like(X))
    np.testing.assert_array_equal(pf.grad(lambda x: np.floor(x).sum())(X), np.zeros_like(X))


def test_any_order_and_closures():
    cube = pf.grad(lambda y: (y**3).sum())
    second = pf.grad(lambda y: cube(y).sum())
    third = pf.grad(lambda y: second(y).sum())
    y = np.array([0.5, 2.0])
    np.testing.assert_allclose(second(y), 6 * y)
    np.testing.assert_allclose(third(y), [6, 6])
    # The inner function is differentiated by its argument, not by what it closes over.
    mixed = pf.grad(lambda x: pf.grad(lambda y: (y * y * x).sum())(x).sum())
    np.testing.assert_allclose(mixed(y), 4 * y)


def test_a_gradient_step_is_one_graph_under_jit():
    @pf.jit(background=False)
    def step(params, x, rate):
        value, grads = pf.value_and_grad(loss)(params, x)
        return value, {k: params[k] - rate * grads[k] for k in ("w", "b")}

    params = {"w": W, "b": PARAMS["b"], "n": 3}
    first = None
    for _ in range(30):
        value, new = step(params, X, 0.5)
        first = first or value
        params = {**params, **new}
    assert value < first / 2
    assert step.state().counters["compiles"] == 1


def test_assignment_in_arrays_made_by_the_function():
    def f(x):
        y = np.zeros((4, 3))
        y[0] = x[1] * 2
        y[1:] += x[:-1]
        y[1, ::2] *= x[0, 0]
        return (y * y).sum()

    found, step = pf.grad(f)(X), 1e-6
    for at in np.ndindex(X.shape):
        moved = X.copy()
        moved[at] += step
        less = X.copy()
        less[at] -= step
        np.testing.assert_allclose(found[at], (f(moved) - f(less)) / (2 * step), rtol=1e-6, atol=1e-8)


def test_a_zero_gradient_stays_zero():
    """Branches that np.where did not choose give no NaN, as they do elsewhere."""
    x = np.array([-1.0, 0.0, 4.0])
    found = pf.grad(lambda x: np.where(x > 0, np.sqrt(x), 0.0).sum())(x)
    np.testing.assert_array_equal(found, [0, 0, 0.25])
    found = pf.grad(lambda x: np.where(x > 0, np.log(x) / x, x).sum())(np.array([-2.0, 1.0]))
    np.testing.assert_allclose(found, [1, 1])


def test_singular_points():
    zero = np.zeros(3)
    np.testing.assert_array_equal(pf.grad(lambda x: np.abs(x).sum())(zero), zero)
    np.testing.assert_array_equal(pf.grad(lambda x: pf.relu(x).sum())(zero), zero)
    np.testing.assert_array_equal(pf.grad(lambda x: x.std())(zero), zero)
    np.testing.assert_array_equal(pf.grad(lambda x: np.hypot(x, x).sum())(zero), zero)
    np.testing.assert_array_equal(pf.grad(lambda x: np.arctan2(x, x).sum())(zero), zero)
    np.testing.assert_array_equal(pf.grad(lambda x: (x**0).sum())(zero), zero)
    half = pf.grad(lambda a, b: np.maximum(a, b).sum(), wrt=(0, 1))(zero, zero)
    np.testing.assert_array_equal(half, [[0.5] * 3] * 2)
    np.testing.assert_array_equal(pf.grad(np.max)(np.array([1.0, 3, 3])), [0, 0.5, 0.5])
    found = pf.grad(np.max)(np.array([1.0, np.nan, 3]))
    np.testing.assert_array_equal(found, [0, 1, 0])
    found = pf.grad(lambda x: np.clip(x, -1, 1).sum())(np.array([-2.0, -1, 0, 1, 2]))
    np.testing.assert_array_equal(found, [0, 1, 1, 1, 0])


def test_a_pullback_is_called_often_and_keeps_copies():
    def f(x, w):
        h = np.sin(x @ w)
        return {"h": h, "sum": h.sum(1)}, 7

    x = X.copy()
    (result, seven), pull = pf.vjp(f, x, W)
    assert seven == 7
    np.testing.assert_allclose(result["h"], np.sin(X @ W))
    x[:] = 0
    c = np.cos(X @ W)
    for scale in (1.0, 3.0):
        gx, gw = pull(({"h": np.full((4, 2), scale), "sum": np.ones(4)}, 0))
        np.testing.assert_allclose(gx, ((scale + 1) * c) @ W.T)
        np.testing.assert_allclose(gw, X.T @ ((scale + 1) * c))


def test_a_pullback_under_a_trace():
    @pf.jit(background=False)
    def f(x, g):
        y, pull = pf.vjp(lambda x: np.sin(x) * 2, x)
        return y, pull(g)[0], pull(g * 2)[0]

    for _ in range(3):
        y, one, two = f(X, np.ones_like(X))
        np.testing.assert_allclose(y, np.sin(X) * 2)
        np.testing.assert_allclose(one, np.cos(X) * 2)
        np.testing.assert_allclose(two, np.cos(X) * 4)


def test_gradients_are_pickled_like_functions():
    f = pickle.loads(pickle.dumps(pf.grad(loss)))
    np.testing.assert_allclose(f(PARAMS, X)["w"], by_hand(PARAMS, X)[0]["w"])


def test_saved_gradients_run_elsewhere(tmp_path):
    f = pf.value_and_grad(loss, background=False)
    for _ in range(3):
        value, grads = f(PARAMS, X)
    f.save(tmp_path / "grad.pf")
    loaded = pf.load(tmp_path / "grad.pf")
    again, found = loaded(PARAMS, X)
    assert again == value
    np.testing.assert_array_equal(found["w"], grads["w"])


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: pf.grad(3), ArgumentError, "grad takes a function, not int"),
        (lambda: pf.grad(loss, wrt=1.5), ArgumentError, "must be a position or a name"),
        (lambda: pf.grad(np.sin)(X), ArgumentError, "only a float without axes"),
        (lambda: pf.grad(lambda x: (x.sum(), 1))(X), ArgumentError, "no single array"),
        (lambda: pf.grad(lambda x: np.argmax(x))(X), ArgumentError, "int64 of shape"),
        (lambda: pf.grad(np.sum)(np.arange(3)), ArgumentError, "holds no floats"),
        (lambda: pf.grad(loss, wrt="y")(PARAMS, X), ArgumentError, "has no argument 'y'"),
        (lambda: pf.grad(loss, wrt=5)(PARAMS, X), ArgumentError, "has no argument 5"),
        (lambda: pf.grad(loss, wrt=(0, "params"))(PARAMS, X), ArgumentError, "twice"),
        (lambda: pf.grad(np.sum, has_aux=True)(X), ArgumentError, "must return a pair"),
        (lambda: pf.jvp(np.sin, (X,), ()), ArgumentError, "1 arguments and 0 tangents"),
        (lambda: pf.jvp(np.sin, (X,), (W,)), ArgumentError, "a tangent has shape"),
        (lambda: pf.jvp(np.sin, (X,), ([X],)), ArgumentError, "another structure"),
        (lambda: pf.vjp(np.sin, X)[1](W), ArgumentError, "of a result of shape"),
        (lambda: pf.vjp(np.sin, X)[1]((X,)), ArgumentError, "another structure"),
        (lambda: pf.jvp(3, (X,), (X,)), ArgumentError, "takes a function"),
        (lambda: pf.checkpoint(3), ArgumentError, "takes a function"),
        (lambda: pf.custom_vjp(3), ArgumentError, "takes a class"),
    ],
)
def test_errors_say_what_to_write(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_writes_to_what_came_from_outside_are_refused():
    def f(x):
        def g(y):
            x[0] = 1  # an argument of the outer function
            return (y * x).sum()

        return pf.grad(g)(x * 1)

    with pytest.raises(TraceError):
        pf.jit(f, unsupported="raise")(X)
    with pytest.raises(TraceError, match="argument"):
        pf.grad(_writes)(X)


def _writes(x):
    x += 1
    return x.sum()


def test_trees_may_have_their_keys_in_another_order_and_none_for_zeros():
    at = {"w": np.array([1.0, 2.0]), "b": {"x": np.array(3.0), "n": 2}}

    def f(p):
        return {"y": p["w"] * p["b"]["x"] ** p["b"]["n"], "z": p["w"].sum()}

    one = {"b": {"n": None, "x": np.array(1.0)}, "w": None}
    _, tangent = pf.jvp(f, (at,), (one,))
    np.testing.assert_allclose(tangent["y"], at["w"] * 6)
    assert tangent["z"] == 0
    _, pull = pf.vjp(f, at)
    (g,) = pull({"z": None, "y": np.ones(2)})
    np.testing.assert_allclose(g["w"], [9, 9])
    np.testing.assert_allclose(g["b"]["x"], 18)
    assert list(g) == ["w", "b"]

    def within(p):
        return pf.vjp(f, p)[1]({"z": np.float64(2.0), "y": None})[0]["w"].sum()

    assert pf.jit(within)(at) == 4
    for wrong in (
        {"w": None},
        {"w": None, "b": None, "c": None},
        [None, None],
        {"w": at["w"], "b": at["w"]},
        {"w": {"x": at["w"]}, "b": None},
    ):
        with pytest.raises(ArgumentError, match="another structure than its argument"):
            pf.jvp(f, (at,), (wrong,))
    with pytest.raises(ArgumentError, match="another structure than the result"):
        pull({"y": np.ones(2)})


def test_gradients_of_ones_own_may_have_another_order_of_keys():
    @pf.custom_vjp
    class scaled:
        def forward(p):
            return p["a"] * p["b"], p

        def backward(p, g):
            return ({"b": g * p["a"], "a": None},)

    at = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    found = pf.grad(lambda p: scaled(p).sum())(at)
    np.testing.assert_array_equal(found["a"], [0, 0])
    np.testing.assert_array_equal(found["b"], at["a"])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "step",
    [lambda y, x: np.sin(y), lambda y, x: y * x, lambda y, x: y + x[:1] * y * 1e-3, lambda y, x: y - y.mean(0) * 1e-3],
)
def test_long_chains_need_no_recursion(step):
    def chain(x):
        y = x
        for _ in range(1500):
            y = step(y, x)
        return y.sum()

    x, h = np.array([0.999]), 1e-7
    found = pf.grad(chain, profiled_runs=0, background=False)(x)
    np.testing.assert_allclose(found, (chain(x + h) - chain(x - h)) / (2 * h), rtol=1e-4)


@pytest.mark.parametrize("derivative", [pf.grad, pf.value_and_grad])
def test_options_that_there_are_not(derivative):
    """The error is about the function that the user has called, and says what does it."""
    with pytest.raises(pf.ArgumentError, match=rf"{derivative.__name__} has no option argnums.*(?s:.)*wrt="):
        derivative(np.sum, argnums=(0, 1))
