"""The folder of cache entries, and whether this user may trust them.

Whoever can write to the folder, or can put another one in its place, runs code as this user.
"""

from __future__ import annotations

import contextlib
import functools
import os
import stat
from pathlib import Path

from ...files import who_else_writes
from ...settings.events import log
from ...settings.knobs import knobs

FACT = ".fact"  # suffix of files with what is known of the installation and the machine
FORMAT = "v1"  # name of the subfolder: versions of profuse with other formats use other ones

_OPEN = stat.S_IWGRP | stat.S_IWOTH
_LINKS = 40  # symbolic links on the way to a folder, as many as the system follows
_ACL = "system.posix_acl_access"


class UnusableCache(Exception):
    """A folder cannot hold a cache, for the reason in the message; never passed to users."""


def default_root() -> Path:
    """The folder that the `cache_dir` knob names, or else ``profuse`` in the user's cache folder.

    Raises UnusableCache if the user has no cache folder.
    """
    if knobs.cache_dir:
        return Path(os.path.abspath(os.path.expanduser(knobs.cache_dir)))
    import platformdirs

    root = Path(platformdirs.user_cache_dir("profuse", appauthor=False))
    if not root.is_absolute():
        raise UnusableCache("there is no home directory; PROFUSE_CACHE_DIR can name a folder")
    return root


def is_own(root: Path) -> bool:
    """True if a cache folder is the one in the user's cache folder, which profuse alone makes."""
    if knobs.cache_dir:
        return False
    with contextlib.suppress(UnusableCache):
        return root == default_root()
    return False


def make_folder(folder: Path) -> None:
    """Make the folder, and its parents, for this user alone.

    Raises UnusableCache if a parent cannot be made, and OSError.
    """
    for _ in range(2):  # a second attempt, in case another process has deleted a parent
        try:
            return _make(folder)
        except FileNotFoundError as error:
            reason = error.strerror or error
    raise UnusableCache(f"{folder} cannot be made: {reason}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        if folder.parent == folder:
            raise
        _make(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def check_folder(folder: Path, *, may_close: bool = True) -> None:
    """Raise UnusableCache if other users could put object code into the folder; or OSError.

    The default folder may have been made with a lax umask: it is closed to others then, and what
    it holds is deleted, if ``may_close``.
    """
    if os.name != "posix":
        return
    folder = folder.absolute()
    if may_close and is_own(folder.parent):
        _close(folder)
    _check_way(folder)
    status = folder.stat()
    others = who_else_writes(status)
    if others:
        raise _refused(folder, status, others)


def _close(folder: Path) -> None:
    """Take the right to write from others, and delete what lies in the folder, if it was open."""
    was_open = False
    for place in (folder.parent, folder):
        if _is_ours_and_open(place):
            if not was_open:
                _check_way(folder.parent.parent)  # else it may be any folder of this user
            was_open = True
            place.chmod(stat.S_IMODE(place.stat().st_mode) & ~_OPEN)
    if not was_open:
        return
    import shutil

    aside = folder.with_name(f"{folder.name}.{os.urandom(6).hex()}")
    with contextlib.suppress(FileNotFoundError):  # there is none, or another process was sooner
        folder.rename(aside)  # at once: no process finds a part of it
        shutil.rmtree(aside, ignore_errors=True)
    log(
        "disk-emptied",
        "",
        "other users could write to it: now they cannot, and what it held is deleted",
        folder=str(folder.parent),
    )


def _is_ours_and_open(place: Path) -> bool:
    try:
        status = place.lstat()
    except FileNotFoundError:
        return False
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return is_ours and bool(status.st_mode & _OPEN)


def _check_way(folder: Path, links: int = _LINKS) -> None:
    """Raise UnusableCache if others could lead the path to a folder of their choice; or OSError."""
    owners = {os.geteuid(), 0, os.stat(folder.anchor).st_uid}
    for place in (*reversed(folder.parents), folder):
        status = place.lstat()
        if stat.S_ISLNK(status.st_mode):
            if status.st_uid not in owners:
                raise UnusableCache(f"{place} is a symbolic link of another user")
            if not links:
                raise UnusableCache(f"too many symbolic links lead to {place}")
            # Links of /proc lead elsewhere than to their text: what they lead to is looked at, too.
            _check_way(place.parent / os.readlink(place), links - 1)
            status = place.stat()
        if status.st_uid not in owners:
            others = f"belongs to another user (uid {status.st_uid})"
        elif status.st_mode & stat.S_ISVTX:
            continue  # others may make files there, but not move those of this user
        else:
            others = "" if _is_private(place, status) else who_else_writes(status)
        if others:
            raise _refused(place, status, others)


def _refused(place: Path, status: os.stat_result, others: str) -> UnusableCache:
    """The error for a folder that ``others`` could write; it says what to do."""
    advice = "PROFUSE_CACHE_DIR can name another folder"
    if status.st_uid == os.geteuid():
        advice = f"`chmod go-w {place}` closes it, or {advice}"
    return UnusableCache(f"{place} {others}; {advice}")


def _is_private(place: Path, status: os.stat_result) -> bool:
    """True if all who can write to a folder are its owner: a group can be of one user alone.

    Where users have groups of their own name, their umask is often 002, and so are the modes of
    ``~/.cache`` and of the home.
    """
    if status.st_mode & stat.S_IWOTH or not _is_own_group(status.st_gid, status.st_uid):
        return False
    if not hasattr(os, "getxattr"):
        return True
    try:
        os.getxattr(place, _ACL)
    except OSError:
        return True  # there is no list of others who may write
    return False


@functools.cache
def _is_own_group(gid: int, uid: int) -> bool:
    """True if a group has the name of a user, who is no administrator, and no other member."""
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(uid), grp.getgrgid(gid)
    except KeyError:
        return False
    if not uid or user.pw_gid != gid or group.gr_name != user.pw_name:
        return False
    return set(group.gr_mem) <= {user.pw_name} and all(
        other.pw_uid == uid for other in pwd.getpwall() if other.pw_gid == gid
    )
