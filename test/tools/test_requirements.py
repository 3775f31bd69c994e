"""The table of requirements follows what tests say, and is refused where it says otherwise."""

from __future__ import annotations

from pathlib import Path

import profuse
import pytest
from profuse.tools.requirements import (
    collect,
    complaints,
    main,
    numbers_in,
    read_table,
    spec_complaints,
    spec_numbers,
    spec_titles,
    table_text,
)

ROOT = Path(profuse.__file__).parent
SPEC = (ROOT / "docs" / "spec.md").read_text("utf-8")
REQUIREMENTS = spec_titles(SPEC)

PYTHON = '''
"""Module text is no test's: R1.1"""
import pytest

# nor is this: R1.2
def helper():
    """R1.3"""


@pytest.mark.parametrize("x", [1])  # R1.4: beside a decorator
def test_one(x):
    """R1.5, R1.6: two of them."""
    assert "R1.7 in a string"  # R1.8


class TestGroup:
    def test_two(self):
        """Nothing."""


def test_r1_42_by_name():
    """A3, and A123 is none."""


def test_a4():
    pass


def test_r1_is_none_and_test_a_neither():
    pass
'''
LIT = """// RUN: profuse-opt %s | FileCheck %s
// R2.4: a comment
// CHECK: %[[A1:.*]] =
func.func @f() { return } loc("R2.5")
"""


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "test" / "passes").mkdir(parents=True)
    (tmp_path / "test" / "test_a.py").write_text(PYTHON)
    (tmp_path / "test" / "passes" / "b.mlir").write_text(LIT)
    texts = "".join(f"#### {number}\n\n**{title}.**\nText.\n\n" for number, title in REQUIREMENTS.items())
    (tmp_path / "docs" / "spec.md").write_text(texts)
    return tmp_path


def test_what_tests_name(tree):
    assert collect(tree) == {
        "test/passes/b.mlir": ["R2.4"],
        "test/test_a.py::test_one": ["R1.4", "R1.5", "R1.6", "R1.8"],
        "test/test_a.py::TestGroup::test_two": [],
        "test/test_a.py::test_r1_42_by_name": ["R1.42", "A3"],
        "test/test_a.py::test_a4": ["A4"],
        "test/test_a.py::test_r1_is_none_and_test_a_neither": [],
    }


def test_numbers_are_whole_and_in_order():
    assert numbers_in("R1.10 R1.9, R1.9. XR1.2 R2.1") == ["R1.9", "R1.10", "R2.1"]


def test_written_tables_are_right(tree, capsys):
    assert main(["--root", str(tree)]) == 1
    assert "make it with --write" in capsys.readouterr().err
    assert main(["--root", str(tree), "--write"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"requirements: 8 of {len(REQUIREMENTS)} covered by 4 tests; without")
    assert "R1.4," not in out
    assert main(["--root", str(tree)]) == 0
    table = read_table((tree / "docs" / "requirements.md").read_text())
    assert list(table) == list(REQUIREMENTS)
    assert table["R1.5"] == ["test/test_a.py::test_one"]
    assert table["R1.7"] == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("def test_one", "def test_other", "R1.5: there is no test test/test_a.py::test_one"),
        ("R1.5, R1.6", "R1.6", "R1.5: test/test_a.py::test_one does not name it"),
    ],
)
def test_a_table_that_lies_fails(tree, capsys, old, new, complaint):
    main(["--root", str(tree), "--write"])
    (tree / "test" / "test_a.py").write_text(PYTHON.replace(old, new))
    assert main(["--root", str(tree)]) == 1
    assert complaint in capsys.readouterr().err


def test_missing_rows_are_told():
    table = read_table(table_text(REQUIREMENTS, {}))
    del table["R2.4"]
    assert complaints(REQUIREMENTS, table, {}) == ["R2.4 has no row"]


def test_requirements_without_text_fail(tree, capsys):
    main(["--root", str(tree), "--write"])
    spec = tree / "docs" / "spec.md"
    spec.write_text(spec.read_text().replace("#### R2.4\n", "") + "\n#### R1.1\n")
    assert main(["--root", str(tree)]) == 1
    said = capsys.readouterr().err
    assert "docs/spec.md: R2.4 has no text" in said
    assert "docs/spec.md: R1.1 is there twice" in said
    spec.unlink()
    assert main(["--root", str(tree)]) == 1


def test_numbers_of_the_text_are_those_of_headings():
    text = "#### R1.1\n\n**Of R1.2.**\nAs R1.2, see\n#### A1\n\nR1.3\n\n**No title.**\n"
    assert spec_numbers(text) == ["R1.1", "A1"]
    assert spec_titles(text) == {"R1.1": "Of R1.2"}
    assert spec_complaints(REQUIREMENTS, list(REQUIREMENTS)) == []


def test_no_requirement_loses_its_title():
    """One without a title would leave the table at the next writing of it."""
    assert len(REQUIREMENTS) == 182
    assert set(REQUIREMENTS) <= set(spec_numbers(SPEC))


def test_every_requirement_has_a_test_that_names_it():
    """All rows of the table, by what the tests of this tree say now."""
    named = {number for numbers in collect(ROOT).values() for number in numbers}
    assert [number for number in REQUIREMENTS if number not in named] == []


def test_no_requirement_on_compiled_autograd_is_left_out():
    """Chapter 4 is built as a whole; of chapter 3, the fuser, two are."""
    written = spec_numbers(SPEC)
    chapter = [f"R4.{n}" for n in range(1, 43)]
    assert [number for number in written if number.startswith("R4.")] == chapter
    assert [number for number in REQUIREMENTS if number.startswith("R4.")] == chapter
