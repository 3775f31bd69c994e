"""The run of a pipeline over a module, with a trace, times, and a line that replays it."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING

from ..dataclass import dataclass
from ..errors import PipelineError, ProfuseError
from ..mlir.context import context, near, one_line, position_of
from ..passes.base import PASSES, Pass
from ..reasons import Reason
from .replay_line import replay_line
from .syntax import PIPELINES, Stage, parse_pipeline

if TYPE_CHECKING:
    from mlir import ir
    from mlir.passmanager import PassManager

# For near matches only: MLIR does not list its passes to Python.
_UPSTREAM = (
    "canonicalize",
    "cse",
    "inline",
    "symbol-dce",
    "sccp",
    "loop-invariant-code-motion",
    "linalg-fuse-elementwise-ops",
    "one-shot-bufferize",
    "convert-linalg-to-loops",
    "lower-affine",
)


def check_pipeline(text: str) -> None:
    """Raise PipelineError for what `run_pipeline` would refuse before it runs anything."""
    with context():
        for stage in parse_pipeline(text):
            if not isinstance(stage, Pass):
                _pass_manager(stage)


def run_pipeline(
    module: ir.Module,
    text: str,
    *,
    verify_each: bool = False,
    print_after_all: Callable[[str, ir.Module], None] | None = None,
    timings: dict[str, float] | None = None,
    trace: list[str] | None = None,
    boundary: Callable[[str, str, ir.Module], None] | None = None,
    repro_dir: str | None = None,
    skip: bool = True,
    reasons: dict[str, list[Reason]] | None = None,
) -> dict[str, Counter]:
    """Run a pipeline over a module, in place; returns the statistics of our passes by name.

    A pass that has left the module as it was, and comes again before anything else has changed the
    module, would do nothing: it is skipped, which the statistic ``skipped`` counts. Trace, dumps
    and boundaries show it in its place all the same.

    Args:
        verify_each: check the module's meaning after every pass.
        print_after_all: called with a pass's name and the module after that pass.
        timings: seconds by pass name are added here.
        trace: names of passes are appended here, each before it runs.
        boundary: called before, between and after passes with the names of both neighbours ("" at
            the ends) and the module (R1.49).
        repro_dir: where a failing pipeline's input is written (default: the system's temporary
            folder; ``""`` = nowhere).
        skip: False = run every pass, those included that can do nothing.
        reasons: what our passes have noted is added here, by pass name.

    Raises PipelineError: for a malformed string before anything has run, and for a failing pass
    with the line that replays it as hint; the failure itself is the cause.
    """
    from mlir import ir

    stages = parse_pipeline(text)
    statistics: dict[str, Counter] = {}
    single = not (print_after_all is None and timings is None and boundary is None)
    with module.context, ir.Location.unknown():
        steps = [step for stage in stages for step in _steps(stage, single)]
        idle = _Idle(skip)
        original = module.operation.clone()
        before = ""
        for step in steps:
            label = ",".join(step.names)
            if boundary is not None:
                boundary(before, label, module)
            before = label
            if trace is not None:
                trace.extend(step.names)
            start = time.perf_counter()
            try:
                idle.run(step, module)
                if verify_each:
                    _check_after(module)
            except Exception as error:
                raise _failure(label, error, text, original, repro_dir) from error
            if timings is not None:
                timings[label] = timings.get(label, 0.0) + time.perf_counter() - start
            if print_after_all is not None:
                print_after_all(label, module)
        if boundary is not None:
            boundary(before, "", module)
    for stage in stages:
        if isinstance(stage, Pass):
            statistics.setdefault(stage.name, Counter()).update(stage.statistics)
            if reasons is not None:
                reasons.setdefault(stage.name, []).extend(stage.reasons)
    return statistics


@dataclass(frozen=True)
class _PipelineStep:
    """The passes between two boundaries: one of ours, or several of MLIR's."""

    names: tuple[str, ...]
    run: Callable[[ir.Module], None]
    ours: Pass | None = None


def _steps(stage: Stage, single: bool) -> Iterator[_PipelineStep]:
    if isinstance(stage, Pass):
        yield _PipelineStep((stage.name,), stage.run, stage)
        return
    for names in [(name,) for name in stage] if single else [stage]:
        manager = _pass_manager(names)
        yield _PipelineStep(names, partial(_run_upstream, manager))


def _run_upstream(manager: PassManager, module: ir.Module) -> None:
    manager.run(module.operation)


@dataclass
class _Idle:
    """Passes that have run since the module last changed, and have left it as it was.

    A pass is a function of the module and its options alone, so each would leave it so again.
    """

    skip: bool
    passes: list[Pass] = field(default_factory=list)  # a list, as options that users define may have no hash

    def run(self, step: _PipelineStep, module: ir.Module) -> None:
        """Run a step, or skip it."""
        if step.ours is not None and step.ours in self.passes:
            step.ours.count("skipped")
            return
        step.run(module)
        if step.ours is None or step.ours.may_have_changed:
            self.passes.clear()
        elif self.skip:
            self.passes.append(step.ours)


def _pass_manager(run: tuple[str, ...]) -> PassManager:
    from mlir.passmanager import PassManager

    try:
        return PassManager.parse(f"builtin.module({','.join(run)})")
    except ValueError as error:
        raise _bad_name(run, one_line(str(error))) from None


def _bad_name(run: tuple[str, ...], said: str) -> PipelineError:
    names = [*PASSES, *PIPELINES, *_UPSTREAM]
    unknown = re.search(r"'([^']*)' does not refer to a registered pass", said)
    if unknown:
        hint = near(unknown[1], names) or "profuse-opt --list-passes prints every pass of ours"
        return PipelineError(f"unknown pass {unknown[1]!r}", hint=hint)
    said = re.sub(r"^MLIR Textual PassPipeline Parser:\d+:\d+: error: ", "", said)
    return PipelineError(f"bad pipeline {','.join(run)!r}: {said}")


def _check_after(module: ir.Module) -> None:
    from ..mlir.verify import check

    module.operation.verify()
    check(module)


def _failure(label: str, error: Exception, text: str, original: ir.Operation, repro_dir: str | None) -> PipelineError:
    from mlir import ir

    report = ""
    if isinstance(error, ProfuseError):
        what, loc = error.what, error.loc
    elif isinstance(error, ir.MLIRError):
        diagnostics = list(error.error_diagnostics)
        what = one_line(diagnostics[0].message if diagnostics else str(error))
        loc = position_of(diagnostics[0].location) if diagnostics else None
    else:
        what, loc = one_line(f"{type(error).__name__}: {error}"), None
        report = "; please report it, with that file, unless the pass is your own"
    hint = None
    if repro_dir != "":
        hint = replay_line(text, original.get_asm(enable_debug_info=True), repro_dir) + report
    return PipelineError(f"pass {label} failed: {what}", loc=loc, hint=hint)
