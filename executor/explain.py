"""`explain()`: what runs, what is guarded, and why each miss, fallback and refusal happened."""

from __future__ import annotations

from ..dialect.types import TensorType
from .engine import Executor
from .plan import Guard
from .state import guard_text, tier_of, type_text

_TIERS = {
    "profiling": "is being profiled: the next call runs op by op and records types",
    "optimized": "runs its optimised plan",
    "simple": "runs unguarded, op by op",
    "no-opt": "runs op by op, because optimisation or profiling is switched off",
}


def explain(executor: Executor, name: str) -> str:
    """Sentences about one graph and its fallback chain."""
    lines: list[str] = []
    _member(executor, name, 0, lines)
    return "\n".join(lines)


def _member(executor: Executor, name: str, level: int, lines: list[str]) -> None:
    pad = "  " * level
    c = executor.counters
    lines.append(f"{pad}{name} {_TIERS[tier_of(executor)]} (depth {executor.depth} left).")
    if c.profiled_runs:
        lines.append(f"{pad}  profiled runs: {c.profiled_runs}")
    if executor.result is not None:
        kernels = len(executor.result.kernels)
        plural = "kernel" if kernels == 1 else "kernels"
        lines.append(f"{pad}  compiled {kernels} {plural} in {executor.seconds * 1e3:.1f} ms")
    plan = executor.optimized
    for guard in plan.guards if plan else ():
        lines.append(f"{pad}  @{guard.callee}: {guard.behavior} guard on {guard_text(guard)}")
        lines.append(f"{pad}    {guard.hits} hits, {guard.misses} misses")
        lines += [f"{pad}    {text}" for text in miss_text(guard)]
    if c.evaluated_ops and plan is not None and plan.kind == "optimized":
        lines.append(f"{pad}  {c.evaluated_ops} ops ran op by op (profiling runs included)")
    lines += [f"{pad}  {text}" for text in (*executor.notes, *executor.reasons)]
    for child in executor.fallbacks.values():
        if child.counters.profiled_runs or child.counters.evaluated_ops:
            _member(child, child.options.name, level + 1, lines)


def miss_text(guard: Guard) -> list[str]:
    """Every property in which the latest miss differs from what the guard expects."""
    if guard.last_miss is None:
        return []
    found = [
        f"latest miss: operand {index} was {type_text(seen)}, specialised for {type_text(want)}"
        for index, (want, seen) in enumerate(zip(guard.types, guard.last_miss, strict=True))
        if not _fits(want, seen)
    ]
    if not found:
        shown = ", ".join(type_text(t) for t in guard.last_miss)
        found = [f"latest miss: {shown} (sizes that must be equal differ)"]
    return [*found, f"the call went on in @{guard.fallback}"]


def _fits(want: object, seen: object) -> bool:
    if not isinstance(want, TensorType) or not isinstance(seen, TensorType):
        return want == seen
    if want.dtype is not seen.dtype or want.rank != seen.rank:
        return False
    sizes = zip(want.shape or (), seen.shape or (), strict=True)
    if any(isinstance(w, int) and w != s for w, s in sizes):
        return False
    if want.strides == "contiguous" or want.is_static:
        return want.strides in (None, seen.strides)
    return True
