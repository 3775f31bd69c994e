"""Draws of random numbers in emitted code: one call in front of the kernels, which can be taken back.

What a call draws it draws once. So a leaf draws when all tests of arguments have passed; where it leaves the call to
Python behind that, as for a void run, generators get their states back first, and Python draws the same numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...dialect.importers.numpy.python.generators import restores
from ..dispatch.effect_leaf import object_at
from ..dispatch.host_calls import drawn_number, drawn_value
from ..dispatch.leaf_spec import HostStep
from ..memory.offsets import Refused
from .drawing import Drawing

if TYPE_CHECKING:
    from ...dialect.importers.numpy.capture.trace import Trace
    from ..dispatch.arguments import CallArguments
    from ..tiers.choice import AnyExecutor

_KEEPS_MORE = "a random generator keeps more than a state that can be restored"


def draw_in_emitted_code(trace: Trace, arguments: CallArguments, executor: AnyExecutor) -> None:
    """Add what a graph draws to the inputs in ``arguments``; raises Refused for draws that Python alone can do.

    Which generators are arguments is for each call to say; ``executor`` is that of the graph.
    """
    fixed = [draw.generator for draw in trace.draws if draw.argument is None]
    if not all(map(restores, fixed)):
        raise Refused(_KEEPS_MORE)
    (_, _, positional), (_, names, _) = trace.in_tree.spec[2]
    # Where the arguments that draw are among all, those by name behind those by position.
    passed = list(dict.fromkeys(draw.argument for draw in trace.draws if draw.argument is not None))
    positions = [place if isinstance(place, int) else len(positional) + names.index(place) for place in passed]
    objects = (*positions, *map(object_at, arguments.values))
    values = [drawn_value(k, draw.kind) for k, draw in enumerate(trace.draws)]
    arguments.values += values

    def drawn(*objects: Any) -> tuple:
        drawing = Drawing(trace, dict(zip(passed, objects, strict=False)))
        if not drawing.can_undo:
            raise Refused(_KEEPS_MORE)  # Python does the call
        return *drawing.run(objects[len(passed) :]), drawing

    def take_back(results: tuple) -> None:
        results[-1].take_back(executor)  # Python draws other numbers where another thread has drawn since

    arguments.drawing = HostStep(drawn, (), tuple(map(drawn_number, range(len(values)))), objects, take_back)
