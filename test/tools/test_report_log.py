"""Reports made of logs."""

from __future__ import annotations

import json

import numpy as np
import profuse as pf
import pytest
from profuse.executor.settings.knobs import knobs
from profuse.tools.report import cli
from profuse.tools.report.page import render
from profuse.tools.report.recorded import from_log
from report_pages import Page

X = np.ones((4, 8), np.float32)


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "run.jsonl"
    with knobs.override(log=str(path), log_level="debug"):
        f = pf.jit(lambda x: np.tanh(x) * 2.0, name="logged")
        f(X), f(X), f(X[:2]), f(X[:2])
        g = pf.jit(lambda x: np.arcsin(x * 1j), name="complex_")
        g(X), g(X)
    return path


@pytest.mark.compiles
def test_what_a_log_tells(log):
    run = from_log(log)
    logged, refused = run.functions
    assert (logged.name, logged.tier, refused.name) == ("logged", "optimized", "complex_")
    assert [c.executor for c in logged.compiles] == ["logged", "logged/fallback_0"]
    assert logged.counters["compiles"] == 2
    assert logged.compiles[0].seconds >= sum(logged.compiles[0].stages.values()) > 0
    assert "refused: asin: complex is not lowered" in refused.reasons
    assert run.versions["numpy"] == np.__version__
    assert {s.name: s.value for s in run.settings}["log_level"] == "debug"


def test_its_page_says_nothing_of_what_a_log_lacks(log, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert cli.main([str(log), "-o", str(page), "--title", "of a log"]) == 0
    read = Page(page.read_text("utf-8"))
    assert read.texts["h1"] == ["of a log"]
    assert read.texts["h3"][:4] == ["In words", "What compiling took"] * 2
    assert "–" in read.texts["dd"]  # calls: it does not know
    assert any("compile of logged/fallback_0 in " in t for t in read.texts["p"])
    assert any(t.endswith(", thread 1") for t in read.texts["div"])


def test_torn_lines_and_other_text_are_counted_and_left_out(log):
    whole = from_log(log)
    event = json.loads(log.read_text("utf-8").splitlines()[-1])
    odd = ["{", "[]", "7", "{}", json.dumps(event | {"time": "now"}), "\udc80", '{"kind": "process"}']
    odd.append(json.dumps({"kind": "process", "details": {"knobs": 1}}))
    with open(log, "a", encoding="utf-8", errors="surrogateescape") as file:
        file.write("\n".join(odd))
    run = from_log(log)
    assert (run.functions, run.events) == (whole.functions, whole.events)
    assert f"{len(odd)} of its lines could not be read." in run.notes


def test_events_of_several_processes(log):
    event = json.loads(log.read_text("utf-8").splitlines()[-1])
    with open(log, "a", encoding="utf-8") as file:
        head = {"kind": "process", "details": {"knobs": {"log": "x", "gone": "y"}, "versions": {}}}
        other = event | {"pid": event["pid"] + 1, "details": {"stages": 7, "tier": ["odd"]}}
        file.write(f"{json.dumps(head)}\n{json.dumps(other | {'kind': 'compile'})}\n")
    run = from_log(log)
    assert len(run.threads) == 2
    assert [s.name for s in run.settings] == ["log"]
    assert any("2 processes have written it" in note for note in run.notes)
    Page(render(run))


@pytest.mark.parametrize("tier", ["simple", "made up", ["odd"], None])
def test_any_tier_can_be_shown(log, tier):
    event = {
        "time": 1.0,
        "level": "info",
        "kind": "tier",
        "function": "odd",
        "reason": "",
        "seconds": None,
        "pid": 1,
        "thread": 1,
        "details": {"tier": tier},
    }
    log.write_text(json.dumps(event), "utf-8")
    Page(render(from_log(log)))


def test_what_is_no_log(tmp_path, capsys):
    path = tmp_path / "other.jsonl"
    assert cli.main([str(path)]) == 2
    path.write_text("hello\n", "utf-8")
    assert cli.main([str(path), "-o", str(tmp_path / "r.html")]) == 2
    assert "is no log: no line of it is an event" in capsys.readouterr().err
    assert not (tmp_path / "r.html").exists()
