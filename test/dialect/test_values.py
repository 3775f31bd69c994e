"""Constants keep their bits through IR text."""

import numpy as np
import pytest
from profuse.dialect.ir.attrs import STR, VALUE
from profuse.dialect.ir.dtypes import DTYPES
from profuse.dialect.mlir.context import context


def through_ir(kind, value):
    from mlir import ir

    with context():
        return kind.decode(ir.Attribute.parse(kind.text(value)))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3, 2), (0,), (2, 0), (1, 1), (150,)], ids=str)
@pytest.mark.parametrize("splat", [False, True])
def test_arrays_of_any_bits(dtype, shape, splat):
    raw = np.random.default_rng(0).integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    if dtype.kind == "b":
        array = raw[..., 0] % 2 == 1
    else:
        array = raw.view(dtype.numpy)[..., 0]
    if splat and array.size:
        array = np.broadcast_to(array.flat[0], shape).copy()
    found = through_ir(VALUE, array)
    assert (found.dtype, found.shape) == (array.dtype, array.shape)
    assert found.tobytes() == array.tobytes()


@pytest.mark.parametrize(
    "value",
    [
        True,
        False,
        0,
        -(2**63),
        2**63 - 1,
        0.1,
        -0.0,
        5e-324,
        1e308,
        float("inf"),
        float("nan"),
        1j,
        complex(-0.0, float("inf")),
    ],
)
def test_numbers(value):
    found = through_ir(VALUE, value)
    assert type(found) is type(value)
    assert repr(found) == repr(value)


@pytest.mark.parametrize("text", ["", "a\nb", "\t\x01\x7f", "é\u2028", '"', "\\n", "\\", "\0"])
def test_strings(text):
    assert through_ir(STR, text) == text
