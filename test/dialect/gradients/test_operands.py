"""Rules on operands of every kind: dtypes, strides, no elements, singular points, numbers."""

import itertools

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from gradient_cases import CASES

STEP = 1e-6
ZEROS = np.zeros(3)
DTYPES = {"f4": 1e-4, "f2": 5e-2, "bf16": 2e-1}  # how far gradients may be off


@pytest.fixture(autouse=True)
def _quiet():
    with np.errstate(all="ignore"), pf.knobs.override(cache=False):
        yield


def floats(case):
    return tuple(k for k, x in enumerate(case.args) if np.asarray(x).dtype.kind == "f")


def weighed(fn, like):
    weights = np.cos(np.arange(np.size(like))).reshape(np.shape(like)).astype(like.dtype)
    return lambda *args: (fn(*args) * weights).sum()


def slopes(f, x, step=STEP):
    """The gradient of a function of one array, by central differences; of a complex one, both."""
    found = np.zeros(x.shape, x.dtype)
    for at in np.ndindex(x.shape):
        move = np.zeros(x.shape, x.dtype)
        for way in (step, 1j * step) if x.dtype.kind == "c" else (step,):
            move[at] = way
            found[at] += (f(x + move) - f(x - move)) / (2 * step) * (way / step)
    return found


# --- dtypes and layouts --------------------------------------------------------------------------


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize(("case", "dtype"), [(c, [*DTYPES][k % 3]) for k, c in enumerate(CASES)], ids=str)
def test_narrow_floats(case, dtype):
    """Gradients have the dtype of their argument, and are those of float64 but for rounding."""
    kind = ml_dtypes.bfloat16 if dtype == "bf16" else dtype
    places = floats(case)
    args = [np.asarray(x).astype(kind) if k in places else x for k, x in enumerate(case.args)]
    try:
        value = np.asarray(case.fn(*args))
    except (TypeError, ValueError):
        pytest.skip(f"NumPy has no {dtype} here")
    wide = [np.asarray(x).astype("f8") if k in places else x for k, x in enumerate(args)]
    exact = pf.grad(weighed(case.fn, value.astype("f8")), wrt=places, profiled_runs=9)(*wide)
    f = pf.grad(weighed(case.fn, value), wrt=places, profiled_runs=9)
    for g, h, k in zip(f(*args), exact, places, strict=True):
        assert g.dtype == args[k].dtype
        off = DTYPES[dtype]
        np.testing.assert_allclose(g.astype("f8"), h, rtol=off, atol=off * np.abs(h).max(initial=1.0))


@pytest.mark.sampled(13, each=())
@pytest.mark.parametrize("case", {case.op: case for case in CASES}.values(), ids=str)
def test_float32_is_not_widened(case):
    """No step of a gradient in float32 is made in float64, which kernels would pay for."""
    if case.op == "sum_to":
        pytest.skip("what it sums to is float64 here")
    if case.op == "to_complex":
        pytest.skip("Python's complex numbers are of float64")
    places = floats(case)
    args = [np.asarray(x).astype("f4") if k in places else x for k, x in enumerate(case.args)]
    value = np.asarray(case.fn(*args))
    if value.dtype != np.float32:
        pytest.skip("NumPy gives float64 here")
    f = pf.grad(weighed(case.fn, value), wrt=places, background=False)
    for _ in range(2):
        f(*args)
    assert "xf64" not in f.ir("optimized")


def strided(x, kind):
    """An array of the same elements that lie elsewhere."""
    x = np.asarray(x)
    if kind == "reversed":
        return np.flip(np.flip(x).copy())
    if kind == "gaps":
        out = np.zeros(tuple(2 * n for n in x.shape))
        out[(*[slice(None, None, 2)] * x.ndim, ...)] = x
        return out[(*[slice(None, None, 2)] * x.ndim, ...)]
    return np.asfortranarray(x)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", ["reversed", "gaps", "fortran"])
@pytest.mark.parametrize("case", CASES[::4], ids=str)
def test_layouts(case, kind):
    places = floats(case)
    f = pf.grad(weighed(case.fn, np.asarray(case.fn(*case.args))), wrt=places, profiled_runs=9)
    args = [strided(x, kind) if k in places and np.ndim(x) else x for k, x in enumerate(case.args)]
    for g, h in zip(f(*args), f(*case.args), strict=True):
        np.testing.assert_allclose(g, h, rtol=1e-12, atol=1e-14)


