"""Nests that read memory across rows go through it in tiles, and compute the same bits."""

import functools
import re

import numpy as np
import pytest
from every_case import fewer
from graphs import Graph, tensor
from hypothesis import given, settings
from hypothesis import strategies as st
from native import Kernel
from profuse.dialect.ir.dtypes import BOOL, F16, F32, F64, I8, I16, I32, I64, dtype_named
from profuse.executor.interpret.evaluate import Evaluator
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.emit.transposes import rounds
from profuse.lowering.schedule.tiles import MOST, TALL
from profuse.lowering.target import Target, host_target

RNG = np.random.default_rng(5)
BF16 = dtype_named("bf16")
DTYPES = [F32, F64, F16, BF16, I8, I16, I32, I64, BOOL]
SIZES = [
    (1, 1),
    (16, 16),
    (17, 33),
    (33, 17),
    (15, 40),
    (40, 15),
    (64, 64),
    (65, 129),
    (130, 71),
    (1100, 18),
    (18, 1100),
    (0, 20),
    (20, 0),
    (3, 300),
    (300, 3),
    (128, 96),
]
TILE = "call @transpose_"


def build(program, in_place=False):
    target = host_target()
    return Kernel(compile_program(program, target, keep_stages=True, in_place=in_place))


def drawn(shape, dtype):
    if dtype in (F32, F64, F16, BF16):
        return RNG.standard_normal(shape).astype(dtype.numpy)
    return RNG.integers(0, 2 if dtype is BOOL else 100, shape).astype(dtype.numpy)


def check(program, *args, kernel=None):
    """The same bits as NumPy's."""
    kernel = kernel or build(program)
    for found, wanted in zip(kernel(*args), Evaluator(program)(args), strict=True):
        wanted = np.asarray(wanted)
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        assert found.tobytes() == wanted.tobytes()
    return kernel


def added(n, m, dtype=F32):
    g = Graph(tensor(n, m, dtype=dtype), tensor(m, n, dtype=dtype))
    x, y = g.inputs
    return g.returning(g.maximum(x, g.transpose(y, perm=(1, 0))))


def loops(kernel):
    return kernel.stages["loops"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_symbolic_sizes(dtype):
    program = added("n", "m", dtype)
    kernel = build(program)
    assert TILE in loops(kernel)
    for n, m in SIZES:
        check(program, drawn((n, m), dtype), drawn((m, n), dtype), kernel=kernel)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, F64, BF16, I8], ids=str)
