"""Messages on a byte stream: a header with magic, length and checksum, then the payload."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

MAGIC = b"pfw1"
LARGEST = 1 << 30  # bytes of a payload; a longer one is a broken header
_HEADER = struct.Struct(">4sII")


class FrameError(Exception):
    """Bytes on the stream are not a frame; nothing after them can be trusted."""


def frame(payload: bytes) -> bytes:
    """The bytes that carry a payload. Raises FrameError for one that is too long."""
    if len(payload) > LARGEST:
        raise FrameError(f"a message of {len(payload)} bytes, more than {LARGEST}")
    return _HEADER.pack(MAGIC, len(payload), zlib.crc32(payload)) + payload


class FrameReader:
    """Assembles frames from pieces that arrive one after the other."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, piece: bytes) -> bytes | None:
        """Add bytes; the payload once it is complete, else None. Raises FrameError."""
        self._data += piece
        if not self._data.startswith(MAGIC[: len(self._data)]):
            raise FrameError(f"{bytes(self._data[:16])!r} is not the start of a message")
        if len(self._data) < _HEADER.size:
            return None
        _, length, checksum = _HEADER.unpack_from(self._data)
        if length > LARGEST:
            raise FrameError(f"a message of {length} bytes, more than {LARGEST}")
        end = _HEADER.size + length
        if len(self._data) < end:
            return None
        payload = bytes(self._data[_HEADER.size : end])
        del self._data[:end]
        if zlib.crc32(payload) != checksum:
            raise FrameError("a message whose checksum is wrong")
        return payload

    @property
    def pending(self) -> bool:
        """True if a part of a frame has arrived."""
        return bool(self._data)

    @property
    def missing(self) -> int:
        """Number of bytes that can be read without reading a part of the next frame."""
        have = len(self._data)
        if have < _HEADER.size:
            return _HEADER.size - have
        return _HEADER.size + _HEADER.unpack_from(self._data)[1] - have


def read_frame(read: Callable[[int], bytes]) -> bytes | None:
    """The next payload of a blocking stream; None at its end. Raises FrameError.

    ``read(n)`` gives at most ``n`` bytes, none at the end.
    """
    reader = FrameReader()
    while True:
        piece = read(reader.missing)
        if not piece:
            if reader.pending:
                raise FrameError("the stream ends within a message")
            return None
        payload = reader.feed(piece)
        if payload is not None:
            return payload
