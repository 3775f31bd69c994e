"""`explain()`: why a call was slow, what is guarded, why guards failed, what was not fused."""

from __future__ import annotations

from ...dialect.guards.mismatch import Mismatch, mismatches
from ..compile.request import CompileResult
from ..compile.timings import sentence
from ..plans.plan import Plan
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from ..tiers.keyed import KeyedExecutor
from ..tiers.profiling import Executor
from ..tiers.slow_calls import Work
from .advice import MORE_DEPTH, advice, remedy
from .state import guard_text, tier_of
from .value_names import Checked, guards_of

_TIERS = {
    "profiling": "is being profiled: the next call runs op by op and records types",
    "compiling": "runs op by op while it is compiled in the background",
    "optimized": "runs its optimised plan",
    "simple": "runs unguarded, op by op, because no depth is left",
    "no-opt": "runs op by op, because optimisation or profiling is switched off",
}
_FIXES = {
    "simple": f"To fix it, give the strategy depth, {MORE_DEPTH}.",
    "no-opt": "To fix it, call pf.set_optimize(True) and pf.set_profiling_mode(True).",
}
_SLOW_CALLS = 3
_DID = {
    "traced": "traced the function",
    "recalled": "looked for stored profiles of {where}",
    "prepared": "loaded what compiles in the background",
    "profiled": "ran {where} op by op to record types",
    "compiled": "compiled a {detail} for {where}",
    "loaded": "loaded a {detail} for {where}",
    "failed": "failed to compile {where}",
}


def explain(executor: AnyExecutor, name: str, serves: str = "") -> str:
    """Sentences about one graph, and its fallback chain or its plans.

    ``serves`` is the calls it is for, told where other graphs of the function are for others.
    """
    if isinstance(executor, KeyedExecutor):
        first, *others = _keyed(executor, name)
        return "\n".join([first, *_served(serves), *others])
    tier = tier_of(executor)
    lines = [f"{name} {_doing(executor)} (depth {executor.depth} left).", *_served(serves)]
    if tier in _FIXES and not _failed(executor):
        lines.append(f"  {_FIXES[tier]}")
    lines += [f"  {text}" for text in slow_calls(executor)]
    lines += [f"  {text}" for text in executor.notes]
    chain = list(guards_of(executor))
    _member(executor, 1, lines, chain)
    lines += [f"  {text}" for text in unfused(executor)]
    return "\n".join(lines)


def _served(calls: str) -> list[str]:
    return [f"  This graph serves {calls}."] if calls else []


def _keyed(executor: KeyedExecutor, name: str) -> list[str]:
    made = _count(len(executor.cache), "plan")
    lines = [
        f"{name} was made while profiling mode was off: it has {made}, one for each combination of "
        "dtypes and ranks it was called with, compiled for all sizes."
    ]
    if executor.under_way():
        lines.append("  It is compiled in the background; until that is done it runs op by op.")
    elif executor.tier == "no-opt":
        lines.append("  It runs op by op: optimisation is off, or did not succeed.")
    lines += [f"  {text}" for text in slow_calls(executor)]
    lines += [f"  {text}" for text in executor.notes]
    c = executor.counters
    hits, misses = _count(c.cache_hits, "cache hit"), _count(c.cache_misses, "miss")
    lines.append(f"  {_count(c.invocations, 'run')}, {hits}, {misses}")
    for spec, plan in tuple(executor.cache.items()):
        lines.append(f"  for {spec}:")
        kernels = _count(len(plan.result.kernels), "kernel")
        lines += [f"    {text}" for text in _compiled(plan.result, kernels, plan.seconds)]
        lines += [f"    {text}" for text in _between(plan.plan)]
        for guard in plan.plan.guards:
            lines.append(f"    @{guard.callee}: guard on {guard_text(guard)}")
            lines.append(f"      {_count(guard.hits, 'hit')}, {_count(guard.misses, 'miss')}")
            lines += [f"    {text}" for text in _kernel(plan.result, guard.callee)]
            if guard.last_miss is not None:
                lines.append("      The latest miss, which ran one by one, in NumPy, differs in:")
                relaxed = guard.behavior == "relaxed"
                found = mismatches(guard.types, guard.last_miss, relaxed=relaxed)
                lines += [f"        {m.text}" for m in found]
    if c.evaluated_ops:
        lines.append(f"  {_count(c.evaluated_ops, 'op')} ran one by one, in NumPy")
    results = [made.result for made in executor.compiled()]
    return lines + [f"  {text}" for text in _unfused(results, executor.reasons)]


