"""Functions around another one, which has the graph: what is told of them is what that tells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .function import GraphFunction

if TYPE_CHECKING:
    from ..explain.state import DebugState, ExecutorState
    from ..tiers.keyed import KeyedState


class OuterFunction:
    """Family of functions that prepare the arguments of a jitted function, and what it gives."""

    _function: GraphFunction  # the one that was called last

    def state(self) -> ExecutorState:
        """Tier, specialisations, counters and reasons; see `GraphFunction.state`."""
        return self._function.state()

    def debug_state(self) -> DebugState | KeyedState:
        """A snapshot of the graph used last; see `GraphFunction.debug_state`."""
        return self._function.debug_state()

    def explain(self) -> str:
        """Text that says which parts run as native code, and why others do not."""
        return self._function.explain()

    def ir(self, stage: str = "optimized", specialization: int = 0) -> str:
        """IR text of a stage of the graph used last; see `GraphFunction.ir`."""
        return self._function.ir(stage, specialization)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for background work, at most ``timeout`` seconds; returns whether all has ended."""
        return self._function.wait(timeout)

    def flush(self) -> None:
        """Drop all profiles, plans and kernels."""
        self._function.flush()
