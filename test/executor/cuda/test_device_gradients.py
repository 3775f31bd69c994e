"""Joint graphs of forward and backward on a GPU: values, launches, and what ptxas says of them."""

from __future__ import annotations

from dataclasses import dataclass, replace

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from every_case import pairs, spread
from internals import executor_of
from needs import needs_ptxas
from profuse.executor.compile.compiler import compile_graph
from support import counts, rng

stop = pf.op("stop_gradient")


def gelu(x, b, c):
    y = x + b
    return (0.5 * y * (1 + np.tanh(0.7978845608 * (y + 0.044715 * y * y * y))) * c).sum()


def softmax(x, b, c):
    y = x * 0.125 + b
    e = np.exp(y - y.max(1, keepdims=True))
    return (e / e.sum(1, keepdims=True) * c).sum()


def layer_norm(x, w, b, c):
    d = x - x.mean(1, keepdims=True)
    return ((d / np.sqrt((d * d).mean(1, keepdims=True) + 1e-5) * w + b) * c).sum()


def rms_norm(x, w, c):
    return (x / np.sqrt((x * x).mean(1, keepdims=True) + 1e-6) * w * c).sum()


def cross_entropy(x, labels):
    """The gradient is a `gather_add`."""
    y = x - x.max(1, keepdims=True)
    picked = np.take_along_axis(y, labels[:, None], 1)[:, 0]
    return (np.log(np.exp(y).sum(1)) - picked).mean()


def weights_over_the_batch(x, w, b):
    """Gradients of the weights are `sum_to` along the batch."""
    return (np.maximum(x * w + b, 0) ** 2).mean()


def guarded(x, b):
    """The derivative of the root is infinite in 0: `absorbing_mul`."""
    return np.where(x > 0, np.sqrt(np.maximum(x, 0)), x * b).sum()


def stopped(x, b):
    return (stop(x) * np.maximum(x, 0) + stop(b) * b * x).sum()


def mlp(w0, b0, w1, b1, x, y):
    h = np.tanh(x @ w0 + b0)
    return ((h @ w1 + b1 - y) ** 2).mean()


@dataclass(frozen=True)
class Joint:
    """A loss; its arguments' shapes are words of those in `arguments`; the first ``wrt`` count."""

    fn: object
    shapes: str
    wrt: int

    def arguments(self, n, m, dtype=np.float32):
        rng = np.random.default_rng([n, m])  # the same in any order of tests
        shapes = {"matrix": (n, m), "row": (m,), "square": (m, m)}
        return [
            rng.integers(0, m, n)
            if word == "labels"
            else (rng.standard_normal(shapes[word]) / (m**0.5 if word == "square" else 1)).astype(dtype)
            for word in self.shapes.split()
        ]

    def both(self, **options):
        return pf.value_and_grad(self.fn, wrt=tuple(range(self.wrt)), **options)


LOSSES = {
    "gelu": Joint(gelu, "matrix row matrix", 2),
    "softmax": Joint(softmax, "matrix row matrix", 2),
    "layer_norm": Joint(layer_norm, "matrix row row matrix", 3),
    "rms_norm": Joint(rms_norm, "matrix row matrix", 2),
    "cross_entropy": Joint(cross_entropy, "matrix labels", 1),
    "weights_over_the_batch": Joint(weights_over_the_batch, "matrix row row", 3),
    "guarded": Joint(guarded, "matrix row", 2),
    "stopped": Joint(stopped, "matrix row", 2),
    "mlp": Joint(mlp, "square row square row matrix matrix", 4),
}
EPSILON = {"f2": 2.0**-11, "f4": 2.0**-24, "f8": 2.0**-53}
losses = pytest.mark.parametrize("name", LOSSES)
STRATEGIES = ["static", "dynamic"]
strategies = pytest.mark.parametrize("strategy", STRATEGIES)


@pytest.fixture(autouse=True)
def _quiet():
    """Tier 0 computes derivatives that are infinite where nothing depends on them."""
    with np.errstate(all="ignore"):
        yield


def leaves(out):
    value, grads = out
    return [np.asarray(a.get() if isinstance(a, xp.Array) else a) for a in (value, *grads)]


def check(found, args, loss, dtype):
    """Results of one precision against those in f64, and the dtype and the shape of each."""
    wide = [a if a.dtype.kind == "i" else a.astype(np.float64) for a in args]
    in_numpy = leaves(loss.both(profiled_runs=0)(*args))
    exact = leaves(loss.both(profiled_runs=0)(*wide))
    # The value is a sum that may cancel; a loss is as exact as the number of its terms allows.
    terms = [max(np.size(args[0]), 1) ** 0.5, *[1.0] * loss.wrt]
    for mine, numpys, wanted, count in zip(found, in_numpy, exact, terms, strict=True):
        assert (mine.dtype, mine.shape) == (numpys.dtype, numpys.shape)
        scale = max(np.abs(wanted).max(initial=0), count * (count > 1), 1e-30)
        errors = [np.abs(a.astype(np.float64) - wanted).max(initial=0) for a in (mine, numpys)]
        assert errors[0] <= 8 * max(errors[1], EPSILON[dtype] * scale), (errors, scale)


