"""Pass pipelines as strings: parsing, and running with a trace, times, and a replay line.

``"dce,specialize{min-runs=2},canonicalize,func.func(cse)"``: names of our passes come from
`passes.base.PASSES`, names of whole pipelines from `PIPELINES`; everything else goes, in contiguous
runs, to MLIR's own pass manager.

Options of a named pipeline are those of its passes, and the names of the pipelines in it:
``profile-driven{dynamic=true pre-fusion=(probe,dce)}`` makes every pass of it that can be dynamic
so, and runs two passes where `pre-fusion` stands.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from functools import partial
from typing import TYPE_CHECKING, Union

from ..dataclass import dataclass
from ..errors import InternalError, PipelineError, ProfuseError
from ..mlir.context import context, near, one_line, position_of
from ..passes.base import PASSES, Pass
from ..reasons import Reason
from .replay_line import replay_line
from .standard import STANDARD
from .syntax import PipelineItem, make_pass, option_names, split_items, split_options, unknown_option

if TYPE_CHECKING:
    from mlir import ir
    from mlir.passmanager import PassManager

PIPELINES: dict[str, str] = {}
"""Named pipelines; a name may stand in a pipeline string like that of a pass."""

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

Stage = Union[Pass, tuple[str, ...]]  # one of ours, or a run of MLIR's


def register_pipeline(name: str, text: str) -> None:
    """Name a pipeline; a second pipeline or pass of that name is an InternalError."""
    if name in PIPELINES or name in PASSES:
        raise InternalError(f"pipeline {name} is declared twice")
    PIPELINES[name] = text


for _name, _text in STANDARD.items():
    register_pipeline(_name, _text)


def parse_pipeline(text: str) -> list[Stage]:
    """Passes of a pipeline string, in order. Raises PipelineError.

    Names of MLIR's passes are not looked at here; `run_pipeline` checks them before it runs any.
    """
    from ..passes import load_passes

    load_passes()
    stages: list[Stage] = []
    for item in _expand(split_items(text), (), None):
        cls = PASSES.get(item.name)
        if cls is not None and item.nested is None:
            stages.append(make_pass(cls, item))
        elif stages and isinstance(stages[-1], tuple):
            stages[-1] = (*stages[-1], item.text)
        else:
            stages.append((item.text,))
    return stages


def _expand(
    items: Sequence[PipelineItem], inside: tuple[str, ...], given: _GivenOptions | None
) -> Iterator[PipelineItem]:
    for item in items:
        if item.name == "builtin.module" and item.nested is not None:
            yield from _expand(split_items(item.nested), inside, given)
        elif item.name in PIPELINES and item.nested is None:
            yield from _pipeline(item, inside, given)
        else:
            _refuse_ours_inside(item)
            yield item if given is None else given.add_to(item)


def _pipeline(item: PipelineItem, inside: tuple[str, ...], given: _GivenOptions | None) -> Iterator[PipelineItem]:
    """The passes of a named pipeline, or those that an option of an outer one puts in its place."""
    if item.name in inside:
        raise PipelineError(f"pipeline {item.name} contains itself")
    inside = (*inside, item.name)
    instead = None if given is None else given.instead_of(item.name)
    if instead is not None:
        yield from _expand(split_items(instead), inside, None)
        return
    own = _GivenOptions(item, given)
    yield from _expand(split_items(PIPELINES[item.name]), inside, own)
    own.check()


class _GivenOptions:
    """Options of a named pipeline, on their way to the passes and pipelines in it."""

    def __init__(self, item: PipelineItem, outer: _GivenOptions | None) -> None:
        self.owner = f"pipeline {item.name}"
        self.values = split_options(self.owner, item.options)
        self.outer = outer
        self.known: set[str] = set()

    def add_to(self, item: PipelineItem) -> PipelineItem:
        """A pass with those of the options that it has, and that it is not given already."""
        cls = PASSES.get(item.name)
        if cls is None or item.nested is not None:
            return item
        own = split_options(f"pass {cls.name}", item.options)
        extra = {k: v for k in option_names(cls) if (v := self._find(k)) is not None}
        if extra.keys() <= own.keys():
            return item
        options = " ".join(f"{k}={v}" for k, v in {**extra, **own}.items())
        return PipelineItem(item.name, f"{item.name}{{{options}}}", options)

    def instead_of(self, name: str) -> str | None:
        """The passes in the place of the pipeline ``name``; None = its own passes stay."""
        text = self._find(name)
        if text is not None and text[:1] == "(" and text[-1:] == ")":
            return text[1:-1]
        return text

    def _find(self, key: str) -> str | None:
        self.known.add(key)
        outer = None if self.outer is None else self.outer._find(key)
        return self.values.get(key, outer)

    def check(self) -> None:
        """Raise PipelineError for an option that nothing in the pipeline has."""
        for key in self.values:
            if key not in self.known:
                raise unknown_option(self.owner, key, sorted(self.known))


def _refuse_ours_inside(item: PipelineItem) -> None:
    """Our passes run on whole modules: ``func.func(dce)`` would send `dce` to MLIR."""
    if not item.nested:
        return
    for inner in split_items(item.nested):
        if inner.name in PASSES and inner.nested is None:
            raise PipelineError(f"pass {inner.name} runs on a module and cannot stand inside {item.name}(…)")
        _refuse_ours_inside(inner)


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
    known = [*PASSES, *PIPELINES, *_UPSTREAM]
    unknown = re.search(r"'([^']*)' does not refer to a registered pass", said)
    if unknown:
        hint = near(unknown[1], known) or "profuse-opt --list-passes prints every pass of ours"
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
