"""Which test stands for which requirement: ``docs/requirements.md``, made from what tests say.

A test stands for a requirement when its docstring or a comment inside it, or a comment of a lit
file, names the number: ``R1.13``, or ``A4`` for an addendum. Names of tests count as well:
``test_r1_13_…``, ``test_a4_…``. ``--write`` makes the table anew; without it the table is
checked: what it names must exist and must name the number, and every row must link to a requirement
whose text is in ``docs/spec.md``. Exit status 1 = it is wrong.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

REQUIREMENTS = {
    "R1.1": "flags and their defaults; warnings print once",
    "R1.2": "process-wide switches; the count of profiled runs is read once",
    "R1.3": "the initial fusion strategy",
    "R1.4": "the strategy is computed lazily; set returns the previous one",
    "R1.5": "executors copy the strategy; default depth",
    "R1.6": "static or dynamic at a depth",
    "R1.7": "one plan request at a time; an optimised plan returns at once",
    "R1.8": "no-opt plan while optimisation or profiling is off",
    "R1.9": "the first request stores the depth",
    "R1.10": "depth 0: neither observer nor guard",
    "R1.11": "the profiling plan",
    "R1.12": "the optimised plan, once the record is ready",
    "R1.13": "release of what only profiling needed",
    "R1.14": "flush",
    "R1.15": "debug state",
    "R1.16": "instrumentation starts from bare types",
    "R1.17": "where observers go",
    "R1.18": "what an observer records",
    "R1.19": "merging of types",
    "R1.20": "the counter, and when the record is ready",
    "R1.21": "merging across runs; shared symbols",
    "R1.22": "removal of counter and observers",
    "R1.23": "counts of None for optional values",
    "R1.24": "profile-insensitive pipeline",
    "R1.25": "no-optimisation pipeline",
    "R1.26": "pipeline before differentiation",
    "R1.27": "profile-driven pipeline",
    "R1.28": "which graphs need gradients",
    "R1.29": "differentiable subgraphs",
    "R1.30": "types of the operands of a subgraph",
    "R1.31": "the guard of a subgraph",
    "R1.32": "a subgraph of which too little was observed",
    "R1.33": "differentiating a subgraph",
    "R1.34": "small subgraphs are put back",
    "R1.35": "forward and reverse halves have executors of their own",
    "R1.36": "the path without gradients; registered passes",
    "R1.37": "profiled types onto values, and off again",
    "R1.38": "guard, group and fallback graph",
    "R1.39": "what a static guard compares",
    "R1.40": "dynamic guards",
    "R1.41": "fallback graphs become functions",
    "R1.42": "a callee has its plan and depth before it runs",
    "R1.43": "specialisation for the gradients that are defined",
    "R1.44": "the chain of specialisations at run time",
    "R1.45": "if_then_else",
    "R1.46": "strict fusion",
    "R1.47": "small passes",
    "R1.48": "limits of the fuser",
    "R1.49": "dumps at pass boundaries",
    "R2.1": "which executor a graph gets",
    "R2.2": "recipe of the argument spec; executors are counted",
    "R2.3": "checks and counts of a run",
    "R2.4": "last executed optimised graph",
    "R2.5": "fallback plan of the spec-keyed executor",
    "R2.6": "look-up of a spec; hits and misses",
    "R2.7": "what a spec holds",
    "R2.8": "the recipe's descent into arguments",
    "R2.9": "required passes",
    "R2.10": "phases of compiling a spec",
    "R2.11": "optimisation that can be differentiated",
    "R2.12": "optimisation without gradients",
    "R2.13": "when a spec needs a gradient",
    "R2.14": "tracing through an executor",
    "R2.15": "subgraphs of the spec-keyed executor, and the debug switch",
    "R2.16": "debug state of the spec-keyed executor",
    "R2.17": "backward executors of a plan",
    "R2.18": "packing of the two halves",
    "R2.19": "halves are made once and shared",
    "R2.20": "the forward run of a subgraph",
    "R2.21": "edges of a node",
    "R2.22": "operands are detached",
    "R2.23": "which outputs require gradients",
    "R2.24": "what is captured",
    "R2.25": "unpacking; saved outputs",
    "R2.26": "gradients of several outputs",
    "R2.27": "the backward run; zeros and undefined gradients",
    "R2.28": "one array returned twice",
    "R2.29": "what passes between the halves",
    "R2.30": "gradient blocks and sums of gradients",
    "R3.42": "what a relaxed guard compares",
    "R3.43": "checks of the target sizes of sums",
    "R4.1": "enabling is a scope",
    "R4.2": "forced to be eager",
    "R4.3": "nested scopes bring back what was",
    "R4.4": "disabling is a scope",
    "R4.5": "reset",
    "R4.6": "what is refused while a run is captured",
    "R4.7": "the walk along the trie; hits trace nothing",
    "R4.8": "what is part of the key, and what is lifted",
    "R4.9": "sizes are static, then dynamic for good",
    "R4.10": "reasons for misses",
    "R4.11": "saved values are freed by captures and hits",
    "R4.12": "numbers and events of captures",
    "R4.13": "five lists, with index ops behind them",
    "R4.14": "labels of elements",
    "R4.15": "no guards in captures",
    "R4.16": "values that a capture does not track",
    "R4.17": "the order of nodes",
    "R4.18": "one sum where gradients meet",
    "R4.19": "checks of gradients against edges",
    "R4.20": "names of functions and calls",
    "R4.21": "a node is a call of the function of its rule",
    "R4.22": "functions with their own gradient",
    "R4.23": "reverse halves are pasted op by op",
    "R4.24": "states of reverse halves",
    "R4.25": "reverse halves from the disk",
    "R4.26": "hooks are recorded, never run at capture",
    "R4.27": "what hooks may return",
    "R4.28": "writes into views",
    "R4.29": "the order of finishing",
    "R4.30": "arrays without axes are not moved",
    "R4.31": "moving without changing values",
    "R4.32": "names of values of pasted subgraphs",
    "R4.33": "unpack hooks in front of their first user",
    "R4.34": "tensor hooks behind their gradient",
    "R4.35": "prehooks as early as possible",
    "R4.36": "accumulations behind their gradient",
    "R4.37": "prehooks in front of their user",
    "R4.38": "post-accumulate hooks behind the accumulation",
    "R4.39": "posthooks behind their node",
    "R4.40": "what is never removed",
    "R4.41": "runs within a run are eager",
    "R4.42": "gradients are set or added to",
    "A1": "the plan of depth 0 is stamped, and released",
    "A2": "the release switch and its delay count at each request for a plan",
    "A3": "a spec-keyed executor keeps the `optimize` that it was made with",
    "A4": "profiled runs are read with the record; a failing compile is not tried again",
    "A5": "without the general fuser each request overwrites the depth",
}

Named = dict[str, list[str]]  # test id -> requirements that it names

_NUMBER = re.compile(r"\b(?:R\d+\.\d+|A[1-9])\b")
_NAME = re.compile(r"test_(?:r(\d+)_(\d+)|a([1-9]))(?:_|$)")
_ROW = re.compile(r"^\| \[(R\d+\.\d+|A\d+)\]\([^)]*\) \|[^|]*\|(.*)\|$", re.M)
_TEXT = re.compile(r"^#+ (R\d+\.\d+|A\d+)$", re.M)  # the heading above a requirement's text
_TEST = re.compile(r"`([^`]+)`")
_LIT_COMMENT = re.compile(r"^\s*(?://|#).*", re.M)
_TABLE = Path("docs/requirements.md")
_SPEC = Path("docs/spec.md")
_PREFACE = """# Requirements and their tests

