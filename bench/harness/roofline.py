"""The limits of the machine: bytes copied and floating-point operations, each second.

Copies are measured on as many bytes as a kernel moves, so that they come from the same cache. The
peak of arithmetic is that of a loop of fused multiply-adds on registers. A kernel's floating-point
operations are counted while NumPy computes its exact result: one for each addition, product,
comparison, root or quotient, `TRANSCENDENTAL` for each function that a polynomial stands behind.
"""

from __future__ import annotations

import ctypes
import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np

TRANSCENDENTAL = 12
_TRANSCENDENTAL = {"exp", "expm1", "log", "log1p", "tanh", "sin", "cos", "power", "erf", "arctan2", "logaddexp"}
_ROUNDS = 5


class Counted(np.ndarray):
    """An array that counts the operations of the results computed of it, in ``total``."""

    total = 0.0

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any):
        plain = [_plain(x) for x in inputs]
        if out is not None:
            more["out"] = tuple(_plain(x) for x in out)
        found = getattr(ufunc, method)(*plain, **more)
        each = TRANSCENDENTAL if ufunc.__name__ in _TRANSCENDENTAL else 1
        if ufunc.__name__ == "matmul":
            Counted.total += 2.0 * np.size(found) * np.shape(plain[0])[-1]
        elif method == "reduce":
            Counted.total += each * np.size(plain[0])
        else:
            Counted.total += each * max(map(np.size, leaves_of(found)))
        return tuple(map(_counted, found)) if isinstance(found, tuple) else _counted(found)


def leaves_of(found: Any) -> tuple:
    return found if isinstance(found, tuple) else (found,)


def _plain(x: Any) -> Any:
    return x.view(np.ndarray) if isinstance(x, Counted) else x


def _counted(x: Any) -> Any:
    return np.asarray(x).view(Counted)


def counted(fn: Callable, library: Any, args: tuple) -> tuple[Any, float]:
    """The result of a kernel, and the floating-point operations that it took."""
    Counted.total = 0.0
    with np.errstate(all="ignore"):
        found = fn(library, *map(_counted, args))
    return found, Counted.total


def _best(call: Callable[[], Any]) -> float:
    times = []
    for _ in range(_ROUNDS):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def _on_all(work: Callable[[int], Any], threads: int) -> Callable[[], Any]:
    """``work`` once on each of some threads; they hold no lock of Python's meanwhile."""
    if threads == 1:
        return lambda: work(0)
    pool = ThreadPoolExecutor(threads)
    return lambda: list(pool.map(work, range(threads)))


def copy_bandwidth(moved: int, threads: int) -> float:
    """Bytes read and written each second by copies that move about ``moved`` bytes in all."""
    return _copy_bandwidth(max(12, math.ceil(math.log2(max(moved, 1)))), threads)


@cache
def _copy_bandwidth(power: int, threads: int) -> float:
    each = (1 << power) // 2 // threads
    pairs = [(np.ones(each, np.uint8), np.ones(each, np.uint8)) for _ in range(threads)]
    repeats = max(1, (1 << 26) >> power)

    def work(k: int) -> None:
        source, target = pairs[k]
        for _ in range(repeats):
            np.copyto(target, source)

    call = _on_all(work, threads)
    call()
    return 2.0 * each * threads * repeats / _best(call)


_CHAINS = 12  # of multiply-adds that do not wait for each other
_STEPS = 1 << 20


def _loop(kind: str, lanes: int, width: int) -> str:
    vector = f"<{lanes} x {kind}>"
    phis = "\n".join(f"  %a{k} = phi {vector} [ %start, %entry ], [ %b{k}, %loop ]" for k in range(_CHAINS))
    steps = "\n".join(
        f"  %b{k} = call {vector} @llvm.fma.v{lanes}f{64 if kind == 'double' else 32}"
        f"({vector} %a{k}, {vector} %x, {vector} %x)"
        for k in range(_CHAINS)
    )
    sums = "\n".join(f"  %s{k} = fadd {vector} %{f's{k - 1}' if k else 'start'}, %b{k}" for k in range(_CHAINS))
    return f"""
declare {vector} @llvm.fma.v{lanes}f{64 if kind == "double" else 32}({vector}, {vector}, {vector})
define void @peak(ptr %p, i64 %n) "prefer-vector-width"="{width}" {{
entry:
  %x = load {vector}, ptr %p, align 4
  %start = load {vector}, ptr %p, align 4
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
{phis}
{steps}
  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %n
  br i1 %more, label %loop, label %end
end:
{sums}
  store {vector} %s{_CHAINS - 1}, ptr %p, align 4
  ret void
}}
"""


@cache
def peak_flops(dtype: str, threads: int) -> float:
    """Floating-point operations each second, in float64 for that, else in float32."""
    from profuse.lowering.cpu.codegen import PLAIN, object_code
    from profuse.lowering.cpu.loader import load_code
    from profuse.lowering.target import host_target

    kind, size = ("double", 8) if dtype == "f64" else ("float", 4)
    best = 0.0
    for width in (256, 512):
        lanes = width // 8 // size
        loaded = load_code(object_code(_loop(kind, lanes, width), host_target(), PLAIN), "peak")
        fn = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(loaded.address)
        data = [np.full(64, 0.5, f"f{size}") for _ in range(threads)]
        call = _on_all(lambda k, fn=fn, data=data: fn(data[k].ctypes.data, _STEPS), threads)
        call()
        best = max(best, 2.0 * lanes * _CHAINS * _STEPS * threads / _best(call))
    return best


class Machine:
    """The roof, for a number of threads in this process, which is kept to as many CPUs."""

    def __init__(self, cpus: list[int]) -> None:
        os.sched_setaffinity(0, cpus)
        self.threads = len(cpus)

    def roof(self, moved: int, flops: float, dtype: str) -> dict[str, float]:
        """Seconds that a kernel takes at least, by what limits it."""
        copied = copy_bandwidth(moved, self.threads)
        peak = peak_flops(dtype, self.threads)
        by_bytes, by_flops = moved / copied, flops / peak
        return {
            "moved": moved,
            "flops": flops,
            "copy_bytes_per_second": copied,
            "peak_flops_per_second": peak,
            "seconds": max(by_bytes, by_flops),
        }
