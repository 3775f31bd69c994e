"""Loops in two versions, with and without what is rarely needed: same bits, and when they occur."""

import math_harness
import numpy as np
import pytest
from graphs import Graph, tensor
from native import Kernel, untouched
from profuse.dialect.ir.dtypes import F32, F64, I8, I32, I64
from profuse.lowering import math
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import Target, host_target

FUSED = pytest.mark.skipif(not host_target().fused, reason="one version only")
HUGE = 3e30


def bits(x):
    return x.view(f"u{x.itemsize}")


def built(program, in_place=False):
    return Kernel(compile_program(program, host_target(), keep_stages=True, in_place=in_place))


def arguments(dtype, count=5000):
    return np.random.default_rng(0).uniform(-40, 40, count).astype(dtype)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", list(math.EXPANSIONS))
def test_results_do_not_depend_on_the_place(name, dtype):
    arity = 2 if name in ("atan2", "powf") else 1
    if name in math.FUSED_F64 and dtype is np.float64 and not host_target().fused:
        pytest.skip("libm")
    kernel = math_harness.compile_function(name, dtype, arity)
    x = np.abs(arguments(dtype, 300)) if name == "powf" else arguments(dtype, 300)
    x[::7] /= 40
    y = arguments(dtype, 600)[300:]
    operands = (x, y)[:arity]
    whole = kernel(*operands)
    for start in range(150):
        part = kernel(*(a[start:] for a in operands))
        np.testing.assert_array_equal(bits(part), bits(whole[start:]))
    single = [kernel(*(a[k : k + 1] for a in operands))[0] for k in range(300)]
    np.testing.assert_array_equal(bits(np.array(single, dtype)), bits(whole))


@pytest.mark.sampled(2)
@FUSED
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("at", [0, 2047, 2048, 4999])
def test_both_versions_have_the_same_bits(name, dtype, at):
    kernel = math_harness.compile_function(name, dtype)
    x = arguments(dtype)
    usual = kernel(x)
    for value in (HUGE, np.inf, np.nan):
        x[at] = value
        found = kernel(x)
        np.testing.assert_array_equal(np.delete(bits(found), at), np.delete(bits(usual), at))
        with np.errstate(invalid="ignore"):
            expected = getattr(np, name)(x[at])
        np.testing.assert_allclose(found[at], expected, rtol=1e-6)


def waves(n, m):
    g = Graph(tensor(n, m))
    (x,) = g.inputs
    return g.returning(g.mul(g.sin(x), g.cos(g.mul(x, g.number(3.0)))))


@FUSED
@pytest.mark.parametrize("shape", [(3, 1000), (2, 9001)])
def test_one_test_serves_several_functions(shape):
    x = arguments(np.float32, shape[0] * shape[1]).reshape(shape)
    kernel = built(waves(*shape))
    loops = kernel.stages["loops"]
    assert loops.count("arith.ori") == 2 * 2 and "profuse.rare" not in loops
    for value in (1.0, 2.0**15, 1e9, HUGE):
        x[1, 7] = value
        (found,) = kernel(x)
        wide = x.astype(np.float64)
        expected = np.sin(wide) * np.cos((x * np.float32(3)).astype(np.float64))
        np.testing.assert_allclose(found, expected, atol=3e-7)


@FUSED
def test_reductions_are_carried_through_blocks():
    g = Graph(tensor(3, 9001))
    kernel = built(g.returning(g.sum(g.sin(*g.inputs), axes=(1,))))
    x = arguments(np.float32, 3 * 9001).reshape(3, 9001)
    for value in (1.0, HUGE):
        x[1, 8000] = value
        (found,) = kernel(x)
        np.testing.assert_allclose(found, np.sin(x.astype(np.float64)).sum(1), rtol=1e-4)


@FUSED
@pytest.mark.parametrize("in_place", [False, True])
def test_what_is_dear_to_test_has_one_version_where_a_test_comes_first(in_place):
    """A loop that may write what it reads is tested before; another one runs again."""
    g = Graph(tensor(64))
    kernel = built(g.returning(g.sin(g.exp(*g.inputs))), in_place)
    assert ("arith.ori" not in kernel.stages["loops"]) == in_place
    x = np.linspace(-3, 2, 64, dtype=np.float32)
    for last in (2, np.nan):
        x[-1] = last
        (found,) = kernel(x)
        np.testing.assert_allclose(found, np.sin(np.exp(x.astype(np.float64))), atol=2e-6)


@FUSED
def test_loops_that_may_write_what_they_read_run_once():
    """Sines in place, and added to accumulators in memory."""
    g = Graph(tensor(3, 5000))
    in_place = built(g.returning(g.sin(*g.inputs)), True)
    h = Graph(tensor(3, 5000))
    sums = built(h.returning(h.sum(h.sin(*h.inputs), axes=(0,))))
    for kernel in (in_place, sums):
        assert kernel.stages["loops"].count("math.sin") == 0
    for value in (1.0, HUGE, np.nan):
        x = arguments(np.float32, 15000).reshape(3, 5000)
        x[1, ::900] = value
        expected = np.sin(x.astype(np.float64))
        np.testing.assert_allclose(sums(x)[0], expected.sum(0), atol=2e-6)
        slots, *_ = in_place.slots(x)
        slots[1] = slots[0]
        in_place.function(slots.ctypes.data)
        np.testing.assert_allclose(x, expected, atol=3e-7)


