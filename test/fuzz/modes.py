"""The ways in which a program is run: tiers, executors, from disk."""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import profuse as pf

from .apart import (
    comes_later,
    is_deprecated,
    is_dot_with_zero,
    is_einsum_of_ones,
    is_index_first,
    is_of_byte_order,
    is_of_huge_integers,
    is_of_nothing,
    is_of_objects,
    is_square_of_bools,
    is_stored_by_ml_dtypes,
    is_view_of_nothing,
)
from .compare import NO_ERROR, Outcome, Reference, general, module, run
from .programs import Program, TooLong, at_most

_NUMPY_SECONDS = 10  # that NumPy may take for all calls of a program
_THREADS = 3
_MANY = 1_000_000  # runs to profile: never specialised
_ALL = "{k: v for k, v in dict(locals()).items() if k[0] == 'v'}"

MODES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    # name: what `jit` is given, and knobs
    "tier 0": ({"profiled_runs": _MANY}, {}),
    "static": ({"strategy": [("static", 2)]}, {"native_dispatch": False}),
    "dynamic": ({"strategy": [("dynamic", 2)]}, {"native_dispatch": False}),
    "keyed": ({}, {"profiling_mode": False}),
    "emitted": ({}, {"cache": True}),  # the default strategy, behind emitted guards
    "warm": ({}, {"cache": True}),  # after "emitted": from what that has left on disk
    "device groups": ({}, {"device_fusion": "host", "cache": True}),  # of the other fuser, on the host
    "memory": ({"unsupported": "python"}, {}),  # results lie in memory as NumPy's do
    "background": ({"background": True}, {}),
    "threads": ({"background": True}, {}),  # each call in threads, which all start with it
    "crowd": ({"profiled_runs": _MANY}, {}),  # the same, on tier 0
}
USUAL = ("tier 0", "static", "dynamic", "keyed", "emitted", "warm", "memory")
# What runs beside tier 0 of programs that run in one way each, by number.
TURNS = (
    ("static",),
    ("dynamic",),
    ("keyed",),
    ("emitted",),
    ("emitted", "warm"),
    ("background",),
    ("threads",),
    ("memory",),
)


@dataclass(frozen=True)
class Finding:
    """A call that does not do what NumPy does."""

    program: Program
    mode: str
    call: int
    what: str
    detail: str = ""


@contextlib.contextmanager
def folder() -> Iterator[str]:
    """A folder for the disk cache."""
    with tempfile.TemporaryDirectory(prefix="profuse-fuzz-") as path:
        yield path


def check(
    program: Program,
    modes: tuple[str, ...],
    counts: Counter[str],
    announce: Callable[[str], object] = lambda mode: None,
) -> list[Finding]:
    """Run a program in each mode; the first difference of each, and counts of what happened."""
    try:
        with at_most(_NUMPY_SECONDS):
            reference = Reference(program)
    except TooLong:  # a loop of 1e30 times
        counts["programs that NumPy does not end"] += 1
        return []
    counts["calls"] += len(program.calls) * len(modes)
    counts["calls that raise in NumPy"] += sum(o.error is not None for o in reference.outcomes)
    found = []
    with folder() as path:
        for mode in modes:
            announce(mode)
            finding = _check_mode(program, reference, mode, path, counts)
            if finding is not None:
                found.append(finding)
                if mode == "tier 0":  # the graph itself is another: so it will be everywhere
                    break
    return found


