"""Emitting code that reads arrays of other libraries, as `host_reads` does for NumPy arrays.

Each array has a description (a ``DLTensor``) on the stack. The test ``described`` has the array
library fill it in, and all other tests of the array read it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ...exchange.c_functions import Reader
from ...exchange.dlpack import COMPLEX, DataType, DLTensor
from ..llvm_writer import Writer
from ..refs import DescribedRef, Held
from . import argument_reads
from .argument_reads import Conjunction

BYTES = ctypes.sizeof(DLTensor)


def description(w: Writer, ref: DescribedRef) -> str:
    """Pointer to the description of an argument."""
    return w.shared_alloca(("description", ref.position), f"[{BYTES} x i8]")


def pointer(w: Writer, ref: DescribedRef) -> str:
    """Pointer to the object of an array."""
    position = ref.position
    return w.object(position.value) if isinstance(position, Held) else argument_reads.pointer(w, position)


def in_modes(w: Writer, exchange: Reader) -> str:
    """Test that nothing is computed beside the tensors of a library, as tangents are, and nobody watches.

    See `Reader.modes` and `Reader.counts`.
    """
    checked = Conjunction(w)
    for function in exchange.counts:
        count = w.call("PyObject_CallNoArgs", "ptr", f"ptr {w.object(function)}")
        checked.unless(w.op(f"icmp ne ptr {count}, null"))
        w.call("Py_DecRef", "void", f"ptr {count}")  # small ints live as long as the interpreter
        checked.unless(w.op(f"icmp eq ptr {count}, {w.object(0)}"))
    for holder, name, value in exchange.modes:
        now = w.call("PyObject_GetAttr", "ptr", f"ptr {w.object(holder)}", f"ptr {w.object(name)}")
        checked.unless(w.op(f"icmp ne ptr {now}, null"))
        w.call("Py_DecRef", "void", f"ptr {now}")  # the module still holds it
        checked.unless(w.op(f"icmp eq ptr {now}, {w.object(value)}"))
    return checked.answer(clear=True)


def described(w: Writer, ref: DescribedRef) -> str:
    """Have an array described; 0 if the library refuses, or if the array has a special flag.

    Special flags are the attributes ``exchange.false``, while gradient mode is on, and the methods
    ``exchange.negative`` and ``exchange.conjugate``, such as a pending conjugation, which the description cannot
    express.
    """
    array = f"ptr {pointer(w, ref)}"
    exchange = ref.exchange
    checked = Conjunction(w)
    for name in exchange.false:
        flag = w.call("PyObject_GetAttr", "ptr", array, f"ptr {w.object(name)}")
        if exchange.gradients is None:
            _expect_false(w, flag, checked)
            continue
        wanted, on = w.name(), w.name()
        checked.unless(w.op(f"icmp ne ptr {flag}, null"))
        w.call("Py_DecRef", "void", f"ptr {flag}")  # True and False are immortal, and all else is refused
        w.branch(w.op(f"icmp eq ptr {flag}, {w.object(False)}"), on, wanted)
        w.label(wanted)
        _expect_false(w, w.call("PyObject_CallNoArgs", "ptr", f"ptr {w.object(exchange.gradients)}"), checked)
        w.jump(on)
        w.label(on)
    _expect_answers(w, array, exchange.negative, checked)
    at = description(w, ref)
    status = w.call_address(exchange.describe, "i32", array, f"ptr {at}")
    checked.unless(w.op(f"icmp eq i32 {status}, 0"))
    if exchange.conjugate:
        is_complex, on = w.name(), w.name()
        code = w.field("i8", at, DLTensor.dtype.offset + DataType.code.offset)
        w.branch(w.op(f"icmp eq i8 {code}, {COMPLEX}"), is_complex, on)
        w.label(is_complex)
        _expect_answers(w, array, exchange.conjugate, checked)
        w.jump(on)
        w.label(on)
    # Before version 1.2 of DLPack, contiguous tensors might come without strides.
    scalar = w.op(f"icmp eq i32 {w.field('i32', at, DLTensor.ndim.offset)}, 0")
    some = w.op(f"icmp ne ptr {w.field('ptr', at, DLTensor.strides.offset)}, null")
    checked.unless(w.op(f"or i1 {scalar}, {some}"))
    return checked.answer(clear=True)


def _expect_answers(w: Writer, array: str, methods: Sequence[str], checked: Conjunction) -> None:
    """Require that methods of an array return False."""
    for name in methods:
        args = w.alloca("[1 x ptr]")
        w.do(f"store {array}, ptr {args}")
        result = w.call("PyObject_VectorcallMethod", "ptr", f"ptr {w.object(name)}", f"ptr {args}", "i64 1", "ptr null")
        _expect_false(w, result, checked)


def _expect_false(w: Writer, reference: str, checked: Conjunction) -> None:
    """Require that a new reference is Python's False, and drop it; False is an immortal object."""
    wrong, drop, on = w.name(), w.name(), w.name()
    w.branch(w.op(f"icmp eq ptr {reference}, {w.object(False)}"), on, wrong)
    w.label(wrong)
    w.branch(w.op(f"icmp eq ptr {reference}, null"), checked.failed, drop)
    w.label(drop)
    w.call("Py_DecRef", "void", f"ptr {reference}")
    w.jump(checked.failed)
    w.label(on)
    w.call("Py_DecRef", "void", f"ptr {reference}")


