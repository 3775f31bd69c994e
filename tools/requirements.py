"""The tests of each requirement: ``docs/requirements.md``, made from what tests say.

A test stands for a requirement when its docstring or a comment inside it, or a comment of a lit
file, names the number: ``R1.13``, or ``A4`` for an addendum. Names of tests count as well:
``test_r1_13_…``, ``test_a4_…``. ``--write`` makes the table anew; without it the table is
checked: what it names must exist and must name the number, and every row must link to a requirement
whose text is in ``docs/spec.md``. Requirements that are built have a title there, in bold below the number.
Exit status 1 = the table is wrong.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

Named = dict[str, list[str]]  # test id -> requirements that it names

_NUMBER = re.compile(r"\b(?:R\d+\.\d+|A[1-9]\d?)\b")
_NAME = re.compile(r"test_(?:r(\d+)_(\d+)|a([1-9]\d?))(?:_|$)")
_ROW = re.compile(r"^\| \[(R\d+\.\d+|A\d+)\]\([^)]*\) \|[^|]*\|(.*)\|$", re.M)
_TEXT = re.compile(r"^#+ (R\d+\.\d+|A\d+)$", re.M)  # the heading above a requirement's text
_TITLE = re.compile(_TEXT.pattern + r"\n\n\*\*(.*)\.\*\*$", re.M)
_TEST = re.compile(r"`([^`]+)`")
_LIT_COMMENT = re.compile(r"^\s*(?://|#).*", re.M)
_TABLE = Path("docs/requirements.md")
_SPEC = Path("docs/spec.md")
_PREFACE = """# Requirements and their tests

Made by `python -m profuse.tools.requirements --write` from the numbers that tests name in their
docstrings and comments (the rule), or in their own names (`test_r1_42_…`, `test_a4_…`); `make test`
checks it. Each number links to the text of its requirement in [spec.md](spec.md); A1 to A11 are the
addenda there. [Departures](departures.md) tells where the project does otherwise on purpose, and
why. Requirements without a row here are not built.

| requirement | what | tests |
|---|---|---|
"""


def collect(root: Path) -> Named:
    """Every test below ``root/test`` and the requirements it names, both in order."""
    tests: Named = {}
    for path in sorted((root / "test").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix == ".py" and path.name.startswith("test_"):
            text = path.read_text("utf-8")
            for test, words in _functions(text):
                tests[f"{name}::{test}"] = numbers_in(f"{words}\n{number_of_name(test)}")
        elif path.suffix in (".mlir", ".test"):
            comments = _LIT_COMMENT.findall(path.read_text("utf-8"))
            numbers = numbers_in("\n".join(comments))
            tests[name] = [n for n in numbers if n[0] == "R"]  # A1 may be a FileCheck variable
    return tests


def numbers_in(text: str) -> list[str]:
    """Distinct requirement numbers of a text."""
    return sorted(set(_NUMBER.findall(text)), key=_order)


def number_of_name(test: str) -> str:
    """The number in a test's own name: ``R1.42`` of ``test_r1_42_…``; "" where there is none."""
    match = _NAME.match(test.rpartition("::")[2])
    if match is None:
        return ""
    major, minor, addendum = match.groups()
    return f"A{addendum}" if addendum else f"R{major}.{minor}"


def _functions(text: str) -> Iterator[tuple[str, str]]:
    """Name of each test function, with its docstring and comments."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = {}
    if _NUMBER.search(text):  # tokens take most of the time
        comments = {t.start[0]: t.string for t in tokens if t.type == tokenize.COMMENT}

    def visit(body: Sequence[ast.stmt], prefix: str) -> Iterator[tuple[str, str]]:
        for node in body:
            if isinstance(node, ast.ClassDef):
                yield from visit(node.body, f"{prefix}{node.name}::")
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                last = node.end_lineno or first
                inside = (comments[n] for n in range(first, last + 1) if n in comments)
                words = "\n".join([ast.get_docstring(node) or "", *inside])
                yield prefix + node.name, words

    return visit(ast.parse(text).body, "")


def table_text(titles: Mapping[str, str], named: Mapping[str, Sequence[str]]) -> str:
    """Return the page for requirements with these titles, and for these tests."""
    rows = []
    for number, title in titles.items():
        tests = [f"`{test}`" for test, numbers in named.items() if number in numbers]
        row = f"| [{number}]({_SPEC.name}#{anchor(number)}) | {title} |"
        rows.append(f"{row} {'<br>'.join(tests) or '-'} |")
    return _PREFACE + "\n".join(rows) + "\n"


def anchor(number: str) -> str:
    """The anchor of the heading of a requirement on GitHub and in Sphinx: ``r142`` for ``R1.42``."""
    return number.lower().replace(".", "")


def spec_numbers(text: str) -> list[str]:
    """Return the numbers of the requirements whose text a page holds, in its order."""
    return _TEXT.findall(text)


def spec_titles(text: str) -> dict[str, str]:
    """Return the titles of the requirements that are built, by number."""
    return dict(_TITLE.findall(text))


def read_table(text: str) -> Named:
    """Requirement -> the tests that a page gives for it."""
    return {number: _TEST.findall(cell) for number, cell in _ROW.findall(text)}


def complaints(
    numbers: Iterable[str], table: Mapping[str, Sequence[str]], named: Mapping[str, Sequence[str]]
) -> list[str]:
    """Say what is wrong with a table: requirements left out, tests that do not exist or do not name theirs."""
    out = [f"{number} has no row" for number in numbers if number not in table]
    for number, tests in table.items():
        for test in tests:
            if test not in named:
                out.append(f"{number}: there is no test {test}")
            elif number not in named[test]:
                out.append(f"{number}: {test} does not name it")
    return out


def spec_complaints(numbers: Iterable[str], written: Sequence[str]) -> list[str]:
    """Say what is wrong with the text of requirements: numbers that have none or two."""
    out = [f"{number} has no text" for number in numbers if number not in written]
    twice = sorted({number for number in written if written.count(number) > 1}, key=_order)
    return out + [f"{number} is there twice" for number in twice]


def summary(table: Mapping[str, Sequence[str]]) -> str:
    """Say how many requirements have tests, and which have none."""
    bare = [number for number, tests in table.items() if not tests]
    count = len({test for tests in table.values() for test in tests})
    text = f"requirements: {len(table) - len(bare)} of {len(table)} covered by {count} tests"
    return text + (f"; without a test: {', '.join(bare)}" if bare else "")


def _order(number: str) -> tuple[bool, list[int]]:
    return number[0] == "A", [int(part) for part in number[1:].split(".")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="check or write docs/requirements.md")
    parser.add_argument("--write", action="store_true", help="make the table from the tests")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    options = parser.parse_args(arguments)
    page, spec, tests = options.root / _TABLE, options.root / _SPEC, collect(options.root)
    text = spec.read_text("utf-8") if spec.exists() else ""
    titles = spec_titles(text)
    if options.write:
        page.write_text(table_text(titles, tests), "utf-8")
    if not page.exists():
        print(f"{page} does not exist: make it with --write", file=sys.stderr)
        return 1
    table = read_table(page.read_text("utf-8"))
    wrong = [f"{_TABLE}: {complaint}" for complaint in complaints(titles, table, tests)]
    wrong += [f"{_SPEC}: {complaint}" for complaint in spec_complaints(table, spec_numbers(text))]
    for complaint in wrong:
        print(complaint, file=sys.stderr)
    print(summary(table))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