def optimised(loss, args, strategy, calls=3, **options):
    """The function, called until kernels run, and its last results."""
    f = loss.both(strategy=[(strategy, 1)], **options)
    for _ in range(calls):
        out = f(*map(xp.array, args))
    names = ("refusals", "compile_failures", "device_fallbacks", "guard_misses")
    assert counts(f, *names) == [0, 0, 0, 0], f.explain()
    return f, leaves(out)


@pytest.mark.sampled(2)
@strategies
@losses
def test_forward_and_backward_run_as_kernels_alone(device, name, strategy):
    loss = LOSSES[name]
    f = loss.both(strategy=[(strategy, 1)])
    args = loss.arguments(6, 40)
    given = [xp.array(a) for a in args]
    f(*given), f(*given)
    names = ("evaluated_ops", "copies_to_device", "kernel_launches")
    before = counts(f, *names)
    device.log.clear()
    found = f(*given)
    # Labels out of range raise, as in NumPy: a flag is read.
    reads = 1 if name == "cross_entropy" else 0
    assert sum(what == "to_host" for what, _ in device.log) == reads
    after = counts(f, *names)
    assert [a - b for a, b in zip(after, before, strict=True)] == [0, 0, len(device.launched)]
    assert device.launched
    check(leaves(found), args, loss, "f4")
    assert counts(f, "compiles", "kernels_compiled", "refusals") == [1, 1, 0]