EMPTY = {
    "sum": np.sum,
    "mean": np.mean,
    "var": np.var,
    "std": np.std,
    "prod": np.prod,
    "cumsum": np.cumsum,
    "cumprod": np.cumprod,
    "norm": np.linalg.norm,
    "sort of": np.flip,
    "product": lambda x: x @ x.T,
    "einsum": lambda x: np.einsum("ij,ij->i", x, x),
    "joined": lambda x: np.concatenate([x, x, x * 2]),
    "repeated": lambda x: np.repeat(x, 2, 1),
    "tiled": lambda x: np.tile(x, (2, 3)),
    "padded": lambda x: np.pad(x, 1, constant_values=2.0),
    "taken": lambda x: np.take(x, np.zeros(0, int)),
    "maximum": lambda x: np.maximum(x, 0.5),
    "max": lambda x: x.max(1 if x.shape[1] else 0),
    "picked": lambda x: x[:, :1] * 2,
    "reshaped": lambda x: x.reshape(-1, 1, 1),
    "spread": lambda x: np.broadcast_to(x, (2, *x.shape)),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (1, 1), (1, 3)], ids=str)
@pytest.mark.parametrize("name", EMPTY)
def test_few_elements_or_none(name, shape):
    """Values are NumPy's; gradients, forward mode and second derivatives have the right shapes."""
    if name == "max" and 0 in shape and shape[0] == shape[1]:
        pytest.skip("NumPy refuses it")
    x = np.linspace(0.3, 0.9, int(np.prod(shape))).reshape(shape)

    def f(x):
        return np.sin(EMPTY[name](x)).sum()

    with pytest.warns() if _warns(f, x) else _nothing():
        wanted = f(x)
    value, g = pf.value_and_grad(f, profiled_runs=9)(x)
    np.testing.assert_allclose(value, wanted)
    assert g.shape == shape
    if x.size and name not in ("std", "var"):
        np.testing.assert_allclose(g, slopes(f, x), rtol=1e-6, atol=1e-8)
    tangent = pf.jvp(f, (x,), (x,))[1]
    if not np.isnan(wanted):
        np.testing.assert_allclose(tangent, (g * x).sum(), atol=1e-12)
    assert pf.grad(lambda x: (pf.grad(f)(x) ** 2).sum())(x).shape == shape


class _nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def _warns(f, x):
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        f(x)
    return bool(caught)


# --- complex numbers -----------------------------------------------------------------------------

