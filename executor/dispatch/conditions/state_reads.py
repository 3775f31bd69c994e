"""Emitting code that compares what a graph has read from outside of the call with what is there.

Looking up an item or a field of C code runs no Python code, and gives a reference that is borrowed
or dropped at once: only the pointer is compared. Attributes of the user's objects may run code
where a class has been changed since; so these tests come before the code holds pointers to items.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence
from typing import Any

from ....dialect.importers.numpy.python.objects import CONTENTS, FIELDS
from ....dialect.importers.numpy.world.places import ALL, ANSWER, KIND, Place, StateRead
from ...memory.offsets import Refused
from ..leaf_values import Test
from ..llvm_writer import Writer
from ..refs import Held, InState
from .argument_reads import Conjunction, item_slot, keep, next_keys

_METHOD = types.MethodType(lambda self: None, 0)
# What reads fields of C code, and whether the reference is a new one; attributes give the others.
_FIELDS: dict[str, tuple[str, bool]] = {
    "cell_contents": ("PyCell_Get", True),
    "__code__": ("PyFunction_GetCode", False),
}


def state_tests(reads: Sequence[StateRead]) -> list[Test]:
    """Tests that hold where what was read is the same object, or an equal text.

    Raises Refused for what only Python can compare.
    """
    return [_test(read.place, read.value, read.is_absent) for read in reads]


def _test(place: Place, value: Any, is_absent: bool) -> Test:
    holder, kind = Held(place.holder), type(place.holder)
    if is_absent:
        raise Refused(f"there is no {place.name}, for which Python looks")
    if place.facet is CONTENTS:
        raise Refused(f"what {place.name} holds is needed, which Python compares")
    if place.key is not ALL:
        return Test(("read", _position(place), Held(value)), 1)
    if kind is list:
        return Test(("held_size", holder), value)
    if kind is dict:
        return Test(("held_keys", holder, tuple(map(Held, value))), 1)
    raise _pythons(place)


def _position(place: Place) -> InState:
    """The position at which emitted code reads a place; raises Refused if it cannot."""
    if place.facet.step == "item" and type(place.holder) not in (dict, list):
        raise _pythons(place)
    return InState(place.facet, Held(place.holder), Held(place.key))


def _pythons(place: Place) -> Refused:
    return Refused(f"{place.name} is in a {type(place.holder).__name__}, which Python reads")


def in_state(place: Place) -> InState:
    """The position at which emitted code reads a place that calls assign; raises Refused if it cannot."""
    kind, key = type(place.holder), place.key
    if place.facet.step == "item" and type(key) in (str, int):
        return _position(place)
    if place.facet.step == "attribute" and kind.__getattribute__ is object.__getattribute__:
        member = inspect.getattr_static(kind, key, None)
        is_slot = isinstance(member, types.MemberDescriptorType)
        if is_slot or not hasattr(type(member), "__set__"):
            return _position(place)
    raise _pythons(place)


def _looked_up(w: Writer, position: InState) -> tuple[str, bool]:
    """The pointer to the object in a place, NULL if there is none, and True if the reference is a new one."""
    facet, holder, key = position.facet, position.holder.value, position.key.value
    at = f"ptr {w.object(holder)}"
    if type(holder) is list:
        return w.call("PyList_GetItem", "ptr", at, f"i64 {key}"), False
    if facet is FIELDS and key in _FIELDS:
        function, is_new = _FIELDS[key]
        return w.call(function, "ptr", at), is_new
    if facet is KIND:
        return w.type_of(at), False
    if facet is ANSWER:
        return w.call("PyObject_CallNoArgs", "ptr", at), True
    is_item = facet.step == "item"
    function = "PyDict_GetItemWithError" if is_item else "PyObject_GetAttr"
    return w.call(function, "ptr", at, f"ptr {w.object(key)}"), not is_item


def taken(w: Writer, position: InState) -> str:
    """Test that there is anything in such a place; the call then owns a reference to it."""
    checked = Conjunction(w)
    item, is_new = _looked_up(w, position)
    checked.unless(w.op(f"icmp ne ptr {item}, null"))
    if not is_new:
        w.call("Py_IncRef", "void", f"ptr {item}")
    w.store("ptr", item, item_slot(w, position))
    keep(w, position, item)
    return checked.answer(clear=True)


def size(w: Writer, holder: Held) -> str:
    """The length of a list of the user's."""
    return w.call("PyList_Size", "i64", f"ptr {w.object(holder.value)}")


def keys(w: Writer, holder: Held, wanted: tuple[Held, ...]) -> str:
    """Test that a dict of the user's has these keys, in this order."""
    checked, mapping = Conjunction(w), f"ptr {w.object(holder.value)}"
    size = w.call("PyDict_Size", "i64", mapping)
    checked.unless(w.op(f"icmp eq i64 {size}, {len(wanted)}"))
    next_keys(w, mapping, wanted, checked, lambda k: "ptr null")
    return checked.answer()


def same(w: Writer, position: InState, held: Held) -> str:
    """Test that this object is in a place, or an equal text, or that method of that object."""
    checked, constants = Conjunction(w), [held.value]
    place, is_new = _looked_up(w, position)
    checked.unless(w.op(f"icmp ne ptr {place}, null"))
    pointers = [place]
    if is_new and type(held.value) is types.MethodType:  # made anew by each look-up
        kind = w.op(f"icmp eq ptr {w.type_of(f'ptr {place}')}, {w.object(types.MethodType)}")
        # What is no method is compared as this one, whose function nobody has.
        method = w.op(f"select i1 {kind}, ptr {place}, ptr {w.object(_METHOD)}")
        parts = "PyMethod_Function", "PyMethod_Self"
        pointers = [w.call(part, "ptr", f"ptr {method}") for part in parts]
        constants = [held.value.__func__, held.value.__self__]
    if is_new and type(held.value) is str:
        keep(w, position, place)  # it may be a text that a property has just made
    elif is_new:
        # What holds it keeps it, or the pointer alone is compared: no other thread runs before.
        w.call("Py_DecRef", "void", f"ptr {place}")
    for one, other in zip(pointers, constants, strict=True):
        checked.same(one, other)
    return checked.answer(clear=True)
