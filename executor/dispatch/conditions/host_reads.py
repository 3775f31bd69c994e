"""Emitting code that reads NumPy array objects, sizes, and the fields of `leaf_values.Test`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from ....dialect.importers.numpy.python.float_errors import STATE
from ....dialect.ir.symbolic import BINARY, Dim, Dimension, Integer, Leaf
from ..layout import LAYOUT, TOLD_ERRORS
from ..llvm_writer import Writer
from ..refs import DescribedRef, Held, Ref, ScalarRef, Stride, position_of
from . import argument_reads, described_reads, relaxed_guards, state_reads, tape_reads


def pointer_to(w: Writer, ref: Ref) -> str:
    """Pointer to an array object: an argument, or a captured array."""
    position = position_of(ref)
    return w.object(position.value) if isinstance(position, Held) else argument_reads.pointer(w, position)


def elements_of(w: Writer, ref: Ref) -> str:
    """Address of the first element of an array of the host, as an i64."""
    if isinstance(ref, DescribedRef):
        return described_reads.address(w, described_reads.description(w, ref))
    at = pointer_to(w, ref)
    if isinstance(ref, ScalarRef):
        return w.op(f"ptrtoint ptr {w.op(f'getelementptr i8, ptr {at}, i64 {LAYOUT.scalar}')} to i64")
    return w.field("i64", at, LAYOUT.data)


def emit_test(w: Writer, field: tuple) -> str:
    """The value of a `leaf_values.Test`'s field: a pointer for ``type``, else an i64."""
    return _FIELDS[field[0]](w, *field[1:])


def tells_nothing(w: Writer) -> str:
    """Test that nobody has asked NumPy to be told of floating-point errors (`float_errors`)."""
    place = w.alloca("ptr")
    w.call("PyContextVar_Get", "i32", f"ptr {w.object(STATE)}", "ptr null", f"ptr {place}")
    state = w.load("ptr", place)  # there is one: the variable has a default
    mask = w.field("i32", w.field("ptr", state, LAYOUT.pointer), LAYOUT.errors)
    w.call("Py_DecRef", "void", f"ptr {state}")
    return w.op(f"icmp eq i32 {w.op(f'and i32 {mask}, {TOLD_ERRORS}')}, 0")


def emit_size(w: Writer, size: Dim, known: Mapping[Leaf, str] = MappingProxyType({})) -> str:
    """A size as an i64; ``known``: the values of leaves that have been read already."""
    if isinstance(size, int):
        return str(size)
    return size.fold(
        lambda leaf: known[leaf] if leaf in known else emit_leaf(w, leaf), str, lambda op, a, b: combine(w, op, a, b)
    )


def emit_leaf(w: Writer, leaf: Leaf) -> str:
    """The value of a leaf of size expressions, as an i64."""
    if isinstance(leaf, Integer):
        return argument_reads.integer(w, leaf.position)
    if isinstance(leaf, Stride):
        return w.op(f"sdiv i64 {stride(w, leaf.array, leaf.axis)}, {leaf.itemsize}")
    assert isinstance(leaf, Dimension)
    return _dimension(w, leaf.array, leaf.axis)


def is_literal(word: str) -> bool:
    """True if an operand is a literal number, known when the code is emitted."""
    return word.lstrip("-").isdigit()


def combine(w: Writer, op: str, a: str, b: str) -> str:
    """Apply an operator of `symbolic.BINARY` to two i64 values; divisors are positive."""
    if is_literal(a) and is_literal(b):
        return str(BINARY[op](int(a), int(b)))
    if op in ("+", "*"):
        return w.op(f"{'add' if op == '+' else 'mul'} i64 {a}, {b}")
    if op in ("max", "min"):
        larger = w.op(f"icmp sgt i64 {a}, {b}")
        first, second = (a, b) if op == "max" else (b, a)
        return w.op(f"select i1 {larger}, i64 {first}, i64 {second}")
    # Python rounds a quotient down, so a remainder has the sign of the divisor; LLVM truncates.
    rest = w.op(f"srem i64 {a}, {b}")
    below = w.op(f"icmp slt i64 {rest}, 0")
    if op == "%":
        return w.op(f"select i1 {below}, i64 {w.op(f'add i64 {rest}, {b}')}, i64 {rest}")
    quotient = w.op(f"sdiv i64 {a}, {b}")
    return w.op(f"select i1 {below}, i64 {w.op(f'sub i64 {quotient}, 1')}, i64 {quotient}")


