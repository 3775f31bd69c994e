"""The interface of a CUDA driver, as the rest of the executor uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....dialect.dataclass import dataclass

if TYPE_CHECKING:
    from ..launching.argument_block import ArgumentBlock
    from .gemm import Gemm

LEGACY_STREAM = 1  # CU_STREAM_LEGACY, the handle of the default stream of any context


class DriverError(Exception):
    """An operation of a device failed; callers fall back to the host, and users see the reason.

    Attributes:
        what: what failed, as text.
        name: name of the driver's status, or a word of ours.
        sticky: True = the context is lost; nothing on this device works any more.
        transient: True = the operation may succeed next time, when memory may be free.
    """

    def __init__(self, what: str, name: str = "", *, sticky: bool = False, transient: bool = False) -> None:
        super().__init__(what)
        self.what, self.name, self.sticky, self.transient = what, name, sticky, transient


class NoEpilogueError(DriverError):
    """A library does not add the bias of a product; nothing has been started."""


@dataclass(frozen=True)
class LaunchNode:
    """One kernel launch, ready to go.

    Attributes:
        function: the kernel, from `Driver.function`.
        grid, block: numbers of blocks and of threads along x, y and z.
        shared: bytes of dynamic shared memory.
        arguments: the block with the values of the parameters.
        free: list to which ``arguments`` returns once the driver has read it.
    """

    function: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: ArgumentBlock
    free: list[ArgumentBlock]

    @property
    def shape(self) -> tuple:
        """A key of all that a CUDA graph cannot change: kernel, grid, block, shared memory."""
        return (id(self.function), self.grid, self.block, self.shared)


@dataclass(frozen=True)
class Direct:
    """The C functions of a driver that emitted code calls, by address.

    Attributes:
        launch: ``cuLaunchKernel``.
        current: ``cuCtxGetCurrent``.
        context: handle of the device's context, which ``current`` must give before a launch.
    """

    launch: int
    current: int
    context: int


class Driver(Protocol):
    """A CUDA driver. Devices are indices; streams and pointers are integers.

    Every method may raise DriverError. Only `to_host` waits for the device.

    Attributes:
        image: the stage of lowering whose output `load` takes (``"cubin"``).
    """

    image: str

    def device_count(self) -> int:
        """The number of devices."""

    def chip(self, device: int) -> str:
        """The architecture of a device, such as ``"sm_90"``."""

    def device_of(self, pointer: int) -> int:
        """The device whose memory a pointer points to."""

    def load(self, device: int, image: bytes) -> Any:
        """Load a module of kernels."""

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""

    def launch(self, device: int, node: LaunchNode, stream: int) -> None:
        """Start a kernel."""

    def direct(self, device: int) -> Direct:
        """The functions that launch kernels without Python."""

    def handle(self, device: int, function: Any, shared: int | None) -> int:
        """The handle of a kernel for `Direct.launch`.

        ``shared``: bytes of dynamic shared memory that its launches may use; None = as many as the
        device allows.
        """

    def allocate(self, device: int, nbytes: int, stream: int) -> int:
        """Allocate 256-byte aligned memory, which work on the stream may use from now on."""

    def free(self, device: int, pointer: int, stream: int) -> None:
        """Free memory once the stream has completed its present work."""

    def to_device(self, device: int, pointer: int, array: np.ndarray, stream: int) -> None:
        """Copy a C-contiguous array to a device; the array may change as soon as this returns."""

    def to_host(self, device: int, array: np.ndarray, pointer: int, stream: int) -> None:
        """Copy device memory into a C-contiguous array, and wait for the copy."""

    def copy(self, device: int, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device."""

    def wait(self, device: int, stream: int, other: int) -> None:
        """Let a stream wait for the present work of another stream."""

    def mark(self, device: int, stream: int) -> Any:
        """Record an event after the present work of a stream; returns the event."""

    def reached(self, event: Any) -> bool:
        """True if the device has reached an event; if so, the event is destroyed."""

    def product(self, device: int, product: Gemm, stream: int) -> None:
        """Start a library product; raises NoEpilogueError if the library does not add the bias."""

    def graph(self, device: int, nodes: Sequence[LaunchNode]) -> Any:
        """Make a CUDA graph of launches that run one after the other."""

    def update(self, graph: Any, index: int, node: LaunchNode) -> None:
        """Change the arguments of the launch at ``index`` of a graph, for later replays."""

    def replay(self, device: int, graph: Any, stream: int) -> None:
        """Launch a graph on a stream."""

    def drop(self, graph: Any) -> None:
        """Free a graph that will not be replayed again."""
