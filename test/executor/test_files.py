"""Files appear whole or not at all."""

import os
import stat

import pytest
from profuse.executor import files


def test_a_file_is_replaced_at_once_and_keeps_the_umask(tmp_path):
    path = tmp_path / "said"
    path.write_text("before")
    with files.replacing(path) as new:
        new.write_text("after")
        assert path.read_text() == "before"
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["said"]
    mask = os.umask(0o027)
    try:
        files.write_whole(tmp_path / "other", "é\udcff")
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "other").stat().st_mode) == 0o640
    assert (tmp_path / "other").read_bytes() == "é\\udcff".encode()


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "said"
    path.write_text("before")
    with pytest.raises(error), files.replacing(path) as new:
        new.write_text("half")
        raise error
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["said"]


def test_two_writers_at_once_do_not_mix(tmp_path):
    path = tmp_path / "said"
    with files.replacing(path) as first, files.replacing(path) as second:
        first.write_text("a" * 100)
        second.write_text("b" * 100)
    assert path.read_text() == "a" * 100  # the outer one is the last to replace it


def test_the_new_file_is_made_by_nobody_else(tmp_path, monkeypatch):
    """In a folder of all users a link could wait under its name, to a file of this user's."""
    (tmp_path / "precious").write_text("precious")
    monkeypatch.setattr(os, "urandom", bytes)  # else nobody could know the name
    with files.replacing(tmp_path / "said") as new:
        name = new.name
        new.write_text("whole")
    os.symlink(tmp_path / "precious", tmp_path / name)
    with pytest.raises(FileExistsError):
        files.write_whole(tmp_path / "said", "again")
    assert (tmp_path / "precious").read_text() == "precious"
    assert (tmp_path / "said").read_text() == "whole"


def test_names_of_new_files_differ(tmp_path):
    with files.replacing(tmp_path / "said") as first:
        pass
    with files.replacing(tmp_path / "said") as second:
        assert second.name != first.name


@pytest.mark.skipif(os.name != "posix", reason="pipes of POSIX")
def test_nobody_waits_for_a_pipe_that_takes_the_place_of_a_file(tmp_path, monkeypatch):
    """Between a look at the file and its opening: what was opened is what is looked at."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").write_text("text")
    looked = os.stat(tmp_path / "file")
    monkeypatch.setattr(os, "stat", lambda *_, **__: looked)
    with pytest.raises(files.NotOurs, match="no regular file"):
        files.opened(tmp_path / "pipe")
    with files.opened(tmp_path / "file") as file:
        assert file.read() == b"text"
