"""The compiler that captured runs have by default: Profuse's executors (R4.41, R4.42)."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from ...dialect.analysis.backward_lists import INPUTS, lowered
from ...dialect.analysis.sections import sections
from ...dialect.analysis.tidy import tidied
from ...dialect.ir.program import Module
from ...dialect.ops.backward import RUNNING, Frame
from ..plans.options import Options
from ..settings.knobs import knobs
from ..tape.array import add_gradients
from .function import BackwardFunction
from .runner import Row, Runner, in_sections

if TYPE_CHECKING:
    from .backward import Backward


class Compiled:
    """Runs a captured graph by executors of its own: profiled, fused, guarded, kept on disk.

    A long graph is cut into sections; those that are equal have one executor.

    Attributes:
        function: what reports show, with the executors.
    """

    def __init__(self, made: Backward) -> None:
        found = lowered(made.module)
        program = tidied(found.program)
        options = Options(
            name=made.name, background=knobs.background, arguments=made.signature,
            donate=("inputs",),
        )  # fmt: skip
        self.function = BackwardFunction(Module(program), options, made.about())
        self._inputs = found.inputs
        # Where all are arrays, which is usual, and quicker.
        places = [k for which, k in found.inputs if which == INPUTS]
        usual = len(places) == len(found.inputs) > 1
        self._pick = itemgetter(*places) if usual else None
        self._leaves = found.leaves
        self._has_frame = found.frame
        cut = sections(program)
        if len(cut) == 1:
            executor = self.function._executor
            # What nobody else holds any more, as saved arrays of released nodes (R4.29, R4.42).
            donated = [k for k, (which, _) in enumerate(found.inputs) if which == INPUTS]
            self._runners = [Runner(self.function, executor, donated)]
            self._rows: list[Row] = []
        else:
            self._runners, self._rows, self._results = in_sections(self.function, options, cut)

    def is_ready(self) -> bool:
        """Whether a run is better given to the graph than to the eager tape.

        In the background, that is while it is profiled, and once it is compiled.
        """
        # Not as `all` would do: each that has been profiled asks for its compile.
        return False not in [runner.is_ready() for runner in self._runners]

    def prepare(self) -> None:
        """Have executors make the plans for the next run, which would wait for that else."""
        for runner in self._runners:
            runner.prepare()

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
            watch = RUNNING.watch
            RUNNING.frame = Frame(
                inputs, hooks, packed_data, watch.written, watch.check, range(len(hooks))
            )
        else:
            inputs.clear()
        try:
            found = self._sectioned(given) if self._rows else self._runners[0](given)
        finally:
            RUNNING.frame = before
        del given
        add_gradients(leaves, found)
        for runner in self._runners:
            runner.advance()
        return found

    def _sectioned(self, values: list) -> list:
        """Run the sections one after another; ``values`` gets what they compute."""
        frame = RUNNING.frame if self._has_frame else None
        for row in self._rows:
            row(values, frame)
        return list(self._results(values))


def compiled(made: Backward) -> Compiled:
    """What runs a captured graph."""
    made.runner = Compiled(made)
    return made.runner


__all__ = ["Compiled", "compiled"]
