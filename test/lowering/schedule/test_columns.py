"""Reductions over leading axes read memory in long runs, and add rows in their order."""

import re

import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel, built, same_bits
from profuse.dialect.ir.dtypes import F32, F64, I32, I64
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target

RNG = np.random.default_rng(13)


def drawn(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def sums(*sizes, dtype=F32, strides="contiguous"):
    g = Graph(tensor(*sizes, dtype=dtype, strides=strides))
    (x,) = g.inputs
    return g.returning(g.sum(x, axes=(0,), keepdims=False))


def extrema(*sizes):
    g = Graph(tensor(*sizes))
    (x,) = g.inputs
    return g.returning(g.max(x, axes=(0,), keepdims=False), g.argmin(x, axis=0))


def dots(*sizes, arrays=2):
    g = Graph(*[tensor(*sizes) for _ in range(arrays)])
    product = g.inputs[0]
    for other in g.inputs[1:]:
        product = g.mul(product, other)
    return g.returning(g.sum(product, axes=(0,), keepdims=False))


def nest(kernel, number=0):
    """The text of a nest."""
    text = kernel.stages["loops"]
    return text[text.index(f"_nest{number}(%arg0") :].split("\n  }\n")[0]


def added(program, op="arith.addf|math.fma", number=0):
    """How many rows each loop over columns adds, in order; ``number``: of the nest."""
    text = nest(built(program), number)
    found = [len(re.findall(op, part)) for part in re.split(r"scf\.for", text)[1:]]
    return [n for n in found if n]


def tile(program):
    """Elements of a tile of columns; None = whole rows."""
    steps = re.findall(r"scf\.for %arg\d+ = %\S+ to %\S+ step %c(\d\d+)_i64", nest(built(program)))
    return int(steps[0]) if steps else None


@pytest.mark.sampled(6)
@pytest.mark.parametrize("columns", [2, 5, 64, 100, 1100])
@pytest.mark.parametrize("dtype", [F32, F64, I32])
def test_rows_are_added_in_order(columns, dtype):
    anywhere = built(sums("s0", "s1", dtype=dtype))
    for rows in [1, 2, 3, 4, 5, 7, 8, 13]:
        x = (drawn(rows, columns) * 100).astype(dtype.numpy)
        same_bits(sums(rows, columns, dtype=dtype), x)
        same_bits(sums("s0", "s1", dtype=dtype), x, kernel=anywhere)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("rows", [0, 1, 4, 6, 11])
def test_several_accumulators(rows):
    anywhere = built(extrema("s0", "s1"))
    x = np.round(drawn(max(rows, 1), 70) * 2)
    x[len(x) // 2, ::7] = np.nan
    same_bits(extrema(*x.shape), x)
    same_bits(extrema("s0", "s1"), x, kernel=anywhere)


def test_middle_axes():
    g = Graph(tensor("s0", "s1", "s2"))
    (x,) = g.inputs
    program = g.returning(g.sum(x, axes=(1,), keepdims=False))
    kernel = built(program)
    for shape in [(3, 9, 20), (1, 4, 1), (5, 3, 33), (2, 0, 8), (4, 16, 2100)]:
        same_bits(program, drawn(*shape), kernel=kernel)


def of_unit_length(g, x):
    return g.div(x, g.sqrt(g.sum(g.mul(x, x), axes=(1,), keepdims=True)))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("columns", [2, 3, 7])
@pytest.mark.parametrize("of", [lambda g, x: x, of_unit_length], ids=["numbers", "computed"])
def test_many_rows_of_few_columns(columns, of):
    """Steps of 4 to 16 rows, or blocks of 256: whole ones and what is left over."""
    programs = {}
    for rows in ["n", 31, 32, 33, 47, 256, 257, 300, 512 + 31, 512 + 33]:
        g = Graph(tensor(rows, columns, dtype=F64))
        y = of(g, *g.inputs)
        programs[rows] = g.returning(y, g.sum(y, axes=(0,), keepdims=False))
    anywhere = built(programs.pop("n"))
    for rows, program in programs.items():
        x = drawn(rows, columns, dtype=np.float64)
        (y, one), (_, other) = built(program)(x), anywhere(x)
        assert one.tobytes() == other.tobytes()
        np.testing.assert_allclose(one, y.sum(axis=0), rtol=1e-13, atol=1e-13)
        if rows < 32:
            assert one.tobytes() == y.sum(axis=0).tobytes()


@pytest.mark.parametrize("sizes", [(2, 3, 4), (5, 3, 2), (300, 3, 2), (300, 1, 2), (40, 20, 3)])
def test_accumulators_that_each_row_has_for_itself(sizes):
    """A row that begins, fills and reads them does not add to those of the row before."""
    g = Graph(tensor(*sizes))
    (x,) = g.inputs
    mean = g.mean(g.mul(x, x), axes=(1,), keepdims=False)
    kernel = built(g.returning(g.sub(mean, g.tanh(mean))))
    x = drawn(*sizes)
    mean = (x.astype(np.float64) ** 2).mean(axis=1)
    (found,) = kernel(x)
    np.testing.assert_allclose(found, mean - np.tanh(mean), rtol=1e-4, atol=1e-6)


def test_rows_that_add_several_times():
    g = Graph(tensor(300, 3, 2))
    (x,) = g.inputs
    kernel = built(g.returning(g.sum(g.tanh(x), axes=(0, 1), keepdims=False)))
    x = drawn(300, 3, 2)
    (found,) = kernel(x)
    np.testing.assert_allclose(found, np.tanh(x.astype(np.float64)).sum(axis=(0, 1)), rtol=1e-3)


def test_extrema_and_sums_of_few_columns():
    g = Graph(tensor("n", 3))
    (x,) = g.inputs
    product = g.mul(x, x)
    outputs = [
        g.sum(x, axes=(0,), keepdims=False),
        g.max(x, axes=(0,), keepdims=False),
        g.sum(product, axes=(0,), keepdims=False),
    ]
    kernel = built(g.returning(*outputs))
    for rows in (1, 40, 300):
        x = np.round(drawn(rows, 3) * 4)  # no sum of these is rounded
        for found, wanted in zip(kernel(x), [x.sum(0), x.max(0), (x * x).sum(0)], strict=True):
            np.testing.assert_array_equal(found, wanted)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("rows", [2048, 2051])
@pytest.mark.parametrize("columns", [1000, 2048, 17000])
def test_sizes_known_or_not_give_the_same_bits(rows, columns):
    x = drawn(rows, columns)
    known, unknown = built(sums(rows, columns)), built(sums("s0", "s1"))
    (one,), (other,) = known(x), unknown(x)
    assert one.tobytes() == other.tobytes()
    np.testing.assert_allclose(one, x.sum(axis=0, dtype=np.float64), atol=2e-3)


def test_what_caches_hold_is_added_four_rows_at_a_time():
    assert added(sums(512, 1024)) == [4, 1]  # chunks of rows of any number
    assert added(sums(64, 256)) == [4]
    assert added(dots(64, 256)) == [4]
    assert added(dots(64, 256, arrays=3)) == [2]
    assert added(dots(64, 256, arrays=5)) == [1]


def test_what_memory_holds_is_read_in_one_run():
    """Two kilobytes of a row, and then of the next one, are read at half the speed."""
    assert added(sums(4096, 2048)) == [1]
    assert tile(sums(4096, 2048)) is None
    assert added(sums(8192, 1000)) == [1]


def test_wide_rows_need_several_at_a_time():
    assert added(sums(1024, 8192)) == [4, 1]
    assert tile(sums(1024, 8192)) is None
    assert tile(sums(1024, 65536)) == 16384
    assert tile(sums(1024, 65536, dtype=F64)) == 8192


def test_rows_that_do_not_follow_each_other():
    assert added(sums(4096, 1024, strides=(4096, 1))) == [4, 1]


def test_rows_whose_columns_threads_share():
    """Each chunk has a part of the columns, because only whole columns have their extrema."""
    g = Graph(tensor(4096, 1100))
    (x,) = g.inputs
    assert added(g.returning(g.argmin(x, axis=0)), op="arith.cmpf olt") == [4]


def test_costly_rows_are_added_one_by_one():
    g = Graph(tensor(64, 256))
    (x,) = g.inputs
    program = g.returning(g.sum(g.exp(x), axes=(0,), keepdims=False))
    assert added(program, op="llvm.store") == [1, 1]  # the first one is of zeros


@pytest.mark.parametrize("known", [True, False])
def test_rows_are_stored_once(known):
    """Sums beside what is stored of each row."""
    g = Graph(tensor(*((21, 40) if known else ("s0", "s1"))))
    (x,) = g.inputs
    y = g.abs(x)
    same_bits(g.returning(y, g.sum(y, axes=(0,), keepdims=False)), drawn(21, 40))


def test_onto_an_argument():
    g = Graph(tensor(9, 40), tensor(40))
    x, y = g.inputs
    program = g.returning(g.add(g.sum(x, axes=(0,), keepdims=False), y))
    kernel = Kernel(compile_program(program, host_target(), keep_stages=True, in_place=True))
    same_bits(program, drawn(9, 40), drawn(40), kernel=kernel)


def bags(rows, columns, count, size):
    """The sums of so many rows each that indices name."""
    g = Graph(tensor(rows, columns), tensor(count * size, dtype=I64))
    table, tokens = g.inputs
    taken = g.reshape(g.take(table, tokens, axis=0), shape=(count, size, columns))
    return g.returning(g.sum(taken, axes=(1,), keepdims=False))


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_few_rows_that_indices_name_are_added_at_once(size):
    program = bags(50, 70, 9, size)
    assert added(program, number=1) == [size]  # the first nest tests the indices
    tokens = RNG.integers(-50, 50, 9 * size)
    same_bits(program, drawn(50, 70), tokens)


def test_many_rows_that_indices_name_are_added_one_by_one():
    assert added(bags(50, 70, 9, 5), number=1) == [1]


def test_no_rows_that_indices_name_are_added():
    program = bags(50, 70, 9, 0)
    same_bits(program, drawn(50, 70), np.zeros(0, np.int64))
