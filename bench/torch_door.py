"""Functions of torch: eager, inductor, and ours through Dynamo and through `pf.torch.compile`.

Each way runs in turn, round after round, on one thread; the times are those that the thread itself has had of the
processor, so that other programs do not count. *forward* runs under `torch.no_grad`; *backward* is a forward run and
the gradients of all floats for a given gradient of the result. *first* is the time on the clock until there is a first
result; *stall* the longest of the calls with ten new batch sizes, on the clock.

    python bench/torch_door.py [--only REGEX] [--rounds 15] [--without inductor] [--json bench/results/torch_door.json]
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PROFUSE_THREADS"):
    os.environ[_name] = "1"
os.environ["PROFUSE_CACHE"] = "off"

import profuse as pf  # noqa: E402
import torch  # noqa: E402
from common import processor, revision, timed, timed_by_cpu  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

WAYS = ("eager", "inductor", "dynamo", "door")


def bias_gelu_norm(x, b, g, h):
    return F.layer_norm(F.gelu(x + b), (x.shape[-1],), g, h)


def masked_softmax(x, m):
    return F.softmax(x * 0.125 + m, -1)


def rms_swiglu(x, y, w):
    return F.silu(x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * w) * y


def norm_relu_residual(x, y, w, b, m, v):
    return F.relu(F.batch_norm(x, m, v, w, b) + y)


def adam(p, g, m, v):
    m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    return p - 1e-3 * m / (torch.sqrt(v) + 1e-8)


def rope(x, c, s):
    a, b = x.chunk(2, -1)
    return torch.cat([a * c - b * s, b * c + a * s], -1)


def cross_entropy(x, t):
    return F.cross_entropy(x, t)


def groupnorm_silu(x, w, b):
    return F.silu(F.group_norm(x, 8, w, b))


def small(x, w):
    return torch.tanh(x @ w).sum()


class EncoderBlock(nn.Module):
    """A transformer block with attention that looks back."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.before, self.behind = heads, nn.LayerNorm(width), nn.LayerNorm(width)
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.joint(self.before(x)).split(width, -1)
        q, k, v = (t.view(batch, length, self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, length, width)
        x = x + self.out(y)
        return x + self.down(F.gelu(self.up(self.behind(x)), approximate="tanh"))


def cases() -> dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]]:
    """What is measured, with arguments."""
    r, n, d = torch.randn, 512, 1024
    image = (8, 64, 32, 32)
    return {
        "bias_gelu_layernorm": (bias_gelu_norm, (r(n, d), r(d), r(d), r(d))),
        "masked_softmax": (masked_softmax, (r(n, d), r(n, d))),
        "rmsnorm_swiglu": (rms_swiglu, (r(n, d), r(n, d), r(d))),
        "adam": (adam, (r(n, d), r(n, d), r(n, d), r(n, d).abs())),
        "cross_entropy": (cross_entropy, (r(n, d), torch.randint(0, d, (n,)))),
        "groupnorm_silu": (groupnorm_silu, (r(*image), r(64), r(64))),
        "batchnorm_relu_residual": (
            norm_relu_residual,
            (r(*image), r(*image), *(r(64) for _ in range(3)), r(64).abs()),
        ),
        "rope": (rope, (r(8, 128, 64), r(128, 32), r(128, 32))),
        "transformer_block": (EncoderBlock(256, 4), (r(4, 128, 256),)),
        "small_4x4": (small, (r(4, 4), r(4, 4))),
    }


def compiled(way: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a way has it."""
    if way == "eager":
        return fn
    if way == "door":
        return pf.torch.compile(fn)
    return torch.compile(fn, backend="profuse" if way == "dynamo" else "inductor")


def settled(fn: Callable[..., Any]) -> None:
    """Wait for compiles in the background."""
    for graph in pf.torch.dynamo_graphs():
        graph.wait()
    calls = getattr(fn, "calls", None)
    if calls is not None:
        calls.wait()


def runner(fn: Callable[..., Any], args: tuple[torch.Tensor, ...], backward: bool) -> Callable[[], Any]:
    """One call, forward, or forward and backward."""
    if not backward:

        def forward() -> Any:
            with torch.no_grad():
                return fn(*args)

        return forward
    leaves = [x.clone().requires_grad_() if x.is_floating_point() and x.dim() else x for x in args]
    wrt = [x for x in leaves if x.requires_grad]
    wrt += list(fn.parameters()) if isinstance(fn, nn.Module) else []
    with torch.no_grad():
        cotangent = torch.randn_like(fn(*args))
    return lambda: torch.autograd.grad(fn(*leaves), wrt, cotangent, allow_unused=True)


def measured(
    fn: Callable[..., Any], args: tuple[torch.Tensor, ...], backward: bool, ways: list[str], rounds: int
) -> dict:
    """Milliseconds of each way: least, median, third quartile; and the first result."""
    torch._dynamo.reset()
    runs, row = {}, {}
    for way in ways:
        start = time.perf_counter()
        try:
            call = compiled(way, fn)
            run = runner(call, args, backward)
            run()
            row[way] = {"first": time.perf_counter() - start}
            for _ in range(6):
                run()
                settled(call)
        except Exception as error:
            row[way] = {"error": f"{type(error).__name__}: {error}"[:200]}
            continue
        runs[way] = run
    times: dict[str, list[float]] = {way: [] for way in runs}
    repeats = max(1, int(2e-3 / max(timed(runs["eager"]), 1e-6)))
    for _ in range(rounds):
        for way, run in runs.items():
            times[way].append(timed_by_cpu(lambda run=run: [run() for _ in range(repeats)]) / repeats)
    for way, seconds in times.items():
        low, middle, high = statistics.quantiles(seconds, n=4)
        row[way].update(least=1e3 * min(seconds), median=1e3 * middle, quartiles=[1e3 * low, 1e3 * high])
    return row


def stalls(ways: list[str]) -> dict[str, float]:
    """The longest call, in milliseconds, of those with ten new batch sizes, after two sizes have been seen."""
    found = {}
    torch._dynamo.reset()
    for way in ways:
        fn = compiled(way, EncoderBlock(64, 4))
        longest = 0.0
        with torch.no_grad():
            for batch in range(2, 14):
                x = torch.randn(batch, 16, 64)
                seconds = max(timed(lambda x=x, fn=fn: fn(x)) for _ in range(3))
                longest = max(longest, seconds) if batch > 3 else longest
        settled(fn)
        found[way] = 1e3 * longest
    return found


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--without", action="append", default=[], choices=WAYS[1:])
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    warnings.simplefilter("ignore")
    ways = [way for way in WAYS if way not in options.without]
    figures: dict[str, Any] = {"processor": processor(), "revision": revision(), "torch": torch.__version__, "rows": {}}
    for name, (fn, args) in cases().items():
        if not re.search(options.only, name):
            continue
        for backward in (False, True):
            row = measured(fn, args, backward, ways, options.rounds)
            figures["rows"][f"{name}{' backward' if backward else ''}"] = row
            texts = [
                f"{way} {t['median']:.3f} ms (first {t['first']:.1f} s)" if "median" in t else f"{way} {t['error']}"
                for way, t in row.items()
            ]
            print(f"{name:26}{'backward' if backward else 'forward':9}", " | ".join(texts), flush=True)
    if not options.only or re.search(options.only, "stalls"):
        figures["stalls"] = stalls(ways)
        print("longest call with a new size, ms:", {w: round(v, 1) for w, v in figures["stalls"].items()})
    if options.json:
        Path(options.json).write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
