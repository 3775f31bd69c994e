"""Array libraries: how their arrays are read, and how results become their arrays.

CuPy and torch reuse memory in the order of their current stream, so kernels run on that stream, and
results lie in the library's memory. Any other array that tells its place by
``__cuda_array_interface__`` or DLPack gets results in our own memory, which ``from_dlpack`` of its
library turns into an array.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ....dialect.errors import ArgumentError
from ....dialect.ir.device import index_of
from ....dialect.ir.dtypes import BF16
from ....dialect.ir.gradient_mode import requires_grad
from ...exchange.dlpack import CUDA, Loan, read, row_major
from ...memory.offsets import Refused
from ..nvidia.driver import driver
from ..nvidia.driver_api import LEGACY_STREAM, DriverError
from .dlpack_exchange import Exchange, functions_of, verify


class DeviceMemory(NamedTuple):
    """The memory of an array on a device.

    Attributes:
        device: index of the device.
        pointer: address of the first element.
        shape: the sizes.
        strides: the strides in bytes.
        dtype: the dtype.
        stream: the stream that makes the content; None = the content is there already, or the
            library orders all its uses.
        holder: an object that keeps the memory alive.
        requires_grad: the array's flag; False in libraries without gradients.
    """

    device: int
    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: np.dtype
    stream: int | None
    holder: Any
    requires_grad: bool = False


class OwnMemory:
    """Device memory that returns to the driver when this object is freed."""

    __slots__ = ("_driver", "index", "pointer", "stream")

    def __init__(self, index: int, nbytes: int, stream: int) -> None:
        self._driver = driver()
        self.index, self.stream = index, stream
        self.pointer = self._driver.allocate(index, nbytes, stream)

    def __del__(self) -> None:
        pointer, self.pointer = getattr(self, "pointer", 0), 0
        if pointer:
            try:
                self._driver.free(self.index, pointer, self.stream)
            except Exception:  # the device is lost, or the process ends: there is nothing to free
                return


class Library:
    """The operations of an array library.

    This class serves all libraries with ``__cuda_array_interface__`` or DLPack.

    Args:
        name: name of the library.
        namespace: the module with its ``from_dlpack``; None = there is none.

    Attributes:
        ordered: True = the library reuses memory in the order of the stream on which kernels run,
            so the executor need not keep memory until they have ended.
    """

    ordered = False

    def __init__(self, name: str, namespace: Any = None) -> None:
        self.name, self.namespace = name, namespace

    def place(self, array: Any) -> DeviceMemory | None:
        """The place of an array of the library; None if it is not on a CUDA device.

        Raises ValueError for a DLPack type without a dtype, DriverError if the driver fails, and
        ArgumentError for a tensor that requires gradients.
        """
        interface = getattr(array, "__cuda_array_interface__", None)
        if interface is not None and _dtype(interface["typestr"]).kind != "V":
            return _of_interface(interface, array)
        if not hasattr(array, "__dlpack_device__") or array.__dlpack_device__()[0] != CUDA:
            return None
        capsule = array.__dlpack__(stream=LEGACY_STREAM)
        index, pointer, shape, strides, dtype = read(capsule)
        return DeviceMemory(index, pointer, shape, strides, dtype, None, (array, capsule))

    def exchange(self) -> Exchange:
        """The way in which emitted code reads and makes arrays; raises Refused if only Python can."""
        raise Refused(f"arrays of {self.name} are read by Python")

    def stream(self, index: int) -> int:
        """The caller's current stream on a device."""
        return LEGACY_STREAM

    def empty(self, index: int, shape: tuple[int, ...], dtype: np.dtype, stream: int) -> tuple[Any, int]:
        """A new contiguous, uninitialised array (or its memory), and the address of the memory."""
        nbytes = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        memory = OwnMemory(index, nbytes, stream)
        return memory, memory.pointer

    def result(self, owner: Any, shape: tuple[int, ...], dtype: np.dtype, stream: int) -> Any:
        """The array of the library for an ``owner`` from `empty` that kernels on ``stream`` fill.

        Raises ArgumentError if the library has no ``from_dlpack``.
        """
        if not hasattr(self.namespace, "from_dlpack"):
            raise ArgumentError(
                f"results cannot become arrays of {self.name}, which has no from_dlpack",
                hint="pass CuPy, torch or JAX arrays",
            )
        index, pointer = owner.index, owner.pointer

        def ready(other: int) -> None:
            if other != stream:
                driver().wait(index, other, stream)

        return self.namespace.from_dlpack(Loan(index, pointer, shape, dtype, owner, ready))

    def to_host(self, place: DeviceMemory, stream: int) -> np.ndarray:
        """Copy an array to host memory, and wait for the copy."""
        lowest, nbytes = _extent(place)
        raw = np.empty(nbytes, np.uint8)
        if nbytes:
            driver().to_host(place.device, raw, place.pointer - lowest, stream)
        return np.ndarray(place.shape, place.dtype, raw, lowest, place.strides)

    def from_host(self, array: np.ndarray, index: int, stream: int) -> tuple[Any, int]:
        """Copy an array to a device on the stream; returns as `empty` does."""
        owner, pointer = self.empty(index, array.shape, array.dtype, stream)
        if array.nbytes:
            driver().to_device(index, pointer, np.asarray(array, order="C"), stream)
        return owner, pointer


