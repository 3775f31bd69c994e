"""Names say one thing in the whole product: one class, and one file, of each name."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("dialect", "lowering", "executor", "tools")
OF_PYTHON = {"__init__.py", "__main__.py"}


LEFT = {"found": 0, "made": 0, "given": 1, "known": 1}  # locals that are no nouns, and how often they may be there
ASKED = re.compile(rf"\b(?:{'|'.join(LEFT)}|__all__)\b")


def files() -> Iterator[Path]:
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes below one that are not inside of an expression."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            yield child
            yield from statements(child)


@dataclass
class Names:
    """What the tests ask of the files, each of which is parsed once."""

    classes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    locals: Counter[str] = field(default_factory=Counter)
    listing: list[str] = field(default_factory=list)

    def add(self, path: Path) -> None:
        text, where = path.read_text("utf-8"), path.relative_to(ROOT)
        tree = ast.parse(text)
        for node in statements(tree):
            if isinstance(node, ast.ClassDef):
                self.classes[node.name].append(f"{where}:{node.lineno}")
        if not ASKED.search(text):  # most files, and expressions take most of the time
            return
        own = {node.name for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}
        stored = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
        own.update(stored)
        self.locals.update(name for name in stored if name in LEFT)
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
