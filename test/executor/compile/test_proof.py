"""New kernels are compared with their definition before they serve; wrong ones never do."""

from __future__ import annotations

import ctypes
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from internals import break_kernel
from profuse.dialect.ir.op import op_named
from profuse.dialect.reasons import Kind
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.proof import inputs
from profuse.executor.compile.proof.check import Budget, Difference, KernelCheck, check_kernel
from profuse.executor.compile.proof.check_verdict import CheckVerdict, summary
from profuse.executor.compile.proof.comparison import Result
from profuse.executor.compile.proof.nudges import nudge
from profuse.executor.compile.proof.prove import prove
from profuse.executor.compile.proof.reference import Reference
from profuse.executor.compile.proof.repeat import replay
from profuse.executor.compile.worker import Limits, Pool
from profuse.executor.compile.worker.faults import VARIABLE
from profuse.executor.settings.knobs import knobs
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.linalg.tensor_builder import Builder
from profuse.lowering.target import host_target
from profuse.tools.cache import main as cache_tool
from worker_requests import request_for

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from graphs import Graph, random_program, tensor

ALL = Budget("all")
X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def compiled(program):
    return compile_program(program, host_target())


def affine(factor: float, *shape):
    g = Graph(tensor(*shape))
    (x,) = g.inputs
    return g.returning(g.add(g.mul(g.exp(x), g.number(factor)), x))


@pytest.fixture(scope="module")
def right():
    program = affine(2.0, "s0", 5)
    return program, compiled(program)


# --- what a check finds ----------------------------------------------------------------------


def test_a_right_kernel_is_right(right):
    verdict = check_kernel(*right, ALL)
    assert (verdict.outcome, verdict.skipped) == ("checked", 0)
    assert verdict.runs == len(list(inputs.settings(["s0"]))) == 16
    assert str(verdict) == "checked on 16 inputs"


def test_sizes_of_checks_exceed_others_as_their_guard_wants_it():
    names = ["s2_0__0_s1_0", "s1_0__2_s0_0", "s0_0_3"]
    for setting in inputs.settings(names):
        sizes = [setting.sizes[name] for name in names]
        assert sizes[2] >= 3 and sizes[1] >= sizes[2] + 2 and sizes[0] >= sizes[1]


@pytest.mark.parametrize("factor", [2.0001, 1.999, -2.0])
def test_values_beyond_rounding(right, factor):
    """Off by a few times what rounding may explain, and by all."""
    with pytest.raises(Difference, match=r"result 0: element .* is .* wrong\) \(on plain"):
        check_kernel(affine(factor, "s0", 5), right[1], ALL)


# What kernels must not do: each is given the slots and the ABI's counts of inputs and outputs.
def _overrun(slots):
    ctypes.c_float.from_address(slots[1] + 4 * 5 * slots[3]).value = 0.0


def _underrun(slots):
    ctypes.c_float.from_address(slots[1] - 4).value = 0.0


def _input(slots):
    ctypes.c_float.from_address(slots[0]).value = 7.0


def _forgotten(slots):
    # What was there is still there: the last element is as no kernel had been.
    before = ctypes.c_uint8.from_address(slots[1] - 1).value
    ctypes.memset(slots[1] + 4 * (5 * slots[3] - 1), before, 4)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (_overrun, "it writes beside output 0"),
        (_underrun, "it writes beside output 0"),
        (_input, "it changes input 0"),
        (_forgotten, "it is not wholly written"),
    ],
)
def test_memory_that_is_not_the_kernels(right, fault, said):
    check = KernelCheck(*right, ALL)
    break_kernel(check, lambda address: fault((ctypes.c_uint64 * 4).from_address(address)))
    with pytest.raises(Difference, match=said):
        check.run()


def test_workspace_starts_as_a_pattern_and_ends_where_it_ends():
    g = Graph(tensor("s0", 4))
    (x,) = g.inputs
    total = g.sum(g.tanh(x), axes=(0,), keepdims=False)
    program = g.returning(g.cumsum(g.matmul(g.exp(x), g.transpose(x, perm=(1, 0))), axis=0), total)
    artifact = compiled(program)
    assert artifact.abi.workspace != "0"
    assert check_kernel(program, artifact, ALL).outcome == "checked"
    short = replace(artifact, abi=replace(artifact.abi, workspace="0"))
    with pytest.raises(Difference, match="it writes beside its workspace"):
        check_kernel(program, short, replace(ALL, mode="sampled"))


