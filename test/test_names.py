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
    left = {"found": 0, "made": 0, "given": 1, "known": 1}
    counts = dict.fromkeys(left, 0)
    for path in files():
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in counts:
                counts[node.id] += 1
    assert all(counts[name] <= most for name, most in left.items()), counts


def test_modules_list_names_of_other_modules_alone():
    """A leading underscore tells what is a module's own: a list of the other names would say it twice."""
    listing = []
    for path in files():
        tree = ast.parse(path.read_text("utf-8"))
        defined = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        every = (n for statement in tree.body for n in ast.walk(statement))
        defined |= {n.id for n in every if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                listed = {ast.literal_eval(name) for name in getattr(node.value, "elts", [])}
                if listed and listed <= defined:
                    listing.append(str(path.relative_to(ROOT)))
    assert not listing
