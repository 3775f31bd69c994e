"""A file that contains a function: its graphs, and their entries in the format of the disk cache.

The file has the format of one cache entry. Its sections are ``graph:K`` (JSON), ``array:K:I`` (the
bytes of a captured array) and ``entry:DIGEST`` (a whole cache entry). Object code in the file runs
as it is: the checksums detect damage, but not malice.
"""

from __future__ import annotations

import io
import json
import os
import time
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from ....dialect.dataclass import dataclass
from ....dialect.errors import FileError
from ....dialect.ir.dtypes import dtype_of, dtype_of_mlir
from ...compile.cache.cache_key import Key, describe, nearest
from ...compile.cache.entry import MAGIC, CacheEntry
from ...compile.cache.profiles import is_profile
from ...files import NotOurs, opened, replacing, who_else_writes

_FORMAT = "2"
# The parts of a profile's key that do not depend on the installation.
_PORTABLE = ("profile", "arguments", "history", "profiled_runs", "device")


@dataclass(frozen=True)
class StoredGraph:
    """A saved graph: ``data`` is the importer's JSON, ``arrays`` are the captured arrays."""

    data: dict[str, Any]
    arrays: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True)
class SavedFile:
    """The content of a saved function's file.

    Attributes:
        path: path of the file, for messages.
        name: name of the function.
        graphs: all graphs of the function.
        entries: profiles and compiles, as entries of the disk cache.
        others_write: True if others than this user could have written the file.
    """

    path: str
    name: str
    graphs: tuple[StoredGraph, ...]
    entries: tuple[CacheEntry, ...]
    others_write: bool = False

    @cached_property
    def _by_key(self) -> dict[str, CacheEntry]:
        return {_digest(entry.key): entry for entry in self.entries}

    def find(self, key: Key) -> CacheEntry | None:
        """The entry of a key; a profile is also found if another installation has recorded it."""
        return self._by_key.get(_digest(key))

    def why_missed(self, key: Key) -> str:
        """The difference of the nearest entry of the same kind from a key, in words."""
        alike = [e.key for e in self.entries if e.key.parts.keys() == key.parts.keys()]
        best = nearest(key, alike)
        if best is None:
            return f"{self.path} holds no {'profile' if is_profile(key) else 'compiled code'}"
        other, differing = best
        if is_profile(key):
            differing = [name for name in differing if name in _PORTABLE]
        return f"what {self.path} holds differs in {describe(key, other, differing)}"

    def write(self, path: str | os.PathLike) -> None:
        """Write the file completely or not at all; raises FileError."""
        target = Path(path)
        try:
            with replacing(target) as new:
                new.write_bytes(self._to_entry().to_bytes())
        except OSError as error:
            raise FileError(f"cannot write {path}: {error.strerror or error}") from error

    def _to_entry(self) -> CacheEntry:
        sections: dict[str, bytes] = {}
        for number, graph in enumerate(self.graphs):
            arrays = [[dtype_of(a.dtype).mlir, list(a.shape)] for a in graph.arrays]
            data = {"graph": graph.data, "arrays": arrays}
            sections[f"graph:{number}"] = json.dumps(data).encode()
            for index, array in enumerate(graph.arrays):
                native = array.astype(dtype_of(array.dtype).numpy, copy=False)  # of any byte order
                sections[f"array:{number}:{index}"] = native.tobytes()
        for entry in self.entries:
            sections[f"entry:{entry.key.digest}"] = entry.to_bytes()
        return CacheEntry(Key({"saved": _FORMAT}), self.name, time.time(), sections)

    @classmethod
    def read(cls, path: str | os.PathLike) -> SavedFile:
        """Read a file; raises FileError if it is damaged or has another format."""
        try:
            with _opened(path) as file:
                whole = CacheEntry.from_file(file)
                others = who_else_writes(os.fstat(file.fileno()))
            saved = whole.key.parts.get("saved")
            if saved != _FORMAT:
                what = "a cache entry" if saved is None else f"of format {saved}, not {_FORMAT}"
                raise FileError(f"{path} is {what}", hint="save the function anew")
            return cls(
                str(path), whole.label, tuple(_graphs(whole.sections)), tuple(_entries(whole.sections)), bool(others)
            )
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise FileError(f"cannot read {path}: {error.strerror or error}") from error
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise FileError(
                f"{path} is damaged, or is no file that save() wrote: {error}", hint="save the function anew"
            ) from error


def is_saved(path: str | os.PathLike) -> bool:
    """True if the file begins like the files of `SavedFile.write`; raises FileError."""
    try:
        with _opened(path) as file:
            return file.read(len(MAGIC)) == MAGIC
    except FileError:
        raise
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror or error}") from error


def _opened(path: str | os.PathLike) -> BinaryIO:
    """Open a regular file; raises FileError for pipes and devices, which could block forever."""
    try:
        return opened(path)
    except NotOurs as error:
        raise FileError(f"cannot read {path}: {error}", hint="copy it to one") from None


def _graphs(sections: dict[str, bytes]) -> Iterator[StoredGraph]:
    for number in range(sum(name.startswith("graph:") for name in sections)):
        data = json.loads(sections[f"graph:{number}"])
        arrays = [
            _array(sections[f"array:{number}:{index}"], *described) for index, described in enumerate(data["arrays"])
        ]
        yield StoredGraph(data["graph"], tuple(arrays))


def _array(raw: bytes, dtype: str, shape: Sequence[int]) -> np.ndarray:
    return np.frombuffer(raw, dtype_of_mlir(dtype).numpy).reshape(shape).copy()


def _entries(sections: dict[str, bytes]) -> Iterator[CacheEntry]:
    for name, raw in sections.items():
        if name.startswith("entry:"):
            yield CacheEntry.from_file(io.BytesIO(raw))


def _digest(key: Key) -> str:
    """The digest by which the file finds an entry; of a profile, only of the portable parts."""
    if not is_profile(key):
        return key.digest
    return Key({name: key.parts.get(name, "") for name in _PORTABLE}).digest
