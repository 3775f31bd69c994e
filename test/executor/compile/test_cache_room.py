"""The disk cache: how much of the disk it takes, where, and who may write there."""

from __future__ import annotations

import ast
import os
import time
from pathlib import Path

import pytest
from cached_graphs import Asked, leftovers, never, numbered, request
from profuse.dialect.ir import serialize
from profuse.executor.compile.cache import codec, store
from profuse.executor.compile.cache.entry import Header
from profuse.executor.compile.cache.folder import default_root
from profuse.executor.settings.knobs import knobs
from profuse.lowering.target import Target

# --- room -----------------------------------------------------------------------------------------


def functions(found: store.Store) -> list[str]:
    return [header.label for _, header in found.headers() if isinstance(header, Header)]


def test_what_was_not_used_for_longest_is_evicted(folder):
    for number in range(3):
        Asked(numbered(number))
    size = max(file.size for file in folder.files()) + 64  # times in it have more or fewer digits
    Asked(numbered(0), never)
    with knobs.override(cache_bytes=3 * size):
        asked = Asked(numbered(3))
    assert functions(folder) == ["f3", "f0", "f2"]
    (evicted,) = [e.details for e in asked.events if e.kind == "disk-evict"]
    assert evicted["entries"] == 1
    assert 0 < evicted["bytes"] <= size
    assert Asked(numbered(1)).counts == (0, 1)


def test_an_entry_larger_than_all_room_is_not_stored(folder):
    with knobs.override(cache_bytes=1000):
        asked = Asked(request())
    assert "more than the 1000 that are allowed" in asked.reason("disk-skip")
    assert folder.files() == []


def test_the_clock_may_go_backwards(folder, monkeypatch):
    """What has just been stored or used counts as the latest whatever the clock says."""
    for number in range(3):
        Asked(numbered(number))
    size = max(file.size for file in folder.files()) + 64  # times in it have more or fewer digits
    monkeypatch.setattr(time, "time", lambda: 1000.0)
    monkeypatch.setattr(time, "time_ns", lambda: 1000 * 10**9)
    with knobs.override(cache_bytes=3 * size):
        asked = Asked(numbered(3))
    assert asked.counts == (0, 1)
    assert functions(folder)[:2] == ["f3", "f2"]
    before = {file.digest: file.used for file in folder.files()}
    assert Asked(numbered(2), never).counts == (1, 0)
    after = {file.digest: file.used for file in folder.files()}
    assert all(after[name] >= before[name] for name in before)
    assert leftovers(folder) == []


def test_what_a_dead_writer_left_is_swept_up(folder):
    Asked(request())
    old, young = folder.folder / "x.1.0.tmp", folder.folder / "y.1.0.tmp"
    for path in (old, young):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    Asked(numbered(1))
    assert leftovers(folder) == ["y.1.0.tmp"]
    assert len(folder.files()) == 2


# --- where and how --------------------------------------------------------------------------------


def test_the_folder_is_the_one_for_caches_of_this_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with knobs.override(cache_dir=""):
        assert default_root() == tmp_path / "profuse"
    monkeypatch.setenv("HOME", str(tmp_path))
    with knobs.override(cache_dir="~/here"):
        assert default_root() == tmp_path / "here"


def test_without_a_home_there_is_no_cache(monkeypatch):
    import platformdirs

    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_, **__: "~/.cache/profuse")
    with knobs.override(cache=True, cache_dir=""):
        asked = [Asked(request()), Asked(request())]
    assert "no home directory" in asked[0].reason("disk-off")
    assert asked[1].events == ()


@pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
def test_only_the_user_can_write_the_folder(folder):
    """Object code in it is run."""
    Asked(request())
    assert folder.folder.stat().st_mode & 0o077 == 0


def test_nothing_that_lies_on_disk_is_unpickled():
    """Nor executed or evaluated by any other name."""
    unsafe = {"pickle", "marshal", "shelve", "dill", "eval", "exec", "load_module", "__import__"}
    modules = (*Path(codec.__file__).parent.glob("*.py"), Path(serialize.__file__))
    assert len(modules) > 5
    for path in modules:
        for node in ast.walk(ast.parse(path.read_text())):
            names = {getattr(node, "id", None), getattr(node, "attr", None)}
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
            assert not names & unsafe, path


def test_targets_are_part_of_every_request():
    assert isinstance(request().target, Target)
    assert request().target.features
