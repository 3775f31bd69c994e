"""The compiler that captured runs have by default: Profuse's executors (R4.41, R4.42)."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...dialect.analysis.backward_lists import INPUTS, lowered
from ...dialect.analysis.tidy import tidied
from ...dialect.errors import InternalError
from ...dialect.ir.program import Module
from ...dialect.ops.backward import RUNNING, Frame
from ..functions.graph_function import LoadedFunction
from ..observe import registry
from ..plans.options import Options
from ..settings.knobs import knobs
from ..tiers.profiling import Executor
from .beside import BESIDE
from .emitted import EmittedRuns

if TYPE_CHECKING:
    from ..explain.state import ExecutorState
    from .backward import Backward


@registry.kind
class BackwardFunction(LoadedFunction):
    """A captured run as a function, for reports and explanations; runs call its executor.

    Args:
        about: says why the run was captured, and what calls code of users where.
    """

    emitted: EmittedRuns | None = None  # its emitted code

    def __init__(self, module: Module, options: Options, about: Sequence[str]) -> None:
        self._about = list(about)
        super().__init__(module, options)

    def state(self) -> ExecutorState:
        """Tier, specialisations, counters and reasons; whether emitted code serves runs."""
        emitted = self.emitted is not None and self.emitted.call is not None
        return replace(super().state(), emitted=emitted)

    def __reduce__(self) -> tuple:
        """Pickle and copy the graph only, without profiles and plans."""
        return BackwardFunction, (self.module, self._options, self._about)

    def _remarks(self) -> list[str]:
        return self._about


class Compiled:
    """Runs a captured graph by an executor of its own: profiled, fused, guarded, kept on disk.

    Attributes:
        function: what reports show, with the executor.
    """

    def __init__(self, made: Backward) -> None:
        found = lowered(made.module)
        options = Options(
            name=made.name, background=knobs.background, arguments=made.signature,
            donate=("inputs",),
        )  # fmt: skip
        module = Module(tidied(found.program))
        self.function = BackwardFunction(module, options, made.about())
        executor = self._executor = self.function._executor
        # What nobody else holds any more, such as saved arrays of released nodes (R4.29, R4.42).
        executor.donated = tuple(k for k, (which, _) in enumerate(found.inputs) if which == INPUTS)
        executor.sole = True
        # What goes through its stages beside the program; None = in the calls.
        in_stages = isinstance(executor, Executor) and options.background
        self._in_stages: Executor | None = executor if in_stages else None  # type: ignore[assignment]
        self._is_busy = False  # a plan is made beside the program
        self._inputs = found.inputs
        # Where all are arrays, which is usual, and quicker.
        places = [k for which, k in found.inputs if which == INPUTS]
        usual = len(places) == len(found.inputs) > 1
        self._pick = itemgetter(*places) if usual else None
        self._leaves = found.leaves
        self._has_frame = found.frame
        self._emitted: EmittedRuns | None = None
        if not found.frame and isinstance(executor, Executor) and module.main.outputs:
            self._emitted = EmittedRuns(
                executor, made.name, len(module.main.outputs), _in_python(self)
            )
            self.function.emitted = self._emitted

    def is_ready(self) -> bool:
        """Whether a run is better given to the graph than to the eager tape.

        In the background, that is while it is profiled, and once it is compiled.
        """
        executor = self._in_stages
        if executor is None or executor.optimized is not None:
            return True
        if self._is_busy or executor.under_way():
            return False
        if executor.record is not None and executor.record.ready:
            self._advance()  # the compile was lost
            return False
        return True

    def prepare(self) -> None:
        """Have the executor make the plan for the next run, which would wait for that else."""
        if self._in_stages is not None:
            self._in_stages.plan()

    def _advance(self) -> None:
        """Have the plan for the next run be made beside the program."""
        self._is_busy = True

        def job() -> None:
            try:
                self.prepare()
            finally:
                self._is_busy = False

        BESIDE.ask(job)

    def __call__(
        self, inputs: list, sizes: list, scalars: list, hooks: list, packed_data: list
    ) -> Sequence[Any]:
        """The gradients that are asked for; those of leaves are added to them."""
        if self._pick is not None:
            given = list(self._pick(inputs))
        else:
            lists = inputs, sizes, scalars
            given = [lists[which][index] for which, index in self._inputs]
        leaves = [inputs[k] for k in self._leaves]
        before = RUNNING.frame
        if self._has_frame:
            for which, index in self._inputs:  # code of users finds leaves there, and no arrays
                if which == INPUTS:
                    inputs[index] = None
            RUNNING.frame = Frame(inputs, hooks, packed_data)
        else:
            inputs.clear()
        try:
            found = self._run(given)
        finally:
            RUNNING.frame = before
        del given
        for k, leaf in enumerate(leaves, len(found) - len(leaves)):
            g = found[k]
            found[k] = None
            if leaf is not None:
                leaf.add_gradient(g, 1)
        executor = self._in_stages
        if executor is not None and executor.optimized is None:
            record = executor.record
            if record is not None and record.ready:
                self._advance()
        return found

    def _run(self, given: list) -> list:
        call = None if self._emitted is None else self._emitted.call
        return self._run_in_python(given) if call is None else list(call(*given))

    def _run_in_python(self, given: list) -> list:
        emitted = self._emitted
        if emitted is not None and emitted.wants(given):
            if self._in_stages is None:
                emitted.emit()
            else:
                BESIDE.ask(emitted.emit)
        return self.function._run(self._executor, given)


def _in_python(runner: Compiled) -> Callable[..., Any]:
    """What emitted code leaves other runs to; it does not keep ``runner`` alive."""
    known = weakref.ref(runner)

    def run(*inputs: Any) -> Any:
        called = known()
        if called is None:
            raise InternalError("a captured run is run whose graph is gone")
        return tuple(called._run_in_python(list(inputs)))

    return run


def compiled(made: Backward) -> Compiled:
    """What runs a captured graph."""
    made.runner = Compiled(made)
    return made.runner


__all__ = ["BackwardFunction", "Compiled", "compiled"]
