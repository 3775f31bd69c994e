"""Drawings: the lanes of a run, the calls of a function."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ...executor.observe.perfetto import LANES, lane_of
from ...executor.settings.events import Event
from ..quantities import duration, plural
from . import calls as calls_
from .calls import KINDS, gains, kind_of
from .markup import MARKUP, Markup, join
from .model import FunctionReport, Run

_HEIGHT, _TOP = 132, 8  # of the plot, in pixels
_CELLS = 1000  # a lane is drawn in so many steps: what is smaller melts into its neighbour
_OTHER = {"compiling": "compiled", "trace": "traced", "load": "loaded a kernel", "disk": "used the disk cache"}
_TICKS = 6

Span = tuple[float, float, str, str]  # start and length in seconds, kind, text


def lanes(run: Run) -> Markup:
    """The lanes of all threads over the time of the run."""
    by_lane = _spans(run)
    if not by_lane:
        return MARKUP("quiet", text="Nothing that took time was recorded.")
    end = max(start + length for spans in by_lane.values() for start, length, _, _ in spans)
    rows, threads = [], _thread_names(run)
    for (thread, lane), spans in by_lane.items():
        name = f"{lane}, {threads.get(thread, thread)}"
        bars = _drawn(spans, end)
        label = f"{name}: {plural(len(spans), 'span')}"
        rows.append(MARKUP("lane", name=name, label=label, spans=MARKUP.each("span", bars)))
    kinds = dict.fromkeys(kind for spans in by_lane.values() for _, _, kind, _ in spans)
    total = sum(call.nanoseconds for _, call in run.calls) / 1e9
    summary = (
        f"{plural(len(run.calls), 'call')}, {duration(total)} of calls within {duration(end)}. "
        "Compiling and look-ups happen inside of calls, or in the background, and have lanes of "
        "their own."
        if run.recorded
        else "Calls were not recorded: only what they compiled and looked up."
    )
    return MARKUP(
        "lanes", summary=summary, rows=join(rows), ticks=MARKUP.each("tick", _ticks(end)), legend=legend(kinds)
    )


def _thread_names(run: Run) -> dict[int, str]:
    """Names of threads, of which no two are the same: many programs name theirs all alike."""
    shared = Counter(run.threads.values())
    counts: Counter[str] = Counter()
    names = {}
    for thread, name in run.threads.items():
        counts[name] += 1
        names[thread] = f"{name} ({counts[name]} of {shared[name]})" if shared[name] > 1 else name
    return names


def _spans(run: Run) -> dict[tuple[int, str], list[Span]]:
    """By thread and lane, threads in the order in which they turned up."""
    by_lane: dict[tuple[int, str], list[Span]] = {(thread, lane): [] for thread in run.threads for lane in LANES}
    for start, call in run.calls:
        length = call.nanoseconds / 1e9
        text = f"{call.name}: {duration(length)}, {gains(call)}"
        by_lane[call.thread, "calls"].append((start, length, kind_of(call), text))
    for when, event in run.events:
        if event.seconds is not None:
            text = f"{event.kind} {event.function}: {duration(event.seconds)}. {event.reason}"
            span = (max(when - event.seconds, 0.0), event.seconds, _kind(event), text)
            by_lane.setdefault((event.thread, lane_of(event)), []).append(span)
    return {key: spans for key, spans in by_lane.items() if spans}


def _kind(event: Event) -> str:
    if event.kind.startswith("disk"):
        return "disk"
    return {"trace": "trace", "load": "load"}.get(event.kind, "compiling")


def _drawn(spans: list[Span], end: float) -> Iterable[dict]:
    """Long spans as they are; of the short ones in a cell, one that stands for all of them."""
    scale = _CELLS / end
    cells: dict[tuple[int, str], list[Span]] = {}
    for span in spans:
        start, length, kind, text = span
        if length * scale >= 2:
            yield _rectangle(start * scale, length * scale, kind, text)
        else:
            cells.setdefault((int(start * scale), kind), []).append(span)
    for (cell, kind), same in cells.items():
        text = same[0][3]
        if len(same) > 1:
            text = f"{len(same)} times, together {duration(sum(s[1] for s in same))}"
        yield _rectangle(min(cell, _CELLS - 2), 2, kind, text)


def _rectangle(start: float, length: float, kind: str, text: str) -> dict:
    unit = 100 / _CELLS
    return {"x": f"{start * unit:.2f}", "width": f"{length * unit:.2f}", "kind": kind, "text": text}


def _ticks(end: float) -> Iterable[dict]:
    for k in range(_TICKS):
        anchor = "start" if k == 0 else "end" if k == _TICKS - 1 else "middle"
        at = k / (_TICKS - 1)
        text = duration(end * at) if k else "0"
        yield {"x": f"{100 * at:.1f}", "anchor": anchor, "text": text}


def legend(kinds: Iterable[str]) -> Markup:
    """The meanings of the colours, of the kinds that occur."""
    meanings = KINDS | _OTHER
    order = list(meanings)
    rows = ({"kind": k, "text": meanings[k]} for k in sorted(kinds, key=order.index))
    return MARKUP("legend", rows=MARKUP.each("legend-row", rows))


def calls(f: FunctionReport) -> Markup:
    """A bar for each call, or for some in a row; heights on a scale of powers of ten."""
    chart = calls_.chart(f.calls)
    powers = range(chart.low, chart.high + 1)
    every = max(1, -(-len(powers) // 6))
    lines = [(_y((p - chart.low) / (chart.high - chart.low)), p) for p in powers[::every]]
    step = 100 / max(len(chart.bars), 24)
    bars = (
        {
            "x": f"{k * step:.3f}",
            "step": f"{step:.3f}",
            "width": f"{step * 0.8:.3f}",
            "y": f"{_y(bar.height):.1f}",
            "height": f"{_TOP + _HEIGHT - _y(bar.height):.1f}",
            "kind": bar.kind,
            "text": _told(bar),
        }
        for k, bar in enumerate(chart.bars)
    )
    count = plural(len(f.calls), "call")
    width = chart.bars[0].last
    each = "One bar for each call" if width == 1 else f"One bar for {width} calls, the slowest"
    return MARKUP(
        "chart",
        label=f"Time of {count} of {f.name}",
        scale=MARKUP.each("scale", ({"y": f"{y + 4:.1f}", "text": _power(p)} for y, p in lines)),
        grid=MARKUP.each("grid", ({"y": f"{y:.1f}"} for y, _ in lines)),
        bars=MARKUP.each("bar", bars),
        caption=f"{each}, in order; each line is {10**every:,} times the one below it.",
        legend=legend({bar.kind for bar in chart.bars}),
    )


def _y(height: float) -> float:
    """Pixels from above; the smallest call is still to be seen."""
    return _TOP + _HEIGHT * (1 - max(height, 0.02))


def _power(power: int) -> str:
    return duration(10.0**power * 1.0001).replace(".00", "").replace(".0", "")


def _told(bar: calls_.Bar) -> str:
    if bar.first == bar.last:
        return f"Call {bar.first}: {duration(bar.seconds)}, {KINDS[bar.kind]}"
    return f"Calls {bar.first} – {bar.last}: up to {duration(bar.seconds)}, {KINDS[bar.kind]}"
