"""The machine code of a dispatcher, as LLVM IR text: decision tree, outputs, launches, counts.

LLVM IR and not MLIR's LLVM dialect, since dispatchers are made in the user's process, which never
loads MLIR for it: llvmlite, which links the kernels, reads the text as it is.

The function has CPython's fastcall signature, with keywords. It answers only if nothing out of the
ordinary happens. Everything else (no specialisation fits, memory is short, a number is too big, a
kernel reports an index out of range) drops what it has made and calls the Python dispatcher with
the same arguments, which does, counts and raises what it would have without this function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from ...dialect.ir.device import HOST
from .conditions.host_reads import emit_test
from .counter_table import LeafCells, Settings, Shared, cells_of
from .leaf_spec import Leaf, Test
from .leaves.host_leaf import HostLeaf
from .leaves.leaf import LeafWriter
from .llvm_writer import Writer


@dataclass
class Emitted:
    """IR text and the table it goes with.

    Attributes:
        entries: see `Writer`.
        cells: per leaf.
        shared: of all leaves.
    """

    text: str
    entries: list[Any]
    cells: list[LeafCells]
    shared: Shared


def emit(leaves: Sequence[Leaf], slow: Any, settings: Settings) -> Emitted:
    """A dispatcher for these leaves, tried in this order; ``slow`` is called where none fits."""
    return _Emitter(leaves, slow, settings).emitted()


class _Emitter:
    def __init__(self, leaves: Sequence[Leaf], slow: Any, settings: Settings) -> None:
        self.leaves, self.slow, self.settings = leaves, slow, settings
        self.w = Writer()
        self.shared = Shared(self.w.cell(), self.w.cell())
        self.cells = [cells_of(leaf, self.w) for leaf in leaves]

    def emitted(self) -> Emitted:
        w = self.w
        arities = sorted({leaf.arity for leaf in self.leaves})
        for arity in arities:
            other = w.name()
            w.unless(w.op(f"icmp eq i64 %n, {arity}"), other)
            rows = [(k, leaf.tests) for k, leaf in enumerate(self.leaves) if leaf.arity == arity]
            self.tree(rows, "miss")
            w.label(other)
        w.jump("miss")
        w.label("miss")
        for place in w.kept.values():
            w.call("Py_DecRef", "void", f"ptr {w.load('ptr', place)}")
        slow = w.object(self.slow)
        result = w.call(
            "PyObject_Vectorcall", "ptr", f"ptr {slow}", "ptr %args", "i64 %n", "ptr %names"
        )
        w.do(f"ret ptr {result}")
        text = "\n".join(w.text(len(w.entries)))
        return Emitted(text, w.entries, self.cells, self.shared)

    def tree(self, rows: list[tuple[int, list[Test]]], fail: str) -> None:
        """Try leaves in order; tests that several have in common are made once."""
        # Not by recursion, which would go as deep as there are arguments.
        common = _common([tests for _, tests in rows])
        for test in rows[0][1][:common]:
            self.w.unless(self.fits(emit_test(self.w, test.field), test.value), fail)
        rows = [(k, tests[common:]) for k, tests in rows]
        index, tests = rows[0]
        if not tests:
            leaf, cells = self.leaves[index], self.cells[index]
            for test in leaf.final:
                self.w.unless(self.fits(emit_test(self.w, test.field), test.value), "miss")
            made = _writer(leaf)(self.w, leaf, cells, index + 1, self.shared, self.settings)
            made.write()
            return
        asked = tests[0].field
        group = _leading(rows, asked)
        rest = rows[len(group) :]
        otherwise = self.w.name() if rest else fail
        found = emit_test(self.w, asked)
        wanted: dict[Any, list[tuple[int, list[Test]]]] = {}
        for number, left in group:
            wanted.setdefault(_constant(left[0].value), []).append((number, left))
        for inner in wanted.values():
            next_value = self.w.name()
            self.w.unless(self.fits(found, inner[0][1][0].value), next_value)
            self.tree([(number, left[1:]) for number, left in inner], otherwise)
            self.w.label(next_value)
        self.w.jump(otherwise)
        if rest:
            self.w.label(otherwise)
            self.tree(rest, fail)

    def fits(self, found: str, value: Any) -> str:
        """Whether what a test has read is this value."""
        if isinstance(value, int):
            return self.w.op(f"icmp eq i64 {found}, {value}")
        return self.w.op(f"icmp eq ptr {found}, {self.w.object(value)}")


def _writer(leaf: Leaf) -> type[LeafWriter]:
    if leaf.device == HOST:
        return HostLeaf
    from .leaves.device_leaf import DeviceLeaf

    return DeviceLeaf


def _common(rows: list[list[Test]]) -> int:
    """How many tests all of them begin with."""
    together = zip(*rows, strict=False)
    return sum(1 for _ in takewhile(lambda tests: len(set(tests)) == 1, together))


def _leading(rows: list[tuple[int, list[Test]]], asked: tuple) -> list[tuple[int, list[Test]]]:
    """The first rows, as far as they begin by asking for the same."""
    count = 0
    while count < len(rows) and rows[count][1] and rows[count][1][0].field == asked:
        count += 1
    return rows[:count]


def _constant(value: Any) -> Any:
    """Python objects are compared by identity."""
    return value if isinstance(value, int) else ("object", id(value))
