"""Plans dispatched in Python against Python itself: the faster one runs the calls."""

import numpy as np
import profuse as pf
import pytest
from profuse.executor.functions.graph_calls import GraphCalls
from profuse.executor.routing.race import Race, Races


def run(race, plan, python, calls, may_be_long=False):
    """Play a race with constant times; returns who ran each call."""
    turns = ""
    for _ in range(calls):
        is_pythons = race.verdict(may_be_long=may_be_long) is not None
        race.note(python if is_pythons else plan, is_python=is_pythons)
        turns += "n" if is_pythons else "p"
    return turns


def test_the_faster_one_wins():
    assert run(Race(), 10e-6, 2e-6, 20).endswith("n" * 12)
    assert run(Race(), 0.01, 0.1, 20) == "ppn" + "p" * 17  # clear after one call of Python's
    assert run(Race(), 1e-6, 10e-6, 20) == "ppnn" + "p" * 16  # one call of Python's may have been slow
    assert run(Race(), 4e-6, 10e-6, 20) == "ppnn" + "p" * 16


def test_equals_stay_with_the_plan():
    turns = run(Race(), 2.0e-6, 1.95e-6, 40)
    assert turns.endswith("p" * 10) and "n" in turns


def test_what_is_close_is_measured_more_often():
    """A slow call among few is no reason to take the slower way for good."""
    race = Race()
    turns = ""
    for k in range(40):
        is_pythons = race.verdict(may_be_long=False) is not None
        slow = 1.7 if k < 9 else 1.0  # the machine is busy at first, when Python runs
        race.note(1.3e-6 if not is_pythons else 1e-6 * slow, is_python=is_pythons)
        turns += "n" if is_pythons else "p"
    assert turns.endswith("n" * 10)


def test_a_call_that_the_machine_stops_does_not_decide():
    race = Race()
    for _ in range(2):
        race.note(10e-6, is_python=False)
    race.note(10e-3, is_python=True)
    assert run(race, 10e-6, 2e-6, 20).endswith("n" * 12)


def test_nobody_waits_to_find_out_about_python():
    assert run(Race(), 0.2, 1e-3, 10) == "p" * 10  # a long call
    assert run(Race(), 1e-3, 1e-6, 10, may_be_long=True) == "p" * 10  # a loop
    race = Race()
    race.note(1e-6, is_python=True)  # while the plan was compiled
    assert run(race, 1e-3, 1e-6, 20, may_be_long=True).endswith("n" * 8)


def test_a_new_plan_is_measured_anew():
    races = Races()
    race = races.of([np.ones(5)])
    run(race, 10e-6, 2e-6, 20)
    assert races.lost() == [race]
    races.restart()
    assert not races.lost() and race.plans == 0 and race.pythons


def test_sizes_of_one_magnitude_race_together():
    races = Races()
    assert races.of([np.ones(5), 3, 1.0]) is races.of([np.ones(7), 2, 9.0])
    assert races.of([np.ones(5)]) is not races.of([np.ones(500)])
    for k in range(100):
        races.of([2**k])
    assert len(races._races) == 32


def test_a_plan_in_python_loses_on_small_arrays():
    def function(x):
        return float(x.sum()), int(x[0]) + 1, x.shape[0]

    x = np.ones(3)
    with pf.knobs.override(unsupported="python", demote=1.25):
        f = pf.jit(function)
        for _ in range(40):
            assert f(x) == (3.0, 2, 3)
        state = f.state()
    assert state.tier == "python" and not state.emitted
    assert state.counters["python_calls"] > 20
    assert state.counters["calls"] == 40
    assert "Some calls run in Python" in f.explain()


class Model:
    def __init__(self, n):
        self.w = np.ones(n)


def scaled(model, x):
    return float((x * model.w).sum()), int(x[0]) + 1, x.shape[0]


def lookups(f, monkeypatch):
    """A list that grows with each call of whose graph is asked."""
    seen, find = [], f._graphs.lookup
    monkeypatch.setattr(f._graphs, "lookup", lambda *args: (seen.append(1), find(*args))[1])
    return seen


def test_python_need_not_win_each_call_anew(python_wins, monkeypatch):
    """To find the graph of a call with an object takes longer than a small function."""
    model, x = Model(3), np.ones(3)
    with pf.knobs.override(unsupported="python", demote=1.25):
        f = pf.jit(scaled)
        for _ in range(40):
            assert f(model, x) == (3.0, 2, 3)
        seen = lookups(f, monkeypatch)
        for _ in range(260):
            assert f(model, x) == (3.0, 2, 3)
        assert 2 <= len(seen) <= 6  # it is looked at from time to time
        assert f.state().tier == "python" and f.state().counters["calls"] == 300
        # Other sizes, other objects, no races.
        for other in ((model, x[:1]), (Model(3), x)):
            before = len(seen)
            assert f(*other) == scaled(*other)
            assert len(seen) > before
        before = len(seen)
        with pf.knobs.override(demote=0):
            assert f(model, x) == (3.0, 2, 3)
        assert len(seen) > before
        model.w = np.full(3, 2.0)
        assert f(model, x) == (6.0, 2, 3)


def test_calls_with_containers_are_told_by_what_these_hold(python_wins, monkeypatch):
    """Items may be of any size; nested ones, and many, are looked at each time."""

    def function(xs):
        return float(xs[0].sum()), int(xs[0][0]) + 1, len(xs)

    with pf.knobs.override(unsupported="python", demote=1.25):
        f = pf.jit(function)
        for _ in range(40):
            f([np.ones(3)])
        assert f.state().tier == "python"
        seen = lookups(f, monkeypatch)
        for _ in range(10):
            f([np.ones(3)])
        assert len(seen) == 0
        f([np.ones(300)])
        for k in range(10):
            assert len(seen) == k + 1
            f([np.ones(3)] * 20)


@pytest.mark.parametrize("setting", [{"demote": 0}, {"unsupported": "raise"}])
def test_without_races_the_plan_runs(setting):
    def function(x):
        return float(x.sum()), int(x[0]) + 1

    with pf.knobs.override(**{"unsupported": "python", "demote": 1.25, **setting}):
        f = pf.jit(function)
        for _ in range(30):
            assert f(np.ones(3)) == (3.0, 2)
        assert f.state().counters["python_calls"] == 0


def test_calls_that_python_has_won_are_looked_at_now_and_then(python_wins, monkeypatch):
    """Looking a graph up takes longer than small calls do."""

    def function(x, k):
        return float(x.sum()) * k, int(x[0]) + 1

    served = []
    serve = GraphCalls.serve
    monkeypatch.setattr(GraphCalls, "serve", lambda *args: served.append(1) or serve(*args))
    with pf.knobs.override(unsupported="python", demote=1.25):
        f = pf.jit(function)
        for _ in range(40):
            f(np.ones(3), 2)
        del served[:]
        for _ in range(650):
            assert f(np.ones(3), 2) == (6.0, 2)
        assert len(served) == 10
        for _ in range(10):  # of other sizes there is another race
            assert f(np.ones(3000), 2) == (6000.0, 2)
        assert len(served) > 15
        assert f(np.ones(3), k=2) == (6.0, 2)
    assert f.state().counters["calls"] == 701
