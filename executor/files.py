"""Files that appear whole or not at all, and what is read only if nobody else could write it."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..dialect.errors import FileError

TEMPORARY = ".tmp"  # suffix of files that are being written; a killed process leaves them behind
_ERRORS = "backslashreplace"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)
# O_NONBLOCK: opening a pipe that nobody writes to would wait for ever.
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_READ |= getattr(os, "O_BINARY", 0)
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)


class NotOurs(Exception):
    """Others could have written a file or folder; the message says how. Never passed to users."""


@contextlib.contextmanager
def replacing(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """A new file beside ``path`` to write, which then replaces it by one rename; raises OSError.

    Nobody sees half a file: after an error, ``path`` is as before, and the new file is gone. It is
    not synchronised to the device, so that a power failure may damage it.

    ``mode``: permissions of the file, of which the umask takes some away. The file is made under a
    name that nobody can have taken: in a folder that others can write, a link could lie there.
    """
    new = path.with_name(f"{path.name}.{os.getpid()}.{os.urandom(6).hex()}{TEMPORARY}")
    os.close(os.open(new, _NEW, mode))
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


def opened(path: str | os.PathLike, *, follows: bool = True) -> BinaryIO:
    """Open a regular file, and nothing that could block; ``follows``: also through a symbolic link.

    What was opened is looked at, not what lay there a moment before. Raises NotOurs for all that is
    no regular file, and OSError.
    """
    try:
        file = os.open(path, _READ | (0 if follows else _NO_LINK))
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):  # a link, a socket
            raise NotOurs("it is no regular file") from None
        raise
    try:
        mode = os.fstat(file).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
        if not stat.S_ISREG(mode):
            raise NotOurs("it is no regular file")
        return open(file, "rb")
    except BaseException:
        os.close(file)
        raise


def opened_if_ours(path: Path) -> BinaryIO:
    """Open a regular file that nobody but this user and root can have written.

    Raises NotOurs for others, and OSError.
    """
    file = opened(path, follows=False)
    others = who_else_writes(os.fstat(file.fileno()))
    if others:
        file.close()
        raise NotOurs(f"it {others}")
    return file


def who_else_writes(status: os.stat_result) -> str:
    """The way in which others than this user and root could write a file or folder, in words; "" = there is none.

    ``status``: what `os.stat` says of it.
    """
    if os.name != "posix":
        return ""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (uid {status.st_uid})"
    if status.st_mode & stat.S_IWOTH:
        return "can be written by every user"
    if status.st_mode & stat.S_IWGRP:
        return f"can be written by its group (gid {status.st_gid})"
    return ""
