"""Adapters of array libraries, against as much of their interfaces as they use."""

import ctypes
import sys

import fakelib as xp
import ml_dtypes
import numpy as np
import profuse as pf
import pytest
import stand_ins
from internals import forget_libraries
from profuse.executor.cuda.exchange import dlpack_exchange as exchange
from profuse.executor.cuda.exchange import libraries
from profuse.executor.cuda.nvidia.driver import using
from profuse.executor.exchange.dlpack import DLTensor, Loan, data_type, read, take
from support import counts, host, modulus

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(params=["torch", "cupy"])
def library(device, request, monkeypatch):
    """A library in place of the real one: makes arrays, reads them, and its module."""
    module = getattr(stand_ins, request.param)
    monkeypatch.setitem(sys.modules, request.param, module)
    forget_libraries(monkeypatch)
    if request.param == "torch":
        yield lambda a: stand_ins.Tensor(xp.array(a)), lambda t: stand_ins.download(t.held), module
    else:
        yield module.asarray, module.asnumpy, module


def test_arrays_come_back_as_they_came(library, device):
    make, get, _ = library
    x, b = host(4, 8), host(8)
    f = pf.jit(lambda x, b: (np.tanh(x + b) * 0.5, x.sum(axis=0)))
    for _ in range(4):
        given = make(x), make(b)
        device.log.clear()
        one, two = f(*given)
        assert type(one) is type(two) is type(given[0])
        np.testing.assert_allclose(get(one), np.tanh(x + b) * 0.5, rtol=1e-6)
        np.testing.assert_allclose(get(two), x.sum(axis=0), rtol=1e-5)
    launches = [stream for what, stream in device.log if what.startswith("launch")]
    assert launches and set(launches) == {stand_ins.STREAM}
    names = ("copies_to_host", "copies_to_device", "device_fallbacks", "profiled_runs")
    assert counts(f, *names) == [2, 2, 0, 1]


def test_views_are_read_where_they_are(library):
    make, get, module = library
    x = host(6, 4)
    given = make(x)
    if module is stand_ins.torch:
        views = stand_ins.Tensor(given.held.T), stand_ins.Tensor(given.held[::2])
    else:
        views = stand_ins.as_cupy(given.T), stand_ins.as_cupy(given[::2])
    for view, expected in zip(views, (x.T, x[::2]), strict=True):
        f = pf.jit(lambda x: np.exp(x) * 2)
        for _ in range(3):
            np.testing.assert_allclose(get(f(view)), np.exp(expected) * 2, rtol=1e-5)
        assert counts(f, "device_fallbacks", "kernel_launches") == [0, 2]


def test_tier_0_between_kernels(library):
    make, get, _ = library
    f = pf.jit(lambda x: modulus(x * 2) + 1)
    for _ in range(3):
        x = host(3, 9)
        np.testing.assert_allclose(get(f(make(x))), modulus(x * 2) + 1, rtol=1e-5)
    assert counts(f, "device_fallbacks", "kernel_launches") == [0, 4]


def test_an_argument_returned_as_it_is_is_a_copy(library):
    make, get, _ = library
    x = host(4)
    given = make(x)
    f = pf.jit(lambda x: (x, x + 1))
    for _ in range(3):
        same, _ = f(given)
        assert same is not given
        np.testing.assert_array_equal(get(same), x)


