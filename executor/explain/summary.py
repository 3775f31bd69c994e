"""The first part of `explain()`: which parts of a function run as native code, which not, and why."""

from __future__ import annotations

from ...dialect.guards.mismatch import Mismatch
from ...dialect.ir.program import Program
from ...dialect.ops.speculation import DiffGraph
from ...dialect.reasons import Effect, Reason
from ..compile.request import CompileResult
from ..settings.knobs import knobs
from ..tiers.choice import AnyExecutor
from ..tiers.keyed import KeyedExecutor
from ..tiers.profiling import Executor
from ..tiers.slow_calls import Work
from .advice import MORE_DEPTH, advice, remedy
from .state import guard_text, type_text
from .value_names import NamedGuard

_TIERS = {
    "profiling": (
        "does not run as native code yet: it is being profiled, the next call runs op by op in NumPy and records types"
    ),
    "compiling": ("does not run as native code yet: it runs op by op in NumPy while it is compiled in the background"),
    "simple": ("does not run as native code: it runs op by op in NumPy, unguarded, because no depth is left"),
    "no-opt": (
        "does not run as native code: it runs op by op in NumPy, because optimisation or profiling is switched off"
    ),
}
_PROFILED = "does not run as native code yet: it has been profiled, the next call compiles it"
_FAILED = "does not run as native code: it runs op by op in NumPy, unguarded, because it could not be compiled"
_FIXES = {
    "simple": f"To fix it, give the strategy depth, {MORE_DEPTH}.",
    "no-opt": "To fix it, call pf.set_optimize(True) and pf.set_profiling_mode(True).",
}
_KEYED = "does not run as native code: optimisation is off, or did not succeed"
_KEYED_SOON = (
    "does not run as native code yet. It is compiled in the background; until that is done it runs op by op in NumPy"
)
_SLOW_CALLS = 3
_SHOWN = 6  # specialisations, and arguments of one
_DID = {
    "traced": "traced the function",
    "recalled": "looked for stored profiles of {where}",
    "prepared": "loaded what compiles in the background",
    "profiled": "ran {where} op by op to record types",
    "compiled": "compiled a {detail} for {where}",
    "loaded": "loaded a {detail} for {where}",
    "failed": "failed to compile {where}",
}


def summary(executor: Executor, chain: list[NamedGuard]) -> list[str]:
    """Sentences on a graph: what its calls run, what is native, what is not, why, and what to do.

    The first sentence continues the name of the graph.

    Args:
        executor: the outermost executor of the graph.
        chain: the guards of its fallback chain, outermost first.
    """
    lines = [f"{doing(executor)}."]
    tier = executor.tier
    if tier in _FIXES and not _failed(executor):
        lines.append(_FIXES[tier])
    lines += _native(chain)
    for checked in chain:
        lines += latest_miss(checked, chain)
    return [*lines, *unfused(executor), *executor.notes, *lost_draws(executor), *slow_calls(executor)]


def keyed_summary(executor: KeyedExecutor) -> list[str]:
    """The same for a graph with a spec-keyed executor (made while profiling mode was off)."""
    entries = tuple(executor.cache.items())
    results = [plan.result for _, plan in entries]
    if entries:
        lines = [f"{_covered(results)}."]
    else:
        lines = [f"{_KEYED_SOON if executor.under_way() else _KEYED}."]
    lines += [
        f"Native code serves arguments of {spec}, of all sizes."
        for spec, plan in entries[:_SHOWN]
        if plan.result.kernels
    ]
    for guard in (guard for _, plan in entries for guard in plan.plan.guards):
        if guard.last_miss is not None:
            lines.append("The latest miss, which ran one by one, in NumPy, differs in:")
            differences = guard.mismatches(guard.last_miss)
            lines += [f"  {m.text}" for m in differences]
    lines += _unfused(results, executor.reasons)
    return [*lines, *executor.notes, *lost_draws(executor), *slow_calls(executor)]


