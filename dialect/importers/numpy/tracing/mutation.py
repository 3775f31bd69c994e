"""Writes to traced arrays: in-place operators, ``out=`` (`outputs`), assignment to elements.

They become ops that write. The caller must not see a write. Those to an argument, or to a view of
one, are refused at once, unless the trace gives the function a copy of it (`Recorder.writes`); all
others when the graph is complete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ....analysis.alias import forbidden
from ....errors import TraceError
from ....ir.op import find_op, op_named
from ....ir.program import Instr
from ....ir.types import TensorType
from ....ops.control_flow.control import LOOPS
from ....ops.indexing.slicing import Pick, Slice
from .current import trace_error
from .operators import Recording, op
from .recorder import Recorder

if TYPE_CHECKING:
    from .traced import Traced

_REARRANGES = frozenset({"expand_dims", "imag", "moveaxis", "real", "reshape", "squeeze", "swapaxes", "transpose"})


_COPY_FIRST = "write to a copy: y = x.copy()"


class Storage:
    """Memory that views share, why it must not be written, and which input it is, if any."""

    __slots__ = ("input", "owner")

    def __init__(self, owner: str | None = None, input_: int | None = None) -> None:
        self.owner, self.input = owner, input_


def check_owner(array: Traced) -> None:
    """Raise TraceError for an argument or a view of one, or have the trace copy it."""
    if array.ndim and not array.rec.evaluates and _is_of_scalar(array.rec, array.value):
        raise trace_error("an array that is made of a NumPy scalar is written to", _COPY_FIRST)
    storage = array.storage
    if storage is None or not storage.owner:
        return
    if storage.input is not None and array.rec.takes_writes:
        array.rec.written[storage.input] = None
        return
    raise trace_error(
        f"an in-place operation would change {storage.owner}, which the caller still sees",
        f"write x = x + … instead of x += …, or {_COPY_FIRST}",
    )


def is_immutable(array: Recording) -> bool:
    """True for a NumPy scalar: a rank-0 result, unless NumPy makes an array without axes.

    Arrays without axes are results of creation functions and copies, views that have lost the last
    axis to anything but an integer index, and ``x[...]``.
    """
    if array.rec.evaluates:
        return issubclass(array.__class__, np.generic)
    return _is_scalar(array.rec, array.value)


def in_memory(x: Any) -> Any:
    """``x``, where NumPy has an array without axes and the op that made ``x`` gives a scalar."""
    return op("copy", x) if isinstance(x, Recording) and is_immutable(x) else x


def operate(array: Traced, name: str, *others: Any) -> Traced:
    """Record ``array <op>= others``; returns the array, or a new NumPy scalar in its place.

    Raises TraceError for arguments, DTypeError and ShapeError as NumPy does.
    """
    check_owner(array)
    if is_immutable(array):
        return op(name, array, *others)
    if find_op(f"{name}_") is not None:
        op(f"{name}_", array, *others)
        return _written(array)
    return write(array, op(name, array, *others))


def write(array: Traced, result: Any, *, strict: bool = True) -> Traced:
    """Give ``array`` the elements of ``result``, as ``out=`` does (``strict``) or assignment."""
    check_owner(array)
    if is_immutable(array):
        raise trace_error("a NumPy scalar cannot be written to", "make an array: np.zeros(1)")
    op("copy_", array, result, strict=strict)
    return _written(array)


def _written(array: Traced) -> Traced:
    array.rec.known.pop(array.value, None)
    return array


def filled_array(array: Traced) -> np.ndarray | None:
    """A read-only NumPy array, for other libraries, of a traced one that holds one number alone.

    As they may keep it, traced code must not write to ``array`` from here on. Returns None for any
    other array, and where the function has written to some array, which might be this one.
    """
    rec = array.rec
    definition = rec.defs.get(array.value)
    if definition is None or definition.op.name != "full" or len(definition.operands) != 1:
        return None
    number = rec.known.get(definition.operands[0])
    shape: Any = rec.shape(array.value)
    if number is None or any(i.op.writes for block in rec.blocks for i in block.walk()):
        return None
    if array.storage is None:
        array.storage = Storage()
    array.storage.owner = array.storage.owner or "an array that other code was given"
    filled = np.full(shape, number, array.dtype)
    filled.flags.writeable = False
    rec.captures.created[id(filled)] = filled
    return filled


def check_writes(rec: Recorder) -> None:
    """Raise TraceError for writes that a caller would see, or sees in some memory layouts only.

    Called with the complete graph; the error names the line of the write.
    """
    body = rec.program.body
    if not any(instr.op.writes for instr in body.walk()):
        return
    from ....analysis.must_alias import Accesses  # of few graphs

    copied = {value: view.source for value, view in rec.layouts.copied.items()}
    accesses = Accesses(body, rec.hints.__getitem__, rec.layouts.unordered, rec.layouts.raveled, copied)
    for instr in accesses.aliases.writing():
        complaint = forbidden(accesses.aliases, instr)
        if complaint:
            raise TraceError(f"this in-place operation {complaint}", loc=instr.loc, hint=_COPY_FIRST)
    for conflict in accesses.conflicts:
        raise TraceError(
            f"it depends on the memory order of an array, which is known only at run time, "
            f"whether the {conflict.view.op.name} at {conflict.view.loc} is a view that sees "
            "this write or a copy that does not",
            loc=conflict.write.loc,
            hint="say which: take the view of x.copy(), or copy the reshaped array",
        )
    for write_, view in accesses.missed:
        raise TraceError(
            f"the result at {view.loc} shares memory with an array in NumPy, but is a copy here: "
            "this write would not be seen as it is there",
            loc=write_.loc,
            hint="say which: copy the result where it is made, y = x[i].copy(), or index with "
            "numbers, x[i.item()], for a view",
        )


def _is_scalar(rec: Recorder, value: int) -> bool:
    """True for a NumPy scalar, see `is_immutable`."""
    while not rec.shape(value):
        definition = rec.defs.get(value)
        if value in rec.scalars:
            return True
        if definition is None:
            leaf = value in rec.inputs and rec.leaves[rec.inputs.index(value)]
            return isinstance(leaf, np.generic)
        if definition.op.name not in _REARRANGES:
            return definition.op.name not in ("broadcast_to", "copy", "full", "slice")
        value = definition.operands[0]
    return False


def _is_of_scalar(rec: Recorder, value: int) -> bool:
    """True for an array that is a view of a NumPy scalar here, and a new array in NumPy."""
    definition = rec.defs.get(value)
    while definition is not None and definition.op.aliases and rec.shape(value):
        value = definition.operands[0]
        definition = rec.defs.get(value)
    is_array = isinstance(rec.hints[value], TensorType)
    return is_array and not rec.shape(value) and _is_scalar(rec, value)


def read_copies(rec: Recorder) -> None:
    """Have a finished graph read the inputs that it writes to through copies, or borrow them."""
    body = rec.program.body
    copies = {v: rec.new_value(rec.hints[v], home=body) for v in rec.written}
    if not copies:
        return
    rec.layouts.unordered |= dict.fromkeys(copies.values())  # they stand for arrays of any layout
    lent = _written_in_part(rec)
    body.replace(copies)
    body.instrs[:0] = [Instr(op_named("borrow" if v in lent else "copy"), (v,), (copy,)) for v, copy in copies.items()]


def _written_in_part(rec: Recorder) -> set[int]:
    """The inputs to whose elements at run-time indices something is written.

    These writes become no pure ops, so that no kernel makes the array anew. Arrays that a loop
    writes to are copied, once: what a loan keeps to undo its writes would grow with the rounds.
    """
    written = (_written_input(rec, instr) for instr in rec.program.body.walk() if instr.op.writes)
    inputs = {value for value, is_part in written if value is not None and is_part}
    return inputs - _written_in_loops(rec)


def _written_in_loops(rec: Recorder) -> set[int]:
    """The inputs that loops write to."""
    loops = (loop for loop in rec.program.body.walk() if loop.op in LOOPS)
    writes = (i for loop in loops for block in loop.blocks for i in block.walk() if i.op.writes)
    return {value for value, _ in (_written_input(rec, instr) for instr in writes) if value is not None}


def memory_of(rec: Recorder, value: int) -> int:
    """The value that a view is of, through any number of views; the value itself if it is none."""
    while (maker := rec.defs.get(value)) is not None and maker.op.aliases and maker.operands:
        value = maker.operands[0]
    return value


def _written_input(rec: Recorder, instr: Instr) -> tuple[int | None, bool]:
    """The input that an instruction writes to, None for none, and whether at indices that a run tells."""
    value: int | None = instr.operands[0]
    is_part = False
    while value is not None and value not in rec.written:
        maker = rec.defs.get(value)
        value = maker.operands[0] if maker is not None and maker.operands else None
        is_part |= maker is not None and issubclass(maker.op, (Pick, Slice)) and len(maker.operands) > 1
    return value, is_part
