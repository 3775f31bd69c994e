"""What the rest asks of a CUDA driver, and which driver this process has.

A driver is found once, on first use, and its absence is remembered with the reason. An error after
which a CUDA context cannot be used any more (an illegal address, say) is remembered as well: from
then on nothing here touches the device, in whatever process-wide state it is.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from .argument_block import ArgumentBlock
    from .products import Gemm

LEGACY_STREAM = 1  # the default stream, by the handle that needs no context


class CudaError(Exception):
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


class NoEpilogueError(CudaError):
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

    Every method may raise CudaError. Only `to_host` waits for the device.

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
        """What launches kernels without Python."""

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


class _Process:
    """The driver of this process, or why there is none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.driver: Driver | None = None
        self.absent = ""
        self.lost = ""
        self.modules: dict[tuple[int, bytes], Any] = {}


_process = _Process()


def driver() -> Driver:
    """The driver; raises CudaError where there is none, or where the device is lost."""
    if _process.lost:
        raise CudaError(_process.lost, "lost", sticky=True)
    found = _process.driver
    if found is None:
        found = _find()
    return found


def _find() -> Driver:
    with _process.lock:
        if _process.driver is None and not _process.absent:
            from .bindings import BindingsDriver

            try:
                _process.driver = BindingsDriver()
            except CudaError as error:
                _process.absent = error.what
        if _process.driver is None:
            raise CudaError(_process.absent, "absent")
        return _process.driver


def module_of(device: int, image: bytes) -> Any:
    """The module of some code on a device, loaded once per process.

    Modules stay: kernels of them may still run when nobody can call them any more. The same graph
    gives the same code, so there are no more of them than there are different kernels.
    """
    found = _process.modules.get((device, image))
    if found is None:
        found = _process.modules[device, image] = driver().load(device, image)
    return found


def lose(error: CudaError) -> None:
    """Remember a sticky error: nothing on the device works from now on."""
    _process.lost = f"the device was lost to an earlier error: {error.what}"


def unavailable(device: str) -> str:
    """Why nothing can run on a device; "" = it can."""
    try:
        count = driver().device_count()
    except CudaError as error:
        return error.what
    return "" if index_of(device) < count else f"there are {count} devices, and no {device}"


@contextmanager
def using(other: Driver | None, absent: str = "") -> Iterator[None]:
    """Another driver, or none for the given reason, for the time of a ``with`` block."""
    before = _process.driver, _process.absent, _process.lost, _process.modules
    _process.driver, _process.absent, _process.lost, _process.modules = other, absent, "", {}
    try:
        yield
    finally:
        _process.driver, _process.absent, _process.lost, _process.modules = before


@functools.cache
def index_of(device: str) -> int:
    """The index of a device such as ``"cuda:1"``."""
    return int(device.partition(":")[2] or 0)
