"""Graphs of other ranks and dtypes print the same, and keep profiles of their own."""

import json

import numpy as np
import profuse as pf
import pytest
from cached_graphs import output_of, start

PROGRAM = """
import json, sys, numpy as np, profuse as pf
from internals import executors

f = pf.jit(lambda x, k: np.tanh(x) * k + 1, name="f", background=False)
said = []
for shape, dtype in json.loads('ARGUMENTS'):
    x = np.linspace(0, 1, int(np.prod(shape)), dtype=dtype).reshape(shape)
    for calls in (4, 8):
        before = f.state().counters
        for _ in range(calls):
            np.testing.assert_allclose(f(x, 2.0), np.tanh(x) * 2.0 + 1, rtol=1e-5)
    after = f.state().counters
    names = ("kernel_launches", "guard_misses", "fallback_calls", "evaluated_ops", "compiles")
    said.append({name: after[name] - before[name] for name in names})
    chains = [sum(member.optimized is not None for member in e.chain()) for e in executors(f)]
    said[-1] |= {"chain": max(chains), "profiled": after["profiled_runs"]}
print(json.dumps(said))
"""
RANKS = ([2, 3], "f8"), ([7], "f8"), ([2, 3, 4], "f8"), ([2, 3], "f4")
SIZES = ([5, 6], "f8"), ([8, 7], "f8"), ([9, 1], "f8")
STEADY = {"kernel_launches": 8, "evaluated_ops": 0, "compiles": 0}


def of_process(folder, *arguments):
    """What a process of its own counts during eight later calls with each of these arguments."""
    return json.loads(output_of(start(PROGRAM.replace("ARGUMENTS", json.dumps(arguments)), folder)))


def test_what_processes_learn_of_other_ranks_costs_later_ones_nothing(tmp_path):
    """No guard of a process is one on a rank or dtype that only others have seen."""
    found = [of_process(tmp_path, *given) for given in (RANKS[:1], RANKS[1:], RANKS)]
    alone = {**STEADY, "guard_misses": 0, "fallback_calls": 0, "chain": 1}
    assert found[0] == [{**alone, "profiled": 1}]
    assert found[1] == [{**alone, "profiled": k} for k in (1, 2, 3)]
    assert found[2] == [{**alone, "profiled": 0}] * 4


def test_r1_5_specialisations_of_all_processes_are_bounded_by_the_strategy(tmp_path):
    """Two static ones and a dynamic one for all sizes, however many processes bring new ones."""
    found = []
    for sizes in (RANKS[0], *SIZES[:2]) * 2:
        (said,) = of_process(tmp_path, sizes)
        assert STEADY.items() <= said.items()
        found.append((said["chain"], said["fallback_calls"] // 8, said["profiled"]))
    assert found == [(1, 0, 1), (2, 1, 1), (3, 2, 1), (3, 0, 0), (3, 1, 0), (3, 2, 0)]


def fn(x):
    return np.tanh(x) * 2 + 1


def warmed(*arrays):
    f = pf.jit(fn, background=False)
    for x in arrays:
        for _ in range(2):
            f(x)
    return f


@pytest.mark.parametrize("how", ["load", "profile"])
def test_saved_profiles_are_those_of_a_rank(tmp_path, how):
    flat, square, single = np.ones(7), np.ones((2, 3)), np.ones((2, 3), np.float32)
    path = tmp_path / "f.profuse"
    warmed(square, flat, single).save(path)
    g = pf.load(path) if how == "load" else pf.jit(fn, profile=path, background=False)
    for x in (flat, single, square):
        np.testing.assert_allclose(g(x), fn(x), rtol=1e-6)
    counters = g.state().counters
    assert (counters["profiled_runs"], counters["profiles_restored"]) == (0, 3)
    assert (counters["guard_misses"], counters["kernel_launches"]) == (0, 3)


def test_a_file_without_this_rank_says_so(tmp_path):
    path = tmp_path / "f.profuse"
    warmed(np.ones((2, 3))).save(path)
    g = pf.jit(fn, profile=path, background=False)
    g(np.ones(7)), g(np.ones(7))
    counters = g.state().counters
    assert (counters["profiled_runs"], counters["guard_misses"]) == (1, 0)
    assert "arguments ('float64[1]' here, 'float64[2]' there)" in g.explain()
