"""Other users of this machine, for tests of what they may do; only root can become one."""

from __future__ import annotations

import os
import shutil
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MALLORY, ALICE = 61234, 61235  # nobody's numbers
SHARED = 61236  # a group that both are in

needs_root = pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become another user"
)


def as_user(uid: int, do: Callable[[], object]) -> None:
    """Call ``do`` in a forked child as another user; fails if it raises or does not end.

    What the child imports has to be imported before, as it may not read this user's files.
    """
    child = os.fork()
    if child == 0:
        status = 1
        try:
            os.setgroups([SHARED])
            os.setgid(uid)
            os.setuid(uid)
            os.umask(0o002)
            do()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0, "see stderr"


@contextmanager
def common_folder() -> Iterator[Path]:
    """A folder that all users may enter; only root may write to it."""
    path = Path(tempfile.mkdtemp(prefix="profuse-users-"))
    try:
        path.chmod(0o755)
        yield path
    finally:
        shutil.rmtree(path)
