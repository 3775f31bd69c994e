"""The folder of cache entries: reading, publishing and evicting, by any number of processes.

There are no locks. A writer renames a complete file to its final name. A reader that has opened a
file can read it to the end even if another process replaces or evicts it, and a file that has
vanished is a miss. There is no index that could be damaged: the modification time of a file is the
time of its last use, and the least recently used entries are evicted first. A clock that runs
backwards only disturbs this order. Entries do not expire by age.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ....dialect.dataclass import dataclass
from ...files import TEMPORARY, NotOurs, opened_if_ours, replacing
from .cache_key import Key
from .entry import CacheEntry, CorruptEntry, Header, read_header
from .folder import FACT, FORMAT, check_folder, make_folder

_SUFFIX = ".entry"
_MODE = 0o644  # of entries, also where the umask is 0
_ABANDONED = 3600.0  # seconds after which the writer of a temporary file is taken to have died


class TooLarge(Exception):
    """An entry is larger than the whole cache may be; never passed to users."""


@dataclass(frozen=True)
class File:
    """An entry's file, as seen at one moment; it may be gone since.

    Attributes:
        path: its path.
        size: its size in bytes.
        used: time of its last write or read, in nanoseconds since 1970.
    """

    path: Path
    size: int
    used: int

    @property
    def digest(self) -> str:
        """Name of the entry."""
        return self.path.name.removesuffix(_SUFFIX)


@dataclass(frozen=True)
class Evicted:
    """The number of evicted entries, and the bytes that they occupied."""

    entries: int = 0
    bytes: int = 0


class Store:
    """The entries in one folder. Methods raise OSError if a system call fails."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / FORMAT

    # --- one entry ----------------------------------------------------------------------------

    def path(self, digest: str) -> Path:
        """The path of the entry with this digest, whether it exists or not."""
        return self.folder / f"{digest}{_SUFFIX}"

    def get(self, key: Key) -> CacheEntry | None:
        """The entry of a key; None = there is none. Reading it marks it as the last one used.

        Raises CorruptEntry, UnusableCache.
        """
        path = self.path(key.digest)
        try:
            check_folder(self.folder)
            with _opened(path) as file:
                entry = CacheEntry.from_file(file)
                last_use = os.fstat(file.fileno()).st_mtime_ns
        except FileNotFoundError:
            return None
        if entry.key != key:
            raise CorruptEntry("the file holds the entry of another key")
        # In a read-only folder the times of use stay as they are: the order is that of storing.
        with contextlib.suppress(OSError):
            os.utime(path, ns=(last_use, max(time.time_ns(), last_use)))
        return entry

    def put(self, entry: CacheEntry, limit: int) -> Evicted:
        """Publish an entry, then evict others until all entries fit into ``limit`` bytes.

        Raises TooLarge, UnusableCache and OSError; in that case no file is left behind.
        """
        data = entry.to_bytes()
        if len(data) > limit:
            raise TooLarge(f"its {len(data)} bytes are more than the {limit} that are allowed")
        make_folder(self.folder)
        check_folder(self.folder)
        path = self.path(entry.key.digest)
        with replacing(path, _MODE) as new:  # checksums detect what a power failure damages
            new.write_bytes(data)
            newest = max((file.used for file in self.files()), default=0)
            stamp = max(time.time_ns(), newest + 1)
            os.utime(new, ns=(stamp, stamp))
        return self.prune(limit, keep=path)

    def check(self, file: File) -> CacheEntry:
        """The whole entry in a file; raises CorruptEntry, OSError."""
        with _opened(file.path) as opened:
            entry = CacheEntry.from_file(opened)
        if entry.key.digest != file.digest:
            raise CorruptEntry(f"the file holds the entry {entry.key.digest}")
        return entry

    def remove(self, path: Path) -> bool:
        """Delete a file, which may be gone already; returns False if it cannot be deleted."""
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    # --- all entries --------------------------------------------------------------------------

    def files(self) -> list[File]:
        """The files of all entries, the last one used first."""
        files = [file for file in self._scan() if file.path.name.endswith(_SUFFIX)]
        return sorted(files, key=lambda file: file.used, reverse=True)

    def _scan(self) -> Iterator[File]:
        """The files of the cache, temporary ones included."""
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith((_SUFFIX, TEMPORARY)):
                        with contextlib.suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            yield File(Path(entry.path), status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            return

    def headers(self, limit: int | None = None) -> Iterator[tuple[File, Header | CorruptEntry]]:
        """The last ``limit`` used entries, each with its header or with the error of reading it."""
        for file in self.files()[:limit]:
            try:
                with _opened(file.path) as opened:
                    yield file, read_header(opened)
            except CorruptEntry as error:
                yield file, error
            except OSError:
                continue  # the file was evicted meanwhile, or may not be read

    def prune(self, limit: int, keep: Path | None = None) -> Evicted:
        """Evict the least recently used entries until ``limit`` bytes are left; ``keep`` stays."""
        self._sweep()
        files = self.files()
        total = sum(file.size for file in files)
        entries = freed = 0
        for file in reversed(files):
            if total - freed <= limit:
                break
            if file.path != keep and self.remove(file.path):
                entries, freed = entries + 1, freed + file.size
        return Evicted(entries, freed)

    def clear(self) -> Evicted:
        """Delete all entries and all temporary files, and the facts beside them, uncounted."""
        files = [file for file in self._scan() if self.remove(file.path)]
        for path in self.folder.glob(f"*{FACT}"):
            self.remove(path)
        return Evicted(len(files), sum(file.size for file in files))

    def _sweep(self) -> None:
        """Delete temporary files whose writers have died."""
        for file in self._scan():
            is_entry = file.path.name.endswith(_SUFFIX)
            if not is_entry and time.time() - file.used / 1e9 > _ABANDONED:
                self.remove(file.path)


def _opened(path: Path) -> BinaryIO:
    """Open an entry; raises CorruptEntry if others could have written it, and OSError."""
    try:
        return opened_if_ours(path)
    except (NotOurs, IsADirectoryError) as error:
        raise CorruptEntry(str(error)) from None
