"""Rooms are in the order that docs/architecture.md states, and no imports go in a circle.

Imports inside functions count; those under ``if TYPE_CHECKING`` do not.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("dialect", "lowering", "executor", "tools")
ONE_ROOM = {"tools"}  # packages that are not divided
_FOLDERS = re.compile(r"^\* `(?P<room>[\w.]+)`: (?P<folders>.+)$")
_LINE = re.compile(r"^\d+\. `(?P<room>[\w.]+)`: (?P<sentence>.+)$")

Imports = Mapping[str, Mapping[str, str]]  # module -> module that it imports -> file:line


def modules(root: Path) -> dict[str, Path]:
    """Every module of the packages by its dotted name, without ``profuse``."""
    found = {}
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_of(root: Path) -> Imports:
    """Which module imports which, and where."""
    known = modules(root)
    out: dict[str, dict[str, str]] = {}
    for module, path in known.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        met = out[module] = {}
        for node in _run_time_imports(ast.parse(path.read_text(encoding="utf-8"))):
            for name in _names(node, package):
                # `from a import b` means the module a.b where there is one.
                target = name if name in known else name.rpartition(".")[0]
                if target in known and target != module:
                    met.setdefault(target, f"{path.relative_to(root)}:{node.lineno}")
    return out


def _run_time_imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield from _run_time_imports(ast.Module([statement], []))
        elif not isinstance(child, ast.expr):  # no statement is inside of one
            yield from _run_time_imports(child)


def _names(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    """What an import names, ``a.b`` for each ``from a import b``, without ``profuse``."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.startswith("profuse."):
                yield alias.name.removeprefix("profuse.")
        return
    parts = (node.module or "").split(".")
    if node.level:
        above = package.split(".")
        parts = [*above[: len(above) - node.level + 1], *parts]
    elif parts.pop(0) != "profuse":
        return
    for alias in node.names:
        yield ".".join(filter(None, [*parts, alias.name]))


def rooms_on_the_page(root: Path) -> dict[str, str]:
    """The rooms in the order of docs/architecture.md, lowest first, each with its sentence."""
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n## Rooms\n")[2].partition("\n## ")[0]
    found = filter(None, map(_LINE.match, section.splitlines()))
    return {line["room"]: line["sentence"] for line in found}


def room_of(module: str, listed: Collection[str] = ()) -> str:
    """``executor.cuda`` of ``executor.cuda.nvidia.driver``; packages are rooms of their own.

    Of the listed rooms a module is in the innermost one.
    """
    parts = module.split(".")
    for length in range(len(parts), 2, -1):
        if (room := ".".join(parts[:length])) in listed:
            return room
    return parts[0] if parts[0] in ONE_ROOM else ".".join(parts[:2])


def upward(imports: Imports, order: list[str]) -> list[str]:
    """Imports of a higher room, in words."""
    rank = {room: number for number, room in enumerate(order)}
    wrong = []
    for module, targets in imports.items():
        room = room_of(module, rank)
        for target, where in targets.items():
            above = room_of(target, rank)
            if rank.get(above, -1) > rank.get(room, -1):
                wrong.append(f"{where}: {module} ({room}) imports {target} ({above})")
    return wrong


def folders_on_the_page(root: Path) -> dict[str, list[str]]:
    """The folders inside each room in the order of docs/architecture.md, lowest first."""
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = page.partition("\n### Folders inside rooms\n")[2].partition("\n## ")[0]
    lines = filter(None, map(_FOLDERS.match, section.splitlines()))
    return {line["room"]: line["folders"].replace("`", "").split(", ") for line in lines}


