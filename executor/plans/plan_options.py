"""The settings of one function."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...dialect.dataclass import dataclass
from ..interpret.evaluate import Adapt
from ..settings.knobs import knobs
from ..settings.strategy import Strategy
from .processor import HOST, Processor

if TYPE_CHECKING:
    from ...dialect.ir.program import Module
    from ..functions.saved.file import SavedFile


@dataclass(frozen=True)
class Options:
    """The settings of one function; None = the process-wide setting at construction."""

    strategy: Strategy | None = None
    profiled_runs: int | None = None
    name: str = "main"
    strict: bool = False  # the traced function asked for strict fusion itself (R1.46)
    background: bool = False  # compile in a worker while calls go on
    device: str | None = None  # the user's choice; None = the device of the arguments
    processor: Processor = HOST  # the processor on which the graph's values are
    arguments: str = ""  # dtypes and ranks for which the graph is valid; "" = unknown
    recall: bool = True  # use stored profiles; a flush sets this to False
    donate: tuple[str, ...] = ()  # parameters whose arrays calls may overwrite
    writes: bool = False  # the traced function writes to arrays of its caller's
    saved: SavedFile | None = None  # a file that is searched for profiles and compiles first
    unsupported: str | None = None  # what becomes of calls without a graph; None = the knob
    gradients: bool = False  # calls are noted on the tape; see `plans.on_tape`
    noted: str = ""  # of such calls: for each input, 1 if it requires gradients, else 0; "" = any

    @property
    def recorded_runs(self) -> int:
        """Runs that are recorded before a graph is specialised; the one behind them has the optimised plan."""
        return knobs.profiled_runs if self.profiled_runs is None else self.profiled_runs

    def of_fallback(self, callee: str) -> Options:
        """The options of a fallback executor; it may not overwrite its caller's values."""
        return replace(self, name=f"{self.name}/{callee}", donate=())

    def of_half(self, name: str) -> Options:
        """The options of an executor of one half of a differentiable subgraph."""
        return replace(self.of_fallback(name), gradients=False, noted="")

    def on_tape(self, noted: str, number: int) -> Options:
        """The options of an executor for calls of a graph that are noted on the tape.

        ``noted``: see the attribute; ``number``: how many such executors the graph has had before.
        """
        name = f"gradients_{number}" if number else "gradients"
        return replace(self.of_fallback(name), gradients=True, noted=noted)

    def adapter(self, module: Module) -> Adapt | None:
        """Adapts the evaluation of ops to the values of the graph; None = not needed."""
        if self.gradients:
            from .on_tape import on_tape

            return on_tape(module)
        return self.processor.adapter(module)
