"""Jitted functions that SciPy, scikit-learn and NumPy's own loops call, or that call into these."""

import functools
import importlib
import math

import numpy as np
import profuse as pf
import pytest
import scipy

PARTS = ("integrate", "linalg", "ndimage", "optimize", "signal", "sparse.linalg", "spatial.distance", "stats")


@pytest.fixture(scope="module", autouse=True)
def _parts():
    """The parts of SciPy take seconds to import, which each process that collects tests would wait for."""
    for part in PARTS:
        importlib.import_module(f"scipy.{part}")


rng = np.random.default_rng(0)
START = np.array([1.3, 0.7, 0.8, 1.9, 1.2])
TIMES = np.linspace(0, 4, 50)
CURVE = 2.5 * np.exp(-1.3 * TIMES) + 0.5 + 0.01 * rng.standard_normal(50)
IMAGE = rng.standard_normal((14, 15))
MATRIX = IMAGE @ IMAGE.T + 14 * np.eye(14)
SIDE = rng.standard_normal(14)
FILTER = [0.0181, 0.0543, 0.0543, 0.0181], [1.0, -1.76, 1.1829, -0.2781]  # of third order
SPARSE = scipy.sparse.random(14, 14, 0.3, random_state=0, format="csr")


@pytest.fixture(autouse=True)
def _as_users_have_it():
    with pf.knobs.override(unsupported="python"):
        yield


def bowl(x):
    return np.sum((x - 1.5) ** 2) + np.sum(x[1:] * x[:-1]) * 0.1


def bowl_grad(x):
    g = 2 * (x - 1.5)
    g[1:] += 0.1 * x[:-1]
    g[:-1] += 0.1 * x[1:]
    return g


def decay(t, a, b, c):
    return a * np.exp(-b * t) + c


def cubic(x):
    return x**3 - 2 * x - 5


def bell(x, a):
    return np.exp(-a * x * x)


def bell_of_math(x):
    return math.exp(-x * x) * math.cos(x)


def kinked(x):
    if x < 0.3:
        return 0.0
    return np.sqrt(x)


def pendulum(y, t, b, c):
    theta, omega = y
    return [omega, -b * omega - c * np.sin(theta)]


