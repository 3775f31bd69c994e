"""The same calls on an NVIDIA GPU, through its driver; skipped where there is none."""

import threading

import kernels
import numpy as np
import profuse as pf
import pytest
from device_loops import shared_programs
from internals import emitted_hits
from ml_dtypes import bfloat16
from profuse.executor.cuda.nvidia.driver import unavailable
from support import counts, host, modulus
from test_device_biases import LAYOUTS
from test_device_calls import CASES
from test_device_graphs import LONG, normalised
from test_device_products import PRODUCTS

pytestmark = pytest.mark.cuda
LOOPS = [name for name in shared_programs.ARGUMENTS if name != "over_time"]


@pytest.fixture(params=["torch", "cupy", "jax"])
def library(request):
    """To and from the device, with an array library that can use it."""
    module = pytest.importorskip(request.param)
    if request.param == "torch":
        if not module.cuda.is_available():
            pytest.skip("torch is installed without support for CUDA")
        return lambda a: module.from_numpy(a).cuda(), lambda a: a.cpu().numpy()
    if request.param == "cupy":
        return module.asarray, module.asnumpy
    if module.default_backend() != "gpu":
        pytest.skip("JAX is installed without support for GPUs")
    return module.device_put, np.asarray


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_numpy_in_and_out(name, strategy):
    fn, shapes = CASES[name]
    f = pf.jit(fn, device="cuda", strategy=[(strategy, 1)])
    for _ in range(4):
        args = [host(*shape) for shape in shapes]
        np.testing.assert_allclose(f(*args), fn(*args), rtol=2e-5, atol=2e-6)
    assert counts(f, "device_fallbacks", "compile_failures", "guard_misses") == [0, 0, 0]
    assert counts(f, "kernel_launches")[0] >= 3
    assert "registers" in f.explain()


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_products_of_halves(dtype):
    f = pf.jit(lambda a, b: np.tanh(a @ b), device="cuda")
    for _ in range(4):
        a, b = host(33, 4096).astype(dtype), host(4096, 17).astype(dtype)
        wanted = np.tanh(a.astype(np.float32) @ b.astype(np.float32))
        np.testing.assert_allclose(f(a, b).astype(np.float32), wanted, rtol=2e-3, atol=2e-3)
    assert counts(f, "device_fallbacks", "library_calls") == [0, 3]


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", LAYOUTS)
def test_products_take_in_biases(name, strategy):
    fn, *shapes = LAYOUTS[name]
    f = pf.jit(fn, device="cuda", strategy=[(strategy, 1)])
    for _ in range(4):
        args = [host(*shape) for shape in shapes]
        np.testing.assert_allclose(f(*args), fn(*args), rtol=1e-4, atol=1e-5)
    refused = 3 * (name == "nothing to sum up")
    assert counts(f, "device_fallbacks", "library_calls", "epilogue_misses") == [0, 3, refused]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, bfloat16])
@pytest.mark.parametrize("first", range(4))
def test_biases_of_any_alignment(dtype, first):
    """Rows of a matrix that is 33 wide start at any multiple of an element."""
    f = pf.jit(lambda x, w, rows: x @ w + rows[first], device="cuda")
    x, w = host(65, 70).astype(dtype), host(70, 33).astype(dtype)
    rows = host(4, 33).astype(np.float64 if dtype is np.float64 else np.float32)
    exact = x.astype(np.float64) @ w.astype(np.float64) + rows[first]
    for _ in range(3):
        np.testing.assert_allclose(f(x, w, rows), exact, rtol=1e-4, atol=1e-4)
    assert counts(f, "device_fallbacks", "library_calls") == [0, 2]
    assert counts(f, "epilogue_misses")[0] in (0, 2)


@pytest.mark.parametrize("name", LOOPS)
def test_loops_with_independent_rounds(name):
    fn = getattr(shared_programs, name)
    f = pf.jit(fn, device="cuda")
    for size in (6, 7, 8, 9, 60):
        args = shared_programs.ARGUMENTS[name](np.random.default_rng(size), size)
        for _ in range(3):
            np.testing.assert_allclose(f(*args), fn(*args), rtol=1e-11, atol=1e-12)
            f.wait()
    launches, evaluated = counts(f, "kernel_launches", "evaluated_ops")
    f(*args)
    assert counts(f, "device_fallbacks", "voided_launches", "evaluated_ops") == [0, 0, evaluated]
    assert counts(f, "kernel_launches")[0] > launches


def test_arrays_of_a_library(library):
    to_device, to_host = library
    f = pf.jit(kernels.layernorm)
    args = [host(64, 512), host(512), host(512)]
    for _ in range(4):
        given = [to_device(a) for a in args]
        out = f(*given)
        assert type(out) is type(given[0])
        np.testing.assert_allclose(to_host(out), kernels.layernorm(*args), rtol=1e-4, atol=1e-5)
    names = ("device_fallbacks", "copies_to_host", "copies_to_device", "profiled_runs")
    assert counts(f, *names) == [0, 3, 1, 1]


