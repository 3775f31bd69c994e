"""Functions of elements in loops: right, and without what is rarely needed."""

from __future__ import annotations

import math
import platform

import numpy as np
import pytest
from native_loops import native, same
from profuse.lowering.target import host_target

pytestmark = pytest.mark.optimised

needs_vectors = pytest.mark.skipif(
    not (host_target().triple.startswith("x86_64") and host_target().fused),
    reason="registers are told by their names on x86, and versions need fused multiply-add",
)

RARE = np.array([1e9, -3e300, np.inf, -np.inf, np.nan, 5e-324, 0.0, -0.0, 1e-310])


def sines(x):
    y = np.zeros(len(x))
    last = 0.0
    for i in range(len(x)):
        last = np.sin(x[i]) + np.cos(x[i]) * 0.5 + 0.25 * last
        y[i] = last
    return y


def logarithms(x):
    y = np.zeros(len(x))
    last = 1.0
    for i in range(len(x)):
        last = np.log(x[i]) * last + np.log2(x[i]) - last
        y[i] = last
    return y


def powers(x):
    y = np.zeros(len(x))
    last = 1.0
    for i in range(len(x)):
        last = np.abs(x[i]) ** 1.3 * 0.1 + 0.5 / (last + 1.0)
        y[i] = last
    return y


def repeated(x):
    y = x.copy()
    for _ in range(20):
        y += 0.1 * np.sin(y)
        y[3:] = np.cos(y[:-3])
    return y


@pytest.mark.parametrize("function", [sines, logarithms, powers, repeated])
@pytest.mark.filterwarnings("ignore")
def test_values_that_few_elements_need(function):
    x = np.linspace(0.5, 3, 64)
    jitted = native(function, x)
    for value in RARE:
        for place in (0, 17, 63):
            given = x.copy()
            given[place] = value
            same(jitted, function, (given,))


@needs_vectors
@pytest.mark.parametrize("function", [sines, logarithms, powers])
def test_a_branch_goes_around_rare_values(function):
    jitted = native(function, np.linspace(0.5, 3, 64))
    assert "llvm.intr.expect" in jitted.ir("loops")


@needs_vectors
def test_a_loop_of_array_elements_has_a_version_without_rare_values():
    jitted = native(repeated, np.linspace(0.5, 3, 64))
    loops = jitted.ir("loops").split("scf.for")
    # Sines and cosines: a test, the whole loop with a call of libm, and the loop without it.
    assert sum("math.sin" in loop or "math.cos" in loop for loop in loops) == 2
    assert sum("llvm.intr.expect" in loop for loop in loops) == 2
    assert "ymm" in jitted.ir("asm") or "zmm" in jitted.ir("asm")


@pytest.mark.skipif(platform.machine() != "x86_64", reason="instructions are told by their names on x86")
@pytest.mark.parametrize("reduction", ["any", "all"])
def test_folds_of_truths_are_simd_code_in_rounds_too(reduction):
    def rounds(x, keep, n):
        y = x.copy()
        for _ in range(n):
            truths = getattr(np, reduction)(np.where(keep, y, np.float32(reduction == "all")), axis=-1)
            y = x + np.mean(truths) * np.float32(0.001)
        return y

    keep = np.arange(64 * 256).reshape(64, 256) % 3 > 0
    jitted = native(rounds, keep.astype(np.float32), keep, 5, tolerance=1e-6)
    assert "vpor" in jitted.ir("asm")  # of as many truths as a vector holds


def sum_of_logarithms(x):
    total = 0.0
    for i in range(len(x)):
        total += np.log(x[i]) * x[i]
    return total


def sum_of_sines(x):
    total = 0.0
    for i in range(len(x)):
        total -= math.sin(x[i])
    return total


def transform(x):
    n = len(x)
    out = np.zeros(n, dtype=np.complex128)
    for k in range(n):
        total = 0j
        for t in range(n):
            total += x[t] * np.exp(-2j * np.pi * k * t / n)
        out[k] = total
    return out


@pytest.mark.sampled(5)
@pytest.mark.parametrize("n", [1, 7, 64, 101])
@pytest.mark.parametrize("function", [sum_of_logarithms, sum_of_sines, transform])
def test_sums_whose_rounds_compute_functions(function, n):
    jitted = native(function, np.linspace(0.5, 3, 64))
    x = np.random.default_rng(n).random(n) + 0.1
    for _ in range(3):
        same(jitted, function, (x,), tolerance=1e-11)
        jitted.wait()


@needs_vectors
def test_such_sums_are_simd_code_that_adds_in_order():
    x = np.linspace(0.5, 3, 1001)
    jitted = native(sum_of_sines, x)
    assert jitted.ir("asm").count("ymm") + jitted.ir("asm").count("zmm") > 20
    ordered = 0.0
    for value in np.sin(x):
        ordered -= value
    assert jitted(x) == pytest.approx(ordered, rel=1e-15)


def test_an_infinite_argument_in_such_a_sum_raises_as_in_python():
    x = np.linspace(0.5, 3, 64)
    jitted = native(sum_of_sines, x)
    x[50] = np.inf
    with pytest.raises(ValueError, match=r"math domain error|expected a finite input"):
        jitted(x)


def gathered(x, k):
    total = 0.0
    for i in range(len(k)):
        total += np.exp(x[k[i]])
    return total


def test_an_index_out_of_range_in_such_a_sum_raises_as_in_numpy():
    x, k = np.linspace(0.5, 3, 40), np.arange(39)
    jitted = native(gathered, x, k)
    for last in (39, -40, 40, -41):
        k[20] = last
        same(jitted, gathered, (x, k))
    assert jitted.state().counters["voided_launches"] == 2
