import os
import sys
from pathlib import Path

from internals import share_pool

sys.path.insert(0, str(Path(__file__).parent))
# Tests of one room take examples from those of another.
sys.path.extend(sorted({str(path.parent) for path in Path(__file__).parent.glob("*/test_*.py")}))

import profuse as pf
import pytest
from cached_graphs import caching_in
from profuse.executor.compile.worker import Limits, Pool
from profuse.executor.compile.worker.faults import VARIABLE
from profuse.executor.memory import thread_block
from profuse.executor.routing.race import Race
from profuse.executor.settings.knobs import knobs


@pytest.fixture
def profiling_off():
    """Graphs made in this test get the spec-keyed executor."""
    before = pf.set_profiling_mode(False)
    yield
    pf.set_profiling_mode(before)


@pytest.fixture
def loops_in_plans(monkeypatch):
    """No loop is in a kernel: plans run all of them, as they do those with products."""
    from profuse.dialect.passes.speculate import fuse_loops
    from profuse.dialect.reasons import Kind, Reason

    monkeypatch.setattr(fuse_loops, "_refusal", lambda loop: Reason(Kind.NEVER_FUSED, op="loop"))


@pytest.fixture
def folder(tmp_path):
    """The store of a disk cache that is on, in a folder of its own."""
    with caching_in(tmp_path / "cache") as found:
        yield found


SECONDS = 5.0  # for a compile: a tenth is usual, and slow machines under load take 3
"""The time after which the shared pool takes a worker's compile for one that hangs."""


@pytest.fixture(scope="module")
def module_pool():
    os.environ[VARIABLE] = "hang@hang,segv@segv,slow@slow,slow@slow/fallback_0,"
    os.environ[VARIABLE] += "segv@two:fusion_1,segv@all:fusion_0,segv@all:fusion_1"
    made = Pool(limits=Limits(timeout=SECONDS))
    yield made
    del os.environ[VARIABLE]
    made.close()


@pytest.fixture
def pool(module_pool, monkeypatch):
    """The shared pool, whose graphs named after a fault meet that fault; background by default."""
    share_pool(monkeypatch, module_pool)
    with pf.knobs.override(background=True):
        yield module_pool


@pytest.fixture(params=[False, True], ids=["waits", "background"])
def background(request):
    """Compiles on the call, and in the one worker that all of these tests share."""
    return request.param


@pytest.fixture
def failing_compiles(monkeypatch):
    """Every compile fails, wherever it is done; the attempts."""
    attempts = []

    def fail(request, counters, compile_=None):
        attempts.append(request)
        raise pf.PipelineError("no")

    for place in ("compiler", "worker.pool"):
        monkeypatch.setattr(f"profuse.executor.compile.{place}.compile_cached", fail)
    return attempts


@pytest.fixture
def small_groups_in_python():
    """Plans of many groups, which the Python dispatcher runs."""
    thread_block.release()
    with knobs.override(max_fusion_ops=2, native_dispatch=False, cache=False):
        yield
    thread_block.release()


@pytest.fixture
def frames(monkeypatch):
    """What each call of a plan built from here on got; poisoned, so that stale values show."""
    got, given_out = [], thread_block.frame

    def spy(inner, sizes):
        block, made = given_out(inner, sizes)
        for array in made:
            if array is not None:
                array.view("u1").fill(0xFF)
        got.append(made)
        return block, made

    monkeypatch.setattr(thread_block, "frame", spy)
    return got


@pytest.fixture
def python_wins(monkeypatch):
    """Races that Python wins, whatever else the machine does."""
    note = Race.note
    monkeypatch.setattr(
        Race, "note", lambda race, _, *, is_python: note(race, 2e-6 if is_python else 20e-6, is_python=is_python)
    )
