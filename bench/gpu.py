"""Fused kernels on a GPU against torch, torch.compile, TorchScript and JAX, and against a copy.

Results are checked against float64 first. Then every round times some calls of each system, one
system after the other; tables show medians over rounds with quartiles: the time of a call by CUDA
events, the bandwidth as a share of what a copy in device memory reaches in the same round, and the
ratios peer / ours (above 1 = we are faster). Below: what a call costs the host, on arrays too small
to matter, and what the first calls cost. Arrays are torch's; peers that are not installed are left
out. JAX has streams of its own, so its calls are timed by the clock, in batches. The share of a
copy says nothing of matrix products, which compute more than they move.

    python bench/gpu.py [--size 8192] [--rounds 30] [--json out.json] [names …]
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

os.environ["PROFUSE_CACHE"] = "off"  # compile times are measured
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # torch needs memory, too

import numpy as np
import profuse as pf
from common import write_results
from suite import leaves, selection

CALLS = 10  # per round and system, so that launches overlap with kernels
SMALL = 64  # size at which a call costs the host more than the device
HOST_CALLS = 500
TOLERANCES = {4: 1e-5, 2: 2e-3}  # by size of the result's elements


@dataclass
class System:
    """One of those compared.

    Attributes:
        call: runs the kernel on the large arrays, and returns before the device is done.
        small: the same on small arrays.
        wait: returns when the device is done.
        by_clock: events of torch's stream do not see its kernels.
        first_seconds: until the first optimised result was there.
    """

    call: Callable[[], Any]
    small: Callable[[], Any]
    wait: Callable[[Any], None]
    by_clock: bool = False
    first_seconds: float = 0.0
    times: list[float] = field(default_factory=list)


def linear(np, x, w, b):
    return x @ w + b


def measured(n: int) -> dict[str, tuple[Callable, tuple]]:
    """`selection`, and what is a library's but for its bias."""
    rng = np.random.default_rng(1)
    args = tuple(rng.standard_normal(shape).astype(np.float32) for shape in ((n, n), (n, n), n))
    halves = tuple(a.astype(np.float16) for a in args)
    return selection(n) | {"linear": (linear, args), "linear_f16": (linear, halves)}


def torch_versions(torch: Any) -> dict[str, Callable]:
    """The kernels as one writes them for torch; also what TorchScript reads."""
    from torch import Tensor

    def gelu_bias(x: Tensor, b: Tensor):
        y = x + b
        return 0.5 * y * (1.0 + torch.tanh(0.7978845608 * (y + 0.044715 * y * y * y)))

    def softmax(x: Tensor):
        e = torch.exp(x - torch.amax(x, dim=-1, keepdim=True))
        return e / e.sum(dim=-1, keepdim=True)

    def masked_softmax(x: Tensor, mask: Tensor):
        y = x * 0.125 + mask
        e = torch.exp(y - torch.amax(y, dim=-1, keepdim=True))
        return e / e.sum(dim=-1, keepdim=True)

    def layernorm(x: Tensor, g: Tensor, b: Tensor):
        m = x.mean(dim=-1, keepdim=True)
        v = ((x - m) * (x - m)).mean(dim=-1, keepdim=True)
        return (x - m) / torch.sqrt(v + 1e-5) * g + b

    def rmsnorm(x: Tensor, g: Tensor):
        return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + 1e-6) * g

    def cross_entropy(x: Tensor, labels: Tensor):
        top = torch.amax(x, dim=-1, keepdim=True)
        lse = torch.log(torch.exp(x - top).sum(dim=-1)) + top[:, 0]
        return (lse - torch.gather(x, 1, labels[:, None])[:, 0]).mean()

    def column_sum(x: Tensor):
        return (x * x).sum(dim=0)

    def swiglu(x: Tensor, y: Tensor):
        return x / (1.0 + torch.exp(-x)) * y

    def adam(p: Tensor, g: Tensor, m: Tensor, v: Tensor):
        m2 = 0.9 * m + 0.1 * g
        v2 = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m2 / 0.271) / (torch.sqrt(v2 / 0.003) + 1e-8), m2, v2

    def linear(x: Tensor, w: Tensor, b: Tensor):
        return x @ w + b

    found = (gelu_bias, softmax, masked_softmax, layernorm, rmsnorm, cross_entropy, column_sum, swiglu, adam)
    return {fn.__name__: fn for fn in found} | {"linear": linear, "linear_f16": linear}