def doing(executor: Executor) -> str:
    """The words that continue the name of a graph: what its calls run."""
    tier, record, result = executor.tier, executor.record, executor.result
    if tier == "profiling" and record is not None and record.ready:
        return _PROFILED
    if _failed(executor):
        return _FAILED
    if tier == "optimized":
        return _covered([result] if result is not None else [])
    return _TIERS[tier]


def _covered(results: list[CompileResult]) -> str:
    """The words that say how much of a compiled graph is native code."""
    reasons = [r for result in results for r in (*result.refusals, *result.failures.values())]
    ops = sum(r.count for r in reasons if r.effect is Effect.NOT_FUSED)
    others = any(r.effect in (Effect.DISSOLVED, Effect.INTERPRETED) for r in reasons)
    graphs = sum(i.op is DiffGraph for r in results for i in r.module.main.body.walk())
    if graphs:
        parts = "1 subgraph" if graphs == 1 else f"{graphs} subgraphs"
        return f"differentiates {parts}, each as one node of the tape"
    if results and not any(result.module.main.body.instrs for result in results):
        return "computes nothing: it gives what it is given, or views of that"
    if not any(result.kernels for result in results):
        return "runs op by op in NumPy: nothing of it is native code"
    if others:
        return "runs as native code, but for parts that run op by op in NumPy"
    if ops:
        which = "1 operation that runs" if ops == 1 else f"{ops} operations that run one by one"
        return f"runs as native code, but for {which} in NumPy"
    return "runs as native code"


def _failed(executor: Executor) -> bool:
    """True if the compiler gave up; the reason is among the executor's reasons."""
    return executor.tier == "simple" and executor.depth > 0


def _native(chain: list[NamedGuard]) -> list[str]:
    """Sentences: which source lines are native code for which arguments, and how often it ran."""
    sentences = []
    for checked in chain:
        result, guard = checked.executor.result, checked.guard
        if result is not None and guard.callee in result.kernels:
            values = [
                f"{source.name}: {type_text(type_)}"
                for source, type_ in zip(checked.sources, guard.shown_types(), strict=True)
                if source.name
            ]
            more = [f"{len(values) - _SHOWN} more"] if len(values) > _SHOWN else []
            text = ", ".join([*values[:_SHOWN], *more])
            lines = _lines_of(result.module.functions[guard.callee])
            what = f"Native code{f' of {lines}' if lines else ''}{f', for {text},' if text else ''}"
            sentences.append(f"{what} has run {count(guard.hits, 'time')}.")
    others = len(sentences) - _SHOWN
    return sentences[:_SHOWN] + ([f"Internals list {others} more."] if others > 0 else [])


def _lines_of(function: Program) -> str:
    """The places of the ops of a function in the user's source: ``model.py:4-6, 9``."""
    by_file: dict[str, set[int]] = {}
    for instr in function.body.walk():
        if instr.loc is not None:
            by_file.setdefault(instr.loc.file, set()).add(instr.loc.line)
    return "; ".join(f"{file}:{_ranges(sorted(lines))}" for file, lines in by_file.items())


