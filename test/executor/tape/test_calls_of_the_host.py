"""Functions that run on the host: one result is that result, in all runs of a rule."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from profuse.executor.tape import plans

RNG = np.random.default_rng(11)
A = RNG.normal(size=(3, 3)) + 3 * np.eye(3)
V = RNG.normal(size=6)
RUNS = plans.OFTEN + 4

CASES = {
    "sort of all": (lambda a: np.sort(a, None) * np.arange(9), A),
    "sort along the first axis": (lambda a: np.sort(a, axis=0) * a, A),
    "partition": (lambda v: np.partition(v, 3)[:4] * v[:4], V),
    "inverse": (lambda a: np.linalg.inv(a) @ a[:, :2], A),
    "solve for the matrix": (lambda a: np.linalg.solve(a, V[:3]) * a[0], A),
    "solve for the vector": (lambda v: np.linalg.solve(A, v[:3]) - v[3:], V),
    "determinant": (lambda a: np.linalg.det(a) + a, A),
    "sign and logarithm": (lambda a: np.linalg.slogdet(a @ a.T)[1] * a, A),
    "factor": (lambda a: np.linalg.cholesky(a @ a.T) * a, A),
    "eigenvalues": (lambda a: np.linalg.eigvalsh(a + a.T) * a[1], A),
    "eigenvectors": (lambda a: np.linalg.eigh(a + a.T)[1] ** 2 * a, A),
    "transform and back": (lambda v: np.fft.irfft(np.fft.rfft(v) * np.arange(4)) * v, V),
    "spectrum of two axes": (lambda a: np.abs(np.fft.fft2(a)) ** 2, A),
    "shift": (lambda v: np.fft.fftshift(v) * v, V),
    "mask": (lambda v: v[v < 0.5] ** 2, V),
    "mask of rows": (lambda a: a[np.array([True, False, True])] * a[0], A),
    "mask that nothing meets": (lambda v: v[v > 9].sum() + v, V),
    "one piece": (lambda v: np.split(v, 1)[0] * v, V),
    "one of several pieces": (lambda v: np.array_split(v, 2)[1] * v[0], V),
}


def differences(f, x, step=1e-6):
    found = np.zeros_like(x)
    for index in np.ndindex(x.shape):
        moved = np.zeros_like(x)
        moved[index] = step
        found[index] = (np.sum(f(x + moved)) - np.sum(f(x - moved))) / (2 * step)
    return found


def check(f, plain, x, run):
    """One backward run of the sum, against differences; what `f` returns is what NumPy returns."""
    leaf, expected = pf.array(x, requires_grad=True), plain(x)
    y = f(leaf)
    assert isinstance(y, np.ndarray) and y.shape == expected.shape, (run, y)
    np.testing.assert_allclose(y.data, expected, rtol=1e-9, atol=1e-12)
    y.sum().backward()
    assert type(leaf.grad) is np.ndarray and leaf.grad.shape == x.shape, run
    np.testing.assert_allclose(leaf.grad, differences(plain, x), rtol=1e-5, atol=1e-6, err_msg=f"run {run}")


@pytest.mark.parametrize("name", CASES)
def test_each_run_on_the_tape_has_the_gradient(name):
    f, x = CASES[name]
    plans.forget()
    for run in range(RUNS):
        check(f, f, x * (1 + run / 64), run)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
@pytest.mark.parametrize("name", CASES)
def test_each_call_of_a_jitted_function_has_the_gradient(name, profiling):
    f, x = CASES[name]
    plans.forget()
    with pf.knobs.override(background=False, profiling_mode=profiling):
        jitted = pf.jit(f)
        for run in range(6):
            check(jitted, f, x, run)
    assert jitted.state().counters["python_calls"] == 0


def test_a_result_of_the_host_is_what_the_next_operation_takes():
    """Also where its operand is no result of a kernel, and other gradients are of kernels."""
    f = pf.jit(lambda x, w: np.sum(x * 3.0) + np.sum(np.cos(np.sort(w, axis=0))), background=False)
    w0 = RNG.normal(size=(4, 2))
    for run in range(6):
        x, w = pf.array(V, requires_grad=True), pf.array(w0, requires_grad=True)
        f(x, w).backward()
        np.testing.assert_allclose(x.grad, np.full(6, 3.0))
        assert w.grad is not None, run
        np.testing.assert_allclose(w.grad, -np.sin(w0))