def test_strided_arrays_of_a_library(library):
    to_device, to_host = library
    x = host(48, 30)
    f = pf.jit(lambda x: np.exp(x) - 1)
    for view in (lambda a: a.T, lambda a: a[3:40], lambda a: a[:, 5:]):
        for _ in range(3):
            out = f(view(to_device(x)))
            np.testing.assert_allclose(to_host(out), np.exp(view(x)) - 1, rtol=1e-5, atol=1e-6)
    assert counts(f, "device_fallbacks") == [0]


def test_the_current_stream_of_torch():
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch is installed without support for CUDA")
    f = pf.jit(lambda x: x * 2 + 1)
    stream = torch.cuda.Stream()
    x = torch.zeros(1 << 22, device="cuda")
    with torch.cuda.stream(stream):
        for _ in range(20):
            x = f(x)
            torch.cuda._sleep(100_000)
        found = x.cpu()
    assert float(found[0]) == float(found[-1]) == 2**20 - 1
    assert counts(f, "device_fallbacks") == [0]


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
@pytest.mark.parametrize("name", CASES)
def test_emitted_calls_on_torch_tensors(name, strategy):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("torch is installed without support for CUDA")
    fn, shapes = CASES[name]
    f = pf.jit(fn, strategy=[(strategy, 1)])
    for _ in range(20):
        args = [host(*shape) for shape in shapes]
        out = f(*(torch.from_numpy(a).cuda() for a in args))
        np.testing.assert_allclose(out.cpu().numpy(), fn(*args), rtol=2e-5, atol=2e-6)
    assert f.state().emitted, f.explain()
    assert emitted_hits(f) >= 17
    assert counts(f, "device_fallbacks", "guard_misses") == [0, 0]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products(name):
    fn, left, right = PRODUCTS[name]
    f = pf.jit(fn, device="cuda")
    for _ in range(3):
        a, b = host(*left), host(*right)
        np.testing.assert_allclose(f(a, b), fn(a, b), rtol=1e-4, atol=1e-5)
    assert counts(f, "device_fallbacks") == [0]


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_products_of_other_dtypes(dtype):
    a, b = host(50, 70, dtype=dtype), host(70, 30, dtype=dtype)
    f = pf.jit(lambda a, b: a @ b + 1, device="cuda")
    for _ in range(3):
        got = f(a, b)
    exact = a.astype(np.float64) @ b.astype(np.float64) + 1
    np.testing.assert_allclose(got, exact, rtol=5e-3 if dtype == np.float16 else 1e-12, atol=1e-2)
    assert counts(f, "device_fallbacks", "library_calls") == [0, 2]


def test_graphs_are_replayed_with_new_arguments():
    f = pf.jit(normalised, device="cuda")
    for _ in range(6):
        x = host(LONG)
        np.testing.assert_allclose(f(x), normalised(x), rtol=1e-5)
    assert counts(f, "device_fallbacks", "graph_replays") == [0, 4]


def test_threads():
    f = pf.jit(normalised, device="cuda")
    f(host(LONG))
    f(host(LONG))
    wrong = []

    def work(seed):
        x = np.random.default_rng(seed).standard_normal(LONG).astype(np.float32)
        right = [np.allclose(f(x), normalised(x), rtol=1e-4) for _ in range(20)]
        wrong.extend([seed] * right.count(False))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert counts(f, "device_fallbacks") == [0]


def test_what_only_the_host_can_do_is_done_there():
    f = pf.jit(lambda x: modulus(x * 2) + 1, device="cuda")
    for _ in range(3):
        x = host(30, 9)
        np.testing.assert_allclose(f(x), modulus(x * 2) + 1, rtol=1e-5)
    assert counts(f, "device_fallbacks") == [0]


def test_an_index_out_of_range():
    x, good, bad = host(5), np.array([4, 0, 1]), np.array([4, 0, 7])
    f = pf.jit(lambda x, k: np.take(x, k) * 2, device="cuda")
    for _ in range(3):
        np.testing.assert_allclose(f(x, good), x[good] * 2)
    with pytest.raises(IndexError):
        f(x, bad)


def test_a_second_device():
    reason = unavailable("cuda:1")
    if reason:
        pytest.skip(reason)
    f = pf.jit(kernels.softmax, device="cuda:1")
    for _ in range(3):
        x = host(40, 50)
        np.testing.assert_allclose(f(x), kernels.softmax(x), rtol=1e-5)
    assert counts(f, "device_fallbacks") == [0]
