"""profuse-run: graphs through their tiers from the command line."""

from __future__ import annotations

import json

import numpy as np
import pytest
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


def test_text_output_with_explanation_and_ir(graph, capsys):
    assert main([graph, "--explain", "--ir", "optimized"]) == 0
    out = capsys.readouterr().out
    assert "call 2: optimized" in out
    assert "static guard on f32[4, 8]" in out
    assert "profuse.type_check" in out


def test_function_with_npy_input(tmp_path, monkeypatch, capsys):
    (tmp_path / "model_under_test.py").write_text(
        "import numpy as np\n\ndef f(x, k):\n    return np.exp(x) * k\n"
    )
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
        (["no_such_module_at_all:f"], "cannot import no_such_module_at_all"),
        (["math:no_such_function"], "no function 'no_such_function'"),
        (["math:sqrt", "-i", "f32[2,"], "no argument description"),
        (["math:sqrt", "-i", "q7[2]"], "unknown dtype name 'q7'"),
        (["math:sqrt", "-i", "missing.npy"], "cannot read missing.npy"),
        (["math:sqrt", "--strategy", "fast"], "strategy 'fast' is malformed"),
    ],
)
def test_errors_are_one_message_and_status_1(arguments, message, capsys):
    assert main(arguments) == 1
    err = capsys.readouterr().err
    assert err.startswith("profuse-run: error:")
    assert message in err
    assert "Traceback" not in err


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
