"""The disk cache on file systems that are full, or get full in the middle of an entry: results are
right, one event tells of it, nothing is left half-written, and later processes use what room there
is again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cached_graphs import leftovers, output_of, start
from profuse.executor.compile.cache.store import Store
from small_disks import PAGE, small_disk

# Has two entries to store, its compile and its profile: the second one when the first has failed.
PROGRAM = """
import json
import numpy as np, profuse as pf
x = np.linspace(-1, 1, 32, dtype=np.float32)
f = pf.jit(lambda x: np.tanh(x) + 1)
for _ in range(4):
    np.testing.assert_allclose(f(x), np.tanh(x) + 1, rtol=1e-6)
    f.wait()
assert f.state().tier == "optimized"
disk = [(e.kind, e.level, e.reason) for e in pf.events() if e.kind.startswith("disk")]
print(json.dumps({"counters": dict(f.state().counters), "events": disk}))
"""


class Ran:
    """What a process with default settings said of its use of the cache."""

    def __init__(self, folder: Path) -> None:
        process = start(PROGRAM, folder, environment={"PROFUSE_BACKGROUND": "on"})
        found = json.loads(output_of(process))
        self.counters: dict[str, int] = found["counters"]
        self.events: list[tuple[str, str, str]] = found["events"]

    def of_kind(self, kind: str) -> list[tuple[str, str]]:
        return [(level, reason) for found, level, reason in self.events if found == kind]

    def check_told_once(self) -> None:
        """One event says why nothing more is stored."""
        assert self.of_kind("disk-corrupt") == []
        ((level, reason),) = self.of_kind("disk-off")
        assert level == "warning"
        assert "this process stores nothing more: OSError: [Errno 28] No space left" in reason


def check_whole(store: Store) -> int:
    """Whatever is there is an entry that verifies; how many there are."""
    assert leftovers(store) == []
    return len([store.check(file) for file in store.files()])


def check_used_again(folder: Path) -> None:
    """With room, a process stores what is missing, and the one after it starts warm."""
    second = Ran(folder)
    assert second.of_kind("disk-off") == second.of_kind("disk-corrupt") == []
    assert check_whole(Store(folder)) == 2, "profile and compile"
    third = Ran(folder)
    assert third.counters["profiled_runs"] == third.counters["disk_misses"] == 0
    assert [kind for kind, *_ in third.events] == ["disk-hit"] * 2


def test_a_disk_without_any_room(tmp_path):
    with small_disk(tmp_path / "disk", "size=1m") as disk:
        disk.fill()
        ran = Ran(disk.path)
        ran.check_told_once()
        assert ran.of_kind("disk-store") == []
        assert ran.counters["disk_misses"] == 1
        assert ran.counters["kernel_launches"] > 0
        disk.make_room()
        assert check_whole(Store(disk.path)) == 0
        check_used_again(disk.path)


def test_a_disk_that_gets_full_within_an_entry(tmp_path):
    """Two pages of a compile can be written, and what is left is none of them."""
    with small_disk(tmp_path / "disk", "size=1m") as disk:
        disk.fill(room=2 * PAGE)
        ran = Ran(disk.path)
        ran.check_told_once()
        assert ran.of_kind("disk-store") == []
        store = Store(disk.path)
        assert check_whole(store) == 0
        disk.make_room()
        check_used_again(disk.path)
        assert max(file.size for file in store.files()) > 2 * PAGE, "it did begin to be written"


@pytest.mark.parametrize("there", [False, True], ids=["no folder", "no file"])
def test_a_disk_without_inodes(tmp_path, there):
    """Bytes there are, but not one more name, for the folder or for a file in it."""
    with small_disk(tmp_path / "disk", "size=1m,nr_inodes=32") as disk:
        if there:
            Store(disk.path).folder.mkdir(mode=0o700, parents=True)
        disk.use_up_inodes()
        ran = Ran(disk.path)
        ran.check_told_once()
        assert ran.of_kind("disk-store") == []
        disk.make_room()
        assert [path.name for path in disk.path.rglob("*")] == ["v1"] * there
