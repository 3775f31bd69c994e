"""Texts in TorchScript: what it has of Python's methods of them, and messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...numpy.tracing.current import trace_error
from ...numpy.tracing.operators import Recording
from ..interpreter import NodeContext
from .script_branches import is_open
from .script_containers import ScriptList
from .script_table import script


def _register(function: Callable[..., Any], *names: str) -> None:
    script(*names)(lambda call, *operands: function(*operands))


class _Number(float):
    """A float whose text is that of torch's C++: one that is an int64 as such, with a point, others with all digits."""

    def __str__(self) -> str:
        is_whole = abs(self) < 2**63 and self == int(self)
        return f"{int(self)}." if is_whole else format(self + 0.0, ".17g")


def _text(value: Any) -> str:
    """A value in a message; of what only a run tells, a question mark."""
    if is_open(value):
        return "?"
    if type(value) is ScriptList:
        return "[" + ", ".join(map(_text, value.known())) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(_text, value)) + ("," if len(value) == 1 else "") + ")"
    return str(_plain(value)) if not getattr(value, "ndim", 0) else str(value)


@script("aten::format")
def _format(call: NodeContext, template: str, *values: Any) -> str:
    return template.format(*map(_text, values))


@script("aten::percentFormat")
def _percent_format(call: NodeContext, template: str, *values: Any) -> str:
    parts = values[0] if len(values) == 1 and type(values[0]) is tuple else values
    shown = tuple(_text(value) if is_open(value) else _plain(value) for value in parts)
    try:
        return template % shown
    except (TypeError, ValueError):
        raise trace_error(f"the text {template!r} is no format for {shown}") from None


def _plain(value: Any) -> Any:
    value = value.bake() if isinstance(value, Recording) else value
    return _Number(value) if type(value) is float else value


@script("aten::str")
def _str(call: NodeContext, value: Any) -> str:
    if is_open(value):
        raise trace_error("a text is made of what only a run tells")
    return _text(value)


_STRINGS = (
    *("upper", "lower", "strip", "lstrip", "rstrip", "replace", "join", "title", "capitalize", "swapcase", "zfill"),
    *("center", "ljust", "rjust", "expandtabs", "partition", "rpartition", "isalnum", "isalpha", "isdecimal"),
    *("isdigit", "isidentifier", "islower", "isnumeric", "isprintable", "isspace", "istitle", "isupper"),
)
for _method in _STRINGS:
    _register(
        lambda text, *args, _method=_method: getattr(text, _method)(
            *(list(x) if type(x) in (ScriptList, tuple) else _plain(x) for x in args)
        ),
        f"aten::{_method}",
    )

_PLACES = ("startswith", "endswith", "find", "rfind", "rindex", "index.str", "count.str")


for _method in _PLACES:

    def _found(text: str, part: str, start: Any = 0, end: Any = -1, _method: str = _method.partition(".")[0]) -> Any:
        """A method that looks for a part of a text between two places, of which -1 is the end of the text."""
        last = int(end)
        return getattr(text, _method)(part, int(start), last + len(text) + 1 if last < 0 else last)

    _register(_found, f"aten::{_method}")

_register(lambda text, separator=" ", most=-1: ScriptList(text.rsplit(separator, int(most))), "aten::rsplit")
_register(lambda text, keepends=False: ScriptList(text.splitlines(keepends)), "aten::splitlines")
for _function in (ord, chr, hex, oct, bin):
    _register(lambda value, _function=_function: _function(_plain(value)), f"aten::{_function.__name__}")


@script("aten::split")
def _split(call: NodeContext, text: str, separator: str | None = None, most: int = -1) -> ScriptList:
    return ScriptList(text.split(separator, most))


@script("aten::len.str")
def _length_of_text(call: NodeContext, text: str) -> int:
    return len(text)


@script("prim::StringIndex")
def _letter(call: NodeContext, text: str, index: Any) -> str:
    return text[int(index)]


__all__: list[str] = []
