"""Sphinx: the pages of docs/, README, CONTRIBUTING and CHANGELOG, and an API reference.

``make docs`` builds the site. Every warning is an error there, so a link that leads nowhere, or a
page that no table of contents lists, fails the build.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

from profuse import __version__
from sphinx.application import Sphinx

ROOT = Path(__file__).parents[1]

project = "Profuse"
copyright = "the Profuse authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
myst_heading_anchors = 4
exclude_patterns = ["images"]
html_theme = "furo"
html_title = "Profuse"
html_show_sourcelink = False
default_role = "code"
# Docstrings are text with ``code`` in it, not reStructuredText through and through: a * or | in one
# is meant. What MyST, links and tables of contents warn about stays an error.
suppress_warnings = ["docutils", "ref.python", "myst.header", "misc.highlighting_failure"]
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_use_ivar = True

_FILE = re.compile(r"<!-- (\w+\.md) -->")
_MODULES = "<!-- modules -->"
_ROOMS = ("dialect", "lowering", "executor", "tools")
# Files beside docs/ that are pages of the site as well.
_PAGES = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}


def from_root(text: str) -> str:
    """A text of the repository's root, with its links as a page of docs/ has them."""

    def moved(match: re.Match[str]) -> str:
        target = match[1]
        if target in _PAGES:
            return f"]({_PAGES[target]})"
        if target.startswith("docs/"):
            return f"]({target.removeprefix('docs/')})"
        return match[0] if re.match(r"https?:|#", target) else f"](../{target})"

    return re.sub(r"\]\(([^)\s]+)\)", moved, text)


def to_site(text: str) -> str:
    """A page of docs/, with its links to files of the root that are pages of the site."""
    for file, page in _PAGES.items():
        text = text.replace(f"](../{file}", f"]({page}")
    return text


def modules() -> str:
    """Every module with the first sentence of its docstring, by package, as Markdown."""
    out = []
    for folder in sorted(
        {p.parent for room in _ROOMS for p in (ROOT / room).rglob("*.py")},
        key=lambda p: (_ROOMS.index(p.relative_to(ROOT).parts[0]), p),
    ):
        out.append(f"## {folder.relative_to(ROOT).as_posix()}/\n")
        told = [(p.name, _summary(p)) for p in sorted(folder.glob("*.py"))]
        out += [f"* `{name}`: {text}" for name, text in told if text]
        out.append("")
    return "\n".join(out)


def _summary(path: Path) -> str:
    doc = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(doc.split("\n\n")[0].split())


def _read(app: Sphinx, name: str, source: list[str]) -> None:
    text = _FILE.sub(lambda match: from_root((ROOT / match[1]).read_text("utf-8")), source[0])
    source[0] = to_site(text)
    if _MODULES in source[0]:
        source[0] = source[0].replace(_MODULES, modules())


def setup(app: Sphinx) -> None:
    app.connect("source-read", _read)
