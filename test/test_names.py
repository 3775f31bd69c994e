"""Names say one thing in the whole product: one class, and one file, of each name."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("dialect", "lowering", "executor", "tools")
OF_PYTHON = {"__init__.py", "__main__.py"}


def files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def test_a_class_name_is_used_once():
    places = defaultdict(list)
    for path in files():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(places) > 1000
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_a_file_name_is_used_once():
    places = defaultdict(list)
    for path in files():
        places[path.name].append(str(path.relative_to(ROOT)))
    assert not {name: where for name, where in places.items() if len(where) > 1 and name not in OF_PYTHON}


def test_locals_are_nouns():
    """A local tells what it is, not how it came about; the few that are left may only become fewer."""
    left = {"found": 3, "made": 2, "given": 4, "known": 4}
    counts = dict.fromkeys(left, 0)
    for path in files():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in counts:
                counts[node.id] += 1
    assert all(counts[name] <= most for name, most in left.items()), counts
