"""The page of the ways of a call follows the causes of verdicts, and every cause is one that code proposes."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from profuse.executor.routing.verdict import Cause, Server

ROOT = Path(__file__).parents[2]
_SPEC = importlib.util.spec_from_file_location("ways_of_a_call", ROOT / "docs" / "ways_of_a_call.py")
assert _SPEC is not None and _SPEC.loader is not None
page = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(page)


def test_the_page_is_current():
    assert page.main([]) == 0


def test_a_page_that_is_not_current_is_told(tmp_path, capsys):
    assert page.main(["--folder", str(tmp_path)]) == 1
    assert "--write" in capsys.readouterr().err
    assert page.main(["--folder", str(tmp_path), "--write"]) == 0
    assert page.main(["--folder", str(tmp_path)]) == 0


def test_the_picture_has_a_row_for_each_cause_and_a_lane_for_each_server():
    assert page.picture().count("<circle") == len(Cause)
    assert page.picture().count('class="lane"') == len(Server)


@pytest.mark.parametrize("cause", [c for c in Cause if c.server is Server.PYTHON], ids=lambda c: c.name)
def test_each_cause_of_pythons_calls_is_proposed_somewhere(cause):
    code = "".join(p.read_text() for p in (ROOT / "executor").rglob("*.py"))
    assert re.search(rf"\bCause\.{cause.name}\b", code), cause
