"""Loops over joined arrays are split where one ends: no piece compares, clamps or divides."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel
from profuse.dialect.ops.indexing.slicing import ABSENT
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import Target, host_target

# Vectors that compare and clamp numbers of 64 bits, which those of other hosts do not in one instruction.
AVX512 = Target("x86_64-unknown-linux-gnu", "znver4", "+avx512f,+avx512vl,+avx512dq,+avx512bw")


def built(program):
    kernel = Kernel(compile_program(program, host_target(), keep_stages=True))
    kernel.vector_code = compile_program(program, AVX512, keep_stages=True).stages["asm"]
    return kernel


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
    np.testing.assert_array_equal(found, np.concatenate([x[:, :8], y[:, 8:24] * 2, x[:, 24:]], axis=1))
    assert "arith.rem" not in kernel.stages["loops"]
    assert not re.search(r"v\w*(cmp|blend|gather)", kernel.vector_code)


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [2, 3, 4, 5, 9])
@pytest.mark.parametrize("rows", [5, "n"])
def test_loops_that_read_several_rows_at_once_are_not_split(count, rows):
    """Sums over stacked arrays read up to four of them in one iteration."""
    g = Graph(*(tensor(rows, 6) for _ in range(count)))
    stacked = g.concatenate(*(g.expand_dims(x, axes=(0,)) for x in g.inputs), axis=0)
    kernel = built(g.returning(g.sum(stacked, axes=(0,))))
    arrays = list(np.random.default_rng(2).standard_normal((count, 5, 6)).astype(np.float32))
    (total,) = kernel(*arrays)
    np.testing.assert_allclose(total, np.sum(arrays, axis=0), rtol=1e-4, atol=1e-5)


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
    assert not re.search(r"v\w*(cmp|blend|gather)|vpm(ax|in)s", kernel.vector_code)


@pytest.mark.parametrize("rows", [9, "n"])
def test_slices_that_are_assigned_are_pieces_too(rows):
    """The border of a stencil step stays, four slices of the inside are summed into it."""
    g = Graph(tensor(rows, 40))
    (x,) = g.inputs

    def part(down, right):
        rows_, columns = (down, -2 + down or ABSENT), (right, -2 + right or ABSENT)
        return g.slice(x, starts=(rows_[0], columns[0]), stops=(rows_[1], columns[1]))

    inner = g.add(g.add(part(0, 1), part(2, 1)), g.add(part(1, 0), part(1, 2)))
    kernel = built(g.returning(g.slice_scatter(x, inner, starts=(1, 1), stops=(-1, -1))))
    array = np.random.default_rng(3).standard_normal((9, 40)).astype(np.float32)
    wanted = array.copy()
    wanted[1:-1, 1:-1] = (array[:-2, 1:-1] + array[2:, 1:-1]) + (array[1:-1, :-2] + array[1:-1, 2:])
    (found,) = kernel(array)
    np.testing.assert_array_equal(found, wanted)
    assert not re.search(r"v\w*(blend|gather)", kernel.vector_code)


def test_bounds_are_split_at_in_order_and_once():
    """Two assignments to the same part, and one around it: no piece compares."""
    g = Graph(tensor(64))
    (x,) = g.inputs
    y = x
    for first, last, factor in ((20, 30, 2.0), (20, 30, 3.0), (10, 50, 5.0)):
        part = g.mul(g.slice(y, starts=(first,), stops=(last,)), g.number(factor))
        y = g.slice_scatter(y, part, starts=(first,), stops=(last,))
    kernel = built(g.returning(y))
    array = np.arange(64, dtype=np.float32)
    wanted = array.copy()
    wanted[20:30] *= 6
    wanted[10:50] *= 5
    np.testing.assert_array_equal(kernel(array)[0], wanted)
    assert not re.search(r"v\w*(blend|gather|pcmp)", kernel.vector_code)


# Increments of parts of an array: (axis, first, last of the part, first of what is added).
AROUND = [(0, 1, None, 0), (0, 0, -1, 1), (1, 1, None, 0), (1, 0, -1, 1)]
MANY = [(1, k, k + 8, 7 - k) for k in range(7)]


def sums_of_parts(parts, x, get, put, scaled):
    """``y = -4 * x``, and parts of ``y`` increased by parts of ``x``."""
    y = scaled(x)
    for axis, first, last, since in parts:
        size = None if last is None else last - first
        end = since + size if size is not None and size > 0 else (None if since else -1)
        y = put(y, get(y, axis, first, last), get(x, axis, since, end), axis, first, last)
    return y


def increased(parts, rows, columns):
    g = Graph(tensor(rows, columns))

    def bounds(axis, first, last):
        stop = ABSENT if last is None else last
        return {"axes": (axis,), "starts": (first or ABSENT,), "stops": (stop,)}

    def put(y, part, more, *at):
        return g.slice_scatter(y, g.add(part, more), **bounds(*at))

    y = sums_of_parts(
        parts, g.inputs[0], lambda v, *at: g.slice(v, **bounds(*at)), put, lambda x: g.mul(x, g.number(-4.0))
    )
    return built(g.returning(y))


def increased_by_numpy(parts, x):
    def at(axis, first, last):
        return (*(slice(None),) * axis, slice(first, last))

    def put(y, part, more, *where):
        y = y.copy()
        y[at(*where)] = part + more
        return y

    return sums_of_parts(parts, x, lambda v, *where: v[at(*where)], put, lambda x: x * -4)


@pytest.mark.parametrize("parts", [AROUND, AROUND[:2], MANY], ids=["around", "rows", "many"])
def test_parts_that_are_increased_one_after_the_other_are_one_walk(parts):
    """However many there are, the array is not stored in between."""
    kernel = increased(parts, 21, 40)
    x = np.random.default_rng(4).standard_normal((21, 40)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x)[0], increased_by_numpy(parts, x))
    assert kernel.artifact.abi.workspace == "0"
    assert len(re.findall(r"func.func @kernel_nest", kernel.stages["loops"])) == 1


def test_increased_parts_are_vector_code_without_comparisons():
    kernel = increased(AROUND, 70, 80)
    assert not re.search(r"v\w*(blend|gather|pcmp)|vpm(ax|in)s", kernel.vector_code)


def test_what_is_read_outside_of_a_part_stays_within_its_array():
    """More parts than a loop is split at: what is not wanted is read at the ends of the array."""
    kernel = increased(MANY, 3, 16)
    loops = kernel.stages["loops"]
    assert "arith.maxsi" in loops and "arith.minsi" in loops
    x = np.random.default_rng(5).standard_normal((3, 16)).astype(np.float32)
    np.testing.assert_array_equal(kernel(x)[0], increased_by_numpy(MANY, x))


def test_rows_that_are_read_as_one_axis_are_read_at_clamped_places():
    """An index that quotients are made of may not be negative."""
    g = Graph(tensor(6, 8), tensor(48))
    x, y = g.inputs
    flat = g.reshape(g.transpose(x, perm=(1, 0)), shape=(48,))
    part = g.add(g.slice(flat, starts=(0,), stops=(40,)), g.slice(y, starts=(0,), stops=(40,)))
    kernel = built(g.returning(g.slice_scatter(y, part, starts=(3,), stops=(43,))))
    rng = np.random.default_rng(6)
    x, y = rng.standard_normal((6, 8)).astype(np.float32), rng.random(48, np.float32)
    wanted = y.copy()
    wanted[3:43] = x.T.reshape(-1)[:40] + y[:40]
    np.testing.assert_array_equal(kernel(x, y)[0], wanted)
