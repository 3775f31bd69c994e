"""Loops over joined arrays are split where one ends: no piece compares, clamps or divides."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel
from profuse.lowering.cpu.stages import compile_program
from profuse.lowering.target import host_target


def built(program):
    return Kernel(compile_program(program, host_target(), keep_stages=True))


def replaced_band(n, m):
    """The middle half of the columns of x, replaced by twice that of y."""
    g = Graph(tensor(n, m), tensor(n, m))
    x, y = g.inputs

    def columns(of, first, last):
        return g.slice(of, starts=(first,), stops=(last,), axes=(1,))

    middle = g.mul(columns(y, 8, 24), g.number(2.0))
    parts = columns(x, 0, 8), middle, columns(x, 24, 32)
    return g.returning(g.concatenate(*parts, axis=1))


@pytest.mark.parametrize("rows", [7, "n"])
def test_each_piece_reads_one_array_as_it_is(rows):
    kernel = built(replaced_band(rows, 32))
    x, y = np.random.default_rng(0).standard_normal((2, 7, 32)).astype(np.float32)
    (found,) = kernel(x, y)
    np.testing.assert_array_equal(
        found, np.concatenate([x[:, :8], y[:, 8:24] * 2, x[:, 24:]], axis=1)
    )
    assert "arith.rem" not in kernel.stages["loops"]
    assert not re.search(r"v\w*(cmp|blend|gather)", kernel.stages["asm"])


@pytest.mark.parametrize("order", [(3, 5, 1, 4), (1, 1, 1, 1), (40, 2, 9, 30)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_any_number_of_pieces(order, symbolic):
    names = ["a", "b", "c", "d"] if symbolic else order
    g = Graph(*(tensor(5, size) for size in names))
    kernel = built(g.returning(g.tanh(g.concatenate(*g.inputs, axis=1))))
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal((5, size)).astype(np.float32) for size in order]
    (found,) = kernel(*arrays)
    np.testing.assert_allclose(found, np.tanh(np.concatenate(arrays, axis=1)), rtol=1e-5)


def test_joined_rows_of_any_size_are_read_as_they_are():
    """Neither compared nor clamped, in any chunk of the columns."""
    g = Graph(tensor("n", "a"), tensor("n", "b"), tensor("n", "a"))
    x, y, z = g.inputs
    kernel = built(g.returning(g.concatenate(g.mul(x, g.number(2.0)), y, z, axis=1)))
    rng = np.random.default_rng(2)
    arrays = [rng.standard_normal((7, size)).astype(np.float32) for size in (33, 5, 33)]
    (found,) = kernel(*arrays)
    x, y, z = arrays
    np.testing.assert_array_equal(found, np.concatenate([x * 2, y, z], axis=1))
    assert not re.search(r"v\w*(cmp|blend|gather)|vpm(ax|in)s", kernel.stages["asm"])
