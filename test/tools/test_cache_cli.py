"""profuse-cache: what lies on disk, from the command line."""

from __future__ import annotations

import json
import os
import time

import pytest
from profuse.executor.compile.cache import cache_key
from profuse.executor.compile.cache.cache_key import Key, key_of
from profuse.executor.compile.cache.codec import to_sections
from profuse.executor.compile.cache.entry import CacheEntry
from profuse.executor.compile.cache.store import Store
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.request import CompileRequest
from profuse.executor.settings.knobs import knobs
from profuse.lowering.target import Target
from profuse.tools.cache import main

IR = "func.func @f(%x: !profuse.tensor) -> !profuse.tensor { return %x : !profuse.tensor }"


@pytest.fixture
def store(tmp_path):
    """Three entries; the first is the one not used for longest, the last another version's."""
    found = Store(tmp_path / "cache")
    request = CompileRequest(IR, "required", Target("t", "c"))
    sections = to_sections(compile_graph(request))
    for number, label in enumerate(("first", "second", "third")):
        made = key_of(CompileRequest(f"{IR}// {number}", "required", Target("t", "c")))
        if label == "third":
            made = Key({**made.parts, "numpy": "1.0"})
        found.put(CacheEntry(made, label, time.time(), {**sections, "object:k": b"code"}), 1 << 30)
    with knobs.override(cache_dir=str(found.root)):
        yield found


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    status = main(arguments)
    out, err = capsys.readouterr()
    return status, out, err


def in_json(capsys, *arguments: str) -> tuple[int, dict]:
    status, out, err = run(capsys, *arguments, "--json")
    assert err == ""
    return status, json.loads(out)


def test_list(store, capsys):
    status, out, _ = run(capsys, "list")
    *rows, summary = out.splitlines()
    assert status == 0
    assert ["third" in rows[0], "second" in rows[1], "first" in rows[2]] == [True] * 3
    assert rows[0].endswith("outdated: numpy")
    assert rows[1].startswith(store.files()[1].digest[:12])
    assert rows[1].endswith("1 kernel    second")
    assert summary.startswith("3 entries, ")
    assert summary.endswith(f"of 1.0 GiB, in {store.root}")


def test_list_in_json(store, capsys):
    status, found = in_json(capsys, "list")
    assert status == 0
    assert [row["function"] for row in found["entries"]] == ["third", "second", "first"]
    assert [row["outdated"] for row in found["entries"]] == [["numpy"], [], []]
    assert {row["kernels"] for row in found["entries"]} == {1}
    assert found["bytes"] == sum(file.size for file in store.files())
    assert found["folder"] == str(store.root)
    assert found["entries"][1]["key"]["pipeline"] == "required"


def test_verify(store, capsys):
    assert run(capsys, "verify")[:2] == (0, f"3 entries checked, 0 corrupt, in {store.root}\n")
    newest, middle, oldest = store.files()
    os.truncate(oldest.path, oldest.size - 1)
    os.rename(newest.path, store.path("0" * 40))
    status, out, _ = run(capsys, "verify")
    assert status == 1
    assert f"{oldest.digest[:12]}  section object:k is cut short" in out
    assert f"000000000000  the file holds the entry {newest.digest}" in out
    assert out.endswith(f"3 entries checked, 2 corrupt, in {store.root}\n")

    status, found = in_json(capsys, "verify", "--delete")
    assert status == 0
    assert [row["deleted"] for row in found["corrupt"]] == [True, True]
    assert [file.path for file in store.files()] == [middle.path]
    assert run(capsys, "verify")[0] == 0


def test_verify_reads_what_the_checksums_cover(store, capsys):
    """An entry can be whole, and make no sense all the same."""
    store.put(CacheEntry(Key({"ir": "x"}), "odd", 0.0, {"result": b"{}"}), 1 << 30)
    status, out, _ = run(capsys, "verify")
    assert (status, "KeyError: 'places'" in out) == (1, True)


@pytest.mark.skipif(os.name != "posix", reason="modes of POSIX")
def test_it_says_why_a_folder_is_not_used(store, capsys):
    assert in_json(capsys, "list")[1]["unused"] == ""
    store.folder.chmod(0o775)
    why = f"{store.folder} can be written by its group"
    for command in ("list", "verify"):
        assert run(capsys, command)[1].splitlines()[-1].startswith(f"not used: {why}")
        assert in_json(capsys, command)[1]["unused"].startswith(why)


def test_list_names_corrupt_entries(store, capsys):
    os.truncate(store.files()[0].path, 5)
    assert "corrupt: the file is cut short: 5 bytes" in run(capsys, "list")[1]


def test_prune_keeps_what_was_used_last(store, capsys):
    newest, _, oldest = store.files()
    status, found = in_json(capsys, "prune", "--bytes", str(newest.size * 2 + 10))
    assert (status, found["deleted"], found["bytes"]) == (0, 1, oldest.size)
    assert oldest.path not in {file.path for file in store.files()}
    assert in_json(capsys, "prune", "--bytes", "1G")[1]["deleted"] == 0
    with knobs.override(cache_bytes=0):
        assert run(capsys, "prune")[1].startswith("2 entries deleted, ")
    assert store.files() == []


def test_prune_deletes_what_other_versions_have_stored(store, capsys, monkeypatch):
    _, *others = store.files()
    assert in_json(capsys, "prune", "--outdated")[1]["deleted"] == 1
    assert [file.path for file in store.files()] == [file.path for file in others]
    monkeypatch.setattr(cache_key, "sources", lambda: "edited")
    assert in_json(capsys, "prune", "--outdated")[1]["deleted"] == 2


def test_clear(store, capsys):
    (store.folder / "x.1.0.tmp").write_bytes(b"half")
    status, out, _ = run(capsys, "clear")
    assert (status, out.startswith("4 entries deleted, ")) == (0, True)
    assert list(store.folder.iterdir()) == []
    assert run(capsys, "clear")[1].startswith("0 entries deleted, 0 B freed")
    assert run(capsys, "list")[1].startswith("0 entries, 0 B of")


def test_another_folder(store, capsys, tmp_path):
    (tmp_path / "other").mkdir()
    assert in_json(capsys, "list", "--dir", str(tmp_path / "other"))[1]["entries"] == []


def test_entries_that_cannot_be_deleted_are_an_error(store, capsys, monkeypatch):
    monkeypatch.setattr(Store, "remove", lambda self, path: False)
    for command in (["clear"], ["prune", "--bytes", "0"]):
        status, out, err = run(capsys, *command)
        assert (status, out) == (1, "")
        assert "cannot be deleted" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["list", "--dir", "/no/such/folder"], "there is no folder /no/such/folder"),
        (["prune", "--bytes", "much"], "'much' is no number of bytes"),
        (["prune", "--bytes=-1"], "'-1' is no number of bytes"),
    ],
)
def test_errors_are_one_message_and_status_1(store, arguments, message, capsys):
    status, _, err = run(capsys, *arguments)
    assert status == 1
    assert err.startswith("profuse-cache: error: ")
    assert message in err
    assert "Traceback" not in err


def test_a_folder_that_is_a_file_is_an_error(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with knobs.override(cache_dir=str(tmp_path / "file")):
        status, _, err = run(capsys, "list")
    assert status == 1
    assert "Not a directory" in err


def test_a_command_is_needed(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2
    assert "COMMAND" in capsys.readouterr().err
