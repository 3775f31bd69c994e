"""Remainders of floats: NumPy's bits, in loops that are SIMD code."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built, same_bits
from profuse.dialect.ir.dtypes import F32, F64
from profuse.lowering.target import host_target

RNG = np.random.default_rng(7)


def numbers(dtype, count):
    """Numbers of all sizes, whole ones, neighbours of multiples, and special values."""
    bits = RNG.integers(0, 2 ** (8 * dtype.itemsize), count, dtype=f"u{dtype.itemsize}")
    some = RNG.normal(0, 100, count).astype(dtype)
    whole = RNG.integers(-50, 50, count).astype(dtype)
    special = RNG.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1, -3, 1e-40, 5e-324], count)
    return np.concatenate([bits.view(dtype), some, whole, special.astype(dtype)])


def pairs(dtype, count=4000):
    x, y = numbers(dtype, count), RNG.permutation(numbers(dtype, count))
    with np.errstate(all="ignore"):
        times = y * RNG.integers(1, 1000, len(y)).astype(dtype)
        near = np.nextafter(times, RNG.choice([-np.inf, 0, np.inf], len(y)).astype(dtype))
        small = y * RNG.random(len(y)).astype(dtype)
    return np.concatenate([x, times, near, small]), np.concatenate([y, y, y, y])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("name", ["fmod", "remainder", "floor_div"])
def test_bits(name, dtype):
    g = Graph(tensor("n", dtype=dtype), tensor("n", dtype=dtype))
    program = g.returning(getattr(g, name)(*g.inputs))
    x, y = pairs(np.dtype(dtype.numpy))
    with np.errstate(all="ignore"):
        keep = ~np.isnan(np.fmod(x, y))  # a NaN may be any
        same_bits(program, x[keep], y[keep], kernel=built(program))
        (found,) = built(program)(x, y)
        wanted = {"fmod": np.fmod, "remainder": np.remainder, "floor_div": np.floor_divide}[name]
        np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted(x, y)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, F64], ids=str)
@pytest.mark.parametrize("divisor", [1.0, 6.0, 2 * np.pi, -0.1, 1e-300])
def test_bits_for_one_divisor(divisor, dtype):
    """A reciprocal may stand for it."""
    g = Graph(tensor("n", dtype=dtype))
    program = g.returning(g.fmod(*g.inputs, g.number(divisor, dtype.numpy)))
    x, _ = pairs(np.dtype(dtype.numpy))
    with np.errstate(all="ignore"):
        x = x[~np.isnan(np.fmod(x, dtype.numpy.type(divisor)))]
        same_bits(program, x, kernel=built(program))


@pytest.mark.skipif(not host_target().fused, reason="needs fused multiply-add")
def test_one_loop_calls_nothing():
    g = Graph(tensor(5000, dtype=F64))
    kernel = built(g.returning(g.remainder(*g.inputs, g.number(6.0, np.float64))))
    text = kernel.stages["asm"]
    assert re.search(r"v?fn?m(add|sub)\d*pd|fml[as]", text)
    assert re.search(r"v?round|rndscale|frintz", text)
