"""Cache keys: everything on which an entry depends, as named parts.

The names let the explanation of a miss say which part differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from ....dialect.dataclass import dataclass
from ...settings.digest import blake2b
from ...settings.fingerprint import versions
from ..user_extensions import users_own
from .installation import host_target, sources
from .source_locations import SourceLocations

if TYPE_CHECKING:
    from ..request import CompileRequest

_PACKAGE = __name__.partition(".")[0]
_SHORT = 80  # characters up to which a part's value is shown in messages


@dataclass(frozen=True)
class Key:
    """A cache key; ``parts``: name -> text, where a digest stands for a long text."""

    parts: dict[str, str]

    @cached_property
    def digest(self) -> str:
        """The digest of all parts, which is the name of the entry."""
        text = json.dumps(self.parts, sort_keys=True)
        return _digest(text)

    def differing(self, other: Key) -> list[str]:
        """Names of the parts that differ, in the order of this key."""
        names = dict.fromkeys((*self.parts, *other.parts))
        return [name for name in names if self.parts.get(name) != other.parts.get(name)]


def key_of(request: CompileRequest, places: SourceLocations | None = None) -> Key:
    """The key of a request.

    The key does not contain source locations, but it contains which ops share a location; see
    `source_locations`.
    """
    target, places = request.target or host_target(), places or SourceLocations.of(request.ir)
    return Key(
        {
            "ir": _digest(places.bare),
            "locations": _digest(" ".join(map(str, places.indices))),
            "pipeline": request.pipeline,
            "options": f"keep_stages={request.keep_stages} verify_each={request.verify_each} "
            f"in_place={request.in_place} exact={request.exact} check={request.check} "
            f"measure={request.measure}",
            "triple": target.triple,
            "cpu": target.cpu,
            "features": target.features,
            "gpu": f"{target.gpu} {target.gpu_image}".strip(),
            **_environment(),
        }
    )


def profile_key(graph: SourceLocations, arguments: str, history: str, runs: int, device: str) -> Key:
    """The key of a graph's profile.

    Args:
        graph: the graph's text with its source locations.
        arguments: dtypes and ranks for which the graph is valid; the graph does not contain them.
        history: text of the types for which outer executors have specialised the graph.
        runs: number of recorded runs.
        device: the device of the graph's values.
    """
    return Key(
        {
            "profile": _digest(graph.bare),
            "arguments": arguments,
            "history": history,
            "profiled_runs": str(runs),
            "device": device,
            **_environment(),
        }
    )


def _environment() -> dict[str, str]:
    """The parts that are the same for all compiles of this installation."""
    return {**versions(), "sources": sources()}


def outdated(key: Key) -> list[str]:
    """Parts by which a key belongs to another installation; no lookup of this one finds it."""
    return [name for name, text in _environment().items() if key.parts.get(name) != text]


def _digest(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def obstacle(request: CompileRequest) -> str:
    """The reason why the result of a request may not be cached; "" = it may.

    User-defined passes, pipelines and ops can change without any change of the key.
    """
    if request.dump:
        return "graphs are dumped at every pass, so that each has to run"
    own = users_own(request)
    return f"{own} is not part of {_PACKAGE}" if own else ""


def nearest(key: Key, others: Iterable[Key]) -> tuple[Key, list[str]] | None:
    """The most similar key, and the names of the parts that differ; the first one of a tie.

    A key of the same graph is nearer than any key of another graph.
    """
    best: tuple[Key, list[str]] | None = None
    for other in others:
        differing = key.differing(other)
        if best is None or _distance(differing) < _distance(best[1]):
            best = other, differing
    return best


def _distance(differing: list[str]) -> tuple[bool, int]:
    return "ir" in differing, len(differing)


def describe(key: Key, other: Key, differing: list[str]) -> str:
    """The difference of two keys, in words."""
    if "ir" in differing:
        # The locations of another graph differ anyway, so they explain nothing.
        differing = [name for name in differing if name != "locations"]
    return "; ".join(_describe(name, key.parts.get(name, ""), other.parts.get(name, "")) for name in differing)


def _describe(name: str, here: str, there: str) -> str:
    if name == "features":
        ours, theirs = set(here.split(",")), set(there.split(","))
        only = (("here", ours - theirs), ("there", theirs - ours))
        texts = [f"{','.join(sorted(names))} {where}" for where, names in only if names]
        return f"features ({', '.join(texts)})"
    if name == "profile":
        return "the graph"
    if name in ("ir", "locations", "sources"):
        return name
    return f"{name} ({_shown(here, there)} here, {_shown(there, here)} there)"


def _shown(text: str, other: str) -> str:
    """The text, or the part of a long text around the first difference from ``other``."""
    if len(text) <= _SHORT:
        return repr(text)
    same = next((k for k, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 0)
    start = max(0, same - 20)
    end = start + _SHORT
    return ("…" if start else "") + repr(text[start:end]) + ("…" if end < len(text) else "")