@pytest.mark.parametrize("n,m", [(17, 33), (64, 64), (65, 129), (3, 300), (300, 3), (1100, 18)])
def test_numbers_for_sizes(n, m, dtype):
    kernel = check(added(n, m, dtype), drawn((n, m), dtype), drawn((m, n), dtype))
    large_enough = n <= TALL * m and min(n, m) >= 2 * min(16, 32 // np.dtype(dtype.numpy).itemsize)
    assert (TILE in loops(kernel)) == large_enough


@settings(max_examples=fewer(60), deadline=None)
@given(st.integers(0, 150), st.integers(0, 150), st.sampled_from(range(16)))
def test_any_sizes(n, m, offset):
    program = _several()
    x, y, z = drawn((n, m), F32), drawn((m, n), F32), drawn((m, n), F64)
    y = np.frombuffer(bytes(4 * offset) + y.tobytes(), np.float32)[offset:].reshape(m, n)
    check(program, x, y, z, kernel=_several_kernel())


def _several():
    """Reads across rows of two dtypes, beside a read along rows."""
    g = Graph(tensor("n", "m"), tensor("m", "n"), tensor("m", "n", dtype=F64))
    x, y, z = g.inputs
    turned = g.transpose(g.add(g.cast(y, dtype=F64), z), perm=(1, 0))
    return g.returning(g.add(g.cast(x, dtype=F64), turned))


@functools.cache
def _several_kernel():
    kernel = build(_several())
    assert loops(kernel).count(TILE) == 2
    return kernel


def test_operands_beyond_the_arrays_that_fit():
    g = Graph(*[tensor(40, 50)] * 6)
    total = g.inputs[0]
    for x in g.inputs[1:]:
        total = g.maximum(total, x)
    program = g.returning(g.transpose(total, perm=(1, 0)))
    kernel = check(program, *(drawn((40, 50), F32) for _ in range(6)))
    assert loops(kernel).count(TILE) in (0, MOST)


def test_several_results():
    g = Graph(tensor("n", "m"), tensor("m", "n"))
    x, y = g.inputs
    t = g.transpose(y, perm=(1, 0))
    program = g.returning(g.add(x, t), g.mul(x, t), g.transpose(g.sub(x, t), perm=(1, 0)))
    kernel = build(program)
    for n, m in SIZES:
        check(program, drawn((n, m), F32), drawn((m, n), F32), kernel=kernel)


PERMUTATIONS = [(0, 2, 1), (2, 0, 1), (1, 2, 0), (2, 1, 0), (0, 3, 1, 2), (0, 2, 3, 1), (3, 2, 1, 0)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("perm", PERMUTATIONS)
@pytest.mark.parametrize("symbolic", [False, True])
def test_outer_axes(perm, symbolic):
    sizes = (3, 40, 5, 33)[: len(perm)] if len(perm) == 4 else (19, 40, 33)
    dims = "abcd"[: len(perm)] if symbolic else sizes
    g = Graph(tensor(*dims))
    (x,) = g.inputs
    program = g.returning(g.mul(g.transpose(x, perm=perm), g.number(2)))
    kernel = check(program, drawn(sizes, F32))
    assert TILE in loops(kernel) or not symbolic


def test_two_operands_choose_the_loop_of_the_stores():
    g = Graph(tensor("n", "m"), tensor("n", "m"))
    x, y = g.inputs
    program = g.returning(g.exp(g.transpose(g.add(x, y), perm=(1, 0))))
    kernel = build(program)
    assert loops(kernel).count(TILE) == 2
    for n, m in [*SIZES, (70, 200), (200, 65)]:
        args = drawn((n, m), F32), drawn((n, m), F32)
        found, wanted = kernel(*args)[0], np.exp((args[0] + args[1]).T)
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_strides_of_arguments():
    """A transposed view is read in tiles if its type says where it is contiguous."""
    for strides, tiled in (((1, "?"), True), (("?", "?"), False), (("?", 1), False)):
        g = Graph(tensor(70, 90, strides=strides), tensor(70, 90))
        x, y = g.inputs
        program = g.returning(g.mul(x, y))
        a = drawn((100, 70), F32)[:90].T if strides[0] == 1 else drawn((70, 90), F32)
        kernel = check(program, a, drawn((70, 90), F32))
        assert (TILE in loops(kernel)) == tiled


def test_a_batch_of_broadcasts():
    g = Graph(tensor(3, 50, 70), tensor(70, 50), tensor(70))
    x, y, z = g.inputs
    program = g.returning(g.mul(g.add(x, g.transpose(y, perm=(1, 0))), z))
    kernel = check(program, drawn((3, 50, 70), F32), drawn((70, 50), F32), drawn((70,), F32))
    assert TILE in loops(kernel)


def test_nan_and_negative_zero_pass_unchanged():
    bits = np.array([0x7FA00001, 0xFFC12345, 0x80000000, 1], np.uint32).view(np.float32)
    x = np.resize(bits, (40, 50))
    g = Graph(tensor("n", "m"))
    program = g.returning(g.transpose(*g.inputs, perm=(1, 0)))
    kernel = build(program)
    assert TILE in loops(kernel)
    assert kernel(x)[0].tobytes() == np.ascontiguousarray(x.T).tobytes()


def test_parts_of_concatenations():
    """A concatenation reads its parts in branches or at clamped indices, not in tiles."""
    g = Graph(tensor("n", "m"), tensor("m", "n"))
    x, y = g.inputs
    t = g.transpose(y, perm=(1, 0))
    program = g.returning(g.add(g.concatenate(x, t, axis=0), g.number(1)))
    kernel = build(program)
    for n, m in SIZES:
        check(program, drawn((n, m), F32), drawn((m, n), F32), kernel=kernel)


def test_outputs_on_inputs():
    kernel = build(added(70, 90), in_place=True)
    assert kernel.artifact.abi.in_place == ((0, 0),)
    x, y = drawn((70, 90), F32), drawn((90, 70), F32)
    slots, _outputs, _frames, _alive = kernel.slots(x, y)
    wanted = np.maximum(x, y.T)
    slots[2] = slots[0]
    kernel.function(slots.ctypes.data)
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("side,lanes", [(4, 2), (8, 4), (16, 8), (16, 16), (16, 4), (8, 2)])
def test_rounds_transpose(side, lanes):
    rows = np.arange(side * side).reshape(side, side)
    found = rows.copy()
    for n, low, high in rounds(side, lanes):
        for a in range(side):
            if not a & n:
                both = np.concatenate([found[a], found[a + n]])
                found[a], found[a + n] = both[low], both[high]
    np.testing.assert_array_equal(found, rows.T)


@pytest.mark.parametrize("features", ["+avx2,+fma", "+avx512f,+avx512vl,+avx512bw,+avx512dq"])
def test_assembly_shuffles_vectors(features):
    target = Target("x86_64-unknown-linux-gnu", "x86-64", features)
    for dtype, shuffles in ((F32, 24), (F64, 8)):
        artifact = compile_program(added(128, 128, dtype), target, keep_stages=True)
        asm = artifact.stages["asm"]
        assert "gather" not in asm
        within = [line for line in asm.splitlines() if "vpunpck" in line or "vunpck" in line]
        assert all("%ymm" in line for line in within)
        across = [line for line in asm.splitlines() if "vperm2" in line or "vinsert" in line]
        assert len(within) + len(across) == shuffles


def test_nothing_changes_without_such_reads():
    g = Graph(tensor("n", "m"), tensor("n", "m"), tensor("n", 1))
    x, y, z = g.inputs
    kernel = build(g.returning(g.mul(g.add(x, y), z)))
    assert "transpose_" not in loops(kernel)
    assert not re.search(r"alloca .* x f32", loops(kernel))
