"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from ...dialect.errors import FileError

_ERRORS = "backslashreplace"


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
    number, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
    try:
        with open(number, "w", encoding="utf-8", errors=_ERRORS) as file:
            file.write(text)
        os.chmod(name, 0o666 & ~_umask())
        os.replace(name, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _umask() -> int:
    """The umask of the process; the system can only tell it while setting another one."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
