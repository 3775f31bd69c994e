"""Products are fused with sums only where nobody can see that they were not rounded."""

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built
from profuse.dialect.ir.dtypes import F32, F64

RNG = np.random.default_rng(11)
DTYPES = pytest.mark.parametrize("dtype", [F32, F64], ids=str)
SHAPES = pytest.mark.parametrize("shape", [(7, 1), (5, 33), (64, 1024)], ids=str)


def drawn(shape, dtype):
    return RNG.standard_normal(shape).astype(dtype.numpy)


def scaled(shape, dtype, sizes=None):
    """A graph with the product of two arrays, and arguments for it."""
    g = Graph(*[tensor(*(sizes or shape), dtype=dtype)] * 2)
    return g, g.mul(*g.inputs), (drawn(shape, dtype), drawn(shape, dtype))


@pytest.mark.sampled(3)
@DTYPES
@SHAPES
@pytest.mark.parametrize("symbolic", [False, True], ids=["static", "dynamic"])
def test_the_largest_product_less_itself_is_0(shape, dtype, symbolic):
    g, y, args = scaled(shape, dtype, ("n", "m") if symbolic else None)
    kernel = built(g.returning(g.sub(y, g.max(y, axes=(1,), keepdims=True))))
    (found,) = kernel(*args)
    assert (found.max(axis=1) == 0).all()


@DTYPES
@pytest.mark.parametrize("op", ["var", "std"])
def test_one_product_does_not_vary(op, dtype):
    g, y, args = scaled((300, 1), dtype)
    (found,) = built(g.returning(getattr(g, op)(y, axes=(1,))))(*args)
    assert (found == 0).all()


@DTYPES
@pytest.mark.parametrize("negated", [False, True])
def test_a_product_that_was_stored_in_a_part_does_not_vary(negated, dtype):
    """What reads it reads a choice between it and other elements."""
    g = Graph(tensor(3, dtype=dtype))
    whole = g.sqrt(g.inputs[0])
    part = {"starts": (0,), "stops": (3,), "steps": (3,)}
    y = g.mul(g.slice(whole, **part), g.number(3.0, dtype.numpy))
    y = g.slice(g.slice_scatter(whole, g.neg(y) if negated else y, **part), **part)
    kernel = built(g.returning(g.var(y, axes=(0,))))
    for _ in range(20):
        (found,) = kernel(RNG.random(3).astype(dtype.numpy))
        assert found == 0


@DTYPES
def test_products_and_what_reads_them_agree(dtype):
    g, y, args = scaled((40, 50), dtype)
    kernel = built(g.returning(y, g.sub(y, g.inputs[0])))
    product, difference = kernel(*args)
    np.testing.assert_array_equal(difference, product - args[0])


@DTYPES
def test_a_product_that_one_sum_reads_is_fused(dtype):
    """It has the bits of a sum that is rounded once, where the machine can fuse."""
    g, y, args = scaled((40, 50), dtype)
    kernel = built(g.returning(g.sub(y, g.inputs[0])))
    assert "contract" in kernel.stages["linalg"].split("arith.mulf")[1].splitlines()[0]
    (found,) = kernel(*args)
    wide = [a.astype(np.longdouble) for a in args]
    exact = (wide[0] * wide[1] - wide[0]).astype(dtype.numpy)
    np.testing.assert_allclose(found, exact, rtol=1e-3, atol=np.finfo(dtype.numpy).eps * 4)
