"""What all parts of a leaf's code share: ways out that leave nothing behind, and memory."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ....dialect.ir.symbolic import Dim, Leaf
from ...memory.output_pool import ALIGN_FROM
from ...memory.placement import Placement
from ..conditions.host_reads import combine, emit_size, is_literal
from ..counter_table import Settings
from ..layout import LAYOUT
from ..leaf_spec import MadeValue
from ..llvm_writer import Writer
from ..refs import Ref

STACK_BYTES = 4096  # of arrays between kernels, up to which they lie on the stack


class Body:
    """The code of one leaf in the making.

    Attributes:
        owned: references that a way out has to drop, the last one first.
        known, strides: of the arguments, read before anything can run Python code (finalizers,
            say) or other threads, which might change them.
        overwritten: a donated argument holds a result already.
        counted: the call has been counted, and only its results are left to be put together.
    """

    def __init__(self, w: Writer, settings: Settings) -> None:
        self.w, self.settings = w, settings
        self.owned: list[str] = []
        self.known: dict[Leaf, str] = {}
        self.strides: dict[tuple[Ref, int], str] = {}
        self.overwritten = self.counted = False
        self._raises = w.alloca("i1")
        self._ends = [self._last_end()]

    def size(self, size: Dim) -> str:
        return emit_size(self.w, size, self.known)

    def plus(self, a: str, b: str) -> str:
        """The sum of two i64."""
        return combine(self.w, "+", a, b)

    def starts(self, places: Placement) -> list[str]:
        """Bytes from the start of the block to each place, and to the end of the last one."""
        return list(accumulate(map(self.size, places.rooms), self.plus, initial="0"))

    # --- ways out ---------------------------------------------------------------------------

    def _last_end(self) -> str:
        """Where a way out comes to once everything is dropped."""
        w = self.w
        label, failed = w.name(), w.name()
        with w.aside():
            w.label(label)
            w.branch(w.load("i1", self._raises), failed, "miss")
            w.label(failed)
            w.do("ret ptr null")
        return label

    def own(self, reference: str) -> str:
        """Have every way out drop a reference, from here until `let_go`.

        It is dropped in one place, from where the way goes on to what was owned before.
        """
        w, label = self.w, self.w.name()
        with w.aside():
            w.label(label)
            self.drop([reference])
            w.jump(self._ends[-1])
        self.owned.append(reference)
        self._ends.append(label)
        return reference

    def disown(self, reference: str) -> None:
        """What was owned last is somebody else's now."""
        assert self.owned[-1] is reference, "references are let go of in the order of a stack"
        self.owned.pop()
        self._ends.pop()

    def let_go(self, reference: str) -> None:
        """Drop what was owned last."""
        self.disown(reference)
        self.drop([reference])

    def _leave(self, *, raises: bool) -> None:
        self.w.store("i1", str(raises).lower(), self._raises)
        self.w.jump(self._ends[-1])

    def leave_unless(self, condition: str, *, clear: bool = False) -> None:
        """Where the condition is false, drop what has been made and let Python do it all."""
        w = self.w
        out, on = w.name(), w.name()
        w.branch(condition, on, out)
        w.label(out)
        if clear:
            w.call("PyErr_Clear", "void")
        self._leave(raises=False)
        w.label(on)

    def drop(self, references: list[str]) -> None:
        for reference in references:
            self.w.call("Py_DecRef", "void", f"ptr {reference}")

    def raise_unless(self, pointer: str, left: tuple[type, ...] = (MemoryError,)) -> str:
        """The result of Python code; what that raises may be a signal's, hence is passed on.

        Short memory, or what else is ``left``, is not: the Python dispatcher meets it again, and
        counts the call.
        """
        w = self.w
        failed, out, on = w.name(), w.name(), w.name()
        w.branch(w.op(f"icmp ne ptr {pointer}, null"), on, failed)
        w.label(failed)
        short = w.call("PyErr_ExceptionMatches", "i32", f"ptr {w.object(left)}")
        self.leave_unless(w.op(f"icmp eq i32 {short}, 0"), clear=True)
        w.jump(out)
        w.label(out)
        self._leave(raises=True)
        w.label(on)
        return pointer

    def check(self, pointer: str) -> str:
        """A pointer that is not NULL; see `demand`."""
        self.demand(self.w.op(f"icmp ne ptr {pointer}, null"))
        return pointer

    def demand(self, condition: str) -> None:
        """What C code had to succeed in; an exception is raised anew by the Python dispatcher.

        That cannot start over once an argument has been overwritten, or the call counted: then it
        is passed on.
        """
        if not (self.overwritten or self.counted):
            self.leave_unless(condition, clear=True)
            return
        w = self.w
        failed, on = w.name(), w.name()
        w.branch(condition, on, failed)
        w.label(failed)
        self._leave(raises=True)
        w.label(on)

    def python_call(self, function: Any, *arguments: str, names: tuple[str, ...] = ()) -> str:
        """A call of a Python function; the last arguments are named."""
        w = self.w
        listed = w.alloca(f"[{len(arguments)} x ptr]")
        for k, argument in enumerate(arguments):
            w.store("ptr", argument, w.element(listed, k))
        return w.call(
            "PyObject_Vectorcall", "ptr", f"ptr {w.object(function)}", f"ptr {listed}",
            f"i64 {len(arguments) - len(names)}",
            f"ptr {w.object(names)}" if names else "ptr null",
        )  # fmt: skip

    # --- memory -----------------------------------------------------------------------------

    def block(self, total: str, arrays: Sequence[MadeValue]) -> str:
        """Memory for arrays that nobody else sees: on the stack, or this thread's scratch block.

        Whoever holds the block keeps it from being given away, say to a call that a finalizer makes
        on this thread meanwhile; every way out drops it.
        """
        if is_literal(total) and int(total) <= STACK_BYTES:
            return self.w.alloca(f"[{total} x i8]")
        for made in arrays:
            self.leave_if_endless(made)
        found = self.asked_for(self.settings.scratch, total)
        self.own(found)
        return self.w.field("ptr", found, LAYOUT.data)

    def leave_if_endless(self, made: MadeValue) -> None:
        """Sizes whose product does not fit 64 bits are left to NumPy, which raises."""
        w, total = self.w, f"{float(made.dtype.itemsize)}"
        for size in made.sizes:
            length = w.op(f"sitofp i64 {self.size(size)} to double")
            if not isinstance(size, int):
                self.leave_unless(w.op(f"fcmp oge double {length}, 0.0"))
            total = w.op(f"fmul double {total}, {length}")
        if any(not isinstance(size, int) for size in made.sizes):
            self.leave_unless(w.op(f"fcmp olt double {total}, {float(1 << 56)}"))

    def asked_for(self, function: Any, nbytes: str) -> str:
        """What a Python function gives for a number of bytes."""
        w = self.w
        wanted = self.check(w.call("PyLong_FromSsize_t", "ptr", f"i64 {nbytes}"))
        found = self.python_call(function, wanted)
        w.call("Py_DecRef", "void", f"ptr {wanted}")
        return self.raise_unless(found)

    def array_of_either_size(self, nbytes: Dim, words: list[str], descr: str) -> str:
        w = self.w
        little, big, both = w.name(), w.name(), w.name()
        w.branch(w.op(f"icmp ult i64 {self.size(nbytes)}, {ALIGN_FROM}"), little, big)
        w.label(little)
        first = self.small_array(words, descr)
        from_little = w.here()
        w.jump(both)
        w.label(big)
        second = self.big_array(words, descr)
        from_big = w.here()
        w.jump(both)
        w.label(both)
        return w.op(f"phi ptr [ {first}, %{from_little} ], [ {second}, %{from_big} ]")

    def small_array(self, words: list[str], descr: str) -> str:
        """A new array straight from NumPy's C API."""
        w = self.w
        dims = w.alloca(f"[{len(words)} x i64]")
        for k, word in enumerate(words):
            w.store("i64", word, w.element(dims, k))
        w.call("Py_IncRef", "void", f"ptr {descr}")  # the next call steals it, failing or not
        made = w.call(
            "PyArray_NewFromDescr", "ptr", f"ptr {w.object(np.ndarray)}", f"ptr {descr}",
            f"i32 {len(words)}", f"ptr {dims}", "ptr null", "ptr null", "i32 0", "ptr null",
        )  # fmt: skip
        return self.check(made)

    def big_array(self, words: list[str], descr: str) -> str:
        """A new array from `output_pool.empty`, aligned or out of the pool."""
        shape = self.tuple_of(words)
        made = self.python_call(self.settings.empty, shape, descr)
        self.let_go(shape)
        return self.raise_unless(made)

    def tuple_of(self, words: list[str]) -> str:
        """A tuple of numbers, owned."""
        w = self.w
        made = self.check(w.call("PyTuple_New", "ptr", f"i64 {len(words)}"))
        self.own(made)
        for k, word in enumerate(words):
            number = self.check(w.call("PyLong_FromSsize_t", "ptr", f"i64 {word}"))
            w.call("PyTuple_SetItem", "i32", f"ptr {made}", f"i64 {k}", f"ptr {number}")
        return made

    def workspace(self, size: Dim) -> str:
        """Address of the kernel's scratch memory, as a number."""
        if size == 0:
            return "0"
        w, found = self.w, self.asked_for(self.settings.workspace, self.size(size))
        overflow = w.alloca("i32")
        address = w.call("PyLong_AsLongLongAndOverflow", "i64", f"ptr {found}", f"ptr {overflow}")
        w.call("Py_DecRef", "void", f"ptr {found}")
        return address