class Machine:
    """torch on one GPU: arrays, waiting, and time on the device."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        self.device = torch.device("cuda:0")
        # Sums are of f32 for all systems.
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False

    def array(self, host: np.ndarray) -> Any:
        return self.torch.from_numpy(host).to(self.device)

    def wait(self, _: Any = None) -> None:
        self.torch.cuda.synchronize()

    def seconds(self, call: Callable[[], Any], calls: int) -> float:
        """Per call, on the device."""
        start, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / calls

    def copy(self, nbytes: int) -> Callable[[], Any]:
        source = self.torch.zeros(nbytes, dtype=self.torch.uint8, device=self.device)
        target = self.torch.empty_like(source)
        return lambda: target.copy_(source)


def by_clock(system: System, calls: int) -> float:
    """Seconds per call until the device is done."""
    start = time.perf_counter()
    for _ in range(calls):
        out = system.call()
    system.wait(out)
    return (time.perf_counter() - start) / calls


def warm(system: System, calls: int = 3) -> System:
    """Call until it is optimised, taking the time of that."""
    start = time.perf_counter()
    for _ in range(calls):
        out = system.call()
    system.wait(out)
    system.first_seconds = time.perf_counter() - start
    system.wait(system.small())
    system.wait(system.small())
    return system


def systems(name: str, fn: Callable, machine: Machine, args: tuple, small: tuple) -> dict:
    """Each installed system, warm."""
    torch = machine.torch
    eager = torch_versions(torch)[name]

    def plain(*arrays):
        return fn(np, *arrays)

    plain.__name__ = name
    ours = pf.jit(plain, background=False)  # the compile is part of what is measured
    on_torch: dict[str, Callable] = {"ours": ours, "torch": eager, "torch.compile": torch.compile(eager)}
    made = {
        label: warm(System(lambda f=f: f(*args), lambda f=f: f(*small), machine.wait)) for label, f in on_torch.items()
    }
    # The fuser that reads TorchScript on GPUs (NNC); it is off by default in some versions.
    with torch.jit.fuser("fuser1"):
        script = torch.jit.script(eager)
        made["TorchScript"] = warm(System(lambda: script(*args), lambda: script(*small), machine.wait), 4)
    made |= jax_system(fn, args, small)
    counters = ours.state().counters
    if counters["device_fallbacks"] or counters["compile_failures"]:
        sys.exit(f"{name}: {'; '.join(ours.state().reasons)}")
    return made


def jax_system(fn: Callable, args: tuple, small: tuple) -> dict[str, System]:
    try:
        import jax
        import jax.numpy as jnp
    except ImportError:
        return {}
    try:
        gpu = jax.devices("gpu")[0]
    except RuntimeError:
        print("JAX is installed without support for GPUs: left out", file=sys.stderr)
        return {}
    jax.config.update("jax_default_matmul_precision", "highest")
    jitted = jax.jit(lambda *arrays: fn(jnp, *arrays))
    large, little = ([jax.device_put(a.cpu().numpy(), gpu) for a in arrays] for arrays in (args, small))
    system = System(lambda: jitted(*large), lambda: jitted(*little), jax.block_until_ready, by_clock=True)
    return {"jax": warm(system)}


def check(name: str, out: Any, eager: Callable, args: tuple) -> None:
    """Exit if a result is further from that in float64 than its dtype explains."""
    exact = eager(*[a.double() if a.is_floating_point() else a for a in args])
    for found, expected in zip(leaves(out), leaves(exact), strict=True):
        error = ((found.double() - expected).abs().max() / expected.abs().max()).item()
        if not error < TOLERANCES.get(found.element_size(), TOLERANCES[4]):
            sys.exit(f"{name}: relative error {error:.1e} against float64")


def measure(name: str, machine: Machine, fn: Callable, host: tuple, rounds: int) -> dict[str, Any]:
    """One row: times on the device, ratios with quartiles, and what calls cost the host."""
    args = tuple(machine.array(a) for a in host)
    small = tuple(machine.array(a) for a in measured(SMALL)[name][1])
    made = systems(name, fn, machine, args, small)
    out = made["ours"].call()
    check(name, out, torch_versions(machine.torch)[name], args)
    moved = sum(a.nbytes for a in (*args, *leaves(out)))
    copy = machine.copy(moved // 2)
    copy()
    copies = []
    for _ in range(rounds):
        copies.append(machine.seconds(copy, CALLS))
        for system in made.values():
            seconds = by_clock(system, CALLS) if system.by_clock else machine.seconds(system.call, CALLS)
            system.times.append(seconds)
    mine = np.array(made["ours"].times)
    return {
        "kernel": name,
        "microseconds": float(np.median(mine) * 1e6),
        "share_of_copy": np.percentile(np.array(copies) / mine, [25, 50, 75]).tolist(),
        "copy_gb_per_second": float(moved // 2 * 2 / np.median(copies) / 1e9),
        "ratios": {
            label: np.percentile(np.array(s.times) / mine, [25, 50, 75]).tolist()
            for label, s in made.items()
            if label != "ours"
        },
        "host_microseconds": {label: host_cost(s) * 1e6 for label, s in made.items()},
        "first_calls_ms": {label: s.first_seconds * 1e3 for label, s in made.items()},
    }


def host_cost(system: System) -> float:
    """Seconds that the host spends per call on small arrays; the least of several rounds."""
    best = float("inf")
    for _ in range(5):
        system.wait(system.small())
        start = time.perf_counter()
        for _ in range(HOST_CALLS):
            out = system.small()
        best = min(best, (time.perf_counter() - start) / HOST_CALLS)
        system.wait(out)
    return best


def show(row: dict[str, Any]) -> None:
    """Print a row."""
    low, middle, high = row["share_of_copy"]
    print(
        f"{row['kernel']:<14}{row['microseconds']:9.1f} us  "
        f"{middle:.0%} of copy [{low:.0%}-{high:.0%}]  "
        + "  ".join(f"{p} {q[1]:.2f}x [{q[0]:.2f}-{q[2]:.2f}]" for p, q in row["ratios"].items())
    )
    for label, unit in (("host_microseconds", "us per call"), ("first_calls_ms", "ms first calls")):
        listed = "  ".join(f"{system} {cost:.1f}" for system, cost in row[label].items())
        print(f"{'':<14}{unit}: {listed}", flush=True)


def obstacle() -> str:
    """The reason why there is nothing to measure here; "" = there is."""
    from profuse.executor.cuda.nvidia.driver import unavailable

    reason = unavailable("cuda:0")
    if reason:
        return f"there is no GPU to measure on: {reason}"
    try:
        import torch
    except ImportError:
        return "torch is missing, whose arrays and events this uses"
    return "" if torch.cuda.is_available() else "torch is installed without support for CUDA"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(measured(1))}")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json")
    args = parser.parse_args()
    unknown = set(args.names) - set(measured(1))
    if unknown:
        parser.error(f"there is no kernel {', '.join(sorted(unknown))}")
    reason = obstacle()
    if reason:
        sys.exit(reason)
    machine = Machine()
    gpu = machine.torch.cuda.get_device_name(0)
    print(f"{gpu}, {args.size}x{args.size}, f32 but where it says f16")
    rows = []
    for name, (fn, host) in measured(args.size).items():
        if not args.names or name in args.names:
            rows.append(measure(name, machine, fn, host, args.rounds))
            show(rows[-1])
    write_results(args.json, gpu=gpu, size=args.size, rows=rows)


if __name__ == "__main__":
    main()
