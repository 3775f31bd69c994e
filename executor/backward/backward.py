"""`Backward`: a captured run, as compilers are given it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.errors import ArgumentError
from ...dialect.ir.program import Module
from ...dialect.ops.backward import CallBackward, CallHook
from ..interpret.evaluate import Evaluator
from .capture import Captured

if TYPE_CHECKING:
    from .compile import BackwardFunction, Compiled


class Backward:
    """A captured backward run: a graph on five lists (R4.13).

    Attributes:
        name: ``CompiledAutograd`` and the number of the capture.
        reasons: why it was captured.
        signature: dtypes and ranks that the graph holds for, in words.
        stages: the graph before and after finishing.
        changed: how many ops each step of finishing has moved or removed.
    """

    def __init__(
        self, name: str, captured: Captured, reasons: Sequence[str], signature: str
    ) -> None:
        self.name, self.reasons, self.signature = name, tuple(reasons), signature
        self.captured = captured
        self.stages: dict[str, Module] = {}
        self.changed: dict[str, int] = {}
        self.runner: Compiled | None = None
        self._evaluator: Evaluator | None = None

    @property
    def module(self) -> Module:
        """The graph."""
        return self.captured.module

    @property
    def function(self) -> BackwardFunction:
        """The graph as a function of Profuse's, with `state`, `explain`, `ir` and `wait`.

        Raises ArgumentError if another compiler runs it.
        """
        if self.runner is None:
            raise ArgumentError(
                f"{self.name} is run by a compiler of your own",
                hint="leave compiler= away, and Profuse runs it",
            )
        return self.runner.function

    def ir(self, stage: str = "finished") -> str:
        """The IR text of a stage, ``"captured"`` or ``"finished"``; ArgumentError for another."""
        if stage not in self.stages:
            raise ArgumentError(f"there is no stage {stage!r}", hint='"captured" or "finished"')
        return self.stages[stage].to_mlir(locations=False)

    def interpret(
        self, inputs: list, sizes: list, scalars: list, hooks: list, packed_data: list
    ) -> Sequence[Any]:
        """Run the graph op by op; a compiler may return this method."""
        if self._evaluator is None:
            self._evaluator = Evaluator(self.module.main, self.module)
        return self._evaluator([inputs, sizes, scalars, hooks, packed_data])

    def about(self) -> list[str]:
        """Sentences on why the run was captured, and where it calls code of users."""
        found = [f"{self.name} was captured, as there was a {reason}." for reason in self.reasons]
        instrs = self.module.main.body.instrs
        for k, instr in enumerate(instrs):
            if instr.op in (CallHook, CallBackward):
                what = instr.attrs.get("hook_type", "a gradient of the user's")
                origin = instr.attrs["origin"]
                found.append(f"Op {k} of {len(instrs)} calls {what}, of {origin}.")
        return found

    def explain(self) -> str:
        """What was captured and why, how it is finished, and how it runs."""
        steps = [f"{name} has changed {n} ops." for name, n in self.changed.items()]
        rest = self.about() if self.runner is None else [self.runner.function.explain()]
        return "\n".join([*steps, *rest])


__all__ = ["Backward"]
