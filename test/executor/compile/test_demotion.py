"""Kernels that were measured to be slower than what they replace are not used."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace

import numpy as np
import profuse as pf
import pytest
from internals import chunk_work, slow_kernels
from profuse.executor.compile.cache.codec import from_sections, to_sections
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.compile.proof.check_verdict import Times
from profuse.executor.compile.proof.measure import LEAST, compared
from profuse.executor.compile.worker import Pool
from profuse.executor.interpret.loop_limit import Limit, TooLong
from profuse.executor.plans.demote import demote
from profuse.lowering.cpu.pool_block import set_chunk_work
from profuse.lowering.thread_pool import CHECKED, CHUNK
from worker_requests import request_for

pytestmark = pytest.mark.optimised  # kernels are measured

X = np.linspace(-1, 1, 1 << 16, dtype=np.float32)


def f_of(x):
    return np.tanh(x) + 1


@pytest.fixture(autouse=True)
def demoting():
    with pf.knobs.override(demote=True, threads=1):
        yield


def counts(f, *names: str) -> tuple[int, ...]:
    counters = f.state().counters
    return tuple(counters[name] for name in names)


def called(f, *args, times: int = 4):
    """The function after some calls, each with the right result."""
    made = pf.jit(f)
    for _ in range(times):
        np.testing.assert_allclose(made(*args), f(*args), rtol=1e-5)
    return made


# --- what is measured ----------------------------------------------------------------------------


class Machine:
    """A clock, and two pieces of work that take the time that they are told to take.

    ``noise``: gives the factor by which one piece of work takes longer.
    """

    def __init__(self, kernel: float, evaluated: float, noise=lambda: 1.0) -> None:
        self.now, self.runs = 0.0, [0, 0]
        self.seconds, self.noise = (kernel, evaluated), noise

    def clock(self) -> float:
        return self.now

    def work(self, which: int) -> None:
        self.runs[which] += 1
        self.now += self.seconds[which] * self.noise()

    def compared(self) -> Times | None:
        return compared(lambda: self.work(0), lambda: self.work(1), self.clock)


@pytest.mark.parametrize(
    ("kernel", "evaluated", "runs"),
    [(1.0, 10.0, 1), (1.0, 2.0, 2), (1.0, 1.5, 3), (1.0, 1.0, 3), (1.001, 1.0, 7), (9.0, 1.0, 7)],
)
def test_only_what_may_be_demoted_takes_all_rounds(kernel, evaluated, runs):
    machine = Machine(kernel, evaluated)
    times = machine.compared()
    assert machine.runs == [runs, runs] and times.rounds == runs
    assert (times.kernel, times.evaluated) == pytest.approx((kernel, evaluated))


def test_loops_of_an_evaluation_end_once_the_kernel_is_much_faster():
    machine, limit = Machine(1.0, 100.0), Limit(1000.0)

    def evaluate():
        if limit.seconds < 100.0:
            machine.now += limit.seconds
            raise TooLong
        machine.work(1)

    times = compared(lambda: machine.work(0), evaluate, machine.clock, limit)
    assert machine.now < 10 and times.slowdown() < 0.3
    assert "more than 4000.00 ms" in str(times)
    assert Times.from_json(times.to_json()) == times
    slow = Machine(3.0, 1.0)
    times = compared(lambda: slow.work(0), lambda: slow.work(1), slow.clock, limit)
    assert times.slowdown() == pytest.approx(3.0) and "more than" not in str(times)


def test_short_kernels_are_not_compared():
    machine = Machine(0.9 * LEAST, 0.01 * LEAST)
    assert machine.compared() is None
    assert machine.runs == [1, 0]


@pytest.mark.parametrize("ratio", [0.3, 0.9, 1.0, 1.1])
def test_noise_demotes_no_kernel(ratio):
    """A third of all samples take up to ten times as long, the first kernel's always."""
    demoted = 0
    for seed in range(400):
        random_ = random.Random(seed)

        def noise(r=random_) -> float:
            return 1 + 9 * r.random() if r.random() < 1 / 3 else 1.0

        machine = Machine(ratio, 1.0, noise)
        times = machine.compared()
        demoted += times.slowdown() > 1.25
    assert demoted <= 2


