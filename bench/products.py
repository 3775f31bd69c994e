"""Products of matrices in NumPy, in one call of the library that kernels call, and under the JIT.

Each runs in turn, round after round. On one thread (the default) the times are those that the
thread itself has had of the processor, so that other programs do not count, and the figures are
ratios of the least ones, NumPy / ours and library / ours; 1 = as fast. NumPy brings another release
of the same library. Products have nothing behind them, ``* 2 + 1``, or a bias and a maximum;
``gram`` is ``a.T @ a``, for which the library has a function that computes half of it.

    python bench/products.py [--threads 2] [--only REGEX] [--rounds 30] [--json out.json]

Chains of products, and loops with them, are in `programs/products.py`.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

_PARSER = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
_PARSER.add_argument("--threads", type=int, default=1)
_PARSER.add_argument("--only", default="", help="part of a row's name, as a regular expression")
_PARSER.add_argument("--rounds", type=int, default=30)
_PARSER.add_argument("--json", help="file for the figures")
OPTIONS = _PARSER.parse_args() if __name__ == "__main__" else _PARSER.parse_args([])

# NumPy's library reads these once, when it is loaded.
os.environ["OPENBLAS_NUM_THREADS"] = os.environ["PROFUSE_THREADS"] = str(OPTIONS.threads)
os.environ["PROFUSE_CACHE"] = "off"

import numpy as np  # noqa: E402
import profuse as pf  # noqa: E402
import scipy_openblas32  # noqa: E402
from common import timed, timed_by_cpu, write_results  # noqa: E402

SIZES = (  # rows, multiplications per element, columns
    (1000, 1200, 1100),
    (800, 900, 850),
    (512, 512, 512),
    (257, 300, 311),
    (300, 300, 300),
    (999, 1001, 1003),
    (2000, 300, 700),
    (4000, 64, 64),
    (200, 2000, 200),
    (128, 1024, 4096),
    (64, 256, 256),
    (49, 400, 900),
    (40, 700, 1501),
    (32, 1024, 2048),
    (8, 1024, 4096),
    (1, 2000, 3000),
    (3000, 2000, 1),
    (100, 100, 100),
)
DTYPES = {"f64": np.float64, "f32": np.float32}
FORMS: dict[str, Callable[..., np.ndarray]] = {
    "product": lambda a, b, c: a @ b,
    "scaled": lambda a, b, c: a @ b * 2 + 1,
    "layer": lambda a, b, c: np.maximum(a @ b + c, 0),
    "gram": lambda a, b, c: a.T @ a,
}
_ROW_MAJOR, _AS_IS = 101, 111


@dataclass
class Row:
    """Least times of a product, in seconds; ``library``: of one call, where that is all of it."""

    name: str
    ours: float
    numpy: float
    library: float | None
    rounds: float

    def line(self) -> str:
        library = "    -" if self.library is None else f"{self.library / self.ours:5.2f}"
        return (
            f"{self.name:32}{self.ours * 1e6:10.1f} us  NumPy {self.numpy / self.ours:5.2f}"
            f" (median of rounds {self.rounds:5.2f})  library {library}"
        )


def _library() -> ctypes.CDLL:
    folder = scipy_openblas32.get_lib_dir()
    name = next(n for n in sorted(os.listdir(folder)) if n.startswith("libscipy_openblas"))
    return ctypes.CDLL(os.path.join(folder, name))


def one_call(a: np.ndarray, b: np.ndarray) -> Callable[[], np.ndarray]:
    """A product of matrices by one call of the library, on as many threads as it is told."""
    letter, number = ("s", ctypes.c_float) if a.dtype == np.float32 else ("d", ctypes.c_double)
    library = _library()
    library.scipy_openblas_set_num_threads(OPTIONS.threads)
    function = getattr(library, f"scipy_cblas_{letter}gemm")
    (rows, shared), columns = a.shape, b.shape[1]

    def call() -> np.ndarray:
        out = np.empty((rows, columns), a.dtype)
        left, right, result = (ctypes.c_void_p(x.ctypes.data) for x in (a, b, out))
        function(
            _ROW_MAJOR,
            _AS_IS,
            _AS_IS,
            rows,
            columns,
            shared,
            number(1),
            left,
            shared,
            right,
            columns,
            number(0),
            result,
            columns,
        )
        return out

    return call


def measured(name: str, form: str, dtype: str, sizes: tuple[int, int, int], rounds: int) -> Row:
    """Measure one product."""
    rng = np.random.default_rng(0)
    rows, shared, columns = sizes
    shapes = (rows, shared), (shared, columns), (columns,)
    a, b, c = (rng.standard_normal(s).astype(DTYPES[dtype]) for s in shapes)
    plain = FORMS[form]
    jitted = pf.jit(plain)
    for _ in range(3):
        jitted(a, b, c)
        jitted.wait()
    np.testing.assert_allclose(jitted(a, b, c), plain(a, b, c), rtol=1e-3, atol=1e-2)
    ways = [lambda: jitted(a, b, c), lambda: plain(a, b, c)]
    if form == "product" and OPTIONS.threads == 1 and min(rows, columns) > 1:
        ways.append(one_call(a, b))
    clock = timed_by_cpu if OPTIONS.threads == 1 else timed
    times = [[clock(way) for way in ways] for _ in range(rounds)]
    least = [min(column) for column in zip(*times, strict=True)]
    return Row(
        name, least[0], least[1], least[2] if len(least) > 2 else None, statistics.median(t[1] / t[0] for t in times)
    )


def rows_of(only: str, rounds: int) -> Iterator[Row]:
    """All rows whose names match."""
    for dtype in DTYPES:
        for sizes in SIZES:
            for form in FORMS:
                name = f"{form} {dtype} {'x'.join(map(str, sizes))}"
                if form == "gram" and min(sizes) == 1:
                    continue
                if re.search(only, name):
                    yield measured(name, form, dtype, sizes, rounds)


def main() -> int:
    found = []
    for row in rows_of(OPTIONS.only, OPTIONS.rounds):
        print(row.line(), flush=True)
        found.append(row)
    ratios = [row.numpy / row.ours for row in found]
    print(f"NumPy / ours {statistics.geometric_mean(ratios):.2f}, least {min(ratios):.2f}")
    rows = [asdict(row) for row in found]
    write_results(OPTIONS.json, threads=OPTIONS.threads, rows=rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