def siblings(modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """The folders inside each folder below a package that has two or more."""
    inner: dict[str, set[str]] = {}
    for module, path in modules.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        room, _, folder = package.rpartition(".")
        if "." in room:
            inner.setdefault(room, set()).add(folder)
    return {room: folders for room, folders in inner.items() if len(folders) > 1}


def out_of_order(imports: Imports, folders: Mapping[str, list[str]]) -> list[str]:
    """Imports of a folder that stands behind the importing one in the same room, in words."""
    wrong = []
    for module, targets in imports.items():
        for target, where in targets.items():
            for room, order in folders.items():
                ends = [m.removeprefix(room + ".").split(".")[0] for m in (module, target) if m.startswith(room + ".")]
                if len(ends) == 2 and set(ends) <= set(order) and order.index(ends[1]) > order.index(ends[0]):
                    wrong.append(f"{where}: {module} imports {target}")
    return wrong


def circles(imports: Imports) -> list[str]:
    """For each set of modules that import each other, a shortest circle, in words."""
    found: list[str] = []
    seen: set[str] = set()
    for module in imports:
        way = [] if module in seen else _way_back(imports, module)
        if way:
            seen |= set(way)
            found.append(" -> ".join(way))
    return found


def _way_back(imports: Imports, start: str) -> list[str]:
    """The shortest way of imports from a module to itself; empty if there is none."""
    came_from: dict[str, str] = {}
    front = [start]
    while front:
        behind = []
        for module in front:
            for target in imports.get(module, ()):
                if target == start:
                    way = [start, module]
                    while way[-1] != start:
                        way.append(came_from[way[-1]])
                    return way[::-1]
                if target not in came_from:
                    came_from[target] = module
                    behind.append(target)
        front = behind
    return []


@pytest.fixture(scope="module")
def imports() -> Imports:
    return imports_of(ROOT)


def test_no_room_imports_a_higher_one(imports):
    wrong = upward(imports, list(rooms_on_the_page(ROOT)))
    assert not wrong, "\n".join(wrong)


def test_folders_inside_rooms_are_in_their_order(imports):
    folders = folders_on_the_page(ROOT)
    assert {room: set(order) for room, order in folders.items()} == siblings(modules(ROOT))
    wrong = out_of_order(imports, folders)
    assert not wrong, "\n".join(wrong)


def test_no_imports_go_in_a_circle(imports):
    found = circles(imports)
    assert not found, "\n".join(found)


def test_the_page_lists_every_room_with_its_own_sentence():
    known = modules(ROOT)
    undivided = {package for package in PACKAGES if package not in ONE_ROOM}
    listed = rooms_on_the_page(ROOT)
    rooms = {room_of(module, listed) for module in known} - undivided
    assert set(listed) == rooms
    for room, sentence in listed.items():
        text = ast.get_docstring(ast.parse(known[room].read_text(encoding="utf-8"))) or ""
        assert sentence == text.partition("\n")[0], room


def test_rooms_of_one_package_stand_together():
    packages = [room.partition(".")[0] for room in rooms_on_the_page(ROOT)]
    assert [p for p, q in zip(packages, ["", *packages], strict=False) if p != q] == list(PACKAGES)


@pytest.fixture
def small(tmp_path):
    """A tree of three rooms with an import of each kind that the checks have to tell apart."""
    files = {
        "dialect/__init__.py": "",
        "dialect/low.py": "def f():\n    from .high import g\n",
        "dialect/high.py": ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from . import low\n"),
        "lowering/one.py": "import profuse.lowering.two\n",
        "lowering/two.py": "try:\n    from profuse.lowering import one\nfinally:\n    pass\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return imports_of(tmp_path)


def test_an_upward_import_inside_a_function_is_found(small):
    order = ["dialect.low", "dialect.high", "lowering.two", "lowering.one"]
    assert upward(small, order) == [
        "dialect/low.py:2: dialect.low (dialect.low) imports dialect.high (dialect.high)",
        "lowering/two.py:2: lowering.two (lowering.two) imports lowering.one (lowering.one)",
    ]
    assert len(upward(small, ["dialect.high", "dialect.low", "lowering.one", "lowering.two"])) == 1


def test_a_circle_is_named(small):
    assert circles(small) == ["lowering.one -> lowering.two -> lowering.one"]


def test_a_folder_with_a_line_of_its_own_is_a_room_inside_a_room():
    listed = ("dialect.importers.numpy.source", "dialect.importers")
    assert room_of("dialect.importers.numpy.source.loops", listed) == listed[0]
    assert room_of("dialect.importers.mlir_text", listed) == listed[1]
    imports = {listed[0] + ".loops": {"dialect.importers.mlir_text": "loops.py:1"}}
    assert upward(imports, list(listed)) == [
        "loops.py:1: dialect.importers.numpy.source.loops (dialect.importers.numpy.source) "
        "imports dialect.importers.mlir_text (dialect.importers)"
    ]


def test_an_import_of_a_folder_that_stands_behind_is_found():
    imports = {"lowering.gpu.kernels.a": {"lowering.gpu.loops.b": "a.py:1", "lowering.gpu.c": "a.py:2"}}
    assert not out_of_order(imports, {"lowering.gpu": ["loops", "kernels"]})
    assert out_of_order(imports, {"lowering.gpu": ["kernels", "loops"]}) == [
        "a.py:1: lowering.gpu.kernels.a imports lowering.gpu.loops.b"
    ]
