"""What the runner of mutations says, on a tree of one module and its tests."""

from __future__ import annotations

from collections import Counter
from typing import Any

import mutation_runner
import pytest
from lowering_faults import NOT_SHOWN
from mutation_runner import ROOT, Mutation, lacks, of_cpu_lowering, revision, sample, try_out
from mutations import MUTATIONS
from profuse.lowering.target import Target

TESTS = """
import time, module

def test_value():
    time.sleep(module.seconds)
    assert module.value == 1
"""


def mutation(old: str, new: str, **declared: Any) -> Mutation:
    return Mutation("a fault", "module.py", old, new, ("test_module.py",), **declared)


def test_every_mutation_can_be_tried():
    """The text that it changes is there, once, and so are the tests that have to notice, or checks of kernels."""
    stale = []
    for m in (*MUTATIONS, *of_cpu_lowering(MUTATIONS)):
        for file, old, _ in ((m.file, m.old, m.new), *m.also):
            path = ROOT / file
            if not path.exists() or path.read_text("utf-8").count(old) != 1:
                stale.append(f"{m.name}: {file}")
        stale += [f"{m.name}: {t}" for t in m.tests if not (ROOT / "test" / t.split("::")[0]).exists()]
    names = {m.name for m in MUTATIONS}
    assert not stale and NOT_SHOWN.keys() <= names


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "test_module.py").write_text(TESTS)
    (tmp_path / "module.py").write_text("value = 1\nseconds = 0\nunused = 0\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    return tmp_path


@pytest.mark.parametrize(
    ("tried", "outcome"),
    [
        (mutation("value = 1", "value = 2"), "caught"),
        (mutation("unused = 0", "unused = 1"), "NOT CAUGHT"),
        (mutation("seconds = 0", "seconds = 60"), "TIMED OUT"),
        (mutation("seconds = 0", "seconds = 60", hangs=True), "caught"),
        (mutation("value = 1", "value = 2", hangs=True), "caught"),
        (mutation("unused = 0", "", also=(("module.py", "value = 1", ""),)), "caught"),
        (mutation("unused = 0", "", also=(("module.py", "no", ""),)), "STALE: its text occurs 0 times in module.py"),
        (mutation("= 0", "= 1"), "STALE: its text occurs 2 times in module.py"),
    ],
)
def test_outcomes(tree, tried, outcome):
    """A hang says nothing of what the tests would have found, unless it is what was expected."""
    before = (tree / "module.py").read_text()
    assert try_out(tried, tree, seconds=1.5 if "60" in tried.new else 60) == outcome
    assert (tree / "module.py").read_text() == before


def test_samples_are_all_of_the_quick_ones_in_turn(tmp_path):
    """Commits choose: the same commit the same sample, and every quick mutation is in some."""
    assert sample(MUTATIONS, "a") == sample(MUTATIONS, "a")
    seen = Counter(m.name for k in range(100) for m in sample(MUTATIONS, f"commit {k}"))
    assert set(seen) == {m.name for m in MUTATIONS if not (m.slow or m.hangs)}
    (tmp_path / "test").mkdir()
    (tmp_path / "test" / "mutations.py").write_text("one")
    first = revision(tmp_path)  # no repository: the list itself chooses
    (tmp_path / "test" / "mutations.py").write_text("another")
    assert len({first, revision(tmp_path), revision()}) == 3


def test_what_no_installed_package_can_show_is_left_out(monkeypatch):
    monkeypatch.setattr(mutation_runner, "_is_there", lambda package: package != "torch")
    monkeypatch.setattr(mutation_runner, "host_target", lambda: Target("x86_64", "znver4", "+avx2,+avx512f"))
    left = [m for m in MUTATIONS if lacks(m)]
    assert left and {lacks(m) for m in left} == {"torch"} and len(left) < len(MUTATIONS) / 10
    monkeypatch.setattr(mutation_runner, "_is_there", lambda package: True)
    assert not any(map(lacks, left))


def test_what_shows_between_vectors_alone_is_left_out_where_there_is_one_kind(monkeypatch):
    between = [m for m in MUTATIONS if m.between_cpus]
    for features, reasons in (("+avx2,-avx512f", {"AVX-512"}), ("+avx2,+avx512f", {""})):
        monkeypatch.setattr(mutation_runner, "host_target", lambda f=features: Target("x86_64", "cpu", f))
        assert {lacks(m) for m in between} == reasons


def test_names_tell_mutations_apart():
    assert max(Counter(m.name for m in MUTATIONS).values()) == 1
