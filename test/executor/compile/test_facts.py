"""Facts on this installation and machine that processes keep for each other."""

from __future__ import annotations

import json

import profuse as pf
import pytest
from profuse.executor.compile.cache import installation
from profuse.executor.compile.cache.store import Store
from profuse.executor.settings import fingerprint
from profuse.lowering import target


@pytest.fixture
def folder(tmp_path):
    with pf.knobs.override(cache=True, cache_dir=str(tmp_path)):
        yield tmp_path / "v1"


def fact(seen, value):
    """What `_known` says, and whether it had to find it out."""
    found = []
    text = installation._known("x", lambda: seen, lambda: found.append(1) or value)
    return text, bool(found)


def test_a_fact_holds_as_long_as_its_signature(folder):
    assert fact("a", "one") == ("one", True)
    assert fact("a", "two") == ("one", False)
    assert fact("b", "two") == ("two", True)
    assert fact("a", "three") == ("three", True)
    assert len(list(folder.iterdir())) == 1


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"signature": 3}'])
def test_a_damaged_fact_is_found_out_anew(folder, content):
    fact("a", "one")
    (file,) = folder.iterdir()
    file.write_bytes(content)
    assert fact("a", "two") == ("two", True)
    assert fact("a", "three") == ("two", False)


def test_a_fact_that_others_could_write_is_not_believed(folder):
    fact("a", "one")
    folder.chmod(0o777)
    assert fact("a", "two") == ("two", True)


def test_without_a_cache_nothing_is_kept(tmp_path):
    with pf.knobs.override(cache=False, cache_dir=str(tmp_path)):
        assert fact("a", "one") == ("one", True)
    assert not list(tmp_path.iterdir())
    (tmp_path / "file").write_text("")
    with pf.knobs.override(cache=True, cache_dir=str(tmp_path / "file")):
        assert fact("a", "one") == ("one", True)


def test_the_host_and_our_sources(folder):
    for _ in range(2):  # the second time from disk
        assert installation.host_target.__wrapped__() == target.host_target()
        assert installation.sources.__wrapped__() == fingerprint.sources()
    for file in folder.iterdir():
        kept = json.loads(file.read_text())
        file.write_text(json.dumps({**kept, "fact": 3 if "host" in file.name else ["x"]}))
    assert installation.host_target.__wrapped__() == target.host_target()
    assert installation.sources.__wrapped__() == fingerprint.sources()


def test_what_is_seen_of_sources_changes_with_each_file(tmp_path, monkeypatch):
    monkeypatch.setattr(fingerprint, "_PACKAGE", tmp_path)
    monkeypatch.setattr(fingerprint, "_SOURCES", ("a", "b.py"))
    (tmp_path / "a" / "c").mkdir(parents=True)
    files = [tmp_path / "a" / "x.py", tmp_path / "a" / "c" / "y.py", tmp_path / "b.py"]
    for file in files:
        file.write_text("one")
    seen = {fingerprint.sources_seen()}
    for count, file in enumerate(files, 2):
        file.write_text(f"one{count}")
        seen.add(fingerprint.sources_seen())
        assert len(seen) == count
    (tmp_path / "a" / "new.py").write_text("")
    assert fingerprint.sources_seen() not in seen
    (tmp_path / "a" / "new.py").unlink()
    assert fingerprint.sources_seen() in seen


def test_clearing_the_cache_forgets_the_facts(tmp_path):
    with pf.knobs.override(cache=True, cache_dir=str(tmp_path)):
        installation.sources.cache_clear()
        known = installation.sources()
        store = Store(tmp_path)
        assert list(store.folder.glob("*.fact"))
        store.clear()
        assert not list(store.folder.iterdir())
        installation.sources.cache_clear()
        assert installation.sources() == known
