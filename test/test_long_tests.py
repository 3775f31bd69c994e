"""Which of the long tests run by default: a part, another one at another commit, and those that faults need."""

from __future__ import annotations

from long_tests import LIST, TURNS, waiting
from mutation_runner import ROOT
from mutations import MUTATIONS


class Item:
    """A test as pytest collects it."""

    def __init__(self, nodeid, mark=None):
        self.nodeid = nodeid
        self.mark = mark

    def get_closest_marker(self, name):
        return self.mark if self.mark == name else None


def items_of(ids):
    return [Item(nodeid) for nodeid in ids]


def test_long_tests_take_turns_from_commit_to_commit():
    items = items_of([*(f"test/a.py::test_a[{k}]" for k in range(400)), "test/a.py::test_b"])
    *long, short = (item.nodeid for item in items)
    later = [{item.nodeid for item in waiting(items, of, long)} for of in ("4f1", "b07")]
    for tests in later:
        assert short not in tests and abs(400 - len(tests) - 400 / TURNS) < 40
    assert 400 - len(later[0] | later[1]) < 60
    assert len(waiting(items, "4f1", long)) == len(later[0])


def test_those_that_catch_faults_run_at_each():
    tests = sorted({test for mutation in MUTATIONS for test in mutation.tests})
    case = next(test for test in tests if "[" in test)
    function = next(test for test in tests if "::" in test and "[" not in test)
    file = next(test for test in tests if "::" not in test)
    items = items_of(f"test/{test}" for test in (case, function, f"{function}[0]", f"{file}::test_a[0]"))
    ids = [item.nodeid for item in items]
    assert not any(waiting(items, of, ids) for of in map(str, range(20)))
    assert any(waiting(items_of(["test/a.py::test_a"]), of, ["test/a.py::test_a"]) for of in map(str, range(20)))


def test_those_that_are_marked_run_at_each():
    items = [Item("test/a.py::test_a", "each_run"), Item("test/a.py::test_b", "slow")]
    later = {item for of in map(str, range(20)) for item in waiting(items, of, [item.nodeid for item in items])}
    assert later == {items[1]}


def test_listed_tests_are_there():
    ids = LIST.read_text("utf-8").splitlines()
    assert ids
    texts = {file: (ROOT / file).read_text("utf-8") for file in {nodeid.partition("::")[0] for nodeid in ids}}
    for nodeid in ids:
        file, *_, name = nodeid.partition("[")[0].split("::")
        assert f"def {name}(" in texts[file], nodeid
