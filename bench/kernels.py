"""Kernels against NumPy, numexpr, numba, torch, torch.compile and JAX, and against the machine.

Each system runs in a process of its own, on the same cores and as many threads. Results are
compared with NumPy's in float64 first. Then the systems take turns, some milliseconds of calls
each, round after round; the table has the median time of ours, the share of the roofline that it
reaches (the larger of bytes moved over copy bandwidth and operations over peak), and the median of
the per-round ratios peer / ours with their quartiles: above 1, Profuse is faster. Rows in which a
peer is faster are marked with <, or << for more than a tenth, and rows of which NumPy computes a
part with !; the worst come first. Peers that are not installed are left out, with the reason.

    python bench/kernels.py [--quick] [--only REGEX] [--sizes cache l3 memory] [--threads 1 2 all]
        [--peers …] [--budget SECONDS] [--json out.json] [--plot out.svg]
"""

from __future__ import annotations

from harness.main import main

if __name__ == "__main__":
    main(__doc__, "kernels")
