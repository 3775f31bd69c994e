"""A report as one page of HTML: needs nothing beside itself, runs offline, trusts no name."""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Iterable, Mapping

from ...executor.observe.timeline import TimedCall
from ..quantities import duration, plural, size
from . import charts
from .calls import errors, stretches
from .compiles import kernels_of, passes_of, stages_of
from .markup import MARKUP, Markup, join
from .model import FunctionReport, Run

MAX_ROWS = 200  # stretches of calls in a table

_TIERS = {
    "profiling": ("profiling", "is being profiled"),
    "optimized": ("optimized", "native code"),
    "simple": ("interpreted", "op by op, unguarded"),
    "no-opt": ("interpreted", "op by op, not optimised"),
}


def render(run: Run) -> str:
    """The page of a run."""
    style, script = MARKUP.asset("style.css"), MARKUP.asset("script.js")
    return MARKUP(
        "page",
        title=run.title,
        style=Markup(style),
        style_hash=_hash(style),
        script=Markup(script),
        script_hash=_hash(script),
        nav=_navigation(run),
        meta=_meta(run),
        notes=_notes(run),
        tiles=MARKUP.each("tile", _tiles(run)),
        attention=_attention(run),
        timeline=charts.lanes(run),
        functions=join(_function(run, f) for f in run.functions),
        events=_events(run),
        settings=_settings(run),
        version=run.versions.get("profuse", ""),
    )


