"""The disk cache under abuse: whatever happens to its folder, results are right and nobody hears
an exception; what is corrupt is made anew, and a folder of no use is told of once."""

from __future__ import annotations

import errno
import io
import os
import shutil
import threading
from pathlib import Path

import profuse as pf
import pytest
from cached_graphs import IR, Asked, caching_in, copy_of, leftovers, never, numbered, only_file, request
from profuse.executor.compile.cache.cache_key import key_of
from profuse.executor.compile.cache.codec import from_sections, to_sections
from profuse.executor.compile.cache.disk import DiskCache
from profuse.executor.compile.cache.entry import CacheEntry, CorruptEntry, read_header
from profuse.executor.compile.cache.source_locations import SourceLocations
from profuse.executor.compile.cache.store import Store
from small_disks import small_disk

PLACES = SourceLocations.of(IR).listed


def entry(number: int = 0, **changes) -> CacheEntry:
    given = numbered(number)
    fields = {"sections": to_sections(copy_of(given), PLACES)} | changes
    return CacheEntry(key_of(given), "f", 1.0, **fields)


def check_repaired(store: Store, why: str) -> None:
    """The next look-up deletes the entry, compiles, and stores what the one after that reads."""
    asked = Asked(request())
    assert asked.kinds == ["disk-corrupt", "disk-miss", "disk-store"]
    assert why in asked.reason("disk-corrupt")
    assert asked.counts == (0, 1)
    assert asked.result.kernels == copy_of(request()).kernels
    assert Asked(request(), never).counts == (1, 0)
    assert leftovers(store) == []


# --- what lies in files ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("length", "why"),
    [
        (0, "cut short: 0 bytes"),
        (10, "cut short: 10 bytes"),
        (100, "header is cut short"),
        (-1, "is cut short"),
        (-5000, "is cut short"),
    ],
)
def test_truncated_entries_are_made_anew(folder, length, why):
    Asked(request())
    path = only_file(folder).path
    os.truncate(path, length if length >= 0 else path.stat().st_size + length)
    check_repaired(folder, why)


def test_longer_entries_are_made_anew(folder):
    Asked(request())
    with open(only_file(folder).path, "ab") as file:
        file.write(b"\0")
    check_repaired(folder, "more in the file")


@pytest.mark.parametrize(
    ("place", "why"), [(3, "begins with"), (20, "header"), (40, "header"), (500, "header"), (-100, "checksum")]
)
def test_a_flipped_bit_is_repaired(folder, place, why):
    Asked(request())
    path = only_file(folder).path
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)
    check_repaired(folder, why)


def test_no_flipped_bit_and_no_cut_goes_unnoticed():
    data = entry().to_bytes()
    assert CacheEntry.from_file(io.BytesIO(data)) == entry()
    for place in range(0, len(data), 7):
        changed = bytearray(data)
        changed[place] ^= 1 << place % 8
        with pytest.raises(CorruptEntry):
            CacheEntry.from_file(io.BytesIO(changed))
        with pytest.raises(CorruptEntry):
            CacheEntry.from_file(io.BytesIO(data[:place]))


def test_a_header_of_absurd_length_is_not_read():
    data = bytearray(entry().to_bytes())
    data[16:24] = (2**62).to_bytes(8, "little")
    with pytest.raises(CorruptEntry, match="cannot have"):
        read_header(io.BytesIO(data))


def test_the_entry_of_another_key_is_not_used(folder):
    Asked(numbered(1))
    os.rename(only_file(folder).path, folder.path(key_of(request()).digest))
    check_repaired(folder, "another key")


@pytest.mark.parametrize(
    ("section", "content", "why"),
    [
        ("module", b"{}", "KeyError"),
        ("module", b"nonsense", "JSONDecodeError"),
        ("module", b"[" * 100000, "RecursionError"),
        ("result", b'{"kernels": {}}', "KeyError"),
        ("result", b'{"kernels": {}, "places": 7}', "more or fewer places"),
        ("result", b"[]", "TypeError"),
        ("ir", b"\xff\xfe", "UnicodeDecodeError"),
    ],
)
def test_nonsense_with_the_right_checksums_is_made_anew(folder, section, content, why):
    """Say, of a version that wrote something else under the same name."""
    sections = to_sections(copy_of(request()), PLACES) | {section: content}
    folder.put(CacheEntry(key_of(request()), "f", 1.0, sections), 1 << 30)
    check_repaired(folder, why)


def test_a_missing_object_is_noticed():
    sections = to_sections(copy_of(request()))
    (name,) = [n for n in sections if n.startswith("object:")]
    del sections[name]
    with pytest.raises(CorruptEntry, match=name):
        from_sections(sections)


# --- what happens to the folder -------------------------------------------------------------------


def test_the_folder_may_be_deleted_at_any_time(folder):
    Asked(request())
    shutil.rmtree(folder.root)
    assert Asked(request()).kinds == ["disk-miss", "disk-store"]
    assert Asked(request(), never).counts == (1, 0)

    def and_meanwhile(given):
        shutil.rmtree(folder.root)
        return copy_of(given)

    assert Asked(numbered(1), and_meanwhile).kinds == ["disk-miss", "disk-store"]


def test_a_folder_deleted_within_a_write_is_a_miss_later(folder, monkeypatch):
    """Not a reason to stop: the next entry makes a new one."""
    replace = os.replace

    def late(source, target):
        shutil.rmtree(folder.root)
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", late)
        asked = Asked(request())
    assert asked.kinds == ["disk-miss", "disk-skip"]
    assert Asked(request()).kinds == ["disk-miss", "disk-store"]


