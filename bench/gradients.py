"""Losses with their gradients: ours against hand-written ones, JAX, torch, torch.compile, autograd.

Each case computes a loss and its gradients in one call: by `pf.value_and_grad` in `pf.jit`, by
`jit(value_and_grad)` of JAX, by torch's tape, by `torch.compile` of `torch.func.grad_and_value`, by
HIPS autograd; `tape` is a run of the same loss on the tape of Profuse, without a compiler.
`by-hand` is the same forward and backward written out in NumPy and run by Profuse, `numpy` without
it. Measured, compared and told as `bench/kernels.py` does; on 4x4 elements it is calls that take
the time, and a step of a small model, `mlp` on 64x256, is between the two. Below the table stands
what is aimed at, and what was found.

    python bench/gradients.py [--quick] [--only REGEX] [--sizes 1024x1024 4x4] [--threads 1 2 all]
        [--peers …] [--budget SECONDS] [--json out.json] [--plot out.svg]
    python bench/gradients.py --bytes out.json

The second form measures no time but memory, on any machine: what gradients keep between forward and
backward, and what they take at most, with several budgets (`harness/kept.py`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from common import write_results
from harness.main import main

SIZES = ("1024x1024", "64x256", "4x4")


@dataclass(frozen=True)
class Aim:
    """An aim for the ratio of two systems: time of ``over`` by time of ``under``."""

    kernels: tuple[str, ...]
    size: str
    over: str
    under: str
    least: float = 0.0
    most: float = float("inf")

    def ratio(self, row: dict[str, Any]) -> list[float] | None:
        """The ratio's quartiles in a row; None where a system has no figure."""
        ratios = row.get("ratios", {})
        if self.under == "ours":
            return ratios.get(self.over)
        over, under = ratios.get(self.over, [1.0] * 3), ratios.get(self.under)
        if under is None or (self.over != "ours" and self.over not in ratios):
            return None
        return [a / b for a, b in zip(over, reversed(under), strict=True)]

    @property
    def words(self) -> str:
        """``jax / ours at least 2``."""
        bound = f"at least {self.least:g}" if self.least else f"at most {self.most:g}"
        return f"{self.over} / {self.under} {bound}"


_FUSED = ("gelu", "softmax", "layernorm", "rmsnorm", "cross_entropy", "adam")
AIMS = (
    Aim(("gelu", "softmax", "layernorm"), "1024x1024", "ours", "by-hand", most=1.05),
    Aim(_FUSED, "1024x1024", "jax", "ours", least=2.0),
    Aim(("layernorm",), "1024x1024", "torch", "ours", least=1.5),
    Aim(("tanh",), "4x4", "jax", "ours", least=10.0),
    Aim(("tanh",), "4x4", "torch", "tape", least=2.0),
    Aim(("tanh",), "4x4", "autograd", "tape", least=15.0),
)


def judged(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A line for each aim in each row that it is about."""
    for aim in AIMS:
        for row in rows:
            name = row["kernel"].removesuffix("_gradient")
            if name not in aim.kernels or (row["size"], row["dtype"]) != (aim.size, "f32"):
                continue
            found = aim.ratio(row)
            where = f"{name} {row['size']}, threads {row['threads']}"
            if found is None:
                yield f"{where}: {aim.words}: not measured"
                continue
            met = "met" if aim.least <= found[1] <= aim.most else "MISSED"
            shown = f"{found[1]:.2f} [{found[0]:.2f}-{found[2]:.2f}]"
            yield f"{where}: {aim.words}: {shown}, {met}"


def verdict(rows: Sequence[dict[str, Any]]) -> str:
    """All aims, in words."""
    return "\n".join(judged(rows)) or "No row is one that an aim is about."


def write_bytes(path: str) -> None:
    """Measure memory alone, write it, and print the aims."""
    from harness import kept

    rows = kept.measured()
    write_results(path, rows=rows)
    print("\n".join(kept.judged(rows)))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--bytes"] and len(sys.argv) == 3:
        write_bytes(sys.argv[2])
        sys.exit()
    main(__doc__, "gradients", SIZES, verdict)
