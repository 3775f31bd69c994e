"""The command line of the programs that measure kernels and models."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from suite.kernel import KERNELS, SIZES

from . import plot, session, systems, tables

QUICK_ROUNDS, ROUNDS = 5, 30


def options(doc: str, group: str, sizes: Sequence[str], arguments: list[str] | None = None) -> argparse.Namespace:
    """The options of the command line; exits where it is wrong."""
    peers = systems.peers_of(group)
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [k.name for k in KERNELS.values() if k.group == group]
    parser.add_argument("--only", default="", metavar="REGEX", help="of 'kernel dtype'")
    parser.add_argument("--sizes", nargs="+", default=list(sizes), help="or ROWSxCOLUMNS")
    parser.add_argument("--dtypes", nargs="+", default=[], help="default: all of each kernel")
    parser.add_argument("--peers", nargs="*", default=list(peers), choices=peers)
    parser.add_argument("--threads", nargs="+", default=["1"], help="numbers, or all")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--budget", type=float, default=math.inf, metavar="SECONDS")
    parser.add_argument("--quick", action="store_true", help="float32, one size, few rounds")
    parser.add_argument("--no-dynamic", action="store_true", help="literal sizes alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rows it has are not measured")
    parser.add_argument("--again", action="store_true", help="measure rows of the file anew")
    parser.add_argument("--plot", metavar="FILE.svg")
    parser.add_argument("--show", action="store_true", help="the table of the file, nothing more")
    parser.add_argument("--list", action="store_true", help="names of the kernels")
    given = parser.parse_args(arguments)
    if given.list:
        print("\n".join(names))
        sys.exit()
    if given.quick:
        given.rounds = min(given.rounds, QUICK_ROUNDS)
        given.sizes = given.sizes if given.sizes != list(sizes) else ["cache"]
        given.dtypes = given.dtypes or ["f32"]
    try:
        given.sizes = [session.size_of(text) for text in given.sizes]
        given.threads = list(dict.fromkeys(map(session.thread_count, given.threads)))
    except ValueError as error:
        parser.error(str(error))
    if given.show and given.json is None:
        parser.error("--show needs --json FILE")
    return given


def main(
    doc: str,
    group: str,
    sizes: Sequence[str] = tuple(SIZES),
    verdict: Callable[[list[dict[str, Any]]], str] | None = None,
) -> None:
    """Measure a group of kernels, and print what was found, worst rows first.

    Args:
        doc: of the program, for its help.
        group: of the kernels.
        sizes: what is measured unless the command line says otherwise.
        verdict: words on the rows that follow the tables.
    """
    given = options(doc, group, sizes)
    wanted = ["ours", *(() if given.no_dynamic else ("ours-dynamic",)), *given.peers]
    missing = {s: why for s in wanted if (why := systems.missing(s))}
    plan = session.Plan(
        group,
        given.only,
        given.sizes,
        wanted,
        given.threads,
        given.dtypes,
        given.rounds,
        given.budget,
        given.again,
        given.json,
        missing=missing,
    )
    if given.show:
        plan.rows = json.loads(given.json.read_text("utf-8"))["rows"]
        conclude(list(plan.rows.values()), wanted, given.plot, verdict)
        return
    try:
        session.load(plan)
    except ValueError as error:
        sys.exit(str(error))
    print(session.headline(plan))
    for system, why in missing.items():
        print(f"{system} is left out: {why}")
    shown = [s for s in wanted if s not in missing]
    print(tables.columns(shown))
    left = session.measure(plan, lambda row: print(tables.line(row, shown), flush=True))
    keys = {session.key_of(c, t) for t in given.threads for c in session.cases(plan)}
    conclude([row for key, row in plan.rows.items() if key in keys], shown, given.plot, verdict)
    if left:
        print(
            f"{left} rows were not measured within {given.budget:.0f} s; the same command with "
            "the same --json FILE goes on"
        )


def conclude(
    rows: list[dict[str, Any]],
    shown: list[str],
    picture: str | None,
    verdict: Callable[[list[dict[str, Any]]], str] | None = None,
) -> None:
    """Print the table and its summary; draw the picture."""
    print(f"\n{tables.table(rows, shown)}\n\n{tables.summary(rows)}")
    if tables.skips(rows):
        print(f"\nWithout a figure:\n{tables.skips(rows)}")
    if verdict is not None and rows:
        print(f"\n{verdict(rows)}")
    if picture is not None and rows:
        try:
            plot.draw(rows, picture, rows[0]["threads"])
        except ImportError as error:
            print(f"there is no picture: {error}")
