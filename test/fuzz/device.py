"""``python -m fuzz.device``, from ``test/``: random functions of both fusers, for arrays of several sizes.

Each runs on tier 0, by the general fuser, by that of device groups on the host, again and on several threads, and on
an emulated device. ``--gradients``: smooth ones, whose gradients both fusers compute. What differs is printed with its
function.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
import warnings
from collections import Counter

from .device_programs import generate
from .device_ways import check, check_gradients


def main() -> int:
    """Command line; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.device", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--gradients", action="store_true", help="gradients of smooth functions")
    parser.add_argument("--show", action="store_true", help="print the first program, and no more")
    parser.add_argument("--verbose", action="store_true", help="print the number of each program and its seconds")
    given = parser.parse_args()
    if given.show:
        print(generate(given.first, smooth=given.gradients).source)
        return 0
    warnings.simplefilter("ignore")
    faulthandler.enable()
    counts: Counter[str] = Counter()
    start, wrong = time.perf_counter(), 0
    for number in range(given.first, given.first + given.programs):
        before = time.perf_counter()
        program = generate(number, smooth=given.gradients)
        try:
            found = check_gradients(program, counts) if given.gradients else check(program, number, counts)
        except Exception as error:
            found = {"an error": f"{type(error).__name__}: {error}"}
        for way, what in found.items():
            wrong += 1
            print(f"=== {number}, {way}: {what}\n{program.source}", flush=True)
        if given.verbose:
            print(number, f"{time.perf_counter() - before:.1f} s", flush=True)
    print(f"{given.programs} programs in {time.perf_counter() - start:.0f} s, {wrong} differ; {dict(counts)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
