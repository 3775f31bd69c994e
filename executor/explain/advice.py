"""Advice on how to make a guard hit, or an op join a group: one sentence per cause."""

from __future__ import annotations

from ...dialect.guards.mismatch import Mismatch
from ...dialect.reasons import Kind, Reason
from ..settings.strategy import behavior_at
from ..tiers.profiling import Executor
from .value_names import NamedGuard

_PROFILE_MORE = (
    "Its operand was not reached, or changed, while profiling: profile calls that are alike, "
    "and more of them, e.g. pf.jit(profiled_runs=2)."
)
_LITERAL_SIZES = (
    "To fix it, write its sizes as literals, or compute them from shapes (x.shape[0] // 2) "
    "instead of passing them as numbers."
)
_ARRAY_OF_DTYPE = "To fix it, pass the number as an array of the dtype that is meant."
_REMEDIES = {
    Kind.UNKNOWN_OPERAND: _PROFILE_MORE,
    Kind.UNKNOWN_TYPE: _PROFILE_MORE,
    Kind.VARYING_SIZE: (
        "Its sizes changed while profiling: a dynamic specialisation may take it, "
        'e.g. pf.jit(strategy=[("dynamic", 12)]).'
    ),
    Kind.RUN_TIME_SIZES: _LITERAL_SIZES,
    Kind.COMPLEX: "To fix it, compute with real and imaginary parts as floats.",
    Kind.INEXACT: "To fuse it all the same, set pf.knobs.exact = False.",
    Kind.OTHER_LAYOUT: "To fix it, pass what np.ascontiguousarray gives.",
    Kind.FEW_NEIGHBOURS: "To fix it, lower pf.knobs.min_fusion_size.",
    Kind.UNSURE_INTEGER: _ARRAY_OF_DTYPE,
    Kind.LARGE_INTEGER: _ARRAY_OF_DTYPE,
    Kind.DEVICES: "To fix it, pass all arrays on one device.",
    Kind.SLOWER: "To use it all the same, set pf.knobs.demote = False.",
    Kind.UNPROFILED: "To fix it, profile one run, e.g. pf.jit(profiled_runs=1).",
}
MORE_DEPTH = 'e.g. pf.jit(strategy=[("static", 2), ("dynamic", 10)])'


def advice(missed: NamedGuard, nearest: NamedGuard, differences: list[Mismatch]) -> list[str]:
    """Sentences: what serves the missed call, then what to do about each kind of difference.

    Args:
        missed: the guard that the call missed.
        nearest: the guard of the nearest specialisation.
        differences: how the values of the call differ from those that ``nearest`` expects.
    """
    labels = nearest.labels()
    by_kind: dict[str, list[str]] = {}
    for m in differences:
        names = by_kind.setdefault(m.kind, [])
        if labels[m.operand] not in names:
            names.append(labels[m.operand])
    lines = [_destination(missed)]
    lines += [
        f"To fix it, pass {_listed(by_kind[kind])} {prep} one {kind} always."
        for prep, kind in (("with", "dtype"), ("on", "device"), ("with", "rank"))
        if kind in by_kind
    ]
    if "layout" in by_kind:
        listed = _listed(by_kind["layout"])
        lines.append(f"To fix it, pass {listed} in one layout, e.g. np.ascontiguousarray.")
    if "size" in by_kind:
        lines.append(_sizes(missed, nearest))
    if "equal-sizes" in by_kind and nearest.guard.behavior == "relaxed":
        lines.append("Its code is for all sizes that fit each other as the operations need it; these do not.")
    elif "equal-sizes" in by_kind:
        lines.append("To fix it, profile calls in which these sizes differ, e.g. pf.jit(profiled_runs=2).")
    if "empty" in by_kind:
        lines.append("Sizes of 0 are never covered by a size symbol: skip empty calls.")
    return lines


def remedy(reason: Reason) -> str:
    """Advice on a reason; "" where nothing can be done, or where the reason says it."""
    return _REMEDIES.get(reason.kind, "")


def _destination(missed: NamedGuard) -> str:
    """A sentence on what serves calls like the latest miss."""
    end = _end(missed)
    name = end.options.name
    if end.depth == 0:
        return f"Such calls run op by op in {name}, because no depth is left."
    if end.optimized is None:
        behavior = behavior_at(end.strategy, end.depth)
        return f"The next such call profiles {name} or compiles a {behavior} specialisation of it."
    return f"Such calls go on in {name}."


def _end(missed: NamedGuard) -> Executor:
    """The executor at the end of the fallback chain behind a guard."""
    end = missed.executor.fallbacks.get(missed.guard.fallback, missed.executor)
    while True:
        behind = tuple(end.fallbacks.values())  # read once: another thread may flush
        if len(behind) != 1:
            return end
        (end,) = behind


def _sizes(missed: NamedGuard, nearest: NamedGuard) -> str:
    end = _end(missed)
    if nearest.guard.behavior == "dynamic":
        fix = "Sizes 0, 1 and those that ops depend on stay literal in a dynamic specialisation"
        return f"{fix}; more depth allows one per value, {MORE_DEPTH}."
    dynamic = any(behavior_at(end.strategy, d) == "dynamic" for d in range(1, end.depth + 1))
    if dynamic:
        return f"Dynamic specialisations, for all sizes, are next: depth {end.depth} is left."
    return f"To fix it, add dynamic depth to the strategy, which serves all sizes, {MORE_DEPTH}."


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
