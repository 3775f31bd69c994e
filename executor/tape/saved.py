"""Arrays that nodes keep: as they are with a count of writes, or packed by functions of users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, GradientError, Loc
from ...dialect.importers.numpy.tracing.captures import checksum
from .array import Array, Version
from .node import FIRST, SPECIAL, TAPE, WRITES, location

Pack = Callable[[Any], Any]


class ContentVersion:
    """Stands for a `Version` of an array that nobody counts the writes to: by its contents."""

    __slots__ = ("_array",)
    place = None

    def __init__(self, array: np.ndarray) -> None:
        self._array = array
        WRITES.last = FIRST  # nobody says when it is written to

    @property
    def count(self) -> int:
        """A number that tells whether elements have changed."""
        return checksum(self._array)


Versions = list[tuple[Version | ContentVersion, int]]


class Packed:
    """A saved array in the form that a user's function has given it.

    Attributes:
        shape, dtype: of the array.
    """

    __slots__ = ("_packed", "_unpack", "dtype", "shape")

    def __init__(self, array: Any, pack: Pack, unpack: Pack) -> None:
        self.shape, self.dtype, self._unpack = array.shape, array.dtype, unpack
        self._packed = pack(array)

    def has_memory_of(self, array: Any) -> bool:
        """True if a user has packed an array as itself, or as a view."""
        packed = self._packed.data if type(self._packed) is Array else self._packed
        return isinstance(packed, np.ndarray) and np.may_share_memory(packed, array)

    def array(self) -> Any:
        """The array again; raises GradientError for one of another shape or dtype."""
        array = self._unpack(self._packed)
        array = array.data if type(array) is Array else np.asarray(array)[()]
        if array.shape != self.shape or array.dtype != self.dtype:
            raise GradientError(
                f"unpacking gives {array.dtype} of shape {array.shape} for a saved array of "
                f"{self.dtype} with shape {self.shape}",
                hint="have unpack return what pack was given",
            )
        return array


def keep(data: Any, array: Any, versions: Versions, *, owned: bool = False) -> Any:
    """The part of an operand or a result that a node keeps.

    Args:
        data: the elements, an ndarray or a NumPy scalar; others are kept as they are.
        array: the `Array` that has them, if one has.
        versions: gets the count of writes.
        owned: nobody else can write to the elements.
    """
    if not isinstance(data, (np.ndarray, np.generic)):
        return data
    if SPECIAL and TAPE.packing:
        return _packed(data, array, versions, owned)
    if type(array) is Array:
        version = array.version
        versions.append((version, version.count))
    elif type(data) is np.ndarray and data.flags.writeable and not owned:
        return data.copy()  # nobody can tell whether it is written to
    if SPECIAL and TAPE.anomalies and type(data) is np.ndarray:
        contents = ContentVersion(data)
        versions.append((contents, contents.count))
    return data


def _packed(data: Any, array: Any, versions: Versions, owned: bool) -> Packed:
    """What a node keeps where users pack; that which a pack function returns as it is may be written to."""
    if type(array) is not Array and type(data) is np.ndarray and data.flags.writeable and not owned:
        data = data.copy()
    packed = Packed(data, *TAPE.packing[-1])
    if type(array) is Array and packed.has_memory_of(data):
        version = array.version
        versions.append((version, version.count))
    return packed


def check(versions: Versions, what: str, loc: Loc | None) -> None:
    """Raise GradientError if memory was written to since a node has kept it."""
    for version, count in versions:
        if version.count != count:
            raise overwritten(version, what, loc)


def overwritten(version: Version | ContentVersion, what: str, loc: Loc | None) -> GradientError:
    """The error for memory that was written to since a node has kept it."""
    where = "" if version.place is None else f", at {location(*version.place)}"
    return GradientError(
        f"an array that the gradient of {what} needs was written to afterwards{where}",
        loc=loc,
        hint="write to a copy: y = x.copy()",
    )


def freed(what: str, loc: Loc | None) -> GradientError:
    """The error for a node that runs a second time without what it needs."""
    return GradientError(
        f"what the gradient of {what} needs was freed by an earlier backward",
        loc=loc,
        hint="pass retain_graph=True to the earlier one",
    )


@contextmanager
def saved_arrays_hooks(pack: Pack, unpack: Pack) -> Iterator[None]:
    """Have nodes that are made in a ``with`` block keep what ``pack`` makes of arrays.

    Args:
        pack: is called with each array, an ndarray or a NumPy scalar, that a gradient will need,
            when it is saved; what it returns is kept instead.
        unpack: is called with that when the gradient is computed, and returns the array.

    Inner blocks replace outer ones. Raises ArgumentError for what cannot be called.
    """
    if not (callable(pack) and callable(unpack)):
        raise ArgumentError("saved_arrays_hooks takes two functions: pack and unpack")
    TAPE.packing.append((pack, unpack))
    TAPE.special = True
    SPECIAL.append(pack)
    try:
        yield
    finally:
        SPECIAL.pop()
        TAPE.packing.pop()
        TAPE.special = bool(TAPE.packing) or TAPE.anomalies


@contextmanager
def detect_anomaly() -> Iterator[None]:
    """Check what this thread does with gradients in a ``with`` block; slow.

    A gradient rule that makes a NaN of gradients without one raises GradientError at the line of
    the forward operation. Saved arrays have checksums, so that writes are found which nothing
    counts, as those to ``x.data``; what is saved outside of the block has none.
    """
    before, TAPE.anomalies = TAPE.anomalies, True
    TAPE.special = True
    SPECIAL.append(detect_anomaly)
    try:
        yield
    finally:
        SPECIAL.pop()
        TAPE.anomalies = before
        TAPE.special = bool(TAPE.packing) or before
