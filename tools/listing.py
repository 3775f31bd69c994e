"""The output of ``profuse-opt --list-ops`` and ``--list-passes``."""

from __future__ import annotations

from ..dialect.ir.gradients import rule_of
from ..dialect.ir.op import OPS, Op


def ops_text() -> str:
    """Support matrix: a line per op with its family and what it declares."""
    from ..dialect.ops import backward, seldom  # noqa: F401  (defining the classes fills the table)

    rows: list[tuple[str, ...]] = [("op", "family", "fusion", "infer", "evaluate", "lower", "gradient")]
    for name, cls in sorted(OPS.items()):
        family = cls.__mro__[1].__name__.lstrip("_")
        marks = [
            _mark(_overrides(cls, "infer")),
            _mark(_overrides(cls, "evaluate") or cls.regions > 0),
            _mark(cls.can_lower()),
            _gradient(cls),
        ]
        rows.append((name, "" if family == "Op" else family, cls.fusion.value, *marks))
    return _table(rows) + f"{len(rows) - 1} ops\n"


def _overrides(cls: type[Op], method: str) -> bool:
    return getattr(cls, method).__func__ is not getattr(Op, method).__func__


def _mark(yes: bool) -> str:
    return "yes" if yes else "-"


def _gradient(cls: type[Op]) -> str:
    rule = rule_of(cls)
    return "-" if rule in ("no_gradient", "undifferentiable") else rule


def passes_text() -> str:
    """Our passes with their options and first line of help, then named pipelines."""
    from ..dialect.passes import load_passes
    from ..dialect.passes.base import PASSES
    from ..dialect.pipeline.syntax import PIPELINES, option_help

    load_passes()
    lines = ["passes (every pass of mlir-opt can be named too):"]
    for name, cls in sorted(PASSES.items()):
        lines.append(f"  {name}{option_help(cls)}")
        lines += [f"      {line.strip()}" for line in (cls.__doc__ or "").strip().splitlines()]
    if PIPELINES:
        lines.append("pipelines:")
        lines += [f"  {name}\n      {text}" for name, text in sorted(PIPELINES.items())]
    return "\n".join(lines) + "\n"


def _table(rows: list[tuple[str, ...]]) -> str:
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) for row in rows]
    return "\n".join(line.rstrip() for line in lines) + "\n"
