"""Names say one thing in the whole product: one class, and one file, of each name."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("dialect", "lowering", "executor", "tools")
OF_PYTHON = {"__init__.py", "__main__.py"}


LEFT = {"found": 0, "made": 0, "given": 1, "known": 1}  # locals that are no nouns, and how often they may be there


def files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


@dataclass
class Names:
    """What the tests ask of the files, each of which is parsed once."""

    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    locals: Counter[str] = field(default_factory=Counter)
    listing: list[str] = field(default_factory=list)

    def add(self, path: Path) -> None:
        tree, where = ast.parse(path.read_text("utf-8")), path.relative_to(ROOT)
        own = set()
        for statement in tree.body:
            if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
                own.add(statement.name)
            for node in ast.walk(statement):
                if isinstance(node, ast.ClassDef):
                    self.classes[node.name].append(f"{where}:{node.lineno}")
                elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                    own.add(node.id)
                    self.locals[node.id] += node.id in LEFT
        for node in tree.body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                listed = {ast.literal_eval(name) for name in getattr(node.value, "elts", [])}
                if listed and listed <= own:
                    self.listing.append(str(where))


@pytest.fixture(scope="module")
def names() -> Names:
    every = Names()
    for path in files():
        every.add(path)
    return every


def test_a_class_name_is_used_once(names):
    places = names.classes
    assert len(places) > 1000
    assert not {name: where for name, where in places.items() if len(where) > 1}


def test_a_file_name_is_used_once():
    places = defaultdict(list)
    for path in files():
        places[path.name].append(str(path.relative_to(ROOT)))
    assert not {name: where for name, where in places.items() if len(where) > 1 and name not in OF_PYTHON}


def test_locals_are_nouns(names):
    """A local tells what it is, not how it came about; the few that are left may only become fewer."""
    assert all(names.locals[name] <= most for name, most in LEFT.items()), names.locals


def test_modules_list_names_of_other_modules_alone(names):
    """A leading underscore tells what is a module's own: a list of the other names would say it twice."""
    assert not names.listing
