"""`explain()`: which parts of a function run as native code, which do not, then the internals."""

from __future__ import annotations

from ..compile.request import CompileResult
from ..compile.timings import sentence
from ..plans.guard import PlanGuard
from ..plans.plan import Plan
from ..tiers.choice import AnyExecutor
from ..tiers.keyed import KeyedExecutor
from ..tiers.profiling import Executor
from .state import guard_text
from .summary import count, doing, keyed_summary, summary
from .value_names import NamedGuard, guards_of

_SHOWN = 4  # combinations of arguments that require gradients, the latest ones


def explain(executor: AnyExecutor, name: str, serves: str = "") -> str:
    """Sentences about one graph: what it runs, then the inside of its fallback chain or its plans.

    Args:
        executor: the executor of the graph.
        name: name of the function.
        serves: the calls that the graph serves, as text; "" if the function has no other graph.
    """
    sentences = [
        _one(on_tape, on_tape.options.name, _which(executor, on_tape))
        for on_tape in tuple(executor.noted.values())[-_SHOWN:]
    ]
    if len(executor.noted) > _SHOWN:
        others = count(len(executor.noted) - _SHOWN, "earlier combination")
        sentences.append(f"{name} has plans for {others} of arguments that require gradients.")
    if not sentences or executor.record is not None or executor.compiled():
        sentences.insert(0, _one(executor, name, serves))  # else no other calls have come
    return "\n".join(sentences)


def _which(executor: AnyExecutor, on_tape: AnyExecutor) -> str:
    """The calls that an executor of the tape serves, as text."""
    if len(executor.noted) == 1:
        return "calls with arrays that require gradients"
    names = executor.input_names
    which = [
        names[k] if k < len(names) else f"input {k}" for k, flag in enumerate(on_tape.options.noted) if flag == "1"
    ]
    verb = "requires" if len(which) == 1 else "require"
    return f"calls in which {', '.join(which)} {verb} gradients"


def _one(executor: AnyExecutor, name: str, serves: str) -> str:
    """The text of `explain` for a graph, without that of its calls on the tape."""
    if executor.many_plans:
        sentences, inside = keyed_summary(executor), _keyed(executor)
    else:
        chain = list(guards_of(executor))
        sentences, inside = summary(executor, chain), _member(executor, chain)
    first, *others = sentences
    served = [f"This graph serves {serves}."] if serves else []
    lines = [*served, *others, f"Internals of {name}:", *(f"  {text}" for text in inside)]
    return "\n".join([f"{name} {first}", *(f"  {text}" for text in lines)])


def _keyed(executor: KeyedExecutor) -> list[str]:
    plans = count(len(executor.cache), "plan")
    c = executor.counters
    hits, misses = count(c.cache_hits, "cache hit"), count(c.cache_misses, "miss")
    lines = [
        f"It was made while profiling mode was off: it has {plans}, one for each combination of "
        "dtypes and ranks it was called with, compiled for all sizes.",
        f"{count(c.invocations, 'run')}, {hits}, {misses}",
    ]
    for spec, plan in tuple(executor.cache.items()):
        lines.append(f"for {spec}:")
        lines += [f"  {text}" for text in _compiled(plan.result, plan.seconds)]
        lines += [f"  {text}" for text in _between(plan.plan)]
        lines += [f"  {text}" for g in plan.plan.guards for text in _guard(g, plan.result, "")]
    if c.evaluated_ops:
        lines.append(f"{count(c.evaluated_ops, 'op')} ran one by one, in NumPy")
    return lines + _halves(executor)


def _halves(executor: AnyExecutor) -> list[str]:
    """Lines about the halves of differentiable subgraphs."""
    lines = []
    for half in tuple(executor.halves.values()):
        inside = _keyed(half) if half.many_plans else _member(half, list(guards_of(half)))
        inside += half.notes
        lines += [f"Half {half.options.name}:", *(f"  {text}" for text in inside)]
    return lines


def _member(executor: Executor, chain: list[NamedGuard]) -> list[str]:
    """Lines about one executor, followed by those about its fallbacks that have run."""
    c, plan, result = executor.counters, executor.optimized, executor.result
    lines = [f"Tier: {executor.tier}, depth {executor.depth} left"]
    if c.profiled_runs:
        lines.append(f"Profile: {count(c.profiled_runs, 'run')}")
    if result is not None:
        lines += _compiled(result, executor.seconds)
    lines += _between(plan)
    for checked in chain:
        if checked.executor is executor:
            lines += _guard(checked.guard, result, f"{checked.guard.behavior} ")
    if c.evaluated_ops and plan is not None and plan.kind == "optimized":
        ops = count(c.evaluated_ops, "op")
        lines.append(f"{ops} ran one by one, in NumPy (profiling runs included)")
    for child in tuple(executor.fallbacks.values()):
        if child.counters.profiled_runs or child.counters.evaluated_ops:
            lines.append(f"Fallback {child.options.name} {doing(child)}.")
            lines += [f"  {text}" for text in _member(child, chain)]
    return lines + _halves(executor)


def _compiled(result: CompileResult, seconds: float) -> list[str]:
    """Lines on where the code came from and, after a disk cache miss, on the cause of the miss."""
    what, stages = count(len(result.kernels), "kernel"), sentence(result)
    spent = f"{seconds * 1e3:.1f} ms" + (f": {stages}" if stages else "")
    if result.found_in:
        return [f"Code: loaded {what} from {result.found_in} in {spent}"]
    lines = [f"Code: compiled {what} in {spent}"]
    return [*lines, f"  not in the disk cache: {result.missed}"] if result.missed else lines


def _between(plan: Plan | None) -> list[str]:
    """A line on the intermediates of a plan that lie in the thread's block, if there are any."""
    inner = plan.steps.intermediates if plan is not None and plan.steps is not None else None
    if inner is None:
        return []
    total = inner.placement.total
    size = f"{total} bytes" if isinstance(total, int) else "a size that the arguments decide"
    arrays = count(len(inner.index), "array")
    return [f"Memory: {arrays} between kernels, placed in a block of {size}"]


def _guard(guard: PlanGuard, result: CompileResult | None, behavior: str) -> list[str]:
    """Lines on a guard (types, hits, misses) and its kernel (check, resources on a GPU).

    ``behavior``: the guard's behaviour, followed by a space; may be empty.
    """
    forced = f", {guard.forced} of them forced by stress mode" if guard.forced else ""
    lines = [
        f"Guard of @{guard.callee}: {behavior}guard on {guard_text(guard)}",
        f"  {count(guard.hits, 'hit')}, {count(guard.misses, 'miss')}{forced}",
    ]
    kernel = result.kernels.get(guard.callee) if result else None
    verdict = result.checks.get(guard.callee) if result and kernel else None
    lines += [f"  {verdict}"] if verdict else []
    times = result.times.get(guard.callee) if result and kernel else None
    lines += [f"  measured: {times}"] if times else []
    lines += [f"  a loop runs on one thread: {why}" for why in getattr(kernel, "one_thread", ())]
    return [*lines, *(f"  {n}: {usage}" for n, usage in getattr(kernel, "usage", {}).items())]
