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
