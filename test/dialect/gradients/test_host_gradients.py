"""Gradients of functions that run on the host: of traces and of the tape, by finite differences."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from composition_cases import CASES as COMPOSED
from profuse.dialect.errors import ProfuseError

RNG = np.random.default_rng(5)
A = RNG.normal(size=(2, 3, 3)) + 3 * np.eye(3)
W = RNG.normal(size=(2, 3, 3))
V = RNG.normal(size=6)


def symmetric(a):
    return a + np.swapaxes(a, -1, -2)


def all_of(y):
    """One number of complex ones, in which all parts of each count in a way of their own."""
    order = np.arange(np.size(y), dtype=float)
    flat = np.reshape(y, (-1,))
    return (np.real(flat) * np.cos(order)).sum() + (np.imag(flat) * np.sin(order + 1)).sum()


CASES = {
    "inv": (lambda a: (np.linalg.inv(a) * W).sum(), A),
    "solve matrices": (lambda a: (np.linalg.solve(a, W * a) * W).sum(), A),
    "solve a vector": (lambda a: (np.linalg.solve(a, V[:3]) * W[0]).sum(), A[0]),
    "solve, of the vector": (lambda b: (np.linalg.solve(A[0], b) ** 2).sum(), V[:3]),
    "solve, one matrix for many": (lambda a: (np.linalg.solve(a, W) * W).sum(), A[0]),
    "det": (lambda a: (np.linalg.det(a) * V[:2]).sum(), A),
    "slogdet": (lambda a: (np.linalg.slogdet(a)[1] * V[:2]).sum(), A),
    "cholesky": (lambda a: (np.linalg.cholesky(symmetric(a) + 4 * np.eye(3)) * W).sum(), A),
    "cholesky, upper": (lambda a: (np.linalg.cholesky(symmetric(a) + 4 * np.eye(3), upper=True) * W).sum(), A),
    "eigh, values": (lambda a: (np.linalg.eigh(symmetric(a))[0] * V[:3]).sum(), A),
    "eigh, vectors": (lambda a: (np.linalg.eigh(symmetric(a))[1] ** 2 * W).sum(), A),
    "eigvalsh": (lambda a: (np.linalg.eigvalsh(symmetric(a)) * V[:3]).sum(), A),
    "sort": (lambda v: (np.sort(v) * np.arange(6)).sum(), V),
    "sort of all": (lambda a: (np.sort(a, axis=None) * np.arange(18)).sum(), A),
    "sort along an axis": (lambda a: (np.sort(a, 0) * W).sum(), A),
    "partition": (lambda v: np.partition(v, 2)[2] ** 2, V),
    "mask": (lambda v: (v[v > 0] ** 2).sum() + v[v < 0][0], V),
    "mask beside slices": (lambda a: (a[:, a[0, 0] > 0, 1:] ** 2).sum(), A),
    "mask, no element": (lambda v: (v[v > 100] ** 2).sum() + v[0], V),
    "fft": (lambda v: (np.abs(np.fft.fft(v)) ** 2 * V).sum(), V),
    "ifft": (lambda v: (np.real(np.fft.ifft(v * (1 + 2j), norm="ortho")) * V).sum(), V),
    "fft of an axis": (lambda a: (np.abs(np.fft.fft(a, axis=0, norm="forward")) ** 2 * W).sum(), A),
    "rfft": (lambda v: (np.abs(np.fft.rfft(v)) ** 2 * V[:4]).sum(), V),
    "irfft": (lambda v: (np.fft.irfft(np.fft.rfft(v) * (1 + V[:4])) * V).sum(), V),
    "fft2": (lambda a: (np.abs(np.fft.fft2(a)) ** 2 * W).sum(), A),
    "ifftn": (lambda a: (np.real(np.fft.ifftn(a, axes=(0, 1))) * W).sum(), A),
    "fft of fewer points": (lambda v: all_of(np.fft.fft(v, 4)), V),
    "ifft of more points": (lambda v: all_of(np.fft.ifft(v * (1 + 2j), 9, norm="forward")), V),
    "fft of rows": (lambda a: all_of(np.fft.fft(a, 5, axis=1, norm="ortho")), A),
    "rfft of fewer points": (lambda v: all_of(np.fft.rfft(v, 5)), V),
    "rfft of more points": (lambda v: all_of(np.fft.rfft(v, 8, norm="ortho")), V),
    "irfft of odd points": (lambda v: all_of(np.fft.irfft(v * (1 + 2j), 7)), V),
    "irfft of fewer points": (lambda v: all_of(np.fft.irfft(v * (1 + 2j), 6)), V),
    "irfft of more points": (lambda v: all_of(np.fft.irfft(v * (1 + 2j), 14, norm="forward")), V),
    "irfft of one point": (lambda v: all_of(np.fft.irfft(v * (1 + 2j), 1)), V),
    "hfft": (lambda v: all_of(np.fft.hfft(v * (1 + 2j), 7, norm="ortho")), V),
    "ihfft": (lambda v: all_of(np.fft.ihfft(v, 5)), V),
    "rfft2": (lambda a: all_of(np.fft.rfft2(a)), A),
    "rfftn": (lambda a: all_of(np.fft.rfftn(a, (2, 5), (1, 2), norm="ortho")), A),
    "irfft2": (lambda a: all_of(np.fft.irfft2(a * (1 + 2j), (3, 5), norm="forward")), A),
    "irfftn": (lambda a: all_of(np.fft.irfftn(a * (1 + 2j), axes=(2, 1))), A),
    "fftn of other sizes": (lambda a: all_of(np.fft.fftn(a, (5, 2), (1, 2))), A),
    "ifft2 of other sizes": (lambda a: all_of(np.fft.ifft2(a, (-1, 4), norm="ortho")), A),
    "fftshift": (lambda v: (np.fft.fftshift(v) * V).sum() + (np.fft.ifftshift(v) ** 3).sum(), V),
    **COMPOSED,
}


def differences(f, x, step=1e-6):
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[index] = step
        found[index] = (f(x + moved) - f(x - moved)) / (2 * step)
    return found


@pytest.mark.sampled(13, each=())
@pytest.mark.parametrize("name", CASES)
def test_gradients_are_those_of_finite_differences(name):
    f, x = CASES[name]
    expected = differences(f, x)
    g = pf.jit(pf.grad(f))
    for _ in range(3):
        np.testing.assert_allclose(g(x), expected, rtol=1e-5, atol=1e-6)
        g.wait()


@pytest.mark.parametrize("name", CASES)
def test_the_tape_has_the_same_gradients(name):
    f, x = CASES[name]
    a = pf.array(x, requires_grad=True)
    f(a).backward()
    np.testing.assert_allclose(np.asarray(a.grad), differences(f, x), rtol=1e-5, atol=1e-6)


@pytest.mark.sampled(13, each=())
@pytest.mark.parametrize("name", COMPOSED)
def test_compositions_are_differentiated_forwards_twice_and_in_float32(name):
    f, x = COMPOSED[name]
    g = pf.grad(f)
    found = g(x)
    along = np.cos(np.arange(x.size, dtype=np.float64)).reshape(x.shape)
    np.testing.assert_allclose(pf.jvp(f, (x,), (along,))[1], (found * along).sum(), rtol=1e-6)
    expected = (g(x + 1e-5 * along) - g(x - 1e-5 * along)) / 2e-5
    twice = pf.grad(lambda x: (g(x) * along).sum())(x)
    np.testing.assert_allclose(twice, expected, rtol=1e-3, atol=1e-4)
    single = g(x.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, found, rtol=2e-3, atol=2e-3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", COMPOSED)
def test_gradients_of_the_tape_stay_as_they_are_however_often_they_run(name):
    f, x = COMPOSED[name]
    a = pf.array(x, requires_grad=True)
    expected = pf.gradients(f(a), a)
    for _ in range(12):  # a rule that runs often is recorded
        found = pf.gradients(f(a), a)
        assert found.shape == x.shape
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["inv", "mask", "fft", "rfft of more points", "hfft", "sort"])
def test_second_derivatives(name):
    f, x = CASES[name]
    g = pf.grad(f)
    found = pf.grad(lambda x: (g(x) ** 2).sum())(x)
    expected = differences(lambda x: (g(x) ** 2).sum(), x)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda a: np.linalg.svd(a[0, :2])[2][2].sum(), A),
        (lambda v: np.i0(v).sum(), V),
        (lambda v: np.quantile(v, 0.3, method="weibull"), V),
        (lambda v: np.nansum(v, where=V > 0), V),
        (lambda a: np.linalg.qr(a[0], mode="complete")[0].sum(), A),
    ],
)
def test_what_has_no_gradient_is_refused(f, x):
    with pytest.raises(ProfuseError, match="no gradient yet"):
        pf.grad(f)(x)


def test_integer_results_carry_no_gradient():
    found = pf.grad(lambda v: (v * np.argsort(np.argsort(v))).sum())(V)
    np.testing.assert_array_equal(found, np.argsort(np.argsort(V)))
