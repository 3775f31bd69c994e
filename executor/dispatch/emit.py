"""The machine code of a dispatcher, as LLVM IR text: decision tree, outputs, launches, counts.

The text is LLVM IR and not MLIR's LLVM dialect, because dispatchers are made in the user's process,
which need not load MLIR for them: LLVM alone reads LLVM IR.

The function has CPython's fastcall signature, with keywords. It completes only ordinary calls. In
all other cases (no specialisation fits, memory is short, an int is too large, a kernel reports an
index out of range) it drops the objects that it has made and calls the Python dispatcher with the
same arguments. The Python dispatcher then acts as if this function did not exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import HOST
from .conditions.debuggers import emit_question
from .conditions.host_reads import emit_test, tells_nothing
from .counter_table import LeafCells, Settings, Shared, cells_of
from .leaf_spec import Leaf
from .leaf_values import Test
from .leaves.host_leaf import HostLeaf
from .leaves.leaf import LeafWriter
from .llvm_writer import Writer


@dataclass
class Emitted:
    """The IR text of a dispatcher, with its table.

    Attributes:
        text: LLVM IR of one module.
        entries: the entries of the table, see `Writer`.
        cells: the cells of each leaf.
        shared: the cells that all leaves share.
    """

    text: str
    entries: list[Any]
    cells: list[LeafCells]
    shared: Shared


def emit(leaves: Sequence[Leaf], slow: Any, settings: Settings) -> Emitted:
    """A dispatcher that tries these leaves in order, and calls ``slow`` if no leaf fits."""
    return _DispatchEmitter(leaves, slow, settings).emitted()


class _DispatchEmitter:
    def __init__(self, leaves: Sequence[Leaf], slow: Any, settings: Settings) -> None:
        self.leaves, self.slow, self.settings = leaves, slow, settings
        self.w = Writer()
        self.shared = Shared(self.w.cell(), self.w.cell())
        self.cells = [cells_of(leaf, self.w) for leaf in leaves]

    def emitted(self) -> Emitted:
        w = self.w
        if self.settings.asks:
            emit_question(w, "miss")
        w.unless(tells_nothing(w), "miss")
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
        result = w.call("PyObject_Vectorcall", "ptr", f"ptr {slow}", "ptr %args", "i64 %n", "ptr %names")
        w.do(f"ret ptr {result}")
        text = "\n".join(w.text(len(w.entries)))
        return Emitted(text, w.entries, self.cells, self.shared)

    def tree(self, rows: list[tuple[int, list[Test]]], fail: str) -> None:
        """Write the tests of leaves, tried in order; tests that leaves share are written once."""
        # Common tests are handled in a loop: recursion would be as deep as there are arguments.
        common = _common([tests for _, tests in rows])
        for test in rows[0][1][:common]:
            self.w.unless(self.fits(emit_test(self.w, test.field), test.value), fail)
        rows = [(k, tests[common:]) for k, tests in rows]
        index, tests = rows[0]
        if not tests:
            leaf, cells = self.leaves[index], self.cells[index]
            for test in leaf.final:
                self.w.unless(self.fits(emit_test(self.w, test.field), test.value), "miss")
            writer = _writer(leaf)(self.w, leaf, cells, index + 1, self.shared, self.settings)
            writer.write()
            return
        field = tests[0].field
        group = _leading(rows, field)
        rest = rows[len(group) :]
        otherwise = self.w.name() if rest else fail
        word = emit_test(self.w, field)
        by_value: dict[Any, list[tuple[int, list[Test]]]] = {}
        for number, others in group:
            by_value.setdefault(_constant(others[0].value), []).append((number, others))
        for inner in by_value.values():
            next_value = self.w.name()
            self.w.unless(self.fits(word, inner[0][1][0].value), next_value)
            self.tree([(number, others[1:]) for number, others in inner], otherwise)
            self.w.label(next_value)
        self.w.jump(otherwise)
        if rest:
            self.w.label(otherwise)
            self.tree(rest, fail)

    def fits(self, word: str, value: Any) -> str:
        """Test that the field that was read equals this value."""
        if isinstance(value, int):
            return self.w.op(f"icmp eq i64 {word}, {value}")
        return self.w.op(f"icmp eq ptr {word}, {self.w.object(value)}")


def _writer(leaf: Leaf) -> type[LeafWriter]:
    if leaf.device == HOST:
        return HostLeaf
    from .leaves.device_leaf import DeviceLeaf

    return DeviceLeaf


def _common(rows: list[list[Test]]) -> int:
    """The number of leading tests that all rows share."""
    together = zip(*rows, strict=False)
    return sum(1 for _ in takewhile(lambda tests: len(set(tests)) == 1, together))


def _leading(rows: list[tuple[int, list[Test]]], field: tuple) -> list[tuple[int, list[Test]]]:
    """The leading rows whose first test reads the same field."""
    count = 0
    while count < len(rows) and rows[count][1] and rows[count][1][0].field == field:
        count += 1
    return rows[:count]


def _constant(value: Any) -> Any:
    """A hashable key of a test's value: ints by value, other objects by identity."""
    return value if isinstance(value, int) else ("object", id(value))
