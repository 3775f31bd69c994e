"""Emitting code that reads arrays of a device, as `host_reads` does for NumPy arrays.

Each argument has a description (a ``DLTensor``) on the stack. The test ``described`` has the array
library fill it in, and all other tests of the argument read it.
"""

from __future__ import annotations

import ctypes

from ...cuda.exchange.dlpack import Tensor
from ..llvm_writer import Writer
from ..refs import OnDevice
from .argument_reads import Checked, pointer

BYTES = ctypes.sizeof(Tensor)


def description(w: Writer, ref: OnDevice) -> str:
    """Pointer to the description of an argument."""
    return w.shared_alloca(("description", ref.position), f"[{BYTES} x i8]")


def described(w: Writer, ref: OnDevice) -> str:
    """Have an array described; 0 if the library refuses, or if the array has a special flag.

    Special flags are the attributes ``exchange.false`` and the methods ``exchange.negative``, such
    as a pending conjugation, which the description cannot express.
    """
    given = f"ptr {pointer(w, ref.position)}"
    exchange = ref.exchange
    checked = Checked(w)
    for name in exchange.false:
        _expect_false(w, w.call("PyObject_GetAttr", "ptr", given, f"ptr {w.object(name)}"), checked)
    for name in exchange.negative:
        asked = w.alloca("[1 x ptr]")
        w.do(f"store {given}, ptr {asked}")
        found = w.call(
            "PyObject_VectorcallMethod", "ptr", f"ptr {w.object(name)}", f"ptr {asked}", "i64 1",
            "ptr null",
        )  # fmt: skip
        _expect_false(w, found, checked)
    at = description(w, ref)
    status = w.call_address(exchange.describe, "i32", given, f"ptr {at}")
    checked.unless(w.op(f"icmp eq i32 {status}, 0"))
    # Before version 1.2 of DLPack, contiguous tensors might come without strides.
    scalar = w.op(f"icmp eq i32 {w.field('i32', at, Tensor.ndim.offset)}, 0")
    some = w.op(f"icmp ne ptr {w.field('ptr', at, Tensor.strides.offset)}, null")
    checked.unless(w.op(f"or i1 {scalar}, {some}"))
    return checked.answer(clear=True)


def _expect_false(w: Writer, found: str, checked: Checked) -> None:
    """Require that a new reference is Python's False, and drop it; False is an immortal object."""
    wrong, drop, on = w.name(), w.name(), w.name()
    w.branch(w.op(f"icmp eq ptr {found}, {w.object(False)}"), on, wrong)
    w.label(wrong)
    w.branch(w.op(f"icmp eq ptr {found}, null"), checked.failed, drop)
    w.label(drop)
    w.call("Py_DecRef", "void", f"ptr {found}")
    w.jump(checked.failed)
    w.label(on)
    w.call("Py_DecRef", "void", f"ptr {found}")


def address(w: Writer, at: str) -> str:
    """The address of a described array's first element, as an i64."""
    return w.op(
        f"add i64 {w.field('i64', at, Tensor.data.offset)}, "
        f"{w.field('i64', at, Tensor.byte_offset.offset)}"
    )


def dimension(w: Writer, ref: OnDevice, axis: int) -> str:
    sizes = w.field("ptr", description(w, ref), Tensor.shape.offset)
    return w.load("i64", w.element(sizes, axis))


def stride(w: Writer, ref: OnDevice, axis: int) -> str:
    """The stride of an axis in bytes, as an i64."""
    steps = w.field("ptr", description(w, ref), Tensor.strides.offset)
    return w.op(f"mul i64 {w.load('i64', w.element(steps, axis))}, {ref.itemsize}")


def rank(w: Writer, ref: OnDevice) -> str:
    return w.op(f"sext i32 {w.field('i32', description(w, ref), Tensor.ndim.offset)} to i64")


def dtype(w: Writer, ref: OnDevice) -> str:
    return w.op(f"zext i32 {w.field('i32', description(w, ref), Tensor.dtype.offset)} to i64")


def device(w: Writer, ref: OnDevice) -> str:
    return w.field("i64", description(w, ref), Tensor.device.offset)


def dense(w: Writer, ref: OnDevice, rank: int) -> str:
    """Whether the elements lie in C order without gaps; axes of size 1 may have any stride."""
    fits, empty, step = "true", "false", str(ref.itemsize)
    for axis in reversed(range(rank)):
        size = dimension(w, ref, axis)
        single = w.op(f"icmp eq i64 {size}, 1")
        right = w.op(f"icmp eq i64 {stride(w, ref, axis)}, {step}")
        fits = w.op(f"and i1 {fits}, {w.op(f'or i1 {single}, {right}')}")
        empty = w.op(f"or i1 {empty}, {w.op(f'icmp eq i64 {size}, 0')}")
        step = w.op(f"mul i64 {step}, {size}")
    return w.op(f"zext i1 {w.op(f'or i1 {fits}, {empty}')} to i64")
