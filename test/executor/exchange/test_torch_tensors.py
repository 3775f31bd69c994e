"""Tensors of torch in host memory as arguments of functions that are written in NumPy."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from profuse.dialect.errors import ArgumentError, DTypeError, GradientError

torch = pytest.importorskip("torch")

X = torch.linspace(-1, 1, 24).reshape(4, 6)
W = torch.linspace(0, 1, 12).reshape(6, 2)
_DTYPES = ("float32", "bfloat16", "float16", "int64", "bool", "complex64")
_MORE = ("float64", "int8", "int16", "int32", "uint8", "uint16", "uint32", "uint64", "complex128")


def shown(tensor):
    """The elements of a tensor as NumPy has them, in its layout."""
    tensor = tensor.detach()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.uint16).numpy().view(ml_dtypes.bfloat16)
    return tensor.resolve_conj().resolve_neg().numpy()


def warm(fn, *args, runs=3, **options):
    f = pf.jit(fn, **options)
    for _ in range(runs):
        f(*args)
    assert f.state().emitted, f.explain()
    return f


def counted(f, *names):
    return [f.state().counters[name] for name in names]


def test_a_small_product_runs_without_python():
    f = warm(lambda x, w: np.tanh(x @ w).sum(), X, W)
    before = counted(f, "guard_hits")
    for k in range(10):
        total = f(X + k, W)
        assert type(total) is torch.Tensor and total.shape == ()
        torch.testing.assert_close(total, torch.tanh((X + k) @ W).sum())
    assert counted(f, "guard_hits", "python_calls", "traces", "compiles") == [before[0] + 10, 0, 1, 1]


@pytest.mark.parametrize("strategy", ["static", "dynamic"] if EVERY_CASE else ["dynamic"])
@pytest.mark.parametrize("name", (*_DTYPES, *_MORE) if EVERY_CASE else _DTYPES)
def test_every_dtype_and_layout_gives_what_arrays_do(name, strategy):
    base = (torch.arange(24).reshape(4, 6) % 2).to(getattr(torch, name))
    tensors = [
        base,
        base.T,
        base[1:, ::2],
        base[:1].expand(5, 6),
        base[0, 0],
        base[:0],
        base.reshape(-1)[1:13].view(3, 4),
    ]

    def f(x):
        return x + x, x.sum(0) if x.ndim else x * x

    jitted = pf.jit(f, strategy=[(strategy, 1)], unsupported="python")
    for _ in range(3):
        for tensor in tensors:
            for result, want in zip(jitted(tensor), f(shown(tensor)), strict=True):
                assert type(result) is torch.Tensor
                found = shown(result)
                assert found.dtype == np.asarray(want).dtype
                np.testing.assert_array_equal(found, want)
                assert not found.size or found.strides == np.asarray(want).strides
    assert jitted.state().emitted
    assert counted(jitted, "input_copies") == [0]


def test_lazy_bits_are_resolved_in_counted_copies():
    z = torch.tensor([1 + 2j, 3 - 1j])
    f = warm(lambda z: z * 2, z)
    hits = counted(f, "guard_hits")
    torch.testing.assert_close(f(z.conj()), z.conj().resolve_conj() * 2)
    assert counted(f, "input_copies") == [1]
    g = warm(lambda x: x + 1, z.real.clone())
    torch.testing.assert_close(g(z.conj().imag), -z.imag + 1)
    assert counted(g, "input_copies") == [1]
    f(z)
    assert counted(f, "guard_hits") == [hits[0] + 2]  # one of a copy
    with pytest.raises(ValueError, match="read-only"):
        pf.jit(_written, unsupported="python")(z.conj())


def _written(x):
    x += 1


def test_gradients_are_not_lost_silently():
    w = torch.nn.Parameter(W.clone())
    f = warm(lambda x, w: x @ w, X, W)
    inner = pf.jit(lambda x: x @ w)
    for function, args in ((f, (X, w)), (f, (X, W.clone().requires_grad_() * 2)), (inner, (X,))):
        with pytest.raises(GradientError, match=r"would lose them\n  hint: pass x.detach\(\), or call under"):
            function(*args)
    with torch.no_grad():
        for _ in range(3):
            torch.testing.assert_close(f(X, w), X @ w)
            torch.testing.assert_close(inner(X), X @ w)
        hits = counted(f, "guard_hits"), counted(inner, "guard_hits")
        assert not f(X, w).requires_grad
        inner(X)
    assert (counted(f, "guard_hits"), counted(inner, "guard_hits")) == ([hits[0][0] + 1], [hits[1][0] + 1])
    assert inner.state().emitted
    with pytest.raises(GradientError):  # which emitted code sees
        f(X, w)
    with pytest.raises(GradientError):
        inner(X)
    torch.testing.assert_close(f(X, w.detach()), (X @ w).detach())
    assert counted(f, "python_calls") == [0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # what torch loads for tangents
def test_tangents_are_not_lost_silently():
    from torch.autograd import forward_ad

    f = warm(lambda x: x * 2, X)
    with forward_ad.dual_level(), pytest.raises(GradientError, match="would lose tangents"):
        f(forward_ad.make_dual(X, X))
    torch.testing.assert_close(f(X), X * 2)


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda: torch.ones(3, device="meta"), ArgumentError, "no elements in memory.*meta"),
        (lambda: torch.ones(3, 3).to_sparse(), ArgumentError, "no elements in memory"),
        (lambda: torch._efficientzerotensor((3,)), ArgumentError, "has no memory"),
        (lambda: torch.ones(3).to(torch.float8_e4m3fn), DTypeError, "elements of torch.float8_e4m3fn"),
    ],
    ids=["meta", "sparse", "zeros", "float8"],
)
def test_tensors_that_no_array_shows_are_refused(make, error, words):
    f = warm(lambda x: x * 2, torch.ones(3))
    for function in (f, pf.jit(lambda x: x * 2, unsupported="python")):
        with pytest.raises(error, match=words):
            function(make())


def test_tensors_of_transforms_are_refused():
    f = warm(lambda x: x * 2, X[0])
    for transform in (torch.func.vmap(f), torch.func.grad(lambda x: f(x).sum())):
        with pytest.raises(ArgumentError, match="no elements in memory"):
            transform(X if "vmap" in str(transform) else X[0])


def test_modes_that_see_operations_are_no_place_for_calls():
    from torch.utils._python_dispatch import TorchDispatchMode

    class Seen(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    f = warm(lambda x: x * 2, X)
    with Seen(), pytest.raises(ArgumentError, match="within a mode that sees each of its operations"):
        f(X)
    torch.testing.assert_close(f(X), X * 2)


def test_subclasses_are_pythons():
    class Scaled(torch.Tensor):
        def __mul__(self, other):
            return torch.Tensor.__mul__(self.as_subclass(torch.Tensor), 10 * other)

    f = warm(lambda x: x * 2, X, unsupported="python")
    torch.testing.assert_close(f(X.as_subclass(Scaled)), X * 20)
    assert counted(f, "python_calls") == [1]
    assert "a Scaled is passed, a subclass of torch's Tensor" in f.explain()
    with pytest.raises(ArgumentError, match="a Scaled is passed"):
        pf.jit(lambda x: x * 2)(X.as_subclass(Scaled))


def test_functions_of_torch_get_tensors_and_run_in_python():
    for function, words in (
        (lambda x: torch.softmax(x, -1), "torch.softmax is called while tracing"),
        (lambda x: x.clone() * 2, "clone is an attribute of tensors, and arrays have none of that name"),
        (lambda x: x.numpy() * 2, "numpy is an attribute of tensors"),
    ):
        f = pf.jit(function, unsupported="python")
        for _ in range(3):
            torch.testing.assert_close(torch.as_tensor(f(X)), torch.as_tensor(function(X)))
        assert words in f.explain()
        assert counted(f, "python_calls", "traces") == [3, 0]
    weight = W.clone().requires_grad_()  # keeps its gradients
    pf.jit(lambda w: torch.exp(w).sum(), unsupported="python")(weight).backward()
    torch.testing.assert_close(weight.grad, torch.exp(W))


def test_python_runs_a_function_of_numpy_on_arrays():
    """So that its results do not depend on who runs it: `std` of torch is another one."""

    def f(x, n):
        return np.vectorize(lambda e: e)(x).std() if n else x.std()

    jitted = pf.jit(f, unsupported="python")
    for n in (0, 1, 0):
        found = jitted(X, n)
        assert type(found) is torch.Tensor
        np.testing.assert_allclose(found.numpy(), X.numpy().std(), rtol=1e-6)
    assert counted(jitted, "python_calls") == [1]


def test_writes_count_for_torchs_gradients():
    f = pf.jit(_written, unsupported="python")
    x, w = torch.zeros(3), torch.ones(3, requires_grad=True)
    for _ in range(3):
        f(x)
    y = (x * w).sum()  # keeps x
    version = x._version
    f(x)
    assert x._version == version + 1 and (x == 4).all()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_emitted_writes_are_counted_once():
    def scaled(x, y):
        x *= 2
        return x, y.sum()

    x, y = torch.ones(3, 4), torch.ones(5)
    f = warm(scaled, x, y, unsupported="python")
    hits = counted(f, "guard_hits")
    for k in range(4, 8):
        version, result = x._version, f(x, y)
        assert x._version == version + 1 and result[0] is x and (x == 2**k).all()
        assert result[1] == 5
    assert counted(f, "guard_hits", "python_calls", "traces") == [hits[0] + 4, 0, 1]
    w = torch.ones(3, 4, requires_grad=True)
    loss = (x * w).sum()  # keeps x
    f(x, y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with pytest.raises(GradientError):
        f(w, y)
    assert (w == 1).all()
    with torch.no_grad():
        version = w._version
        assert f(w, y)[0] is w
        assert (w == 2).all() and w._version == version + 1 and w.requires_grad
    with torch.inference_mode():
        inner = torch.ones(3, 4)
        f(inner, y)
        assert (inner == 2).all() and inner.is_inference()


def test_writes_that_python_makes_behind_kernels_are_counted_once():
    def swapped(x, y):
        t = x + y
        x[:], y[:] = y * 3, t
        return t, y

    x, y = torch.ones(3, 4), torch.zeros(3, 4)
    f = warm(swapped, x, y, unsupported="python")
    a, b = x.numpy().copy(), y.numpy().copy()
    for _ in range(3):
        versions = x._version, y._version
        total, same = f(x, y)
        t, _ = swapped(a, b)
        assert same is y and (total.numpy() == t).all()
        assert (x.numpy() == a).all() and (y.numpy() == b).all()
        assert (x._version, y._version) == (versions[0] + 1, versions[1] + 1)
    assert counted(f, "python_calls", "traces") == [0, 1]


@pytest.mark.parametrize("is_all", [True, False])
def test_views_are_torchs(is_all):
    """A write to a view is one to the tensor, of which torch asks when it needs the tensor for gradients."""

    def parts(x):
        views = x, x[1:, ::2], x.T, x[::-1], x[None, 0], x[:, :0]
        return views if is_all else (*views, np.tanh(x))

    f = pf.jit(parts, unsupported="python")
    for kind in ("float32", "bfloat16", "int64", "complex64"):
        x = torch.arange(24).reshape(4, 6).to(getattr(torch, kind))
        for _ in range(4):
            same, strided, turned, back, first, empty, *_ = f(x)
            assert same is x
            assert torch.equal(strided, x[1:, ::2]) and torch.equal(turned, x.T) and torch.equal(back, x.flip(0))
            assert torch.equal(first, x[None, 0]) and empty.shape == (4, 0)
            for view in (strided, turned, first):
                assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
                version = x._version
                view.mul_(1)
                assert x._version == version + 1
        assert is_all or f.state().emitted
    expanded = torch.ones(1, 6).expand(4, 6)
    assert f(expanded)[2].stride() == (1, 0)
    x, w = torch.ones(4, 6), torch.ones(4, 6, requires_grad=True)
    loss = (x * w).sum()
    f(x)[1].add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    with torch.no_grad():
        view = f(w)[1]
    assert not view.requires_grad
    with pytest.raises(GradientError):
        f(w)


def test_modes_of_functions_see_none_of_what_a_call_asks():
    from torch.overrides import TorchFunctionMode

    class Seen(TorchFunctionMode):
        names = ()

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.names = (*self.names, func.__name__)
            return func(*args, **(kwargs or {}))

    f = pf.jit(lambda x: (x[1:], np.tanh(x)), unsupported="python")
    for _ in range(4):
        with Seen() as seen:
            f(X)
        assert not {"numpy", "as_strided", "detach"} & set(seen.names)


def test_attributes_are_read_anew_and_not_assigned():
    class Layer:
        def __init__(self):
            self.w = W.clone()

    layer = Layer()
    f = warm(lambda x: np.maximum(x @ layer.w, 0), X)
    for change in (lambda: layer.w.mul_(-1), lambda: setattr(layer.w, "data", W + 1), lambda: setattr(layer, "w", W)):
        change()
        for _ in range(3):
            torch.testing.assert_close(f(X), torch.relu(X @ layer.w))
    assert counted(f, "python_calls") == [0]
    assert f.state().emitted

    def assigned(x):
        layer.w = layer.w + x[0, 0]

    with pytest.raises(pf.TraceError, match="computes with a Tensor"):
        pf.jit(assigned)(X)


def test_gradients_of_ours_are_tensors():
    gradient = pf.grad(lambda x, w: (np.tanh(x @ w) ** 2).sum(), wrt=(0, 1))
    x, w = (t.clone().requires_grad_() for t in (X, W))
    (torch.tanh(x @ w) ** 2).sum().backward()
    for _ in range(3):
        for found, want in zip(gradient(X, W), (x.grad, w.grad), strict=True):
            torch.testing.assert_close(found, want)


def test_results_keep_their_memory_and_are_torchs():
    f = warm(lambda x: np.tanh(x) * 2, X)
    part = f(X).view(-1)[3:]
    gc.collect()
    for _ in range(100):
        f(X)
    torch.testing.assert_close(part, (torch.tanh(X) * 2).view(-1)[3:])
    leaf = f(X).requires_grad_()
    (leaf * leaf).sum().backward()
    torch.testing.assert_close(leaf.grad, 2 * leaf.detach())
    with torch.inference_mode():
        assert f(X).is_inference()


def test_the_memory_of_calls_is_flat():
    f = warm(lambda x: (np.tanh(x) * 2, x.sum()), X)
    view = pf.jit(lambda x: x[1:], unsupported="python")
    big = torch.ones(300, 300)

    def used():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(3):
        f(big), view(big)
    for _ in range(1000):
        f(X), view(X)
    before, count = used(), sys.getrefcount(X)
    for k in range(10**6 if EVERY_CASE else 10**5):
        f(X)
        if not k % 1000:
            f(big), view(big)
    assert sys.getrefcount(X) == count
    assert used() - before < 4_000_000  # 40 MB if a byte in ten were kept


def test_threads_have_results_of_their_own():
    f = warm(lambda x: np.tanh(x) * 2, X)
    f(torch.ones(200, 300)), f(torch.ones(200, 300))
    wrong = []

    def work(seed):
        torch.set_grad_enabled(seed % 2 == 0)
        weight, kept = torch.nn.Parameter(X + seed), []
        for k in range(200):
            x = torch.full((4, 6) if k % 4 else (200, 300), float(seed + k) / 100)
            kept = [*kept[-8:], (f(x), torch.tanh(x) * 2)]
            if not all(torch.allclose(result, want) for result, want in kept):
                wrong.append((seed, k))
            try:
                is_taken = f(weight) is not None
            except GradientError:
                is_taken = False
            if is_taken != (seed % 2 == 1):
                wrong.append((seed, k, is_taken))

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert counted(f, "python_calls") == [0]


_SCRIPT = """
import os, sys
import numpy as np
import profuse as pf
pf.jit(lambda x: x + 1)(np.ones(3))
assert "torch" not in sys.modules
import torch
from pathlib import Path
f = pf.jit(lambda x: np.tanh(x) * 2)
x = torch.ones(4)
for _ in range(3):
    f(x); f.wait()
assert f.state().emitted, f.explain()
def parent(stat):
    return int(stat.read_text().rpartition(")")[2].split()[1])
workers = [p.parent for p in Path("/proc").glob("[0-9]*/stat") if parent(p) == os.getpid()]
maps = [(folder / "maps").read_text() for folder in workers]
assert maps and not any("libtorch" in text for text in maps), len(maps)
assert "libtorch" in Path("/proc/self/maps").read_text()
child = os.fork()
if child == 0:
    same = torch.equal(f(x), torch.tanh(x) * 2) and torch.equal(pf.jit(lambda x: x - 1)(x), x - 1)
    os._exit(0 if same else 3)
assert os.waitpid(child, 0)[1] == 0
kept = f(x)  # ends with the interpreter
"""


def test_nothing_imports_torch_and_forks_go_on(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(_SCRIPT)
    environment = {**os.environ, "PROFUSE_BACKGROUND": "on", "PROFUSE_UNSUPPORTED": "python", "PROFUSE_CACHE": "off"}
    done = subprocess.run([sys.executable, str(file)], env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
