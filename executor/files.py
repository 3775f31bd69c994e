"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from ..dialect.errors import FileError

TEMPORARY = ".tmp"  # suffix of files that are being written; a killed process leaves them behind
_ERRORS = "backslashreplace"
_serial = itertools.count()


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new file beside ``path`` to write, which then replaces it by one rename; raises OSError.

    Nobody sees half a file: after an error, ``path`` is as before, and the new file is gone. It is
    not synchronised to the device, so that a power failure may damage it.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}.{next(_serial)}{TEMPORARY}")
    try:
        yield new
        os.replace(new, path)
    finally:
        with contextlib.suppress(OSError):
            new.unlink(missing_ok=True)


def check_writable(path: Path, what: str) -> None:
    """Raise FileError if ``path`` cannot be written; callers check this before they begin to work.

    ``what``: the thing to write, for the message.
    """
    folder = path.parent
    if path.is_dir():
        problem = "it is a folder"
    elif not folder.is_dir():
        problem = f"there is no folder {folder}"
    elif not os.access(path if path.exists() else folder, os.W_OK):
        problem = "it may not be written"
    else:
        return
    raise FileError(f"cannot write {what} to {path}: {problem}", hint="give another path")


def write_whole(path: Path, text: str) -> None:
    """Write a file by one rename, so that nobody sees half of it; raises OSError.

    The encoding is UTF-8. Lone surrogates, which file names may contain, become the escapes that
    JSON also has for them. A pipe or a device is written directly.
    """
    if path.exists() and not path.is_file():  # a pipe, a device
        path.write_text(text, "utf-8", _ERRORS)
        return
    with replacing(path) as new:
        new.write_text(text, "utf-8", _ERRORS)
