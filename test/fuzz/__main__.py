"""``python -m fuzz``, from ``test/``: random NumPy programs, on all tiers, against NumPy.

Exit status 1 = something differs. What is printed then runs by itself.
"""

from __future__ import annotations

import argparse
import sys
import time

from .modes import MODES, USUAL
from .runner import Report, child, run, shrunk_script


def main() -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--modes", nargs="+", choices=list(MODES), default=list(USUAL))
    parser.add_argument(
        "--rotate", action="store_true", help="each program on tier 0 and in one other mode, by its number"
    )
    parser.add_argument("--show", metavar="SEED/NUMBER", help="print a program, and do no more")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--numbers", nargs="*", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--shrink", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    modes = () if given.rotate else tuple(given.modes)
    if given.show:
        from .programs import generate

        program = generate(*map(int, given.show.split("/")))
        print(program.source(), *program.calls, sep="\n")
        return 0
    if given.shrink:
        *finding, seconds = given.shrink
        print(shrunk_script(*finding, float(seconds)))
        return 0
    if given.child:
        child(given.seed, given.numbers, modes)
        return 0
    start = time.perf_counter()
    report = run(given.seed, given.first, given.programs, given.jobs, modes)
    return tell(report, time.perf_counter() - start)


def tell(report: Report, seconds: float) -> int:
    """Print a report; 1 = something was found."""
    counts = report.counts
    for what, where in sorted(report.found.items(), key=lambda f: -len(f[1])):
        programs = dict.fromkeys(name for name, _ in where)
        modes = ", ".join(dict.fromkeys(mode for _, mode in where))
        some = ", ".join(list(programs)[:8])
        print(f"\n=== {what}\n=== {len(programs)} programs: {some}; {modes}")
        print(report.scripts[what])
    print(
        f"{counts['programs']} programs, {60 * counts['programs'] / seconds:.0f} per minute; "
        f"{counts['calls']} calls, {counts['refused calls']} refused; "
        f"{len(report.found)} kinds of differences"
    )
    for name, count in counts.most_common():
        if name not in ("programs", "calls", "refused calls") and count:
            print(f"{count:7} {name}")
    return 1 if report.found else 0


if __name__ == "__main__":
    sys.exit(main())
