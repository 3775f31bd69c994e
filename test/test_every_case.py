"""Samples of sweeps: how many cases run by default, which, and that each kind of case is among them."""

from itertools import product
from types import SimpleNamespace

from every_case import EVERY_CASE, fewer, named_cases, sampled

NAMES, MODES = [f"op{k}" for k in range(40)], ["static", "dynamic"]


class Item:
    """A test as pytest collects it."""

    def __init__(self, nodeid, values=(), **marks):
        self.nodeid, self.marks = nodeid, marks
        self.callspec = SimpleNamespace(params=dict(enumerate(values)))

    def get_closest_marker(self, name):
        if name not in self.marks:
            return None
        return SimpleNamespace(args=(self.marks[name],), kwargs=self.marks.get("options", {}))


def sweep(cases, n, name="test_a", **options):
    return [Item(f"{name}[{case}]", case, sampled=n, options=options) for case in cases]


def names(items):
    return {item.nodeid for item in items}


def test_one_in_so_many_cases_runs_and_the_same_ones_each_time():
    cases = sweep([(name,) for name in NAMES], 4)
    chosen = sampled(cases)
    assert len(chosen) == 10
    assert names(sampled(cases[::-1])) == names(chosen)
    # Another case changes at most one of those that run.
    assert len(names(sampled(cases[1:])) - names(chosen)) <= 1


def test_each_value_that_cases_share_is_in_the_sample():
    cases = sweep(product(NAMES, MODES), 100)
    chosen = sampled(cases)
    assert len(chosen) == len(NAMES)
    found = {value for item in chosen for value in item.callspec.params.values()}
    assert found == {*NAMES, *MODES}


def test_each_value_of_named_parameters_alone_is_in_the_sample():
    chosen = sampled(sweep(product(NAMES, MODES), 20, each=(1,)))
    assert len(chosen) == 4
    assert {item.callspec.params[1] for item in chosen} == {*MODES}


def test_cases_of_ops_are_of_one_kind_by_their_op():
    several = [SimpleNamespace(op="add", shape=k) for k in range(30)] + [SimpleNamespace(op="sub")] * 2
    chosen = sampled([Item(f"test_a[{k}]", [case], sampled=16) for k, case in enumerate(several)])
    assert len(chosen) == 2
    assert {item.callspec.params[0].op for item in chosen} == {"add", "sub"}


def test_other_tests_and_those_of_gpus_run_whole():
    whole = [Item(f"test_b[{k}]", [k]) for k in range(9)]
    on_gpu = [Item(f"test_a[{k}-cuda]", [k], sampled=3, cuda=None) for k in range(9)]
    chosen = sampled([*whole, *on_gpu, *sweep([(k,) for k in range(9)], 3)])
    assert names(chosen) >= names(whole) | names(on_gpu)
    assert len(chosen) == 9 + 9 + 3


def test_a_case_that_is_asked_for_by_name_runs():
    for case in sweep([(name,) for name in NAMES], 10):
        assert sampled([case]) == {case}


def test_cases_that_deliberate_faults_name_run():
    cases = sweep([(name,) for name in NAMES], 40)
    first = cases[0].nodeid
    assert names(sampled(cases[::-1], {cases[1].nodeid, first})) >= {first, cases[1].nodeid}
    assert named_cases() and all(name.startswith("test/") for name in named_cases())


def test_a_third_of_random_examples_is_drawn_rounded_up():
    assert [fewer(60), fewer(8), fewer(8, 2)] == ([60, 8, 8] if EVERY_CASE else [20, 3, 4])
