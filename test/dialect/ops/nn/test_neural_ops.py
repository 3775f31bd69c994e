"""Ops of neural networks: one composition each, one kernel each, and bits that depend on nothing but a place."""

import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))
from cases import difference
from nn_cases import conv2d_reference, images
from nn_cases import philox as philox_in_python
from profuse.dialect.errors import DTypeError, InternalError, ShapeError
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.importers.numpy.tracing.composites import composite, recorded
from profuse.dialect.ir.dtypes import F16, F32, F64, I64
from profuse.dialect.ir.op import OPS, op_named
from profuse.dialect.ir.types import TENSOR, ScalarType, TensorType
from profuse.dialect.ops.nn.composite import UNDEFINED_OUTPUT, Composite
from profuse.dialect.ops.nn.dropouts import philox
from profuse.lowering.target import host_target
from profuse.lowering.thread_pool import supports

RNG = np.random.default_rng(11)
COMPOSITES = [op for op in OPS.values() if issubclass(op, Composite)]


def f32(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def counters(fn, *args, calls=3):
    """What a jitted function has counted in some calls, the results of which are those of tier 0."""
    jitted = pf.jit(fn, background=False)
    wanted = fn(*args)
    for _ in range(calls):
        found = jitted(*args)
    pairs = zip(found, wanted, strict=True) if isinstance(wanted, tuple) else [(found, wanted)]
    for a, b in pairs:
        if b is not None:
            np.testing.assert_allclose(np.float64(a), np.float64(b), rtol=1e-5, atol=2e-5)
    return jitted.state().counters


# --- one kernel each --------------------------------------------------------------------------

X, G, ROW, STATS = f32(6, 5, 8), f32(6, 5, 8), f32(8), np.abs(f32(6, 5, 1)) + 0.5
IMAGES, IMAGE_G, CHANNELS = f32(4, 6, 5, 3), f32(4, 6, 5, 3), np.abs(f32(6)) + 0.5

ONE_KERNEL = {
    "layer norm": (lambda x, w, b: composite("native_layer_norm", x, w, b, shape=(8,)), X, ROW, ROW),
    "layer norm backward": (
        lambda g, x, m, r, w: composite("native_layer_norm_backward", g, x, m, r, w, w, shape=(8,)),
        *(G, X, STATS, STATS, ROW),
    ),
    "group norm": (lambda x, w: composite("native_group_norm", x, w, w, groups=3), IMAGES, CHANNELS),
    "batch norm": (
        lambda x, w, v: composite("native_batch_norm", x, w, w, w, v, training=True),
        *(IMAGES, CHANNELS, CHANNELS),
    ),
    "batch norm backward": (
        lambda g, x, w, r: composite("native_batch_norm_backward", g, x, w, None, None, w, r, training=True),
        *(IMAGE_G, IMAGES, CHANNELS, CHANNELS),
    ),
    "softmax": (lambda x: composite("softmax", x), X),
    "log softmax": (lambda x: composite("log_softmax", x, axis=1), X),
    "softmax backward": (lambda g, y: composite("softmax_backward", g, y), G, X),
    "log softmax backward": (lambda g, y: composite("log_softmax_backward", g, y), G, X),
    "gelu": (lambda x: composite("gelu", x), X),
    "dropout": (lambda x: composite("native_dropout", x, 7, 2, p=0.3), X),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel(name):
    fn, *args = ONE_KERNEL[name]
    counts = counters(fn, *args)
    assert counts["kernels_compiled"] == 1
    assert counts["kernel_launches"] == 2  # of three calls the first is profiled
    assert counts["refusals"] == 0


def test_a_kernel_holds_neighbours_of_an_op():
    def block(x, w, b):
        y, _, _ = composite("native_layer_norm", x * 2, w, b, shape=(8,))
        return composite("gelu", y) + x

    counts = counters(block, X, ROW, ROW)
    assert (counts["kernels_compiled"], counts["kernel_launches"]) == (1, 2)


def test_a_loop_of_composites_is_one_kernel():
    def rounds(x, w):
        def body(_, x):
            return composite("softmax", x * w) + composite("native_layer_norm", x, w, shape=(8,))[0]

        return pf.fori_loop(0, 20, body, x)

    jitted, wanted = pf.jit(rounds, background=False), X
    for _ in range(20):
        wanted = composite("softmax", wanted * ROW) + composite("native_layer_norm", wanted, ROW, shape=(8,))[0]
    for _ in range(3):
        np.testing.assert_allclose(jitted(X, ROW), wanted, rtol=1e-4, atol=1e-4)
    counts = jitted.state().counters
    assert (counts["kernels_compiled"], counts["kernel_launches"]) == (1, 2)


# --- undefined and missing operands -------------------------------------------------------------


def test_a_masked_gradient_is_undefined_and_hinders_no_fusion():
    def backward(g, x, m, r, w):
        gx, _, gb = composite("native_layer_norm_backward", g * 2, x, m, r, w, w, shape=(8,), mask=(True, False, True))
        return gx + 1, gb

    args = G, X, STATS, STATS, ROW
    results = composite("native_layer_norm_backward", *args, ROW, shape=(8,), mask=(True, False, True))
    assert results[1] is None and results[0].shape == X.shape and results[2].shape == (8,)
    counts = counters(backward, *args)
    assert (counts["kernels_compiled"], counts["refusals"]) == (1, 0)
    op, types = op_named("native_layer_norm_backward"), [TensorType(F32, (3, 4))] * 2
    types += [TensorType(F32, (3, 1))] * 2
    attrs = op.full_attrs({"shape": (4,), "mask": (False, True, True)})
    assert op.undefined_results(types, attrs) == (0, 1, 2)  # no weight, no bias
    assert op.expansion(types, attrs).outputs == (UNDEFINED_OUTPUT,) * 3


def test_operands_are_packed_and_unpacked():
    op = op_named("batch_norm_index_backward")
    operands = ["index", "x", "grad", None, "rm", None, "mean", "rstd", "reserve"]
    present, bits = op.packed(operands)
    assert present == [x for x in operands if x is not None]
    assert bits == {"given": 0b11010}
    assert op.unpacked(bits, present) == operands
    assert op_named("native_layer_norm").packed(["x"]) == (["x"], {})
    assert op.names(9) == ["index", "x", "grad", *op.optional, "reserve"]


def test_an_undefined_operand_at_run_time_is_none():
    add = op_named("add_optional")
    assert add.evaluate({"given": 1}, X, None) is X
    assert add.evaluate({"given": 0}, X) is X


def test_types_of_operands_that_are_not_known_tell_nothing():
    for op in COMPOSITES:
        attrs = {name: field.default for name, field in op.attrs.items() if field.optional}
        attrs |= {"shape": (4,), "training": True, "groups": 2, "p": 0.5, "scale": 1.0, "axes": (0,), "chunks": 2}
        attrs = {name: value for name, value in attrs.items() if name in op.attrs}
        operands = [ScalarType(I64) if f.name in op.numbers else TENSOR for f in op.operands if not f.variadic]
        if any(f.variadic for f in op.operands) and not op.optional and op.name == "broadcasting_chunk":
            operands = [TENSOR]
        if op.name == "random_bits":
            continue  # has no tensor among its operands
        results = op.infer(operands, attrs)
        assert all(t == TENSOR for t in results), op.name
        assert op.can_lower_types(operands, attrs) is not None, op.name


# --- errors -------------------------------------------------------------------------------------


def test_one_value_per_channel_raises_in_every_tier():
    def normed(x):
        return composite("batch_norm", x, training=True) * 2

    with pytest.raises(ShapeError, match="Expected more than 1 value per channel when training"):
        normed(f32(1, 3, 1, 1))
    jitted = pf.jit(normed, background=False, strategy=[("dynamic", 2)])
    for count in (4, 5, 6, 7):
        np.testing.assert_allclose(jitted(x := f32(count, 3)), normed(x), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="more than 1 value per channel"):
        jitted(f32(1, 3))
    with np.errstate(invalid="ignore"):
        empty = composite("batch_norm", f32(0, 3, 2), training=True)
    assert empty.shape == (0, 3, 2)


def test_a_layer_norm_of_other_sizes_raises_where_a_kernel_runs_for_some():
    def normed(x):
        return composite("native_layer_norm", x, shape=(8,))[0] + 1

    jitted = pf.jit(normed, background=False, strategy=[("dynamic", 2)])
    for count in (4, 5, 6, 7):
        np.testing.assert_allclose(jitted(x := f32(count, 3, 8)), normed(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="over axes of sizes"):
        jitted(f32(4, 3, 9))


def test_dtypes_and_names():
    with pytest.raises(DTypeError, match="gelu takes arrays of real floats, not of int64"):
        composite("gelu", np.arange(3))
    with pytest.raises(InternalError, match="sum is no composite op"):
        composite("sum", X)


# --- convolution --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F16, F32, F64], ids=str)
def test_conv2d_is_the_sum_over_its_windows(dtype):
    rng = np.random.default_rng(4)
    tolerance = {16: 4e-3, 32: 1e-5, 64: 1e-12}[dtype.bits]
    failures = 0
    for attrs, args in images(dtype, rng):
        attrs = dict(attrs)
        attrs.pop("given", None)
        try:
            wanted = conv2d_reference(attrs, *args)
        except ValueError:
            with pytest.raises(ShapeError):
                composite("conv2d", *args, **attrs)
            failures += 1
            continue
        found = composite("conv2d", *args, **attrs)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(np.float64(found), np.float64(wanted), rtol=tolerance, atol=30 * tolerance)
        if dtype is F32:
            counters(lambda *xs, attrs=attrs: composite("conv2d", *xs, **attrs), *args)
    assert failures == 2


# --- random bits (A11) --------------------------------------------------------------------------


def test_a11_reference_vector():
    zero = np.zeros((), np.uint64)
    words = philox(zero, (zero, zero), (zero, zero))
    assert [f"{int(w):08x}" for w in words] == ["6627e8d5", "e169c58d", "bc57ac4c", "9b00dbd8"]
    assert int(composite("random_bits", 0, 0, shape=(1,))[0]) == 0x6627E8D5


def test_a11_words_of_places_beyond_32_bits():
    places = np.array([2**32 - 1, 2**32, 2**40 + 17], np.uint64)
    mask = np.uint64(0xFFFFFFFF)
    words = philox(places, (np.uint64(5), np.uint64(6)), (np.uint64(7), np.uint64(8)))
    again = [philox(np.uint64(p) & mask, (np.uint64(5), np.uint64(6)), (np.uint64(7), np.uint64(8)))[0] for p in places]
    assert int(words[0][0]) == int(again[0])
    assert int(words[0][1]) != int(again[1])  # the high word of the place counts


def test_a11_bits_are_equal_in_every_tier_for_any_shape_and_number_of_threads():
    if not supports(host_target().triple):
        pytest.skip("no pool of threads on this system")
    x = np.ones((300, 1001), np.float32)
    seed, offset = 2**40 + 3, 17

    def dropped(x, seed, offset):
        y, mask = composite("native_dropout", x, seed, offset, p=0.37)
        return y * 3, mask

    def plain(seed, offset):
        return composite("random_bits", seed, offset, shape=(300, 1001))

    wanted = plain(seed, offset)
    assert not difference(wanted[0, :5], philox_in_python(seed, offset, 5))
    mask = (wanted >> 8) >= np.ceil(0.37 * 2**24)
    jitted, bits = pf.jit(dropped, background=False), pf.jit(plain, background=False)
    for threads in (1, 2, 3):
        with pf.knobs.override(threads=threads):
            for _ in range(3):
                y, found = jitted(x, seed, offset)
                assert np.array_equal(found, mask)
                assert np.array_equal(y, np.where(mask, x / np.float32(1 - 0.37) * 3, 0).astype(np.float32))
                assert np.array_equal(bits(seed, offset), wanted)
    assert jitted.state().counters["kernel_launches"] > 3
    # A layout, and the strides that a kernel goes along, change nothing.
    turned = np.ones((1001, 300), np.float32).T
    for _ in range(3):
        assert np.array_equal(jitted(turned, seed, offset)[1], mask)
    # Another offset, and another seed, give other bits; the share of what is kept is what it should be.
    for other in (plain(seed, offset + 1), plain(seed + 1, offset), plain(seed + 2**32, offset)):
        assert np.mean(other == wanted) < 1e-4
    assert abs(mask.mean() - 0.63) < 0.005


def test_a11_bits_in_a_kernel_for_all_sizes():
    def dropped(x):
        return composite("native_dropout", x * 2, 5, 6, p=0.5)[0]

    jitted = pf.jit(dropped, background=False, strategy=[("dynamic", 2)])
    for count in (5, 6, 7, 8, 9):
        x = f32(count, 4, 3)
        assert np.array_equal(jitted(x), dropped(x))
    assert jitted.state().counters["kernel_launches"] > 0


def test_dropout_compares_exactly():
    bits = composite("random_bits", 1, 2, shape=(4096,)) >> 8
    p = float(bits[7]) * 2.0**-24  # kept where the number is at least p
    _, mask = composite("native_dropout", np.ones(4096, np.float32), 1, 2, p=p)
    assert mask[7] and np.array_equal(mask, bits >= bits[7])
    _, mask = composite("native_dropout", np.ones(4096, np.float32), 1, 2, p=np.nextafter(p, 1))
    assert not mask[7]


def test_the_gradient_of_dropout_uses_its_mask():
    x, weights = np.float64(f32(40)), np.float64(f32(40))
    _, mask = composite("native_dropout", x, 3, 9, p=0.4)
    gradient = pf.grad(lambda x: (composite("native_dropout", x, 3, 9, p=0.4)[0] * weights).sum())(x)
    np.testing.assert_allclose(gradient, np.where(mask, weights / 0.6, 0))


# --- graphs -------------------------------------------------------------------------------------


def names_of(module):
    return [instr.op.name for instr in module.main.body.instrs]


def test_traces_hold_ops_where_they_are_asked_for():
    def layer(x, w):
        y = recorded("linear", x, w, None)
        return x @ w.T if y is None else y

    args = f32(3, 4), f32(5, 4)
    assert "linear" not in names_of(trace(layer, args).module)
    assert "linear" in names_of(trace(layer, args, neural_ops=True).module)
    assert recorded("linear", *args, None) is None
    with pf.knobs.override(neural_ops=True):
        jitted = pf.jit(layer, background=False)
        for _ in range(3):
            np.testing.assert_allclose(jitted(*args), layer(*args), rtol=1e-5)
        assert "profuse.linear" in jitted.ir("graph")


def test_compositions_are_remembered_and_flat():
    op, types = op_named("native_dropout"), (TensorType(F32, (4, 5)), ScalarType(I64), ScalarType(I64))
    attrs = op.full_attrs({"p": 0.5})
    program = op.expansion(types, attrs)
    assert op.expansion(list(types), dict(attrs)) is program
    assert op.expansion(types, {**attrs, "p": 0.25}) is not program
    assert not any(issubclass(instr.op, Composite) for instr in program.body.instrs)
