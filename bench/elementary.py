"""Elementary functions against NumPy, f32 and f64, on 1024x1024 elements and one core.

The table and the options are those of `bench/kernels.py`; peers and sizes may be given, too.

    python bench/elementary.py [--only REGEX] [--dtypes f32 f64] [--rounds N] [--json out.json]
"""

from __future__ import annotations

import sys

from harness.main import main

if __name__ == "__main__":
    sys.argv[1:1] = ["--peers", "numpy", "--sizes", "1024x1024", "--no-dynamic"]
    main(__doc__, "elementary")
