"""Releasing what only profiling needed, once a graph is optimised (R1.13)."""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Callable

from ..dialect.program import Module
from .knobs import knobs

Clock = Callable[[], float]


class Graph:
    """A graph that can be put away, packed, and taken out again."""

    def __init__(self, module: Module) -> None:
        self._module: Module | None = module
        self._packed = b""

    @property
    def is_packed(self) -> bool:
        """True after `pack`, until `keep`."""
        return self._module is None

    def get(self) -> Module:
        """The graph; a packed one is unpacked anew, and stays packed."""
        return self._module if self._module is not None else self._unpack()

    def pack(self) -> None:
        """Keep a compressed private copy only, from which a flush can start over."""
        if self._module is not None:
            self._packed = zlib.compress(pickle.dumps(self._module))
            self._module = None

    def keep(self) -> None:
        """Undo `pack`."""
        if self._module is None:
            self._module, self._packed = self._unpack(), b""

    def _unpack(self) -> Module:
        # Only ever what `pack` wrote in this process.
        return pickle.loads(zlib.decompress(self._packed))


class ReleaseTimer:
    """Says when an optimised executor may let go; whether it does is settled when it optimises.

    The ``release_profiling_graph`` knob is read once per optimisation rather than per call: the
    fast path then tests one attribute.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.created: int | None = None
        self.pending = False

    def stamp(self) -> None:
        """Note the creation of the optimised plan, in whole seconds."""
        self.created = int(self._clock())
        self.pending = knobs.release_profiling_graph

    def due(self) -> bool:
        """True if strictly more than the delay has passed since the stamp, and nothing is done."""
        if not self.pending or self.created is None:
            return False
        return self._clock() - self.created > knobs.release_delay_seconds

    def done(self) -> None:
        """Nothing is left to release."""
        self.pending = False

    def reset(self) -> None:
        """Forget the stamp."""
        self.created, self.pending = None, False