# Whole vectors, ragged rows, more than registers hold, many rows, one element, nothing.
SIZES = [(5, 1024), (33, 63), (1, 16_500), (1, 5000), (300, 5), (700, 8), (1, 1), (0, 8)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name, sizes, strategy", spread(pairs(list(LOSSES), SIZES, STRATEGIES)))
def test_sizes(device, name, sizes, strategy):
    rows, columns = sizes
    loss = LOSSES[name]
    if name == "mlp" and columns > 100:
        pytest.skip("products are the library's; its kernels see smaller sizes as well")
    if rows == 0 and name in ("cross_entropy", "weights_over_the_batch", "mlp"):
        pytest.skip("the mean of nothing is nan")
    args = loss.arguments(rows, columns)
    _, found = optimised(loss, args, strategy)
    check(found, args, loss, "f4")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name, dtype, strategy", pairs(list(LOSSES), ["f2", "f8"], STRATEGIES))
def test_other_floats(device, name, dtype, strategy):
    loss = LOSSES[name]
    args = loss.arguments(6, 40, dtype)
    _, found = optimised(loss, args, strategy)
    check(found, args, loss, dtype)


@pytest.mark.sampled(2)
@losses
def test_one_plan_serves_all_sizes(device, name):
    loss = LOSSES[name]
    f, _ = optimised(loss, loss.arguments(6, 40), "dynamic")
    for rows, columns in [(9, 40), (5, 64), (4, 1000), (70, 7)]:
        if name == "mlp" and columns > 100:
            continue
        args = loss.arguments(rows, columns)
        check(leaves(f(*map(xp.array, args))), args, loss, "f4")
    assert counts(f, "compiles", "guard_misses", "device_fallbacks") == [1, 0, 0]


def test_what_no_result_depends_on_is_zero_not_nan(device):
    loss = LOSSES["guarded"]
    x = np.array([[0.0, -1.0, 4.0], [0.0, 0.0, 1.0]], np.float32)
    b = np.array([2.0, 3.0, 5.0], np.float32)
    _, (_, gx, gb) = optimised(loss, [x, b], "static")
    np.testing.assert_allclose(gx, np.where(x > 0, [[0, 0, 0.25], [0, 0, 0.5]], b), rtol=1e-6)
    np.testing.assert_allclose(gb, np.where(x > 0, 0, x).sum(0), rtol=1e-6)


def test_several_indices_of_a_row_add_up_in_a_kernel(device):
    """`gather_add` of more than one index, of which some are equal, and negative ones."""
    index = np.array([[0, 0, -1], [4, 1, 4], [2, -5, 2]])

    def picked(x):
        return (np.take_along_axis(x, index, 1) ** 2 * np.array([1.0, 2, 3], "f4")).sum()

    x = rng.standard_normal((3, 5)).astype(np.float32)
    loss = Joint(picked, "matrix", 1)
    _, found = optimised(loss, [x], "static")
    check(found, [x], loss, "f4")


@pytest.mark.parametrize("count", [4, 2000])
def test_additions_at_indices(device, count):
    """The gradient of `x[rows]`; the host adds up many, which is counted, all else is kernels."""
    f = pf.grad(lambda x, rows: (np.tanh(np.take(x, rows, 0)) ** 2).sum(), strategy=[("static", 1)])
    x = rng.standard_normal((6, 40)).astype(np.float32)
    rows = rng.integers(-6, 6, count)
    for _ in range(3):
        found = f(xp.array(x), xp.array(rows))
    t = np.tanh(x[rows].astype(np.float64))
    wanted = np.zeros(x.shape)
    np.add.at(wanted, rows, 2 * t * (1 - t * t))
    np.testing.assert_allclose(found.get(), wanted, rtol=1e-4, atol=1e-4)
    assert counts(f, "compile_failures", "device_fallbacks") == [0, 0]
    assert counts(f, "kernel_launches")[0] > 0
    refused = [told for told in f.state().reasons if "refused: index_add: " in told]
    assert len(refused) == counts(f, "refusals")[0] <= 1
    if count > 1024:
        assert refused
    if refused:
        assert "1 operation that runs in NumPy" in f.explain()
        assert "Not fused: index_add at " in f.explain()


CHIPS = [("sm_80", "f4"), ("sm_90", "f2"), ("sm_90", "f4")]


@pytest.mark.sampled(3)
@needs_ptxas
@pytest.mark.parametrize("name, made_for, strategy", pairs(list(LOSSES), CHIPS, STRATEGIES))
def test_ptxas_assembles_them_without_spills(device, name, made_for, strategy):
    chip, dtype = made_for
    loss = LOSSES[name]
    args = loss.arguments(5, 1024 if name != "mlp" else 64, dtype)
    f, _ = optimised(loss, args, strategy, calls=2)
    request = executor_of(f).request
    for_chip = replace(request.target, gpu=chip, gpu_image="cubin")
    made = compile_graph(replace(request, target=for_chip)).kernels
    assert made
    for artifact in made.values():
        assert artifact.code[:4] == b"\x7fELF"
        assert artifact.usage
        for kernel, usage in artifact.usage.items():
            assert usage.spilled == usage.stack == 0, (kernel, usage)
            assert usage.registers <= 64, (kernel, usage)


def test_a_step_of_training_stays_on_the_device(device):
    """Parameters in a dict, differentiated and updated by Adam in one jitted function."""

    def loss(p, x, y):
        return ((np.tanh(x @ p["w"] + p["b"]) - y) ** 2).mean()

    def step(p, m, v, x, y):
        value, g = pf.value_and_grad(loss)(p, x, y)
        m = {k: 0.9 * m[k] + 0.1 * g[k] for k in p}
        v = {k: 0.999 * v[k] + 0.001 * g[k] ** 2 for k in p}
        return value, {k: p[k] - 0.01 * m[k] / (np.sqrt(v[k]) + 1e-8) for k in p}, m, v

    def tree(make):
        return {"w": make((8, 4)), "b": make((4,))}

    x, y = (rng.standard_normal(s).astype(np.float32) for s in ((16, 8), (16, 4)))
    start = tree(lambda s: rng.standard_normal(s).astype(np.float32))
    on_host = start, tree(lambda s: np.zeros(s, "f4")), tree(lambda s: np.zeros(s, "f4"))
    on_device = [{k: xp.array(a) for k, a in part.items()} for part in on_host]
    f, given = pf.jit(step), (xp.array(x), xp.array(y))
    for _ in range(5):
        value, *on_device = f(*on_device, *given)
        wanted, *on_host = pf.jit(step, profiled_runs=0)(*on_host, x, y)
        np.testing.assert_allclose(value.get(), wanted, rtol=1e-5)
    for mine, wanted in zip(on_device, on_host, strict=True):
        for k in wanted:
            np.testing.assert_allclose(mine[k].get(), wanted[k], rtol=1e-3, atol=1e-5)
    assert counts(f, "refusals", "compile_failures", "device_fallbacks") == [0, 0, 0]
    assert min(counts(f, "kernel_launches", "library_calls")) > 0


def test_pullbacks_take_and_give_device_arrays(device):
    x, b, g = (rng.standard_normal(s).astype(np.float32) for s in ((5, 7), (7,), (5, 7)))
    t = np.tanh(x * b)
    wanted = g * (1 - t * t) * b, (g * (1 - t * t) * x).sum(0)
    for _ in range(3):
        given = xp.array(x), xp.array(b)
        result, pull = pf.vjp(lambda x, b: np.tanh(x * b), *given)
        np.testing.assert_allclose(result.get(), t, rtol=1e-5)
        device.to_device(0, given[0].pointer, np.full_like(x, 9), xp.STREAM)  # it has a copy
        for gradient in (xp.array(g), g):
            for found, right in zip(pull(gradient), wanted, strict=True):
                np.testing.assert_allclose(found.get(), right, rtol=1e-4, atol=1e-5)
    with pytest.raises(pf.ArgumentError, match="of a result of float32 is of float64"):
        pull(xp.array(g.astype(np.float64)))