def test_eviction_races_are_nobodys_error(folder, monkeypatch):
    """Files that were listed are gone when it is their turn."""
    for number in range(3):
        Asked(numbered(number))
    files = folder.files()
    shutil.rmtree(folder.folder)
    monkeypatch.setattr(folder, "files", lambda: files)
    assert list(folder.headers()) == []
    assert folder.prune(0).entries == 3
    assert folder.remove(files[0].path)


OUT_OF_ORDER = [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EDQUOT, errno.EIO]


@pytest.mark.parametrize("code", OUT_OF_ORDER, ids=errno.errorcode.get)
def test_what_cannot_be_written_is_told_once(folder, monkeypatch, code):
    """And read what there is; no more is tried."""
    Asked(numbered(9))
    tries = []

    def fail(path, data):
        tries.append(path)
        path.touch()
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr(Path, "write_bytes", fail)
    asked = [Asked(numbered(number)) for number in range(3)]
    assert [a.kinds for a in asked] == [["disk-miss", "disk-off"], ["disk-miss"], ["disk-miss"]]
    assert "stores nothing more" in asked[0].reason("disk-off")
    assert os.strerror(code) in asked[0].reason("disk-off")
    assert len(tries) == 1
    assert leftovers(folder) == []
    assert Asked(numbered(9), never).counts == (1, 0)


def test_what_cannot_be_read_is_told_once(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with caching_in(tmp_path / "file"):
        asked = [Asked(numbered(number)) for number in range(3)]
    assert [a.kinds for a in asked] == [["disk-off", "disk-miss"], ["disk-miss"], ["disk-miss"]]
    assert "goes without" in asked[0].reason("disk-off")
    assert asked[2].result.missed.startswith("the cache cannot be used: NotADirectoryError")


def test_a_folder_that_cannot_be_made_is_told_once(tmp_path, monkeypatch):
    """Some file systems, as /proc, say of a new folder that it does not exist."""
    monkeypatch.setattr(Path, "mkdir", _refuse)
    with caching_in(tmp_path / "cache"):
        asked = [Asked(numbered(k)) for k in range(3)]
    assert [a.kinds for a in asked] == [["disk-miss", "disk-off"], ["disk-miss"], ["disk-miss"]]
    assert "cannot be made" in asked[0].reason("disk-off")


def _refuse(path, *args, **kwargs):
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def test_an_unreadable_entry_is_told_once(folder, monkeypatch):
    Asked(request())

    def refuse(*_):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(CacheEntry, "from_file", refuse)
    asked = [Asked(request()) for _ in range(2)]
    assert [a.kinds for a in asked] == [["disk-off", "disk-miss"], ["disk-miss"]]


def test_threads_that_fail_at_once_tell_it_once(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    cache, barrier = DiskCache(tmp_path / "file"), threading.Barrier(8)

    def ask():
        barrier.wait()
        cache.find(key_of(request()), (), "f")
        cache.readable = True

    seen = len(pf.events())
    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.kind for e in pf.events()[seen:]] == ["disk-off"]


@pytest.mark.skipif(os.name != "posix", reason="owners and modes of POSIX")
@pytest.mark.parametrize("what", ["mode", "owner"])
def test_a_folder_that_others_can_write_is_refused(folder, monkeypatch, what):
    """Whoever can put object code there runs it as this user."""
    Asked(request())
    if what == "mode":
        folder.folder.chmod(0o777)
    else:
        if folder.folder.stat().st_uid == 0:  # the administrator's folders are as good as ours
            os.chown(folder.folder, 12345, -1)
        monkeypatch.setattr(os, "geteuid", lambda: 54321)
    asked = Asked(request())
    assert asked.counts == (0, 1)
    expected = "written by every user" if what == "mode" else "belongs to another user"
    assert expected in asked.reason("disk-off")


def test_a_full_disk_stops_storing_and_nothing_else(tmp_path):
    """Of processes that meet one from the start, see test_full_disk.py."""
    with small_disk(tmp_path / "disk", "size=64k") as disk, caching_in(disk.path) as store:
        Asked(request())
        disk.fill()
        asked = [Asked(numbered(number)) for number in range(3)]
        assert [a.kinds for a in asked] == [["disk-miss", "disk-off"], ["disk-miss"], ["disk-miss"]]
        assert "No space left" in asked[0].reason("disk-off")
        assert leftovers(store) == []
        assert Asked(request(), never).counts == (1, 0)


def test_a_read_only_disk_still_answers(tmp_path):
    with small_disk(tmp_path / "disk", "size=64k") as disk, caching_in(disk.path) as store:
        Asked(request())
        disk.remount("ro")
        asked = [Asked(numbered(0)), Asked(request(), never), Asked(numbered(1))]
        assert [a.kinds for a in asked] == [["disk-miss", "disk-off"], ["disk-hit"], ["disk-miss"]]
        assert "Read-only" in asked[0].reason("disk-off")
        assert len(store.files()) == 1


def test_what_a_writer_could_not_finish_is_never_seen(folder, monkeypatch):
    """Under the entry's name there is the old content or the new one, and nothing between."""
    Asked(request())
    before = only_file(folder).path.read_bytes()
    write = Path.write_bytes

    def half(path, data):
        write(path, data[: len(data) // 2])
        assert only_file(folder).path.read_bytes() == before
        raise OSError(errno.EIO, "gone")

    monkeypatch.setattr(Path, "write_bytes", half)
    made = CacheEntry(key_of(request()), "g", 2.0, to_sections(copy_of(request()), PLACES))
    with pytest.raises(OSError, match="gone"):
        folder.put(made, 1 << 30)
    assert only_file(folder).path.read_bytes() == before
    assert leftovers(folder) == []
