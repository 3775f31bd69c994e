"""Every Python block of the README and the docs pages runs, in order, per page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from profuse.executor.settings.knobs import KNOBS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SETTINGS = ROOT / "docs" / "settings.md"


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text("utf-8"), re.S | re.M)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_python_blocks_run(page, tmp_path):
    code = blocks(page, "python")
    if not code:
        pytest.skip("page has no Python block")
    # A file of its own and a process of its own: pages register ops, and tracing reads source.
    script = tmp_path / f"{page.stem.replace('-', '_')}.py"
    script.write_text("\n\n".join(code), "utf-8")
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_knob_is_on_the_settings_page():
    pattern = r"^\| `PROFUSE_(\w+)` \|([^|]*)\|([^|]*)\|$"
    rows = re.findall(pattern, SETTINGS.read_text("utf-8"), re.M)
    shown = {n: f"`{k.default}`" if str(k.default) else "" for n, k in KNOBS.items()}
    assert [(n.lower(), d.strip(), h.strip()) for n, d, h in rows] == [
        (name, shown[name], knob.help) for name, knob in KNOBS.items()
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text("utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
