"""Draws of random numbers in emitted code: one call in front of the kernels, which can be taken back.

What a call draws it draws once. So a leaf draws when all tests of arguments have passed; where it leaves the call to
Python behind that, as for a void run, generators get their states back first, and Python draws the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...dialect.ir.dtypes import dtype_of
from ..dispatch.effect_leaf import object_at
from ..dispatch.leaf_spec import HostStep
from ..dispatch.leaf_values import array_of
from ..dispatch.refs import FromHost
from ..memory.offsets import Refused
from .drawing import Drawing

if TYPE_CHECKING:
    from ...dialect.importers.numpy.capture.trace import Trace
    from ..dispatch.arguments import CallArguments
    from ..tiers.choice import AnyExecutor


def draw_in_emitted_code(trace: Trace, arguments: CallArguments, executor: AnyExecutor) -> None:
    """Add what a graph draws to the inputs in ``arguments``; raises Refused for draws that Python alone can do.

    The graph is one whose generators are no arguments; ``executor`` is its own.
    """
    if not Drawing(trace, (), {}).can_undo:
        raise Refused("a random generator keeps more than a state that can be restored")
    if any(isinstance(draw.kind, type) for draw in trace.draws):
        raise Refused("a draw is a Python number")
    objects = tuple(map(object_at, arguments.values))
    # Numbers that no value of a graph has: each plan of the graph has its own.
    places = [~k for k in range(len(trace.draws))]
    for place, draw in zip(places, trace.draws, strict=True):
        dtype, rank = draw.kind
        arguments.values.append(array_of(FromHost(place), dtype_of(dtype).numpy, rank))

    def drawn(*inputs: Any) -> tuple:
        drawing = Drawing(trace, (), {})
        return *drawing.run(inputs), drawing

    def take_back(results: tuple) -> None:
        results[-1].take_back(executor)  # Python draws other numbers where another thread has drawn since

    arguments.drawing = HostStep(drawn, (), tuple(places), objects, take_back)