def _check_mode(program: Program, reference: Reference, mode: str, path: str, counts: Counter[str]) -> Finding | None:
    options, settings = MODES[mode]
    with pf.knobs.override(**{"cache_dir": path, **settings}):
        scope = module(reference.source, program.name)
        # A refused call leaves no effects, which the next ones would miss.
        unsupported = {"unsupported": "python"} if program.effects else {}
        f = pf.jit(scope["f"], **{"background": False, **unsupported, **options})
        calls = ((n, o) for n, c in enumerate(program.calls) for o in _run(f, c, scope, mode))
        for number, ours in calls:
            if mode in ("background", "threads"):
                f.wait()
            what = reference.differs(number, ours, of_python=mode == "memory")
            if what.startswith("refused"):
                counts[what] += mode == "tier 0"
                counts["refused calls"] += 1
            elif what.startswith(NO_ERROR) and (why := _why_silent(program, mode, path, number)):
                counts[why] += 1
            elif what and comes_later(program, number, reference.outcomes[number], ours):
                counts["calls that raise a later error first"] += 1
            elif what and is_index_first(reference.outcomes[number], ours):
                counts["calls that refuse a cast or a shape before an index"] += 1
            elif what and is_of_huge_integers(ours):
                counts["calls whose Python integers need more than 64 bits"] += 1
            elif what and is_of_objects(program, reference.outcomes[number]):
                counts["calls whose results are objects in NumPy"] += 1
            elif what and is_dot_with_zero(program, what):
                counts["calls of np.dot that may multiply by zero"] += 1
            elif what and is_deprecated(program, ours):
                counts["calls that write to what np.broadcast_arrays made"] += 1
            elif what and is_stored_by_ml_dtypes(ours):
                counts["calls that store a traced number in a captured bfloat16 array"] += 1
            elif what and is_square_of_bools(program, what):
                counts["calls that square captured bools"] += 1
            elif what and is_view_of_nothing(program, number, ours):
                counts["calls that write to views of read-only arrays of nothing"] += 1
            elif what and is_of_byte_order(program, number):
                counts["calls that compare the dtype of swapped bytes"] += 1
            elif what and is_einsum_of_ones(program, ours):
                counts["calls of np.einsum with sizes that are 1 after the trace"] += 1
            elif what:
                return Finding(program, mode, number, what)
        state = f.state()
        _count(state.counters, counts, mode)
        counts[f"programs{' with effects' * program.effects}, {state.tier}"] += 1
    fault = _compiler_fault(state.reasons)
    return fault and Finding(program, mode, len(program.calls) - 1, fault)


def _run(f: Any, call: str, scope: dict[str, Any], mode: str) -> list[Outcome]:
    """What a call does, once or in each of several threads; effects happen in one thread."""
    effects = "S" in scope
    if mode not in ("threads", "crowd"):
        return [run(f, call, scope, effects)]
    count = 1 if effects else _THREADS
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(lambda _: run(f, call, scope, effects), range(count)))


def _why_silent(program: Program, mode: str, path: str, number: int) -> str:
    """A known cause of a call that raises in NumPy and not here; "" if there is none.

    What no result depends on is removed: with all values as results the call has to raise.
    """
    every = replace(program, calls=program.calls[: number + 1], results=(_ALL,))
    options, settings = MODES[mode]
    with pf.knobs.override(**{"cache_dir": path, **settings}):
        reference = Reference(every)
        scope = module(reference.source, program.name)
        f = pf.jit(scope["f"], **{**options, "background": False})
        done = [run(f, call, scope) for call in every.calls]
    numpy, ours = reference.outcomes[number], done[-1]
    if numpy.error is not None and not reference.differs(number, ours).startswith(NO_ERROR):
        return "calls that do not raise what nothing uses"
    return "calls that index or write what has no elements" if is_of_nothing(every, numpy, ours) else ""


def _compiler_fault(reasons: Sequence[str]) -> str | None:
    """What broke the compiler or failed a kernel's check: results are right all the same."""
    for reason in reasons:
        if "please report" in reason or "its kernel is wrong" in reason or "crashed" in reason:
            return f"a fault of the compiler: {general(reason.splitlines()[0])}"
    return None


def _count(counters: Any, counts: Counter[str], mode: str) -> None:
    for name in ("compiles", "compile_failures", "kernel_launches", "guard_misses", "disk_hits"):
        counts[f"{mode}: {name}"] += counters[name]