def test_noise_keeps_no_kernel_that_is_much_slower():
    """Both sides need a lucky sample, or an unlucky one, of seven."""
    kept = 0
    for seed in range(400):
        random_ = random.Random(seed)

        def noise(r=random_) -> float:
            return 1 + r.random() if r.random() < 1 / 3 else 1.0

        kept += Machine(3.0, 1.0, noise).compared().slowdown() <= 1.25
    assert kept == 0


def test_an_ordinary_kernel_is_not_demoted_beside_others_work():
    """Real times, with more processes at work than there are cores."""
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin) for _ in range(3)]
    x = np.linspace(-1, 1, 1 << 19, dtype=np.float32)
    try:
        for _ in range(3):
            f = called(lambda x: np.tanh(x) * x + 1, x, times=3)
            assert counts(f, "demotions", "compiles") == (0, 1), f.explain()
            assert counts(f, "kernel_launches") == (2,)
    finally:
        for process in others:
            process.kill()
            process.wait()


def test_threads_may_make_a_kernel_faster():
    shared, alone = Times(3.0, 1.0, 7, can_share=True), Times(3.0, 1.0, 7)
    assert (shared.slowdown(4), alone.slowdown(4)) == (0.75, 3.0)
    result = compile_graph(request_for(f_of, X))
    (group,) = result.kernels
    for times, threads, slow in ((shared, 1, True), (shared, 4, False), (alone, 4, True)):
        with pf.knobs.override(threads=threads):
            assert (group in demote(replace(result, times={group: times})).demoted) == slow


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_the_sizes_are_those_of_the_profile(monkeypatch, strategy):
    """Kernels of symbolic sizes are measured at what the profiled call had."""
    seen = slow_kernels(monkeypatch, 0.0)
    f = pf.jit(lambda x, y: np.tanh(x) + y, strategy=[(strategy, 1)])
    x = np.ones((96, 700), np.float32)
    f(x, x[0]), f(x, x[0])
    assert counts(f, "compiles", "kernels_compiled") == (1, 1)
    (shapes,) = seen
    assert shapes == [(96, 700), (700,)]


def test_chunks_are_those_of_programs(monkeypatch):
    """A worker checks kernels in many small chunks, and measures them in the usual ones."""
    seen = []
    slow_kernels(monkeypatch, 0.0, launched=lambda: seen.append(chunk_work()))
    set_chunk_work(CHECKED)
    try:
        f = pf.jit(f_of, strategy=[("dynamic", 1)])
        f(X), f(X)
        assert chunk_work() == CHECKED
    finally:
        set_chunk_work(CHUNK)
    assert seen and set(seen) == {CHUNK}
    assert counts(f, "kernels_compiled") == (1,)


def test_the_copy_of_a_view_is_part_of_the_evaluation():
    """Op by op this is a view in no time, which the plan has to copy, slower than the kernel."""
    x = np.random.default_rng(0).random((1024, 1024))
    f = called(lambda x: x.T * 1, x, times=3)
    assert counts(f, "demotions", "kernel_launches") == (0, 2), f.explain()


def test_small_ones_are_not_even_run(monkeypatch):
    seen = slow_kernels(monkeypatch, 0.05)
    f = called(f_of, X[:512])
    assert (seen, counts(f, "demotions", "kernels_compiled")) == ([], (0, 1))


def test_without_sizes_nothing_is_measured(monkeypatch, profiling_off):
    seen = slow_kernels(monkeypatch, 0.05)
    f = called(f_of, X)
    assert (seen, counts(f, "demotions", "kernels_compiled")) == ([], (0, 1))


