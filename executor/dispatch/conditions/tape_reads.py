"""Emitting code that reads arrays of the tape: what they hold, and whether they require gradients.

The test ``untaped`` stores both on the stack, of an `Array` as of any other object. The elements
are a borrowed reference, as those are that `argument_reads.opened` stores. ``mode`` may run Python
code, and therefore comes first.
"""

from __future__ import annotations

import ctypes
import functools

from ....dialect.ir.gradient_mode import MODE
from ...memory.offsets import Refused
from ...tape.array import UNSEEN, Array
from ..llvm_writer import Writer
from ..refs import OnTape
from .argument_reads import Conjunction, elements_slot, pointer


@functools.cache
def slots() -> dict[str, int]:
    """Byte offsets of the fields of an `Array`; raises Refused where they cannot be told."""
    probe, offsets = Array(None), {}
    words = (ctypes.c_int64 * (Array.__basicsize__ // 8)).from_address(id(probe))
    for name in ("data", "base", "_node", "_seen"):
        marker = object()
        setattr(probe, name, marker)
        places = [8 * k for k, word in enumerate(words) if word == id(marker)]
        if len(places) != 1:
            raise Refused(f"the field {name} of arrays of the tape is not where it is looked for")
        offsets[name] = places[0]
    return offsets


def mode(w: Writer) -> str:
    """Ask for this thread's gradient mode; the result is 1 unless that fails."""
    checked = Conjunction(w)
    flag = w.call("PyObject_GetAttr", "ptr", f"ptr {w.object(MODE)}", f"ptr {w.object('on')}")
    checked.unless(w.op(f"icmp ne ptr {flag}, null"))
    is_on = w.op(f"zext i1 {w.op(f'icmp eq ptr {flag}, {w.object(True)}')} to i64")
    w.store("i64", is_on, _mode_slot(w))
    w.call("Py_DecRef", "void", f"ptr {flag}")
    return checked.answer(clear=True)


def untaped(w: Writer, position: OnTape) -> str:
    """Read an argument that may be an `Array`; 0 for a view whose place on the tape is not known.

    Such a view was made before a write to the array behind it; see `Array.node`.
    """
    checked, at, array = Conjunction(w), slots(), pointer(w, position.position)
    bare, taped, view, seen, on = (w.name() for _ in range(5))
    w.store("ptr", array, elements_slot(w, position))
    w.store("i64", 0, _flag_slot(w, position))
    w.branch(w.op(f"icmp eq ptr {w.type_of(f'ptr {array}')}, {w.object(Array)}"), taped, bare)
    w.label(bare)
    w.jump(on)
    w.label(taped)
    data, base, node = (w.field("ptr", array, at[name]) for name in ("data", "base", "_node"))
    for field in (data, base, node):  # an `Array` that was made without `__init__`
        checked.unless(w.op(f"icmp ne ptr {field}, null"))
    none = w.object(None)
    w.store("ptr", data, elements_slot(w, position))
    is_noted = w.op(f"zext i1 {w.op(f'icmp ne ptr {node}, {none}')} to i64")
    w.store("i64", is_noted, _flag_slot(w, position))
    w.branch(w.op(f"icmp eq ptr {base}, {none}"), on, view)
    w.label(view)
    checked.unless(w.op(f"icmp eq ptr {w.type_of(f'ptr {base}')}, {w.object(Array)}"))
    seen_node = w.field("ptr", array, at["_seen"])
    w.branch(w.op(f"icmp eq ptr {seen_node}, {w.object(UNSEEN)}"), on, seen)
    w.label(seen)
    checked.unless(w.op(f"icmp eq ptr {seen_node}, {w.field('ptr', base, at['_node'])}"))
    w.jump(on)
    w.label(on)
    return checked.answer()


def noted(w: Writer, position: OnTape) -> str:
    """The i64 1 if an argument requires gradients, else 0."""
    return w.load("i64", _flag_slot(w, position))


def noting(w: Writer, positions: tuple[OnTape, ...]) -> str:
    """The i64 1 if one of the arguments requires gradients, and gradient mode is on, else 0."""
    flag = "0"
    for position in positions:
        flag = w.op(f"or i64 {flag}, {noted(w, position)}")
    return w.op(f"and i64 {flag}, {w.load('i64', _mode_slot(w))}")


def taped(w: Writer, positions: tuple[OnTape, ...]) -> str:
    """The i64 1 if one of the arguments is an `Array`, else 0."""
    flag = "0"
    for position in positions:
        is_array = w.op(f"icmp eq ptr {w.type_of(f'ptr {pointer(w, position.position)}')}, {w.object(Array)}")
        flag = w.op(f"or i64 {flag}, {w.op(f'zext i1 {is_array} to i64')}")
    return flag


def _mode_slot(w: Writer) -> str:
    return w.shared_alloca(("mode",), "i64")


def _flag_slot(w: Writer, position: OnTape) -> str:
    return w.shared_alloca(("noted", position), "i64")
