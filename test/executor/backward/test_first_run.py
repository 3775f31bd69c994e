"""First runs are not walked: what they have had is held, and walked beside the program (R4.7)."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from captured_programs import WEIGHTS
from profuse.executor.backward import captured_run as running
from profuse.executor.backward.beside import BESIDE
from profuse.executor.backward.snapshot import reached, taken
from profuse.executor.backward.walk import Walk, pattern_of
from profuse.executor.backward.walk_outline import Outline, Stand, outlined


@pytest.fixture(autouse=True)
def _background():
    with pf.knobs.override(background=True):
        yield
        assert pf.compiled_autograd.wait(60)


@pytest.fixture
def walks(monkeypatch):
    """The numbers of nodes of runs that the program has walked itself."""
    found = []

    class Counted(Walk):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            found.append(len(self.nodes))

    monkeypatch.setattr(running, "Walk", Counted)
    return found


def chain(x, rounds):
    y = x
    for _ in range(rounds):
        y = np.tanh(y) * x
    return y.sum()


def backward(loss):
    with pf.compiled_autograd():
        loss.backward()


def state():
    found = pf.compiled_autograd.state()
    return found.captures, found.hits, found.waiting


def test_a_run_of_so_many_nodes_as_none_before_is_not_walked(walks):
    x = pf.array(WEIGHTS, requires_grad=True)
    for rounds in (3, 4, 5):
        backward(chain(x, rounds))
    assert BESIDE.wait(60)
    assert walks == [] and state() == (3, 0, 3)
    backward(np.exp(x).sum())  # as many nodes as no other
    backward((np.sin(x) * 2.0 * x + np.tanh(x)).sum())  # 6 nodes and a leaf, new as well
    assert walks == []
    assert BESIDE.wait(60)
    backward((np.cos(x) * 3.0 * x + np.tanh(x)).sum())  # as many, but others
    assert walks == [7]
    assert BESIDE.wait(60)
    assert state()[0] == 6


def test_one_like_it_that_comes_before_it_was_captured_is_not_captured_again(walks, monkeypatch):
    jobs = []
    monkeypatch.setattr(BESIDE, "ask", jobs.append)
    x = pf.array(WEIGHTS, requires_grad=True)
    for _ in range(3):
        backward(chain(x, 3))
    assert len(jobs) == 1 and state() == (0, 0, 3)
    monkeypatch.undo()
    BESIDE.ask(jobs[0])
    assert pf.compiled_autograd.wait(60)
    backward(chain(x, 3))
    assert state() == (1, 1, 3)


def test_hooks_count_that_the_run_has_had(monkeypatch):
    """Not those that there are when it is walked."""
    jobs, seen = [], []
    monkeypatch.setattr(BESIDE, "ask", jobs.append)
    x = pf.array(WEIGHTS, requires_grad=True)
    handle = x.register_hook(lambda g: seen.append(1))
    backward(chain(x, 3))
    handle.remove()
    x.node.register_prehook(lambda gs: seen.append(2))
    monkeypatch.undo()
    BESIDE.ask(jobs[0])
    assert pf.compiled_autograd.wait(60)
    (made,) = pf.compiled_autograd.state().runs
    assert [call.kind for call in made.calls] == ["tensor_pre_hook"]
    backward(chain(x, 3))  # with another hook, it is another run
    assert pf.compiled_autograd.wait(60)
    assert [call.kind for call in pf.compiled_autograd.state().runs[1].calls] == ["pre_hook"]
    assert seen == [1, 2]


def test_a_run_that_fails_is_not_captured(walks):
    x = pf.array(WEIGHTS, requires_grad=True)

    def fail(g):
        raise KeyError("of the user's")

    handle = x.register_hook(fail)
    with pytest.raises(KeyError):
        backward(chain(x, 3))
    handle.remove()
    assert pf.compiled_autograd.wait(60)
    assert state()[0] == 0
    backward(chain(x, 3))
    assert pf.compiled_autograd.wait(60)
    assert state()[0] == 1 and walks == []


def test_a_snapshot_holds_little_memory():
    x = pf.array(np.ones((600, 256)), requires_grad=True)  # more than a megabyte
    for loss in ((x * 2.0).sum(), (np.tanh(x)[:1, :1] * 2.0).sum()):
        roots = [(loss.node, 0, np.ones(()))]
        assert (taken(roots, None, reached(roots)) is None) is (len(reached(roots)) > 3)


def many_kinds(w):
    f = pf.jit(lambda x: np.tanh(x * 2) + np.exp(x) * x)
    for _ in range(4):
        f(w)
        f.wait()
    y = f(w) * 1.5 + w.T[0].sum()
    y.register_hook(lambda g: None)
    y.node.register_hook(lambda found, gs: None)
    return (y / (1.0 + w * w)).max() + np.sin(y).mean() * np.float64(3.0)


@pytest.mark.parametrize("program", [many_kinds, lambda w: chain(w, 20)])
@pytest.mark.parametrize("captured", [False, True])
def test_outlines_of_snapshots_are_those_of_walks(program, captured):
    w = pf.array(WEIGHTS, requires_grad=True)
    loss = program(w)
    roots = [(loss.node, 0, np.ones(()))]
    captures = {w.node: [(0, 0)]} if captured else None
    walk = Walk(roots, captures)
    wanted = Outline(walk, pattern_of(walk.arrays))
    snapshot = taken(roots, captures, reached(roots))
    with pf.no_grad():
        loss.backward()  # frees what was saved, and a write to the leaf is none to the run
        w += 1.0
    found = outlined(snapshot)
    for name in set(Outline.__slots__) - {"roots", "saved", "hooked"}:
        assert getattr(found, name) == getattr(wanted, name), name
    assert keys(found.hooked) == keys(wanted.hooked)
    assert told(found.saved) == told(wanted.saved) and len(found.saved) > 3


def keys(hooked):
    return {node: counts.key for node, counts in hooked.items()}


def told(saved):
    return {
        node: [[(x.dtype, x.shape) if type(x) is Stand else repr(x) for x in group] for group in groups]
        for node, groups in saved.items()
    }
