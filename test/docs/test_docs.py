"""Python blocks of the README and of the docs pages run in new processes, as a reader pastes them.

Each block runs alone. The exceptions have ``<!-- continues -->`` in front: they show what the class or the run of
the block before has become, and are pasted behind it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import profuse as pf
import pytest
from every_case import EVERY_CASE
from profuse.executor.settings.knobs import KNOBS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SETTINGS = ROOT / "docs" / "settings.md"
BLOCK = re.compile(r"^(<!-- continues -->\n)?```python\n(.*?)^```", re.S | re.M)
OPTIONAL = re.compile(r"^(?:import|from) (jax|onnx|onnxruntime|torch|transformers)\b", re.M)  # optional extras
SOURCE = re.compile(r"\b(?:dialect|executor|lowering|tools|test|bench|examples)/[\w./-]*\w")
SOURCE_PATH = re.compile(r"\b(?:dialect|executor|lowering|tools|test|bench|examples)/[\w/]*")
FENCED = re.compile(r"^```.*?^```", re.S | re.M)
IN_FILE = re.compile(r"`(\w+(?:\.\w+)*)`\s+in\s+`([\w/]+\.py)`")
TEMPLATE = re.compile(r"[<*{]")  # a name in place of which the reader puts one


def pasted(page: Path) -> list[str]:
    """What readers paste into one process: a block, and those that continue it."""
    scripts: list[str] = []
    for continues, block in BLOCK.findall(page.read_text("utf-8")):
        if continues:
            scripts[-1] += "\n\n" + block
        else:
            scripts.append(block)
    return scripts


SCRIPTS = [
    pytest.param(page, script, id=f"{page.name}-{number}")
    for page in PAGES
    for number, script in enumerate(pasted(page), 1)
]


@pytest.mark.parametrize(("page", "script"), SCRIPTS)
def test_python_blocks_run(page, script, tmp_path):
    """With default settings, the disk cache and compiles in the background included."""
    for package in OPTIONAL.findall(script):
        spec = find_spec(package)
        if spec is None or spec.origin is None:  # a folder of tests may have the name
            pytest.skip(f"{package} is not installed")
    # A file of its own: tracing reads source. Its name is that of no module, as the page on torch has.
    file = tmp_path / f"page_{page.stem.replace('-', '_').lower()}.py"
    file.write_text(script, "utf-8")
    default = {k: v for k, v in os.environ.items() if not k.startswith("PROFUSE_")}
    attempts = ("nothing on disk", "what the first process left on disk")
    # A process of each block takes seconds: of the pages, one is enough but where every case runs.
    for attempt in attempts if EVERY_CASE or page.stem == "README" else attempts[:1]:
        done = subprocess.run(
            [sys.executable, "-W", "error", str(file)],
            env=default | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            timeout=300,
            cwd=tmp_path,
        )
        assert done.returncode == 0, f"with {attempt}:\n{done.stdout}{done.stderr}"


def test_blocks_run_alone_unless_they_are_marked(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "```python\na = 1\n```\n```sh\nls\n```\n<!-- continues -->\n```python\nb = a\n```\n```python\nc = 1\n```\n"
    )
    assert pasted(page) == ["a = 1\n\n\nb = a\n", "c = 1\n"]


def test_every_knob_is_on_the_settings_page():
    pattern = r"^\| `PROFUSE_(\w+)` \|([^|]*)\|([^|]*)\|$"
    rows = re.findall(pattern, SETTINGS.read_text("utf-8"), re.M)
    shown = {n: f"`{k.default}`" if str(k.default) else "" for n, k in KNOBS.items()}
    assert [(n.lower(), d.strip(), h.strip()) for n, d, h in rows] == [
        (name, shown[name], knob.help) for name, knob in KNOBS.items()
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_source_files_named_exist(page):
    """``executor/plans/plan.py`` and the like are there; so are folders and modules without .py."""
    for name in set(re.findall(r"`([^`\n]+)`", page.read_text("utf-8"))):
        if TEMPLATE.search(name) or not (found := SOURCE.match(name)):
            continue
        path = ROOT / found[0]
        known = path.exists() or path.with_name(path.name + ".py").exists()
        assert known, f"{page.name} names {found[0]}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_names_are_in_the_files_that_are_named_with_them(page):
    """As in "`Backend` in `executor/plans/processor.py`"."""
    for names, file in IN_FILE.findall(page.read_text("utf-8")):
        if SOURCE.match(file):
            words = set(re.findall(r"\w+", (ROOT / file).read_text("utf-8")))
            assert set(names.split(".")) <= words, f"{page.name} names {names} in {file}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_files_without_a_folder_lie_in_one_that_is_named_with_them(page):
    """``rows.py`` and the like are in a folder that the same section names, or the head of the page."""
    head, *sections = re.split(r"^#{2,} ", FENCED.sub("", page.read_text("utf-8")), flags=re.M)
    for section in (head, *sections):
        paths = [ROOT / name for name in SOURCE_PATH.findall(head + section)]
        folders = {path if path.is_dir() else path.parent for path in paths}
        for name in set(re.findall(r"`(\w+\.py)`", section)):
            assert any((folder / name).exists() for folder in folders), f"{page.name} names {name} in {section[:40]!r}"


def test_every_page_is_on_the_site():
    """Pages that no table of contents lists cannot be found by readers of the site."""
    listed = set(re.findall(r"^([\w-]+)$", (ROOT / "docs" / "index.md").read_text("utf-8"), re.M))
    assert {p.stem for p in (ROOT / "docs").glob("*.md")} - {"index"} <= listed


def test_every_public_name_is_in_the_reference():
    page = (ROOT / "docs" / "api.md").read_text("utf-8")
    shown = set(re.findall(r"auto\w+:: profuse\.(?:[\w.]+\.)?(\w+)", page))
    errors = {n for n in pf.__all__ if isinstance(getattr(pf, n), type) and n.endswith("Error")}
    assert set(pf.__all__) - errors - {"__version__", "knobs"} <= shown
    assert "automodule:: profuse.dialect.errors" in page
