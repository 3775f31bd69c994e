"""The folder of entries: reading, publishing, evicting, among any number of processes.

No lock is ever held. A file appears under its name by one rename, whole; a reader that has opened
it keeps it while another process replaces or evicts it; who finds a file gone finds a miss.
Entries are ordered by when they were last used, which is the time of their file, and by nothing
else: there is no index that could be torn. A clock that goes backwards spoils that order a little,
and nothing ever expires by age.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import stat
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ...settings.knobs import knobs
from .entry import CorruptEntry, Entry, Header, read_header
from .key import Key

_FORMAT = "v1"  # a folder for each: versions of profuse that differ in it leave each other be
_SUFFIX = ".entry"
_TEMPORARY = ".tmp"
_ABANDONED = 3600.0  # seconds after which a temporary file's writer must have died
_serial = itertools.count()


class UnusableCache(Exception):
    """There can be no cache in this folder, and why; never seen by users."""


class TooLarge(Exception):
    """An entry alone needs more room than there may be; never seen by users."""


@dataclass(frozen=True)
class File:
    """An entry's file, as seen at some moment.

    Attributes:
        path: where it is, or was.
        size: its bytes.
        used: when it was last written or read, in nanoseconds since 1970.
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
    """How many entries had to go, and the bytes that this freed."""

    entries: int = 0
    bytes: int = 0


class Store:
    """Entries below one folder. Methods raise OSError where the system refuses something."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.folder = root / _FORMAT

    # --- one entry ----------------------------------------------------------------------------

    def path(self, digest: str) -> Path:
        """Where the entry of this name is, if it is."""
        return self.folder / f"{digest}{_SUFFIX}"

    def get(self, key: Key) -> Entry | None:
        """The entry of this key, None = there is none; reading it makes it the latest used.

        Raises CorruptEntry, UnusableCache.
        """
        path = self.path(key.digest)
        try:
            self._check_owner()
            with open(path, "rb") as file:
                entry = Entry.from_file(file)
                used = os.fstat(file.fileno()).st_mtime_ns
        except FileNotFoundError:
            return None
        if entry.key != key:
            raise CorruptEntry("the file holds the entry of another key")
        # What may only be read has no order of use: then what was stored first is the oldest.
        with contextlib.suppress(OSError):
            os.utime(path, ns=(used, max(time.time_ns(), used)))
        return entry

    def put(self, entry: Entry, limit: int) -> Evicted:
        """Publish an entry, then evict others until all fit into ``limit`` bytes.

        Raises TooLarge, UnusableCache, OSError; then nothing of it is left behind.
        """
        data = entry.to_bytes()
        if len(data) > limit:
            raise TooLarge(f"its {len(data)} bytes are more than the {limit} that are allowed")
        self._make_folder()
        self._check_owner()
        name = f"{entry.key.digest}.{os.getpid()}.{next(_serial)}{_TEMPORARY}"
        temporary, path = self.folder / name, self.path(entry.key.digest)
        try:
            # Not flushed to the disk: what a power cut tears does not have its checksums.
            temporary.write_bytes(data)
            newest = max((file.used for file in self.files()), default=0)
            stamp = max(time.time_ns(), newest + 1)
            os.utime(temporary, ns=(stamp, stamp))
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
        return self.prune(limit, keep=path)

    def _make_folder(self) -> None:
        """Make it; raises UnusableCache where that cannot be done, OSError."""
        for _ in range(2):  # once more if somebody deletes a parent this very moment
            try:
                return self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            except FileNotFoundError as error:
                reason = error.strerror or error
        raise UnusableCache(f"{self.folder} cannot be made: {reason}")

    def check(self, file: File) -> Entry:
        """The whole entry in a file; raises CorruptEntry, OSError."""
        with open(file.path, "rb") as opened:
            entry = Entry.from_file(opened)
        if entry.key.digest != file.digest:
            raise CorruptEntry(f"the file holds the entry {entry.key.digest}")
        return entry

    def remove(self, path: Path) -> bool:
        """Delete a file that may be gone already; False = it has to stay."""
        try:
            path.unlink(missing_ok=True)
        except OSError:
            return False
        return True

    def _check_owner(self) -> None:
        """Object code is run: refuse a folder in which others could put some."""
        if os.name != "posix":
            return
        found = self.folder.stat()
        if found.st_uid not in (os.geteuid(), 0):
            raise UnusableCache(f"{self.folder} belongs to another user (uid {found.st_uid})")
        if found.st_mode & stat.S_IWOTH:
            raise UnusableCache(f"{self.folder} can be written by every user")

    # --- all of them --------------------------------------------------------------------------

    def files(self) -> list[File]:
        """Every entry's file, the latest used first."""
        found = [file for file in self._scan() if file.path.name.endswith(_SUFFIX)]
        return sorted(found, key=lambda file: file.used, reverse=True)

    def _scan(self) -> Iterator[File]:
        """Files of ours, temporary ones included."""
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith((_SUFFIX, _TEMPORARY)):
                        with contextlib.suppress(FileNotFoundError):
                            status = entry.stat(follow_symlinks=False)
                            yield File(Path(entry.path), status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            return

    def headers(self, limit: int | None = None) -> Iterator[tuple[File, Header | CorruptEntry]]:
        """The latest used entries with their headers, or with what is wrong with them."""
        for file in self.files()[:limit]:
            try:
                with open(file.path, "rb") as opened:
                    yield file, read_header(opened)
            except CorruptEntry as error:
                yield file, error
            except OSError:
                continue  # evicted meanwhile, or not ours to read

    def prune(self, limit: int, keep: Path | None = None) -> Evicted:
        """Delete what was not used for longest until ``limit`` bytes are kept; ``keep`` stays."""
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
        """Delete all entries, and what writers that died have left."""
        files = [file for file in self._scan() if self.remove(file.path)]
        return Evicted(len(files), sum(file.size for file in files))

    def _sweep(self) -> None:
        """Delete temporary files whose writers have died."""
        for file in self._scan():
            if file.path.name.endswith(_TEMPORARY) and time.time() - file.used / 1e9 > _ABANDONED:
                self.remove(file.path)


def default_root() -> Path:
    """The folder that the `cache_dir` knob names, else profuse in the user's cache folder.

    Raises UnusableCache if the user has no folder of that kind.
    """
    if knobs.cache_dir:
        return Path(os.path.abspath(os.path.expanduser(knobs.cache_dir)))
    import platformdirs

    found = Path(platformdirs.user_cache_dir("profuse", appauthor=False))
    if not found.is_absolute():
        raise UnusableCache("there is no home directory; PROFUSE_CACHE_DIR can name a folder")
    return found
