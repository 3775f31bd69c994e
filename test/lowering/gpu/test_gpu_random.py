"""Random programs on the emulator give what the evaluator gives; so do shapes that went wrong."""

import numpy as np
import pytest
from emulation import Emulated, misaligned
from every_case import fewer
from graphs import Graph, random_program, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from needs import has_ptxas
from profuse.dialect.ir.dtypes import F32, F64, I8
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.gpu.gpu_stages import compile_gpu


def check(program, args):
    found = Emulated(program)(*args)
    for mine, wanted in zip(found, Evaluator(program)(args), strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=2e-4, atol=1e-4)


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@settings(max_examples=fewer(40), deadline=None, derandomize=True, database=None)
@given(
    seed=st.integers(0, 10**6),
    rows=st.sampled_from([1, 3, 20]),
    columns=st.sampled_from([1, 7, 36]),
    depth=st.integers(1, 3),
    symbolic=st.sets(st.sampled_from("abc")),
    shift=st.booleans(),
)
def test_random_programs(seed, rows, columns, depth, symbolic, shift):
    rng = np.random.default_rng(seed)
    sizes = {"a": rows, "b": columns, "c": depth}
    program, args = random_program(rng, sizes, tuple(sorted(symbolic)), steps=7)
    if shift:
        args = [misaligned(a) if a.flags.c_contiguous else a for a in args]
    check(program, args)


def test_programs_with_one_reduction_after_another():
    """Products, joins and scans between them: every family in one program."""
    for seed in range(fewer(8)):
        rng = np.random.default_rng(seed)
        check(*random_program(rng, {"a": 17, "b": 40, "c": 2}, ("a",) * (seed % 2), steps=12))


@pytest.mark.parametrize("columns", [40, 7, 1, 0])
@pytest.mark.parametrize("rows", [33, 1])
def test_members_of_outer_loops_beside_an_inner_stage(rows, columns):
    """What there is one of per row is stored, once, also where rows are empty."""
    g = Graph(tensor(rows), tensor(rows, columns))
    x, y = g.inputs
    each = g.tanh(g.exp(x))
    program = g.returning(each, g.add(y, g.expand_dims(each, axes=(1,))))
    check(program, [normal(rows), normal(rows, columns)])


@pytest.mark.parametrize("shape", [(3, 20, 130), (3, 0, 5), (3, 5, 0), (1, 4, 6)])
def test_members_of_outer_loops_beside_two_inner_loops(shape):
    """The inner loops stay two, of which one is a row of threads."""
    g = Graph(tensor(shape[0]), tensor(*shape), tensor(shape[2], shape[1]))
    x, y, z = g.inputs
    each = g.tanh(g.exp(x))
    crossed = g.add(y, g.transpose(z, perm=(1, 0)))
    program = g.returning(each, g.add(crossed, g.expand_dims(each, axes=(1, 2))))
    check(program, [normal(shape[0]), normal(*shape), normal(shape[2], shape[1])])


@pytest.mark.parametrize("shape", [(6, 50, 40), (1, 50, 40), (6, 2000, 7), (6, 0, 5), (6, 3, 0)])
@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_members_of_outer_loops_beside_column_sums(shape, reduction):
    """Threads of many columns share an outer iteration: one of them stores for it."""
    if shape[1] == 0 and reduction == "mean":
        pytest.skip("the mean of nothing is nan")
    g = Graph(tensor(shape[0]), tensor(*shape))
    x, y = g.inputs
    each = g.tanh(g.exp(x))
    wide = g.expand_dims(each, axes=(1, 2))
    program = g.returning(each, getattr(g, reduction)(g.mul(y, wide), axes=(1,)))
    check(program, [normal(shape[0]), normal(*shape)])


def test_tables_of_constants():
    """Two kernels read one table; it is in the module once."""
    table = np.arange(12, dtype=np.float32).reshape(3, 4)
    g = Graph(tensor(3, 4), tensor(3, 1000))
    x, y = g.inputs
    constant = g.constant(value=table)
    total = g.sum(g.mul(x, constant), axes=(1,), keepdims=True)
    flat = g.reshape(g.flip(constant, axes=(0,)), shape=(12,))
    program = g.returning(g.add(y, total), g.exp(flat))
    kernels = Emulated(program)
    assert str(kernels.module).count("memref.global") == 1
    check(program, [normal(3, 4), normal(3, 1000)])


@pytest.mark.parametrize("transposed", [False, True])
def test_products_with_constants(transposed):
    """The library is given memory: a constant operand is stored before."""
    g = Graph(tensor(4, 3))
    weights = normal(2, 3) if transposed else normal(3, 2)
    constant = g.constant(value=weights)
    right = g.transpose(constant, perm=(1, 0)) if transposed else constant
    ones = g.constant(value=np.ones((2, 5), np.float32))
    check(g.returning(g.matmul(g.matmul(g.inputs[0], right), ones)), [normal(4, 3)])


@pytest.mark.parametrize("rows, columns", [(300, 64), (5, 7)])
def test_many_column_sums_at_once(rows, columns):
    """Their accumulators take turns in shared memory, and leave registers for the rest."""
    g = Graph(*(tensor(rows, columns, dtype=d) for d in (F32, F64, I8)))
    results = []
    for value in g.inputs:
        for factor in range(1, 11):
            scaled = g.mul(value, g.number(factor, g.types[value].dtype.numpy))
            results.append(g.sum(scaled, axes=(0,)))
            results.append(g.max(scaled, axes=(0,)))
    program = g.returning(*results)
    data = np.random.default_rng(0).integers(-9, 9, (rows, columns))
    check(program, [data.astype(t) for t in (np.float32, np.float64, np.int8)])
    if has_ptxas():
        usage = compile_gpu(program, "sm_80").usage
        assert all(u.shared <= 48 * 1024 for u in usage.values())
