"""Arrays of the tape among the arguments of a call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.errors import ArgumentError, GradientError
from ...dialect.ir.device import HOST
from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.trees.pytree import TreeDef, flatten, unflatten
from ..memory.output_pool import readable
from ..routing.ledger import NoGraph
from ..routing.verdict import Cause
from ..settings.events import Counters
from ..tape.array import Array
from .device_arguments import home_of

if TYPE_CHECKING:
    from .graphs import Graphs
    from .variants import Variant


def graph_on_tape(graphs: Graphs, leaves: list, tree: TreeDef) -> tuple[Variant, list, bool]:
    """The graph of a call with arrays of the tape, which is that of the call with plain arrays.

    Returns also its inputs, and whether they are those of a call with plain arrays, of which `Untaped` makes one on
    the tape. Raises NoGraph for calls that are left to Python.
    """
    taped, plain = taped_inputs(leaves, graphs.own), untaped(leaves)
    variant = graphs.lookup(None, plain, tree, *tree.unflatten(plain), plain=True)
    refused = variant.off_tape() if graphs.source.stands_for_python else None
    if refused is not None:
        if not variant.untaped.serves(leaves):
            graphs.ledger.tell(refused)
            raise NoGraph(Cause.ON_TAPE, refused)
        variant.is_untaped = True
        return variant, [readable(x, graphs.own) for x in plain], True
    # Emitted code does not look at the mode of the caller.
    if not variant.takes_tape and not variant.trace.asks_for_gradients:
        variant.takes_tape = True
        graphs.changes += 1
    return variant, graphs.inputs(variant, taped), False


def untaped(leaves: Sequence[Any]) -> list[Any]:
    """The leaves with plain arrays in place of those of the tape."""
    return [leaf.data if type(leaf) is Array else leaf for leaf in leaves]


def taped_inputs(leaves: Sequence[Any], counters: Counters) -> list[Any]:
    """The leaves as inputs of an executor, those of the tape as they are.

    Raises ArgumentError for arrays of a device beside arrays of the tape.
    """
    if home_of(leaves) != HOST:
        raise ArgumentError(
            f"arrays of the tape are passed together with an array on {home_of(leaves)}",
            hint="the tape is for host arrays; use pf.grad for gradients on a device",
        )
    return [leaf if type(leaf) is Array else readable(leaf, counters) for leaf in leaves]


def detached(leaves: Sequence[Any], name: str) -> list[Any]:
    """The leaves of a call of `into` without the tape.

    Raises GradientError where gradients would be lost: what is written into is no result.
    """
    if gradient_mode() and any(type(x) is Array and x.requires_grad for x in leaves):
        raise GradientError(
            f"{name}.into is given an array that requires gradients, which it would lose",
            hint="call the function itself, or write into an array under pf.no_grad()",
        )
    return untaped(leaves)


def as_arrays(outputs: Sequence[Any]) -> list[Any]:
    """The results of a call with arrays of the tape: all arrays among them are such."""
    return [Array(y) if isinstance(y, (np.ndarray, np.generic)) and type(y) is not Array else y for y in outputs]


def off_tape(what: str, tree: Any) -> Any:
    """A tree of arguments with arrays of the tape as plain ones.

    Raises ArgumentError for those that require gradients, which ``what`` would not note.
    """
    leaves, structure = flatten(tree)
    for x in leaves:
        if type(x) is Array and x.requires_grad and gradient_mode():
            raise ArgumentError(
                f"pf.{what} is given an array of the tape that requires gradients, and would not "
                "note what it computes of it",
                hint="use pf.gradients on the tape, or pass x.data",
            )
    return unflatten(structure, [x.data if type(x) is Array else x for x in leaves])
