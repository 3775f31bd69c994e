"""Tools on a device, and what they say where there is none."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from profuse.executor.cuda.nvidia.driver import unavailable
from profuse.tools.run import main

GRAPH = """
func.func @graph(%x: tensor<4x8xf32>) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (tensor<4x8xf32>) -> !profuse.tensor
  %1 = "profuse.neg"(%0) : (!profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}
"""


def test_profuse_run_on_a_device(device, tmp_path, capsys):
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH)
    assert main([str(path), "--device", "cuda", "--calls", "3", "--check", "--json"]) == 0
    out = json.loads(capsys.readouterr().out)
    assert max(row["max_error"] for row in out["calls"]) < 1e-6
    assert out["counters"]["kernel_launches"] == 2
    assert out["specializations"][0]["usage"] == {}
    assert device.calls["launch"] == 2


def test_profuse_run_without_a_device(tmp_path, capsys):
    if not unavailable("cuda:9"):
        pytest.skip("there are ten devices")
    path = tmp_path / "graph.mlir"
    path.write_text(GRAPH)
    assert main([str(path), "--device", "cuda:9", "--explain"]) == 0
    assert "graph runs not on cuda:9" in capsys.readouterr().out


def test_the_benchmark_says_why_it_cannot_run():
    if not unavailable("cuda:0"):
        pytest.skip("there is a GPU")
    bench = Path(__file__).parents[3] / "bench" / "gpu.py"
    done = subprocess.run([sys.executable, str(bench)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith("there is no GPU to measure on: ")