def indexed():
    g = Graph(
        tensor("s0", 3),
        tensor("s1", dtype=op_named("argmax").infer([tensor(2)], {"axis": 0, "keepdims": False})[0].dtype),
    )
    x, i = g.inputs
    return g.returning(g.take(x, i, axis=0))


def test_what_numpy_raises_for_has_to_be_reported(monkeypatch):
    program = indexed()
    verdict = check_kernel(program, compiled(program), ALL)
    assert (verdict.outcome, verdict.runs) == ("checked", 16)
    monkeypatch.setattr(Builder, "forbid", lambda *args: None)
    with pytest.raises(Difference, match="it gives results for which NumPy raises BoundsError"):
        check_kernel(program, compiled(program), ALL)


def test_what_numpy_does_not_raise_for_must_not_be(monkeypatch):
    forbid = Builder.forbid
    monkeypatch.setattr(Builder, "forbid", lambda b, fn, x: forbid(b, lambda n: n >= 0, x))
    program = indexed()
    with pytest.raises(Difference, match="it reports an index out of range, and there is none"):
        check_kernel(program, compiled(program), ALL)


@pytest.mark.parametrize("profiling", [True, False], ids=["profiled", "keyed"])
def test_numbers_that_numpy_converts_as_scalars_and_casts_as_arrays(profiling):
    """The kernel cannot tell which an array without axes is, and may void for what only one is."""

    def f(x, k):
        v = x.cumsum(axis=0)
        v[...] = k
        return v

    compiled = pf.jit(f, background=False)
    x, k = np.ones((4, 3), "i1"), np.float32(1.5)
    with knobs.override(profiling_mode=profiling, check="all"), np.errstate(invalid="ignore"):
        for _ in range(3):
            np.testing.assert_array_equal(compiled(x, k), f(x, k))
        assert not any("wrong" in reason for reason in compiled.state().reasons)
        for number in (np.float32(np.inf), np.float32(1e30)):
            with pytest.raises(OverflowError):
                compiled(x, number)
            whole = np.array(number)
            np.testing.assert_array_equal(compiled(x, whole), f(x, whole))


def test_in_place_variants():
    program = affine(2.0, 4, 5)
    artifact = compile_program(program, host_target(), in_place=True)
    assert artifact.abi.in_place == ((0, 0),)
    assert check_kernel(program, artifact, ALL).outcome == "checked"
    g = Graph(tensor(64, 50))
    (x,) = g.inputs
    program = g.returning(g.add(g.flip(x, axes=(0,)), x))
    artifact = compile_program(program, host_target(), in_place=True)
    wrong = replace(artifact, abi=replace(artifact.abi, in_place=((0, 0),)))
    with pytest.raises(Difference, match="made onto input 0,: element"):
        check_kernel(program, wrong, ALL)


@pytest.mark.parametrize("seed", range(4))
def test_no_false_alarms_over_random_programs(seed):
    rng = np.random.default_rng(1000 + seed)
    symbolic = ("a", "c") if seed % 2 else ()
    program, _ = random_program(rng, {"a": 5, "b": 11, "c": 3}, symbolic, steps=8)
    verdict = check_kernel(program, compiled(program), replace(ALL, mode="sampled", seconds=0.1))
    assert verdict.outcome in ("checked", "partly")
    assert verdict.skipped <= 0.01 * verdict.compared


# --- what checks have found ------------------------------------------------------------------


@pytest.mark.parametrize("behavior", ["static", "dynamic"])
def test_products_of_windows_that_slide(behavior):
    """Rows overlap, which libraries cannot be told: the leading dimension would be 1."""
    w = np.arange(15.0).reshape(5, 3)
    f = pf.jit(lambda x, w: x @ w, strategy=[(behavior, 1)])
    for size in (14, 14, 14 if behavior == "static" else 20):
        x = np.lib.stride_tricks.sliding_window_view(np.arange(float(size)), 5)
        np.testing.assert_allclose(f(x, w), x @ w)
    assert f.state().counters["kernel_launches"] == 2


def test_clip_raises_for_bounds_on_the_wrong_side():
    x = np.arange(6, dtype=np.int32)
    f = pf.jit(lambda x, n: np.clip(x, 0, n) + 1)
    for n in (3, 3, 2**40):
        np.testing.assert_array_equal(f(x, n), np.clip(x, 0, n) + 1)
    with pytest.raises(OverflowError):
        np.clip(x, 0, -(2**40))
    with pytest.raises(OverflowError):
        f(x, -(2**40))
    counters = f.state().counters
    assert (counters["kernel_launches"], counters["voided_launches"]) == (3, 1)


