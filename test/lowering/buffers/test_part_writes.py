"""Small parts of results are written over them: no array is stored for each assignment."""

from __future__ import annotations

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target

N, M = 24, 40
WHOLE = N * M * 4  # bytes of an array


def built(program, in_place=False):
    return Kernel(compile_program(program, host_target(), keep_stages=True, in_place=in_place))


def picked(g, x, axis, index):
    return g.pick(x, axis=axis, index=index)


def put(g, x, new, axis, index):
    return g.pick_scatter(x, new, axis=axis, index=index)


def borders(g, x, y):
    """A step whose border is copied from beside it, with zeros in the last row."""
    z = g.add(g.mul(x, y), x)
    for axis, index, beside in ((1, -1, -2), (0, 0, 1), (1, 0, 1)):
        z = put(g, z, picked(g, z, axis, beside), axis, index)
    zeros = g.mul(picked(g, y, 0, 0), g.number(0.0))
    return put(g, z, zeros, 0, -1)


def borders_by_numpy(x, y):
    z = x * y + x
    z[:, -1] = z[:, -2]
    z[0] = z[1]
    z[:, 0] = z[:, 1]
    z[-1] = y[0] * 0
    return z


def shifted(g, x, y):
    """Two rows take what the row before them has held: they are read before they are written."""
    z = g.mul(x, y)
    two = g.slice(z, starts=(3,), stops=(5,), axes=(0,))
    return g.slice_scatter(z, two, starts=(4,), stops=(6,), axes=(0,))


def shifted_by_numpy(x, y):
    z = x * y
    z[4:6] = z[3:5].copy()
    return z


def element(g, x, y):
    """One element grows by the sum of all."""
    z = g.mul(x, y)
    row = picked(g, z, 0, 5)
    new = g.add(picked(g, row, 0, 7), g.sum(z))
    return put(g, z, put(g, row, new, 0, 7), 0, 5)


def element_by_numpy(x, y):
    z = x * y
    z[5, 7] += z.sum()
    return z


CASES = {
    "borders": (borders, borders_by_numpy),
    "shifted": (shifted, shifted_by_numpy),
    "element": (element, element_by_numpy),
}


def arrays(count=2):
    rng = np.random.default_rng(0)
    return [rng.standard_normal((N, M)).astype(np.float32) for _ in range(count)]


def inputs(count=2):
    return Graph(*(tensor(N, M) for _ in range(count)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_no_array_is_stored_for_an_assignment(name, in_place):
    make, by_numpy = CASES[name]
    g = inputs()
    kernel = built(g.returning(make(g, *g.inputs)), in_place)
    assert int(kernel.artifact.abi.workspace) < WHOLE
    x, y = arrays()
    np.testing.assert_allclose(kernel(x, y)[0], by_numpy(x, y), rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_what_is_needed_without_the_assignment_is_an_array_of_its_own(name):
    make, by_numpy = CASES[name]
    g = inputs()
    made = make(g, *g.inputs)
    start = g.program.body.instrs[1 if name == "borders" else 0].results[0]
    kernel = built(g.returning(made, g.sum(start, axes=(0,))))
    x, y = arrays()
    found, before = kernel(x, y)
    np.testing.assert_allclose(found, by_numpy(x, y), rtol=1e-6, atol=1e-5)
    wanted = x * y + x if name == "borders" else x * y
    np.testing.assert_allclose(before, wanted.sum(0), rtol=1e-5, atol=1e-5)


def test_a_result_that_later_steps_read_is_read_with_its_part():
    g = inputs()
    z = borders(g, *g.inputs)
    kernel = built(g.returning(z, g.max(g.abs(g.sub(z, g.inputs[0])))))
    x, y = arrays()
    found, most = kernel(x, y)
    wanted = borders_by_numpy(x, y)
    np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(most, np.abs(wanted - x).max(), rtol=1e-6)


def test_large_parts_remain_one_walk():
    g = inputs()
    x, y = g.inputs
    z = g.mul(x, y)
    half = g.slice(x, starts=(0,), stops=(12,), axes=(0,))
    kernel = built(g.returning(g.slice_scatter(z, half, starts=(2,), stops=(14,), axes=(0,))))
    assert len(re.findall(r"func.func @kernel_nest", kernel.stages["loops"])) == 1
    a, b = arrays()
    wanted = a * b
    wanted[2:14] = a[:12]
    np.testing.assert_array_equal(kernel(a, b)[0], wanted)
