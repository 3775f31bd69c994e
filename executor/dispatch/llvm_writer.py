"""Writing LLVM IR text: one function, and the table of addresses and cells that it reads.

The text contains no address: the code loads all addresses from the table. So equal dispatchers
have equal text and are compiled once.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...dialect.dataclass import dataclass
from .layout import LAYOUT


@dataclass(frozen=True)
class AddressEntry:
    """A table entry that holds a number, such as an address, of this process."""

    value: int


class Writer:
    """Collects the lines of one function.

    Attributes:
        entries: the table's entries, in order: the name of a C function (str), an `AddressEntry`, a
            one-element tuple around a Python object, or None for a cell that starts at 0.
        kept: key -> stack slot of a reference that tests have taken (see `keep`). A slot with NULL
            holds no reference.
    """

    def __init__(self) -> None:
        self.entries: list[Any] = []
        self._slots: dict[Any, int] = {}
        self._lines: list[str] = []
        self._tail: list[str] = []
        self._head: list[str] = []
        self._shared: dict[tuple, str] = {}
        self.kept: dict[Any, str] = {}
        self._serial = itertools.count()

    # --- the table --------------------------------------------------------------------------

    def cell(self) -> int:
        """Index of a new 64-bit cell."""
        self.entries.append(None)
        return len(self.entries) - 1

    def _slot(self, key: Any, entry: Any) -> int:
        if key not in self._slots:
            self._slots[key] = len(self.entries)
            self.entries.append(entry)
        return self._slots[key]

    @staticmethod
    def place(index: int) -> str:
        """Pointer to a table entry."""
        return f"getelementptr inbounds (i64, ptr @table, i64 {index})"

    def object(self, value: Any) -> str:
        """Pointer to a Python object; the builtin keeps the object alive."""
        return self.load("ptr", self.place(self._slot(("object", id(value)), (value,))))

    def address(self, value: int) -> str:
        """A pointer of this value, loaded from the table."""
        return self.load("ptr", self.place(self._slot(("address", value), AddressEntry(value))))

    def number(self, value: int) -> str:
        """An i64 loaded from the table, for numbers that differ from process to process."""
        return self.load("i64", self.place(self._slot(("address", value), AddressEntry(value))))

    # --- instructions -----------------------------------------------------------------------

    def name(self) -> str:
        return f"v{next(self._serial)}"

    def op(self, text: str) -> str:
        """Append an instruction with a result."""
        name = f"%{self.name()}"
        self._lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        """Append an instruction without a result."""
        self._lines.append(f"  {text}")

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Write the ``with`` block's lines behind all others, while another block is unfinished."""
        self._lines, self._tail = self._tail, self._lines
        try:
            yield
        finally:
            self._lines, self._tail = self._tail, self._lines

    def label(self, name: str) -> None:
        self._lines.append(f"{name}:")

    def alloca(self, type_: str) -> str:
        """Memory on the stack, 64-byte aligned; made once, at the entry."""
        name = f"%{self.name()}"
        self._head.append(f"  {name} = alloca {type_}, align 64")
        return name

    def type_of(self, pointer: str) -> str:
        """The type of an object, which is given as ``"ptr value"``."""
        return self.load("ptr", self.op(f"getelementptr i8, {pointer}, i64 {LAYOUT.ob_type}"))

    def shared_alloca(self, key: tuple, type_: str) -> str:
        """Stack memory that is made once per key, and shared by all callers with that key."""
        if key not in self._shared:
            self._shared[key] = self.alloca(type_)
        return self._shared[key]

    def keep(self, key: Any) -> str:
        """A stack slot for a reference, NULL at first; a leaf or the miss path must drop it."""
        if key not in self.kept:
            self.kept[key] = self.alloca("ptr")
            self._head.append(f"  store ptr null, ptr {self.kept[key]}")
        return self.kept[key]

    def load(self, type_: str, pointer: str) -> str:
        return self.op(f"load {type_}, ptr {pointer}")

    def store(self, type_: str, value: str | int, pointer: str) -> None:
        self.do(f"store {type_} {value}, ptr {pointer}")

    def field(self, type_: str, pointer: str, offset: int) -> str:
        """Load at a byte offset."""
        return self.load(type_, self.op(f"getelementptr i8, ptr {pointer}, i64 {offset}"))

    def element(self, pointer: str, index: int) -> str:
        """Pointer to a 64-bit element."""
        return self.op(f"getelementptr i64, ptr {pointer}, i64 {index}") if index else pointer

    def function(self, name: str) -> str:
        """Pointer to a C function."""
        return self.load("ptr", self.place(self._slot(("function", name), name)))

    def call(self, function: str, result: str, *arguments: str) -> str:
        """Call a C function by name; arguments are ``"type value"``."""
        return self._call(self.function(function), result, arguments)

    def call_address(self, address: int, result: str, *arguments: str) -> str:
        """Call the C function at an address."""
        return self._call(self.address(address), result, arguments)

    def _call(self, target: str, result: str, arguments: tuple[str, ...]) -> str:
        text = f"call {result} {target}({', '.join(arguments)})"
        if result == "void":
            self.do(text)
            return ""
        return self.op(text)

    def branch(self, condition: str, then: str, other: str) -> None:
        self.do(f"br i1 {condition}, label %{then}, label %{other}")

    def unless(self, condition: str, target: str) -> None:
        """Go to ``target`` where the condition is false."""
        on = self.name()
        self.branch(condition, on, target)
        self.label(on)

    def jump(self, target: str) -> None:
        self.do(f"br label %{target}")

    def here(self) -> str:
        """Begin a new block and return its name, which a later ``phi`` can refer to."""
        name = self.name()
        self.jump(name)
        self.label(name)
        return name

    def add_to_cell(self, index: int, amount: str | int = 1) -> str:
        """Add to a cell, and return the new value."""
        place = self.place(index)
        total = self.op(f"add i64 {self.load('i64', place)}, {amount}")
        self.store("i64", total, place)
        return total

    def text(self, size: int) -> Iterator[str]:
        """The module, whose table has ``size`` entries."""
        yield f"@table = dso_local global [{size} x i64] zeroinitializer, align 64"
        yield "define ptr @entry(ptr %self, ptr %args, i64 %n, ptr %names) {"
        yield "start:"
        yield from self._head
        yield from self._lines
        yield from self._tail
        yield "}"