# --- how it judges ---------------------------------------------------------------------------


def test_moved_values_are_compared_bit_by_bit():
    zeros = np.array([0.0, -0.0, np.nan])

    def wrong(found, *, moves):
        return Result(found, zeros, rounds=False, moves=moves).judge([]).wrong

    assert [wrong(zeros, moves=True), wrong(-zeros, moves=True)] == [0, 2]
    assert wrong(-zeros, moves=False) == 0
    assert wrong(zeros[::-1], moves=False) == 2


def test_what_rounding_decides_is_skipped_and_counted():
    g = Graph(tensor(4))
    (x,) = g.inputs
    program = g.returning(g.floor(g.mul(x, g.number(3.0))))
    given = np.array([1 / 3, 0.5, 2.1, 7.9], np.float32)
    reference = Reference(program)
    (expected,) = reference([given])
    nearby = [n[0] for n in reference.nearby([given], 8, 0)]
    result = Result(expected - 1, expected, rounds=True, moves=False)
    assert (result.judge([]).wrong, result.compared) == (4, 4)
    judged = result.judge(nearby)
    assert (judged.wrong, judged.skipped) == (3, 1)
    assert judged.worst == "element [1] is 0.0, not 1.0 (3 of 4 wrong)"


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_nudging_keeps_what_is_special(dtype):
    x = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, -3], dtype)
    moved = nudge(x, 4, np.random.default_rng(0))
    assert moved[:4].tobytes() == x[:4].tobytes()
    assert np.isnan(moved[4]), "of either sign"
    assert 0 < np.abs(moved[5:] - x[5:]).max() <= 4 * np.spacing(np.abs(x[5:])).max()


@pytest.mark.parametrize("bits", [True, False])
def test_strides_that_a_guard_leaves_open_lie_apart(bits):
    type_ = tensor("s0", "s1", strides=(None, 1) if bits else (None, None))
    for backwards in (False, True):
        steps = inputs.strides_of(type_, (3, 4), backwards=backwards)
        places = {a * steps[0] + b * steps[1] for a in range(3) for b in range(4)}
        assert len(places) == 12
        assert max(places) - min(places) > 12


# --- budget ----------------------------------------------------------------------------------


def test_budgets(right):
    """What is left out for time or memory is said."""
    timely = check_kernel(*right, Budget("sampled", seconds=0.0))
    assert (timely.outcome, timely.runs) == ("partly", 1)
    assert str(timely) == "checked partly on 1 input: the time is up after 1 of 16 inputs"
    assert check_kernel(*right, Budget("sampled", seconds=60)).outcome == "checked"
    large = check_kernel(*right, Budget("sampled", seconds=60, bytes=100))
    assert (large.outcome, large.runs) == ("partly", 5)
    assert re.fullmatch(r"its arrays take \d+ bytes, of 100 that they may", large.detail)
    assert check_kernel(*right, Budget("sampled", bytes=30)).outcome == "unchecked"


def test_what_cannot_be_run_here_is_unchecked(right):
    program, artifact = right
    request = request_for(np.tanh, X)
    assert str(prove(artifact, program, request)) == "unchecked: checks are off"
    request = replace(request, check="sampled")
    foreign = replace(request, target=replace(host_target(), cpu="z80"))
    assert str(prove(artifact, program, foreign)).startswith("unchecked: it is for another CPU")
    narrow = replace(request, target=host_target(256))
    assert prove(artifact, program, narrow).outcome != "unchecked", "it runs here all the same"
    assert str(prove(object(), program, request)).startswith("unchecked: it is for a GPU")
    assert summary([CheckVerdict("checked"), CheckVerdict("unchecked"), CheckVerdict("checked")]) == (
        "2 checked, 1 unchecked"
    )


# --- what becomes of kernels -----------------------------------------------------------------


def checked(f) -> tuple[int, ...]:
    c = f.state().counters
    names = ("kernels_checked", "kernels_partly_checked", "kernels_unchecked", "check_failures")
    return tuple(c[name] for name in names)


def test_state_and_explain_say_what_was_checked():
    with pf.knobs.override(check="all"):
        f = pf.jit(lambda x: np.tanh(x) + 1)
        f(X), f(X)
    assert checked(f) == (1, 0, 0, 0)
    (made,) = f.state().specializations
    assert made.checked == "checked on 4 inputs"
    assert made.stages["check"] > 0
    assert "      checked on 4 inputs" in f.explain() or "    checked on 4 inputs" in f.explain()
    with pf.knobs.override(check="off"):
        f = pf.jit(lambda x: np.tanh(x) + 1)
        f(X), f(X)
    assert checked(f) == (0, 0, 1, 0)
    assert f.state().specializations[0].checked == "unchecked: checks are off"
    with pytest.raises(pf.KnobError, match="off, sampled, all"):
        pf.knobs.check = "some"
    for text, mode in (("on", "sampled"), ("1", "sampled"), ("0", "off"), ("ALL", "all")):
        with pf.knobs.override(check=text):
            assert pf.knobs.check == mode


