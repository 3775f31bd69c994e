"""Profiles as cache entries, for later processes that call the same graph."""

from __future__ import annotations

import json
from typing import Any

from ....dialect.dataclass import dataclass
from ....dialect.errors import IRError
from ....dialect.ir.device import HOST
from ....dialect.ir.types import TensorType, type_from_mlir, type_to_mlir
from ...interpret.record import Observations
from ...interpret.size_history import Types
from .cache_key import Key, profile_key
from .entry import CorruptEntry
from .source_locations import SourceLocations

_SECTION = "profile"


@dataclass(frozen=True)
class StoredProfile:
    """The profile of a graph.

    Attributes:
        observed: what its observers have recorded in all runs.
        inputs: for each recorded call with new input types, the types of its tensor inputs.
    """

    observed: Observations
    inputs: tuple[Types, ...]

    def to_sections(self) -> dict[str, bytes]:
        """The profile as named sections of bytes; inverse of `from_sections`."""
        inputs = [list(map(type_to_mlir, types)) for types in self.inputs]
        return {_SECTION: json.dumps({**self.observed.to_json(), "inputs": inputs}).encode()}

    @classmethod
    def from_sections(cls, sections: dict[str, bytes]) -> StoredProfile:
        """The profile that `to_sections` wrote; raises CorruptEntry for other sections."""
        try:
            data = json.loads(sections[_SECTION])
            inputs = tuple(tuple(map(_tensor_type, types)) for types in data["inputs"])
            return cls(Observations.from_json(data), inputs)
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise CorruptEntry(f"{type(error).__name__}: {error}") from error


def _tensor_type(text: Any) -> TensorType:
    type_ = type_from_mlir(text)
    if not isinstance(type_, TensorType):
        raise IRError(f"{text} is not the type of a tensor")
    return type_


def key_of_graph(text: str, history: tuple[Types, ...], runs: int, device: str = HOST, arguments: str = "") -> Key:
    """The key of a graph's profile.

    Args:
        text: the graph as imported, as `Module.to_mlir` prints it.
        history: the input types for which outer executors have specialised the graph.
        runs: number of recorded runs.
        device: the device of the graph's values.
        arguments: dtypes and ranks for which the graph is valid; "" = unknown.
    """
    levels = (" ".join(map(type_to_mlir, types)) for types in history)
    return profile_key(SourceLocations.of(text), arguments, "; ".join(levels), runs, device)


def is_profile(key: Key) -> bool:
    """True for the key of a profile, False for the key of a compile."""
    return "profile" in key.parts
