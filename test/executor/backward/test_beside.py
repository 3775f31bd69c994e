"""Captures beside the program: what runs meanwhile, what is counted, and what goes wrong (R4.7)."""

from __future__ import annotations

import os
import weakref

import numpy as np
import profuse as pf
import pytest
from profuse.executor.backward import beside, making
from profuse.executor.settings import events


@pytest.fixture(autouse=True)
def _background():
    with pf.knobs.override(background=True):
        yield
        assert pf.compiled_autograd.wait(60)


def leaf(*shape):
    return pf.array(np.random.default_rng(1).standard_normal(shape), requires_grad=True)


def run(w, x):
    """One run; the gradient that the eager tape gives for it."""
    (np.tanh(x @ w) ** 2).mean().backward()
    wanted, w.grad = np.array(w.grad), None
    with pf.compiled_autograd():
        (np.tanh(x @ w) ** 2).mean().backward()
    found, w.grad = w.grad, None
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def counts():
    state = pf.compiled_autograd.state()
    return state.captures, state.hits, state.waiting


def test_the_first_run_is_eager_and_others_are_served_when_their_graph_is_ready():
    w, x = leaf(3, 2), np.ones((4, 3))
    run(w, x)
    assert pf.compiled_autograd.wait(60) and counts() == (1, 0, 1)
    run(w, x)  # profiled
    assert pf.compiled_autograd.wait(60) and counts() == (1, 1, 1)
    for _ in range(3):
        run(w, x)
    assert counts() == (1, 4, 1)
    counters = pf.compiled_autograd.state().runs[0].function.state().counters
    assert (counters["profiled_runs"], counters["compiles"]) == (1, 1)
    assert counters["kernel_launches"] >= 3 and counters["guard_misses"] == 0


def test_r4_9_batches_of_4_4_5_6_beside_the_program():
    w, found = leaf(3, 2), []
    for batch in (4, 4, 5, 6):
        run(w, np.ones((batch, 3)))
        assert pf.compiled_autograd.wait(60)
        found.append(counts()[0])
    assert found == [1, 1, 2, 2]


def test_hooks_run_once_in_each_run_however_it_is_run():
    w, x, calls = leaf(3, 2), np.ones((4, 3)), []
    w.register_hook(lambda g: calls.append(1))
    for _ in range(40):
        with pf.compiled_autograd():
            (np.tanh(x @ w) ** 2).mean().backward()
    assert len(calls) == 40
    assert pf.compiled_autograd.wait(60)
    captures, hits, waiting = counts()
    assert captures == 1 and waiting >= 1 and hits + waiting == 40


@pytest.mark.parametrize("rows", [4, 1 << 16])
def test_r4_11_what_was_saved_is_freed_by_the_first_run(rows):
    """Little memory is held until the run has been walked beside the program."""
    w = leaf(3, 2)
    y = np.tanh(np.ones((rows, 3)) @ w)
    saved = weakref.ref(y.data)
    loss = (y * y).sum()
    del y
    with pf.compiled_autograd():
        loss.backward()
    if rows == 4:
        assert pf.compiled_autograd.wait(60)
    assert saved() is None
    with pf.compiled_autograd(), pytest.raises(pf.GradientError, match="freed"):
        loss.backward()


def test_a_capture_that_fails_is_told_and_not_tried_again(monkeypatch):
    def fail(made):
        raise RuntimeError("finishing is out of order")

    monkeypatch.setattr(making, "finish", fail)
    events.clear()
    w, x = leaf(3, 2), np.ones((4, 3))
    for _ in range(3):
        run(w, x)
        assert pf.compiled_autograd.wait(60)
    assert counts() == (0, 0, 3)
    (told,) = [e for e in pf.events() if e.kind == "backward-failed"]
    assert told.level == "warning" and "finishing is out of order" in told.reason


def test_a_reset_drops_what_is_under_way():
    w, x = leaf(3, 2), np.ones((4, 3))
    run(w, x)
    pf.compiled_autograd.reset()
    assert pf.compiled_autograd.wait(60) and counts() == (0, 0, 0)
    run(w, x)
    assert pf.compiled_autograd.wait(60)
    assert [made.name for made in pf.compiled_autograd.state().runs] == ["CompiledAutograd0"]


def test_a_compiler_of_the_users_is_given_the_first_run():
    x = leaf(3)
    with pf.compiled_autograd(lambda made: made.interpret):
        (np.tanh(x) * 2.0).sum().backward()
    assert counts() == (1, 0, 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_captures_by_itself(monkeypatch):
    """Also where its parent was about to capture the same run."""
    w, x = leaf(3, 2), np.ones((4, 3))
    monkeypatch.setattr(beside, "_PAUSE", 0.5)  # the parent is about to, until the fork
    run(w, x)
    child = os.fork()
    if child == 0:
        status = 1
        try:
            beside._PAUSE = 0.0
            before = pf.compiled_autograd.state().hits
            for _ in range(4):
                run(w, x)
                pf.compiled_autograd.wait(30)
            after = pf.compiled_autograd.state()
            status = 0 if after.captures == 1 and after.hits > before else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