@pytest.mark.wrong_kernels
def test_a_wrong_kernel_never_serves(folder, monkeypatch):
    """It costs one event, is evaluated instead, not stored, and the reason replays it."""
    tanh = op_named("tanh")
    with monkeypatch.context() as patch:
        patch.setattr(tanh, "scalar", classmethod(lambda cls, x: x.math("tanh") + 1e-3))
        f = pf.jit(lambda x: np.tanh(x) * 2)
        for _ in range(3):
            np.testing.assert_array_equal(f(X), np.tanh(X) * 2)
        counters = f.state().counters
        assert checked(f) == (0, 0, 0, 1)
        assert (counters["kernel_launches"], counters["compile_failures"]) == (0, 1)
        (event,) = [e for e in pf.events() if e.kind in ("check-failed", "kernel-failed")]
        assert event.kind == "check-failed" and event.level == "warning"
        (reason,) = f.state().reasons
        assert "its kernel is wrong: result 0: element" in reason
        assert "failed: result 0" in f.state().specializations[0].checked
        assert not [
            e for e in pf.events() if e.kind == "disk-store" and e.function == f.__name__ and e.details["bytes"] > 3000
        ], "only the profile is stored"
        path = re.search(r"python -m profuse\.executor\.compile\.proof (\S+)", reason)[1]
        assert replay(path).outcome == "failed"
    about = json.loads(Path(path).read_text().splitlines()[0].removeprefix("// profuse-proof: "))
    assert (about["function"], about["inputs"]["kind"]) == ("fusion_0", "plain")
    assert replay(path).outcome == "checked", "the compiler is mended"
    Path(path).unlink()


def test_verdicts_are_stored(folder, capsys):
    for hits in range(2):
        f = pf.jit(lambda x: np.tanh(x) * 2)
        f(X), f(X)
        assert f.state().counters["disk_hits"] == hits
        assert checked(f)[2:] == (0, 0)
        assert f.state().specializations[0].checked.startswith("checked")
    capsys.readouterr()
    assert cache_tool(["list", "--dir", str(folder.root)]) == 0
    assert re.search(r"1 kernel .* 1 (checked|partly)\n", capsys.readouterr().out)
    assert cache_tool(["verify", "--dir", str(folder.root)]) == 0
    assert re.match(r"kernels: 1 (checked|partly)\n2 entries checked,", capsys.readouterr().out)
    with pf.knobs.override(check="off"):
        f = pf.jit(lambda x: np.tanh(x) * 2)
        f(X), f(X)
    assert f.state().counters["disk_hits"] == 0, "who wants no check gets what was not checked"


@pytest.mark.wrong_kernels
def test_a_kernel_that_crashes_costs_a_worker_and_its_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, "segv@f:fusion_0:check")
    request = request_for(lambda x: np.tanh(x) + 1, X)
    request = replace(request, check="sampled", repro_dir=str(tmp_path))
    pool = Pool(limits=Limits(timeout=20.0))
    try:
        result = pool.compile(request)
    finally:
        pool.close()
    assert (result.kernels, result.faulty, pool.counts.lost) == ({}, True, 1)
    assert result.failures["fusion_0"].kind is Kind.CHECK_CRASHED
    assert result.failures["fusion_0"].detail.startswith("the compile worker was killed by SIG")
    assert result.checks["fusion_0"].outcome == "failed"
    (event,) = [e for e in pf.events() if e.kind == "worker-lost"]
    assert event.reason.startswith("the check of its kernel crashed: ")
    assert event.details["group"] == "fusion_0"
    (path,) = tmp_path.iterdir()
    assert str(path) in str(result.failures["fusion_0"])
    assert replay(str(path)).outcome == "checked", "nothing is wrong but for the fault"


def test_compiles_tell_before_they_run_a_kernel():
    told = []
    request = replace(request_for(np.tanh, X), check="sampled")
    result = compile_graph(request, told.append, on_check=lambda name: told.append(f"check {name}"))
    assert told == ["fusion_0", "check fusion_0"]
    assert result.checks["fusion_0"].runs == 4
