"""Emitting code that compares what a graph has read from outside of the call with what is there.

Looking up a global, an item or a cell runs no Python code, and gives a reference that is borrowed
or dropped at once: only the pointer is compared. Attributes of the user's objects may run code
where a class has been changed since; so these tests come before the code holds pointers to items.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Sequence

from ....dialect.importers.numpy.world.places import Place, StateRead
from ...memory.placement import Refused
from ..leaf_spec import Test
from ..llvm_writer import Writer
from ..refs import Held, InState
from .argument_reads import Checked, item_slot, keep, next_keys

_METHOD = types.MethodType(lambda self: None, 0)
_SIZES: dict[type, str] = {dict: "PyDict_Size", list: "PyList_Size"}


def state_tests(reads: Sequence[StateRead]) -> list[Test]:
    """Tests that hold where what was read is the same object, or an equal text.

    Raises Refused for what only Python can compare.
    """
    tests = []
    for read in reads:
        kind = type(read.holder)
        if read.is_absent:
            raise Refused(f"there is no {read.name}, for which Python looks")
        if read.step == "size" and kind in _SIZES:
            tests.append(Test(("held_size", Held(read.holder)), read.value))
        elif read.step == "keys" and kind is dict:
            tests.append(Test(("held_keys", Held(read.holder), tuple(map(Held, read.value))), 1))
        elif read.step in ("global", "cell", "attribute", "method", "code") or (
            read.step == "item" and kind in _SIZES
        ):
            key = read.key
            index = key if kind is list and read.step == "item" else None
            found = ("read", Held(read.holder), read.step, Held(key), index, Held(read.value))
            tests.append(Test(found, 1))
        elif read.step == "contents":
            raise Refused(f"what {read.name} holds is needed, which Python compares")
        else:
            raise Refused(f"{read.name} is a {kind.__name__}, which Python compares")
    return tests


def in_state(place: Place) -> InState:
    """Where emitted code finds what is in a place that calls assign; raises Refused if nowhere."""
    kind, key = type(place.holder), place.key
    if place.facet.step == "item" and kind in _SIZES and type(key) in (str, int):
        return InState(Held(place.holder), "item", key)
    if place.facet.step == "attribute" and kind.__getattribute__ is object.__getattribute__:
        found = inspect.getattr_static(kind, key, None)
        is_slot = isinstance(found, types.MemberDescriptorType)
        if is_slot or not hasattr(type(found), "__set__"):
            return InState(Held(place.holder), "attribute", key)
    raise Refused(f"{place.name} is in a {kind.__name__}, which Python reads")


def taken(w: Writer, position: InState) -> str:
    """Whether there is anything in such a place; the call then owns a reference to it."""
    checked, at = Checked(w), f"ptr {w.object(position.holder.value)}"
    if position.step == "attribute":
        found = w.call("PyObject_GetAttr", "ptr", at, f"ptr {w.object(position.key)}")
    elif type(position.holder.value) is list:
        found = w.call("PyList_GetItem", "ptr", at, f"i64 {position.key}")
    else:
        found = w.call("PyDict_GetItemWithError", "ptr", at, f"ptr {w.object(position.key)}")
    checked.unless(w.op(f"icmp ne ptr {found}, null"))
    if position.step == "item":
        w.call("Py_IncRef", "void", f"ptr {found}")
    w.store("ptr", found, item_slot(w, position))
    keep(w, position, found)
    return checked.answer(clear=True)


def size(w: Writer, holder: Held) -> str:
    """The length of a dict or list of the user's."""
    return w.call(_SIZES[type(holder.value)], "i64", f"ptr {w.object(holder.value)}")


def keys(w: Writer, holder: Held, wanted: tuple[Held, ...]) -> str:
    """Whether a dict of the user's has these keys, in this order."""
    checked, given = Checked(w), f"ptr {w.object(holder.value)}"
    size = w.call("PyDict_Size", "i64", given)
    checked.unless(w.op(f"icmp eq i64 {size}, {len(wanted)}"))
    next_keys(w, given, wanted, checked, lambda k: "ptr null")
    return checked.answer()


def same(w: Writer, holder: Held, step: str, key: Held, index: int | None, value: Held) -> str:
    """Whether a look-up finds this object, or an equal text."""
    checked, at = Checked(w), f"ptr {w.object(holder.value)}"
    if index is not None:
        found, is_new = w.call("PyList_GetItem", "ptr", at, f"i64 {index}"), False
    elif step in ("global", "item"):
        name = f"ptr {w.object(key.value)}"
        found, is_new = w.call("PyDict_GetItemWithError", "ptr", at, name), False
    elif step == "cell":
        found, is_new = w.call("PyCell_Get", "ptr", at), True
    elif step == "code":
        found, is_new = w.call("PyFunction_GetCode", "ptr", at), False
    else:
        name = f"ptr {w.object(key.value)}"
        found, is_new = w.call("PyObject_GetAttr", "ptr", at, name), True
    checked.unless(w.op(f"icmp ne ptr {found}, null"))
    bound = f"ptr {found}"
    if step == "method":
        kind = w.op(f"icmp eq ptr {w.type_of(bound)}, {w.object(types.MethodType)}")
        # What is no method is compared as this one, whose function nobody has.
        place = w.op(f"select i1 {kind}, ptr {found}, ptr {w.object(_METHOD)}")
        found = w.call("PyMethod_Function", "ptr", f"ptr {place}")
    if is_new:
        # What holds it keeps it: no other thread runs before the comparison below.
        w.call("Py_DecRef", "void", bound)
    checked.same(found, value.value)
    return checked.answer(clear=True)


__all__ = ["in_state", "keys", "same", "size", "state_tests", "taken"]
