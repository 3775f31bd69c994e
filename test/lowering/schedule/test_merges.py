"""Pointwise nests over contiguous arrays have fewer loops than axes, and compute the same."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import built as build
from native import same_bits as check
from profuse.dialect.ir.dtypes import BOOL, F16, F64, I8, I16, I32, I64, U8, dtype_named

RNG = np.random.default_rng(3)
BF16 = dtype_named("bf16")


def drawn(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def loops_of(kernel):
    return len(re.findall(r"scf\.for", kernel.stages["loops"]))


def doubled(*sizes, strides="contiguous"):
    g = Graph(tensor(*sizes, strides=strides), tensor(*sizes))
    x, y = g.inputs
    return g.returning(g.add(g.abs(x), y), g.maximum(x, y))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "shape,loops",
    [
        ((512, 16, 16), 2),
        ((512, 8, 16), 1),
        ((40, 3), 1),
        ((2, 3, 4, 5), 1),
        ((7, 300), 2),
        ((5, 6, 300), 2),
        ((300, 300, 3), 2),
        ((300, 1, 9), 1),
        ((0, 5), 1),
        ((5, 0), 1),
        ((1, 1), 0),
    ],
)
def test_contiguous(shape, loops):
    kernel = check(doubled(*shape), drawn(*shape), drawn(*shape))
    assert loops_of(kernel) == loops or 0 in shape


@pytest.mark.parametrize("rank", [2, 3, 4])
def test_symbolic_sizes(rank):
    program = doubled(*[f"s{k}" for k in range(rank)])
    kernel = build(program)
    assert loops_of(kernel) == 1
    for shape in [(3, 5, 7, 2), (1, 1, 1, 1), (8, 1, 300, 1), (0, 4, 4, 4), (4, 4, 4, 0)]:
        arrays = drawn(*shape[-rank:]), drawn(*shape[-rank:])
        check(program, *arrays, kernel=kernel)


def mixed(shapes, make):
    g = Graph(*[tensor(*shape) for shape in shapes])
    return g.returning(make(g, *g.inputs))


@pytest.mark.parametrize(
    "shapes,loops",
    [
        ([(6, 4, 16), (16,)], 2),  # the first two axes are one
        ([(6, 4, 16), (4, 16)], 2),
        ([(6, 4, 16), (6, 1, 1)], 2),
        ([(6, 4, 16), (6, 4, 1)], 2),
        ([(6, 4, 16), (1, 4, 1)], 3),
        ([(6, 4, 16), ()], 1),
        ([(2, 8, 5, 7), (8, 1, 1)], 3),
    ],
)
def test_broadcasts(shapes, loops):
    program = mixed(shapes, lambda g, x, y: g.mul(g.abs(x), y))
    kernel = check(program, *(drawn(*shape) for shape in shapes))
    assert loops_of(kernel) == loops


def test_views_of_rows():
    g = Graph(tensor(9, 10, 12))
    (x,) = g.inputs
    part = g.slice(x, starts=(2,), stops=(7,), axes=(1,))
    kernel = check(g.returning(g.abs(part)), drawn(9, 10, 12))
    assert loops_of(kernel) == 2


def test_turned_axes():
    g = Graph(tensor(5, 6, 20, 30), tensor(5, 6, 30, 20))
    x, y = g.inputs
    program = g.returning(g.add(x, g.transpose(y, perm=(0, 1, 3, 2))))
    check(program, drawn(5, 6, 20, 30), drawn(5, 6, 30, 20))


def test_joined_axes_keep_their_indices():
    g = Graph(tensor(9, 4), tensor(9, 5))
    x, y = g.inputs
    program = g.returning(g.concatenate(g.abs(x), y, axis=1))
    check(program, drawn(9, 4), drawn(9, 5))


@pytest.mark.parametrize("strides", [(16, 1), (1, 9), (None, 1), (None, None), (0, 1), (4, 0)])
def test_strides(strides):
    x = np.lib.stride_tricks.as_strided(drawn(200), (9, 4), tuple(4 * (5 if s is None else s) for s in strides))
    check(doubled(9, 4, strides=strides), x, drawn(9, 4))


def test_in_place():
    g = Graph(tensor(32, 8, 8), tensor(32, 8, 8))
    kernel = build(g.returning(g.add(g.abs(g.inputs[0]), g.inputs[1])), in_place=True)
    assert set(kernel.artifact.abi.in_place) == {(0, 0), (0, 1)}
    assert loops_of(kernel) == 1


def test_results_are_made_onto_inputs_of_their_dtype():
    """Booleans and bytes are alike in memory; the array that is given its memory is not."""
    g = Graph(tensor(32, 8, dtype=BOOL), tensor(32, 8, dtype=U8))
    kernel = build(g.returning(g.sub(*g.inputs)), in_place=True)
    assert kernel.artifact.abi.in_place == ((0, 1),)


def test_reshapes_of_results_are_not_made_onto_inputs():
    """Whoever is given an input's memory for a result takes its shape, too, which is another one."""
    for flat in (False, True):
        g = Graph(tensor(32, 8))
        result = g.abs(g.inputs[0])
        kernel = build(g.returning(g.reshape(result, shape=(256,)) if flat else result), in_place=True)
        assert kernel.artifact.abi.in_place == (() if flat else ((0, 0),))


def test_short_rows_are_vectors():
    """A loop over sixteen numbers is not unrolled, which makes LLVM gather from sixteen rows."""
    program = mixed([(4096, 16), (16,)], lambda g, x, y: g.mul(g.abs(x), y))
    kernel = check(program, drawn(4096, 16), drawn(16))
    assert "gather" not in kernel.stages["asm"]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("count", range(8, 17))
@pytest.mark.parametrize("narrow", [I8, I16, I32, BF16, F16])
def test_few_elements_that_are_narrowed_stay_within_their_array(count, narrow):
    """LLVM 22 stores a single masked element in its wide type; `Kernel` looks past the end."""
    for wide in (I64, F64):
        if wide is F64 and narrow is BF16:
            continue
        g = Graph(tensor(count, dtype=wide), tensor(3, count, dtype=wide))
        x, y = g.inputs
        kernel = build(g.returning(g.cast(x, dtype=narrow), g.cast(y, dtype=narrow)))
        a = np.arange(count).astype(wide.numpy)
        b = np.arange(3 * count).reshape(3, count).astype(wide.numpy)
        for found, given in zip(kernel(a, b), (a, b), strict=True):
            np.testing.assert_array_equal(found, given.astype(narrow.numpy))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", range(8, 17))
def test_few_comparisons_stay_within_their_array(count):
    g = Graph(tensor(count, dtype=F64), tensor(3, count, dtype=F64))
    x, y = g.inputs
    kernel = build(g.returning(g.gt(x, x), g.ge(y, y)))
    a, b = np.arange(count, dtype=float), np.ones((3, count))
    found = kernel(a, b)
    assert not found[0].any() and found[1].all()
