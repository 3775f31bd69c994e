"""Errors of the inline expansions of elementary functions, as a table in docs/accuracy.md.

Functions of one f32 are compared with NumPy's in float64, on every argument, or on every k-th bit
pattern with --stride k. The others are compared with long double on samples: random numbers in
several ranges, all exponents, special values and the neighbours of all thresholds.

    python bench/accuracy.py [--stride K] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "test" / "lowering"))

import math_harness  # noqa: E402
import test_math as samples  # noqa: E402
from profuse.lowering import math  # noqa: E402

PAGE = ROOT / "docs" / "accuracy.md"
BLOCK = 1 << 22
HEAD = """# Accuracy of elementary functions

`bench/accuracy.py` writes this page. Largest errors found, in units in the last place of the result
(0.5 is the least that is possible), of the inline expansions in `lowering/math/`; and the bounds,
which `math.ULP_BOUNDS` states and `test/lowering/math/test_math.py` tests on samples. Subnormal results
count by the least subnormal number. The bounds hold on targets with fused multiply-add; without it
errors may be half a unit larger.

Functions of one f32 were compared with float64 on {f32}; functions of two, and
those of f64, with 80-bit long double on samples.
"""
TABLE = """
| function | f32: largest error | at | bound | f64: largest error | at | bound |
|---|---|---|---|---|---|---|
"""


def every(name: str, stride: int) -> tuple[float, str]:
    """Largest error of a function of one f32, and its argument."""
    kernel = math_harness.compile_function(name, np.float32)
    worst, at = 0.0, ""
    for start in range(0, 2**32, BLOCK * stride):
        patterns = np.arange(start, min(start + BLOCK * stride, 2**32), stride, dtype=np.uint64)
        x = patterns.astype(np.uint32).view(np.float32)
        worst, at = max((worst, at), largest(kernel, name, [x]), key=lambda found: found[0])
    return worst, at


def largest(kernel: math_harness.Kernel, name: str, arrays: list) -> tuple[float, str]:
    """Largest error on some arguments, and where it is."""
    with np.errstate(all="ignore"):
        error = math_harness.ulp_error(kernel(*arrays), samples.reference(name, *arrays))
    worst = int(error.argmax())
    return float(error[worst]), ", ".join(f"{a[worst]:.9g}" for a in arrays)


def row(name: str, stride: int) -> str:
    """One line of the table."""
    cells = [f"`{name}`"]
    for dtype, bound in zip((np.float32, np.float64), math.ULP_BOUNDS[name], strict=True):
        if bound is None:
            cells += ["libm", "", ""]
            continue
        if dtype is np.float32 and name not in samples.BINARY:
            worst, at = every(name, stride)
        else:
            arrays = samples.binary_samples(dtype) if name in samples.BINARY else ([samples.unary_samples(dtype)])
            worst, at = largest(samples.kernel(name, dtype), name, list(arrays))
        cells += [f"{worst:.3f}", at, str(bound)]
        print(*cells, flush=True)
    return f"| {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--stride", type=int, default=1)
    parser.add_argument("--only", nargs="+", default=[], choices=list(math.EXPANSIONS))
    given = parser.parse_args()
    rows = [row(name, given.stride) for name in given.only or math.EXPANSIONS]
    if not given.only:
        what = "every argument" if given.stride == 1 else (f"every {given.stride}th of all bit patterns")
        PAGE.write_text(HEAD.format(f32=what) + TABLE + "\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main()
