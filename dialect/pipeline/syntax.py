"""The text form of pipelines: from a string to the passes that it names, with their options.

``"dce,specialize{min-runs=2},canonicalize,func.func(cse)"``: names of our passes come from
`passes.base.PASSES`, names of whole pipelines from `PIPELINES`; everything else goes, in contiguous
runs, to MLIR's own pass manager.

Options of a named pipeline are those of its passes, and the names of the pipelines in it:
``profile-driven{dynamic=true pre-fusion=(probe,dce)}`` makes every pass of it that can be dynamic
so, and runs two passes where `pre-fusion` stands.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator, Sequence
from typing import Any, Union, get_args, get_origin, get_type_hints

from ..dataclass import dataclass
from ..errors import InternalError, PipelineError
from ..mlir.context import near
from ..passes.base import PASSES, Pass
from .standard import STANDARD

_OPEN, _CLOSE = "({[<", ")}]>"
_ITEM = re.compile(r"(?P<name>[\w.\-]+)\s*(?:\((?P<nested>.*)\)|\{(?P<options>.*)\})?", re.DOTALL)

_OPTION_TYPES: dict[type[Pass], dict[str, Any]] = {}  # reading annotations is slow

Stage = Union[Pass, tuple[str, ...]]  # one of ours, or a run of MLIR's

PIPELINES: dict[str, str] = {}
"""Named pipelines; a name may stand in a pipeline string like that of a pass."""


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


def make_pass(cls: type[Pass], item: PipelineItem, outer: _GivenOptions | None) -> Pass:
    """A pass with the options that an item gives, and of those of pipelines around it the rest that it has.

    Raises PipelineError, naming the option.
    """
    types, owner = option_types(cls), f"pass {cls.name}"
    names = option_names(cls)
    texts = split_options(owner, item.options)
    for key in texts:
        if key not in names:
            raise unknown_option(owner, key, names)
    if outer is not None:
        texts = {**outer.of(names), **texts}
    fields = {key.replace("-", "_"): (key, text) for key, text in texts.items()}
    values = {field: _value(cls, key, text, types[field]) for field, (key, text) in fields.items()}
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


# --- named pipelines ---------------------------------------------------------------------------


def register_pipeline(name: str, text: str) -> None:
    """Name a pipeline; a second pipeline or pass of that name is an InternalError."""
    if name in PIPELINES or name in PASSES:
        raise InternalError(f"pipeline {name} is declared twice")
    PIPELINES[name] = text


for _name, _text in STANDARD.items():
    register_pipeline(_name, _text)


def parse_pipeline(text: str) -> list[Stage]:
    """Passes of a pipeline string, in order. Raises PipelineError.

    Names of MLIR's passes are not looked at here; `run_pipeline` checks them before it runs any.
    """
    from ..passes import load_passes

    load_passes()
    stages: list[Stage] = []
    for item, outer in _expand(split_items(text), (), None):
        cls = PASSES.get(item.name)
        if cls is not None and item.nested is None:
            stages.append(make_pass(cls, item, outer))
        elif stages and isinstance(stages[-1], tuple):
            stages[-1] = (*stages[-1], item.text)
        else:
            stages.append((item.text,))
    return stages


def _expand(items: Sequence[PipelineItem], inside: tuple[str, ...], outer: _GivenOptions | None) -> Iterator[_Placed]:
    for item in items:
        if item.name == "builtin.module" and item.nested is not None:
            yield from _expand(split_items(item.nested), inside, outer)
        elif item.name in PIPELINES and item.nested is None:
            yield from _pipeline(item, inside, outer)
        else:
            _refuse_ours_inside(item)
            yield item, outer


def _pipeline(item: PipelineItem, inside: tuple[str, ...], outer: _GivenOptions | None) -> Iterator[_Placed]:
    """The passes of a named pipeline, or those that an option of an outer one puts in its place."""
    if item.name in inside:
        raise PipelineError(f"pipeline {item.name} contains itself")
    inside = (*inside, item.name)
    instead = None if outer is None else outer.instead_of(item.name)
    if instead is not None:
        yield from _expand(split_items(instead), inside, None)
        return
    own = _GivenOptions(item, outer)
    yield from _expand(split_items(PIPELINES[item.name]), inside, own)
    own.check()  # the passes have taken theirs by now


class _GivenOptions:
    """Options of a named pipeline, on their way to the passes and pipelines in it."""

    def __init__(self, item: PipelineItem, outer: _GivenOptions | None) -> None:
        self.owner = f"pipeline {item.name}"
        self.values = split_options(self.owner, item.options)
        self.outer = outer
        self.known: set[str] = set()

    def of(self, names: Sequence[str]) -> dict[str, str]:
        """Those of the options that a pass has, whose names these are."""
        return {name: text for name in names if (text := self._find(name)) is not None}

    def instead_of(self, name: str) -> str | None:
        """The passes in the place of the pipeline ``name``; None = its own passes stay."""
        text = self._find(name)
        if text is not None and text[:1] == "(" and text[-1:] == ")":
            return text[1:-1]
        return text

    def _find(self, key: str) -> str | None:
        self.known.add(key)
        outer = None if self.outer is None else self.outer._find(key)
        return self.values.get(key, outer)

    def check(self) -> None:
        """Raise PipelineError for an option that nothing in the pipeline has."""
        for key in self.values:
            if key not in self.known:
                raise unknown_option(self.owner, key, sorted(self.known))


_Placed = tuple[PipelineItem, _GivenOptions | None]  # a pass, and the options of the pipelines around it


def _refuse_ours_inside(item: PipelineItem) -> None:
    """Our passes run on whole modules: ``func.func(dce)`` would send `dce` to MLIR."""
    if not item.nested:
        return
    for inner in split_items(item.nested):
        if inner.name in PASSES and inner.nested is None:
            raise PipelineError(f"pass {inner.name} runs on a module and cannot stand inside {item.name}(…)")
        _refuse_ours_inside(inner)
