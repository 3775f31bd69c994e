"""Calls of finalizers that run while the interpreter ends, when nothing can be imported."""

from __future__ import annotations

import os
import subprocess
import sys

PROGRAM = """
import numpy as np, profuse as pf, sys
from profuse.executor.functions.function import GraphFunction

class Late:
    def __init__(self, name, f, *args):
        self.given = name, f, args, np.array_equal, sys.is_finalizing
    def __del__(self):
        name, f, args, equal, ends = self.given
        try:
            found = [f(*args) for _ in range(4)]
            said = all(equal(a, found[0]) for a in found), found[0].tolist()
        except BaseException as error:
            said = type(error).__name__, str(error)
        print(name, ends(), *said, flush=True)

x = np.array([0.0, 1.0], np.float32)
def twice(x):
    return x * 2 + 1
def into(f):
    return lambda x, out=np.empty_like(x): f.into(out, x)
def called(times, **options):
    f = pf.jit(twice, background=False, **options)
    for _ in range(times): f(x)
    return f

late = [Late(f"called{k}", called(k), x) for k in range(5)]
late.append(Late("raises", called(0, unsupported="raise"), x))
late.append(Late("background", pf.jit(twice), x))
late.append(Late("into", into(called(0)), x))
made = called(3)
made.save("saved")
with open("graph.mlir", "w") as file:
    file.write(made.ir("graph"))
for path in ("saved", "graph.mlir"):
    late.append(Late(path, pf.load(path), x))
    late.append(Late(path + "-into", into(pf.load(path)), x))
gradient = pf.grad(lambda x: (x * x + x).sum(), background=False)
gradient(x)
late.append(Late("gradient", gradient, x))
"""


def test_first_calls_compute_what_python_does(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        text=True,
        capture_output=True,
        cwd=tmp_path,
        env=os.environ | {"PROFUSE_CACHE": "off", "PROFUSE_UNSUPPORTED": "python"},
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    assert "Traceback" not in ended.stderr, ended.stderr
    lines = sorted(ended.stdout.splitlines())
    names = [
        *(f"called{k}" for k in range(5)),
        "raises",
        "background",
        "into",
        "saved",
        "saved-into",
        "graph.mlir",
        "graph.mlir-into",
        "gradient",
    ]
    assert lines == sorted(f"{name} True True [1.0, 3.0]" for name in names)
