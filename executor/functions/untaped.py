"""Calls with arrays of the tape of which the tape notes nothing: they run as those of plain ones.

So do steps of optimisers, which write to parameters under ``no_grad``, and whatever is called while
gradient mode is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.analysis.reach import gradients_reaching, inputs_reaching
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.types import ScalarType
from ..tape.array import Array


class Untaped:
    """The properties of a graph that decide whether such a call may run as one with plain arrays.

    Args:
        trace: the graph.
    """

    def __init__(self, trace: Trace) -> None:
        main = trace.module.main
        outputs = main.outputs[: len(main.outputs) - len(trace.writes)]
        origins, flows = inputs_reaching(main), gradients_reaching(main)
        makers = {v: instr for instr in main.body.walk() for v in instr.results}
        arrays = [v for v in outputs if not isinstance(main.type_of(v), ScalarType)]
        # Python has views there, of arrays whose writes the tape counts.
        self._shares = any(v in makers and makers[v].op.aliases for v in arrays)
        self._origins = [origins.get(v, 0) for v in outputs]
        first = trace.out_tree.leaves
        stored = (outputs[k] for k in (trace.sources or ())[first:] if k >= 0)
        self._stored = _union(origins, [v for v in stored if v in arrays])
        self._noted = -1 if trace.notes_writes else _union(flows, outputs)
        self._asks = trace.asks_for_gradients

    def serves(self, leaves: Sequence[Any]) -> bool:
        """True if the call with these leaves may run with plain arrays."""
        if self._shares:
            return False
        arrays = noted = 0
        for k, x in enumerate(leaves):
            if type(x) is Array:
                arrays |= 1 << k
                noted |= (x.node is not None) << k
        if arrays & self._stored:
            return False  # what is assigned is an array of the tape
        return not (noted & self._noted and (self._asks or gradient_mode()))

    def retaped(self, outputs: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """The outputs of the graph: what is computed of arrays of the tape is one of it."""
        arrays = sum(1 << k for k, x in enumerate(leaves) if type(x) is Array)
        results = list(outputs)
        for k, origins in enumerate(self._origins):
            if origins & arrays and isinstance(results[k], (np.ndarray, np.generic)):
                results[k] = Array(results[k])
        return results


def _union(masks: dict[int, int], values: Sequence[int]) -> int:
    union = 0
    for v in values:
        union |= masks.get(v, 0)
    return union