@functools.cache
def _dtype(name: str) -> np.dtype:
    return np.dtype(name)


def _of_interface(interface: dict[str, Any], array: Any) -> DeviceMemory:
    dtype = _dtype(interface["typestr"])
    shape = tuple(interface["shape"])
    strides = interface.get("strides") or row_major(shape, dtype.itemsize)
    pointer, stream = interface["data"][0], interface.get("stream")
    index = driver().device_of(pointer) if pointer else 0
    return DeviceMemory(index, pointer, shape, tuple(strides), dtype, stream, array)


def _extent(place: DeviceMemory) -> tuple[int, int]:
    """The memory that an array spans: bytes before its first element, and bytes in all."""
    if 0 in place.shape:
        return 0, 0
    steps = [(n - 1) * s for n, s in zip(place.shape, place.strides, strict=True)]
    lowest = -sum(s for s in steps if s < 0)
    return lowest, lowest + sum(s for s in steps if s > 0) + place.dtype.itemsize


class NumPy(Library):
    """NumPy, for host arrays that are passed to a function for a device: results go to the host."""

    def __init__(self) -> None:
        super().__init__("numpy")

    def result(self, owner: Any, shape: tuple[int, ...], dtype: np.dtype, stream: int) -> np.ndarray:
        """The result, copied to the host; a NumPy scalar for rank 0."""
        place = DeviceMemory(owner.index, owner.pointer, shape, row_major(shape, dtype.itemsize), dtype, None, owner)
        array = self.to_host(place, stream)
        return array if shape else array[()]


class Pooled(Library):
    """A library with a memory pool: kernels run on its current stream, and results are its arrays.

    Args:
        name: name of the library's module, which is imported already.
    """

    ordered = True

    def __init__(self, name: str) -> None:
        super().__init__(name, sys.modules[name])

    def result(self, owner: Any, shape: tuple[int, ...], dtype: np.dtype, stream: int) -> Any:
        return owner


class CuPy(Pooled):
    """CuPy: arrays of its memory pool, on its current stream."""

    def __init__(self) -> None:
        super().__init__("cupy")

    def stream(self, index: int) -> int:
        with self.namespace.cuda.Device(index):
            return self.namespace.cuda.get_current_stream().ptr or LEGACY_STREAM

    def empty(self, index: int, shape: tuple[int, ...], dtype: np.dtype, stream: int) -> tuple[Any, int]:
        with self.namespace.cuda.Device(index), _errors(self.name):
            owner = self.namespace.empty(shape, dtype)
        return owner, owner.data.ptr

    def to_host(self, place: DeviceMemory, stream: int) -> np.ndarray:
        with _errors(self.name):
            return self.namespace.asnumpy(place.holder)

    def from_host(self, array: np.ndarray, index: int, stream: int) -> tuple[Any, int]:
        with self.namespace.cuda.Device(index), _errors(self.name):
            owner = self.namespace.asarray(np.asarray(array, order="C"))
        return owner, owner.data.ptr


