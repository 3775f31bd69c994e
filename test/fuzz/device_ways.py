"""Ways to run a random function of the fuser of device groups, and what differs between them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import profuse as pf
from compiling import quick_code

from .device_programs import SIZES, DeviceProgram, arguments

_TESTS = Path(__file__).parents[1]
sys.path[:0] = [str(_TESTS / "executor" / "cuda"), str(_TESTS / "lowering")]

import fakelib as xp  # noqa: E402
from emulated import EmulatedDriver  # noqa: E402
from profuse.executor.cuda.nvidia.driver import using  # noqa: E402

Calls = Sequence[tuple[np.ndarray, ...]]
# Half of the time of a program is LLVM's, and most of the rest that of compiles for single sizes, which the fuzzer of
# the general fuser has as well. Of so many programs one has both.
WHOLE = 8
_TOLERANCE = 1e-3


def difference(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """How the results of a call differ from those that are wanted, by more than rounding."""
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        one, other = np.asarray(one), np.asarray(other)
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return f"result {number}: {other.dtype}{other.shape} became {one.dtype}{one.shape}"
        scale = max(1.0, float(np.abs(other).max(initial=0)))
        if not np.allclose(one, other, rtol=_TOLERANCE, atol=_TOLERANCE * scale, equal_nan=True):
            return f"result {number}: {np.array2string(other)} became {np.array2string(one)}"
    return ""


def first_difference(ours: Iterable[Any], theirs: Sequence[Any]) -> str:
    """The first call whose results differ, and how."""
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        if what := difference(one, other):
            return f"call {number}: {what}"
    return ""


def outcomes(
    f: Callable[..., Any], calls: Calls, onto: Callable = lambda x: x, back: Callable = lambda x: x
) -> list[list[Any]]:
    """The results of calls, each with random numbers of its own."""
    results = []
    for number, args in enumerate(calls):
        pf.manual_seed(number)
        results.append([back(value) for value in f(*map(onto, args))])
    return results


def _bits(results: list[list[Any]]) -> list[list[bytes]]:
    return [[np.asarray(value).tobytes() for value in values] for values in results]


def _on_host(fn: Callable[..., Any], calls: Calls, expected: list[list[Any]], counts: Counter[str]) -> str:
    """Device groups of host arrays, again and again, and on 1, 2 and 3 threads."""
    # Not even calls that Python would run in less time are Python's.
    with pf.knobs.override(device_fusion="host", demote=False):
        f = pf.jit(fn, background=False)
        what = first_difference(outcomes(f, calls), expected)
        if what or f.state().counters["compile_failures"]:
            return what or f"compiles fail: {f.state().reasons}"
        for _ in range(3):  # until all have their plans
            outcomes(f, calls)
        bits = _bits(outcomes(f, calls))
        for threads in (1, 2, 3):
            with pf.knobs.override(threads=threads):
                if _bits(outcomes(f, calls)) != bits:
                    return f"other bits on {threads} threads"
        _count(f, "host", counts)
    return ""


def _on_device(fn: Callable[..., Any], calls: Calls, expected: list[list[Any]], counts: Counter[str]) -> str:
    """Device groups of arrays of an emulated device."""
    with using(EmulatedDriver()), pf.knobs.override(device_fusion="on"):
        f = pf.jit(fn, background=False)
        results = outcomes(f, calls, xp.array, lambda value: value.get() if hasattr(value, "get") else value)
        what = first_difference(results, expected)
        counters = f.state().counters
        if not what and (counters["device_fallbacks"] or not counters["kernel_launches"]):
            return f"not on the device: {f.state().reasons}"
        _count(f, "device", counts)
    return what


def check(program: DeviceProgram, number: int, counts: Counter[str]) -> dict[str, str]:
    """What differs from tier 0: by way, and the first difference of each."""
    calls = [arguments(number + k, *sizes) for k, sizes in enumerate(SIZES)]
    fn, whole = program.function(), number % WHOLE == 0
    options = {} if whole else {"strategy": [("dynamic", 1)]}
    with ExitStack() as stack:
        stack.enter_context(pf.knobs.override(cache=False))
        stack.enter_context(quick_code(not whole))
        expected = outcomes(pf.jit(fn, profiled_runs=1_000_000, background=False), calls)
        general = pf.jit(fn, background=False, **options)
        found = {"general": first_difference(outcomes(general, calls), expected)}
        _count(general, "general", counts)
        found["host"] = _on_host(fn, calls, expected, counts)
        if not program.draws:  # functions of device arrays draw no random numbers
            found["device"] = _on_device(fn, calls, expected, counts)
    counts["programs"] += 1
    return {way: what for way, what in found.items() if what}


def check_gradients(program: DeviceProgram, counts: Counter[str]) -> dict[str, str]:
    """How gradients through device groups differ from those through the general fuser; both halves have such groups."""
    fn = program.function()

    def loss(x: Any, b: Any, c: Any) -> Any:
        return sum((value.astype(np.float64) ** 2).sum() for value in fn(x, b, c))

    calls = [arguments(k, *sizes) for k, sizes in enumerate(SIZES[:3] + SIZES[:1])]
    by_way = {}
    for way, options in (("off", {"strategy": [("dynamic", 1)]}), ("host", {})):
        with pf.knobs.override(device_fusion=way, cache=False), quick_code():
            g = pf.grad(loss, wrt=(0, 1, 2), background=False, **options)
            by_way[way] = outcomes(g, calls)
            if way == "host" and '"profuse.cuda_group"' not in g.ir("optimized"):
                return {"gradients": "no device group"}
            _count(g, f"gradients, {way}", counts)
    counts["gradients"] += 1
    what = first_difference(by_way["host"], by_way["off"])
    return {"gradients": what} if what else {}


def _count(f: Any, way: str, counts: Counter[str]) -> None:
    for name in ("compiles", "kernels_compiled", "kernel_launches", "guard_misses"):
        counts[f"{way}: {name}"] += f.state().counters[name]
