"""Releasing the data that only profiling needs, once a graph is optimised (R1.13)."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable

from ...dialect.ir.program import Module
from ..settings.knobs import knobs

Clock = Callable[[], float]


class ReleasableGraph:
    """A graph that can be compressed in memory and restored."""

    def __init__(self, module: Module) -> None:
        self._module: Module | None = module
        self._packed = b""

    def get(self) -> Module:
        """The graph. A packed graph is unpacked at each call, and stays packed."""
        return self._module if self._module is not None else self._unpack()

    def pack(self) -> None:
        """Keep only a compressed copy, from which a flush can restore the graph."""
        if self._module is not None:
            self._packed = zlib.compress(pickle.dumps(self._module))
            self._module = None

    def keep(self) -> None:
        """Undo `pack`."""
        if self._module is None:
            self._module, self._packed = self._unpack(), b""

    def _unpack(self) -> Module:
        # Safe: the bytes come from `pack` in this process.
        return pickle.loads(zlib.decompress(self._packed))


class _Switch:
    """A copy of the ``release_profiling_graph`` knob that is cheap to read at each plan request.

    `ReleaseTimer.stamp` and each change of the knob update the copy.
    """

    on = False


SWITCH = _Switch()


def _switched(on: bool) -> None:
    SWITCH.on = on


knobs.watch("release_profiling_graph", _switched)


class ReleaseTimer:
    """Decides when an optimised executor may release data; read at each request for a plan (A2).

    Attributes:
        created: when the optimised plan was made, in whole seconds; None = no plan yet.
        done: True once everything that can be released has been released.
    """

    created: int | None
    done: bool

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.reset()

    def stamp(self) -> None:
        """Note the creation of the optimised plan, in whole seconds."""
        self.created = int(self._clock())
        SWITCH.on = knobs.release_profiling_graph

    @property
    def pending(self) -> bool:
        """True while the switch is on and the executor still holds data to release."""
        return SWITCH.on and not self.done and self.created is not None

    def due(self) -> bool:
        """True if a release is `pending` and more than the delay has passed since the stamp."""
        if not self.pending:
            return False
        return self._clock() - (self.created or 0) > knobs.release_delay_seconds

    def reset(self) -> None:
        """Clear the stamp."""
        self.created, self.done = None, False