def _ranges(numbers: list[int]) -> str:
    """``4-6, 9`` of numbers in order."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(f"{a}-{b}" if a != b else str(a) for a, b in runs)


def count(number: int, noun: str) -> str:
    """``1 miss``, ``2 misses``."""
    return f"{number} {noun}" + ("" if number == 1 else "es" if noun.endswith("s") else "s")


def dropped_traces(dropped: int, name: str) -> list[str]:
    """A sentence on the traces that a function has dropped, with a remedy; none if it has not."""
    if not dropped:
        return []
    return [
        f"{name} has dropped {count(dropped, 'trace')}, as {knobs.max_traces} are kept: each new "
        "static argument, and each size that Python code reads as a number, makes one. To fix it, "
        "pass numbers as arguments, loop with pf.fori_loop, or raise pf.knobs.max_traces."
    ]


def lost_draws(executor: AnyExecutor) -> list[str]:
    """A sentence on calls whose draws could not be taken back; none if there are no such calls."""
    lost = executor.counters.lost_draws
    if not lost:
        return []
    return [
        f"{count(lost, 'call')} failed when another thread had drawn from the same generator since, so that what "
        "the call had drawn stayed drawn. To fix it, give each thread a generator of its own."
    ]


def slow_calls(executor: AnyExecutor) -> list[str]:
    """One sentence for each of the latest calls that did one-time work, such as compiling."""
    return [_slow_call(call) for call in executor.work.slow_calls()[-_SLOW_CALLS:]]


def _slow_call(items: list[Work]) -> str:
    did = [f"{_DID[w.what].format(where=w.where, detail=w.detail)} ({w.seconds * 1e3:.1f} ms)" for w in items]
    total = sum(w.seconds for w in items)
    text = " and ".join([", ".join(did[:-1]), did[-1]] if len(did) > 1 else did)
    return f"Call {items[0].call} was slow by {total * 1e3:.1f} ms because it {text}."


def latest_miss(checked: NamedGuard, chain: list[NamedGuard]) -> list[str]:
    """The reason why the latest miss of a guard missed the nearest specialisation, and what would fix it.

    There are no sentences if an outer guard also missed and has seen all values that this guard
    checks: the sentences about the outer guard say the same.
    """
    miss = checked.guard.last_miss
    if miss is None or (checked.level and _told_above(checked, chain)):
        return []
    if checked.guard.changed:
        return [f"The latest miss had the types that were profiled, but {' and '.join(checked.guard.changed)}."]
    nearest, differences = nearest_specialization(checked, chain)
    what = f"the {nearest.guard.behavior} specialisation for {guard_text(nearest.guard)}"
    if not differences:
        return [f"The latest call that missed it is now served by {what}."]
    lines = [f"The latest miss differs from the nearest, {what}, in:"]
    lines += [f"  {m.text}" for m in differences]
    return [*lines, *advice(checked, nearest, differences)]


def nearest_specialization(checked: NamedGuard, chain: list[NamedGuard]) -> tuple[NamedGuard, list[Mismatch]]:
    """The guard of the chain that differs least from a guard's latest miss, and the differences."""
    values = dict(zip((s.key for s in checked.sources), checked.guard.last_miss or (), strict=True))
    best: tuple[NamedGuard, list[Mismatch]] | None = None
    for other in chain:
        keys = [s.key for s in other.sources]
        if other.level < checked.level or not all(k in values for k in keys):
            continue
        differences = other.guard.mismatches([values[k] for k in keys], other.labels())
        if best is None or len(differences) < len(best[1]):
            best = other, differences
    assert best is not None, "a guard is comparable to its own misses"
    return best


def _told_above(checked: NamedGuard, chain: list[NamedGuard]) -> bool:
    keys = {s.key for s in checked.sources}
    return any(
        other.level < checked.level and other.guard.last_miss is not None and keys <= {s.key for s in other.sources}
        for other in chain
    )


def unfused(executor: Executor) -> list[str]:
    """One sentence for each op of the chain outside of groups: its line, the reason, a remedy."""
    sentences: dict[str, None] = {}
    for member in executor.chain():
        results = [] if member.result is None else [member.result]
        sentences.update(dict.fromkeys(_unfused(results, member.reasons)))
    return list(sentences)


def _unfused(results: list[CompileResult], reasons: list[Reason]) -> list[str]:
    """Sentences about ops, with their place in the user's source where it is known."""
    placed = [r for result in results for r in result.refusals if r.loc and _is_unfused(r)]
    pairs = {(r.op, r.why) for r in placed}
    sentences = dict.fromkeys(map(_told, placed))
    others = (r for r in reasons if not (_is_unfused(r) and (r.op, r.why) in pairs))
    sentences |= {_told(r): None for r in others if r.effect is not Effect.LEFT}
    return list(sentences)


def _is_unfused(reason: Reason) -> bool:
    return reason.effect is Effect.NOT_FUSED


def _told(reason: Reason) -> str:
    """A reason as a sentence, with what to do about it."""
    place = f" at {reason.loc}" if reason.loc else ""
    unfused = f"Not fused: {reason.op}{place}: {reason.why}"
    return f"{unfused if _is_unfused(reason) else reason.told}. {remedy(reason)}".rstrip()
