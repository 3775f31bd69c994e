"""A11: random bits of kernels on the emulator are those of tier 0; integers of any size in their bodies."""

import numpy as np
import pytest
from emulation import Emulated
from graphs import Graph, tensor
from profuse.dialect.importers.numpy.tracing.composites import composite
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import F32, U64
from profuse.dialect.ir.types import INT_SCALAR


@pytest.mark.sampled(3)
@pytest.mark.parametrize("shape", [(7,), (5, 3, 4), (33, 1, 65), (1025,)], ids=str)
@pytest.mark.parametrize(("seed", "offset"), [(0, 0), (2**40 + 5, 2**33 + 1), (-7, 3)])
def test_bits_are_those_of_tier_0(shape, seed, offset):
    g = Graph(INT_SCALAR, INT_SCALAR)
    (found,) = Emulated(g.returning(g.random_bits(*g.inputs, shape=shape)))(seed, offset)
    assert np.array_equal(found, composite("random_bits", seed, offset, shape=shape))


def test_bits_of_a_shape_that_varies():
    g = Graph(tensor("n", 6, dtype=F32), INT_SCALAR, INT_SCALAR)
    x, seed, offset = g.inputs
    kernels = Emulated(g.returning(*g.native_dropout(x, seed, offset, p=0.25)))
    for count in (1, 5, 40):
        x = np.ones((count, 6), np.float32)
        for found, wanted in zip(kernels(x, 9, 4), composite("native_dropout", x, 9, 4, p=0.25), strict=True):
            assert np.array_equal(found, wanted)


@pytest.mark.parametrize("factor", [2**31 - 1, 2**31, 0xD2511F53, 2**32, 2**40 + 3])
def test_numbers_of_bodies_have_64_bits_where_indices_have_32(factor):
    g = Graph(tensor(6, dtype=U64))
    (x,) = g.inputs
    scale, step = g.number(factor, np.uint64), g.number(factor + 1, np.uint64)
    kernels = Emulated(g.returning(g.add(g.mul(x, scale), step)))
    x = np.arange(6, dtype=np.uint64) * np.uint64(0x123456789)
    (found,) = kernels(x)
    assert np.array_equal(found, x * np.uint64(factor) + np.uint64(factor + 1))


def test_sizes_that_are_operands():
    g = Graph(tensor("n", 6, dtype=F32))
    (x,) = g.inputs
    rows = g.dim(x, axis=0)
    bits = g.random_bits(g.constant(value=3), g.constant(value=8), rows, shape=(DYNAMIC, 2))
    (found,) = Emulated(g.returning(bits))(np.zeros((11, 6), np.float32))
    assert np.array_equal(found, composite("random_bits", 3, 8, shape=(11, 2)))
