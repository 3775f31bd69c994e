"""The interface of a CUDA driver, as the rest of the executor uses it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from ....dialect.dataclass import dataclass

if TYPE_CHECKING:
    from ..launching.argument_block import ArgumentBlock
    from ..launching.products import Gemm

LEGACY_STREAM = 1  # the default stream, by the handle that needs no context


class DriverError(Exception):
    """Something did not work on a device; callers fall back, users see it as a reason.

    Attributes:
        name: of the driver's result, or a word of ours.
        sticky: the context is lost: nothing on this device works any more.
        transient: it may work next time, as memory may be free then.
    """

    def __init__(
        self, what: str, name: str = "", *, sticky: bool = False, transient: bool = False
    ) -> None:
        super().__init__(what)
        self.what, self.name, self.sticky, self.transient = what, name, sticky, transient


class NoEpilogueError(DriverError):
    """A library does not add the bias of a product; nothing has been started."""


@dataclass(frozen=True)
class Node:
    """One kernel launch, ready to go.

    Attributes:
        function: as returned by `Driver.function`.
        grid, block: x, y and z.
        shared: bytes of dynamic shared memory.
        arguments: values of the parameters.
        free: where the block of arguments goes once it has been read.
    """

    function: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: ArgumentBlock
    free: list[ArgumentBlock]

    @property
    def shape(self) -> tuple:
        """All but the arguments."""
        return (id(self.function), self.grid, self.block, self.shared)


@dataclass(frozen=True)
class Direct:
    """Functions of a driver that emitted code calls by itself; C functions, by address.

    Attributes:
        launch: ``cuLaunchKernel``.
        current: ``cuCtxGetCurrent``.
        context: what the latter gives where a device's context is the thread's.
    """

    launch: int
    current: int
    context: int


class Driver(Protocol):
    """A CUDA driver; devices by index, streams and pointers as integers.

    Every method may raise DriverError. Only `to_host` waits for the device.

    Attributes:
        image: the stage whose text or code `load` takes (``"cubin"``).
    """

    image: str

    def device_count(self) -> int:
        """How many devices there are."""

    def chip(self, device: int) -> str:
        """Such as ``"sm_90"``."""

    def device_of(self, pointer: int) -> int:
        """The device whose memory a pointer points to."""

    def load(self, device: int, image: bytes) -> Any:
        """A module of kernels."""

    def function(self, module: Any, name: str) -> Any:
        """A kernel of a module."""

    def launch(self, device: int, node: Node, stream: int) -> None:
        """Start a kernel."""

    def direct(self, device: int) -> Direct:
        """The functions that launch kernels without Python."""

    def handle(self, device: int, function: Any, shared: int | None) -> int:
        """A kernel as `Direct.launch` takes it, allowed so many bytes of dynamic shared memory, or
        as many as a block can have."""

    def allocate(self, device: int, nbytes: int, stream: int) -> int:
        """Memory that may be used on the stream from now on, 256-byte aligned."""

    def free(self, device: int, pointer: int, stream: int) -> None:
        """Give memory back once the stream has come so far."""

    def to_device(self, device: int, pointer: int, array: np.ndarray, stream: int) -> None:
        """Copy a C-contiguous array; it may change as soon as this returns."""

    def to_host(self, device: int, array: np.ndarray, pointer: int, stream: int) -> None:
        """Copy into a C-contiguous array, and wait until that is done."""

    def copy(self, device: int, target: int, source: int, nbytes: int, stream: int) -> None:
        """Copy within a device."""

    def wait(self, device: int, stream: int, other: int) -> None:
        """Let a stream wait for all that another one has been given so far."""

    def mark(self, device: int, stream: int) -> Any:
        """An event behind all that the stream has been given so far."""

    def reached(self, event: Any) -> bool:
        """Whether the device has come to an event."""

    def product(self, device: int, product: Gemm, stream: int) -> None:
        """Start a matrix product of the library; NoEpilogueError if it does not add the bias."""

    def graph(self, device: int, nodes: Sequence[Node]) -> Any:
        """Launches, one after the other, as one thing to launch."""

    def update(self, graph: Any, index: int, node: Node) -> None:
        """Give a launch of a graph other arguments, for later replays."""

    def replay(self, device: int, graph: Any, stream: int) -> None:
        """Start a graph."""

    def drop(self, graph: Any) -> None:
        """Free a graph that is not replayed any more."""