Made by `python -m profuse.tools.requirements --write` from the numbers that tests name in their
docstrings and comments (the rule), or in their own names (`test_r1_42_…`, `test_a4_…`); `make test`
checks it. Each number links to the text of its requirement in [spec.md](spec.md); A1 to A5 are the
addenda there. [Departures](departures.md) tells where the project does otherwise on purpose, and
why. Requirements without a row here are not built.

| requirement | what | tests |
|---|---|---|
"""


def collect(root: Path) -> Named:
    """Every test below ``root/test`` and the requirements it names, both in order."""
    found: Named = {}
    for path in sorted((root / "test").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix == ".py" and path.name.startswith("test_"):
            text = path.read_text("utf-8")
            for test, words in _functions(text):
                found[f"{name}::{test}"] = numbers_in(f"{words}\n{number_of_name(test)}")
        elif path.suffix in (".mlir", ".test"):
            comments = _LIT_COMMENT.findall(path.read_text("utf-8"))
            numbers = numbers_in("\n".join(comments))
            found[name] = [n for n in numbers if n[0] == "R"]  # A1 may be a FileCheck variable
    return found


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


def table_text(named: Mapping[str, Sequence[str]]) -> str:
    """The page for these tests."""
    rows = []
    for number, what in REQUIREMENTS.items():
        tests = [f"`{test}`" for test, numbers in named.items() if number in numbers]
        row = f"| [{number}]({_SPEC.name}#{anchor(number)}) | {what} |"
        rows.append(f"{row} {'<br>'.join(tests) or '-'} |")
    return _PREFACE + "\n".join(rows) + "\n"


def anchor(number: str) -> str:
    """What GitHub and Sphinx call the heading of a requirement: ``r142`` for ``R1.42``."""
    return number.lower().replace(".", "")


def spec_numbers(text: str) -> list[str]:
    """The requirements whose text a page holds, in its order."""
    return _TEXT.findall(text)


def read_table(text: str) -> Named:
    """Requirement -> the tests that a page gives for it."""
    return {number: _TEST.findall(cell) for number, cell in _ROW.findall(text)}


def complaints(table: Mapping[str, Sequence[str]], named: Mapping[str, Sequence[str]]) -> list[str]:
    """What is wrong with a table: requirements left out, tests that do not exist or do not say."""
    out = [f"{number} has no row" for number in REQUIREMENTS if number not in table]
    for number, tests in table.items():
        for test in tests:
            if test not in named:
                out.append(f"{number}: there is no test {test}")
            elif number not in named[test]:
                out.append(f"{number}: {test} does not name it")
    return out


def spec_complaints(written: Sequence[str]) -> list[str]:
    """What is wrong with the text of the requirements: numbers that are missing or given twice."""
    out = [f"{number} has no text" for number in REQUIREMENTS if number not in written]
    twice = sorted({number for number in written if written.count(number) > 1}, key=_order)
    return out + [f"{number} is there twice" for number in twice]


def summary(table: Mapping[str, Sequence[str]]) -> str:
    """How many requirements are covered, and which are not."""
    bare = [number for number in REQUIREMENTS if not table.get(number)]
    tests = {test for number in REQUIREMENTS for test in table.get(number, ())}
    text = f"requirements: {len(REQUIREMENTS) - len(bare)} of {len(REQUIREMENTS)} covered"
    text += f" by {len(tests)} tests"
    return text + (f"; without a test: {', '.join(bare)}" if bare else "")


def _order(number: str) -> tuple[bool, list[int]]:
    return number[0] == "A", [int(part) for part in number[1:].split(".")]


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="check or write docs/requirements.md")
    parser.add_argument("--write", action="store_true", help="make the table from the tests")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    options = parser.parse_args(arguments)
    page, named = options.root / _TABLE, collect(options.root)
    if options.write:
        page.write_text(table_text(named), "utf-8")
    if not page.exists():
        print(f"{page} does not exist: make it with --write", file=sys.stderr)
        return 1
    table = read_table(page.read_text("utf-8"))
    wrong = complaints(table, named)
    for text in wrong:
        print(f"{_TABLE}: {text}", file=sys.stderr)
    spec = options.root / _SPEC
    unwritten = spec_complaints(spec_numbers(spec.read_text("utf-8") if spec.exists() else ""))
    for text in unwritten:
        print(f"{_SPEC}: {text}", file=sys.stderr)
    print(summary(table))
    return 1 if wrong or unwritten else 0


if __name__ == "__main__":
    sys.exit(main())
