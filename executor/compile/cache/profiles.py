"""Profiles as entries: what was observed of a graph, for processes that have yet to call it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from ....dialect.errors import IRError
from ....dialect.ir.device import HOST
from ....dialect.ir.types import TensorType, type_from_mlir, type_to_mlir
from ...interpret.record import Observations
from ...interpret.size_history import Types
from .entry import CorruptEntry
from .key import Key, profile_key
from .source_locations import Places

_SECTION = "profile"


@dataclass(frozen=True)
class Profile:
    """What a graph is specialised by.

    Attributes:
        observed: by its observers, in all recorded runs.
        inputs: types of the tensors among the inputs of each kind of call that was recorded.
    """

    observed: Observations
    inputs: tuple[Types, ...]

    def to_sections(self) -> dict[str, bytes]:
        """As named bytes; inverse of `from_sections`."""
        inputs = [list(map(type_to_mlir, types)) for types in self.inputs]
        return {_SECTION: json.dumps({**self.observed.to_json(), "inputs": inputs}).encode()}

    @classmethod
    def from_sections(cls, sections: dict[str, bytes]) -> Profile:
        """What `to_sections` wrote; raises CorruptEntry for anything else."""
        try:
            data = json.loads(sections[_SECTION])
            inputs = tuple(tuple(map(_tensor_type, types)) for types in data["inputs"])
            return cls(Observations.from_json(data), inputs)
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise CorruptEntry(f"{type(error).__name__}: {error}") from error


def _tensor_type(text: Any) -> TensorType:
    found = type_from_mlir(text)
    if not isinstance(found, TensorType):
        raise IRError(f"{text} is not the type of a tensor")
    return found


def key_of_graph(
    text: str, history: tuple[Types, ...], runs: int, device: str = HOST, arguments: str = ""
) -> Key:
    """What the profile of a graph is stored under.

    Args:
        text: the graph as imported, as `Module.to_mlir` prints it.
        history: what executors before this one have specialised it for.
        runs: how many are recorded.
        device: where its values are at home.
        arguments: dtypes and ranks that it holds for, as far as known.
    """
    levels = (" ".join(map(type_to_mlir, types)) for types in history)
    return profile_key(Places.of(text), arguments, "; ".join(levels), runs, device)


def is_profile(key: Key) -> bool:
    """True for keys of profiles, rather than of compiles."""
    return "profile" in key.parts
