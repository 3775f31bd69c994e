"""Values and gradients against JAX's, of the same NumPy source. Skipped where JAX is not installed.

In `make pytest` a sample of the random functions; `make peers-gradients` runs them all.
"""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError

jax = pytest.importorskip("jax", reason="JAX is not installed")
import jax.numpy as jnp  # noqa: E402

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "test/dialect/gradients")]

from harness import libraries  # noqa: E402
from published_programs import PROGRAMS  # noqa: E402
from random_functions import Plain, function  # noqa: E402
from suite import KERNELS, Case, Size, leaves  # noqa: E402

FUNCTIONS = 300 if os.environ.get("EVERY_CASE") else 12
SMALL = Size("tiny", 5, 8)
# JAX has no gradient of a loop of unknown length, of integers among the arguments, and cannot index
# an array of NumPy by a traced number.
NOT_IN_JAX = {"while_newton", "leaves_of_all_kinds", "hidden_markov_model"}


@pytest.fixture(autouse=True)
def _exact():
    known = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    with np.errstate(all="ignore"), pf.knobs.override(cache=False), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    jax.config.update("jax_enable_x64", known)


def weighed(results):
    """One number of float results, of which each element counts differently."""
    total = 0.0
    for k, out in enumerate(leaves(results)):
        if np.dtype(out.dtype).kind in "fc":
            weights = np.cos(np.arange(float(np.prod(out.shape)) if out.shape else 1.0) + k)
            term = (out * weights.reshape(out.shape)).sum()
            total = total + (term.real + 2.0 * term.imag if out.dtype.kind == "c" else term)
    return total


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_of_the_benchmarks(name):
    case = Case(KERNELS[name], KERNELS[name].dtypes[0], SMALL)
    args = case.exact_args()
    floats = tuple(k for k, a in enumerate(args) if a.dtype.kind in "fc")
    if not floats:
        pytest.skip("a kernel of integers")
    ours, theirs = libraries.profuse_library(), libraries.jax_library()
    wanted, slopes = jax.value_and_grad(lambda *a: weighed(case.kernel.fn(theirs, *a)), argnums=floats)(*args)
    value, grads = pf.value_and_grad(lambda *a: weighed(case.kernel.fn(ours, *a)), wrt=floats, profiled_runs=9)(*args)
    np.testing.assert_allclose(value, wanted, rtol=1e-9)
    for g, s in zip(grads, slopes, strict=True):
        # Of a real loss by a complex number JAX gives the conjugate.
        np.testing.assert_allclose(g, np.conj(s), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("seed", range(FUNCTIONS))
def test_random_functions(seed):
    made = function(seed)
    f, every = made.compiled(), tuple(range(len(made.args)))
    try:
        wanted, slopes = jax.value_and_grad(lambda *a: f(jnp, jax.lax, *a), argnums=every)(*made.args)
    except (TypeError, ValueError) as error:
        pytest.skip(f"JAX: {error}")
    if not all(np.isfinite(s).all() for s in slopes):
        pytest.skip("JAX's gradient is not finite: a norm or a deviation is 0")
    try:
        value, grads = pf.value_and_grad(lambda *a: f(np, Plain, *a), wrt=every, profiled_runs=9)(*made.args)
    except TraceError as error:
        assert "cross of vectors of two" in str(error)
        return
    np.testing.assert_allclose(value, wanted, rtol=1e-9, atol=1e-12)
    for g, s in zip(grads, slopes, strict=True):
        assert g.shape == s.shape
        np.testing.assert_allclose(g, s, rtol=1e-8, atol=1e-9, err_msg=made.text)


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n not in NOT_IN_JAX])
def test_published_programs(name):
    program = PROGRAMS[name]
    first, *rest = program.args
    wanted, slopes = jax.value_and_grad(lambda p: program.fn(jnp, jax.lax, p, *rest))(first)
    value, grads = pf.value_and_grad(lambda *a: program.fn(np, pf, *a), profiled_runs=9)(*program.args)
    np.testing.assert_allclose(value, wanted, rtol=1e-9)
    for g, s in zip(jax.tree.leaves(grads), jax.tree.leaves(slopes), strict=True):
        np.testing.assert_allclose(g, s, rtol=1e-7, atol=1e-10)
