"""Devices that are missing or fail: calls are computed on the host, and it is said why."""

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from emulated import EmulatedDriver, Fault
from profuse.executor.cuda.nvidia.driver import using
from profuse.executor.cuda.nvidia.driver_api import DriverError
from support import counts, host, warmed


def fallbacks(name):
    """Reasons of the events that say that a function left the device."""
    return [e.reason for e in pf.events() if e.kind == "device-fallback" and e.function == name]


def scaled(x):
    return np.tanh(x) * 2


def out_of_memory(times=10**9):
    error = DriverError("cuMemAllocAsync fails with CUDA_ERROR_OUT_OF_MEMORY", transient=True)
    return Fault(error, times=times)


def test_numpy_goes_to_the_device_that_is_asked_for(device):
    f = pf.jit(scaled, device="cuda")
    x = host(4, 8)
    for _ in range(3):
        got = f(x)
        assert type(got) is np.ndarray
        np.testing.assert_allclose(got, scaled(x), rtol=1e-6)
    # Tier 0 needs no copy at all; each optimised call copies the argument and the result.
    assert counts(f, "copies_to_device", "copies_to_host", "kernel_launches") == [2, 2, 2]
    assert (device.calls["to_device"], device.calls["to_host"]) == (2, 2)
    assert device.held == 0


def test_results_of_rank_0_are_numpy_scalars_as_on_the_host(device):
    f = pf.jit(lambda x: x.sum() * 2, device="cuda")
    x = host(9)
    for _ in range(3):
        assert type(f(x)) is np.float32
    np.testing.assert_allclose(f(x), x.sum() * 2, rtol=1e-5)


def test_without_a_driver_the_host_compiles(counted):
    x = host(4, 8)
    with using(None, "there is no NVIDIA driver"):
        f = pf.jit(scaled, device="cuda", name="undriven")
        for _ in range(3):
            np.testing.assert_allclose(f(x), scaled(x), rtol=1e-6)
    assert counts(f, "device_fallbacks", "kernel_launches", "evaluated_ops") == [3, 2, 2]
    assert fallbacks("undriven") == ["runs on the host: there is no NVIDIA driver"]
    assert "not on cuda:0: there is no NVIDIA driver" in f.state().reasons
    assert "there is no NVIDIA driver" in f.explain()


def test_a_device_that_does_not_exist(device):
    f = pf.jit(scaled, device="cuda:3")
    np.testing.assert_allclose(f(host(4)), f(host(4)) * 0 + f(host(4)), atol=10)
    assert f.state().reasons == ("not on cuda:3: there are 1 devices, and no cuda:3",)


def test_the_process_without_any_cuda_says_what_is_missing():
    f = pf.jit(scaled, device="cuda")
    f(host(4))
    (reason,) = f.state().reasons
    assert "cuda-bindings is missing" in reason or "no NVIDIA" in reason


def test_out_of_memory_is_the_problem_of_one_call(device):
    x = host(4, 8)
    f = warmed(scaled, xp.array(x), name="full")
    given = xp.array(x)
    device.faults["allocate"] = out_of_memory(times=device.calls["allocate"] + 1)
    launches = counts(f, "kernel_launches")
    np.testing.assert_allclose(f(given).get(), scaled(x), rtol=1e-6)
    assert counts(f, "device_fallbacks", "kernel_launches") == [1, *launches]
    np.testing.assert_allclose(f(given).get(), scaled(x), rtol=1e-6)
    assert counts(f, "device_fallbacks", "kernel_launches") == [1, launches[0] + 1]
    assert fallbacks("full") == ["cuMemAllocAsync fails with CUDA_ERROR_OUT_OF_MEMORY"]
    assert any("OUT_OF_MEMORY" in reason for reason in f.state().reasons)
    assert "OUT_OF_MEMORY" in f.explain()


def test_no_memory_for_the_result_either_is_an_error_of_the_call(device):
    x = host(4, 8)
    f = warmed(scaled, xp.array(x))
    given = xp.array(x)
    device.faults["allocate"] = out_of_memory()
    with pytest.raises(pf.DeviceError, match="OUT_OF_MEMORY"):
        f(given)
    device.faults.clear()
    np.testing.assert_allclose(f(given).get(), scaled(x), rtol=1e-6)


