"""The base class of leaf writers: exits that drop all references, and memory for arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from ....dialect.dataclass import dataclass
from ....dialect.ir.symbolic import Dim, Leaf
from ...memory.offsets import Placement
from ...memory.output_pool import ALIGN_FROM
from ..conditions.host_reads import combine, emit_size, is_literal
from ..counter_table import Settings
from ..layout import LAYOUT
from ..leaf_values import MadeValue
from ..llvm_writer import Writer
from ..refs import Ref

STACK_BYTES = 4096  # arrays between kernels lie on the stack if they need no more than this


@dataclass
class KernelOutput:
    """An output of a kernel, or what a function of a library has given.

    Attributes:
        data: address of its first element.
        array: pointer to the object; None if the output has no object (yet).
    """

    data: str
    array: str | None


class LeafBody:
    """The code of one leaf in the making.

    Attributes:
        owned: references that an exit has to drop, the last one first.
        known: size leaf -> its value as an i64.
        strides: (array, axis) -> stride in bytes, as an i64. Both are read before any code that
            may run Python (a finalizer, for instance) or another thread, which might change them.
        overwritten: True once an argument that might be read again contains a result.
        counted: True once the call is counted; only its results remain to be assembled.
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
        """The sum of two i64 values."""
        return combine(self.w, "+", a, b)

    def starts(self, places: Placement) -> list[str]:
        """Byte offset of each place in the block, then the block's size in bytes."""
        return list(accumulate(map(self.size, places.rooms), self.plus, initial="0"))

    # --- exits ------------------------------------------------------------------------------

    def _last_end(self) -> str:
        """The label of the code that ends the function after all references are dropped."""
        w = self.w
        label, failed = w.name(), w.name()
        with w.aside():
            w.label(label)
            w.branch(w.load("i1", self._raises), failed, "miss")
            w.label(failed)
            self.end_in_error()
        return label

    def set_error_aside(self) -> None:
        """Keep the pending exception apart from what runs next, as code that objects run when they end.

        Such code might lose the exception: a library's function that lets go of memory may be one in Python.
        """
        self.w.call("PyErr_Fetch", "void", *(f"ptr {place}" for place in self._error()))

    def end_in_error(self) -> None:
        """Return from the function, with the exception that was set aside."""
        w = self.w
        w.call("PyErr_Restore", "void", *(f"ptr {w.load('ptr', place)}" for place in self._error()))
        w.do("ret ptr null")

    def _error(self) -> list[str]:
        return [self.w.shared_alloca(("error", part), "ptr") for part in ("type", "value", "traceback")]

    def own(self, reference: str, undo: Callable[[Any], object] | None = None) -> str:
        """Make every exit from here on drop a reference, until `let_go` or `disown`.

        The code that drops it exists once, and then jumps to the code for the reference before it.
        ``undo``: is called with the object first, where Python handles the whole call.
        """
        w, label = self.w, self.w.name()
        with w.aside():
            w.label(label)
            if undo is not None:
                self._undone(undo, reference)
            self.drop([reference])
            w.jump(self._ends[-1])
        self.owned.append(reference)
        self._ends.append(label)
        return reference

    def _undone(self, undo: Callable[[Any], object], reference: str) -> None:
        w = self.w
        back, failed, dropped, on = w.name(), w.name(), w.name(), w.name()
        w.branch(w.load("i1", self._raises), on, back)
        w.label(back)
        answer = self.python_call(undo, reference)
        w.branch(w.op(f"icmp eq ptr {answer}, null"), failed, dropped)
        w.label(failed)
        self.set_error_aside()
        w.store("i1", "true", self._raises)
        w.jump(on)
        w.label(dropped)
        self.drop([answer])
        w.jump(on)
        w.label(on)

    def disown(self, reference: str) -> None:
        """Stop owning the last reference without dropping it: another object owns it now."""
        assert self.owned[-1] is reference, "references are let go of in the order of a stack"
        self.owned.pop()
        self._ends.pop()

    def let_go(self, reference: str) -> None:
        """Stop owning the last reference, and drop it."""
        self.disown(reference)
        self.drop([reference])

    def leave(self, *, raises: bool) -> None:
        """Drop all references and end the call, with the pending exception or by Python."""
        if raises:
            self.set_error_aside()
        self.w.store("i1", str(raises).lower(), self._raises)
        self.w.jump(self._ends[-1])

    def leave_unless(self, condition: str, *, clear: bool = False) -> None:
        """If the condition is false, drop all references and let Python handle the whole call."""
        w = self.w
        out, on = w.name(), w.name()
        w.branch(condition, on, out)
        w.label(out)
        if clear:
            w.call("PyErr_Clear", "void")
        self.leave(raises=False)
        w.label(on)

    def drop(self, references: list[str]) -> None:
        for reference in references:
            self.w.call("Py_DecRef", "void", f"ptr {reference}")

    def raise_unless(self, pointer: str, left: tuple[type, ...] = (MemoryError,)) -> str:
        """Check the result of Python code; NULL means that it raised an exception.

        The exception is passed on to the caller, since it may come from a signal handler. If its
        type is in ``left``, it is cleared instead: the Python dispatcher repeats the call, counts
        it, and raises the exception again if it still occurs.
        """
        w = self.w
        failed, out, on = w.name(), w.name(), w.name()
        w.branch(w.op(f"icmp ne ptr {pointer}, null"), on, failed)
        w.label(failed)
        short = w.call("PyErr_ExceptionMatches", "i32", f"ptr {w.object(left)}")
        self.leave_unless(w.op(f"icmp eq i32 {short}, 0"), clear=True)
        w.jump(out)
        w.label(out)
        self.leave(raises=True)
        w.label(on)
        return pointer

    def check(self, pointer: str) -> str:
        """Require that a pointer is not NULL, as `demand` does; returns the pointer."""
        self.demand(self.w.op(f"icmp ne ptr {pointer}, null"))
        return pointer

    def demand(self, condition: str) -> None:
        """Require that C code has succeeded; otherwise the Python dispatcher repeats the call.

        It cannot repeat a call that has overwritten an argument or has been counted. From then on,
        the exception is passed on to the caller.
        """
        if not (self.overwritten or self.counted):
            self.leave_unless(condition, clear=True)
            return
        w = self.w
        failed, on = w.name(), w.name()
        w.branch(condition, on, failed)
        w.label(failed)
        self.leave(raises=True)
        w.label(on)

    def python_call(self, function: Any, *arguments: str, names: tuple[str, ...] = ()) -> str:
        """Call a Python function; ``names``: the keywords of the last arguments."""
        w = self.w
        listed = w.alloca(f"[{len(arguments)} x ptr]")
        for k, argument in enumerate(arguments):
            w.store("ptr", argument, w.element(listed, k))
        return w.call(
            "PyObject_Vectorcall",
            "ptr",
            f"ptr {w.object(function)}",
            f"ptr {listed}",
            f"i64 {len(arguments) - len(names)}",
            f"ptr {w.object(names)}" if names else "ptr null",
        )

    # --- memory -----------------------------------------------------------------------------

    def block(self, total: str, arrays: Sequence[MadeValue]) -> str:
        """Address of memory for arrays between kernels: on the stack, or this thread's block.

        The leaf owns a reference to the block, and every exit drops it. As long as a reference
        exists, no other call gets the block, such as one that a finalizer makes on this thread.
        """
        if is_literal(total) and int(total) <= STACK_BYTES:
            return self.w.alloca(f"[{total} x i8]")
        for array in arrays:
            self.leave_if_endless(array)
        block = self.asked_for(self.settings.scratch, total)
        self.own(block)
        return self.w.field("ptr", block, LAYOUT.data)

    def leave_if_endless(self, array: MadeValue) -> None:
        """Leave to Python if a size is negative or the bytes exceed 2**56: there NumPy raises."""
        w, total = self.w, f"{float(array.dtype.itemsize)}"
        for size in array.sizes:
            length = w.op(f"sitofp i64 {self.size(size)} to double")
            if not isinstance(size, int):
                self.leave_unless(w.op(f"fcmp oge double {length}, 0.0"))
            total = w.op(f"fmul double {total}, {length}")
        if any(not isinstance(size, int) for size in array.sizes):
            self.leave_unless(w.op(f"fcmp olt double {total}, {float(1 << 56)}"))

    def asked_for(self, function: Any, nbytes: str) -> str:
        """The result of a Python function that takes a number of bytes."""
        w = self.w
        size = self.check(w.call("PyLong_FromSsize_t", "ptr", f"i64 {nbytes}"))
        result = self.python_call(function, size)
        w.call("Py_DecRef", "void", f"ptr {size}")
        return self.raise_unless(result)

    def array_of_either_size(self, nbytes: Dim, words: list[str], descr: str) -> str:
        """A new array whose size in bytes is only known at run time."""
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
        array = w.call(
            "PyArray_NewFromDescr",
            "ptr",
            f"ptr {w.object(np.ndarray)}",
            f"ptr {descr}",
            f"i32 {len(words)}",
            f"ptr {dims}",
            "ptr null",
            "ptr null",
            "i32 0",
            "ptr null",
        )
        return self.check(array)

    def big_array(self, words: list[str], descr: str) -> str:
        """A new array from `output_pool.empty`: aligned memory, or memory of the pool."""
        shape = self.tuple_of(words)
        array = self.python_call(self.settings.empty, shape, descr)
        self.let_go(shape)
        return self.raise_unless(array)

    def tuple_of(self, words: list[str]) -> str:
        """A new tuple of ints, which the leaf owns."""
        w = self.w
        result = self.check(w.call("PyTuple_New", "ptr", f"i64 {len(words)}"))
        self.own(result)
        for k, word in enumerate(words):
            number = self.check(w.call("PyLong_FromSsize_t", "ptr", f"i64 {word}"))
            w.call("PyTuple_SetItem", "i32", f"ptr {result}", f"i64 {k}", f"ptr {number}")
        return result

    def workspace(self, size: Dim) -> str:
        """Address of the kernel's workspace, as an i64; 0 if it needs none."""
        if size == 0:
            return "0"
        w, memory = self.w, self.asked_for(self.settings.workspace, self.size(size))
        overflow = w.alloca("i32")
        address = w.call("PyLong_AsLongLongAndOverflow", "i64", f"ptr {memory}", f"ptr {overflow}")
        w.call("Py_DecRef", "void", f"ptr {memory}")
        return address
