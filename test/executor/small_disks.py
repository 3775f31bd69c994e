"""Small file systems that fill up for real, without a trace on the machine."""

from __future__ import annotations

import errno
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PAGE = 4096  # what a tmpfs gives out at a time

# Whoever may make namespaces of users needs no other right; in some containers only root may mount.
_NAMESPACES = (("--mount", "--user", "--map-root-user"), ("--mount",))


class SmallDisk:
    """A tmpfs in a mount namespace, whose only process is a shell; gone with it.

    Attributes:
        path: where it is, for every process of this user.
    """

    def __init__(self, shell: subprocess.Popen[str], place: Path) -> None:
        self._shell, self._place = shell, place
        self.path = Path(f"/proc/{shell.pid}/root{place}")

    def remount(self, options: str) -> None:
        """Change options of the mounted file system."""
        assert self._shell.stdin is not None and self._shell.stdout is not None
        command = f"mount -o remount,{options} '{self._place}' && echo done || echo"
        print(command, file=self._shell.stdin, flush=True)
        assert self._shell.stdout.readline() == "done\n"

    def fill(self, room: int = 0) -> None:
        """Take all bytes but so many, a number of whole pages."""
        with (self.path / "filler").open("ab", 0) as file:
            with pytest.raises(OSError) as raised:
                while True:
                    file.write(bytes(PAGE))
            assert raised.value.errno == errno.ENOSPC
            file.truncate(file.tell() // PAGE * PAGE - room)

    def use_up_inodes(self) -> None:
        """Make files until there can be no more."""
        with pytest.raises(OSError) as raised:
            for number in range(10_000):
                (self.path / f"filler-{number}").touch()
        assert raised.value.errno == errno.ENOSPC

    def make_room(self) -> None:
        """Delete what only took room."""
        for path in self.path.glob("filler*"):
            path.unlink()


@contextmanager
def small_disk(place: Path, options: str) -> Iterator[SmallDisk]:
    """A tmpfs with these options, mounted on a new folder; skips the test where none is allowed."""
    if shutil.which("unshare") is None or shutil.which("mount") is None:
        pytest.skip("needs unshare and mount")
    place.mkdir()
    script = 'mount -t tmpfs -o "$0" tmpfs "$1" && echo mounted && exec sh'
    complaints = []
    for namespace in _NAMESPACES:
        command = ["unshare", *namespace, "sh", "-c", script, options, str(place)]
        with subprocess.Popen(
            command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as shell:
            assert shell.stdout is not None
            said = shell.stdout.readline()
            if said == "mounted\n":
                try:
                    yield SmallDisk(shell, place)
                finally:
                    shell.kill()
                return
            complaints.append(said.strip())
    pytest.skip(f"no file system can be mounted: {'; '.join(complaints)}")
