"""Functions whose source cannot be read say so, and what follows from it."""

from __future__ import annotations

import importlib.util
import linecache
import os
import subprocess
import sys

import numpy as np
import profuse as pf
import pytest

SUMS = """
def total(x):
    s = 0.0
    for i in range(x.shape[0]):
        s += x[i] * 2
    return s


def signed(x):
    if x.sum() > 0:
        return x * 2
    return x * 3


def straight(x):
    return x * 2 + 1
"""


@pytest.fixture(autouse=True)
def _python():
    with pf.knobs.override(unsupported="python"):
        yield


def _made(name):
    space = {"np": np}
    exec(SUMS, space)
    return space[name]


def test_loops_are_recorded_round_by_round():
    plain = _made("total")
    f = pf.jit(plain)
    x = np.arange(20.0)
    assert f(x) == plain(x)
    told = f.explain()
    assert "the source of total (<string>:2) cannot be read" in told
    assert "its loops are recorded round by round" in told
    assert "define it in a file" in told
    assert "scf.for" not in f.ir("graph")


def test_branches_are_pythons():
    plain = _made("signed")
    f = pf.jit(plain)
    for x in (np.ones(3), -np.ones(3)):
        np.testing.assert_array_equal(f(x), plain(x))
    assert f.state().counters["python_calls"] == 2
    told = f.explain()
    assert "the source of signed (<string>:9) cannot be read" in told
    assert "no branch of it is recorded" in told


def test_functions_without_loops_need_no_source():
    f = pf.jit(_made("straight"))
    f(np.ones(3))
    assert "cannot be read" not in f.explain()


def test_a_helper_is_named():
    total = _made("total")

    def f(x):
        return total(x) + 1

    f = pf.jit(f)
    f(np.ones(20))
    assert "the source of total (<string>:2) cannot be read" in f.explain()


def test_each_trace_says_so():
    """The code is looked up once; that its source has not been found is remembered with it."""
    plain = _made("total")
    for _ in range(2):
        f = pf.jit(plain)
        f(np.ones(20))
        assert "the source of total (<string>:2) cannot be read" in f.explain()


def test_a_file_that_has_been_edited(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text(SUMS)
    spec = importlib.util.spec_from_file_location("edited", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    path.write_text(SUMS.replace("x[i] * 2", "x[i] * 30"))
    linecache.checkcache(str(path))
    f = pf.jit(module.total)
    assert f(np.ones(20)) == 40
    assert f"the source of total ({path}:2) cannot be read" in f.explain()


def test_what_is_in_a_file_is_read():
    def total(x):
        s = 0.0
        for i in range(x.shape[0]):
            s += x[i] * 2
        return s

    f = pf.jit(total)
    f(np.ones(20))
    assert "cannot be read" not in f.explain()
    assert "scf.for" in f.ir("graph")


def test_the_command_line():
    text = (
        "import numpy as np, profuse as pf\n"
        "f = pf.jit(lambda x: x + 1 if x[0] > 0 else x - 1)\n"
        "f(np.ones(3))\n"
        "print(f.explain())\n"
    )
    made = subprocess.run(
        [sys.executable, "-c", text],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PROFUSE_UNSUPPORTED": "python"},
    )
    expected = sys.version_info < (3, 13)  # which keeps the text of `-c`
    assert ("the source of <lambda> (<string>:2) cannot be read" in made.stdout) is expected
