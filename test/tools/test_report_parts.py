"""The parts of a report that compute: comparing texts, and telling calls apart."""

from __future__ import annotations

import itertools
import math
import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profuse.executor.compile.timings import _ORDER
from profuse.executor.observe.timeline import TimedCall
from profuse.executor.settings.events import Event
from profuse.tools.quantities import duration, plural, size
from profuse.tools.report.calls import KINDS, chart, errors, gains, kind_of, stretches
from profuse.tools.report.charts import _OTHER, lanes
from profuse.tools.report.collect import MAX_COMPILES, _Budget
from profuse.tools.report.compiles import MAX_LINES, source, stages_of
from profuse.tools.report.diff import CONTEXT, side_by_side
from profuse.tools.report.diff import MAX_LINES as MOST
from profuse.tools.report.markup import MARKUP
from profuse.tools.report.model import CompiledGraph
from report_pages import Page, hostile_run

LINES = st.lists(st.sampled_from(["%0 = a.b(%1)", "%1 = a.b(%2)", "%2 = c.d", "}", ""]), max_size=30)


def text(parts) -> str:
    return "".join(piece for _, piece in parts)


@given(LINES, LINES)
def test_a_comparison_shows_every_difference_and_only_true_lines(old, new):
    rows = side_by_side("\n".join(old), "\n".join(new))
    old, new = "\n".join(old).splitlines(), "\n".join(new).splitlines()
    for row in rows:
        if row.left:
            assert text(row.before) == old[row.left - 1]
        if row.right:
            assert text(row.after) == new[row.right - 1]
        if row.kind == "same":
            assert text(row.before) == text(row.after)
    # What is not shown is the same on both sides.
    left = [line for k, line in enumerate(old, 1) if k not in {r.left for r in rows}]
    right = [line for k, line in enumerate(new, 1) if k not in {r.right for r in rows}]
    assert left == right


def test_lines_of_one_op_stand_side_by_side():
    old = '%1 = "p.profile"(%0)\n%2 = "p.mul"(%1) : !p.t\n%3 = "p.add"(%2)'
    new = '%1 = "p.mul"(%0) : tensor\n%2 = "p.add"(%1)'
    rows = side_by_side(old, new)
    assert [(r.kind, r.left, r.right) for r in rows] == [("removed", 1, None), ("changed", 2, 1), ("changed", 3, 2)]
    assert [piece for differs, piece in rows[2].before if differs] == ["3", "2"]
    assert [piece for differs, piece in rows[2].after if differs] == ["2", "1"]


def test_a_comparison_keeps_to_the_surroundings():
    old = [str(k) for k in range(100)]
    new = [*old[:50], "new", *old[50:]]
    rows = side_by_side("\n".join(old), "\n".join(new))
    assert [r.kind for r in rows] == ["gap", *["same"] * CONTEXT, "added", *["same"] * CONTEXT]
    assert side_by_side("same", "same") == []
    assert side_by_side("\n" * (MOST + 1), "") is None


def call(seconds=1e-6, error="", tier="optimized", **gained) -> TimedCall:
    return TimedCall(1, "f", 0, round(seconds * 1e9), 1, tier, gained, error)


@pytest.mark.parametrize(
    ("made", "kind"),
    [
        (call(error="E", compiles=1), "error"),
        (call(compiles=1, fallback_calls=1), "compile"),
        (call(profiled_runs=1, fallback_calls=1), "profiling"),
        (call(fallback_calls=1, kernel_launches=1), "fallback"),
        (call(kernel_launches=1), "optimized"),
        (call(evaluated_ops=1), "interpreted"),
        (call(tier=""), "inlined"),
    ],
)
def test_kinds(made, kind):
    assert kind_of(made) == kind


