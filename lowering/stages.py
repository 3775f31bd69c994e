"""The way of a kernel: one ordered table of stages per target, and one runner for all tables.

`cpu.cpu_stages.STAGES` and `gpu.gpu_stages.STAGES` are the tables. The text of each stage can be kept.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..dialect.dataclass import dataclass
from ..dialect.errors import LoweringError

if TYPE_CHECKING:
    from mlir import ir

    from ..dialect.ir.program import Program


@dataclass
class KernelCompile:
    """The compile of one fusion function.

    Attributes:
        keep: True = keep the text of every stage.
        artifact: the compiled function; the stage that determines the ABI makes it.
        stages: stage -> its text.
        seconds: step -> seconds; a stage has one or more steps.
    """

    keep: bool = False
    artifact: Any = None
    stages: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        """Add the time of the ``with`` block to a step."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start

    def note(self, stage: str, text: Any) -> None:
        """Keep the text of a stage, if texts are kept."""
        if self.keep:
            self.stages[stage] = str(text)


@dataclass(frozen=True)
class Stage:
    """One stage of a table.

    Attributes:
        name: name of the stage and of its text.
        make: makes the stage's value from that of the previous stage; raises LoweringError.
        text: the stage's value -> text; None = the stage has no text.
    """

    name: str
    make: Callable[[Any, Any], Any]
    text: Callable[[Any], str] | None = str


def run(table: Sequence[Stage], value: Any, compile_: KernelCompile, *, at: str = "", until: str = "") -> Any:
    """Run the stages of a table; returns the value of the last one.

    Args:
        value: the value of the stage ``at``; by default, the input of the first stage.
        at: the stage at which to start.
        until: the last stage to run; by default, the last one of the table.

    Raises LoweringError for a function that cannot be lowered, and for an unknown stage.
    """
    names = [stage.name for stage in table]
    for name in filter(None, (at, until)):
        if name not in names:
            raise _unknown(name, names)
    first, last = names.index(at) if at else 0, names.index(until) if until else len(names) - 1
    for k, stage in enumerate(table[first : last + 1], first):
        if k > first or not at:
            value = stage.make(value, compile_)
        if compile_.keep and stage.text is not None:
            compile_.note(stage.name, stage.text(value))
    return value


def run_passes(pipeline: str, module: ir.Module, failure: str) -> None:
    """Run MLIR's passes on a module, in place.

    Raises LoweringError, whose message begins with ``failure``, where a pass fails.
    """
    from mlir import ir
    from mlir.passmanager import PassManager

    from ..dialect.mlir.context import first_diagnostic

    try:
        PassManager.parse(pipeline, module.context).run(module.operation)
    except ir.MLIRError as error:
        raise LoweringError(f"{failure}: {first_diagnostic(error)[0]}") from error


def _unknown(stage: str, names: Sequence[str]) -> LoweringError:
    return LoweringError(f"there is no stage {stage!r} here", hint=f"use one of {', '.join(names)}")


# --- the stages that all targets share --------------------------------------------------------


def _to_linalg(function: Program, compile_: KernelCompile) -> ir.Module:
    from .linalg.to_linalg import to_linalg

    with compile_.timed("linalg"):
        return to_linalg(function)


def _graph_text(function: Program) -> str:
    from ..dialect.ir.program import Module

    return Module(function).to_mlir()


GRAPH = Stage("graph", lambda function, compile_: function, _graph_text)
LINALG = Stage("linalg", _to_linalg)
