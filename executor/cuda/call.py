"""One call of a function on device arrays: its stream, its memory, and its pending launches.

A call collects launches and starts them together, so that a plan of several kernels can be one CUDA
graph. It starts pending launches before a library product, and before results are read or returned.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from types import TracebackType
from typing import Any

import numpy as np

from ...dialect.ir.device import index_of
from ...dialect.reasons import Kind, Reason
from ..settings.events import Counters
from .active_call import active
from .exchange.arrays import DeviceArray
from .exchange.libraries import NUMPY, Library
from .launching.cuda_graphs import launch_all
from .launching.library_products import spread_bias
from .nvidia.driver import driver
from .nvidia.driver_api import LaunchNode, NoEpilogueError
from .nvidia.gemm import Gemm

# (device event, objects): kernels before the event may still use the objects' memory, although no
# call holds the objects any more.
_in_use: deque[tuple[Any, list[Any]]] = deque()


class DeviceCall:
    """One call on device arrays; a ``with`` block makes it the thread's `current_call`.

    Args:
        home: device on which new arrays are made.
        library: the library that makes the results.
        counters: counters of the executor that is called.
        slower: called with a reason why the call is slower than it might be.
    """

    def __init__(
        self, home: str, library: Library, counters: Counters, slower: Callable[[Reason], None] = lambda reason: None
    ) -> None:
        self.home, self.library, self.counters = home, library, counters
        self._slower = slower
        self._streams: dict[int, int] = {}
        self._pending: list[LaunchNode] = []
        self._pending_on = 0
        self._kept: list[Any] = []
        self._outer: DeviceCall | None = None

    def __enter__(self) -> DeviceCall:
        self._outer, active.call = active.call, self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        active.call = self._outer

    # --- streams ----------------------------------------------------------------------------

    def stream(self, index: int) -> int:
        """The caller's current stream on a device."""
        if index not in self._streams:
            self._streams[index] = self.library.stream(index)
        return self._streams[index]

    def join(self, array: DeviceArray) -> None:
        """Let the call's stream wait for an input whose library says which stream makes it.

        If the library of the results does not tell its current stream, the call itself runs on the
        stream of the first such input. Also keeps the input's memory, unless its library frees
        memory in stream order.
        """
        index = index_of(array.device)
        if array.stream is not None and not self.library.ordered:
            self._streams.setdefault(index, array.stream)
        if array.stream is not None and array.stream != self.stream(index):
            driver().wait(index, self.stream(index), array.stream)
        if not array.library.ordered:
            self.keep(array.owner)

    # --- memory -----------------------------------------------------------------------------

    def empty(self, index: int, shape: tuple[int, ...], dtype: np.dtype) -> DeviceArray:
        """A new contiguous, uninitialised array of the caller's library."""
        return DeviceArray.new(index, shape, dtype, self.library, self.stream(index))

    def keep(self, owner: Any) -> None:
        """Keep an object, and so its memory, until the kernels of the call have ended."""
        self._kept.append(owner)

    def upload(self, array: DeviceArray) -> tuple[Any, int]:
        """Copy an array's host elements to the device; returns the copy and its address.

        Counted as ``copies_to_device``.
        """
        assert array.host is not None
        self.counters.copies_to_device += 1
        index = index_of(array.device)
        return self.library.from_host(array.host, index, self.stream(index))

    def download(self, array: DeviceArray) -> np.ndarray:
        """A copy of an array on the host, counted; waits for all that makes it."""
        self.flush()
        self.counters.copies_to_host += 1
        self.counters.device_syncs += 1
        return array.library.to_host(array.place(), self.stream(index_of(array.device)))

    # --- work -------------------------------------------------------------------------------

    def launch(self, index: int, node: LaunchNode) -> None:
        """Add a kernel launch to the pending ones, which `flush` starts."""
        if self._pending and self._pending_on != index:
            self.flush()
        self._pending_on = index
        self._pending.append(node)

    def product(self, index: int, product: Gemm) -> None:
        """Start a library product after all pending launches.

        If the library does not add the bias, the output is filled with the bias first, and the
        product is added to it.
        """
        self.flush()
        current, stream = driver(), self.stream(index)
        try:
            current.product(index, product, stream)
        except NoEpilogueError as refused:
            self.counters.epilogue_misses += 1
            self._slower(Reason(Kind.BIAS_APART, detail=refused.what))
            current.product(index, spread_bias(current, index, product, stream), stream)
        self.counters.library_calls += 1

    def flush(self) -> None:
        """Start the pending launches."""
        nodes, self._pending = self._pending, []
        if nodes:
            launch_all(self._pending_on, nodes, self.stream(self._pending_on), self.counters)

    def finish(self) -> None:
        """Start the pending launches, and release the kept memory.

        Unless the library of the results is ``ordered``, memory is released only after the kernels
        have ended.
        """
        self.flush()
        if self._kept and not self.library.ordered:
            for index, stream in self._streams.items():
                _in_use.append((driver().mark(index, stream), self._kept))
        self._kept = []
        _let_go()

    def result(self, array: DeviceArray, inputs: set[int]) -> Any:
        """An output as an array of the caller's library; copied if it may share an input's memory.

        ``inputs``: ids of the owners of the inputs' memory.
        """
        self.flush()
        index = index_of(array.device)
        if array.address is not None and (id(array.owner) in inputs or not array.is_contiguous):
            array = self._copied(array, index)
        if array.address is None and self.library is NUMPY:
            return self._leave(array)
        owner = array.owner if array.address is not None else self.upload(array)[0]
        if self.library is NUMPY:
            self.counters.copies_to_host += 1
            self.counters.device_syncs += 1
        return self.library.result(owner, array.shape, array.dtype, self.stream(index))

    def _leave(self, array: DeviceArray) -> Any:
        """The elements of a result that is on the host and has to stay there."""
        elements = np.array(array.on_host(self), order="C")
        return elements if elements.ndim else elements[()]

    def _copied(self, array: DeviceArray, index: int) -> DeviceArray:
        if not array.is_contiguous:
            return DeviceArray.of_host(array.on_host(self), array.device, self.library)
        copy = self.empty(index, array.shape, array.dtype)
        nbytes = array.size * array.itemsize
        if nbytes:
            driver().copy(index, copy.pointer(self), array.pointer(self), nbytes, self.stream(index))
        return copy


def _let_go() -> None:
    """Release the memory that the device no longer uses."""
    for _ in range(len(_in_use)):
        try:
            event, objects = _in_use.popleft()
        except IndexError:  # another thread has removed the entry
            return
        if not driver().reached(event):
            _in_use.append((event, objects))