def test_what_a_call_did():
    made = call(compiles=1, kernel_launches=2, guard_misses=1, evaluated_ops=1200, guard_hits=1)
    assert gains(made) == "1 compile, 2 kernel launches, 1 guard miss, 1,200 ops in NumPy"
    failed = [call(error="E: x")] * 2 + [call(error="F: y")]
    assert errors(failed) == ["raised E: x (2 times)", "raised F: y"]


def test_stretches():
    fast = [call(seconds=k * 1e-6, kernel_launches=1) for k in (1, 2, 9)]
    found = stretches([call(profiled_runs=1), *fast, call(fallback_calls=1, kernel_launches=1)])
    assert [(s.first, s.last, s.kind) for s in found] == [(1, 1, "profiling"), (2, 4, "optimized"), (5, 5, "fallback")]
    middle = found[1]
    assert (middle.median, middle.worst) == (2e-6, 9e-6)
    assert middle.total == pytest.approx(12e-6)


def test_a_chart_has_room_for_any_number_of_calls():
    calls = [call(1e-6, kernel_launches=1)] * 1000
    calls[500] = call(0.5, compiles=1)
    made = chart(calls, most=100)
    assert len(made.bars) == 100
    assert (made.bars[0].first, made.bars[-1].last) == (1, 1000)
    assert (made.low, made.high) == (-6, 0)
    slow = made.bars[50]
    assert (slow.kind, slow.seconds) == ("compile", 0.5)
    assert slow.height == pytest.approx(0.95, abs=0.01)
    assert {bar.height for bar in made.bars} == {0.0, slow.height}
    (alone,) = chart([call(0.0)]).bars
    assert 0 <= alone.height <= 1


def test_long_code_is_cut_and_says_so():
    shown = source("x\n" * (MAX_LINES + 5), "mlir", "label")
    assert shown.count("\nx") == MAX_LINES - 1
    assert "… 5 lines more" in shown


def test_so_many_compiles_are_made_again_and_no_more():
    budget = _Budget()
    assert all(budget.take() for _ in range(MAX_COMPILES))
    assert budget.notes() == []
    assert not budget.take()
    assert "those of 1 more are not" in budget.notes()[0]


def test_quantities():
    assert [duration(s) for s in (0.0, 8.4e-7, 3.123e-6, 4.18e-2, 0.1551, 1.07, 93.0)] == [
        "0 ns",
        "840 ns",
        "3.12 µs",
        "41.8 ms",
        "155 ms",
        "1.07 s",
        "93.0 s",
    ]
    assert [size(n) for n in (0, 1023, 1024, 5 << 20)] == ["0 B", "1023 B", "1.0 KiB", "5.0 MiB"]
    assert [plural(n, w) for n, w in ((1, "pass"), (2, "pass"), (1500, "op"))] == ["1 pass", "2 passes", "1,500 ops"]


def test_lanes_count_calls_alone():
    """Compiles lie inside of calls: adding both up would count them twice."""
    made = replace(hostile_run(), calls=((0.0, call(0.5)),), functions=())
    compiled = Event("compile", "f", "", 0.25, {}, 0.0, 7)
    drawn = lanes(replace(made, events=((0.5, compiled),), threads={1: "main", 7: "pool"}))
    assert "1 call, 500 ms of calls within 500 ms." in drawn
    page = Page(drawn)
    assert page.texts["div"] == ["calls, main", "compiles, pool"]
    assert [a["class"] for t, a in page.elements if t == "rect"] == ["k-interpreted", "k-compiling"]
    assert [a["x"] for t, a in page.elements if t == "rect"] == ["0.00%", "50.00%"]


# --- what a reader compares with each other ------------------------------------------------------