def aligned(w: Writer, ref: DescribedRef, nbytes: int) -> str:
    """Test that there is memory, and that the first element lies at a multiple of this many bytes.

    Tensors without memory are left to Python: empty ones, and such as stand for zeros.
    """
    at = address(w, description(w, ref))
    rest = w.op(f"urem i64 {at}, {nbytes}")
    fits = w.op(f"and i1 {w.op(f'icmp eq i64 {rest}, 0')}, {w.op(f'icmp ne i64 {at}, 0')}")
    return w.op(f"zext i1 {fits} to i64")


def address(w: Writer, at: str) -> str:
    """The address of a described array's first element, as an i64."""
    return w.op(
        f"add i64 {w.field('i64', at, DLTensor.data.offset)}, {w.field('i64', at, DLTensor.byte_offset.offset)}"
    )


def dimension(w: Writer, ref: DescribedRef, axis: int) -> str:
    sizes = w.field("ptr", description(w, ref), DLTensor.shape.offset)
    return w.load("i64", w.element(sizes, axis))


def stride(w: Writer, ref: DescribedRef, axis: int) -> str:
    """The stride of an axis in bytes, as an i64."""
    steps = w.field("ptr", description(w, ref), DLTensor.strides.offset)
    return w.op(f"mul i64 {w.load('i64', w.element(steps, axis))}, {ref.itemsize}")


def rank(w: Writer, ref: DescribedRef) -> str:
    return w.op(f"sext i32 {w.field('i32', description(w, ref), DLTensor.ndim.offset)} to i64")


def dtype(w: Writer, ref: DescribedRef) -> str:
    return w.op(f"zext i32 {w.field('i32', description(w, ref), DLTensor.dtype.offset)} to i64")


def device(w: Writer, ref: DescribedRef) -> str:
    return w.field("i64", description(w, ref), DLTensor.device.offset)


def dense(w: Writer, ref: DescribedRef, rank: int) -> str:
    """Test that the elements lie in C order without gaps; axes of size 1 may have any stride."""
    fits, empty, step = "true", "false", str(ref.itemsize)
    for axis in reversed(range(rank)):
        size = dimension(w, ref, axis)
        single = w.op(f"icmp eq i64 {size}, 1")
        right = w.op(f"icmp eq i64 {stride(w, ref, axis)}, {step}")
        fits = w.op(f"and i1 {fits}, {w.op(f'or i1 {single}, {right}')}")
        empty = w.op(f"or i1 {empty}, {w.op(f'icmp eq i64 {size}, 0')}")
        step = w.op(f"mul i64 {step}, {size}")
    return w.op(f"zext i1 {w.op(f'or i1 {fits}, {empty}')} to i64")
