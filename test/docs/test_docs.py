"""Python blocks of the README and of the docs pages run in new processes, as a reader pastes them.

Each block runs alone: in a module of its own, and in a process of its own where every case runs; else those of a page
share one, as most of the time is the start of processes and their workers. The exceptions have ``<!-- continues -->``
in front: they show what the class or the run of the block before has become, and are pasted behind it.
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


ALONE = {"compiled-autograd"}  # pages that look at all that their process has captured


def is_installed(package: str) -> bool:
    spec = find_spec(package)
    return spec is not None and spec.origin is not None  # a folder of tests may have the name


def processes(page: Path) -> list:
    """The cases of a page: what each of its processes runs."""
    scripts = pasted(page)
    if not EVERY_CASE and page.stem not in ALONE:
        return [pytest.param(page, scripts, id=page.name)] if scripts else []
    return [pytest.param(page, [script], id=f"{page.name}-{number}") for number, script in enumerate(scripts, 1)]


RUN_ALL = "import runpy, sys\nfor file in sys.argv[1:]: runpy.run_path(file, run_name='__main__')"


@pytest.mark.parametrize(("page", "scripts"), [case for page in PAGES for case in processes(page)])
def test_python_blocks_run(page, scripts, tmp_path):
    """With default settings, the disk cache and compiles in the background included."""
    scripts = [script for script in scripts if all(map(is_installed, OPTIONAL.findall(script)))]
    if not scripts:
        pytest.skip("what it shows is not installed")
    # Files of their own: tracing reads source. Their names are those of no modules, as the page on torch has.
    files = [tmp_path / f"page_{page.stem.replace('-', '_').lower()}_{number}.py" for number in range(len(scripts))]
    for file, script in zip(files, scripts, strict=True):
        file.write_text(script, "utf-8")
    command = [files[0]] if len(files) == 1 else ["-c", RUN_ALL, *files]
    default = {k: v for k, v in os.environ.items() if not k.startswith("PROFUSE_")}
    attempts = ("nothing on disk", "what the first process left on disk")
    # A process of each block takes seconds: of the pages, one is enough but where every case runs.
    for attempt in attempts if EVERY_CASE or page.stem == "README" else attempts[:1]:
        done = subprocess.run(
            [sys.executable, "-W", "error", *map(str, command)],
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
