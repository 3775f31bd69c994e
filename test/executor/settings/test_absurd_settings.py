"""Settings at values that nobody means: refused with the range, or harmless; in no case a crash."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import profuse as pf
import pytest
from profuse.executor.cuda.nvidia.driver import unavailable
from profuse.executor.settings.knobs import KNOBS, Knobs, knobs
from profuse.executor.settings.strategy import parse_strategy

HUGE = "9" * 23
ABSURD = (HUGE, "-1", "0", "", "nan", "inf", "-inf", "1e3", "many", "9" * 5000, "0x10")
NUMBERS = sorted(name for name, knob in KNOBS.items() if type(knob.default) is int)
LARGEST = dict.fromkeys(NUMBERS, 2**31 - 1) | {
    "library_threads": 1024,
    "threads": 1024,
    "workers": 1024,
    "worker_nice": 19,
    **dict.fromkeys(
        (
            "cache_bytes",
            "check_bytes",
            "output_pool_bytes",
            "arena_bytes",
            "release_gil_ns",
            "worker_memory",
            "loop_bytes",
        ),
        2**61,
    ),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_have_ranges_which_refusals_tell(name, monkeypatch):
    variable = f"PROFUSE_{name.upper()}"
    refused = set()
    for text in (*ABSURD, str(LARGEST[name]), str(LARGEST[name] + 1)):
        monkeypatch.setenv(variable, text)
        try:
            assert type(getattr(Knobs(), name)) is int
        except pf.KnobError as error:
            assert str(error).startswith(f"{variable}={text!r}"[:40])
            assert "expected a whole number from " in str(error)
            assert str(error).count(f"to {LARGEST[name]}") == 1
            assert len(str(error)) < 400
            refused.add(text)
    assert refused >= {*ABSURD, str(LARGEST[name] + 1)} - {"0"}
    assert str(LARGEST[name]) not in refused


@pytest.mark.parametrize("name", sorted(KNOBS))
def test_assigned_values_are_checked_as_variables_are(name):
    before = getattr(knobs, name)
    for value in (10**23, -1, float("nan"), float("inf"), None, [], 10**5000):
        try:
            with knobs.override(**{name: value}):
                pass
            assert KNOBS[name].default == "" or type(before) is bool
        except pf.KnobError as error:
            assert str(error).startswith(f"{name}=")
        assert getattr(knobs, name) == before


def test_folders_are_texts():
    for value in (5, None, "a\0b"):
        with pytest.raises(pf.KnobError, match="cache_dir="):
            knobs.cache_dir = value


def test_strategies_and_stress_of_absurd_depth_are_refused(monkeypatch):
    for text in (f"static:{HUGE}", f"static:{'9' * 5000}"):
        with pytest.raises(pf.KnobError, match="PROFUSE_FUSION_STRATEGY="):
            parse_strategy(text)
    with pytest.raises(pf.KnobError, match="fusion strategy"):
        pf.jit(np.tanh, strategy=[("static", 10**23)])
    with pytest.raises(pf.KnobError, match="stress="):
        knobs.stress = f"guards:k={HUGE}"
    with pytest.raises(pf.KnobError, match=r"profiled_runs=.* from 0 to "):
        pf.jit(np.tanh, profiled_runs=10**23)


COMPILES = """
import numpy as np, profuse as pf
f = pf.jit(lambda x: np.tanh(x) * 2 + 1)
for _ in range(3):
    f(np.ones(64)), f.wait()
kinds = [e.kind for e in pf.events()]
print(f.state().counters["kernel_launches"], [k for k in kinds if k.startswith("worker-l")])
"""


def run(program, **variables):
    env = {**os.environ, "PROFUSE_BACKGROUND": "on"}
    env |= {f"PROFUSE_{name.upper()}": str(value) for name, value in variables.items()}
    return subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("end", ["largest", "smallest"])
def test_workers_work_at_the_ends_of_the_ranges(end):
    """All at once: a worker that dies of one of them fails the test."""
    settings = LARGEST
    if end == "smallest":
        settings = dict.fromkeys(NUMBERS, 1) | {"worker_memory": 1 << 28, "worker_timeout": 60}
    others = {name for name in NUMBERS if "fusion" in name} | {"profiled_runs", "library_threads"}
    done = run(COMPILES, **{name: settings[name] for name in NUMBERS if name not in others})
    assert (done.stdout, done.returncode) == ("1 []\n", 0), done.stderr


def test_a_bad_variable_ends_in_one_message():
    done = run(COMPILES, worker_idle=HUGE)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "KnobError" in done.stderr and "PROFUSE_WORKER_IDLE" in done.stderr, last
    assert "from 1 to 2147483647" in done.stderr


def test_r1_12_without_profiled_runs_the_reason_is_told():
    f = pf.jit(lambda x: np.tanh(x) * 2 + 1, profiled_runs=0)
    f(np.ones(4))
    assert f.state().counters["kernel_launches"] == 0
    assert "no run is profiled (profiled_runs=0), so that no type is known" in f.explain()
    g = pf.jit(lambda x: np.tanh(x) * 2 + 1)
    g(np.ones(4)), g(np.ones(4))
    assert "no run is profiled" not in g.explain()


@pytest.mark.skipif(unavailable("cuda:0") is None, reason="for machines without a GPU")
def test_a_device_that_is_not_there_is_told_once(capfd):
    f = pf.jit(lambda x: np.tanh(x) * 2, device="cuda", name="f")
    for _ in range(3):
        f(np.ones(4))
    told = capfd.readouterr().err.splitlines()
    assert len(told) == 1
    assert told[0].startswith("profuse: f was made for cuda:0, runs on the host: ")
    assert f.state().counters["device_fallbacks"] == 3


TOOLS = {
    "opt": (["--help"], ["--list-ops"]),
    "run": (["--help"],),
    "report.cli": (["--help"],),
    "cache": (["--help"], ["list", "--help"]),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tool", TOOLS)
def test_tools_say_nothing_when_their_reader_goes(tool):
    for arguments in TOOLS[tool]:
        read, write = os.pipe()
        os.close(read)
        code = f"import sys; from profuse.tools.{tool} import main; sys.exit(main())"
        done = subprocess.run(
            [sys.executable, "-c", code, *arguments], stdout=write, stderr=subprocess.PIPE, text=True, timeout=60
        )
        os.close(write)
        assert done.stderr == ""
        assert done.returncode in (0, 1)  # argparse looks at no error of what it prints to
