"""Additions at places that arrays name: in their order, on any number of threads."""

import numpy as np
import profuse as pf
import pytest
from graphs import Graph, tensor
from native import built
from pools import needs_pool, on_threads, one_thread_around, same_bits  # noqa: F401
from profuse.dialect.errors import BoundsError
from profuse.dialect.ir.dtypes import I64
from profuse.dialect.reasons import Kind
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target

RNG = np.random.default_rng(31)


def additions(x, value, indices, *, axes):
    g = Graph(tensor(*x), tensor(*value), *(tensor(*i, dtype=I64) for i in indices))
    return g.returning(g.index_add(*g.inputs, axes=axes))


def numpy_additions(x, value, *indices, axes):
    key = [slice(None)] * x.ndim
    for axis, index in zip(axes, indices, strict=True):
        key[axis] = index
    out = x.copy()
    np.add.at(out, tuple(key), value)
    return out


# Shapes of the operands, axes, and whether it is the place, the row or an axis before that threads
# share; then names of the sizes.
SHARED = {
    "places": ((700, 256), (9000, 256), [(9000,)], (0,)),
    "few chunks of places": ((700, 40), (90_000, 40), [(90_000,)], (0,)),
    "rows": ((30, 5000), (900, 5000), [(900,)], (0,)),
    "axes before": ((64, 50, 40), (64, 900, 40), [(900,)], (1,)),
    "pairs of places": ((60, 50, 128), (300, 9, 128), [(300, 1), (9,)], (0, 1)),
    "places apart": ((60, 128, 50), (4000, 128), [(4000,), (4000,)], (0, 2)),
}


def named(symbolic, shapes):
    """The shapes with a name for each size but 1, equal names for equal sizes."""
    return [tuple(f"s{n}" if symbolic and n > 1 else n for n in s) for s in shapes]


@pytest.mark.sampled(4)
@needs_pool
@pytest.mark.parametrize("symbolic", [False, True])
@pytest.mark.parametrize("name", SHARED)
def test_order_of_the_definition_on_any_number_of_threads(name, symbolic):
    x, value, indices, axes = SHARED[name]
    first, second, *rest = named(symbolic, [x, value, *indices])
    kernel = built(additions(first, second, rest, axes=axes))
    assert kernel.artifact.shared_steps
    args = [RNG.standard_normal(s).astype(np.float32) for s in (x, value)]
    args += [RNG.integers(-x[a], x[a], i) for a, i in zip(axes, indices, strict=True)]
    found = on_threads(kernel, *args)
    assert same_bits(found)
    np.testing.assert_array_equal(found[0][0], numpy_additions(*args, axes=axes))


def test_narrow_places_stay_whole():
    """Each chunk of the places would read all of them, for a number or two."""
    kernel = built(additions((100_000, 3), (50_000, 3), [(50_000,)], axes=(0,)))
    assert kernel.artifact.shared_steps == 0


def test_estimated_work_is_that_of_the_places():
    """Not that of all pairs of a place and a row, by which small additions would be divided."""
    artifact = compile_program(additions((3000, 32), (10, 32), [(10,)], axes=(0,)), host_target(), keep_stages=True)
    assert artifact.shared_steps == 0


@pytest.mark.parametrize("count", [1, 7, 5000])
def test_numbers_that_are_computed_on_the_way(count):
    """What is added is computed where it is added, by loops with a rare case as well."""
    g = Graph(tensor(50), tensor(count), tensor(count, dtype=I64))
    x, value, index = g.inputs
    kernel = built(
        g.returning(g.index_add(x, g.neg(value), index, axes=(0,)), g.index_add(x, g.sin(value), index, axes=(0,)))
    )
    x = RNG.standard_normal(50).astype(np.float32)
    value = RNG.standard_normal(count).astype(np.float32)
    value[-1] = 1e9  # the reduction of which is a rare case
    index = RNG.integers(-50, 50, count)
    negated, sines = kernel(x, value, index)
    np.testing.assert_array_equal(negated, numpy_additions(x, -value, index, axes=(0,)))
    expected = numpy_additions(x.astype("f8"), np.sin(value.astype("f8")), index, axes=(0,))
    np.testing.assert_allclose(sines, expected, rtol=1e-5, atol=1e-4)


def test_results_are_read_by_other_loops():
    """The additions are complete before a step reads them, and begin after one has written."""
    g = Graph(tensor(40, 30), tensor(200, 30), tensor(200, dtype=I64))
    x, value, index = g.inputs
    added = g.index_add(g.exp(x), value, index, axes=(0,))
    again = g.index_add(added, value, index, axes=(0,))
    kernel = built(g.returning(g.sum(g.mul(again, x), axes=(1,)), added))
    x, value = (RNG.standard_normal(s).astype(np.float32) for s in ((40, 30), (200, 30)))
    index = RNG.integers(0, 40, 200)
    sums, added = kernel(x, value, index)
    wanted = numpy_additions(np.exp(x), value, index, axes=(0,))
    np.testing.assert_allclose(added, wanted, rtol=1e-5, atol=1e-5)
    wanted = numpy_additions(wanted, value, index, axes=(0,))
    np.testing.assert_allclose(sums, (wanted * x).sum(1), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_an_index_out_of_range_raises(strategy):
    """The kernel notes it, writes nothing outside, and tier 0 raises at the user's line."""
    add = pf.op("index_add")
    f = pf.jit(lambda x, v, i: add(x * 2, v, i, axes=(0,)) + 1, background=False, strategy=[(strategy, 2)])
    x, v = RNG.standard_normal((6, 3)), RNG.standard_normal((4, 3))
    for i in ([0, 5, -6, 5], [1, 1, 1, 1], [2, 3, 4, 5]):
        expected = numpy_additions(x * 2, v, np.array(i), axes=(0,)) + 1
        np.testing.assert_array_equal(f(x, v, np.array(i)), expected)
    assert f.state().counters["kernel_launches"] > 0
    for i in ([0, 6, 0, 0], [-7, 0, 0, 0], [2**62, 0, 0, 0]):
        with pytest.raises(BoundsError):
            f(x, v, np.array(i))
    assert f.state().counters["voided_launches"] == 3


def test_a_gpu_takes_few_indices():
    """Each thread goes through all of them; of more, the reason why there is no kernel is told."""
    op = pf.dialect.ops.indexing.additions.IndexAdd
    x = tensor(50, 3)
    on = lambda t: type(t)(t.dtype, t.shape, t.strides, "cuda:0")  # noqa: E731
    for count, fits in ((1024, True), (1025, False), ("n", False)):
        types = [on(x), on(tensor(count, 3)), on(tensor(count, dtype=I64))]
        reason = op.can_lower_types(types, {"axes": (0,)})
        assert (reason is None) == fits
        if reason is not None:
            assert reason.kind is Kind.UNPROVEN and "on a GPU" in reason.why
        assert op.can_lower_types([x, tensor(count, 3), tensor(count, dtype=I64)], {"axes": (0,)}) is None