def test_bfloat16_of_torch(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", stand_ins.torch)
    forget_libraries(monkeypatch)
    x = host(4, 8).astype(BF16)
    f = pf.jit(lambda x: x * 2 + 1)
    for _ in range(3):
        out = f(stand_ins.Tensor(xp.array(x)))
        assert str(out.dtype) == "torch.bfloat16"
        np.testing.assert_array_equal(stand_ins.download(out.held), x * 2 + 1)
    assert counts(f, "device_fallbacks", "kernel_launches") == [0, 2]


def test_no_memory_in_torch(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", stand_ins.torch)
    forget_libraries(monkeypatch)
    x = host(4, 8)
    f = pf.jit(lambda x: x * 2 + 1)
    for full in (False, False, True, False):
        monkeypatch.setattr(stand_ins.torch, "full", full)
        out = f(stand_ins.Tensor(xp.array(x)))
        np.testing.assert_allclose(stand_ins.download(out.held), x * 2 + 1)
    assert counts(f, "device_fallbacks", "kernel_launches") == [1, 2]
    assert f.state().reasons == ("not on the device: torch fails: CUDA out of memory. Tried to allocate 2.00 GiB",)


def test_tensors_of_torch_without_a_driver_of_ours(monkeypatch):
    """Say, without `cuda-bindings`: torch copies, tier 0 computes, and it is said why."""

    class OnDevice(stand_ins.Tensor):
        def data_ptr(self):
            return 1 << 40

        def cpu(self):
            return stand_ins.Tensor(self.held, cuda=False)

    OnDevice.__module__ = "torch"
    monkeypatch.setitem(sys.modules, "torch", stand_ins.torch)
    monkeypatch.setattr(stand_ins.Tensor, "to", lambda self, device: OnDevice(self.held))
    forget_libraries(monkeypatch)
    x = host(4, 8)
    f = pf.jit(lambda x: np.exp(x) * 2, name="bare")
    with using(None, "cuda-bindings is missing"):
        for _ in range(3):
            out = f(OnDevice(x))
            assert type(out) is OnDevice
            np.testing.assert_allclose(out.held, np.exp(x) * 2, rtol=1e-6)
    assert counts(f, "device_fallbacks", "compiles", "evaluated_ops") == [3, 0, 6]
    assert f.state().reasons == ("not on the device: cuda-bindings is missing",)
    assert "not on the device: cuda-bindings is missing." in f.explain()
    (event,) = [e for e in pf.events() if e.kind == "device-fallback" and e.function == "bare"]
    assert event.reason == "cuda-bindings is missing"


def test_tensors_of_torch_that_are_refused(device, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", stand_ins.torch)
    forget_libraries(monkeypatch)
    f = pf.jit(lambda x: x * 2)
    with pytest.raises(pf.ArgumentError, match=r"argument 'x': .* requires gradients") as caught:
        f(stand_ins.Tensor(xp.array(host(4)), requires_grad=True))
    assert "x.detach()" in str(caught.value)
    with pytest.raises(pf.ArgumentError, match="in the host's memory"):
        f(stand_ins.Tensor(host(4), cuda=False))


# --- DLPack ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.uint16, np.bool_, np.complex64, BF16])
def test_loans_say_what_they_are(device, dtype):
    memory = libraries.OwnMemory(0, 4096, 1)
    waits = []
    loan = Loan(0, memory.pointer, (3, 4), np.dtype(dtype), memory, waits.append)
    assert loan.__dlpack_device__() == (2, 0)
    capsule = loan.__dlpack__(stream=9)
    size = np.dtype(dtype).itemsize
    assert read(capsule) == (0, memory.pointer, (3, 4), (4 * size, size), np.dtype(dtype))
    assert waits == [9]
    loan.__dlpack__(stream=None)
    loan.__dlpack__(stream=-1)
    assert waits == [9, 1]


def test_memory_on_loan_lives_as_long_as_somebody_has_it(device):
    memory = libraries.OwnMemory(0, 4096, 1)
    loan = Loan(0, memory.pointer, (4,), np.dtype(np.float32), memory, lambda stream: None)
    del memory
    capsule = loan.__dlpack__()
    give_back = take(capsule)
    del loan, capsule
    assert device.held == 4096
    give_back()
    assert device.held == 0


def test_a_capsule_that_nobody_takes_gives_memory_back(device):
    memory = libraries.OwnMemory(0, 4096, 1)
    loan = Loan(0, memory.pointer, (4,), np.dtype(np.float32), memory, lambda stream: None)
    capsule = loan.__dlpack__()
    del memory, loan
    assert device.held == 4096
    del capsule
    assert device.held == 0


def test_a_loan_that_ends_while_an_error_is_on_its_way_leaves_it_alone(device):
    memory = libraries.OwnMemory(0, 4096, 1)
    loan = Loan(0, memory.pointer, (4,), np.dtype(np.float32), memory, lambda stream: None)
    with pytest.raises(ZeroDivisionError):
        print(loan.__dlpack__(), 1 // 0)


def test_arrays_that_speak_only_dlpack(device):
    class Other:
        """An array that lends its memory, and takes results by `from_dlpack`."""

        def __init__(self, held):
            self.held = held

        def __dlpack_device__(self):
            return 2, 0

        def __dlpack__(self, *, stream=None, **_):
            held = self.held
            return Loan(0, held.pointer, held.shape, held.dtype, held, lambda other: None).__dlpack__(stream=stream)

        def __array_namespace__(self):
            return xp

    Other.__module__ = "otherlib"
    x = host(4, 8)
    f = pf.jit(lambda x: np.exp(x) * 2)
    for _ in range(3):
        np.testing.assert_allclose(f(Other(xp.array(x))).get(), np.exp(x) * 2, rtol=1e-5)
    assert counts(f, "device_fallbacks", "kernel_launches") == [0, 2]


def test_a_library_that_takes_no_results_says_so(device):
    class Mute(xp.Array):
        def __array_namespace__(self):
            return np.random  # a module without from_dlpack

    Mute.__module__ = "mutelib"
    held = xp.array(host(4))
    given = Mute(held.pointer, held.shape, held.dtype, held.strides, held)
    with pytest.raises(pf.ArgumentError, match="cannot become arrays of mutelib"):
        pf.jit(lambda x: x * 2)(given)


def test_torch_lends_what_is_expected():
    """The real one, on its own memory: layouts that it has and stand-ins do not."""
    torch = pytest.importorskip("torch")
    describe, stream = exchange.functions_of(torch.Tensor)
    assert stream
    call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(describe)
    base = torch.arange(24.0).reshape(2, 3, 4)
    for t in (base, base.mT, base[:, ::2], base[0, 0, 0], base[:0], base.expand(5, 2, 3, 4)):
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64, torch.bool):
            given, tensor = t.to(dtype), DLTensor()
            assert call(given, ctypes.addressof(tensor)) == 0
            assert (tensor.data or 0) + tensor.byte_offset == given.data_ptr()
            assert tuple(tensor.shape[: tensor.ndim]) == tuple(given.shape)
            assert tuple(tensor.strides[: tensor.ndim]) == given.stride()
            name = str(dtype).removeprefix("torch.")
            numpy = BF16 if name == "bfloat16" else name
            assert bytes(tensor.dtype) == bytes(data_type(np.dtype(numpy)))
    with pytest.raises(RuntimeError):
        call(base.to("meta"), ctypes.addressof(DLTensor()))
