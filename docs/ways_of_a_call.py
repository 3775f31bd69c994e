"""All ways that a call can take: ``docs/ways-of-a-call.md`` and its picture, made from `Cause`.

``--write`` makes both anew; without it they are compared with what would be written. Exit status 1 =
they are not current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path

from profuse.executor.routing.patience import FEW_TRIES, TRIES, Patience
from profuse.executor.routing.verdict import Cause, Server

_PREFACE = f"""# The ways of a call

Made by `python docs/ways_of_a_call.py --write` from `executor/routing/verdict.py`.

A call goes down the steps of the picture until a cause applies, whose verdict says who serves it. Verdicts
on kinds of calls stand in the `Ledger` of the function (`executor/routing/ledger.py`), those on the calls of one
graph in its `GraphTrial`; everybody else proposes them there. `explain()` and `state()` read both.

One rule, `Patience`, says when what has been in vain is tried again: after {TRIES} graphs in a row that serve
fewer than {TRIES} calls each (where Python's time is known, fewer than pay for their trace), or {TRIES} runs of which
most raise ({FEW_TRIES} op by op), the next tries come after {Patience.first} calls, then {4 * Patience.first}, and so
on, up to {Patience.most}. Calls that Python runs sooner are looked at after {Patience.first} always.

![The ways of a call](images/ways-of-a-call.svg)

| step | cause | served by | until | in words |
|---|---|---|---|---|
"""
_ROW, _TEXT, _FIRST_LANE, _LANE = 22, 110, 660, 90  # pixels


def page_text() -> str:
    """The page."""
    rows = [f"| {c.step} | `{c.name}` | {c.server.value} | {c.until.value} | {c.says} |" for c in Cause]
    return _PREFACE + "\n".join(rows) + "\n"


def picture() -> str:
    """The picture: a row for each cause, a lane for each server, as SVG."""
    lanes = {server: _FIRST_LANE + k * _LANE for k, server in enumerate(Server)}
    height, steps = (len(Cause) + 2) * _ROW, set()
    parts = [f'<path class="way" d="M90 {_ROW} V{height - _ROW}"/>']
    for server, x in lanes.items():
        parts.append(f'<text x="{x}" y="{_ROW - 6}" text-anchor="middle">{escape(server.value)}</text>')
        parts.append(f'<path class="lane" d="M{x} {_ROW} V{height - _ROW}"/>')
    for k, cause in enumerate(Cause, 1):
        y, x = k * _ROW + 10, lanes[cause.server]
        if cause.step not in steps:
            parts.append(f'<text x="4" y="{y + 4}" font-weight="bold">{cause.step}</text>')
        steps.add(cause.step)
        parts.append(f'<path class="way" d="M90 {y} H{_TEXT - 4} M{_FIRST_LANE - 60} {y} H{x}"/>')
        parts.append(f'<text x="{_TEXT}" y="{y + 4}">{escape(cause.says)}</text><circle cx="{x}" cy="{y}" r="4"/>')
    width = _FIRST_LANE + len(Server) * _LANE
    style = "text{font:12px sans-serif}.way{stroke:#555;fill:none}.lane{stroke:#ccc}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}"><style>{style}</style>'
    return "\n".join([head, f'<rect width="{width}" height="{height}" fill="#fff"/>', *parts, "</svg>"]) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="check or write docs/ways-of-a-call.md and its picture")
    parser.add_argument("--write", action="store_true", help="make both anew")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    options = parser.parse_args(arguments)
    status = 0
    for name, text in {"ways-of-a-call.md": page_text(), "images/ways-of-a-call.svg": picture()}.items():
        page = options.folder / name
        if options.write:
            page.parent.mkdir(exist_ok=True)
            page.write_text(text, "utf-8")
        elif not page.exists() or page.read_text("utf-8") != text:
            print(f"{page} is not current: make it with --write", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
