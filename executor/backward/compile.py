"""The compiler that captured runs have by default: Profuse's executors (R4.41, R4.42)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...dialect.analysis.backward_lists import INPUTS, lowered
from ...dialect.analysis.sections import sections
from ...dialect.analysis.tidy import tidied
from ...dialect.ir.program import Module
from ...dialect.ops.backward import RUNNING, CaptureFrame
from ..plans.plan_options import Options
from ..settings.knobs import knobs
from ..tape.array import add_gradients
from .captured_function import BackwardFunction
from .runner import CallsRow, Runner, SectionRow, in_sections

if TYPE_CHECKING:
    from .captured_backward import Backward
    from .watch import SavedWatch


class Compiled:
    """Runs a captured graph by executors of its own: profiled, fused, guarded, kept on disk.

    A long graph is cut into sections; those that are equal have one executor.

    Attributes:
        function: what reports show, with the executors.
    """

    def __init__(self, graph: Backward) -> None:
        lowering = lowered(graph.module)
        program = tidied(lowering.program)
        options = Options(name=graph.name, background=knobs.background, arguments=graph.signature, donate=("inputs",))
        self.function = BackwardFunction(Module(program), options, graph.about())
        self._inputs = lowering.inputs
        # Where all are arrays, which is usual, and quicker.
        places = [k for which, k in lowering.inputs if which == INPUTS]
        usual = len(places) == len(lowering.inputs) > 1
        self._pick = itemgetter(*places) if usual else None
        self._leaves = lowering.leaves
        self._has_frame = lowering.frame
        self._arrays = [None] * len(graph.captured.arrays)  # in place of those
        cut = sections(program)
        if len(cut) == 1:
            executor = self.function.executor
            # What nobody else holds any more, as saved arrays of released nodes (R4.29, R4.42).
            donated = [k for k, (which, _) in enumerate(lowering.inputs) if which == INPUTS]
            self._runners = [Runner(self.function, executor, donated)]
            self._rows: list[SectionRow | CallsRow] = []
        else:
            self._runners, self._rows, self._results = in_sections(self.function, options, cut)

    def is_ready(self) -> bool:
        """True if a run is better given to the graph than to the eager tape.

        In the background, that is while it is profiled, and once it is compiled.
        """
        # Not as `all` would do: each that has been profiled asks for its compile.
        return False not in [runner.is_ready() for runner in self._runners]

    def prepare(self) -> None:
        """Have executors make the plans for the next run, which would wait for that else."""
        for runner in self._runners:
            runner.prepare()

    def __call__(
        self, inputs: list, sizes: list, scalars: list, hooks: list, packed_data: list, watch: SavedWatch | None = None
    ) -> Sequence[Any]:
        """The gradients that are asked for; those of leaves are added to them.

        ``watch``: of a run with hooks.
        """
        if self._pick is not None:
            arguments = list(self._pick(inputs))
        else:
            lists = inputs, sizes, scalars
            arguments = [lists[which][index] for which, index in self._inputs]
        leaves = [inputs[k] for k in self._leaves]
        if self._has_frame:
            assert watch is not None
            inputs[: len(self._arrays)] = self._arrays  # code of users finds leaves there, and no arrays
            frame = CaptureFrame(inputs, hooks, packed_data, watch.written, watch.check, range(len(hooks)))
            before, RUNNING.frame = RUNNING.frame, frame
            try:
                results = self._run(arguments, frame)
            finally:
                RUNNING.frame = before
        else:
            inputs.clear()
            results = self._run(arguments, None)
        del arguments
        add_gradients(leaves, results)
        for runner in self._runners:
            runner.advance()
        return results

    def _run(self, values: list, frame: CaptureFrame | None) -> list:
        """Run the graph, or its sections one after another; ``values`` gets what these compute."""
        if not self._rows:
            return self._runners[0](values)
        for row in self._rows:
            row(values, frame)
        return list(self._results(values))


def compiled(graph: Backward) -> Compiled:
    """The runner of a captured graph."""
    graph.runner = Compiled(graph)
    return graph.runner
