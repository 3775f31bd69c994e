"""Device arrays inside the executor, whichever library made them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialect.errors import ArgumentError, DeviceError, DTypeError, ProfuseError
from ....dialect.ir.device import DeviceTensor, index_of
from ....dialect.ir.dtypes import dtype_of
from ....dialect.trees.leaves import register_leaf_type
from ...exchange.dlpack import row_major
from ..active_call import current_call
from ..nvidia.driver_api import DriverError
from .libraries import DeviceMemory, Library, library_of

if TYPE_CHECKING:
    from ..call import DeviceCall


@register_leaf_type
class DeviceArray(DeviceTensor):
    """A device tensor during one call; its elements are on the device, on the host, or both.

    Tier 0 computes on the host. Its results are copied to the device when a kernel or the caller
    needs them there.

    Attributes:
        library: the library of the array.
        owner: the library's object that owns the memory on the device; None = no such memory yet.
        stream: the stream that makes the content of ``owner``; None = the library does not say.
        host: the elements on the host, if they have been copied or computed there; else None.
    """

    __slots__ = ("_dense", "_kept", "_pointer", "host", "library", "owner", "requires_grad", "stream")

    def __init__(
        self,
        device: str,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...],
        library: Library,
        owner: Any = None,
        pointer: int | None = None,
    ) -> None:
        self.device, self.shape, self.dtype, self.strides = device, shape, dtype, strides
        self.library, self.owner, self._pointer = library, owner, pointer
        self.stream: int | None = None
        self.host: np.ndarray | None = None
        self.requires_grad = False
        self._kept = True
        self._dense: bool | None = None

    @classmethod
    def of_place(cls, place: DeviceMemory, library: Library) -> DeviceArray:
        """An array of a library, described by its place."""
        array = cls(
            f"cuda:{place.device}", place.shape, place.dtype, place.strides, library, place.holder, place.pointer
        )
        array.stream, array.requires_grad = place.stream, place.requires_grad
        return array

    @classmethod
    def of_host(cls, array: np.ndarray, device: str, library: Library, *, written: bool = False) -> DeviceArray:
        """An array of a device whose elements are on the host so far; contiguous on the device.

        ``written``: True = the host elements may change, so no copy of them on the device is kept.
        """
        strides = row_major(array.shape, array.dtype.itemsize)
        result = cls(device, array.shape, array.dtype, strides, library)
        result.host, result._kept, result._dense = array, not written, True
        return result

    @classmethod
    def new(cls, index: int, shape: tuple[int, ...], dtype: np.dtype, library: Library, stream: int) -> DeviceArray:
        """A new contiguous, uninitialised array of a library."""
        owner, pointer = library.empty(index, shape, dtype, stream)
        strides = row_major(shape, dtype.itemsize)
        array = cls(f"cuda:{index}", shape, dtype, strides, library, owner, pointer)
        array._dense = True
        return array

    @property
    def is_contiguous(self) -> bool:
        dense = self._dense
        if dense is None:
            dense = self._dense = DeviceTensor.is_contiguous.fget(self)  # type: ignore[attr-defined]
        return dense

    @property
    def address(self) -> int | None:
        return self._pointer

    @property
    def kind(self) -> Hashable:
        return self.dtype, len(self.shape), self.device

    def pointer(self, call: DeviceCall) -> int:
        """Address of the first element on the device; copies the elements there if necessary."""
        if self._pointer is not None:
            return self._pointer
        assert self.host is not None
        owner, pointer = call.upload(self)
        if self._kept:
            self.owner, self._pointer = owner, pointer
        else:
            call.keep(owner)
        return pointer

    def on_host(self, call: DeviceCall, *, written: bool = False) -> np.ndarray:
        """The elements on the host; copies them there if necessary.

        ``written``: True = the caller may change them, so the copy on the device is given up.
        """
        if self.host is None:
            self.host = call.download(self)
        if written:
            self.owner = self._pointer = None
            self.strides = row_major(self.shape, self.dtype.itemsize)
            self._kept, self._dense = False, True
        return self.host

    def own(self) -> DeviceArray:
        if self._kept or self.host is None:
            return self
        return DeviceArray.of_host(self.host.copy(), self.device, self.library, written=True)

    def __bool__(self) -> bool:
        """The truth of the only element, after waiting for it."""
        return bool(self.on_host(current_call()))

    def place(self) -> DeviceMemory:
        """The description of the memory on the device, which must exist."""
        assert self._pointer is not None
        index = index_of(self.device)
        return DeviceMemory(index, self._pointer, self.shape, self.strides, self.dtype, self.stream, self.owner)


def as_leaf(array: Any) -> DeviceArray | None:
    """A device array of another library as an argument leaf; None for any other object.

    Raises ArgumentError for an array of such a library in host memory, DTypeError for a dtype that
    Profuse lacks, and DeviceError if the array's library or the driver fails.
    """
    library = library_of(array)
    if library is None:
        return None
    try:
        place = library.place(array)
    except DriverError as error:
        raise DeviceError(f"an array of {library.name} cannot be read: {error.what}") from None
    except ProfuseError:
        raise
    except (ValueError, TypeError) as error:  # of a dtype that NumPy does not have
        raise DTypeError(f"an array of {library.name} cannot be read: {error}") from None
    if place is None:
        raise ArgumentError(
            f"an array of {library.name} that is in the host's memory was passed",
            hint="pass it as a NumPy array: np.asarray(x)",
        )
    dtype_of(place.dtype)
    return DeviceArray.of_place(place, library)