@pytest.mark.sampled(3)
@FUSED
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["sin", "log", "powf"])
@pytest.mark.parametrize("shape", [(20_001,), (40, 500)])
def test_blocks_in_a_row_that_need_rare_values(name, dtype, shape):
    """Whichever version runs first, and however often it changes, bits are the same."""
    g = Graph(*[tensor(*shape, dtype=F32 if dtype is np.float32 else F64)] * (1 + (name == "powf")))
    kernel = built(g.returning(getattr(g, name.replace("powf", "pow"))(*g.inputs)))
    x, y = np.random.default_rng(0).uniform(0.5, 20, (2, *shape)).astype(dtype)
    args = (x, y)[: len(g.inputs)]
    rare = 1e30 if name == "sin" else 0.0
    places = np.arange(x.size)
    usual = kernel(*args)[0].ravel()
    for chosen in (
        places % 100 == 0,
        places < 7000,
        (places > 3000) & (places < 9000),
        places % 3000 == 5,
        places // 2048 % 2 == 0,
        places // 2048 % 4 > 1,
        places >= 20_000,
    ):
        changed = np.where(chosen.reshape(shape), dtype(rare), x)
        found = kernel(changed, *args[1:])[0].ravel()
        np.testing.assert_array_equal(bits(found)[~chosen], bits(usual)[~chosen])
        wanted = {"sin": np.sin(dtype(rare)), "log": -np.inf, "powf": 0.0}[name]
        np.testing.assert_allclose(found[chosen], wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("target", "fused"),
    [
        (Target("x86_64-unknown-linux-gnu", "z", "+avx2,+fma"), True),
        (Target("x86_64-unknown-linux-gnu", "z", "+avx2,-fma,+fma4"), False),
        (Target("aarch64-unknown-linux-gnu", "neoverse-n1"), True),
    ],
)
def test_features_tell_of_fused_multiply_add(target, fused):
    assert target.fused is fused


def test_targets_without_fused_multiply_add_have_one_version():
    target = Target("x86_64-unknown-linux-gnu", "nehalem")
    artifact = compile_program(waves(4, 64), target, keep_stages=True)
    assert "arith.ori" not in artifact.stages["loops"]
    assert "math.fma" not in artifact.stages["loops"]


# --- indices -------------------------------------------------------------------------------------


def gathers(*sizes, dtype=I64, of=None):
    g = Graph(tensor(*sizes), tensor(*sizes, dtype=dtype))
    x, indices = g.inputs
    found = g.gather(x, indices, axis=1)
    return g.returning(g.mul(of(g, found) if of else found, g.number(2.0)))


def called(kernel, *args):
    """The result, and whether the launch is void."""
    slots, outputs, frames, _alive = kernel.slots(*args)
    kernel.function(slots.ctypes.data)
    assert all(map(untouched, frames))
    return outputs[0], bool(outputs[1])


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [I64, I32, I8])
@pytest.mark.parametrize("sizes", [(3, 100), (3, 5000), ("s0", "s1")])
def test_indices_that_count_from_the_end(sizes, dtype):
    kernel = built(gathers(*sizes, dtype=dtype))
    rows, columns = (3, 5000) if "s0" in sizes else sizes
    rng = np.random.default_rng(0)
    x = rng.standard_normal((rows, columns)).astype(np.float32)
    usual = rng.integers(0, 100, x.shape).astype(dtype.numpy)
    for places in ([], [0], [2047], [2048, 4999], range(columns)):
        indices = usual.copy()
        indices[1, [k for k in places if k < columns]] -= 100
        found, is_void = called(kernel, x, indices)
        wanted = np.take_along_axis(x, indices.astype(np.int64), axis=1) * np.float32(2)
        np.testing.assert_array_equal(found, wanted)
        assert not is_void


@pytest.mark.sampled(3)
@pytest.mark.parametrize("sizes", [(3, 5000), ("s0", "s1")])
@pytest.mark.parametrize("index", [5000, -5001, 2**45, 2**62, -(2**63)])
@pytest.mark.parametrize("at", [0, 2048, 4999])
def test_indices_outside_of_the_axis_void_the_launch(sizes, index, at):
    kernel = built(gathers(*sizes))
    x, indices = np.ones((3, 5000), np.float32), np.full((3, 5000), 4999)
    assert not called(kernel, x, indices)[1]
    indices[1, at] = index
    found, is_void = called(kernel, x, indices)
    assert is_void
    np.testing.assert_array_equal(found, 2)  # nothing else has been read


def test_what_of_places_on_the_axis_has_no_bounds():
    """One loop tests a block, one has bounds, and one has neither them nor vectors of indices."""
    text, scalar = built(gathers(64, 256)).stages["loops"], "#llvm.loop_vectorize<disable = true>"
    assert (text.count("arith.cmpi uge"), text.count("arith.maxsi")) == (1, 1)
    assert scalar in text
    assert scalar not in built(gathers(64, 256, dtype=I32)).stages["loops"]


def test_indices_into_whole_arrays_have_one_loop():
    """A loop that waits for memory at each index would wait for a test as well."""
    g = Graph(tensor(5000), tensor(300, dtype=I64))
    x, indices = g.inputs
    text = built(g.returning(g.abs(g.take(x, indices, axis=0)))).stages["loops"]
    assert text.count("arith.maxsi") == 1 and "arith.cmpi uge" not in text


@FUSED
def test_rare_values_of_what_is_read_at_indices():
    kernel = built(gathers(3, 5000, of=lambda g, x: g.sin(x)))
    assert kernel.stages["loops"].count("arith.maxsi") == 2
    x = np.full((3, 5000), 0.5, np.float32)
    x[:, 7] = HUGE
    indices = np.zeros((3, 5000), np.int64)
    indices[2, 3000:] = -4993
    found, is_void = called(kernel, x, indices)
    wanted = 2 * np.sin(np.take_along_axis(x, indices, axis=1).astype(np.float64))
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    assert not is_void