@pytest.mark.parametrize("method", ["load", "function", "launch"])
def test_what_does_not_start_is_not_tried_again(device, method):
    x = host(4, 8)
    error = DriverError(f"{method} fails with CUDA_ERROR_INVALID_IMAGE", "CUDA_ERROR_INVALID_IMAGE")
    device.faults[method] = Fault(error)
    f = pf.jit(scaled, name=f"broken_{method}")
    for _ in range(4):
        np.testing.assert_allclose(f(xp.array(x)).get(), scaled(x), rtol=1e-6)
    assert device.calls[method] == 1
    assert counts(f, "device_fallbacks", "kernel_launches") == [3, 0]
    assert len(fallbacks(f"broken_{method}")) == 1
    # Others have kernels of their own, and this one gets another chance when it is flushed.
    device.faults.clear()
    f.flush()
    for _ in range(2):
        f(xp.array(x))
    assert counts(f, "device_fallbacks", "kernel_launches") == [3, 1]


def test_a_failing_graph(device):
    x = host(20_000)
    f = warmed(lambda x: x / (x * x).sum(), xp.array(x))
    device.faults["replay"] = Fault(DriverError("cuGraphLaunch fails", "CUDA_ERROR_INVALID_VALUE"))
    np.testing.assert_allclose(f(xp.array(x)).get(), x / (x * x).sum(), rtol=1e-5)
    assert counts(f, "device_fallbacks", "graph_replays") == [1, 0]


def test_a_lost_device_takes_its_arrays_along_but_not_the_process(device):
    x = host(4, 8)
    f = warmed(scaled, xp.array(x), name="lost")
    g = warmed(scaled, x, device="cuda")
    given = xp.array(x)
    illegal = DriverError(
        "cuLaunchKernel fails with CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA_ERROR_ILLEGAL_ADDRESS", sticky=True
    )
    device.faults["launch"] = Fault(illegal)
    with pytest.raises(pf.DeviceError, match="ILLEGAL_ADDRESS") as caught:
        f(given)
    assert "start a new process" in str(caught.value)
    # From now on functions of host arrays run on the host, compiled, without touching the device.
    calls = dict(device.calls)
    for _ in range(3):
        np.testing.assert_allclose(g(x), scaled(x), rtol=1e-6)
    assert dict(device.calls) == calls
    assert counts(g, "device_fallbacks") == [3]
    assert any("lost to an earlier error" in reason for reason in g.state().reasons)
    np.testing.assert_allclose(pf.jit(scaled)(x), scaled(x))
    device.lost = None  # so that the arrays of this test can go


def test_a_compiler_that_fails_leaves_tier_0(device, monkeypatch):
    from profuse.dialect.errors import LoweringError
    from profuse.lowering.gpu import gpu_stages

    def refuse(*args, **options):
        raise LoweringError("there is no ptxas", hint="install profuse[cuda]")

    monkeypatch.setattr(gpu_stages, "compile_gpu", refuse)
    x = host(4, 8)
    f = pf.jit(scaled)
    for _ in range(3):
        np.testing.assert_allclose(f(xp.array(x)).get(), scaled(x), rtol=1e-6)
    assert counts(f, "compile_failures", "kernel_launches", "guard_hits") == [1, 0, 2]
    assert any("there is no ptxas" in reason for reason in f.state().reasons)


def test_device_arrays_without_a_driver_say_so():
    with using(EmulatedDriver()):
        given = xp.array(host(4))
        with using(None, "there is no NVIDIA driver"), pytest.raises(pf.ProfuseError) as caught:
            pf.jit(scaled)(given)
    assert "there is no NVIDIA driver" in str(caught.value)


def test_arguments_that_are_for_another_processor(device):
    with pytest.raises(pf.ArgumentError, match="is for host arrays, and an array on cuda:0"):
        pf.jit(scaled, device="cpu")(xp.array(host(4)))
    with pytest.raises(pf.KnobError, match="'gpu' is not known"):
        pf.jit(scaled, device="gpu")


def test_arrays_of_other_libraries_on_the_host_are_refused(device):
    class OnHost:
        def __dlpack__(self, **_):
            raise AssertionError("nobody asks")

        def __dlpack_device__(self):
            return 1, 0

    with pytest.raises(pf.ArgumentError, match=r"argument 'x': .* in the host's memory") as caught:
        pf.jit(scaled)(OnHost())
    assert "np.asarray(x)" in str(caught.value)


def test_dtypes_without_a_name_are_refused(device):
    given = xp.array(np.zeros(4, np.float32))
    given.dtype = np.dtype("S4")
    with pytest.raises(pf.DTypeError, match="argument 'x'"):
        pf.jit(scaled)(given)
