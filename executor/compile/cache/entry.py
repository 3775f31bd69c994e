"""One entry as the bytes of one file: a header in JSON, then sections of raw bytes.

::

    "profuse-cache 1\\n"  length of the header, u64  checksum of the header, 32 bytes
    header: {"key": {part: text}, "label": …, "created": …, "checked": …,
             "sections": [[name, length, checksum]]}
    the sections, one after the other, and nothing behind them

An entry is one file, so it exists completely or not at all. The reader checks each length and each
checksum before it uses a byte. The only executable content is object code, which the checksums
cover.
"""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

from ....dialect.dataclass import dataclass
from ...settings.digest import blake2b
from .cache_key import Key

MAGIC = b"profuse-cache 1\n"
_FIXED = struct.Struct(f"<{len(MAGIC)}sQ32s")
_MAX_HEADER = 16 << 20


class CorruptEntry(ValueError):
    """A file does not contain what `CacheEntry.to_bytes` wrote; callers never pass this to users."""


@dataclass(frozen=True)
class Header:
    """The header of an entry, which can be read without the sections.

    Attributes:
        key: everything on which the entry depends.
        label: name of the function for which the entry was made.
        created: time of creation, in seconds since 1970.
        sections: name, length in bytes and checksum of each section, in order.
        checked: summary of the verdicts on its kernels.
    """

    key: Key
    label: str
    created: float
    sections: tuple[tuple[str, int, str], ...]
    checked: str = ""

    @property
    def kernels(self) -> int:
        """Number of kernels in the entry."""
        return sum(name.startswith(OBJECT) for name, _, _ in self.sections)


OBJECT = "object:"  # prefix of the names of sections with object code


@dataclass(frozen=True)
class CacheEntry:
    """A cache entry; `Header` explains the attributes, ``sections`` maps names to bytes."""

    key: Key
    label: str
    created: float
    sections: dict[str, bytes]
    checked: str = ""

    def to_bytes(self) -> bytes:
        """The content of the entry's file."""
        listed = [[name, len(data), _checksum(data).hex()] for name, data in self.sections.items()]
        header = json.dumps(
            {
                "key": self.key.parts,
                "label": self.label,
                "created": self.created,
                "checked": self.checked,
                "sections": listed,
            }
        ).encode()
        fixed = _FIXED.pack(MAGIC, len(header), _checksum(header))
        return b"".join((fixed, header, *self.sections.values()))

    @classmethod
    def from_file(cls, file: BinaryIO) -> CacheEntry:
        """The entry in a file opened for reading; raises CorruptEntry, OSError."""
        header = read_header(file)
        sections = {}
        for name, length, checksum in header.sections:
            data = file.read(length)
            if len(data) != length:
                raise CorruptEntry(f"section {name} is cut short: {len(data)} of {length} bytes")
            if _checksum(data).hex() != checksum:
                raise CorruptEntry(f"section {name} does not have its checksum")
            sections[name] = data
        if file.read(1):
            raise CorruptEntry("there is more in the file than its header lists")
        return cls(header.key, header.label, header.created, sections, header.checked)


def read_header(file: BinaryIO) -> Header:
    """The header of an entry's file; raises CorruptEntry, OSError."""
    fixed = file.read(_FIXED.size)
    if len(fixed) != _FIXED.size:
        raise CorruptEntry(f"the file is cut short: {len(fixed)} bytes")
    magic, length, checksum = _FIXED.unpack(fixed)
    if magic != MAGIC:
        raise CorruptEntry(f"the file begins with {magic!r}, not {MAGIC!r}")
    if length > _MAX_HEADER:
        raise CorruptEntry(f"a header cannot have {length} bytes")
    text = file.read(length)
    if len(text) != length or _checksum(text) != checksum:
        raise CorruptEntry("the header is cut short or does not have its checksum")
    try:
        return _header(json.loads(text))
    except (LookupError, TypeError, ValueError) as error:
        raise CorruptEntry(f"the header makes no sense: {error}") from error


def _header(data: dict[str, Any]) -> Header:
    sections = tuple((str(name), int(size), str(sum_)) for name, size, sum_ in data["sections"])
    if any(length < 0 for _, length, _ in sections):
        raise CorruptEntry("a section has a negative length")
    parts = {str(name): str(text) for name, text in data["key"].items()}
    checked = str(data.get("checked", ""))
    return Header(Key(parts), str(data["label"]), float(data["created"]), sections, checked)


def _checksum(data: bytes) -> bytes:
    return blake2b(data, digest_size=32).digest()