def test_what_cannot_be_measured_is_used(monkeypatch):
    def fails(*_):
        raise RuntimeError("no clock")

    monkeypatch.setattr("profuse.executor.compile.proof.measure.compared", fails)
    monkeypatch.setattr("profuse.executor.compile.proof.measure.values", fails)
    f = called(f_of, X)
    assert counts(f, "demotions", "kernels_compiled", "kernel_launches") == (0, 1, 3)
    (event,) = [e for e in pf.events() if e.kind == "unmeasured"]
    assert event.reason == "RuntimeError: no clock"


# --- what becomes of it ------------------------------------------------------------------------


def test_a_slow_kernel_is_demoted_counted_and_explained(monkeypatch):
    slow_kernels(monkeypatch, 0.01)
    f = called(f_of, X)
    assert counts(f, "demotions", "compiles", "kernels_compiled") == (1, 1, 0)
    assert counts(f, "kernel_launches", "compile_failures", "check_failures") == (0, 0, 0)
    assert counts(f, "evaluated_ops", "guard_hits", "guard_misses") == (8, 3, 0)
    state = f.state()
    (reason,) = state.reasons
    assert "group @fusion_0 is interpreted: its kernel is slower than NumPy: a launch" in reason
    assert "(least of 7 runs)" in reason
    assert state.specializations[0].kernels == ()
    (event,) = [e for e in pf.events() if e.kind == "demoted"]
    assert (event.details["group"], event.level) == ("fusion_0", "info")
    text = f.explain()
    assert "runs op by op in NumPy: nothing of it is native code" in text
    assert f"{reason}. To use it all the same, set pf.knobs.demote = False." in text
    assert pf.counters()["demotions"] >= 1
    assert "fusion_0" in f.ir("asm"), "the code can still be looked at"


def test_times_are_told_of_kernels_that_serve_too(monkeypatch):
    """The machine decides which side of 1e6 they are on, and nothing else."""
    slow_kernels(monkeypatch, 0.001)
    with pf.knobs.override(demote=1e6):
        f = called(f_of, X)
    (made,) = f.state().specializations
    assert made.measured.startswith("a launch takes 1.") and made.kernels == ("fusion_0",)
    assert f"measured: {made.measured}" in f.explain()


@pytest.mark.usefixtures("own_functions")
def test_reports_and_logs_tell_it(monkeypatch, tmp_path):
    slow_kernels(monkeypatch, 0.01)
    with pf.knobs.override(log=str(tmp_path / "run.jsonl")), pf.trace():
        called(f_of, X)
        page = pf.report(tmp_path / "report.html").read_text("utf-8")
    assert "its kernel is slower than NumPy: a launch takes" in page
    assert "demoted" in (tmp_path / "run.jsonl").read_text("utf-8")


def test_off_the_kernel_serves(monkeypatch):
    seen = slow_kernels(monkeypatch, 0.01)
    with pf.knobs.override(demote=False):
        f = called(f_of, X)
    assert (seen, counts(f, "demotions", "kernel_launches")) == ([], (0, 3))


def test_the_factor_is_a_setting(monkeypatch):
    slow_kernels(monkeypatch, 0.01)
    with pf.knobs.override(demote=1e6):
        f = called(f_of, X)
    assert counts(f, "demotions", "kernel_launches") == (0, 3)
    for text, value in (("on", 1.25), ("1", 1.25), ("off", 0.0), ("0", 0.0), ("1.5", 1.5)):
        with pf.knobs.override(demote=text):
            assert pf.knobs.demote == value
    for wrong in ("0.5", "-1", "nan", "inf", "some"):
        with pytest.raises(pf.KnobError, match="expected on, off, or a number above 1"):
            pf.knobs.demote = wrong


def test_other_groups_stay_native(monkeypatch):
    """Of three groups the slow one alone is evaluated."""
    slow_kernels(monkeypatch, 0.01, of="fusion_1")
    with pf.knobs.override(max_fusion_ops=2):
        f = called(lambda x: np.exp(np.tanh(np.sin(x) + 1) * 2), X)
    assert counts(f, "demotions", "kernels_compiled", "kernel_launches") == (1, 2, 6)
    assert "runs as native code, but for parts that run op by op in NumPy" in f.explain()


