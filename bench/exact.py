"""The price of kernels that compute the bits of NumPy (``PROFUSE_EXACT``, docs/settings.md).

Each kernel is jitted twice, with ``exact`` on and off, and called in turn with NumPy, on one core,
in CPU time, so that other programs count little. Told are the medians of exact over usual, and of
NumPy over exact, per round; also how many operations are left to NumPy in a call. At the end the
training example is run both ways: the time of a step.

    python bench/exact.py [--only NAME ...] [--rows 512] [--rounds 60] [--no-training] [--json FILE]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import statistics
import sys
from itertools import cycle, islice, permutations
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("PROFUSE_THREADS", "1")

import numpy as np
from common import processor, timed_by_cpu, write_results
from suite import Size, case

NAMES = (
    "gelu_bias",
    "softmax",
    "masked_softmax",
    "layernorm",
    "rmsnorm",
    "cross_entropy",
    "column_sum",
    "swiglu",
    "adam",
    "polynomial",
    "linear_relu",
    "minmax_scaled",
)
TRAINING = Path(__file__).parents[1] / "examples" / "chars.py"


def compiled(fn: Any, args: tuple, exact: bool) -> Any:
    """A jitted function with its kernels."""
    import profuse as pf

    with pf.knobs.override(exact=exact, background=False, demote=0.0):
        jitted = pf.jit(fn)
        for _ in range(4):
            jitted(*args)
    return jitted


def kernel_costs(name: str, rows: int, rounds: int) -> dict[str, Any]:
    """Of one kernel: medians of ratios, and the operations that are left to NumPy."""
    made = case(name, "f32", Size("bench", rows, 2 * rows))
    args, fn = made.args(), made.kernel.fn

    def plain(*args: Any) -> Any:
        return fn(np, *args)

    usual, exact = (compiled(plain, args, e) for e in (False, True))
    before = exact.state().counters["evaluated_ops"]
    exact(*args)
    left = exact.state().counters["evaluated_ops"] - before
    systems, ratios, gains = (usual, exact, plain), [], []
    for order in islice(cycle(permutations(range(3))), rounds):  # one leaves caches to the next
        taken = {k: timed_by_cpu(lambda k=k: systems[k](*args)) for k in order}
        ratios.append(taken[1] / taken[0])
        gains.append(taken[2] / taken[1])
    return {
        "name": name,
        "exact / usual": statistics.median(ratios),
        "NumPy / exact": statistics.median(gains),
        "left to NumPy": left,
    }


def step_seconds(exact: bool, steps: int) -> list[float]:
    """The seconds that steps of the training example take once all is compiled."""
    import profuse as pf

    spec = importlib.util.spec_from_file_location(f"chars_{exact}", TRAINING)
    assert spec is not None and spec.loader is not None
    chars = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(chars)
    with pf.knobs.override(exact=exact, background=False, demote=0.0):
        rng = np.random.default_rng(0)
        data = chars.encoded(chars.text()[:5000])
        trainer = chars.Trainer(rng)
        seconds = []
        for k in range(steps + 6):
            x, y = chars.batch(data, rng)
            seconds.append(timed_by_cpu(lambda x=x, y=y: trainer.step(x, y, 1e-3)))
            if k < 5:
                chars.settle()
    return seconds[6:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", default=NAMES)
    parser.add_argument("--rows", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--no-training", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    rows = []
    for name in options.only:
        row = kernel_costs(name, options.rows, options.rounds)
        rows.append(row)
        print(
            f"{name}: exact / usual {row['exact / usual']:.2f}, NumPy / exact "
            f"{row['NumPy / exact']:.2f}, {row['left to NumPy']} operations left to NumPy",
            flush=True,
        )
    training = None
    if not options.no_training:
        usual, exact = (statistics.median(step_seconds(e, options.steps)) for e in (False, True))
        training = {"usual": usual, "exact": exact}
        print(f"step of training: usual {usual * 1e3:.1f}, exact {exact * 1e3:.1f} ms")
    write_results(options.json, rows=rows, training=training, processor=processor())


if __name__ == "__main__":
    sys.exit(main())