def _doing(executor: Executor) -> str:
    """What the next call does, in the words after the executor's name."""
    tier, record = tier_of(executor), executor.record
    if tier == "profiling" and record is not None and record.ready:
        return "has been profiled: the next call compiles it"
    if _failed(executor):
        return "runs unguarded, op by op, because it could not be compiled"
    return _TIERS[tier]


def _failed(executor: Executor) -> bool:
    """True if the compiler gave up; the reason is among the executor's reasons."""
    return tier_of(executor) == "simple" and executor.depth > 0


def dropped_traces(count: int, name: str) -> list[str]:
    """What to know, and to do, when a function has more traces than are kept."""
    if not count:
        return []
    return [
        f"{name} has dropped {_count(count, 'trace')}, as {knobs.max_traces} are kept: each new "
        "static argument, and each size that Python code reads as a number, makes one. To fix it, "
        "pass numbers as arguments, loop with pf.fori_loop, or raise pf.knobs.max_traces."
    ]


def slow_calls(executor: AnyExecutor) -> list[str]:
    """One sentence for each of the latest calls that did work which no later call repeats."""
    return [_slow_call(call) for call in executor.work.slow_calls()[-_SLOW_CALLS:]]


def _slow_call(items: list[Work]) -> str:
    did = [
        f"{_DID[w.what].format(where=w.where, detail=w.detail)} ({w.seconds * 1e3:.1f} ms)"
        for w in items
    ]
    total = sum(w.seconds for w in items)
    text = " and ".join([", ".join(did[:-1]), did[-1]] if len(did) > 1 else did)
    return f"Call {items[0].call} was slow by {total * 1e3:.1f} ms because it {text}."


def _member(executor: Executor, level: int, lines: list[str], chain: list[Checked]) -> None:
    pad = "  " * level
    c, plan, result = executor.counters, executor.optimized, executor.result
    if level > 1:
        doing = _doing(executor)
        lines.append(f"{pad[2:]}{executor.options.name} {doing} (depth {executor.depth} left).")
    if c.profiled_runs:
        lines.append(f"{pad}profiled runs: {c.profiled_runs}")
    if result is not None:
        kernels = _count(len(result.kernels), "kernel")
        lines += [f"{pad}{text}" for text in _compiled(result, kernels, executor.seconds)]
    lines += [f"{pad}{text}" for text in _between(plan)]
    for checked in chain:
        if checked.executor is executor:
            lines += [f"{pad}{text}" for text in _guard(checked, chain)]
    if c.evaluated_ops and plan is not None and plan.kind == "optimized":
        ops = _count(c.evaluated_ops, "op")
        lines.append(f"{pad}{ops} ran one by one, in NumPy (profiling runs included)")
    for child in tuple(executor.fallbacks.values()):
        if child.counters.profiled_runs or child.counters.evaluated_ops:
            _member(child, level + 1, lines, chain)


def _compiled(result: CompileResult, what: str, seconds: float) -> list[str]:
    """Where code came from, and, if the disk cache was asked in vain, why it did not have it."""
    stages = sentence(result)
    spent = f"{seconds * 1e3:.1f} ms" + (f": {stages}" if stages else "")
    if result.found_in:
        return [f"loaded {what} from {result.found_in} in {spent}"]
    lines = [f"compiled {what} in {spent}"]
    return [*lines, f"  not in the disk cache: {result.missed}"] if result.missed else lines


def _between(plan: Plan | None) -> list[str]:
    """What arrays between kernels need, which no call has to ask for one by one."""
    inner = plan.intermediates if plan is not None else None
    if inner is None:
        return []
    total = inner.placement.total
    size = f"{total} bytes" if isinstance(total, int) else "a size that the arguments decide"
    return [f"{_count(len(inner.index), 'array')} between kernels, placed in a block of {size}"]


