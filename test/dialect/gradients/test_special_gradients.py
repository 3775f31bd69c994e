"""Gradients of the ufuncs of `scipy.special`, by finite differences, on the tape and in graphs."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import ProfuseError
from profuse.dialect.importers.foreign.on_host import on_host
from profuse.dialect.ops.host.special_gradients import PARTIALS

special = pytest.importorskip("scipy.special")
NAMES = sorted(name.rpartition(".")[2] for name in PARTIALS if "_ufuncs" not in name)
RNG = np.random.default_rng(3)
SMALL, POSITIVE, SIGNED = RNG.random(5) * 0.8 + 0.1, RNG.random(5) + 0.4, np.array([-1.6, -0.7, 0.3, 0.9, 2.4])
PLACES = {
    **dict.fromkeys(("erfinv", "ndtri", "logit", "erfcinv"), SMALL),
    **dict.fromkeys(("gammaln", "gamma", "psi", "rgamma", "exp10", "erfc", "erfcx", "ndtr", "log_ndtr"), SIGNED),
    **dict.fromkeys(("log_expit", "i0", "i0e", "j0"), SIGNED),
    **dict.fromkeys(("i1", "i1e", "j1"), np.append(SIGNED, 0.0)),
}


def weighed(y):
    return (y * np.cos(np.arange(6.0)[: y.shape[0]])).sum()


def forms(name):
    """Functions of one array: of each argument, of both, and of a number."""
    ufunc, other = getattr(special, name), RNG.random(5) + 0.3
    if ufunc.nin == 1:
        return [lambda x: weighed(ufunc(x))]
    of_last = [lambda x: weighed(ufunc(other, x)), lambda x: weighed(ufunc(2.0, x))]
    if name.startswith("gammainc"):
        return of_last
    return [*of_last, lambda x: weighed(ufunc(x, other)), lambda x: weighed(ufunc(x, x + 1))]


def differences(f, x, step=1e-6):
    moved = step * np.eye(len(x))
    return np.array([(f(x + d) - f(x - d)) / (2 * step) for d in moved])


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_those_of_differences(name):
    x = PLACES.get(name, POSITIVE)
    for f in forms(name):
        wanted = differences(f, x)
        a = pf.array(x, requires_grad=True)
        for _ in range(10):  # a rule that runs often is recorded
            np.testing.assert_allclose(pf.gradients(f(a), a), wanted, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(pf.grad(f)(x), wanted, rtol=1e-5, atol=1e-7)
        assert pf.grad(f)(x.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("name", ["gammaln", "psi", "ndtr", "xlogy", "betaln", "erfinv", "i1"])
def test_second_derivatives(name):
    x = PLACES.get(name, POSITIVE)
    g = pf.grad(forms(name)[-1])
    wanted = differences(lambda x: weighed(g(x)), x)
    np.testing.assert_allclose(pf.grad(lambda x: weighed(g(x)))(x), wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("n", [2.0, np.float64(2.0), np.full(5, 2.0)], ids=["number", "scalar", "array"])
def test_the_zeta_function_has_a_derivative(n):
    """Operators of torch call it, with orders of each kind."""
    found = pf.grad(lambda x: np.sum(on_host("scipy.special._ufuncs._zeta", n, x)))(POSITIVE)
    np.testing.assert_allclose(found, -2 * special.zeta(3, POSITIVE), rtol=1e-10)


def test_what_has_no_derivative_is_refused():
    for f in (lambda x: special.gammainc(x, 0.5).sum(), lambda x: special.struve(0.5, x).sum()):
        with pytest.raises(ProfuseError, match="no gradient yet"):
            pf.grad(f)(POSITIVE)
    with pytest.raises(ProfuseError, match="complex numbers"):
        pf.grad(lambda x: np.real(special.psi(x * (1 + 1j))).sum())(POSITIVE)
