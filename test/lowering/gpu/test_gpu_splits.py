"""Reductions that blocks share, at sizes around the limits of their chunks, on the emulator."""

import ml_dtypes
import numpy as np
import pytest
from emulation import Emulated, aligned
from graphs import Graph, tensor
from profuse.dialect.ir.dtypes import BF16, F16, F32
from profuse.lowering.gpu.kernels.split_reduction import LEAST, LEAST_FLAT, LONG

KINDS = {"columns": (0,), "rows": (1,), "all": (0, 1)}


def kernels(kind, dtype, rows, columns):
    g = Graph(tensor(rows, columns, dtype=dtype))
    (x,), axes = g.inputs, {"axes": KINDS[kind]}
    index = {"axis": None if kind == "all" else KINDS[kind][0]}
    return Emulated(
        g.returning(
            g.sum(x, **axes), g.max(x, **axes), g.argmax(x, **index), g.argmin(x, **index), g.mean(g.square(x), **axes)
        )
    )


def check(compiled, kind, x):
    """Integers, of which sums are exact and many are equal: any order gives the same."""
    axis = KINDS[kind] if kind == "all" else KINDS[kind][0]
    index = None if kind == "all" else axis
    wide = x.astype(np.float64)
    expected = [wide.sum(axis), wide.max(axis), wide.argmax(index), wide.argmin(index), np.square(wide).mean(axis)]
    found = compiled(x)
    for a, e in zip(found[:4], expected[:4], strict=True):
        np.testing.assert_array_equal(np.asarray(a), e.astype(np.asarray(a).dtype))
    eps = float(ml_dtypes.finfo(x.dtype).eps)
    np.testing.assert_allclose(np.asarray(found[4], np.float64), expected[4], rtol=2 * eps)


def integers(shape, dtype):
    return aligned(np.random.default_rng(shape[0]).integers(-3, 4, shape).astype(dtype.numpy))


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize(
    ("kind", "shape"),
    [
        ("columns", (130, 5)),
        ("columns", (2 * LEAST + 1, 4)),
        ("columns", (LEAST - 1, 7)),
        ("columns", (LEAST, 1)),
        ("columns", (1, 40)),
        ("rows", (130, 5)),
        ("rows", (1, LONG + 5)),
        ("all", (130, 5)),
        ("all", (1, LEAST_FLAT + 8)),
    ],
)
def test_static_sizes_around_chunks(kind, shape):
    check(kernels(kind, F32, *shape), kind, integers(shape, F32))


@pytest.mark.sampled(3, each=())
@pytest.mark.parametrize("dtype", [F16, BF16], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_halves(kind, dtype):
    check(kernels(kind, dtype, 130, 5), kind, integers((130, 5), dtype))
