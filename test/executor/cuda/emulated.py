"""A CUDA driver without a device: kernels run in the SIMT emulator, and calls can be made to fail.

What the emulator finds undefined (races, accesses out of bounds, reads of memory that nothing has
written) fails the test that launched it.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import struct
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from mlir import ir
from profuse.dialect.ir.dtypes import dtype_named
from profuse.executor.cuda.launching.argument_block import ArgumentBlock
from profuse.executor.cuda.nvidia.driver_api import Direct, DriverError, LaunchNode
from profuse.executor.cuda.nvidia.gemm import Gemm
from simt import parse, programs, run_kernel, types
from simt.memory import Buffer, MemRef

ALIGNMENT = 256
CONTEXT = 0xC0DE
_LAUNCH = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_size_t,
    *[ctypes.c_uint] * 7,
    ctypes.c_size_t,
    ctypes.POINTER(ctypes.c_size_t),
    ctypes.c_void_p,
)
_CURRENT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_size_t))


@dataclass(frozen=True)
class Function:
    """A kernel, with the module that holds its IR."""

    program: Any
    module: Any


@dataclass
class Fault:
    """An error to raise: from the ``first`` call of a method on, ``times`` times."""

    error: DriverError
    first: int = 1
    times: int = 10**9


def _alone(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method that runs in one thread at a time."""

    @functools.wraps(method)
    def run(self: EmulatedDriver, *args: Any) -> Any:
        with self._lock:
            return method(self, *args)

    return run


