"""Scans along rows go through many rows at once, and fold each of them in its order."""

import functools

import numpy as np
import pytest
from every_case import fewer
from graphs import Graph, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from native import built as build
from native import same_bits as check
from profuse.dialect.ir.dtypes import BOOL, F16, F32, F64, I8, I32, I64, dtype_named
from profuse.executor.interpret.evaluate import Evaluator

RNG = np.random.default_rng(9)
BF16 = dtype_named("bf16")
DTYPES = [F32, F64, F16, BF16, I8, I32, I64, BOOL]
# Around a square, a strip of rows, and a band of columns.
SIZES = [
    (1, 1),
    (7, 300),
    (8, 32),
    (8, 64),
    (9, 135),
    (16, 128),
    (17, 129),
    (31, 136),
    (33, 263),
    (40, 31),
    (3, 500),
    (64, 1),
    (0, 40),
    (40, 0),
    (200, 71),
]
PUT_BACK = "into_rows("


def drawn(shape, dtype):
    if dtype.is_float:
        return (RNG.standard_normal(shape) * 100).astype(dtype.numpy)
    return RNG.integers(0, 2 if dtype is BOOL else 100, shape).astype(dtype.numpy)


def sums(*sizes, dtype=F32, axis=-1):
    g = Graph(tensor(*sizes, dtype=dtype))
    return g.returning(g.cumsum(g.inputs[0], axis=axis))


def has_tiles(kernel):
    return PUT_BACK in kernel.stages["loops"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_symbolic_sizes(dtype):
    program = sums("n", "m", dtype=dtype)
    kernel = build(program)
    assert has_tiles(kernel) == (dtype not in (F16, BF16))  # which are rounded in a second stage
    for size in SIZES:
        check(program, drawn(size, dtype), kernel=kernel)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, F64, I32], ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_known_sizes(size, dtype):
    kernel = check(sums(*size, dtype=dtype), drawn(size, dtype))
    bytes_ = 4 if dtype is F32 else 8
    assert has_tiles(kernel) == (size[0] >= 32 // bytes_ and size[1] >= 8 * bytes_)


@settings(max_examples=fewer(60), deadline=None)
@given(st.integers(0, 70), st.integers(0, 300), st.sampled_from(range(16)))
def test_any_sizes(n, m, offset):
    """Products of computed elements that are read along rows, across rows, and broadcast."""
    x, y, w = drawn((n, m), F32), drawn((m, n), F32), drawn((m,), F32)
    x = np.frombuffer(bytes(4 * offset) + x.tobytes(), np.float32)[offset:].reshape(n, m)
    found = _kernel()(x / 100, y, w)
    wanted = Evaluator(_program())((x / 100, y, w))
    for one, other in zip(found, wanted, strict=True):
        assert one.tobytes() == np.ascontiguousarray(other).tobytes()


@functools.cache
def _program():
    g = Graph(tensor("n", "m"), tensor("m", "n"), tensor("m"))
    x, y, w = g.inputs
    z = g.maximum(g.maximum(x, g.transpose(y, perm=(1, 0))), w)
    return g.returning(g.cumprod(x, axis=1), g.cumsum(z, axis=1))


@functools.cache
def _kernel():
    kernel = build(_program())
    assert kernel.stages["loops"].count(f"call @transpose_8x8xi32_{PUT_BACK}") == 2
    return kernel


@pytest.mark.sampled(2)
@pytest.mark.parametrize("shape", [(3, 20, 70), (2, 3, 9, 40), (40, 2, 140), (5, 1, 300)])
@pytest.mark.parametrize("symbolic", [False, True])
def test_more_axes(shape, symbolic):
    sizes = [f"s{k}" for k in range(len(shape))] if symbolic else shape
    for axis in range(len(shape)):
        check(sums(*sizes, axis=axis), drawn(shape, F32))


def test_layouts():
    g = Graph(tensor("n", "m", strides=(None, None)))
    program = g.returning(g.cumsum(g.inputs[0], axis=1))
    kernel = build(program)
    x = drawn((60, 300), F32)
    for view in (x, x.T, x[::2, ::3], x[::-1, ::-1], x[:, 7:], np.broadcast_to(x[:1], (40, 300))):
        check(program, view, kernel=kernel)


def test_special_values():
    x = drawn((24, 200), F32)
    x[0, 0], x[1, 77], x[2, -1], x[3, 3], x[3, 9] = np.nan, np.inf, -np.inf, np.inf, -np.inf
    x[4], x[5, ::2], x[5, 1::2] = -0.0, 0.0, -0.0
    kernel, program = build(sums(24, 200)), sums(24, 200)
    (found,), (wanted,) = kernel(x), Evaluator(program)((x,))
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found[4:6]), np.signbit(wanted[4:6]))


def test_a_scan_whose_rows_others_read_runs_by_rows():
    """The row is still in cache, and the reader may be in a later stage of the same nest."""
    g = Graph(tensor("n", "m"))
    sums_ = g.cumsum(g.inputs[0], axis=1)
    program = g.returning(sums_, g.max(sums_, axes=(1,)))
    kernel = build(program)
    assert not has_tiles(kernel)
    for size in SIZES:
        if size[1]:
            check(program, drawn(size, F32), kernel=kernel)
