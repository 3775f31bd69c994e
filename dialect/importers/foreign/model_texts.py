"""What a model takes and gives besides arrays: texts, and numbers by names, around a graph of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dataclass import dataclass
from ...errors import ArgumentError

if TYPE_CHECKING:
    from .foreign_graph import ForeignGraph

Keys = tuple[Any, ...]  # integers or texts


@dataclass(frozen=True)
class ModelTexts:
    """The vocabulary of a model, in whose place its graph has integers, and where these are texts outside.

    Attributes:
        words: the vocabulary.
        places: of the words in it.
        arguments: the names of the arguments that are texts.
        results: of each result, None for an array, ``"texts"``, or the keys of dictionaries, of which each row of an
            array is one.
        prologue: what Python computes of texts ahead of a call; None = nothing.
        handed: the names of the arguments of the graph that are its results.
    """

    words: tuple[str, ...]
    places: dict[str, int]
    arguments: frozenset[str]
    results: tuple[str | Keys | None, ...]
    prologue: ForeignGraph | None = None
    handed: tuple[str, ...] = ()

    @property
    def is_inside(self) -> bool:
        """True if arguments and results are the graph's: no text leaves it."""
        return not self.arguments and all(kind is None for kind in self.results)

    def encoded(self, name: str, x: Any, others: dict[str, int]) -> np.ndarray:
        """An argument of texts as their places; ``others`` gets those of texts that the vocabulary lacks.

        Raises ArgumentError for anything but an array of texts.
        """
        if not isinstance(x, np.ndarray) or x.dtype.kind not in "OUT":
            kind = f"an array of {x.dtype}" if isinstance(x, np.ndarray) else f"of type {type(x).__name__}"
            raise ArgumentError(
                f"{name} is {kind}, and the model takes an array of texts", hint=f"pass np.array({name}, object)"
            )
        places, first = self.places, len(self.words)
        codes = []
        for text in x.ravel().tolist():
            place = places.get(text) if isinstance(text, str) else None
            if place is None:
                if not isinstance(text, str):
                    raise ArgumentError(f"{name} holds {text!r:.40}, and the model takes texts")
                place = others.setdefault(text, first + len(others))
            codes.append(place)
        return np.array(codes, np.int64).reshape(x.shape)

    def decoded(self, results: Sequence[Any], others: dict[str, int]) -> tuple[Any, ...]:
        """Results of the graph as those of the model: texts as arrays of objects, dictionaries in a list."""
        return tuple(self._decoded(kind, x, others) for kind, x in zip(self.results, results, strict=True))

    def _decoded(self, kind: str | Keys | None, x: Any, others: dict[str, int]) -> Any:
        if kind is None:
            return x
        if kind == "texts":
            words = np.array([*self.words, *others], object)
            return np.asarray(words[np.asarray(x)], object)
        rows = np.atleast_2d(np.asarray(x)).tolist()
        return [dict(zip(kind, row, strict=True)) for row in rows]