@pytest.mark.parametrize(
    ("stages", "shown", "other"),
    [
        ({"parse": 1.0, "LLVM": 2.0}, 4.0, 1.0),  # a second that no stage accounts for
        ({"parse": 1.0, "other": 2.0}, 4.0, 3.0),
        ({"parse": 1.0, "LLVM": 3.0}, 4.0, 0.0),
        ({"parse": 1.0, "LLVM": 4.0}, 5.0, 0.0),  # stages that overlap
        ({}, 4.0, 4.0),
    ],
)
def test_stages_add_up_to_the_total_that_is_shown(stages, shown, other):
    one, double = (CompiledGraph(name, "static", seconds, stages, "", "") for name, seconds in (("f", 4.0), ("g", 8)))
    function = replace(hostile_run().functions[0], compiles=(one, double))
    page = Page(stages_of(function))
    assert page.texts["td"][1] == duration(shown)
    assert duration(8.0) in page.texts["td"]
    words = [t.strip() for t in page.texts["span"]]
    assert (f"other {duration(other)}" in words) == (other > 0)
    ends, begins = [], []
    for tag, attrs in page.elements:
        if tag == "rect":
            begins.append(float(attrs["x"].rstrip("%")))
            ends.append(begins[-1] + float(attrs["width"].rstrip("%")))
    assert [b for b, e in zip(begins[1:], ends, strict=False) if b and abs(b - e) > 0.02] == []
    first = ends[begins.index(0.0, 1) - 1]
    assert (first, ends[-1]) == pytest.approx((100 * shown / 8, 100), abs=0.05)


def colours(prefix: str, scheme: int) -> dict[str, tuple[int, ...]]:
    """Colour by class; ``scheme``: 0 = light, 1 = dark."""
    style = MARKUP.asset("style.css")
    known = re.findall(r"--([\w-]+): (#[0-9a-f]{6});", style)
    named = [dict(reversed(known)), dict(known)][scheme]
    found = re.findall(rf"\.{prefix}-([\w-]+) {{ fill: (\S+); background: (\S+); }}", style)
    assert all(fill == background for _, fill, background in found)
    values = {name: re.sub(r"var\(--(.*)\)", lambda m: named[m[1]], fill) for name, fill, _ in found}
    return {n: tuple(bytes.fromhex(value[1:])) for n, value in values.items()}


@pytest.mark.parametrize("scheme", [0, 1])
@pytest.mark.parametrize(
    ("prefix", "names"), [("k", {*KINDS, *_OTHER}), ("s", {stage.replace(" ", "-") for stage in _ORDER})]
)
def test_no_two_colours_of_a_legend_look_alike(prefix, names, scheme):
    found = colours(prefix, scheme)
    assert set(found) == names
    for (one, a), (other, b) in itertools.combinations(found.items(), 2):
        assert math.dist(a, b) > 30, (one, other)


def test_lanes_of_threads_with_one_name_are_told_apart():
    run = hostile_run()
    calls = tuple((0.1, replace(run.calls[0][1], thread=thread)) for thread in (1, 2, 3))
    threads = {1: "worker", 2: "worker", 3: "main"}
    page = Page(lanes(replace(run, calls=calls, events=(), threads=threads)))
    names = [t for t in page.texts["div"] if t.startswith("calls")]
    assert names == ["calls, worker (1 of 2)", "calls, worker (2 of 2)", "calls, main"]


@pytest.mark.parametrize(("box", "line"), [(".words", ".words"), (".code-box", ".ir")])
def test_boxes_that_scroll_end_between_two_lines(box, line):
    """The part of one that is seen is its upper padding, whole lines, and its borders."""
    style = MARKUP.asset("style.css")
    rules = dict(re.findall(r"^(\S.*?) \{ (.*) \}$", style, re.M))
    height = re.search(r"max-height: calc\((\S+) \+ \d+ \* (\S+) \+ 2px\)", rules[box])
    assert height[1] == re.search(r"padding: (\S+)", rules[line])[1]
    assert height[2] == re.search(r"line-height: ([^;]+);", rules[line])[1]
    assert "border: 1px" in rules[box]
    assert "margin: 0;" in rules.get(f"{line} p", "margin: 0;"), "a paragraph adds none"
