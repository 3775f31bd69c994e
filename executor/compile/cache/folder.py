"""Where cache entries lie, and whether this user may trust them."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ...settings.knobs import knobs

FACT = ".fact"  # suffix of files with what is known of the installation and the machine
FORMAT = "v1"  # name of the subfolder: versions of profuse with other formats use other ones


class UnusableCache(Exception):
    """A folder cannot hold a cache, for the reason in the message; never passed to users."""


def make_folder(folder: Path) -> None:
    """Make the folder; raises UnusableCache if a parent cannot be made, and OSError."""
    for _ in range(2):  # a second attempt, in case another process has deleted a parent
        try:
            return folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except FileNotFoundError as error:
            reason = error.strerror or error
    raise UnusableCache(f"{folder} cannot be made: {reason}")


def check_owner(folder: Path) -> None:
    """Raise UnusableCache if other users could put object code into the folder; or OSError."""
    if os.name != "posix":
        return
    found = folder.stat()
    if found.st_uid not in (os.geteuid(), 0):
        raise UnusableCache(f"{folder} belongs to another user (uid {found.st_uid})")
    if found.st_mode & stat.S_IWOTH:
        raise UnusableCache(f"{folder} can be written by every user")


def default_root() -> Path:
    """The folder that the `cache_dir` knob names, or else ``profuse`` in the user's cache folder.

    Raises UnusableCache if the user has no cache folder.
    """
    if knobs.cache_dir:
        return Path(os.path.abspath(os.path.expanduser(knobs.cache_dir)))
    import platformdirs

    found = Path(platformdirs.user_cache_dir("profuse", appauthor=False))
    if not found.is_absolute():
        raise UnusableCache("there is no home directory; PROFUSE_CACHE_DIR can name a folder")
    return found
