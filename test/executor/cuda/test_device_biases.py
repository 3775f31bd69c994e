"""Products that take in a bias: one call of the library, whatever it can do."""

import threading

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from emulated import Fault
from ml_dtypes import bfloat16
from profuse.executor.cuda.launching.library_products import spread_bias
from profuse.executor.cuda.nvidia.driver_api import DriverError, NoEpilogueError
from profuse.executor.cuda.nvidia.gemm import Gemm
from support import counts, host, warmed


def linear(x, w, b):
    return x @ w + b


def mixed(x, w, b):
    return x.astype(np.float32) @ w.astype(np.float32) + b


def rounded(x, w, b):
    return mixed(x, w, b.astype(np.float32)).astype(x.dtype)


LAYOUTS = {
    "plain": (linear, (5, 7), (7, 3), (3,)),
    "left transposed": (lambda x, w, b: x.T @ w + b, (7, 5), (7, 3), (3,)),
    "right transposed": (lambda x, w, b: x @ w.T + b, (5, 7), (3, 7), (3,)),
    "bias first": (lambda x, w, b: b + x @ w, (5, 7), (7, 3), (3,)),
    "bias of rank 2": (linear, (5, 7), (7, 3), (1, 3)),
    "one row": (linear, (1, 7), (7, 3), (3,)),
    "rows of a batch": (linear, (2, 5, 7), (7, 3), (3,)),
    "batch": (linear, (2, 5, 7), (2, 7, 3), (3,)),
    "nothing to sum up": (lambda x, w, b: x[:, :0] @ w[:0] + b, (5, 7), (7, 3), (3,)),
}
REFUSED = Fault(NoEpilogueError("cuBLASLt has no algorithm for it"))


def data(shapes, dtype):
    return [host(*shape).astype(dtype) for shape in shapes]


def exact(x, w, b):
    return x.astype(np.float64) @ w.astype(np.float64) + b.astype(np.float64)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_values(device, name, strategy, refused):
    fn, *shapes = LAYOUTS[name]
    if refused:
        device.faults["epilogue"] = REFUSED
    f = pf.jit(fn, strategy=[(strategy, 1)])
    for _ in range(3):
        args = data(shapes, np.float32)
        got = f(*map(xp.array, args)).get()
        wanted = fn(*[a.astype(np.float64) for a in args])
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5)
    calls = 0 if name == "nothing to sum up" else 2  # which is a fill
    names = ("library_calls", "epilogue_misses", "device_fallbacks")
    assert counts(f, *names) == [calls, calls * refused, 0]
    assert device.calls["epilogue"] == calls


@pytest.mark.parametrize("refused", [False, True])
@pytest.mark.parametrize(
    "fn, dtype, bias, launches",
    [
        (linear, np.float32, np.float32, 0),
        (linear, np.float64, np.float64, 0),
        (linear, bfloat16, np.float32, 0),
        (mixed, np.float16, np.float32, 0),
        (rounded, bfloat16, bfloat16, 0),
        (rounded, np.float16, np.float16, 0),
        (linear, bfloat16, bfloat16, 1),  # of the bias, to f32
        (linear, np.float16, np.float16, 1),  # of the sum: NumPy rounds the product first
    ],
    ids=["f32", "f64", "bf16 with f32", "f16 with f32", "bf16 rounded", "f16 rounded", "bf16", "f16"],
)
def test_dtypes(device, fn, dtype, bias, launches, refused):
    if refused:
        device.faults["epilogue"] = REFUSED
    args = [*data([(5, 7), (7, 3)], dtype), *data([(3,)], bias)]
    f = warmed(fn, *args, device="cuda")
    before = counts(f, "library_calls", "kernel_launches")
    got = f(*args)
    assert got.dtype == fn(*args).dtype
    tolerance = {2: 1e-2, 4: 1e-5, 8: 1e-13}[got.dtype.itemsize]
    np.testing.assert_allclose(got.astype(np.float64), exact(*args), rtol=tolerance, atol=tolerance)
    now = counts(f, "library_calls", "kernel_launches")
    assert [b - a for a, b in zip(before, now, strict=True)] == [1, launches]


def test_a_layer_is_one_call_and_nothing_else(device):
    args = [*map(xp.array, data([(5, 7), (7, 3), (3,)], np.float32))]
    f = warmed(linear, *args)
    device.log.clear()
    f(*args)
    assert [what for what, _ in device.log] == ["product"]
    assert counts(f, "kernel_launches", "library_calls", "epilogue_misses") == [0, 2, 0]
    assert not f.state().reasons


