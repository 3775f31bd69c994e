"""R1.49: dumps of whole graphs and of every pass boundary; plans carry the function's name."""

from __future__ import annotations

import itertools
import os
from itertools import pairwise

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from profuse.executor.compile import ir_dump
from profuse.executor.settings.knobs import knobs

X = np.ones((4, 8), np.float32)


def titles(text: str) -> list[str]:
    return [line.removeprefix("// ----- ") for line in text.splitlines() if line.startswith("// ----- ")]


def scaled_tanh(x):
    return np.tanh(x) * 2


def test_the_dump_sequence_equals_the_pipelines(capsys):
    """R1.49: profiled, then every boundary of the compile's trace, then optimised."""
    f = pf.jit(scaled_tanh)
    with knobs.override(dump="stderr"):
        f(X)
        assert titles(capsys.readouterr().err) == []
        f(X)
    found = titles(capsys.readouterr().err)
    executor = executor_of(f)
    ends = ["start", *executor.result.trace, "end"]
    boundaries = [f"after {a}, before {b}: scaled_tanh" for a, b in pairwise(ends)]
    assert found == ["profiled: scaled_tanh", *boundaries, "optimised: scaled_tanh"]


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="symbolic links")
def test_a_dump_is_not_written_to_where_a_link_leads(tmp_path, monkeypatch):
    """In a folder of all users it may wait under the name of the next dump."""
    monkeypatch.setattr(ir_dump, "_numbers", itertools.count(7))
    (tmp_path / "precious").write_text("precious")
    folder = tmp_path / "dumps"
    folder.mkdir()
    link = folder / f"{os.getpid()}-00007-title-f.mlir"
    link.symlink_to(tmp_path / "precious")
    ir_dump.dump_graph(str(folder), "title", "f", lambda: "text")
    assert (tmp_path / "precious").read_text() == "precious"
    assert link.read_text() == "// ----- title: f\ntext"


def test_no_opt_and_simple_graphs_are_dumped_once(capsys):
    """R1.49: titles of the tiers that nothing is compiled for."""
    with knobs.override(dump="stderr"):
        f = pf.jit(scaled_tanh)
        with knobs.override(optimize=False):
            f(X), f(X)
        g = pf.jit(scaled_tanh, strategy=[])
        g(X), g(X)
    assert titles(capsys.readouterr().err) == ["no-opt: scaled_tanh", "simple executor: scaled_tanh"]


def test_dumps_are_files_of_a_folder(tmp_path):
    """R1.49: one file each, numbered in the order of events, that `profuse-opt` reads."""
    from profuse.tools.opt import main

    with knobs.override(dump=str(tmp_path / "dumps")):
        f = pf.jit(scaled_tanh)
        f(X), f(X)
    files = sorted((tmp_path / "dumps").iterdir())
    assert files[0].name.endswith("-profiled-scaled_tanh.mlir")
    assert files[-1].name.endswith("-optimised-scaled_tanh.mlir")
    assert main([str(files[-1]), "-o", str(tmp_path / "out.mlir")]) == 0
    assert "fusion_group" in (tmp_path / "out.mlir").read_text()


def test_nothing_is_dumped_unless_asked(capsys, tmp_path):
    f = pf.jit(scaled_tanh)
    f(X), f(X)
    assert titles(capsys.readouterr().err) == []


@pytest.mark.parametrize("background", [False, True])
def test_a_folder_that_cannot_be_written_costs_the_dumps_alone(tmp_path, capfd, background):
    taken = tmp_path / "file"
    taken.write_text("")
    with knobs.override(dump=str(taken)):
        f = pf.jit(scaled_tanh, background=background)
        f.warmup(X)
        assert f.state().tier == "optimized"
    with knobs.override(dump=str(taken), optimize=False):
        pf.jit(scaled_tanh)(X)
    assert capfd.readouterr().err.count(f"dumps nothing more to {taken}: File exists\n") == 1
    (told,) = [e for e in pf.events() if e.kind == "log-off" and str(taken) in e.reason]
    assert told.level == "warning"


def test_plans_carry_the_functions_name():
    """R1.49: every kind of plan."""
    f = pf.jit(scaled_tanh)
    with knobs.override(optimize=False):
        f(X)
    executor = executor_of(f)
    assert executor.plan().name == "scaled_tanh"  # profiling
    with knobs.override(optimize=False):
        assert (executor.plan().kind, executor.plan().name) == ("no-opt", "scaled_tanh")
    f(X), f(X)
    assert (executor.plan().kind, executor.plan().name) == ("optimized", "scaled_tanh")
    assert executor.fallbacks["fallback_0"].plan().name == "scaled_tanh/fallback_0"
