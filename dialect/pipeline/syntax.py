"""The text form of pipelines: splitting into items, and options of our passes."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..dataclass import dataclass
from ..errors import PipelineError
from ..mlir.context import near
from ..passes.base import Pass

_OPEN, _CLOSE = "({[<", ")}]>"
_ITEM = re.compile(r"(?P<name>[\w.\-]+)\s*(?:\((?P<nested>.*)\)|\{(?P<options>.*)\})?", re.DOTALL)

_OPTION_TYPES: dict[type[Pass], dict[str, Any]] = {}  # reading annotations is slow


@dataclass(frozen=True)
class PipelineItem:
    """One pass, named pipeline or nested pipeline as it stands in the text."""

    name: str
    text: str
    options: str = ""
    nested: str | None = None


@functools.lru_cache(maxsize=256)
def split_items(text: str) -> tuple[PipelineItem, ...]:
    """Items of a pipeline, split at the outermost commas. Raises PipelineError."""
    items = []
    parts = _split(text, ",")
    if len(parts) == 1 and not parts[0].strip():
        return ()
    for part in parts:
        part = part.strip()
        match = _ITEM.fullmatch(part)
        if not match:
            raise PipelineError(f"bad pipeline {text!r}: expected a pass name, found {part!r}")
        items.append(PipelineItem(match["name"], part, match["options"] or "", match["nested"]))
    return tuple(items)


def _split(text: str, separators: str) -> list[str]:
    """Split at separators that no bracket and no quotes enclose."""
    parts, current, stack, quote = [], "", [], ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'":
            quote = char
        elif char in _OPEN:
            stack.append(_CLOSE[_OPEN.index(char)])
        elif char in _CLOSE:
            if not stack or stack.pop() != char:
                raise PipelineError(f"bad pipeline {text!r}: unbalanced {char!r}")
        elif char in separators and not stack:
            parts.append(current)
            current = ""
            continue
        current += char
    if stack or quote:
        raise PipelineError(f"bad pipeline {text!r}: missing {stack[-1] if stack else quote!r}")
    return [*parts, current]


def split_options(owner: str, text: str) -> dict[str, str]:
    """Options as they stand in the text, by name; ``owner`` is what messages call their pass.

    Raises PipelineError for an option without a value or given twice.
    """
    values: dict[str, str] = {}
    for part in _split(text, ", \t\n"):
        if not part:
            continue
        key, equals, value = part.partition("=")
        if key in values:
            raise PipelineError(f"{owner}: option {key!r} is given twice")
        if not equals:
            raise PipelineError(f"{owner}: option {key!r} needs a value: {key}=…")
        values[key] = value
    return values


def unknown_option(owner: str, key: str, known: Sequence[str]) -> PipelineError:
    """The error for an option that a pass or pipeline does not have."""
    hint = near(key, known) or f"options of {owner.split()[-1]}: {', '.join(known) or 'none'}"
    return PipelineError(f"{owner} has no option {key!r}", hint=hint)


def option_names(cls: type[Pass]) -> list[str]:
    """Options of a pass as they are written."""
    return [name.replace("_", "-") for name in option_types(cls)]


def make_pass(cls: type[Pass], item: PipelineItem) -> Pass:
    """A pass with the options that an item gives. Raises PipelineError, naming the option."""
    types, owner = option_types(cls), f"pass {cls.name}"
    values: dict[str, Any] = {}
    known = option_names(cls)
    for key, value in split_options(owner, item.options).items():
        if key not in known:
            raise unknown_option(owner, key, known)
        field = key.replace("-", "_")
        values[field] = _value(cls, key, value, types[field])
    try:
        return cls(**values)
    except TypeError as error:
        raise PipelineError(f"pass {cls.name}: {error}") from None


def option_types(cls: type[Pass]) -> dict[str, Any]:
    """Type of each option field of a pass, by field name."""
    types = _OPTION_TYPES.get(cls)
    if types is None:
        hints = get_type_hints(cls)
        types = {f.name: hints[f.name] for f in dataclasses.fields(cls) if f.init}
        _OPTION_TYPES[cls] = types
    return types


def option_help(cls: type[Pass]) -> str:
    """Options with their defaults, as they are written: ``{min-size=2 dynamic=false}``."""
    shown = []
    for field in dataclasses.fields(cls):
        if field.init:
            value = field.default
            text = str(value).lower() if isinstance(value, bool) else str(value)
            shown.append(f"{field.name.replace('_', '-')}={text}")
    return f"{{{' '.join(shown)}}}" if shown else ""


def _value(cls: type[Pass], key: str, text: str, type_: Any) -> Any:
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1]
    if get_origin(type_) in (Union, type(int | None)):
        if text == "none":
            return None
        type_ = next(t for t in get_args(type_) if t is not type(None))
    try:
        if type_ is bool:
            return {"true": True, "false": False, "1": True, "0": False}[text]
        return type_(text)
    except (ValueError, KeyError):
        word = {bool: "true or false", int: "an integer", float: "a number"}.get(type_, type_)
        raise PipelineError(f"pass {cls.name}: option {key!r} must be {word}, not {text!r}") from None
