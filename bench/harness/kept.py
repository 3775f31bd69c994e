"""The bytes that gradients keep and take: needs no time, and no quiet machine.

*Kept* is what a forward half hands to the reverse one, beyond arguments. *Peak* is what NumPy has
had of memory at once, in both halves, while they run op by op, arguments aside; the gradients that
are returned are part of it.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import profuse as pf
from profuse.dialect.autodiff.pullback import Forward, backward
from profuse.executor.memory import output_pool, thread_block

BUDGETS = (1.0, 0.75, 0.5, 0.25)
HEADS = 8
TORCH_KEEPS = 533_000  # of the block, by AOTAutograd's minimum cut
Arrays = Sequence[np.ndarray]


@dataclass(frozen=True)
class Case:
    """A function and its arguments, of float32."""

    name: str
    fn: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]

    def arguments(self) -> list[np.ndarray]:
        """Normal numbers, small enough for sums of products to be of the order of 1."""
        rng = np.random.default_rng(3)
        return [np.float32(rng.standard_normal(shape) / shape[-1] ** 0.5) for shape in self.shapes]


def layer_norm(x: Any) -> Any:
    """Rows of mean 0 and variance 1."""
    d = x - x.mean(-1, keepdims=True)
    return d / np.sqrt((d * d).mean(-1, keepdims=True) + 1e-5)


def gelu(x: Any) -> Any:
    """The usual approximation by tanh."""
    return 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3)))


def block(x: Any, qkv: Any, out: Any, up: Any, down: Any) -> Any:
    """A transformer block: causal attention and two layers, with norms, of three axes."""
    batch, length, width = x.shape
    every = (layer_norm(x) @ qkv).reshape(batch, length, 3, HEADS, -1).transpose(2, 0, 3, 1, 4)
    scores = every[0] @ every[1].swapaxes(-1, -2) / (width // HEADS) ** 0.5
    scores = np.where(np.tril(np.ones((length, length), bool)), scores, np.float32(-1e9))
    e = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = e / e.sum(-1, keepdims=True) @ every[2]
    y = x + mixed.transpose(0, 2, 1, 3).reshape(x.shape) @ out
    return y + gelu(layer_norm(y) @ up) @ down


def blocks(x: Any, *parameters: Any) -> Any:
    """Transformer blocks one behind the other."""
    for k in range(0, len(parameters), 4):
        x = block(x, *parameters[k : k + 4])
    return x


def mlp(x: Any, *weights: Any) -> Any:
    """Layers of one width."""
    for w in weights:
        x = np.tanh(x @ w)
    return x


def _parameters(width: int) -> tuple[tuple[int, int], ...]:
    return (width, 3 * width), (width, width), (width, 4 * width), (4 * width, width)


BLOCK = Case("transformer block of (2, 16, 256)", block, ((2, 16, 256), *_parameters(256)))
CASES = (
    BLOCK,
    Case("8 transformer blocks of (16, 32, 64)", blocks, ((16, 32, 64), *_parameters(64) * 8)),
    Case("MLP of 48 layers, 2048 rows of 64", mlp, ((2048, 64), *((64, 64),) * 48)),
)


def op_by_op(fn: Callable[..., Any]) -> Any:
    """A function whose graph runs op by op: no kernel is made, and nothing is recorded."""
    return pf.jit(fn, strategy=[])


def kept(case: Case, args: Arrays, budget: float) -> int:
    """Bytes between the halves, of what is computed, not of copies of arguments."""
    _, values, _ = op_by_op(Forward(case.fn, budget=budget))(*args)
    given = {a.tobytes() for a in args}
    return sum(v.nbytes for v in values if np.ndim(v) and np.asarray(v).tobytes() not in given)


def taken(call: Callable[[], object]) -> int:
    """Bytes that NumPy has at once in a call, with nothing left over from earlier calls."""
    output_pool.pool = output_pool.BlockPool()
    thread_block.release()
    tracemalloc.start()
    call()
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return found


def peak(case: Case, args: Arrays, budget: float) -> int:
    """Bytes at once in a run of both halves."""
    forth, back = op_by_op(Forward(case.fn, budget=budget)), op_by_op(backward)

    def run() -> None:
        result, saved, token = forth(*args)
        back(token, saved, [np.ones_like(result)])

    run()  # what is traced is no memory of a call
    return taken(run)


def judged(rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """A line for each aim: bytes kept of the block, and peaks of what is deep."""
    found = rows[BLOCK.name]["kept"][0]
    yield (
        f"{BLOCK.name}: keeps at most {TORCH_KEEPS} bytes, as torch's minimum cut: {found}, "
        f"{_met(found <= TORCH_KEEPS)}"
    )
    for name, row in rows.items():
        peaks = row["peak"]
        falls = all(a >= b for a, b in pairwise(peaks))
        share = peaks[-1] / peaks[0]
        yield (
            f"{name}: peak with a budget of 0.25 at most half of that without one, and falling: "
            f"{share:.2f}, {_met(share <= 0.5 and falls)}"
        )


def _met(is_met: bool) -> str:
    return "met" if is_met else "MISSED"


def measured(cases: Sequence[Case] = CASES) -> dict[str, dict[str, Any]]:
    """By the name of a case: bytes kept, and at the peak, with each of `BUDGETS`."""
    rows = {}
    with pf.knobs.override(cache=False, background=False, output_pool_bytes=0):
        for case in cases:
            args = case.arguments()
            rows[case.name] = {
                "budgets": list(BUDGETS),
                "kept": [kept(case, args, b) for b in BUDGETS],
                "peak": [peak(case, args, b) for b in BUDGETS],
            }
    return rows