Z, W = np.array([1 + 2j, -1 + 0.5j]), np.array([0.7 - 0.3j, 0.2 + 1.2j])
COMPLEX = {
    "pow": lambda a, b: a**b,
    "pow of reals": lambda a, b: (np.abs(a) + 0.3) ** b,
    "pow by numbers": lambda a, b: a ** (2 + 0j) + b**3 + a**2.5,
    "base": lambda a, b: (1 + 2j) ** a,
    "negative base": lambda a, b: (-1.5) ** a * b,
    "div": lambda a, b: a / b - 1j / a,
    "abs": lambda a, b: np.abs(a) * b,
    "angle": lambda a, b: np.angle(a) * b,
    "exp": lambda a, b: np.exp(a) * np.log(b),
    "roots": lambda a, b: np.sqrt(a) / np.square(b),
    "sin": lambda a, b: np.sin(a) * np.cos(b) + np.tan(a) + np.tanh(b),
    "arcs": lambda a, b: np.arcsin(a) + np.arctan(b) + np.arccosh(a) + np.arctanh(b),
    "prod": lambda a, b: np.prod(a) * b,
    "cumprod": lambda a, b: np.cumprod(a * b),
    "cumsum": lambda a, b: np.cumsum(a * b),
    "var": lambda a, b: np.var(a) * b + np.std(b) * a,
    "matmul": lambda a, b: np.outer(a, b) @ np.stack([a, b]),
    "vdot": np.vdot,
    "vecdot": np.vecdot,
    "einsum": lambda a, b: np.einsum("i,j,i->ij", a, b, a),
    "tensordot": lambda a, b: np.kron(a, b),
    "conj": lambda a, b: np.conj(a) * b.real + a.imag,
    "norm": lambda a, b: np.linalg.norm(a) * b,
    "where": lambda a, b: np.where(np.array([True, False]), a, b.real),
    "maximum": lambda a, b: np.maximum(a.real, b.imag) * a,
    "pad": lambda a, b: np.pad(a, 1, constant_values=2) * 1j + b[0],
    "taken": lambda a, b: a[np.array([0, 0, 1])] * b[1],
    "mean": lambda a, b: np.mean(a * b),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrt", [0, 1])
@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name, wrt):
    """``dL/dRe + 1j dL/dIm``; of real operands beside complex ones, real; jvp and twice."""
    fn = COMPLEX[name]
    weights = np.cos(1.0 + np.arange(np.size(fn(Z, W)))).reshape(np.shape(fn(Z, W)))

    def loss(a, b):
        y = fn(a, b)
        return (y * weights * (1 + 0.5j)).real.sum() + (np.abs(y) ** 2).sum()

    def of(x, f=loss, args=(Z, W)):
        return f(*args[:wrt], x, *args[wrt + 1 :])

    at, direction = (Z, W)[wrt], np.array([0.3 + 1j, -0.7 + 0.2j])
    g = pf.grad(of)(at)
    np.testing.assert_allclose(g, slopes(of, at), rtol=1e-6, atol=1e-6)
    tangent = pf.jvp(of, (at,), (direction,))[1]
    np.testing.assert_allclose(tangent, (g.conj() * direction).real.sum(), rtol=1e-9)

    def along(x):
        return (np.conj(pf.grad(of)(x)) * direction).real.sum()

    np.testing.assert_allclose(pf.grad(along)(at), slopes(along, at), rtol=1e-5, atol=1e-5)
    if name not in ("arcs", "roots", "exp", "negative base") and not np.isnan(of(at.real)):
        real = pf.grad(of)(at.real)
        assert real.dtype == np.float64
        np.testing.assert_allclose(real, slopes(of, at.real), rtol=1e-6, atol=1e-6)


# --- singular points, kinks, numbers -------------------------------------------------------------


@pytest.mark.parametrize("ord", [None, 1, 2, 3, 2.5, np.inf])
def test_norms_of_zeros_have_the_gradient_0(ord):
    def norm(x):
        return np.linalg.norm(x, ord=ord)

    np.testing.assert_array_equal(pf.grad(norm)(ZEROS), ZEROS)
    assert pf.jvp(norm, (ZEROS,), (ZEROS + 1,))[1] == 0
    rows = np.array([[0.0, 0], [3, 4]])
    found = pf.grad(lambda x: np.linalg.norm(x, ord=ord, axis=1).sum())(rows)
    np.testing.assert_array_equal(found[0], 0)
    np.testing.assert_allclose(found[1:], slopes(lambda x: norm(x[0]), rows[1:]), rtol=1e-6)