@pytest.mark.parametrize("strategy", ["static", "dynamic"])
def test_guards_behind_it_hold(monkeypatch, strategy):
    """NumPy keeps the layout of a transposed operand, kernels do not, and guards ask for theirs."""
    slow_kernels(monkeypatch, 0.05, of="fusion_0")
    x = np.random.default_rng(0).random((300, 400))
    with pf.knobs.override(max_fusion_ops=2):
        f = pf.jit(lambda x: np.exp(np.tanh(x.T * 2 + 1)).sum(0), strategy=[(strategy, 4)])
        for _ in range(4):
            np.testing.assert_allclose(f(x), np.exp(np.tanh(x.T * 2 + 1)).sum(0))
    assert counts(f, "demotions", "kernels_compiled", "compiles") == (1, 2, 1)
    assert counts(f, "guard_hits", "guard_misses", "kernel_launches") == (9, 0, 6)


def test_strict_fusion_keeps_its_kernel(monkeypatch):
    """It asks for one kernel, not for speed."""
    slow_kernels(monkeypatch, 0.01)
    with pf.strict_fusion():
        f = called(f_of, X)
    assert counts(f, "demotions", "kernel_launches") == (0, 3)


def test_a_flush_measures_again(monkeypatch):
    with monkeypatch.context() as patch:
        slow_kernels(patch, 0.01)
        f = called(f_of, X)
    assert counts(f, "demotions", "kernel_launches") == (1, 0)
    f.flush()
    for _ in range(3):
        f(X)
    assert counts(f, "demotions", "kernel_launches", "compiles") == (1, 2, 2)


# --- later processes ---------------------------------------------------------------------------


def test_a_warm_function_does_not_serve_it(folder, monkeypatch):
    """The entry has the kernel and its times; the setting decides."""
    with monkeypatch.context() as patch:
        slow_kernels(patch, 0.01)
        assert counts(called(f_of, X), "demotions", "disk_misses") == (1, 1)
    seen = slow_kernels(monkeypatch, 0.0)
    names = ("disk_hits", "disk_misses", "demotions", "kernel_launches")
    assert counts(called(f_of, X), *names) == (1, 0, 1, 0)
    with pf.knobs.override(demote=1e6):
        assert counts(called(f_of, X), *names) == (1, 0, 0, 4)
    assert seen == [], "nothing is measured again"
    with pf.knobs.override(demote=False):
        assert counts(called(f_of, X), *names) == (0, 1, 0, 4), "an entry without times"


def test_a_saved_file_has_the_kernel_and_its_times(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        slow_kernels(patch, 0.01)
        f = called(f_of, X)
    f.save(tmp_path / "f.profuse")
    for factor, demotions in ((1.25, 1), (1e6, 0)):
        with pf.knobs.override(demote=factor):
            g = pf.load(tmp_path / "f.profuse")
            np.testing.assert_allclose(g(X), f_of(X), rtol=1e-5)
        assert counts(g, "demotions", "kernel_launches") == (demotions, 1 - demotions)


def test_times_cross_processes_and_demotions_are_not_stored(monkeypatch):
    slow_kernels(monkeypatch, 0.01)
    made = compile_graph(replace(request_for(f_of, X), measure=True))
    demoted = demote(made)
    assert (list(demoted.kernels), list(demoted.demoted)) == ([], ["fusion_0"])
    for result in (made, demoted):
        again = from_sections(to_sections(result))
        assert (again.times, again.kernels, again.failures) == (made.times, made.kernels, {})
        assert again.demoted == {}


def test_workers_measure():
    x = np.linspace(-1, 1, 1 << 19)
    request = replace(request_for(lambda x: np.tanh(x) ** 3 + x, x), measure=True)
    pool = Pool()
    try:
        (times,) = pool.compile(request).times.values()
    finally:
        pool.close()
    assert times.kernel >= LEAST and times.evaluated > 0 and times.can_share
