"""Texts of ONNX models: graphs have their places in the model's vocabulary, and no texts.

The vocabulary holds all texts among the constants and attributes of a model. A text that a call brings along and
that is none of these has a place behind them, which equal texts of the call share. So tables and comparisons of
texts are those of integers; what texts consist of is not known to a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ....errors import TraceError
from ..array_values import captured, is_constant, item_of
from ..size_values import as_array

UNKNOWN = "_Unused"  # what tables of texts give where nothing is said
_TEXT_KINDS = "OSUT"

# Operators that take elements of texts, and the operands that are texts; None = all of them.
_OF_THE_FIRST = (
    *("Compress", "Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Reshape", "Slice", "Split"),
    *("Squeeze", "Tile", "Transpose", "Unsqueeze", "ai.onnx.ml.ArrayFeatureExtractor"),
)
MOVING: dict[str, tuple[int, ...] | None] = {
    "Concat": None,
    "Identity": None,
    "Where": (1, 2),
    **dict.fromkeys(_OF_THE_FIRST, (0,)),
}
# Those that look at texts, and give none.
_READING: dict[str, tuple[int, ...] | None] = {"Equal": None, "Shape": (0,), "Size": (0,)}


class Texts:
    """Texts as their places in the vocabulary.

    Attributes:
        places: an array of int64, traced or not.
        is_open: a call may have brought texts that the vocabulary lacks.
    """

    __slots__ = ("is_open", "places")

    def __init__(self, places: Any, *, is_open: bool = False) -> None:
        self.places, self.is_open = places, is_open


def places_of(call: Any, texts: Sequence[str]) -> np.ndarray:
    """The places of constant texts of the model; raises TraceError for bytes that are no UTF-8."""
    places: Mapping[str, int] = call.interpreter.graph.texts.places
    for text in texts:
        if text not in places:
            raise TraceError(f"the text {text!r:.40} of the model is no UTF-8")
    return np.array([places[text] for text in texts], np.int64)


def chosen_texts(call: Any, texts: Sequence[str], indices: Any) -> Texts:
    """Constant texts of the model by indices."""
    return Texts(item_of(places_of(call, texts), indices))


def by_place(call: Any, x: Texts, texts: Sequence[str], values: np.ndarray, other: Any) -> Any:
    """The value of each text: that of the first of ``texts`` that it is, or the other one."""
    count = len(call.interpreter.graph.texts.places)
    table = np.full(count + 1, other, values.dtype)
    table[places_of(call, texts)[::-1]] = values[::-1]
    places = np.minimum(x.places, np.int64(count)) if x.is_open else x.places
    return item_of(table, places)


def as_texts(call: Any, x: Any) -> Any:
    """Constant texts of the model as `Texts`; all else as it is."""
    if isinstance(x, (str, bytes)) and not isinstance(x, np.generic):
        return Texts(captured(places_of(call, [x])[0]))  # type: ignore[list-item]
    if is_constant(x) and x.dtype.kind in _TEXT_KINDS:
        places = places_of(call, np.ravel(x).tolist()).reshape(np.shape(x))
        return Texts(captured(places[()] if places.ndim == 0 else places))
    return x


def apart(call: Any, operands: tuple) -> tuple[tuple, bool, bool]:
    """Operands of an operator that knows no texts, with places for these; whether its results are texts; and open.

    Raises TraceError for operators that do more with texts than to move them.
    """
    numbers = [k for k, x in enumerate(operands) if type(x) is Texts]
    if not numbers:
        return operands, False, False
    name = call.node.op
    table = MOVING if name in MOVING else _READING
    meant = table.get(name, ())
    wanted = [*range(len(operands))] if meant is None else [*meant]
    if not wanted or numbers != wanted:
        raise TraceError(f"ONNX's operator {name} of texts is not supported")
    is_open = any(operands[k].is_open for k in numbers)
    return tuple(x.places if type(x) is Texts else x for x in operands), table is MOVING, is_open


def together(result: Any, *, is_open: bool) -> Any:
    """Places that an operator has moved, as texts."""
    if isinstance(result, tuple):
        return type(result)(together(x, is_open=is_open) for x in result)
    return Texts(as_array(result), is_open=is_open)
