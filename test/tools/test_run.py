"""profuse-run: graphs through their tiers from the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from internals import largest_error
from profuse.tools.run import main

GRAPH = """
func.func @f(%x: tensor<4x8xf32>, %k: f64) -> !profuse.tensor {
  %y = "profuse.tanh"(%x) : (tensor<4x8xf32>) -> !profuse.tensor
  %z = "profuse.mul"(%y, %k) : (!profuse.tensor, f64) -> !profuse.tensor
  return %z : !profuse.tensor
}
"""


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH)
    return str(path)


def test_graph_file_in_json(graph, capsys):
    assert main([graph, "--calls", "3", "--check", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert [row["tier"] for row in out["calls"]] == ["profiling", "optimized", "optimized"]
    assert max(row["max_error"] for row in out["calls"]) < 1e-6
    assert out["counters"]["compiles"] == 1
    assert len(out["specializations"]) == 1


LATE = """
func.func @late(%x: !profuse.tensor, %axes: !profuse.ints, %keep: i1) -> !profuse.tensor {
  %0 = "profuse.late"(%x, %axes, %keep) {op = "sum", names = ["axes", "keepdims"]} :
    (!profuse.tensor, !profuse.ints, i1) -> !profuse.tensor
  return %0 : !profuse.tensor
}
"""


@pytest.mark.parametrize("axes", ["[0, 1]", "null", "[]"])
def test_lists_bools_and_none_as_inputs(axes, tmp_path, capsys):
    path = tmp_path / "late.mlir"
    path.write_text(LATE)
    assert main([str(path), "-i", "f32[4,8]", "-i", axes, "-i", "true", "--check", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert max(row["max_error"] for row in out["calls"]) < 1e-6
    assert main([str(path), "-i", "f32[4,8]", "-i", "[0", "-i", "true"]) == 1
    assert "[0 is no JSON" in capsys.readouterr().err
    assert main([str(path), "-i", "f32[4,8]", "-i", '"tanh"', "-i", "true"]) == 1
    assert "argument 1 must be a list of integers" in capsys.readouterr().err


def test_text_output_with_explanation_and_ir(graph, capsys):
    assert main([graph, "--explain", "--ir", "optimized"]) == 0
    out = capsys.readouterr().out
    assert "call 2: optimized" in out
    assert "static guard on f32[4, 8]" in out
    assert "profuse.type_check" in out


def test_function_with_npy_input(tmp_path, monkeypatch, capsys):
    (tmp_path / "model_under_test.py").write_text("import numpy as np\n\ndef f(x, k):\n    return np.exp(x) * k\n")
    np.save(tmp_path / "x.npy", np.ones((3, 4)))
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    status = main(["model_under_test:f", "-i", str(tmp_path / "x.npy"), "-i", "2.5", "--check"])
    assert status == 0
    out = capsys.readouterr().out
    assert out.count("error=") == 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing.mlir"], "missing.mlir"),
        (["nothing"], "neither file.mlir nor module:function"),
        (["model.py"], "hint: name an importable module"),
        (["lost/file.py:f"], "hint: name the module, not its file: lost.file:f"),
        (["no_such_module_at_all:f"], "cannot import no_such_module_at_all"),
        (["math:no_such_function"], "no function 'no_such_function'"),
        (["math:sqrt", "-i", "f32[2,"], "no argument description"),
        (["math:sqrt", "-i", "q7[2]"], "unknown dtype name 'q7'"),
        (["math:sqrt", "-i", "missing.npy"], "cannot read missing.npy"),
        (["math:sqrt", "-i", "f32[99999999999,99999999]"], "cannot be made: array is too big"),
        (["math:sqrt", "-i", "f32[99999999,9999999]"], "cannot be made: Unable to allocate"),
        (["math:sqrt", "--strategy", "fast"], "strategy 'fast' is malformed"),
        ([":sqrt"], "neither file.mlir nor module:function"),
        (["math:"], "neither file.mlir nor module:function"),
    ],
)
def test_errors_are_one_message_and_status_1(arguments, message, capsys):
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("profuse-run: error:")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def f(x):\n    raise KeyError('no weights')\n", "the function raised"),
        ("raise RuntimeError('no weights')\n", "importing broken_model raised"),
        ("no weights(\n", "importing broken_model raised"),
    ],
)
def test_what_the_users_code_raises_is_told_without_our_frames(source, told, tmp_path, monkeypatch, capsys):
    (tmp_path / "broken_model.py").write_text(source)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "broken_model", raising=False)
    assert main(["broken_model:f", "-i", "f32[2]"]) == 1
    err = capsys.readouterr().err
    assert err.startswith(f"profuse-run: error: {told}")
    assert "no weights" in err and f'File "{tmp_path / "broken_model.py"}", line' in err
    assert err.count("  File ") == 1


def test_unparsable_graph(tmp_path, capsys):
    path = tmp_path / "bad.mlir"
    path.write_text("func.func @f( {")
    assert main([str(path)]) == 1
    assert f"{path}:1:" in capsys.readouterr().err


def test_untyped_graph_wants_inputs(tmp_path, capsys):
    path = tmp_path / "untyped.mlir"
    path.write_text(
        GRAPH.replace("%x: tensor<4x8xf32>", "%x: !profuse.tensor").replace(
            "(tensor<4x8xf32>) ->", "(!profuse.tensor) ->"
        )
    )
    assert main([str(path)]) == 1
    assert "give one --input per argument" in capsys.readouterr().err
    assert main([str(path), "-i", "f32[2,3]", "-i", "2.0"]) == 0


def test_check_looks_at_imaginary_parts():
    assert largest_error(np.array([1 + 1j]), np.array([1 + 1j])) == 0
    assert largest_error(np.array([1 + 1j, np.inf]), np.array([1 - 1j, np.inf])) > 1
    assert largest_error(np.array([np.inf, np.nan]), np.array([np.inf, np.nan])) == 0
    assert largest_error(np.array([np.inf]), np.array([-np.inf])) > 1


@pytest.mark.parametrize("bad", [["--seed", "-1"], ["--calls", "0"], ["--calls", "many"]])
def test_numbers_out_of_range_are_usage_errors(bad, capsys):
    with pytest.raises(SystemExit):
        main(["math:sqrt", *bad])
    assert "expected a number >= " in capsys.readouterr().err


def test_a_reader_that_goes_away_is_no_error(graph):
    root = Path(__file__).resolve().parents[2]
    tool = f"{sys.executable} -m {root.name}.tools.run {graph} --calls 2"
    done = subprocess.run(
        ["bash", "-c", f"{tool} | :"],
        env={**os.environ, "PYTHONPATH": str(root.parent)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