@pytest.mark.sampled(8, each=("fn",))
@pytest.mark.parametrize("mask", [*itertools.product([0, 1], repeat=4)], ids=str)
@pytest.mark.parametrize("fn", [np.prod, np.cumprod], ids=["prod", "cumprod"])
def test_products_with_zeros_twice(fn, mask):
    """The second derivative by two zeros of one product is the product of all others."""
    rng = np.random.default_rng(sum(mask))
    x = rng.standard_normal((2, 4)) * np.array([mask, (1, 1, 1, 1)])
    weights, direction = rng.standard_normal(np.shape(fn(x, 1))), rng.standard_normal(x.shape)

    def loss(x):
        y = fn(x, 1)
        return (y * weights).sum() + (y * y).sum()

    def along(x):
        return (pf.grad(loss)(x) * direction).sum()

    np.testing.assert_allclose(pf.grad(loss)(x), slopes(loss, x), rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(pf.grad(along)(x), slopes(along, x), rtol=1e-5, atol=1e-7)


def test_division_by_the_number_0_is_infinite_as_that_of_arrays():
    x = np.array([1.0, -2, 3])
    for f in (lambda x: (x / 0.0).sum(), lambda x: (x / 0).sum(), lambda x: (x / -0.0).sum()):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(pf.grad(f)(x), np.sign(f(np.ones(3))) * np.inf)
    g, k = pf.grad(lambda x, k: (x / k).sum(), wrt=(0, 1))(x, 0.0)
    np.testing.assert_array_equal(g, np.full(3, np.inf))
    assert k == -np.inf or np.isnan(k)
    g, k = pf.grad(lambda x, k: (x / k).sum(), wrt=(0, 1))(x.astype("f4"), 2.0)
    np.testing.assert_array_equal(g, np.full(3, 0.5, "f4"))
    assert g.dtype == np.float32
    assert k == -0.5


@pytest.mark.sampled(2)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_numbers_are_those_of_each_call(dtype):
    """No rule takes the value of a number, in the call that is traced, for a constant."""
    x = np.array([0.4, 1.3, 2.0], dtype)
    made = {
        "div": lambda x, k: (x / k).sum(),
        "by": lambda x, k: (k / x).sum(),
        "pow": lambda x, k: (x**k).sum(),
        "base": lambda x, k: (k**x).sum(),
        "max": lambda x, k: np.maximum(x, k).sum(),
        "hypot": lambda x, k: np.hypot(x, k).sum(),
        "both": lambda x, k: (x * k**k / (k + 1)).sum(),
        "mod": lambda x, k: (x % k).sum(),
    }
    for f in made.values():

        def along(x, k, f=f):
            g, h = pf.grad(f, wrt=(0, 1))(x, k)
            return np.sin(g).sum() + h * h

        for g in (f, along):
            kept = pf.grad(g, wrt=(0, 1), profiled_runs=99)
            for k in (1.7, 0.6, 2.9):
                fresh = pf.grad(g, wrt=(0, 1), profiled_runs=99)(x, k)
                for one, other in zip(kept(x, k), fresh, strict=True):
                    np.testing.assert_allclose(one, other, rtol=1e-6)
                if dtype == "f8":
                    slope = (g(x, k + STEP) - g(x, k - STEP)) / (2 * STEP)
                    np.testing.assert_allclose(kept(x, k)[1], slope, rtol=1e-5, atol=1e-8)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("k", [0, 1, 2, 3, -1, 0.5, 1.5, -2.5])
def test_powers_by_constants_have_no_power_of_arrays_beside_them(k):
    """The exponent stays a number: no array of it is captured, and no step is in float64."""
    x = np.array([0.4, 1.2, 2.0], np.float32)
    f = pf.grad(lambda x: (x**k).sum(), background=False)
    for _ in range(3):
        np.testing.assert_allclose(f(x), k * x.astype("f8") ** (k - 1.0), rtol=1e-6)
    text = f.ir("optimized")
    assert "xf64" not in text
    assert "%arg1" not in text


def test_powers_of_numbers_at_their_singular_points():
    x = np.array([0.0, 1.0, 2.0])
    np.testing.assert_array_equal(pf.grad(lambda x: (x**0).sum())(x), ZEROS)
    np.testing.assert_array_equal(pf.grad(lambda x: (x**2).sum())(x), 2 * x)
    np.testing.assert_array_equal(pf.grad(lambda x: (0.0**x).sum())(x), ZEROS)
    np.testing.assert_array_equal(pf.grad(lambda x: ((-2) ** x).sum())(x), ZEROS)
    np.testing.assert_allclose(pf.grad(lambda x: (2**x).sum())(x), np.log(2) * 2**x)
    assert pf.grad(lambda a, x: (x * a**0.5).sum())(0.0, x) == np.inf
    np.testing.assert_allclose(
        pf.grad(lambda a, b: (a**b * x).sum(), wrt=(0, 1))(1.5, 2.5), [2.5 * 1.5**1.5 * 3, 1.5**2.5 * np.log(1.5) * 3]
    )


# --- shapes that look alike ----------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_a_broadcast_to_more_axes_is_summed_over_them(strategy):
    """``(2, *x.shape)`` has all sizes of x, in order, and one more."""
    x = np.linspace(-1, 1, 6).reshape(2, 3)
    made = {
        "first": lambda x: np.broadcast_to(x, (2, *x.shape)),
        "of its own": lambda x: np.broadcast_to(x[:, None], (x.shape[0], 4, x.shape[1])),
        "full": lambda x: np.full((3, *x.shape), x),
        "same": lambda x: np.broadcast_to(x, x.shape),
    }
    for spread in made.values():
        f = pf.grad(lambda x, spread=spread: np.sin(spread(x) * 2).sum(), background=False, strategy=[(strategy, 2)])
        for _ in range(3):
            wanted = spread(x).size / x.size * 2 * np.cos(2 * x)
            np.testing.assert_allclose(f(x), wanted, rtol=1e-12)
