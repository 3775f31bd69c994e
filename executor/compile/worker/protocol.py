"""The messages between a process and its workers: requests and replies, without pickles.

A message is a JSON object with the protocol's version ``v`` and a ``kind``, then a zero byte, then
the sections that the object lists. A worker sends ``hello`` once it can compile. It replies to
each ``compile`` with a ``group`` for each fusion function that it begins to compile or to check,
and then with a ``result`` or an ``error``. Results have the format of the disk cache
(`cache.codec`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any, TypeVar

from ....dialect import errors
from ....dialect.errors import Loc, ProfuseError
from ....dialect.reasons import Reason
from ....lowering.target import Target
from ..cache.codec import from_sections, to_sections
from ..request import CompileRequest, CompileResult

PROTOCOL = 2

T = TypeVar("T")
_Reader = Callable[[dict[str, Any], dict[str, bytes]], T]


class WireError(Exception):
    """Bytes are not a message of this protocol."""


class StartedGroup(str):
    """The name of a fusion function that a worker has begun to compile or to check.

    ``checking``: True if the function is compiled and its kernel is about to run for the check.
    """

    checking = False


def encode_hello(version: str) -> bytes:
    """A worker's first message: the worker is ready, and has this version of the package."""
    return _message("hello", {"version": version})


def encode_request(request: CompileRequest) -> bytes:
    """A request as a message; inverse of `decode_request`."""
    pinned = [[name, reason.to_json()] for name, reason in request.pinned]
    return _message("compile", {**asdict(replace(request, pinned=())), "pinned": pinned})


def encode_result(result: CompileResult) -> bytes:
    """A result as a message; inverse of `decode_reply`."""
    return _message("result", {}, to_sections(result))


def encode_group(name: str, *, checking: bool = False) -> bytes:
    """The message that the worker begins to compile a fusion function, or to check its kernel."""
    return _message("group", {"name": name, "checking": checking})


def encode_error(error: ProfuseError) -> bytes:
    """An error as a message; `decode_reply` turns it into an error of the same class."""
    loc = error.loc
    data = {
        "class": type(error).__name__,
        "what": error.what,
        "loc": None if loc is None else [loc.file, loc.line, loc.col],
        "hint": error.hint,
    }
    return _message("error", data)


def decode_hello(payload: bytes) -> str:
    """The package version in a worker's first message. Raises WireError."""
    return _decoded(payload, {"hello": lambda data, sections: str(data["version"])})


def decode_request(payload: bytes) -> CompileRequest:
    """The request in a message. Raises WireError."""

    def read(data: dict[str, Any], sections: dict[str, bytes]) -> CompileRequest:
        target = None if data["target"] is None else Target(**data["target"])
        pinned = tuple((str(n), Reason.from_json(reason)) for n, reason in data["pinned"])
        return CompileRequest(**{**data, "target": target, "pinned": pinned})

    return _decoded(payload, {"compile": read})


def decode_reply(payload: bytes) -> CompileResult | ProfuseError | StartedGroup:
    """The result, the error to raise, or the group in a reply. Raises WireError."""
    readers: dict[str, _Reader[CompileResult | ProfuseError | StartedGroup]]
    readers = {
        "group": lambda data, sections: _group(data),
        "result": lambda data, sections: from_sections(sections),
        "error": _error,
    }
    return _decoded(payload, readers)


def _group(data: dict[str, Any]) -> StartedGroup:
    group = StartedGroup(data["name"])
    group.checking = bool(data["checking"])
    return group


def _error(data: dict[str, Any], sections: dict[str, bytes]) -> ProfuseError:
    # An error class outside of `dialect.errors` comes from a user's pass. Its constructor may take
    # other arguments, so the base class is used instead.
    cls = vars(errors).get(data["class"], ProfuseError)
    if not (isinstance(cls, type) and issubclass(cls, ProfuseError)):
        cls = ProfuseError
    loc = None if data["loc"] is None else Loc(*data["loc"])
    return cls(data["what"], loc=loc, hint=data["hint"])


def _message(kind: str, body: dict[str, Any], sections: dict[str, bytes] | None = None) -> bytes:
    sections = sections or {}
    listed = [[name, len(data)] for name, data in sections.items()]
    head = {"v": PROTOCOL, "kind": kind, "body": body, "sections": listed}
    return b"".join((json.dumps(head).encode(), b"\0", *sections.values()))


def _decoded(payload: bytes, readers: dict[str, _Reader[T]]) -> T:
    try:
        # JSON escapes zero bytes, so the first zero byte ends the JSON text.
        head, _, rest = payload.partition(b"\0")
        message = json.loads(head)
        version, kind, body = message["v"], message["kind"], message["body"]
        if version != PROTOCOL:
            raise WireError(f"protocol {version!r}, not {PROTOCOL}")
        if kind not in readers:
            raise WireError(f"a message of kind {kind!r}, not {' or '.join(readers)}")
        return readers[kind](body, _sections(message["sections"], rest))
    except WireError:
        raise
    except Exception as error:
        # Any exception of a reader means that the message is malformed.
        raise WireError(f"{type(error).__name__}: {error}") from error


def _sections(listed: list[tuple[str, int]], data: bytes) -> dict[str, bytes]:
    sections, start = {}, 0
    for name, length in listed:
        sections[name] = data[start : start + length]
        start += length
    if start != len(data):
        raise WireError(f"sections of {start} bytes, {len(data)} came")
    return sections
