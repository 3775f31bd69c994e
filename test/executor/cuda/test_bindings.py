"""What the driver of `cuda-bindings` is asked for, in which order, and what its errors become."""

import sys

import numpy as np
import pytest
from driver_api import Status
from profuse.executor.cuda.launching.argument_block import ArgumentBlock
from profuse.executor.cuda.nvidia import bindings, cublas
from profuse.executor.cuda.nvidia.driver_api import DriverError, LaunchNode
from profuse.executor.cuda.nvidia.gemm import Gemm


def node(**changes):
    block = ArgumentBlock([1, 2])
    fields = {"function": "f", "grid": (4, 1, 1), "block": (32, 2, 1), "shared": 0}
    return LaunchNode(**fields | changes, arguments=block, free=[])


def test_devices(driver, api):
    assert driver.device_count() == 2
    assert driver.chip(0) == "sm_99"
    assert driver.device_of(4096) == 1


def test_work_runs_in_the_primary_context_and_leaves_the_callers(driver, api):
    made = node()
    driver.launch(0, made, 7)
    name, args, context = api.calls[-1]
    assert name == "cuLaunchKernel"
    assert args == ("f", 4, 1, 1, 32, 2, 1, 0, 7, made.arguments.address, 0)
    assert (context, api.context) == (77, 11)
    # Retained once per device, with a pool that keeps what is freed.
    driver.launch(0, made, 7)
    assert api.names().count("cuDevicePrimaryCtxRetain") == 1
    assert "cuMemPoolSetAttribute" in api.names()


def test_much_shared_memory_is_asked_for(driver, api):
    driver.launch(0, node(shared=48 << 10), 7)
    assert not any(name.startswith("cuFunc") for name in api.names())
    driver.launch(0, node(shared=100_000), 7)
    *_, (name, args, _), (last, _, _) = api.calls
    assert (name, args[0], args[2], last) == ("cuFuncSetAttribute", "f", 100_000, "cuLaunchKernel")


def test_allowed_shared_memory_never_shrinks(driver, api):
    """A graph may still ask for more than the launch before it."""
    api.gives["cuFuncGetAttribute"] = (100_000,)
    driver.launch(0, node(shared=60_000), 7)
    driver.graph(0, [node(shared=100_000)])
    assert "cuFuncSetAttribute" not in api.names()
    driver.graph(0, [node(shared=100_001)])
    assert api.names()[-4:] == [
        "cuFuncGetAttribute",
        "cuFuncSetAttribute",
        "cuGraphAddKernelNode",
        "cuGraphInstantiate",
    ]


def test_code_ends_in_a_zero(driver, api):
    assert driver.function(driver.load(0, b"ptx"), "k") == "function"
    (load, _, _), (function, names, _) = [c for c in api.calls if "Module" in c[0]]
    assert (load, function, names) == ("cuModuleLoadData", "cuModuleGetFunction", ("module", b"k"))
    assert api.calls[-2][1] == (b"ptx\0",)


def test_memory(driver, api):
    host = np.zeros(4, np.float32)
    pointer = driver.allocate(0, 0, 7)
    driver.to_device(0, pointer, host, 7)
    driver.copy(0, 1, 2, 3, 7)
    driver.to_host(0, host, pointer, 7)
    driver.free(0, pointer, 7)
    found = [(name, args) for name, args, _ in api.calls if name.startswith(("cuMem", "cuStream"))]
    assert found[1:] == [
        ("cuMemAllocAsync", (1, 7)),
        ("cuMemcpyHtoDAsync", (4096, host.ctypes.data, 16, 7)),
        ("cuMemcpyDtoDAsync", (1, 2, 3, 7)),
        ("cuMemcpyDtoHAsync", (host.ctypes.data, 4096, 16, 7)),
        ("cuStreamSynchronize", (7,)),
        ("cuMemFreeAsync", (4096, 7)),
    ]


def test_order_between_streams(driver, api):
    driver.wait(0, 7, 8)
    found = [(name, args) for name, args, _ in api.calls if "Event" in name]
    assert found == [
        ("cuEventCreate", (2,)),
        ("cuEventRecord", ("event", 8)),
        ("cuStreamWaitEvent", (7, "event", 0)),
        ("cuEventDestroy", ("event",)),
    ]
    event = driver.mark(0, 7)
    api.fails["cuEventQuery"] = Status.CUDA_ERROR_NOT_READY
    assert not driver.reached(event)
    api.fails.clear()
    assert driver.reached(event)
    assert api.names()[-1] == "cuEventDestroy"


