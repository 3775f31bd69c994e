"""The CUDA driver through `cuda-bindings`."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any

import numpy as np

from ...settings.knobs import knobs
from .cublas import Cublas
from .cublaslt import CublasLt
from .driver_api import Direct, DriverError, LaunchNode, NoEpilogueError
from .gemm import Gemm

# After these the context is lost (cuda.h: "This leaves the process in an inconsistent state").
_STICKY = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ILLEGAL_ADDRESS",
        "LAUNCH_FAILED",
        "LAUNCH_TIMEOUT",
        "ASSERT",
        "HARDWARE_STACK_ERROR",
        "ILLEGAL_INSTRUCTION",
        "MISALIGNED_ADDRESS",
        "INVALID_ADDRESS_SPACE",
        "INVALID_PC",
        "ECC_UNCORRECTABLE",
        "CONTEXT_IS_DESTROYED",
        "EXTERNAL_DEVICE",
        "UNKNOWN",
    )
)
_NO_TIMING = 2  # CU_EVENT_DISABLE_TIMING
_MOST_SHARED = "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"
_SHARED = 48 << 10  # bytes of shared memory that a block may use by default


class BindingsDriver:
    """The `driver_api.Driver`. It works in the primary contexts, as array libraries do.

    Raises DriverError if `cuda-bindings`, the driver, or a device is missing.
    """

    image = "cubin"

    def __init__(self) -> None:
        try:
            from cuda.bindings import driver as api
        except ImportError as error:
            raise DriverError(f"cuda-bindings is missing: pip install profuse[cuda] ({error})") from None
        self._api = api
        self._contexts: dict[int, Any] = {}
        self._cublas: Cublas | None = None
        self._cublaslt: CublasLt | None = None
        self._lock = threading.Lock()
        try:
            self._call(api.cuInit, 0)
        except DriverError:
            raise
        except Exception as error:  # the loader of cuda-bindings has errors of its own
            raise DriverError(f"there is no NVIDIA driver: {error}", "absent") from None
        if not self.device_count():
            raise DriverError("there is no NVIDIA device", "absent")

    def _call(self, function: Any, *args: Any) -> Any:
        """Call a function of the driver; returns its value, a tuple of several, or None.

        Raises DriverError if it fails.
        """
        status, *values = function(*args)
        if status:
            name = getattr(status, "name", str(status))
            raise DriverError(
                f"{function.__name__} fails with {name}",
                name,
                sticky=name in _STICKY,
                transient=name == "CUDA_ERROR_OUT_OF_MEMORY",
            )
        return values[0] if len(values) == 1 else tuple(values) or None

    def _on(self, device: int, function: Any, *args: Any) -> Any:
        """Call a function of the driver, as `_call` does, in the context of a device."""
        with self._current(device):
            return self._call(function, *args)

    def _current(self, device: int) -> _Current:
        context = self._contexts.get(device)
        if context is None:
            with self._lock:
                handle = self._call(self._api.cuDeviceGet, device)
                context = self._call(self._api.cuDevicePrimaryCtxRetain, handle)
                self._contexts[device] = context
                self._keep_memory(handle)
        return _Current(self, context)

    def _keep_memory(self, device: Any) -> None:
        """Let a device's pool keep freed memory; by default each synchronisation empties it."""
        pool = self._call(self._api.cuDeviceGetDefaultMemPool, device)
        threshold = self._api.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        nbytes = self._api.cuuint64_t(knobs.output_pool_bytes)
        self._call(self._api.cuMemPoolSetAttribute, pool, threshold, nbytes)

    # --- devices and kernels ----------------------------------------------------------------

    def device_count(self) -> int:
        return self._call(self._api.cuDeviceGetCount)

    def chip(self, device: int) -> str:
        attribute = self._api.CUdevice_attribute
        major, minor = (
            self._call(self._api.cuDeviceGetAttribute, number, device)
            for number in (
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
            )
        )
        return f"sm_{major}{minor}"

    def device_of(self, pointer: int) -> int:
        attribute = self._api.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        return int(self._call(self._api.cuPointerGetAttribute, attribute, pointer))

    def load(self, device: int, image: bytes) -> Any:
        # PTX is text that has to end in a zero; a cubin may be followed by one.
        return self._on(device, self._api.cuModuleLoadData, image + b"\0")

    def function(self, module: Any, name: str) -> Any:
        return self._call(self._api.cuModuleGetFunction, module, name.encode())

    def launch(self, device: int, node: LaunchNode, stream: int) -> None:
        with self._current(device):
            self._allow_shared(node.function, node.shared)
            self._call(
                self._api.cuLaunchKernel,
                node.function,
                *node.grid,
                *node.block,
                node.shared,
                stream,
                node.arguments.address,
                0,
            )

    def direct(self, device: int) -> Direct:
        context = int(self._on(device, self._api.cuCtxGetCurrent))
        try:
            library = ctypes.CDLL("libcuda.so.1")  # the one that cuda-bindings has loaded
            launch, current = (
                ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0
                for name in ("cuLaunchKernel", "cuCtxGetCurrent")
            )
        except (OSError, AttributeError) as error:
            raise DriverError(f"the driver's functions have no addresses: {error}") from None
        return Direct(launch, current, context)

    def handle(self, device: int, function: Any, shared: int | None) -> int:
        with self._current(device):
            if shared is None:
                most = f"CU_DEVICE_ATTRIBUTE_{_MOST_SHARED}"
                attribute = getattr(self._api.CUdevice_attribute, most)
                shared = int(self._call(self._api.cuDeviceGetAttribute, attribute, device))
                static = self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES
                shared -= self._call(self._api.cuFuncGetAttribute, static, function)
            self._allow_shared(function, shared)
        return int(function)

    def _allow_shared(self, function: Any, shared: int) -> None:
        """Raise a kernel's limit of dynamic shared memory if it needs more than the default."""
        if shared <= _SHARED:
            return
        attribute = self._api.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        with self._lock:  # another thread may be raising it, too
            if self._call(self._api.cuFuncGetAttribute, attribute, function) < shared:
                self._call(self._api.cuFuncSetAttribute, function, attribute, shared)

    # --- memory -----------------------------------------------------------------------------

    def allocate(self, device: int, nbytes: int, stream: int) -> int:
        return int(self._on(device, self._api.cuMemAllocAsync, max(nbytes, 1), stream))

    def free(self, device: int, pointer: int, stream: int) -> None:
        self._on(device, self._api.cuMemFreeAsync, pointer, stream)

    def to_device(self, device: int, pointer: int, array: np.ndarray, stream: int) -> None:
        api = self._api
        self._on(device, api.cuMemcpyHtoDAsync, pointer, array.ctypes.data, array.nbytes, stream)

    def to_host(self, device: int, array: np.ndarray, pointer: int, stream: int) -> None:
        with self._current(device):
            self._call(self._api.cuMemcpyDtoHAsync, array.ctypes.data, pointer, array.nbytes, stream)
            self._call(self._api.cuStreamSynchronize, stream)

    def copy(self, device: int, target: int, source: int, nbytes: int, stream: int) -> None:
        self._on(device, self._api.cuMemcpyDtoDAsync, target, source, nbytes, stream)

    # --- order ------------------------------------------------------------------------------

    def wait(self, device: int, stream: int, other: int) -> None:
        with self._current(device):
            event = self.mark(device, other)
            self._call(self._api.cuStreamWaitEvent, stream, event, 0)
            # The driver keeps the event until the device has reached it.
            self._call(self._api.cuEventDestroy, event)

    def mark(self, device: int, stream: int) -> Any:
        with self._current(device):
            event = self._call(self._api.cuEventCreate, _NO_TIMING)
            self._call(self._api.cuEventRecord, event, stream)
            return event

    def reached(self, event: Any) -> bool:
        (status,) = self._api.cuEventQuery(event)
        if status == self._api.CUresult.CUDA_ERROR_NOT_READY:
            return False
        self._call(self._api.cuEventDestroy, event)
        return True

    # --- products and graphs ----------------------------------------------------------------

    def product(self, device: int, product: Gemm, stream: int) -> None:
        if product.bias:
            self._product_with_bias(device, product, stream)
            return
        with self._lock:
            if self._cublas is None:
                self._cublas = Cublas()
        with self._current(device):
            self._cublas.product(device, product, stream)

    def _product_with_bias(self, device: int, product: Gemm, stream: int) -> None:
        with self._lock:
            if self._cublaslt is None:
                self._cublaslt = CublasLt()
        with self._current(device):
            plan = self._cublaslt.plan(device, product)
            try:
                space = self.allocate(device, plan.workspace, stream) if plan.workspace else 0
            except DriverError as error:
                if not error.transient:
                    raise
                raise NoEpilogueError(f"there is no workspace: {error.what}") from error
            try:
                self._cublaslt.start(plan, product, space, stream)
            finally:
                if space:  # on the stream, behind the product
                    self.free(device, space, stream)

    def graph(self, device: int, nodes: Sequence[LaunchNode]) -> Any:
        with self._current(device):
            graph = self._call(self._api.cuGraphCreate, 0)
            handles: list[Any] = []
            for node in nodes:
                self._allow_shared(node.function, node.shared)
                before = handles[-1:]
                handles.append(
                    self._call(self._api.cuGraphAddKernelNode, graph, before, len(before), self._parameters(node))
                )
            executable = self._call(self._api.cuGraphInstantiate, graph, 0)
            return executable, handles, graph

    def update(self, graph: Any, index: int, node: LaunchNode) -> None:
        executable, handles, _ = graph
        self._call(self._api.cuGraphExecKernelNodeSetParams, executable, handles[index], self._parameters(node))

    def replay(self, device: int, graph: Any, stream: int) -> None:
        self._on(device, self._api.cuGraphLaunch, graph[0], stream)

    def drop(self, graph: Any) -> None:
        self._call(self._api.cuGraphExecDestroy, graph[0])
        self._call(self._api.cuGraphDestroy, graph[2])

    def _parameters(self, node: LaunchNode) -> Any:
        parameters = self._api.CUDA_KERNEL_NODE_PARAMS()
        parameters.func = node.function
        parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ = node.grid
        parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ = node.block
        parameters.sharedMemBytes = node.shared
        parameters.kernelParams = node.arguments.address
        return parameters


class _Current:
    """Makes a context the thread's current one for a ``with`` block, then restores the previous."""

    __slots__ = ("_before", "_context", "_driver")

    def __init__(self, driver: BindingsDriver, context: Any) -> None:
        self._driver, self._context = driver, context
        self._before: Any = None

    def __enter__(self) -> None:
        driver = self._driver
        now = driver._call(driver._api.cuCtxGetCurrent)
        if int(now) != int(self._context):
            driver._call(driver._api.cuCtxSetCurrent, self._context)
            self._before = now

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            self._driver._api.cuCtxSetCurrent(self._before)
