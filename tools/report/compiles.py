"""Compiles on the page: what they took, what each pass changed, the kernels and their stages."""

from __future__ import annotations

from collections import Counter

from ..quantities import duration, plural, size
from .diff import Parts, Row, side_by_side
from .markup import MARKUP, Markup, join
from .model import CompiledGraph, FunctionReport, KernelReport, Step

MAX_LINES = 3000  # of one text
MAX_DIFF_ROWS = 600

# What nearly every type says, left out where graphs are compared.
_USUAL = 'defined = true, device = "cpu", requires_grad = false, '

_STAGES = {
    "graph": ("Graph", "mlir"),
    "linalg": ("linalg on tensors", "mlir"),
    "loops": ("Loops", "mlir"),
    "llvm": ("LLVM IR", "llvm"),
    "asm": ("Assembly", "asm"),
}


def stages_of(f: FunctionReport) -> Markup:
    """A bar of stages for each compile, all on one scale."""
    if not f.compiles:
        return MARKUP("quiet", text="Nothing was compiled.")
    longest = max(sum(_all_stages(c).values()) for c in f.compiles) or 1.0
    rows = [_stages(c, longest) for c in f.compiles]
    return MARKUP("stages-table", name=f.name, rows=join(rows))


def _stages(c: CompiledGraph, longest: float) -> Markup:
    parts, at, stages = [], 0.0, _all_stages(c)
    for stage, seconds in stages.items():
        width = 100 * seconds / longest
        parts.append(
            {"kind": _class(stage), "x": f"{at:.2f}", "width": f"{width:.2f}", "text": f"{stage}: {duration(seconds)}"}
        )
        at += width
    words = ({"kind": _class(stage), "stage": stage, "time": duration(seconds)} for stage, seconds in stages.items())
    about = f"{c.about}, from {c.found_in}" if c.found_in else c.about
    return MARKUP(
        "stages-row",
        executor=c.executor,
        about=about,
        seconds=duration(sum(stages.values())),
        parts=MARKUP.each("stage-part", parts),
        words=MARKUP.each("stage-word", words),
    )


def _all_stages(c: CompiledGraph) -> dict[str, float]:
    """Stages that together take what the whole took: what none of them says is ``other``."""
    stages = dict(c.stages)
    rest = c.seconds - sum(stages.values())
    if rest > 0:
        stages["other"] = stages.get("other", 0.0) + rest
    return stages


def _class(stage: str) -> str:
    return stage.replace(" ", "-")


def passes_of(f: FunctionReport) -> Markup:
    """Every compile with what each of its passes did."""
    if not f.compiles:
        return MARKUP("quiet", text="No graph of it was specialised.")
    text = f"Types are shown without what they all have in common: {_USUAL.rstrip(', ')}."
    return join([MARKUP("quiet", text=text), *map(_compile, f.compiles)])


def _compile(c: CompiledGraph) -> Markup:
    changed = [(n, s) for n, s in enumerate(c.steps, 1) if s.changed]
    idle = Counter(s.name for s in c.steps if not s.changed)
    summary = "not compiled again"
    if c.steps:
        seconds = duration(sum(s.seconds for s in c.steps))
        ran = plural(len(c.steps), "pass")
        summary = f"{ran}, of which {len(changed)} changed something, {seconds}"
    unchanged = Markup()
    if idle:
        names = ", ".join(n if count == 1 else f"{n} ×{count}" for n, count in idle.items())
        caption = f"{plural(sum(idle.values()), 'pass')} changed nothing"
        unchanged = MARKUP("unchanged", count=caption, names=names)
    final = Markup()
    if c.steps:
        text = source(c.steps[-1].after, "mlir", f"Graph of {c.executor} after all passes")
        final = MARKUP("final", text=text)
    return MARKUP(
        "compile",
        executor=c.executor,
        about=c.about,
        summary=summary,
        problem=MARKUP("note", text=c.problem) if c.problem else Markup(),
        source=source(c.source, "mlir", f"Graph of {c.executor} as traced"),
        steps=join(_step(number, step) for number, step in changed),
        unchanged=unchanged,
        final=final,
    )


def _step(number: int, step: Step) -> Markup:
    rows = side_by_side(step.before.replace(_USUAL, ""), step.after.replace(_USUAL, ""))
    if rows is None:
        diff = MARKUP("quiet", text="The graph is too large to compare line by line.")
        return MARKUP("step", order=number, name=step.name, summary="", diff=diff)
    more = len([r for r in rows if r.kind in ("changed", "added")])
    less = len([r for r in rows if r.kind in ("changed", "removed")])
    shown = rows[:MAX_DIFF_ROWS]
    diff = MARKUP("diff", name=step.name, rows=join(map(_row, shown)))
    if len(rows) > len(shown):
        rest = plural(len(rows) - len(shown), "line")
        diff = join([diff, MARKUP("quiet", text=f"… and {rest} more.")])
    summary = f"+{more} −{less}, {duration(step.seconds)}"
    return MARKUP("step", order=number, name=step.name, summary=summary, diff=diff)


def _row(row: Row) -> Markup:
    if row.kind == "gap":
        return MARKUP("diff-gap")
    sides = {"before": _side(row.before, "diff-gone"), "after": _side(row.after, "diff-new")}
    lines = {"left": row.left or "", "right": row.right or ""}
    return MARKUP(f"diff-{row.kind}", **sides, **lines)


def _side(parts: Parts, fragment: str) -> Markup:
    return join(MARKUP(fragment, text=text) if differs else text for differs, text in parts)


def kernels_of(f: FunctionReport) -> Markup:
    """Every kernel, with its stages from graph to assembly."""
    kernels = [(c, kernel) for c in f.compiles for kernel in c.kernels]
    if not kernels:
        return MARKUP("quiet", text="None.")
    return join(_kernel(c, kernel) for c, kernel in kernels)


def _kernel(c: CompiledGraph, kernel: KernelReport) -> Markup:
    parts = [f"of {c.executor}", f"{size(kernel.object_bytes)} of object code"]
    parts.append(f"compiled in {duration(sum(kernel.seconds.values()))}")
    if kernel.library_calls:
        parts.append(plural(kernel.library_calls, "library call"))
    if kernel.shared_steps:
        parts.append(f"{plural(kernel.shared_steps, 'step')} shared by threads")
    if kernel.checked:
        parts.append(kernel.checked)
    stages = []
    for stage, text in kernel.stages.items():
        title, language = _STAGES.get(stage, (stage, ""))
        label = f"{title} of @{kernel.name}"
        stages.append(
            MARKUP(
                "stage-text",
                title=title,
                lines=plural(len(text.splitlines()), "line"),
                text=source(text, language, label),
            )
        )
    return MARKUP("kernel", name=kernel.name, summary=", ".join(parts), stages=join(stages))


def source(text: str, language: str, label: str) -> Markup:
    """Code, up to a bound; what is left out is said."""
    lines = text.strip("\n").splitlines()
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], f"… {plural(len(lines) - MAX_LINES, 'line')} more"]
    return MARKUP("source", text="\n".join(lines), language=language, label=label)