def _kernel(result: CompileResult | None, callee: str) -> list[str]:
    """How far a kernel was checked; of a GPU's, what it needs of a multiprocessor."""
    kernel = result.kernels.get(callee) if result else None
    verdict = result.checks.get(callee) if result and kernel else None
    checked = [f"  {verdict}"] if verdict else []
    used = getattr(kernel, "usage", {})
    return [*checked, *(f"  {name}: {usage}" for name, usage in used.items())]


def _guard(checked: Checked, chain: list[Checked]) -> list[str]:
    guard = checked.guard
    forced = f", {guard.forced} of them forced by stress mode" if guard.forced else ""
    lines = [
        f"@{guard.callee}: {guard.behavior} guard on {guard_text(guard)}",
        f"  {_count(guard.hits, 'hit')}, {_count(guard.misses, 'miss')}{forced}",
    ]
    lines += _kernel(checked.executor.result, guard.callee)
    return lines + [f"  {text}" for text in latest_miss(checked, chain)]


def latest_miss(checked: Checked, chain: list[Checked]) -> list[str]:
    """Why the latest miss of a guard missed the nearest specialisation, and what would fix it.

    A miss that reached this guard through an outer one is told there, where the values it checks
    are those that the outer guard saw.
    """
    miss = checked.guard.last_miss
    if miss is None or (checked.level and _told_above(checked, chain)):
        return []
    nearest, found = nearest_specialization(checked, chain)
    what = f"the {nearest.guard.behavior} specialisation for {guard_text(nearest.guard)}"
    if not found:
        return [f"The latest call that missed it is now served by {what}."]
    lines = [f"The latest miss differs from the nearest, {what}, in:"]
    lines += [f"  {m.text}" for m in found]
    return [*lines, *advice(checked, nearest, found)]


def nearest_specialization(
    checked: Checked, chain: list[Checked]
) -> tuple[Checked, list[Mismatch]]:
    """The guard of the chain with the fewest differences from a guard's latest miss, and those."""
    seen = dict(zip((s.key for s in checked.sources), checked.guard.last_miss or (), strict=True))
    best: tuple[Checked, list[Mismatch]] | None = None
    for other in chain:
        keys = [s.key for s in other.sources]
        if other.level < checked.level or not all(k in seen for k in keys):
            continue
        found = mismatches(
            other.guard.types, [seen[k] for k in keys], other.labels(),
            relaxed=other.guard.behavior == "relaxed",
        )  # fmt: skip
        if best is None or len(found) < len(best[1]):
            best = other, found
    assert best is not None, "a guard is comparable to its own misses"
    return best


def _told_above(checked: Checked, chain: list[Checked]) -> bool:
    keys = {s.key for s in checked.sources}
    return any(
        other.level < checked.level
        and other.guard.last_miss is not None
        and keys <= {s.key for s in other.sources}
        for other in chain
    )


def _count(number: int, noun: str) -> str:
    """``1 miss``, ``2 misses``."""
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def unfused(executor: Executor) -> list[str]:
    """Each op of the chain that stayed outside of groups, once: reason, line and remedy."""
    told: dict[str, None] = {}
    for member in executor.chain():
        results = [] if member.result is None else [member.result]
        told.update(dict.fromkeys(_unfused(results, member.reasons)))
    return list(told)


def _unfused(results: list[CompileResult], reasons: list[str]) -> list[str]:
    told: dict[str, None] = {}
    known = set()
    for text in (text for result in results for text in result.unfused):
        bare, _, place = text.rpartition(" at ")
        known.add(bare)
        told[_not_fused(bare, f" at {place}")] = None
    for reason in reasons:
        refused, _, _ = reason.removeprefix("refused: ").rpartition(" (")
        if not reason.startswith("refused: "):
            told[f"{reason}."] = None
        elif refused not in known:
            told[_not_fused(refused)] = None
    return list(told)


def _not_fused(text: str, place: str = "") -> str:
    op, _, reason = text.partition(": ")
    return f"Not fused: {op}{place}: {reason}. {remedy(reason)}".rstrip()