@dataclass
class EmulatedDriver:
    """See `profuse.executor.cuda.nvidia.driver_api.Driver`.

    Attributes:
        devices: how many there are.
        faults: method name -> what it raises; a sticky one is raised by every method from then on.
            ``"epilogue"`` stands for the product that adds a bias.
        calls: how often each method was called.
        log: what was given to streams: (what, stream), with the kernel's name of launches.
        shared: kernel -> bytes of dynamic shared memory that its last launch asked for.
        context: which is the thread's.
        failures: of launches by emitted code.
    """

    devices: int = 1
    faults: dict[str, Fault] = field(default_factory=dict)
    calls: Counter = field(default_factory=Counter)
    log: list[tuple[str, int]] = field(default_factory=list)
    shared: dict[str, int] = field(default_factory=dict)
    image: str = "gpu"
    context: int = CONTEXT
    failures: list[Exception] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._lock = threading.RLock()  # re-entrant: memory is freed at any point
        self._starts: list[int] = []
        self._buffers: dict[int, tuple[Buffer, int]] = {}
        self.next_address = 1 << 32
        self.lost: DriverError | None = None
        self._handles: list[tuple[Function, int | None]] = []
        self._functions: tuple[Any, ...] = ()

    @property
    def launched(self) -> list[str]:
        """Names of the kernels that were started, in order."""
        names = (what.removeprefix("launch ") for what, _ in self.log if what.startswith("launch "))
        return list(names)

    def _count(self, method: str) -> None:
        self.calls[method] += 1
        if self.lost is not None:
            raise self.lost
        fault = self.faults.get(method)
        if fault and fault.first <= self.calls[method] < fault.first + fault.times:
            if fault.error.sticky:
                self.lost = fault.error
            raise fault.error

    def device_count(self) -> int:
        return self.devices

    def chip(self, device: int) -> str:
        return "sm_90"

    # --- memory -----------------------------------------------------------------------------

    @property
    def held(self) -> int:
        """Bytes that are allocated."""
        return sum(buffer.slot_bytes for buffer, _ in self._buffers.values())

    @_alone
    def allocate(self, device: int, nbytes: int, stream: int) -> int:
        self._count("allocate")
        start = self.next_address
        self.next_address += -(-max(nbytes, 1) // ALIGNMENT) * ALIGNMENT
        self._buffers[start] = Buffer(f"memory at {start:#x}", "global", max(nbytes, 1)), device
        self._starts.append(start)
        return start

    @_alone
    def free(self, device: int, pointer: int, stream: int) -> None:
        self._count("free")
        del self._buffers[pointer]
        self._starts.remove(pointer)

    @_alone
    def device_of(self, pointer: int) -> int:
        return self.find(pointer)[2]

    def find(self, pointer: int) -> tuple[Buffer, int, int]:
        """The buffer that a pointer points into, the offset there, and the device."""
        place = bisect.bisect_right(self._starts, pointer) - 1
        start = self._starts[place] if place >= 0 else 0
        buffer, device = self._buffers.get(start, (None, 0))
        if buffer is None or pointer - start > buffer.slot_bytes:
            raise DriverError(f"{pointer:#x} is no address", "CUDA_ERROR_ILLEGAL_ADDRESS", sticky=True)
        return buffer, pointer - start, device

    @_alone
    def to_device(self, device: int, pointer: int, array: np.ndarray, stream: int) -> None:
        self._count("to_device")
        assert array.flags.c_contiguous
        buffer, offset, _ = self.find(pointer)
        buffer.fill(offset, array.reshape(-1).view(np.uint8))
        self.log.append(("to_device", stream))

    @_alone
    def to_host(self, device: int, array: np.ndarray, pointer: int, stream: int) -> None:
        self._count("to_host")
        buffer, offset, _ = self.find(pointer)
        assert buffer.defined[offset : offset + array.nbytes].all(), "reads what nobody has written"
        array.reshape(-1).view(np.uint8)[:] = buffer.raw[offset : offset + array.nbytes]
        self.log.append(("to_host", stream))

    @_alone
    def copy(self, device: int, target: int, source: int, nbytes: int, stream: int) -> None:
        self._count("copy")
        buffer, offset, _ = self.find(source)
        into, at, _ = self.find(target)
        into.fill(at, buffer.raw[offset : offset + nbytes])
        self.log.append(("copy", stream))

    # --- kernels ----------------------------------------------------------------------------

    def load(self, device: int, image: bytes) -> Any:
        self._count("load")
        module = parse(image.decode())
        return module, programs(module)

    def function(self, module: Any, name: str) -> Function:
        self._count("function")
        return Function(module[1][name], module[0])

    @_alone
    def launch(self, device: int, node: LaunchNode, stream: int) -> None:
        self._count("launch")
        self.run_node(node, stream)

    # --- kernels that emitted code starts ---------------------------------------------------

    def direct(self, device: int) -> Direct:
        self._count("direct")
        if not self._functions:
            self._functions = _LAUNCH(self._launch_direct), _CURRENT(self._context)
        launch, current = (ctypes.cast(f, ctypes.c_void_p).value or 0 for f in self._functions)
        return Direct(launch, current, CONTEXT)

    def handle(self, device: int, function: Function, shared: int | None) -> int:
        self._count("handle")
        self._handles.append((function, shared))
        return len(self._handles)

    def _context(self, found: Any) -> int:
        found[0] = self.context
        return 0

    def _launch_direct(self, handle: int, *rest: Any) -> int:
        *shape, shared, stream, parameters, _extra = rest
        function, allowed = self._handles[handle - 1]
        assert allowed is None or shared <= allowed
        # The types of workgroup memory come last; nobody passes it.
        count = sum(
            not isinstance(type_, ir.MemRefType) or type_.memory_space is None
            for type_ in function.program.argument_types
        )
        values = [ctypes.c_int64.from_address(parameters[k]).value for k in range(count)]
        grid, block = tuple(shape[:3]), tuple(shape[3:])
        self.calls["launched directly"] += 1
        try:
            self.launch(0, LaunchNode(function, grid, block, shared, ArgumentBlock(values), []), stream)
        except Exception as error:  # C code gets a status; whoever asks again gets the reason
            self.failures.append(error)
            return 719
        return 0

    def run_node(self, node: LaunchNode, stream: int) -> None:
        program = node.function.program
        given = zip(node.arguments.values, program.argument_types, strict=False)
        args = [self._argument(value, type_) for value, type_ in given]
        run_kernel(program, node.grid, node.block, args, node.shared)
        self.log.append((f"launch {program.name}", stream))
        self.shared[program.name] = node.shared

    def _argument(self, value: int, type_: Any) -> Any:
        if isinstance(type_, ir.MemRefType):
            if not value:  # an array without elements need not have memory
                return MemRef(Buffer("null", "global", 0), types.dtype_of(type_))
            buffer, offset, _ = self.find(value)
            return MemRef(buffer, types.dtype_of(type_), offset=offset)
        return struct.unpack("<d", struct.pack("<q", value))[0] if isinstance(type_, ir.F64Type) else value

    # --- order ------------------------------------------------------------------------------

    def wait(self, device: int, stream: int, other: int) -> None:
        self._count("wait")
        self.log.append((f"wait for {other}", stream))

    def mark(self, device: int, stream: int) -> Any:
        self._count("mark")
        return len(self.log)

    def reached(self, event: Any) -> bool:
        self._count("reached")
        return True

    # --- products and graphs ----------------------------------------------------------------

    @_alone
    def product(self, device: int, product: Gemm, stream: int) -> None:
        if product.bias:
            self._count("epilogue")
        self._count("product")
        dtype, output = (dtype_named(name).numpy for name in (product.dtype, product.output))
        wide = np.float64 if dtype.itemsize == 8 else np.float32
        for k in range(product.batch):
            p = product
            a = self._matrix(p.a, p.lda, p.stride_a * k, (p.m, p.k), p.trans_a, dtype)
            b = self._matrix(p.b, p.ldb, p.stride_b * k, (p.k, p.n), p.trans_b, dtype)
            places, view, buffer = self._places(p.c, p.ldc, p.stride_c * k, (p.m, p.n), False, output)
            found = a.astype(wide) @ b.astype(wide)
            if p.bias:
                bias = self._matrix(p.bias, p.m, 0, (p.m, 1), False, output)
                found = found + bias.astype(wide)
            if p.beta:
                found = found + p.beta * view[places].astype(wide)
            view[places] = found.astype(output)
            for byte in range(output.itemsize):
                buffer.defined[places * output.itemsize + byte] = True
        self.log.append(("product", stream))

    def _matrix(
        self, pointer: int, step: int, skip: int, dims: tuple[int, int], swapped: bool, dtype: np.dtype
    ) -> np.ndarray:
        if 0 in dims:
            return np.empty(dims, dtype)  # wherever the pointer points
        places, view, buffer = self._places(pointer, step, skip, dims, swapped, dtype)
        assert buffer.defined[places * view.itemsize].all(), "a product reads what nobody wrote"
        return view[places]

    def _places(
        self, pointer: int, step: int, skip: int, dims: tuple[int, int], swapped: bool, dtype: np.dtype
    ) -> tuple[np.ndarray, np.ndarray, Buffer]:
        """Where the elements of a matrix are that is stored column by column."""
        rows, columns = dims
        assert step >= max(columns if swapped else rows, 1), "columns overlap"
        down, right = (step, 1) if swapped else (1, step)
        buffer, offset, _ = self.find(pointer)
        first = offset // dtype.itemsize + skip
        places = first + np.arange(rows)[:, None] * down + np.arange(columns) * right
        last = (buffer.slot_bytes // dtype.itemsize) - 1
        assert not places.size or (places.min() >= 0 and places.max() <= last), "out of bounds"
        return places, buffer.raw.view(dtype), buffer

    @_alone
    def graph(self, device: int, nodes: Sequence[LaunchNode]) -> list[LaunchNode]:
        self._count("graph")
        return [self._copied(node) for node in nodes]

    @_alone
    def update(self, graph: list[LaunchNode], index: int, node: LaunchNode) -> None:
        self._count("update")
        graph[index] = self._copied(node)

    @_alone
    def replay(self, device: int, graph: list[LaunchNode], stream: int) -> None:
        self._count("replay")
        for node in graph:
            self.run_node(node, stream)

    def drop(self, graph: list[LaunchNode]) -> None:
        self._count("drop")

    @staticmethod
    def _copied(node: LaunchNode) -> LaunchNode:
        return replace(node, arguments=ArgumentBlock(node.arguments.values), free=[])