def test_graphs_are_chains(driver, api):
    graph = driver.graph(0, [node(), node()])
    added = [args for name, args, _ in api.calls if name == "cuGraphAddKernelNode"]
    assert [args[:3] for args in added] == [("graph", [], 0), ("graph", ["node"], 1)]
    made = added[1][3]
    assert (made.gridDimX, made.blockDimY, made.func) == (4, 2, "f")
    changed = node()
    driver.update(graph, 1, changed)
    name, (executable, place, parameters), _ = api.calls[-1]
    assert (name, executable, place) == ("cuGraphExecKernelNodeSetParams", "executable", "node")
    assert parameters.kernelParams == changed.arguments.address
    driver.replay(0, graph, 7)
    assert api.calls[-1][:2] == ("cuGraphLaunch", ("executable", 7))
    driver.drop(graph)
    assert api.names()[-2:] == ["cuGraphExecDestroy", "cuGraphDestroy"]


@pytest.mark.parametrize(
    "status, sticky, transient",
    [
        (Status.CUDA_ERROR_OUT_OF_MEMORY, False, True),
        (Status.CUDA_ERROR_ILLEGAL_ADDRESS, True, False),
        (Status.CUDA_ERROR_NOT_READY, False, False),
    ],
)
def test_errors(driver, api, status, sticky, transient):
    api.fails["cuLaunchKernel"] = status
    with pytest.raises(DriverError, match=f"cuLaunchKernel fails with {status.name}") as caught:
        driver.launch(0, node(), 7)
    assert (caught.value.sticky, caught.value.transient) == (sticky, transient)
    assert api.context == 11


def test_a_process_without_devices(api):
    api.gives["cuDeviceGetCount"] = (0,)
    with pytest.raises(DriverError, match="no NVIDIA device"):
        bindings.BindingsDriver()


def test_a_process_without_a_driver(api):
    api.cuInit = lambda flags: (_ for _ in ()).throw(OSError("libcuda.so.1 is not there"))
    api.cuInit.__name__ = "cuInit"
    with pytest.raises(DriverError, match=r"no NVIDIA driver: libcuda\.so\.1 is not there"):
        bindings.BindingsDriver()


def test_a_process_without_cuda_bindings(monkeypatch):
    monkeypatch.setitem(sys.modules, "cuda", None)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    with pytest.raises(DriverError, match=r"cuda-bindings is missing: pip install profuse\[cuda\]"):
        bindings.BindingsDriver()


class Library:
    """As much of cuBLAS as is used: notes what it is given."""

    def __init__(self):
        self.calls, self.status = [], 0

    def __getattr__(self, name):
        def call(*args):
            self.calls.append((name, [getattr(a, "value", a) for a in args]))
            return self.status

        return call


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setattr(cublas, "load", lambda stem: made)
    return made


def product(**changes):
    fields = dict(zip(("m", "n", "k", "a", "lda", "b", "ldb", "c", "ldc"), range(2, 11), strict=True))
    return Gemm(**{"dtype": "f32", "output": "f32", "trans_a": True, "trans_b": False} | fields | changes)


def test_products(driver, library, api):
    driver.product(0, product(beta=1.0, stride_a=20, batch=3), 7)
    driver.product(0, product(), 8)
    made, mode, stream, gemm = library.calls[:4]
    assert (mode[0], mode[1][1]) == ("cublasSetMathMode", 16)
    assert (made[0], stream[0], stream[1][1]) == ("cublasCreate_v2", "cublasSetStream_v2", 7)
    name, args = gemm
    assert name == "cublasGemmStridedBatchedEx"
    *_, trans_a, trans_b, m, n, k = args[:6]
    assert (trans_a, trans_b, m, n, k) == (1, 0, 2, 3, 4)
    assert args[7:11] == [5, 0, 6, 20]  # pointer, type, step and stride of the left matrix
    assert args[-3:] == [3, 68, -1]  # of the batch, in f32, by the default algorithm
    # One handle per thread and device.
    assert [name for name, _ in library.calls].count("cublasCreate_v2") == 1


def test_products_of_halves_are_summed_up_in_f32(driver, library, api):
    driver.product(0, product(dtype="bf16", output="f32"), 7)
    driver.product(0, product(dtype="f16", output="f16"), 7)
    found = [args for name, args in library.calls if name == "cublasGemmStridedBatchedEx"]
    # Types of both operands, of the result, and of sums.
    assert [(a[8], a[12], a[17], a[-2]) for a in found] == [(14, 14, 0, 68), (2, 2, 2, 68)]


@pytest.mark.parametrize("status, transient", [(3, True), (15, False)])
def test_products_that_fail(driver, library, api, status, transient):
    library.status = status
    with pytest.raises(DriverError, match=f"cuBLAS fails with status {status}") as caught:
        driver.product(0, product(), 7)
    assert caught.value.transient == transient


def test_a_process_without_cublas(monkeypatch):
    asked = []

    def missing(name):
        asked.append(name)
        raise OSError(name)

    monkeypatch.setattr(cublas.ctypes, "CDLL", missing)
    with pytest.raises(DriverError, match=r"there is no cublas; install profuse\[cuda\]"):
        cublas.Cublas()
    assert asked[-2:] == ["libcublas.so.13", "libcublas.so"]
