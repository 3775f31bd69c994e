"""Short rows of unknown length, strip by strip: values at every length, and where there are no strips."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from profuse.dialect.ir.dtypes import F32, F64


def scaled(dtype, rows="s0", columns="s1"):
    g = Graph(tensor(rows, columns, dtype=dtype), tensor(rows, dtype=dtype))
    x, w = g.inputs
    y = g.mul(x, g.expand_dims(w, axes=(1,)))
    return g.returning(g.add(g.exp(y), x))


def strips_of(kernel):
    """The loops of a kernel over strips of 8 elements."""
    return len(re.findall(r"scf\.for .* step %c8_i64", kernel.stages["loops"]))


def test_rows_of_unknown_length_that_nothing_reads_have_strips():
    assert strips_of(built(scaled(F32))) >= 1
    assert strips_of(built(scaled(F32, columns=28))) == 0  # LLVM knows the length
    assert strips_of(built(scaled(F32), in_place=True)) == 0  # an element in two strips would be computed of its result


def test_rows_that_are_divided_have_no_strips():
    """Indices in no order are no vectors."""
    g = Graph(tensor("s0", "s1"))
    (x,) = g.inputs
    run = built(g.returning(g.mul(g.repeat(x, repeats=2, axis=1), g.number(0.5))))
    assert strips_of(run) == 0


@pytest.mark.parametrize("dtype", [F32, F64])
def test_rows_of_every_length_are_right(dtype):
    run = built(scaled(dtype))
    for columns in (*range(1, 34), 63, 64, 65, 66, 200):
        x = np.linspace(-2, 3, 3 * columns).reshape(3, columns).astype(dtype.numpy)
        w = np.array([1, -2, 0.5], dtype.numpy)
        (found,) = run(x, w)
        np.testing.assert_allclose(found, np.exp(x * w[:, None]) + x, rtol=1e-6, atol=1e-6)


def test_rare_values_are_noted_in_strips_as_well():
    """A sine of a huge number takes another way, wherever in the row it is."""
    g = Graph(tensor("s0", "s1"), tensor("s0"))
    x, w = g.inputs
    run = built(g.returning(g.sin(g.add(x, g.expand_dims(w, axes=(1,))))))
    for columns in (8, 9, 15, 30):
        for place in range(columns):
            x = np.linspace(-2, 3, 2 * columns).reshape(2, columns).astype(np.float32)
            x[1, place] = 1e30
            expected = np.sin((x + np.float32(0)).astype(np.float64))
            (found,) = run(x, np.zeros(2, np.float32))
            np.testing.assert_allclose(found, expected, atol=1e-6)
