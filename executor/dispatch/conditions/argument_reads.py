"""Emitting code that reads arguments: by position, by keyword, in containers, and Python numbers.

The test ``opened`` checks a container and stores pointers to its items on the stack. These
references are borrowed. So no code that may run Python, or let another thread run it, may come
before ``owned`` or the leaf has taken references of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from ..llvm_writer import Writer
from ..refs import FromHost, Held, Inside, InState, OnTape, Position

# Bound of the ints that emitted 64-bit arithmetic accepts: larger ones might overflow in a product.
SMALL = 1 << 31


def pointer(w: Writer, position: Position) -> str:
    """Pointer to the object at a position."""
    if isinstance(position, (Inside, InState, FromHost)):
        return w.load("ptr", item_slot(w, position))
    if isinstance(position, OnTape):
        return w.load("ptr", elements_slot(w, position))
    return w.load("ptr", w.element("%args", position))


def item_slot(w: Writer, position: Inside | InState | FromHost) -> str:
    """The stack slot that holds the pointer to an item, or to what a function has given."""
    return w.shared_alloca(("item", position), "ptr")


def elements_slot(w: Writer, position: OnTape) -> str:
    """The stack slot that holds the pointer to what an `Array` holds; see `tape_reads`."""
    return w.shared_alloca(("elements", position), "ptr")


def keywords(w: Writer, names: tuple[str, ...]) -> str:
    """Test that exactly these names are passed by keyword, in this order."""
    if not names:
        return w.op(f"zext i1 {w.op('icmp eq ptr %names, null')} to i64")
    checked = Conjunction(w)
    checked.unless(w.op("icmp ne ptr %names, null"))
    size = w.call("PyTuple_Size", "i64", "ptr %names")
    checked.unless(w.op(f"icmp eq i64 {size}, {len(names)}"))
    for k, name in enumerate(names):
        checked.same(w.call("PyTuple_GetItem", "ptr", "ptr %names", f"i64 {k}"), name)
    return checked.answer()


def opened(w: Writer, position: Position, kind: type, keys: tuple[Held, ...], owns: bool) -> str:
    """Test that the container at a position has this type and these keys, in this order.

    The keys of a tuple or list are its indices, those of other objects than a dict the names of their attributes.
    Stores pointers to the items on the stack. ``owns``: the call owns references to the items from then on, as
    memory is made for what is opened next, at which Python may run finalizers.
    """
    checked, container = Conjunction(w), f"ptr {pointer(w, position)}"
    checked.unless(w.op(f"icmp eq ptr {w.type_of(container)}, {w.object(kind)}"))
    items = [Inside(position, k) for k in range(len(keys))]
    base = next((base for base in (tuple, list, dict) if issubclass(kind, base)), None)
    if base is None and not kind.__dictoffset__:
        _read_slots(w, container, keys, items, checked)
        return checked.answer(clear=True)
    if base is None:
        container = f"ptr {w.call('PyObject_GenericGetDict', 'ptr', container, 'ptr null')}"
        checked.unless(w.op(f"icmp ne {container}, null"))
        w.call("Py_DecRef", "void", container)  # the object keeps it
    prefix = f"Py{(base or dict).__name__.capitalize()}"
    size = w.call(f"{prefix}_Size", "i64", container)
    checked.unless(w.op(f"icmp eq i64 {size}, {len(keys)}"))
    if prefix == "PyDict":
        next_keys(w, container, keys, checked, lambda k: f"ptr {item_slot(w, items[k])}")
    else:
        for k, item in enumerate(items):
            w.store("ptr", w.call(f"{prefix}_GetItem", "ptr", container, f"i64 {k}"), item_slot(w, item))
    if owns:
        owned(w, tuple(items))
    return checked.answer(clear=base is None)


def _read_slots(w: Writer, holder: str, keys: tuple[Held, ...], items: list[Inside], checked: Conjunction) -> None:
    """Require that an object has something in all of its slots, which the call owns from then on."""
    for key, item in zip(keys, items, strict=True):
        value = w.call("PyObject_GenericGetAttr", "ptr", holder, f"ptr {w.object(key.value)}")
        checked.unless(w.op(f"icmp ne ptr {value}, null"))
        w.store("ptr", value, item_slot(w, item))
        keep(w, item, value)


def next_keys(w: Writer, holder: str, keys: tuple[Held, ...], checked: Conjunction, item: Callable[[int], str]) -> None:
    """Require that a dict has these keys first, in this order; ``item``: where each value goes."""
    at, key = w.shared_alloca(("at",), "i64"), w.shared_alloca(("key",), "ptr")
    w.store("i64", 0, at)
    for k, constant in enumerate(keys):
        status = w.call("PyDict_Next", "i32", holder, f"ptr {at}", f"ptr {key}", item(k))
        checked.unless(w.op(f"icmp ne i32 {status}, 0"))
        checked.same(w.load("ptr", key), constant.value)


def owned(w: Writer, positions: tuple[Position, ...]) -> str:
    """Take references to the items at these positions until the call ends; the result is 1.

    This comes before tests that may run Python code or other threads.
    """
    items = [pointer(w, position) for position in positions]
    for item in items:
        w.call("Py_IncRef", "void", f"ptr {item}")
    for position, item in zip(positions, items, strict=True):
        keep(w, position, item)
    return "1"


def keep(w: Writer, position: Position, item: str) -> None:
    """Have the call own a reference to the object at a position, which the code has taken."""
    place = w.keep(position)
    before = w.load("ptr", place)  # taken for a specialisation that did not fit
    w.store("ptr", item, place)
    w.call("Py_DecRef", "void", f"ptr {before}")


def is_one(w: Writer, one: Position, other: Position) -> str:
    """Test that the same object is at two positions."""
    same = w.op(f"icmp eq ptr {pointer(w, one)}, {pointer(w, other)}")
    return w.op(f"zext i1 {same} to i64")


def static(w: Writer, position: Position, held: Held) -> str:
    """Test that an argument is this object, or an equal string."""
    checked = Conjunction(w)
    checked.same(pointer(w, position), held.value)
    return checked.answer()


class Conjunction:
    """A conjunction of conditions; the first that fails makes the answer 0.

    Attributes:
        failed: the label to which the code jumps if a condition fails.
    """

    def __init__(self, w: Writer) -> None:
        self.w, self.failed, self._done = w, w.name(), w.name()

    def unless(self, condition: str) -> None:
        self.w.unless(condition, self.failed)

    def same(self, item: str, value: object) -> None:
        """Require that ``item`` is this object, or an equal string."""
        w = self.w
        constant = w.object(value)
        same = w.op(f"icmp eq ptr {item}, {constant}")
        if type(value) is not str:
            self.unless(same)
            return
        compare, on = w.name(), w.name()
        w.branch(same, on, compare)
        w.label(compare)
        self.unless(w.op(f"icmp eq ptr {w.type_of(f'ptr {item}')}, {w.object(str)}"))
        order = w.call("PyUnicode_Compare", "i32", f"ptr {item}", f"ptr {constant}")
        self.unless(w.op(f"icmp eq i32 {order}, 0"))
        w.jump(on)
        w.label(on)

    def answer(self, *, clear: bool = False) -> str:
        """The answer, 1 or 0 as an i64.

        ``clear``: clear a pending exception, which a failed condition may have set.
        """
        w = self.w
        good = w.here()
        w.jump(self._done)
        w.label(self.failed)
        if clear:
            w.call("PyErr_Clear", "void")
        w.jump(self._done)
        w.label(self._done)
        return w.op(f"phi i64 [ 1, %{good} ], [ 0, %{self.failed} ]")


def integer(w: Writer, position: Position) -> str:
    """The value of an int argument as an i64; only valid if the test ``fits`` holds."""
    overflow = w.shared_alloca(("overflow",), "i32")
    number = f"ptr {pointer(w, position)}"
    return w.call("PyLong_AsLongLongAndOverflow", "i64", number, f"ptr {overflow}")


def fits(w: Writer, position: Position) -> str:
    """Test that an int is small enough to compute with."""
    number = integer(w, position)
    # For an int beyond 64 bits the C function returns -1 and sets the overflow flag.
    exact = w.op(f"icmp eq i32 {w.load('i32', w.shared_alloca(('overflow',), 'i32'))}, 0")
    small = w.op(f"icmp ult i64 {w.op(f'add i64 {number}, {SMALL}')}, {2 * SMALL}")
    return w.op(f"zext i1 {w.op(f'and i1 {exact}, {small}')} to i64")


def bits(w: Writer, position: Position) -> str:
    """The bits of a float argument, as an i64."""
    number = w.call("PyFloat_AsDouble", "double", f"ptr {pointer(w, position)}")
    return w.op(f"bitcast double {number} to i64")