class Torch(Pooled):
    """torch: tensors of its caching allocator, on its current stream."""

    def __init__(self) -> None:
        super().__init__("torch")
        self._dtypes: dict[Any, np.dtype] = {}
        self._named: dict[np.dtype, Any] = {}

    def place(self, array: Any) -> DeviceMemory | None:
        if not array.is_cuda:
            return None
        flag = array.requires_grad
        if requires_grad(array):
            raise ArgumentError(
                "a tensor that requires gradients was passed: there are none to give", hint="pass x.detach()"
            )
        if flag:
            array = array.detach()  # torch refuses to export such tensors
        if array.is_neg():  # a lazy view: memory holds the elements with the opposite sign
            array = array.resolve_neg()
        dtype = self._numpy(array.dtype)
        strides = tuple(s * dtype.itemsize for s in array.stride())
        index = array.device.index
        shape = tuple(array.shape)
        return DeviceMemory(index, array.data_ptr(), shape, strides, dtype, None, array, flag)

    def exchange(self) -> Exchange:
        kind = self.namespace.Tensor
        describe, stream = functions_of(kind)
        return Exchange(
            kind,
            describe,
            stream,
            self.namespace.empty_strided,
            ("dtype", "device"),
            lambda dtype, index: (self._torch(dtype), self.namespace.device(f"cuda:{index}")),
            false=("requires_grad",),
            negative=("is_neg",),
        )

    def stream(self, index: int) -> int:
        return self.namespace.cuda.current_stream(index).cuda_stream or LEGACY_STREAM

    def empty(self, index: int, shape: tuple[int, ...], dtype: np.dtype, stream: int) -> tuple[Any, int]:
        with _errors(self.name):
            owner = self.namespace.empty(shape, dtype=self._torch(dtype), device=f"cuda:{index}")
        return owner, owner.data_ptr()

    def to_host(self, place: DeviceMemory, stream: int) -> np.ndarray:
        with _errors(self.name):
            if place.dtype == BF16.numpy:
                bits = place.holder.view(self.namespace.int16)
                return bits.cpu().numpy().view(BF16.numpy)
            return place.holder.cpu().numpy()

    def from_host(self, array: np.ndarray, index: int, stream: int) -> tuple[Any, int]:
        dense = np.array(array, order="C")  # torch wants memory that may be written
        is_bfloat = dense.dtype == BF16.numpy
        with _errors(self.name):
            owner = self.namespace.from_numpy(dense.view(np.int16) if is_bfloat else dense)
            owner = owner.to(f"cuda:{index}")
        owner = owner.view(self.namespace.bfloat16) if is_bfloat else owner
        return owner, owner.data_ptr()

    def _numpy(self, dtype: Any) -> np.dtype:
        numpy_dtype = self._dtypes.get(dtype)
        if numpy_dtype is None:
            name = str(dtype).removeprefix("torch.")
            numpy_dtype = BF16.numpy if name == "bfloat16" else np.dtype(name)
            self._dtypes[dtype] = numpy_dtype
        return numpy_dtype

    def _torch(self, dtype: np.dtype) -> Any:
        torch_dtype = self._named.get(dtype)
        if torch_dtype is None:
            name = "bfloat16" if dtype == BF16.numpy else dtype.name
            torch_dtype = self._named[dtype] = getattr(self.namespace, name)
        return torch_dtype


_LOST = ("illegal memory access", "misaligned address", "launch failure", "device-side assert")


@contextmanager
def _errors(name: str) -> Iterator[None]:
    """Turn any exception of a library in a ``with`` block into a DriverError."""
    try:
        yield
    except Exception as error:
        said = str(error).partition("\n")[0]
        raise DriverError(
            f"{name} fails: {said}",
            "library",
            sticky=any(words in str(error) for words in _LOST),
            transient="out of memory" in str(error).lower(),
        ) from error


NUMPY = NumPy()
_known: dict[str, Library] = {}
_SPECIAL = {"cupy": CuPy, "torch": Torch}


def library_of(array: Any) -> Library | None:
    """The library of a device array; None for any other object."""
    root = type(array).__module__.partition(".")[0]
    library = _known.get(root)
    if library is None:
        if root in _SPECIAL:
            library = _SPECIAL[root]()
        elif hasattr(array, "__cuda_array_interface__") or _is_dlpack(array):
            own = getattr(array, "__array_namespace__", None)
            library = Library(root, own() if own else sys.modules.get(root))
        else:
            return None
        _known[root] = library
    return library


def exchanges(device: str) -> tuple[list[Exchange], list[str]]:
    """The verified exchanges of the libraries met so far, and why other libraries have none.

    If a library cannot make arrays on the device to verify its exchange, there are no exchanges,
    and that is the only reason.
    """
    exchanges: list[Exchange] = []
    reasons: list[str] = []
    for library in tuple(_known.values()):
        try:
            exchanges.append(_verified(library, index_of(device)))
        except Refused as reason:
            reasons.append(str(reason))
        except DriverError as error:
            return [], [error.what]
    return exchanges, reasons


@functools.cache
def _verified(library: Library, device: int) -> Exchange:
    exchange = library.exchange()
    verify(exchange, library, device)
    return exchange


def _is_dlpack(array: Any) -> bool:
    return hasattr(array, "__dlpack__") and hasattr(array, "__dlpack_device__")
