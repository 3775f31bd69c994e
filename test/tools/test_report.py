"""profuse-report: the page of a real run, and the command."""

from __future__ import annotations

import base64
import hashlib
import re
import sys

import profuse as pf
import pytest
from internals import split_arguments
from profuse.tools.report import cli
from profuse.tools.report.markup import MARKUP
from report_pages import Page, start

# --- the page of a run -------------------------------------------------------------------------


def test_every_function_is_there(page):
    names = [t for t in page.texts["span"] if t in ("softmax", "spectrum", "keyed", "packs")]
    assert set(names) == {"softmax", "spectrum", "keyed", "packs"}
    headings = page.texts["h3"]
    for heading in ("Calls", "In words", "Specialisations", "What compiling took", "Passes", "Kernels"):
        assert headings.count(heading) == 4
    for heading in ("Timeline", "Events", "Settings and versions", "Worth a look"):
        assert heading in page.texts["h2"]


def test_calls_with_tier_time_and_compiles(page):
    text = page.text("td")
    assert "1 profiled run, 7 ops in NumPy" in text
    assert "1 compile, 1 kernel launch" in text
    assert "1 compile, 1 kernel launch, 1 guard miss" in text
    assert "6 – 7" in text  # two calls that did the same
    assert "profiling" in text
    assert "fallback" in text
    titles = page.texts["title"]
    assert any(re.fullmatch(r"Call 2: [\d.]+ m?s, first with newly compiled code", t) for t in titles)
    lanes = page.texts["div"]
    assert {"calls, MainThread", "calls, a <worker>", "compiles, a <worker>"} <= set(lanes)


def test_guards_and_counts(page):
    guards = [t for t in page.texts["code"] if "f32[" in t]
    assert "f32[4, 8] contiguous, f32[8] contiguous" in guards
    assert "f32[6, 8] contiguous, f32[8] contiguous" in guards
    assert any("KiB" in t for t in page.texts["td"])


def test_passes_with_what_they_changed(page):
    assert {"specialize", "form-fusions", "insert-guards"} <= set(page.texts["code"])
    assert any('"profuse.fusion_group"(' in t for t in page.texts["td"])
    assert any(t in ("arg0", "arg1") for t in page.texts["ins"])
    assert any("profuse.tensor" in t for t in page.texts["del"])
    assert any(re.fullmatch(r"\d+ passes changed nothing", t) for t in page.texts["span"])


def test_kernels_down_to_the_assembly(page):
    code = page.text("pre")
    for part in ('"profuse.max"(', "linalg.generic", "scf.for", "define void @", "\tretq"):
        assert part in code
    languages = set(page.all("data-language"))
    assert languages == {"mlir", "llvm", "asm"}


def test_reasons(page):
    text = page.text("li")
    assert "refused: asin: complex is not lowered (1x)" in text
    assert "raised profuse.dialect.errors.TraceError: " in text
    words = page.text("p")
    assert "Not fused: asin at script.py:" in words
    assert "No call of it could be traced" in words


def test_settings_versions_and_events(page):
    assert "cache" in page.texts["code"]  # the tests switch it off
    for name, version in (("python", sys.version.split()[0]), ("profuse", pf.__version__)):
        assert name in page.text("th")
        assert version in page.text("td")
    kinds = page.texts["td"]
    assert {"trace", "compile", "tier", "load", "refused"} <= set(kinds)


# --- complete in itself ------------------------------------------------------------------------


def test_nothing_is_loaded_from_elsewhere(page):
    assert not {"link", "img", "iframe", "object", "base"} & {tag for tag, _ in page.elements}
    assert page.all("src") == []
    assert all(target.startswith("#") for target in page.all("href"))
    style = page.text("style")
    assert "url(" not in style
    assert "@import" not in style


def test_links_and_identifiers(page):
    ids = page.all("id")
    assert len(ids) == len(set(ids))
    assert {target[1:] for target in page.all("href")} <= set(ids)
    assert set(page.all("aria-labelledby")) <= set(ids)


def test_only_our_own_script_and_style_may_run(page):
    (policy,) = [a["content"] for t, a in page.elements if t == "meta" and "http-equiv" in a]
    assert policy.startswith("default-src 'none'; ")
    for kind in ("style", "script"):
        (text,) = page.texts[kind]
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert page.all("style") == []
    assert not [a for _, attrs in page.elements for a in attrs if a.startswith("on")]


def test_for_keyboards_and_screen_readers(page):
    for tag, attrs in page.elements:
        if "scroll" in attrs.get("class", "").split():  # what scrolls can be reached and is named
            assert attrs["tabindex"] == "0"
            assert attrs["aria-label"]
        if tag == "svg":
            assert "aria-label" in attrs or attrs.get("aria-hidden") == "true" or "role" in attrs
        if tag == "th":
            assert attrs["scope"] in ("col", "row")
    assert ("html", {"lang": "en"}) in page.elements


def luminance(colour: str) -> float:
    parts = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", [0, 1], ids=["light", "dark"])
