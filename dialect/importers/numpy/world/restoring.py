"""What objects held is given back: for each facet of objects, what has changed since, and how it is undone.

A function here compares what an object holds with what it held, shallowly and by identity, and restores that. It
returns None where nothing had changed, else the attribute that had; "" = it is no attribute.
"""

from __future__ import annotations

import dis
import operator
import types
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ....ir.program import Program
from ..python.generators import put_state, same_state, state_of_generator
from ..python.instances import ABSENT, PLAIN_TYPES, dict_type
from ..python.objects import FIELDS, SLOTS, Facet, parts_of, table
from ..tracing.operators import Recording
from .contents import Contents

if TYPE_CHECKING:
    from .journal import Journal

MOST_OBJECTS = 20_000  # that are watched
ATOMS = PLAIN_TYPES | {np.dtype, np.ufunc, types.CodeType, types.GenericAlias}


def _list(target: Any, held: list) -> str | None:
    if len(target) == len(held) and all(map(operator.is_, target, held)):
        return None
    target.clear()
    target.extend(held)
    return ""


def same_items(target: Any, held: dict) -> bool:
    """True if two dicts have the same keys and values, by identity and in this order."""
    return (
        len(target) == len(held)
        and all(map(operator.is_, target.keys(), held.keys()))
        and all(map(operator.is_, target.values(), held.values()))
    )


def _dict(target: Any, held: dict) -> str | None:
    if same_items(target, held):
        return None
    kind = dict_type(target)
    kind.clear(target)
    for key, value in held.items():
        kind.__setitem__(target, key, value)
    return ""


def _attributes(target: Any, held: dict) -> str | None:
    attributes = target.__dict__
    if same_items(attributes, held):
        return None
    changed = [
        k
        for k in {**held, **attributes}
        if attributes.get(k, ABSENT) is not held.get(k, ABSENT) and not _memoised(target, k, attributes, held)
    ]
    if changed:
        kept = {k: v for k, v in attributes.items() if k not in held and k not in changed}
        attributes.clear()  # so that deleted attributes come back in their order
        attributes.update({**held, **kept})
    return changed[0] if changed else None


def _library(target: Any, held: tuple[dict, Journal]) -> str | None:
    """Give an object of a package back what code that has run in the trace assigns, and no more.

    Other threads may have changed the rest.
    """
    before, journal = held
    attributes = vars(target)
    changed = [k for k, v in attributes.items() if v is not before.get(k, ABSENT)]
    if not changed:
        return None
    names = assigned((*journal.codes, *journal.watched))
    changed = [k for k in changed if k in names or holds_tracer(attributes[k])]
    for key in changed:
        if key in before:
            attributes[key] = before[key]
        else:
            del attributes[key]
    return changed[0] if changed else None


def assigned(codes: Iterable[types.CodeType]) -> set[str]:
    """Names of attributes that code assigns, and code inside of it."""
    names, todo = set(), list(codes)
    while todo:
        code = todo.pop()
        todo += [c for c in code.co_consts if isinstance(c, types.CodeType)]
        names |= {i.argval for i in dis.get_instructions(code) if i.opname == "STORE_ATTR"}
    return names


def _memoised(target: Any, key: str, attributes: dict, held: dict) -> bool:
    """True for a dunder of a module, and for a `cached_property` that holds no traced values."""
    if key in held or not isinstance(getattr(type(target), key, None), cached_property):
        return key.startswith("__") and isinstance(target, types.ModuleType)
    return not holds_tracer(attributes[key])


def holds_tracer(value: Any) -> bool:
    """True if there is a traced value, or code of a trace, in an object or in what it holds."""
    todo, seen = [value], dict[int, Any]()
    while todo:
        value = todo.pop()
        kind = type(value)
        if issubclass(kind, Recording):
            return True
        if kind is types.FunctionType and type(value.__globals__) is not dict:
            return True
        # A graph, which may have more parts than are watched, has numbers in the place of traced values.
        if kind in ATOMS or id(value) in seen or issubclass(kind, (type, types.ModuleType, Program)):
            continue
        if len(seen) >= MOST_OBJECTS:
            return True  # nobody knows
        seen[id(value)] = value
        todo += parts_of(value)
    return False


def _put_back(facet: Facet) -> Callable[[Any, dict], str | None]:
    """The function that restores a facet that keeps its keys."""

    def restore(target: Any, held: dict) -> str | None:
        state = facet.copy(target)
        changed = [k for k, v in held.items() if state[k] is not v]
        for key in changed:
            facet.put(target, key, held[key])
        return changed[0] if changed else None

    return restore


def _fixed(target: Any, held: Any) -> None:
    return None  # it never changes


def _class(target: type, held: dict) -> str | None:
    attributes = vars(target)
    if same_items(attributes, held):
        return None
    changed = [
        k
        for k in {**held, **attributes}
        if attributes.get(k, ABSENT) is not held.get(k, ABSENT) and not k.startswith(("__", "_abc_"))
    ]
    for key in changed:
        if key in held:
            setattr(target, key, held[key])
        else:
            delattr(target, key)
    return changed[0] if changed else None


def _set(target: Any, held: Any) -> str | None:
    if target == held:
        return None
    target.clear()
    (target.extend if isinstance(target, bytearray) else target.update)(held)
    return ""


def _contents(target: Any, held: Contents) -> str | None:
    if held.fits(target):
        return None
    held.restore(target)
    return ""


def _generator(target: Any, held: Any) -> str | None:
    if same_state(state_of_generator(target), held):
        return None
    put_state(target, held)
    return ""


RESTORE: dict[str, Callable[[Any, Any], str | None]] = {
    **table(
        {
            "list": _list,
            "dict": _dict,
            "set": _set,
            "fixed": _fixed,
            "fields": _put_back(FIELDS),
            "attributes": _attributes,
            "slots": _put_back(SLOTS),
            "contents": _contents,
            "class": _class,
        }
    ),
    "library": _library,
    "generator": _generator,
}