def stride(w: Writer, ref: Ref, axis: int) -> str:
    """The stride of an axis in bytes, as an i64."""
    if isinstance(ref, DescribedRef):
        return described_reads.stride(w, ref, axis)
    steps = w.field("ptr", pointer_to(w, ref), LAYOUT.strides)
    return w.load("i64", w.element(steps, axis))


def _dimension(w: Writer, ref: Ref, axis: int) -> str:
    if isinstance(ref, DescribedRef):
        return described_reads.dimension(w, ref, axis)
    dims = w.field("ptr", pointer_to(w, ref), LAYOUT.dimensions)
    return w.load("i64", w.element(dims, axis))


def _type(w: Writer, ref: Ref) -> str:
    return w.field("ptr", pointer_to(w, ref), LAYOUT.ob_type)


def _dtype(w: Writer, ref: Ref) -> str:
    if isinstance(ref, DescribedRef):
        return described_reads.dtype(w, ref)
    return w.field("i64", w.field("ptr", pointer_to(w, ref), LAYOUT.descr), LAYOUT.dtype)


def _nd(w: Writer, ref: Ref) -> str:
    if isinstance(ref, DescribedRef):
        return described_reads.rank(w, ref)
    return w.op(f"sext i32 {w.field('i32', pointer_to(w, ref), LAYOUT.nd)} to i64")


def _flags(w: Writer, ref: Ref, mask: int) -> str:
    flags = w.field("i32", pointer_to(w, ref), LAYOUT.flags)
    return w.op(f"zext i32 {w.op(f'and i32 {flags}, {mask}')} to i64")


def _truth(w: Writer, condition: str) -> str:
    return w.op(f"zext i1 {condition} to i64")


def _positive(w: Writer, size: Dim) -> str:
    return _truth(w, w.op(f"icmp sgt i64 {emit_size(w, size)}, 0"))


def _same(w: Writer, a: Dim, b: Dim) -> str:
    return _truth(w, w.op(f"icmp eq i64 {emit_size(w, a)}, {emit_size(w, b)}"))


def _less(w: Writer, a: Dim, b: Dim) -> str:
    return _truth(w, w.op(f"icmp slt i64 {emit_size(w, a)}, {emit_size(w, b)}"))


def _step(w: Writer, ref: Ref, axis: int, nbytes: int) -> str:
    single = w.op(f"icmp eq i64 {_dimension(w, ref, axis)}, 1")
    fits = w.op(f"icmp eq i64 {stride(w, ref, axis)}, {nbytes}")
    return _truth(w, w.op(f"or i1 {single}, {fits}"))


def _multiple(w: Writer, ref: Ref, axis: int, nbytes: int) -> str:
    single = w.op(f"icmp eq i64 {_dimension(w, ref, axis)}, 1")
    rest = w.op(f"srem i64 {stride(w, ref, axis)}, {nbytes}")
    fits = w.op(f"icmp eq i64 {rest}, 0")
    return _truth(w, w.op(f"or i1 {single}, {fits}"))


def _apart(w: Writer, one: Ref, nbytes: Dim, other: Ref, rank: int, itemsize: int) -> str:
    start, low = (elements_of(w, ref) for ref in (one, other))
    end, high = w.op(f"add i64 {start}, {emit_size(w, nbytes)}"), low
    for axis in range(rank):
        last = w.op(f"sub i64 {_dimension(w, other, axis)}, 1")
        span = w.op(f"mul i64 {last}, {stride(w, other, axis)}")
        down = w.op(f"icmp slt i64 {span}, 0")
        low = w.op(f"add i64 {low}, {w.op(f'select i1 {down}, i64 {span}, i64 0')}")
        high = w.op(f"add i64 {high}, {w.op(f'select i1 {down}, i64 0, i64 {span}')}")
    high = w.op(f"add i64 {high}, {itemsize}")
    before, behind = w.op(f"icmp ule i64 {end}, {low}"), w.op(f"icmp ule i64 {high}, {start}")
    return _truth(w, w.op(f"or i1 {before}, {behind}"))


