"""`Backward`: a captured run, as compilers are given it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dialect.ir.program import Module
from ..interpret.evaluate import Evaluator
from .capture import Captured


class Backward:
    """A captured backward run: a graph on five lists (R4.13).

    Attributes:
        name: ``CompiledAutograd`` and the number of the capture.
        module: the graph.
        reasons: why it was captured.
        stages: its text before and after finishing, and after each step that has changed it.
    """

    def __init__(self, name: str, captured: Captured, reasons: list[str]) -> None:
        self.name, self.reasons = name, reasons
        self.captured = captured
        self.stages: dict[str, Module] = {}
        self.removed = 0
        self._evaluator: Evaluator | None = None

    @property
    def module(self) -> Module:
        """The graph."""
        return self.captured.module

    def ir(self, stage: str = "finished") -> str:
        """The IR text of a stage: ``"captured"``, or ``"finished"``."""
        module = self.stages.get(stage, self.module)
        return module.to_mlir(locations=False)

    def interpret(
        self, inputs: list, sizes: list, scalars: list, hooks: list, packed_data: list
    ) -> Sequence[Any]:
        """Run the graph op by op; a compiler may return this method."""
        if self._evaluator is None:
            self._evaluator = Evaluator(self.module.main, self.module)
        return self._evaluator([inputs, sizes, scalars, hooks, packed_data])


__all__ = ["Backward"]