def test_layers_and_their_activation(device):
    """The bias of a layer that a kernel goes on from is that kernel's."""

    def network(x, w, b):
        return np.maximum(x @ w + b, 0) @ w + b

    x, w, b = data([(5, 4), (4, 4), (4,)], np.float32)
    f = warmed(network, *map(xp.array, (x, w, b)))
    device.log.clear()
    got = f(*map(xp.array, (x, w, b))).get()
    np.testing.assert_allclose(got, network(x, w, b), rtol=1e-5, atol=1e-5)
    kinds = [what.split()[0] for what, _ in device.log if not what.startswith("to_")]
    assert kinds == ["product", "launch", "product"]
    assert device.calls["epilogue"] == 2  # one per optimised call
    x[0, 0] = np.nan
    assert np.isnan(f(*map(xp.array, (x, w, b))).get()[0]).all()


def test_the_same_bits_without_the_epilogue(device):
    """Shapes whose rows are no power of two, so that the last copy is a part of those before."""
    args = data([(2, 11, 7), (7, 5), (5,)], np.float32)
    f = warmed(linear, *args, device="cuda")
    wanted, copies = f(*args), device.calls["copy"]
    device.faults["epilogue"] = REFUSED
    np.testing.assert_array_equal(f(*args).view(np.uint32), wanted.view(np.uint32))
    assert device.calls["copy"] - copies == 6  # of 1, 1, 2, 4, 8 and 6 rows of 22


def test_why_a_pass_more_is_taken_is_told_once(device):
    device.faults["epilogue"] = REFUSED
    args = data([(5, 7), (7, 3), (3,)], np.float32)
    f = pf.jit(linear, device="cuda", name="layer")
    for _ in range(4):
        f(*args)
    reason = "a product's bias is added in a pass of its own: cuBLASLt has no algorithm for it"
    assert f.state().reasons == (reason,)
    assert f.explain().count(reason) == 1
    told = [e for e in pf.events() if e.kind == "slower" and e.function == "layer"]
    assert [(e.reason, e.level) for e in told] == [(reason, "warning")]
    assert counts(f, "epilogue_misses", "library_calls", "device_fallbacks") == [3, 3, 0]


@pytest.mark.parametrize("transient, fallbacks", [(False, 2), (True, 1)])
def test_products_that_fail_are_computed_on_the_host(device, transient, fallbacks):
    args = data([(5, 7), (7, 3), (3,)], np.float32)
    f = warmed(linear, *args, device="cuda")
    error = DriverError("cuBLASLt fails with status 13", "cublas", transient=transient)
    device.faults["epilogue"] = Fault(error, times=device.calls["epilogue"] + 1)
    for _ in range(2):
        np.testing.assert_allclose(f(*args), linear(*args), rtol=1e-5, atol=1e-5)
    assert counts(f, "device_fallbacks", "epilogue_misses") == [fallbacks, 0]
    assert "not on the device: cuBLASLt fails with status 13" in f.state().reasons


def test_the_product_without_its_bias_may_fail_as_well(device):
    device.faults["epilogue"] = REFUSED
    device.faults["product"] = Fault(DriverError("cuBLAS fails with status 15", "cublas"))
    args = data([(5, 7), (7, 3), (3,)], np.float32)
    f = warmed(linear, *args, device="cuda")
    np.testing.assert_allclose(f(*args), linear(*args), rtol=1e-5, atol=1e-5)
    assert counts(f, "device_fallbacks", "epilogue_misses", "library_calls") == [2, 1, 0]


def test_threads_add_biases_of_their_own(device):
    device.faults["epilogue"] = Fault(REFUSED.error, first=20, times=20)  # in the midst of it
    x, w, b = data([(5, 7), (7, 3), (3,)], np.float32)
    f = warmed(linear, *map(xp.array, (x, w, b)))
    failures = []

    def work(number):
        mine = b + number
        given = [*map(xp.array, (x, w, mine))]
        found = [f(*given).get() for _ in range(20)]
        if not np.allclose(found, linear(x, w, mine), rtol=1e-5, atol=1e-5):
            failures.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert counts(f, "library_calls", "epilogue_misses", "kernel_launches") == [81, 20, 0]


@pytest.mark.parametrize("rows", [1, 2, 3, 64, 100])
def test_a_bias_is_spread_by_copies_of_copies(rows):
    copies = []

    class Copies:
        def copy(self, device, target, source, nbytes, stream):
            copies.append((target, source, nbytes))

    product = Gemm("f16", "f32", False, False, 3, rows, 7, 1, 3, 2, 7, 4096, 3, bias=64)
    made = spread_bias(Copies(), 0, product, 7)
    assert (made.bias, made.beta, made.c) == (0, 1.0, 4096)
    assert copies[0] == (4096, 64, 12)
    assert sum(nbytes for _, _, nbytes in copies) == rows * 12
    assert len(copies) == 1 + int(np.ceil(np.log2(rows)))
    for target, source, nbytes in copies[1:]:
        assert (source, source + nbytes <= target) == (4096, True)
