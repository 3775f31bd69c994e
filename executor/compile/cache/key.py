"""What an entry depends on, as named parts, so that a miss can name the one that differs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from ....lowering.target import host_target
from ...settings.fingerprint import sources, versions
from ..user_extensions import users_own
from .source_locations import Places

if TYPE_CHECKING:
    from ..request import CompileRequest

_PACKAGE = __name__.partition(".")[0]
_SHORT = 80  # characters up to which a part's value is shown in messages


@dataclass(frozen=True)
class Key:
    """Name -> text of each part; long texts by their digest."""

    parts: dict[str, str]

    @cached_property
    def digest(self) -> str:
        """Name of the entry."""
        text = json.dumps(self.parts, sort_keys=True)
        return _digest(text)

    def differing(self, other: Key) -> list[str]:
        """Names of the parts that differ, in our order."""
        names = dict.fromkeys((*self.parts, *other.parts))
        return [name for name in names if self.parts.get(name) != other.parts.get(name)]


def key_of(request: CompileRequest, places: Places | None = None) -> Key:
    """The key of a request.

    Where the user's lines are is no part of it, only which ops share one: see `source_locations`.
    """
    target, places = request.target or host_target(), places or Places.of(request.ir)
    return Key(
        {
            "ir": _digest(places.bare),
            "locations": _digest(" ".join(map(str, places.indices))),
            "pipeline": request.pipeline,
            "options": f"keep_stages={request.keep_stages} verify_each={request.verify_each} "
            f"in_place={request.in_place} check={request.check}",
            "triple": target.triple,
            "cpu": target.cpu,
            "features": target.features,
            "gpu": f"{target.gpu} {target.gpu_image}".strip(),
            **_environment(),
        }
    )


def profile_key(graph: Places, arguments: str, history: str, runs: int, device: str) -> Key:
    """The key of what was observed of a graph.

    ``arguments``: dtypes and ranks that the graph holds for, of which it says nothing itself;
    ``history``: the types that executors before this one have specialised it for, in words;
    ``runs``: how many runs were recorded; ``device``: where its values are at home.
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
    """Parts in which the key is another installation's: nothing of this one will hit its entry."""
    return [name for name, text in _environment().items() if key.parts.get(name) != text]


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


def obstacle(request: CompileRequest) -> str:
    """Why no entry could stand for this compile; "" = there is no reason.

    Passes, pipelines and ops of users may change without any part of the key doing so.
    """
    if request.dump:
        return "graphs are dumped at every pass, so that each has to run"
    own = users_own(request)
    return f"{own} is not part of {_PACKAGE}" if own else ""


def nearest(key: Key, others: Iterable[Key]) -> tuple[Key, list[str]] | None:
    """The key that is most like this one, and the parts that differ; of equals the first.

    One of the same graph is nearer than any of another graph.
    """
    best: tuple[Key, list[str]] | None = None
    for other in others:
        found = key.differing(other)
        if best is None or _distance(found) < _distance(best[1]):
            best = other, found
    return best


def _distance(differing: list[str]) -> tuple[bool, int]:
    return "ir" in differing, len(differing)


def describe(key: Key, other: Key, differing: list[str]) -> str:
    """How two keys differ, in words."""
    if "ir" in differing:
        # In another graph other ops share lines: that says nothing.
        differing = [name for name in differing if name != "locations"]
    return "; ".join(
        _describe(name, key.parts.get(name, ""), other.parts.get(name, "")) for name in differing
    )


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
    """The text, or of a long one what is there where it begins to differ from the other."""
    if len(text) <= _SHORT:
        return repr(text)
    same = next((k for k, (a, b) in enumerate(zip(text, other, strict=False)) if a != b), 0)
    start = max(0, same - 20)
    end = start + _SHORT
    return ("…" if start else "") + repr(text[start:end]) + ("…" if end < len(text) else "")
