"""Names, messages and IR in a report are text, whatever they contain."""

from __future__ import annotations

import dataclasses

import pytest
from profuse.tools.report.markup import MARKUP, escape, join
from profuse.tools.report.page import render
from report_pages import HOSTILE, Page, hostile_run


def test_hostile_text_stays_text():
    page = Page(render(hostile_run()))
    tags = [tag for tag, _ in page.elements]
    assert (tags.count("script"), tags.count("style"), tags.count("img")) == (1, 1, 0)
    assert not [a for _, attrs in page.elements for a in attrs if a.startswith("on")]
    assert page.texts["script"] == [MARKUP.asset("script.js")]
    shown = HOSTILE.replace("\x00", "\\u0000").replace("\u202e", "\\u202e")
    assert shown in page.texts["h1"]
    assert page.text().count(shown) > 20  # nowhere filled in a second time, nowhere lost
    assert "\x00" not in page.raw
    assert "\u202e" not in page.raw


def test_every_text_of_a_run_is_shown():
    """None of the fields that the hostile run fills is left out, so that all of them are tested."""

    def mark(value, path):
        if dataclasses.is_dataclass(value):
            fields = {
                f.name: mark(getattr(value, f.name), f"{path}.{f.name}")
                for f in dataclasses.fields(value)
                if f.name != "tier"
            }
            return dataclasses.replace(value, **fields)
        if isinstance(value, tuple):
            return tuple(mark(item, f"{path}{k}") for k, item in enumerate(value))
        if isinstance(value, str) and value:
            seen.append(f"[{path}]")
            return seen[-1]
        return value

    seen: list[str] = []
    page = render(mark(hostile_run(), "run"))
    # A kernel's guard says which kernels it has; IR after a pass is compared with what was before.
    missing = [s for s in seen if s not in page and ".kernels0]" not in s and "calls0.name" not in s]
    assert missing == []


def test_markup_alone_is_not_escaped():
    assert escape('<a href="b">') == "&lt;a href=&quot;b&quot;&gt;"
    assert escape(MARKUP("diff-new", text="<")) == "<ins>&lt;</ins>"
    assert join(["<", MARKUP("diff-new", text="")]) == "&lt;<ins></ins>"
    assert escape("\ud800") == "\\ud800"
    with pytest.raises(KeyError):
        MARKUP("diff-new")
