"""Device arrays inside of the executor, whatever library they came from."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialect.errors import ArgumentError, DeviceError, DTypeError
from ....dialect.importers.tracing.leaves import register_leaf_type
from ....dialect.ir.device import DeviceTensor, index_of
from ....dialect.ir.dtypes import dtype_of
from ..active_call import current_call
from ..nvidia.driver_api import DriverError
from .dlpack import row_major
from .libraries import Library, Place, library_of

if TYPE_CHECKING:
    from ..call import DeviceCall


@register_leaf_type
class DeviceArray(DeviceTensor):
    """A tensor of a device, during one call; its elements are there, on the host, or both.

    What tier 0 computes is on the host, and goes to the device when a kernel or the caller asks.

    Attributes:
        library: whose array it is.
        owner: the memory on the device, as an object of the library; None = there is none yet.
        stream: where the owner's content is made, if its library says so.
        host: the elements on the host, where they have been copied or computed.
    """

    __slots__ = (
        "_dense", "_kept", "_pointer", "host", "library", "owner", "requires_grad", "stream",
    )  # fmt: skip

    def __init__(
        self, device: str, shape: tuple[int, ...], dtype: np.dtype, strides: tuple[int, ...],
        library: Library, owner: Any = None, pointer: int | None = None,
    ) -> None:  # fmt: skip
        self.device, self.shape, self.dtype, self.strides = device, shape, dtype, strides
        self.library, self.owner, self._pointer = library, owner, pointer
        self.stream: int | None = None
        self.host: np.ndarray | None = None
        self.requires_grad = False
        self._kept = True
        self._dense: bool | None = None

    @classmethod
    def of_place(cls, place: Place, library: Library) -> DeviceArray:
        """An array of a library."""
        made = cls(
            f"cuda:{place.device}", place.shape, place.dtype, place.strides, library,
            place.holder, place.pointer,
        )  # fmt: skip
        made.stream, made.requires_grad = place.stream, place.requires_grad
        return made

    @classmethod
    def of_host(
        cls, array: np.ndarray, device: str, library: Library, *, written: bool = False
    ) -> DeviceArray:
        """Host elements that are to be on a device; contiguous there.

        ``written``: they may change, so that no copy of them stays valid.
        """
        strides = row_major(array.shape, array.dtype.itemsize)
        made = cls(device, array.shape, array.dtype, strides, library)
        made.host, made._kept, made._dense = array, not written, True
        return made

    @classmethod
    def new(
        cls, index: int, shape: tuple[int, ...], dtype: np.dtype, library: Library, stream: int
    ) -> DeviceArray:
        """A new contiguous array of a library, whose content does not matter yet."""
        owner, pointer = library.empty(index, shape, dtype, stream)
        strides = row_major(shape, dtype.itemsize)
        made = cls(f"cuda:{index}", shape, dtype, strides, library, owner, pointer)
        made._dense = True
        return made

    @property
    def is_contiguous(self) -> bool:
        found = self._dense
        if found is None:
            found = self._dense = DeviceTensor.is_contiguous.fget(self)  # type: ignore[attr-defined]
        return found

    @property
    def address(self) -> int | None:
        return self._pointer

    @property
    def kind(self) -> Hashable:
        return self.dtype, len(self.shape), self.device

    def pointer(self, call: DeviceCall) -> int:
        """Where the elements are on the device; copied there first if need be."""
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
        """The elements on the host; copied there first if need be.

        ``written``: they may be changed there, after which what the device has is stale.
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
        """The truth of one element; waits for it."""
        return bool(self.on_host(current_call()))

    def place(self) -> Place:
        """Where the elements are on the device."""
        assert self._pointer is not None
        index = index_of(self.device)
        return Place(
            index, self._pointer, self.shape, self.strides, self.dtype, self.stream, self.owner
        )


def as_leaf(array: Any) -> DeviceArray | None:
    """A foreign device array as a leaf of arguments; None for what is none.

    Raises ArgumentError for arrays of such a library in the host's memory, and DTypeError.
    """
    library = library_of(array)
    if library is None:
        return None
    try:
        place = library.place(array)
    except ValueError as error:
        raise DTypeError(f"an array of {library.name} cannot be read: {error}") from None
    except DriverError as error:
        raise DeviceError(f"an array of {library.name} cannot be read: {error.what}") from None
    if place is None:
        raise ArgumentError(
            f"an array of {library.name} that is in the host's memory was passed",
            hint="pass it as a NumPy array: np.asarray(x)",
        )
    dtype_of(place.dtype)
    return DeviceArray.of_place(place, library)
