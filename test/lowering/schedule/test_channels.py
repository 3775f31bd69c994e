"""Interleaved channels are taken apart in one walk, into the same values."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built as build
from native import same_bits as check
from profuse.dialect.ir.dtypes import F32, F64, I16, U8
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.schedule.channels import MOST

RNG = np.random.default_rng(8)


def drawn(shape, dtype):
    return (RNG.standard_normal(shape) * 50 + 100).astype(dtype.numpy)


def planes(shape, dtype, divisor=None):
    """Two results of which each has a plane per channel."""
    g = Graph(tensor(*shape, dtype=dtype), *([tensor(shape[-1])] if divisor is not None else []))
    x = g.cast(g.inputs[0], dtype=F32)
    scaled = g.div(x, g.number(127.5) if divisor is None else g.inputs[1])
    last = len(shape) - 1
    perm = (*range(last - 2), last, last - 2, last - 1)
    return g.returning(g.transpose(scaled, perm=perm), g.transpose(g.abs(x), perm=perm))


def runs_over_channels(kernel, count):
    """True if one round of an innermost loop reads all channels of a pixel."""
    bodies = re.findall(r"scf\.for [^{]*{([^{}]*)}", kernel.stages["loops"])
    return any(body.count("llvm.load") >= count for body in bodies)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("dtype", [U8, I16, F32, F64], ids=str)
@pytest.mark.parametrize("channels", [2, 3, 4])
@pytest.mark.parametrize("size", [(1, 1), (1, 7), (5, 3), (16, 16), (33, 70), (3, 300)])
def test_values(size, channels, dtype):
    shape = (2, *size, channels)
    check(planes(shape, dtype), drawn(shape, dtype))


@pytest.mark.parametrize("divisor", [None, (0.5, 0.0, np.inf), (1e-39, np.nan, -3.0)])
def test_divisors(divisor):
    shape = (40, 50, 3)
    args = [] if divisor is None else [np.array(divisor, np.float32)]
    x = drawn(shape, F32)
    x[0, :3], x[1, 0] = np.nan, (np.inf, -np.inf, -0.0)
    with np.errstate(all="ignore"):
        program = planes(shape, F32, divisor)
        for found, wanted in zip(build(program)(x, *args), Evaluator(program)((x, *args)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=2e-7)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("channels", [2, 3, 4, 5, 16])
def test_few_channels_are_the_innermost_loop(channels):
    kernel = build(planes((2, 300, 400, channels), U8))
    assert runs_over_channels(kernel, channels) == (channels <= MOST)


def test_sizes_of_the_call():
    """Sizes of the image may be any; the number of channels is known."""
    program = planes(("n", "h", "w", 3), U8)
    kernel = build(program)
    assert runs_over_channels(kernel, 3)
    for shape in [(1, 1, 1, 3), (3, 20, 33, 3), (0, 5, 5, 3), (2, 0, 5, 3), (2, 64, 64, 3)]:
        check(program, drawn(shape, U8), kernel=kernel)


def test_other_nests_keep_their_loops():
    g = Graph(tensor(3, 40, 50), tensor(40, 50))
    x, y = g.inputs
    kernel = check(g.returning(g.mul(x, y)), drawn((3, 40, 50), F32), drawn((40, 50), F32))
    assert not runs_over_channels(kernel, 3)
    g = Graph(tensor(3, 40, 50))
    packed = g.transpose(g.abs(g.inputs[0]), perm=(1, 2, 0))
    check(g.returning(packed), drawn((3, 40, 50), F32))


@pytest.mark.parametrize("rows", [30, "n"])
def test_channels_that_are_written_one_by_one_are_one_walk(rows):
    g = Graph(tensor(rows, 40, 3, dtype=F64))
    (x,) = g.inputs
    one, two, three = (g.pick(x, index=k, axis=2) for k in range(3))
    out = g.mul(x, g.number(0.0, np.float64))
    for k, made in enumerate((g.mul(one, two), g.exp(three), g.sub(two, three))):
        out = g.pick_scatter(out, made, index=k, axis=2)
    kernel = check_close(g.returning(out), RNG.standard_normal((30, 40, 3)))
    assert len(set(re.findall(r"func @(kernel_nest\d+)", kernel.stages["loops"]))) == 1


def check_close(program, *args):
    kernel = build(program)
    for found, wanted in zip(kernel(*args), Evaluator(program)(args), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-14)
    return kernel
