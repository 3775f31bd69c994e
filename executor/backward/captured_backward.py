"""`Backward`: a captured run, as compilers are given it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...dialect.analysis.backward_lists import SCALARS
from ...dialect.dataclass import dataclass
from ...dialect.errors import ArgumentError
from ...dialect.ir.program import Module
from ...dialect.ops.backward import CallBackward, CallHook, ListGet
from ..interpret.evaluate import Evaluator
from .capture import Captured

if TYPE_CHECKING:
    from .captured_function import BackwardFunction
    from .compile import Compiled


@dataclass(frozen=True)
class UsersCall:
    """A place at which a captured run calls code of users.

    Attributes:
        position: of the op among those of the finished graph.
        kind: which of the five kinds of hooks it calls (R4.26), as ``"tensor_pre_hook"``, or
            ``"backward"`` for a gradient of the user's (R4.22).
        origin: the node that it belongs to, with its number in the run.
    """

    position: int
    kind: str
    origin: str


class Backward:
    """A captured backward run: a graph on five lists (R4.13).

    Attributes:
        name: ``CompiledAutograd`` and the number of the capture.
        reasons: why it was captured.
        signature: dtypes and ranks that the graph holds for, in words.
        stages: the graph before and after finishing.
        changed: how many ops each step of finishing has moved or removed.
    """

    def __init__(self, captured: Captured, reasons: Sequence[str], signature: str) -> None:
        self.name = captured.module.main.name
        self.reasons, self.signature = tuple(reasons), signature
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
                f"{self.name} is run by a compiler of your own", hint="leave compiler= away, and Profuse runs it"
            )
        return self.runner.function

    def ir(self, stage: str = "finished") -> str:
        """The IR text of a stage, ``"captured"`` or ``"finished"``; ArgumentError for another."""
        if stage not in self.stages:
            raise ArgumentError(f"there is no stage {stage!r}", hint='"captured" or "finished"')
        return self.stages[stage].to_mlir(locations=False)

    def interpret(self, inputs: list, sizes: list, scalars: list, hooks: list, packed_data: list) -> Sequence[Any]:
        """Run the graph op by op; a compiler may return this method."""
        if self._evaluator is None:
            self._evaluator = Evaluator(self.module.main, self.module)
        return self._evaluator([inputs, sizes, scalars, hooks, packed_data])

    @property
    def calls(self) -> tuple[UsersCall, ...]:
        """The places where the graph calls hooks and gradients of users, in order."""
        return tuple(
            UsersCall(k, instr.attrs.get("hook_type", "backward"), instr.attrs["origin"])
            for k, instr in enumerate(self.module.main.body.instrs)
            if instr.op in (CallHook, CallBackward)
        )

    @property
    def scalars(self) -> tuple[tuple[int, str], ...]:
        """The elements of ``scalars`` that are read, each with the node that it is a number of."""
        main = self.module.main
        values = main.inputs[SCALARS]
        return tuple(
            (instr.attrs["index"], instr.attrs["origin"])
            for instr in main.body.instrs
            if instr.op is ListGet and instr.operands[0] == values
        )

    def about(self) -> list[str]:
        """Sentences on why the run was captured, and what it is given and calls besides arrays."""
        sentences = [f"{self.name} was captured: {reason}." for reason in self.reasons]
        sentences += [f"A number of {origin} is an input, scalar {k}." for k, origin in self.scalars]
        count = len(self.module.main.body.instrs)
        for call in self.calls:
            what = "a gradient of the user's" if call.kind == "backward" else call.kind
            sentences.append(f"Op {call.position} of {count} calls {what}, of {call.origin}.")
        return sentences

    def explain(self) -> str:
        """The text that tells what was captured and why, how it is finished, and how it runs."""
        steps = [f"{name} has changed {n} ops." for name, n in self.changed.items()]
        rest = self.about() if self.runner is None else [self.runner.function.explain()]
        return "\n".join([*steps, *rest])


@dataclass(frozen=True)
class AutogradState:
    """A snapshot of what compiled autograd has done in this process.

    Attributes:
        captures: how many runs were captured; each was a miss, for the reasons that its entry in
            ``runs`` has.
        hits: how many runs were served by a graph that an earlier run had been captured as.
        waiting: how many runs were eager, as their graph was captured or compiled beside them.
        runs: what was captured, oldest first.
    """

    captures: int
    hits: int
    waiting: int
    runs: tuple[Backward, ...]

    def explain(self) -> str:
        """The counts, then for each captured run why it was captured, and how it runs."""
        counts = f"Backward runs: {self.captures} captured, {self.hits} served by such graphs"
        counts += f", {self.waiting} eager meanwhile." if self.waiting else "."
        return "\n\n".join([counts, *(run.explain() for run in self.runs)])