def _hash(text: str) -> str:
    """The hash that allows exactly this text in the page's content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _navigation(run: Run) -> Markup:
    if not run.functions:
        return MARKUP("nav-empty")
    return MARKUP.each(
        "nav-item",
        (
            {"number": f.number, "kind": _tier(f)[0], "name": f.name, "calls": _count(f.counters, "calls")}
            for f in run.functions
        ),
    )


def _tier(f: FunctionReport) -> tuple[str, str]:
    """Its colour, and what it says."""
    return _TIERS.get(f.tier, ("interpreted", f.tier))


def _meta(run: Run) -> str:
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(run.started))
    recorded = f"recorded for {duration(run.seconds)}" if run.seconds else ""
    python = f"Python {run.versions.get('python', '?')}"
    return "  ·  ".join(filter(None, (run.command, when, recorded, run.target, python)))


def _notes(run: Run) -> Markup:
    notes = [MARKUP("alarm", text=run.ended)] if run.ended else []
    if run.lost:
        lost = f"{run.lost:,} calls found no room in the recording (the trace_calls knob)."
        notes.append(MARKUP("note", text=lost))
    return join([*notes, *(MARKUP("note", text=text) for text in run.notes)])


def _tiles(run: Run) -> Iterable[dict[str, str]]:
    compiles = [compile_ for f in run.functions for compile_ in f.compiles]
    seconds = sum(compile_.seconds for compile_ in compiles)
    code = sum(s.object_bytes for f in run.functions for s in f.specializations)
    for label, name, detail in (
        ("Calls", "calls", f"of {plural(len(run.functions), 'function')}"),
        ("Compiles", "compiles", duration(seconds) if seconds else ""),
        ("Native kernels", "kernels_compiled", size(code) if code else ""),
        ("Kernel launches", "kernel_launches", ""),
    ):
        yield {"label": label, "value": _count(run.counters, name), "detail": detail}
    yield _share("Guard hits", run.counters, "guard_hits", "guard_misses", "check")
    for label, name, detail in (
        ("Fallback calls", "fallback_calls", "behind a guard that missed"),
        ("Ops in NumPy", "evaluated_ops", "one by one"),
    ):
        yield {"label": label, "value": _count(run.counters, name), "detail": detail}
    yield _share("Disk cache hits", run.counters, "disk_hits", "disk_misses", "look-up")


def _count(counters: Mapping[str, int], name: str) -> str:
    """A log does not have all of them."""
    return f"{counters[name]:,}" if name in counters else "–"


def _share(label: str, counters: Mapping[str, int], hit: str, miss: str, noun: str) -> dict[str, str]:
    hits = counters.get(hit, 0)
    every = hits + counters.get(miss, 0)
    detail = f"of {plural(every, noun)}" if hit in counters else ""
    return {"label": label, "value": _percent(hits, every), "detail": detail}


def _percent(part: int, whole: int) -> str:
    if not whole:
        return "–"
    share = 100 * part / whole
    return "100 %" if part == whole else f"{min(share, 99.9):.1f} %"


def _attention(run: Run) -> Markup:
    rows = [
        {"number": f.number, "name": f.name, "text": reason}
        for f in run.functions
        for reason in (*f.reasons, *errors(f.calls))
    ]
    rows += [
        {"number": f.number, "name": f.name, "text": _tier(f)[1]}
        for f in run.functions
        if f.tier in ("simple", "no-opt")
    ]
    if rows:
        return MARKUP("attention", rows=MARKUP.each("attention-row", rows))
    return MARKUP("all-well") if run.functions else Markup()


def _function(run: Run, f: FunctionReport) -> Markup:
    kind, tier = _tier(f)
    parts = {
        "Calls": None if run.of_log else _calls(run, f),
        "In words": _words(f),
        "Specialisations": None if run.of_log else _specializations(f),
        "What compiling took": stages_of(f),
        "Passes": None if run.of_log else passes_of(f),
        "Kernels": None if run.of_log else kernels_of(f),
    }
    shown = ({"heading": h, "body": body} for h, body in parts.items() if body is not None)
    return MARKUP(
        "function", number=f.number, name=f.name, kind=kind, tier=tier, place=f.place, parts=MARKUP.each("part", shown)
    )


def _words(f: FunctionReport) -> Markup:
    """A paragraph for each line, set in as far as the line is."""
    rows = []
    for line in f.explanation.splitlines():
        text = line.lstrip(" ")
        rows.append({"level": min((len(line) - len(text)) // 2, 6), "text": text})
    return MARKUP("words", name=f.name, lines=MARKUP.each("words-line", rows))


def _calls(run: Run, f: FunctionReport) -> Markup:
    if not run.recorded:
        text = "Calls are recorded inside of “with pf.trace()”, and by profuse-report."
        return MARKUP("quiet", text=text)
    if not f.calls:
        return MARKUP("quiet", text="None while calls were recorded.")
    return join([charts.calls(f), _calls_table(f.name, f.calls)])


def _calls_table(name: str, calls: tuple[TimedCall, ...]) -> Markup:
    groups = stretches(calls)
    rows = [
        {
            "numbers": f"{s.first:,}" + (f" – {s.last:,}" if s.last > s.first else ""),
            "kind": s.kind,
            "median": duration(s.median),
            "worst": duration(s.worst) if s.last > s.first else "",
            "gained": s.gained,
        }
        for s in groups[:MAX_ROWS]
    ]
    table = MARKUP("calls-table", name=name, rows=MARKUP.each("calls-row", rows))
    if len(groups) <= MAX_ROWS:
        return table
    rest = len(groups) - MAX_ROWS
    return join([table, MARKUP("quiet", text=f"… and {rest:,} more changes of tier.")])


def _specializations(f: FunctionReport) -> Markup:
    if not f.specializations:
        return MARKUP("quiet", text="None: nothing is guarded.")
    rows = []
    for s in f.specializations:
        checks = s.hits + s.misses
        rows.append(
            {
                "guard": s.guard,
                "callee": s.callee,
                "executor": s.executor,
                "behavior": s.behavior,
                "hits": f"{s.hits:,}",
                "misses": f"{s.misses:,}",
                "rate": _percent(s.hits, checks),
                "width": f"{96 * s.hits / checks if checks else 0:.1f}",
                "time": duration(s.run_seconds / s.hits) if s.run_seconds else "",
                "bytes": size(s.object_bytes) if s.object_bytes else "no kernel",
            }
        )
    return MARKUP("specs-table", name=f.name, rows=MARKUP.each("specs-row", rows))


def _events(run: Run) -> Markup:
    if not run.events:
        return MARKUP("quiet", text="None.")
    weights = {"debug": 0, "info": 1, "warning": 2}
    rows = (
        {
            "weight": weights[e.level],
            "level": e.level,
            "time": f"{when:.3f} s",
            "kind": e.kind,
            "function": e.function,
            "reason": e.reason,
            "took": "" if e.seconds is None else duration(e.seconds),
            "details": ", ".join(f"{k} {v}" for k, v in e.details.items() if not isinstance(v, dict)),
        }
        for when, e in run.events
    )
    return MARKUP("events", rows=MARKUP.each("event-row", rows))


def _settings(run: Run) -> Markup:
    changed = [s for s in run.settings if s.value != s.default]
    shown = MARKUP("quiet", text="All at their defaults.")
    if changed:
        shown = MARKUP("knobs", rows=_knobs(changed))
    return MARKUP(
        "settings",
        changed=shown,
        count=len(run.settings),
        rows=_knobs(run.settings),
        versions=MARKUP.each("version-row", ({"name": n, "value": v} for n, v in run.versions.items())),
    )


def _knobs(settings: Iterable) -> Markup:
    return MARKUP.each("knob-row", ({"name": s.name, "help": s.help, "value": s.value or "–"} for s in settings))