def lorenz(t, y):
    return np.array([10 * (y[1] - y[0]), y[0] * (28 - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


def system(x):
    return [x[0] * np.cos(x[1]) - 4, x[1] * x[0] - x[1] - 5]


def product(y, x):
    return x * y**2


def spread(window):
    return window.max() - window.min()


def distance(u, v):
    return np.sqrt(((u - v) ** 2).sum())


def times_matrix(v):
    return MATRIX @ v


def halved(c):
    return c[0] - 0.5, c[1] - 0.5


def affine(a, b):
    return a * 2 + b


def centred(row):
    return row - row.mean()


def minimised(method, **options):
    def run(f, g=None):
        r = scipy.optimize.minimize(f, START, jac=g, method=method, **options)
        return r.x, r.success

    return run


def quadratures(f, g):
    return scipy.integrate.quad(f, 0, np.inf, args=(2.0,)), scipy.integrate.quad(g, -3, 3)


def roots(f):
    found = scipy.optimize.brentq(f, 2, 3), scipy.optimize.newton(f, 2.0), scipy.optimize.bisect(f, 2.0, 3.0)
    return *found, scipy.optimize.root_scalar(f, bracket=(2, 3)).function_calls


def steps(f):
    solved = [scipy.integrate.solve_ivp(f, (0, 0.3), [1.0, 1.0, 1.0], method=m) for m in ("RK45", "BDF")]
    return [(s.y[:, -1], s.nfev, s.status) for s in solved]


def solved(f):
    solvers = scipy.sparse.linalg
    operator = solvers.LinearOperator((14, 14), matvec=f, dtype=float)
    return *solvers.cg(operator, SIDE), *solvers.gmres(operator, SIDE), solvers.LinearOperator((14, 14), matvec=f).dtype


def vectorized(f):
    ints, floats = np.vectorize(f)(np.arange(4), 5), np.vectorize(f)(np.arange(4.0), 5)
    made = np.frompyfunc(f, 2, 1)(np.arange(4.0), 2.0)
    return ints, floats, made.tolist(), [type(v) for v in made], np.fromfunction(f, (3, 4))


# name -> the functions, what calls them, and the tolerance that the solver has for rounding
CALLBACKS = {
    "BFGS": ((bowl,), minimised("BFGS"), 1e-6),
    "BFGS with a gradient": ((bowl, bowl_grad), minimised("BFGS"), 1e-9),
    "L-BFGS-B": ((bowl, bowl_grad), minimised("L-BFGS-B"), 1e-9),
    "Nelder-Mead": ((bowl,), minimised("Nelder-Mead", options={"maxiter": 60}), 1e-6),
    "least_squares": (
        (lambda p: decay(TIMES, *p) - CURVE,),
        lambda f: scipy.optimize.least_squares(f, [1.0, 1.0, 0.0]).x,
        1e-6,
    ),
    "curve_fit": ((decay,), lambda f: scipy.optimize.curve_fit(f, TIMES, CURVE)[0], 1e-6),
    "root": ((system,), lambda f: scipy.optimize.root(f, [1.0, 1.0]).x, 1e-9),
    "fsolve": ((system,), lambda f: scipy.optimize.fsolve(f, [1, 1]), 1e-9),
    "roots of one number": ((cubic,), roots, 1e-12),
    "differential_evolution": (
        (bowl,),
        lambda f: scipy.optimize.differential_evolution(f, [(-5, 5)] * 2, seed=1, maxiter=5, popsize=6, polish=False).x,
        1e-9,
    ),
    "solve_ivp": ((lorenz,), steps, 1e-7),
    "odeint": (
        (pendulum,),
        lambda f: scipy.integrate.odeint(f, [3.0, 0.0], np.linspace(0, 3, 21), args=(0.25, 5.0)),
        1e-7,
    ),
    "quad": ((bell, bell_of_math), quadratures, 1e-12),
    "quad of a branch": ((kinked,), lambda f: scipy.integrate.quad(f, 0, 1, points=[0.3]), 1e-12),
    "dblquad": ((product,), lambda f: scipy.integrate.dblquad(f, 0, 2, 0, 1), 1e-12),
    "generic_filter": ((spread,), lambda f: scipy.ndimage.generic_filter(IMAGE, f, size=3), 1e-12),
    "geometric_transform": ((halved,), lambda f: scipy.ndimage.geometric_transform(IMAGE, f), 1e-12),
    "cdist": ((distance,), lambda f: scipy.spatial.distance.cdist(IMAGE, IMAGE[:5], lambda u, v: f(u, v)), 1e-12),
    "LinearOperator": ((times_matrix,), solved, 1e-9),
    "vectorize": ((affine,), vectorized, 1e-12),
    "apply_along_axis": ((centred,), lambda f: np.apply_along_axis(f, 0, IMAGE), 1e-12),
    "partial": ((decay,), lambda f: scipy.integrate.quad(functools.partial(f, a=1.0, b=2.0, c=0.0), 0, 1), 1e-12),
}


def assert_same(got, wanted, rtol):
    assert type(got) is type(wanted)
    if isinstance(wanted, (tuple, list)):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            assert_same(one, other, rtol)
    elif isinstance(wanted, (np.ndarray, np.generic, float)):
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(got, wanted, rtol=rtol, atol=rtol)
    else:
        assert got == wanted


@pytest.mark.sampled(4)
@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("name", CALLBACKS)
def test_callbacks_give_what_the_functions_give(name, background):
    functions, run, rtol = CALLBACKS[name]
    wanted = run(*functions)
    jitted = [pf.jit(f, background=background) for f in functions]
    for _ in range(2):
        assert_same(run(*jitted), wanted, rtol)
    for f in jitted:
        f.wait()
    for _ in range(2):
        assert_same(run(*jitted), wanted, rtol)


def test_gradients_serve_minimize():
    wanted = scipy.optimize.minimize(bowl, START, jac=bowl_grad, method="L-BFGS-B")
    for function in (pf.value_and_grad(bowl), pf.value_and_grad(pf.jit(bowl, background=False))):
        found = scipy.optimize.minimize(function, START, jac=True, method="L-BFGS-B")
        assert (found.success, found.nit) == (wanted.success, wanted.nit)
        np.testing.assert_allclose(found.x, wanted.x, rtol=1e-6)


def root(self, x):
    return x**0.5 + abs(x)


def several(a, b):
    return a, -b, 3, 2.5, [a * b, {"k": b + 1}], a**2


@pytest.mark.parametrize(
    ("function", "args"),
    [(cubic, (0.5,)), (product, (0.5, 2.0)), (halved, ((1.0, 2.0),)), (bell, (0.5, 2.0)), (several, (1.5, 7))],
)
def test_emitted_code_returns_numbers(function, args):
    f = pf.jit(function, background=False)
    for _ in range(4):
        assert_same(f(*args), function(*args), 1e-15)
    state = f.state()
    assert state.emitted
    before = state.counters["python_calls"]
    assert_same(f(*args), function(*args), 1e-15)
    assert f.state().counters["python_calls"] == before


def test_powers_raise_as_python_does():
    f = pf.jit(lambda x: x**2, background=False)
    for x in (1.0, 1.0, 1.0, -2.0, 0.0, math.inf, math.nan, 1e-300):
        assert repr(f(x)) == repr(x**2)
    assert f.state().emitted
    with pytest.raises(OverflowError):
        f(1e200)


@pytest.mark.parametrize(("function", "args"), [(root, (None, 0.5)), (kinked, (0.1,))])
def test_python_computes_numbers_alone_where_no_code_is_emitted(function, args):
    f = pf.jit(function, background=False)
    with pf.knobs.override(native_dispatch=False):
        for _ in range(3):
            f(*args)
        before = f.state().counters
        assert_same(f(*args), function(*args), 0)
        after = f.state().counters
    assert after["python_calls"] == before["python_calls"] + 1
    assert after["evaluated_ops"] == before["evaluated_ops"]


def test_functions_of_math_are_one_graph_for_all_numbers():
    f = pf.jit(bell_of_math, background=False)
    for k in range(40):
        assert f(k / 8) == bell_of_math(k / 8)
    assert f.state().counters["traces"] == 1


def gamma(x):
    return math.gamma(x + 1.0) * x


def test_numbers_that_are_baked_in_and_change_are_pythons():
    f = pf.jit(gamma, background=False)
    for k in range(40):
        assert f(k / 8) == gamma(k / 8)
    counters = f.state().counters
    assert counters["traces"] == 8
    assert counters["python_calls"] >= 30
    assert f.state().tier == "python"
    assert "changes from call to call" in f.explain()


def mixed(y, a, n):
    return y * (-a) + (a - n) / (a * 2) + (n * 3 - a), y.sum() * (-n) + (n - 1) * a


@pytest.mark.parametrize("n", [3, -(2**31), 2**31, 2**62, -(2**63), 2**63, 10**30])
def test_emitted_code_computes_numbers(n):
    f = pf.jit(mixed, background=False)
    y = np.arange(3.0)
    for _ in range(3):
        f(y, 0.75, 3)
    assert f.state().emitted
    assert_same(f(y, 0.75, n), mixed(y, 0.75, n), 1e-15)
    assert f.state().counters["python_calls"] == 0
    for a in (0.0, -0.0):
        with pytest.raises(ZeroDivisionError):
            f(y, a, n)
    assert_same(f(y, -1e300, n), mixed(y, -1e300, n), 1e-15)


def test_an_equation_of_motion_is_dispatched_in_emitted_code():
    f, y = pf.jit(pendulum, background=False), np.array([3.0, 0.5])
    for _ in range(3):
        f(y, 0.0, 0.25, 5.0)
    assert f.state().emitted
    before = f.state().counters["evaluated_ops"]
    assert_same(f(y, 0.0, 0.5, 4.0), pendulum(y, 0.0, 0.5, 4.0), 1e-15)
    assert f.state().counters["evaluated_ops"] == before + 1  # counted, as Python would


INSIDE = {
    "lfilter": (lambda x: scipy.signal.lfilter(*FILTER, x * 2.0) + 1, SIDE),
    "convolve": (lambda x: scipy.signal.convolve(x, np.hanning(5), mode="same") * 0.5, SIDE),
    "gaussian_filter": (lambda x: np.tanh(scipy.ndimage.gaussian_filter(x * 2, 1.0)), IMAGE),
    "solve": (lambda x: scipy.linalg.solve(MATRIX, x) + scipy.linalg.expm(MATRIX / 20) @ x, SIDE),
    "stats": (lambda x: (scipy.stats.norm.pdf(x), scipy.stats.zscore(x), scipy.stats.norm.ppf(0.3)), SIDE),
    "sparse": (lambda x: (SPARSE @ x, SPARSE.T @ x + 1.0, SPARSE.sum()), SIDE),
    "minimize": (lambda x: scipy.optimize.minimize(lambda p: np.sum((p - x) ** 2), x * 0).x, SIDE),
    "errors": (lambda x: scipy.linalg.cholesky(x[:, :14] * 0 - 1), IMAGE),
}


@pytest.mark.parametrize("name", INSIDE)
def test_functions_that_call_scipy(name):
    function, x = INSIDE[name]
    f = pf.jit(function, background=False)
    for _ in range(4):
        if name == "errors":
            with pytest.raises(scipy.linalg.LinAlgError):
                f(x)
            continue
        assert_same(f(x), function(x), 1e-12)
    assert f.state().tier == "python"


def test_scikit_learn():
    pytest.importorskip("sklearn")
    from sklearn.linear_model import Ridge
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.preprocessing import FunctionTransformer
    from sklearn.svm import SVC

    sums = IMAGE.sum(1)
    model = Ridge().fit(IMAGE, sums)

    def logs(x):
        return np.log1p(np.abs(x))

    def kernel(a, b):
        return np.exp(-0.1 * ((a[:, None] - b[None]) ** 2).sum(-1))

    def score(y, p):
        return -np.mean((y - p) ** 2)

    def predicted(x):
        return model.predict(x * 2) + 1

    def run(logs, kernel, distance, score, predicted):
        machine = SVC(kernel=kernel).fit(IMAGE, sums > 0)
        near = KNeighborsClassifier(3, metric=distance).fit(IMAGE, sums > 0)
        return (
            FunctionTransformer(logs, validate=True).fit_transform(IMAGE),
            machine.predict(IMAGE),
            machine.decision_function(IMAGE),
            near.predict(IMAGE),
            near.kneighbors(IMAGE),
            cross_val_score(Ridge(), IMAGE, sums, scoring=make_scorer(score), cv=3),
            predicted(IMAGE),
        )

    functions = logs, kernel, distance, score, predicted
    wanted, jitted = run(*functions), [pf.jit(f, background=False) for f in functions]
    for _ in range(3):
        assert_same(run(*jitted), wanted, 1e-9)
    assert [f.state().counters["python_calls"] for f in jitted] == [0, 0, 0, 0, 3]
