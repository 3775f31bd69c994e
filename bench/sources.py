"""Models of other systems against the system's own runtime, on one thread: onnxruntime, torch.jit, jax.

Each row is a model that a package carries, or one that a package fits, traces or exports here. Both run in turn, round
after round; figures are the least times, and their ratio, runtime / ours; 1 = as fast. Rows whose packages are not
installed are left out.

    python bench/sources.py [--only REGEX] [--rounds 100] [--json bench/results/sources.json]

A system is a function that yields `Row`; add it to `SYSTEMS`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

_PARSER = argparse.ArgumentParser(description=__doc__.split("\n\n", maxsplit=1)[0])
_PARSER.add_argument("--only", default="", help="part of a row's name, as a regular expression")
_PARSER.add_argument("--rounds", type=int, default=100)
_PARSER.add_argument("--json", help="file for the figures")
OPTIONS = _PARSER.parse_args() if __name__ == "__main__" else _PARSER.parse_args([])

# The libraries read these once, when they are loaded.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PROFUSE_THREADS"):
    os.environ[_name] = "1"
os.environ["PROFUSE_CACHE"] = "off"
# Both choose kernels for the processor; a type of core in the environment would choose OpenBLAS's alone.
os.environ.pop("OPENBLAS_CORETYPE", None)
sys.path.insert(0, str(Path(__file__).parents[1] / "test" / "peers"))

import numpy as np  # noqa: E402
import profuse as pf  # noqa: E402
from common import timed, write_results  # noqa: E402
from source_models import exports, fitted_models, scripts  # noqa: E402


@dataclass(frozen=True)
class Row:
    """One model: its name, and the making of its two calls without arguments, ours first."""

    name: str
    calls: Callable[[], tuple[Callable[[], Any], Callable[[], Any]]]


@dataclass(frozen=True)
class Figure:
    """Least times of a call, in microseconds, their ratio, and the greatest difference of results."""

    name: str
    ours: float
    peer: float
    ratio: float
    difference: float


def onnx_rows() -> Iterator[Row]:
    """Speech detection, types of files, and text in images."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError:
        return
    from onnx_models import chirps, drawn_text, file_bytes, first_state, folder, session, speech_inputs

    def pair(path: Path, arguments: Callable[[list[str]], list[Any]]) -> Callable:
        def calls() -> tuple[Callable[[], Any], Callable[[], Any]]:
            peer, ours = session(path), pf.load(path, background=False)
            names = [x.name for x in peer.get_inputs()]
            values = arguments(names)
            feed = dict(zip(names, values, strict=True))
            return lambda: ours(*values), lambda: peer.run(None, feed)

        return calls

    chunk = next(chirps(1))
    for path in sorted(folder("silero_vad").glob("data/*.onnx")):
        yield Row(f"onnx {path.stem}", pair(path, lambda names: speech_inputs(names, chunk, first_state(names))))
    path = folder("magika") / "models/standard_v3_3/model.onnx"
    if path.exists():
        yield Row("onnx magika", pair(path, lambda _: [file_bytes(Path(__file__))]))
    models = folder("rapidocr_onnxruntime") / "models"
    sizes = {"mobile_v2.0_cls": (48, 192), "v4_rec": (48, 320), "v4_det": (320, 320)}
    for path in sorted(models.glob("*.onnx")):
        size = next(size for name, size in sizes.items() if name in path.name)
        yield Row(f"onnx {path.stem} {size[0]}x{size[1]}", pair(path, lambda _, size=size: [drawn_text(*size)]))


def rows_of(models: Callable[[], Iterator[tuple[str, Callable]]]) -> Callable[[], Iterator[Row]]:
    return lambda: (Row(name, calls) for name, calls in models())


SYSTEMS: tuple[Callable[[], Iterator[Row]], ...] = (onnx_rows, *map(rows_of, (fitted_models, scripts, exports)))


def measured(row: Row, rounds: int) -> Figure:
    ours, peer = row.calls()
    for _ in range(3):
        results = ours()
    results = results if isinstance(results, tuple) else (results,)
    wanted = peer()
    wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
    pairs = zip(results, wanted, strict=True)
    difference = max(float(np.abs(np.asarray(a, np.float64) - np.asarray(b)).max()) for a, b in pairs)
    times = [(timed(ours), timed(peer)) for _ in range(rounds)]
    least, other = (min(column) * 1e6 for column in zip(*times, strict=True))
    return Figure(row.name, least, other, other / least, difference)


def main() -> None:
    figures = []
    for system in SYSTEMS:
        for row in system():
            if re.search(OPTIONS.only, row.name):
                figure = measured(row, OPTIONS.rounds)
                figures.append(figure)
                print(
                    f"{figure.name:48} {figure.ours:10.1f} us {figure.peer:10.1f} us  {figure.ratio:5.2f}  "
                    f"{figure.difference:.1e}",
                    flush=True,
                )
    write_results(OPTIONS.json, rounds=OPTIONS.rounds, rows=[asdict(figure) for figure in figures])


if __name__ == "__main__":
    main()