def _view(w: Writer, ref: Ref) -> str:
    """Test that the array's base is another array.

    The code has no branch: for an array without a base, the array itself takes the base's place.
    """
    me = pointer_to(w, ref)
    base = w.field("ptr", me, LAYOUT.base)
    none = w.op(f"icmp eq ptr {base}, null")
    kind = w.field("ptr", w.op(f"select i1 {none}, ptr {me}, ptr {base}"), LAYOUT.ob_type)
    same = w.op(f"icmp eq ptr {kind}, {w.field('ptr', me, LAYOUT.ob_type)}")
    other = w.op(f"xor i1 {none}, true")
    return _truth(w, w.op(f"and i1 {same}, {other}"))


def _profiled(w: Writer, size: Dim, is_one: int) -> str:
    """Test that a size is 1 exactly if 1 was profiled; always true while size checks are off."""
    same = w.op(f"icmp eq i64 {_same(w, size, 1)}, {is_one}")
    off = w.op(f"icmp eq i8 {w.load('i8', w.address(relaxed_guards.SWITCH))}, 0")
    return _truth(w, w.op(f"or i1 {same}, {off}"))


def _ordered(w: Writer, ref: Ref, itemsize: int, contiguous: tuple, order: tuple, dense: tuple) -> str:
    """Test that the strides have the order and the density that a relaxed guard requires."""
    flag = w.op(f"icmp ne i64 {emit_test(w, contiguous)}, 0")
    sizes = [_dimension(w, ref, axis) for axis in order]
    steps = [stride(w, ref, axis) for axis in order]
    layout = relaxed_guards.LayoutCheck(w, itemsize, order, sizes, steps)
    fits = w.op(f"and i1 {layout.ordered()}, {layout.dense(dense, flag)}")
    return _truth(w, fits)


def _in_order(w: Writer, ref: Ref, rank: int) -> str:
    """Test that the axes of several elements lie in memory in their order, none with stride 0."""
    fits, before = "true", str(2**63 - 1)
    for axis in range(rank):
        single = w.op(f"icmp eq i64 {_dimension(w, ref, axis)}, 1")
        step = stride(w, ref, axis)
        back = w.op(f"icmp slt i64 {step}, 0")
        step = w.op(f"select i1 {back}, i64 {w.op(f'sub i64 0, {step}')}, i64 {step}")
        inside = w.op(f"and i1 {w.op(f'icmp ne i64 {step}, 0')}, {w.op(f'icmp sle i64 {step}, {before}')}")
        fits = w.op(f"and i1 {fits}, {w.op(f'or i1 {single}, {inside}')}")
        before = w.op(f"select i1 {single}, i64 {before}, i64 {step}")
    return _truth(w, fits)


_FIELDS: dict[str, Callable[..., str]] = {
    "type": _type,
    "dtype": _dtype,
    "nd": _nd,
    "flags": _flags,
    "stride": stride,
    "size": emit_size,
    "positive": _positive,
    "same": _same,
    "step": _step,
    "multiple": _multiple,
    "apart": _apart,
    "view": _view,
    "described": described_reads.described,
    "device": described_reads.device,
    "aligned": described_reads.aligned,
    "modes": described_reads.in_modes,
    "dense": described_reads.dense,
    "keywords": argument_reads.keywords,
    "opened": argument_reads.opened,
    "owned": argument_reads.owned,
    "static": argument_reads.static,
    "fits": argument_reads.fits,
    "bits": argument_reads.bits,
    "less": _less,
    "profiled": _profiled,
    "ordered": _ordered,
    "in_order": _in_order,
    "one": argument_reads.is_one,
    "taken": state_reads.taken,
    "read": state_reads.same,
    "held_size": state_reads.size,
    "held_keys": state_reads.keys,
    "known": lambda w, answer: str(answer),
    "mode": tape_reads.mode,
    "untaped": tape_reads.untaped,
    "noted": tape_reads.noted,
    "noting": tape_reads.noting,
    "taped": tape_reads.taped,
}
