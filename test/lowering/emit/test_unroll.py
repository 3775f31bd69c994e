"""Rows of a few numbers: the loop over rows is the innermost one, and the vector's."""

import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel
from profuse.dialect.ir.dtypes import F64
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target


def built(program, **options):
    return Kernel(compile_program(program, host_target(), keep_stages=True, **options))


def depth(text):
    """How many loops of the loop stage are within one another."""
    most = now = 0
    opened = []
    for line in text.splitlines():
        if line.rstrip().endswith("{"):
            opened.append("scf.for" in line)
            now += opened[-1]
            most = max(most, now)
        elif line.strip().startswith("}") and opened:
            now -= opened.pop()
    return most


def unit_rows(rows, columns, dtype=F64):
    g = Graph(tensor(rows, columns, dtype=dtype))
    (x,) = g.inputs
    length = g.sqrt(g.sum(g.mul(x, x), axes=(1,), keepdims=True))
    return g.returning(g.div(x, length))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [33, "n"])
@pytest.mark.parametrize("columns", [2, 3, 4, 7])
def test_rows_of_a_few_numbers_are_lanes_of_vectors(rows, columns):
    kernel = built(unit_rows(rows, columns))
    x = np.random.default_rng(columns).standard_normal((33, columns))
    (found,) = kernel(x)
    np.testing.assert_allclose(found, x / np.linalg.norm(x, axis=1, keepdims=True), rtol=1e-15)
    assert depth(kernel.stages["loops"]) == 1
    assert "vsqrtpd" in kernel.stages["asm"] or "avx" not in host_target().features


def test_longer_rows_keep_their_loops():
    assert depth(built(unit_rows(33, 8)).stages["loops"]) == 2


def test_what_a_row_takes_from_several_arrays_is_known():
    """Joined parts: no piece is left as a loop of its own, nothing is compared with an index."""
    g = Graph(*(tensor("n", k) for k in (1, 2, 1)))
    x, y, z = g.inputs
    kernel = built(g.returning(g.concatenate(g.neg(x), y, g.exp(z), axis=1)))
    arrays = [np.random.default_rng(k).standard_normal((50, k)).astype("f4") for k in (1, 2, 1)]
    (found,) = kernel(*arrays)
    np.testing.assert_allclose(found, np.concatenate([-arrays[0], arrays[1], np.exp(arrays[2])], axis=1), rtol=1e-6)
    assert depth(kernel.stages["loops"]) == 1


def test_rows_that_are_added_up_stay_in_order():
    """The loop over rows carries what it adds, so its rounds are no lanes."""
    g = Graph(tensor("n", 3, dtype=F64))
    (x,) = g.inputs
    kernel = built(g.returning(g.sum(x, axes=(0,)), g.cumsum(g.tanh(x), axis=0)))
    x = np.random.default_rng(1).standard_normal((100, 3))
    total, running = kernel(x)
    np.testing.assert_allclose(total, x.sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(running, np.cumsum(np.tanh(x), axis=0), rtol=1e-12)


@pytest.mark.parametrize("columns", [2, 3, 5])
def test_rows_in_place_of_an_argument(columns):
    g = Graph(tensor("n", columns), tensor(columns))
    x, scale = g.inputs
    kernel = built(g.returning(g.add(g.mul(x, scale), g.tanh(x))), in_place=True)
    assert kernel.artifact.abi.in_place == ((0, 0),)
    rng = np.random.default_rng(3)
    x, scale = rng.standard_normal((41, columns)).astype("f4"), rng.random(columns, "f4")
    (wanted,) = kernel(x, scale)
    np.testing.assert_allclose(wanted, x * scale + np.tanh(x), rtol=1e-5, atol=1e-6)
    slots, *_ = kernel.slots(x, scale)
    slots[2] = slots[0]
    kernel.function(slots.ctypes.data)
    np.testing.assert_array_equal(x, wanted)


def test_rare_values_in_few_rows():
    """Arguments of sines that are huge take another version of the loop over rows."""
    g = Graph(tensor("n", 3, dtype=F64))
    (x,) = g.inputs
    kernel = built(g.returning(g.sin(x)))
    x = np.random.default_rng(4).standard_normal((5000, 3))
    x[[7, 4000], [0, 2]] = 1e300
    (found,) = kernel(x)
    np.testing.assert_allclose(found, np.sin(x), rtol=1e-14, atol=1e-300)