def test_contrast(scheme):
    """WCAG AA: 4.5 for text, 3 for what only has to be told apart from the paper."""
    themes = re.findall(r":root \{(.*?)\}", MARKUP.asset("style.css"), re.S)
    colours = dict(re.findall(r"--([\w-]+): (#\w{6})", themes[scheme]))
    text = ("ink", "soft", "accent", "code", "c-op", "c-type", "c-name", "c-note", "c-text")
    marks = ("optimized", "fallback", "compile", "profiling", "interpreted", "error", "disk")

    def ratio(a, b):
        light, dark = sorted((luminance(colours[a]), luminance(colours[b])), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    for paper in ("paper", "panel"):
        assert {n: round(ratio(n, paper), 1) for n in text if ratio(n, paper) < 4.5} == {}
        assert {n: round(ratio(n, paper), 1) for n in marks if ratio(n, paper) < 3} == {}
    for paper in ("removed", "added", "removed-deep", "added-deep", "wash"):
        assert ratio("ink", paper) >= 4.5


# --- the command -------------------------------------------------------------------------------


def test_options_may_stand_anywhere():
    assert split_arguments(["s.py", "-v", "-o", "a"]) == ({"output": "a"}, ["s.py", "-v"])
    assert split_arguments(["-o=a", "s.py", "x"]) == ({"output": "a"}, ["s.py", "x"])
    assert split_arguments(["s.py", "--", "-o", "a"]) == ({}, ["s.py", "-o", "a"])
    assert split_arguments(["s.py", "--help"]) == ({}, ["s.py", "--help"])
    assert split_arguments(["--help"]) == (None, [])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "no script is given"),
        (["-x", "s.py"], "there is no option -x"),
        (["s.py", "-o"], "-o needs a value"),
        (["none.py"], "there is no file none.py"),
        ([__file__, "-o", "/no/such/folder/r.html"], "there is no folder /no/such/folder"),
    ],
)
def test_what_is_refused_before_the_script_runs(arguments, said, capsys):
    assert cli.main(arguments) == 2
    assert said in capsys.readouterr().err


def test_a_script_that_fails_has_a_page_too(report_folder):
    done = start(report_folder, "-m", "profuse.tools.report.cli", "script.py", "fail", "--now", expect=1)
    assert "KeyError: '<b>no such key</b>'" in done.stderr
    assert "runpy" not in done.stderr
    text = (report_folder / "report.html").read_text("utf-8")
    assert "The script ended with KeyError: &#x27;&lt;b&gt;no such key&lt;/b&gt;&#x27;" in text
    assert "script.py fail --now" in text


@pytest.mark.usefixtures("own_functions")
def test_the_exit_status_is_the_scripts(tmp_path, capfd):
    for code, status, said in (("0", 0, ""), ("3", 3, ""), ("'words'", 1, "words\n")):
        script = tmp_path / "leave.py"
        script.write_text(f"import sys; sys.exit({code})", "utf-8")
        page = tmp_path / "r.html"
        before = list(sys.path), sys.argv
        assert cli.main([str(script), "-o", str(page)]) == status
        assert (sys.path, sys.argv) == before
        assert capfd.readouterr().err == f"{said}profuse-report: {page}\n"
        assert page.stat().st_size > 1000


INSIDE = """
import numpy as np, profuse as pf
f = pf.jit(lambda x: np.tanh(x) * 2.0, name="inside")
f(np.ones(3)), f(np.ones(3))
assert pf.report("plain.html").name == "plain.html"
with pf.trace():
    f(np.ones(3))
    pf.report("traced.html", title="my run")
launches = f.state().counters["kernel_launches"]
assert launches == 2, launches  # making a report runs nothing
"""


def test_from_inside_of_a_process(tmp_path):
    (tmp_path / "inside.py").write_text(INSIDE, "utf-8")
    start(tmp_path, "inside.py")
    plain, traced = (Page((tmp_path / name).read_text("utf-8")) for name in ("plain.html", "traced.html"))
    assert "Calls are recorded inside of “with pf.trace()”, and by profuse-report." in plain.text("p")
    assert "\tretq" in plain.text("pre")
    assert "1 kernel launch" in traced.text("td")
    assert traced.texts["h1"] == ["my run"]


def test_a_report_that_cannot_be_written(tmp_path):
    with pytest.raises(pf.FileError, match="there is no folder"):
        pf.report(tmp_path / "no" / "r.html")


BACKGROUND = """
import numpy as np, profuse as pf
f = pf.jit(lambda x: np.tanh(x) * 2.0, name="f", background=True)
f(np.ones(3)), f(np.ones(3))
"""


def test_what_compiles_in_the_background_belongs_to_the_run(tmp_path):
    (tmp_path / "script.py").write_text(BACKGROUND, "utf-8")
    start(tmp_path, "-m", "profuse.tools.report.cli", "script.py")
    page = Page((tmp_path / "report.html").read_text("utf-8"))
    assert "f64[3] contiguous" in page.texts["code"]
    assert "\tretq" in page.text("pre")
    assert any(t.startswith("compiles, profuse-compile") for t in page.texts["div"])


def test_compiles_that_do_not_end_are_said_to_be_missing(tmp_path):
    (tmp_path / "script.py").write_text(BACKGROUND + "type(f).wait = lambda self, timeout=None: False\n", "utf-8")
    start(tmp_path, "-m", "profuse.tools.report.cli", "script.py")
    page = Page((tmp_path / "report.html").read_text("utf-8"))
    assert "Compiles that had not ended 10 minutes later are not shown." in page.text("p")
