"""``python -m fuzz.training``, from ``test/``: random training programs, in all ways to gradients.

Models, hooks, writes, gradient modes, shapes and frozen leaves are drawn. Each way runs beside the
plain tape, step by step: jitted, captured, in the background, by ``pf.grad``. What differs is
printed as a script that runs by itself.
"""

from __future__ import annotations

import argparse
import inspect
import linecache
import sys
import time
import types
import warnings
from collections import Counter
from collections.abc import Sequence

import profuse as pf

from . import training_ways
from .training_programs import Training, generate
from .training_ways import WAYS, checked, grad_differs, loaded, numbers_differ

# Beside all others, each in its turn, as these compile.
SLOW = ("jitted", "captured", "jitted and captured", "jitted in the background", "captured in the background")


def usual(number: int) -> tuple[str, ...]:
    """The ways in which a program is run: those without compiles, and one other."""
    return ("tape", "interpreted", ("traced", "dynamic")[number % 2], SLOW[number // 2 % len(SLOW)])


def check(program: Training, ways: Sequence[str], counts: Counter[str]) -> dict[str, str]:
    """What differs, by way."""
    file = f"<training {program.name}>"
    linecache.cache[file] = (len(program.text), None, program.text.splitlines(True), file)
    found = {}
    try:
        space = types.SimpleNamespace(**loaded(program.text, file))
        counts["programs"] += 1
        for way in ways:
            counts[way] += 1
            found[way] = checked(space, way)
        if program.free:
            if program.plain and space.DTYPE.__name__ == "float64":
                counts["differences"] += 1
                found["differences"] = numbers_differ(space)
            what = grad_differs(space)
            counts["pf.grad refuses" if what is None else "pf.grad"] += 1
            found["pf.grad"] = what or ""
    finally:
        linecache.cache.pop(file, None)
    return {way: what for way, what in found.items() if what}


def script(program: Training, way: str) -> str:
    """A program that shows by itself what differs."""
    ways = inspect.getsource(training_ways).partition('"""\n\n')[2]
    call = {"differences": "numbers_differ(space)", "pf.grad": "grad_differs(space)"}
    return (
        f"# Training program {program.name}, {way}.\n{ways}\n\nTEXT = '''\n"
        f"{program.text}'''\nimport linecache\n"
        "linecache.cache['<training>'] = (len(TEXT), None, TEXT.splitlines(True), '<training>')\n"
        "space = types.SimpleNamespace(**loaded(TEXT, '<training>'))\n"
        f"print({call.get(way, f'checked(space, {way!r})')} or 'nothing differs')\n"
    )


def main() -> int:
    """Command line; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.training", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--ways", nargs="+", choices=list(WAYS), help="instead of some in turn")
    parser.add_argument("--most", type=int, default=5, help="scripts to print")
    parser.add_argument("--show", action="store_true", help="print the first program, and no more")
    parser.add_argument("--quick", action="store_true", help="no way that compiles")
    given = parser.parse_args()
    if given.show:
        print(generate(given.seed, given.first).text)
        return 0
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    start, wrong = time.perf_counter(), 0
    with pf.knobs.override(cache=False):
        for number in range(given.first, given.first + given.programs):
            program = generate(given.seed, number)
            ways = given.ways or usual(number)
            for way, what in check(program, ways[:3] if given.quick else ways, counts).items():
                wrong += 1
                print(f"=== {program.name}, {way}: {what}", flush=True)
                if wrong <= given.most:
                    print(script(program, way))
    print(f"{counts.pop('programs')} programs in {time.perf_counter() - start:.0f} s, {wrong} differ; {dict(counts)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
