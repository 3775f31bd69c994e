"""Ops that write memory: in-place arithmetic and assignment.

Every op writes its first operand and returns it. In-place forms are made of the elementwise ops:
``profuse.add_`` of ``profuse.add``, with NumPy's casting rule for an output (``same_kind``). They are
declared in `inplace_forms`.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ...errors import DTypeError, ShapeError
from ...ir.attrs import BOOL, I64
from ...ir.op import Attrs, Emit, Failure, Op, Rounding, attr, operand, result
from ...ir.types import TensorType, Type
from ..broadcast import shape_of
from ..elementwise.families import Elementwise
from ..sizes import check_sizes, tensor_type
from .additions import AtIndices
from .index import Index
from .scatter import check_assignment, check_casting, check_output, check_stored, store
from .slicing import Pick


class Loans(threading.local):
    """The arrays that the run of a graph on this thread may write to, and how to undo that.

    Attributes:
        open: the run's loan; None = it copies what it writes to.
    """

    open: BorrowedArrays | None = None


LOANS = Loans()


class BorrowedArrays:
    """Arrays of the caller's that a graph writes to; what they held is kept until the run ends."""

    def __init__(self) -> None:
        self._arrays: dict[int, Any] = {}
        self._held: list[tuple[np.ndarray, np.ndarray]] = []

    def take(self, array: np.ndarray) -> np.ndarray:
        """Have writes to an array, and to its views, noted."""
        root = _root(array)
        self._arrays[id(root)] = root
        return array

    def note(self, target: Any) -> None:
        """Keep what an array holds that is about to be written."""
        if type(target) is np.ndarray and id(_root(target)) in self._arrays:
            self._held.append((target, target.copy()))

    def undo(self) -> None:
        """Give all arrays back what they held."""
        for target, content in reversed(self._held):
            np.copyto(target, content)
        self._held.clear()


def _root(array: np.ndarray) -> np.ndarray:
    while type(array.base) is np.ndarray:
        array = array.base
    return array


class Borrow(Op, name="borrow", rounding=Rounding.MOVES):
    """The elements of an array that a graph writes to, some at a time: where they are, or a copy.

    It is a copy, in C order, unless the run has a `BorrowedArrays`: then it is the array itself, to which the
    caller has the graph write. An array that grows by a row per call is not copied so.
    """

    failure = Failure.NEVER
    x = operand()
    out = result()
    undifferentiable = "functions with effects have no gradients"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (tensor_type(types[0]).without_layout(),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        (array,) = args
        loan = LOANS.open
        if loan is None or type(array) is not np.ndarray or not array.flags.writeable:
            return np.array(array, order="C")
        return loan.take(array)


class Writing(Op):
    """Family of ops that write their first operand, a tensor, and return it (R1.24, R3.8)."""

    writes = (0,)
    aliases = {0: 0}
    undifferentiable = "`functionalize` makes it pure first"

    @classmethod
    def as_pure(cls, emit: Emit, attrs: Attrs, target: Any, *others: Any) -> Any:
        """Emit pure ops that compute what the op leaves in memory where ``target`` was."""
        raise NotImplementedError

    @classmethod
    def written(cls, types: Sequence[Type]) -> TensorType:
        """Type of the memory written, and of the result; raises DTypeError for numbers."""
        if not isinstance(types[0], TensorType):
            raise DTypeError(f"only a tensor can be written in place, not {types[0]}")
        return types[0].without_layout()


class InPlace(Writing):
    """Family of in-place forms of elementwise ops; ``base`` = the op that computes."""

    base: ClassVar[type[Elementwise]]

    @classmethod
    def as_pure(cls, emit: Emit, attrs: Attrs, target: Any, *others: Any) -> Any:
        (result,) = emit(cls.base.name, [target, *others], attrs)
        return emit("conform", [result, target], {})[0]

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        target = cls.written(types)
        try:
            result = tensor_type(cls.base.infer(types, attrs)[0])
        except ShapeError:
            # NumPy looks at dtypes first.
            shapeless = [replace(t, shape=None) if isinstance(t, TensorType) else t for t in types]
            check_casting(tensor_type(cls.base.infer(shapeless, attrs)[0]).dtype, target.dtype)
            raise
        check_casting(result.dtype, target.dtype)
        check_output(result.shape, target.shape)
        return (target,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        target = writable(args[0])
        call = cls.base.numpy
        if isinstance(call, np.ufunc):
            return call(*args, out=target)
        return store(target, cls.base.evaluate(attrs, *args), strict=True)


class Assign(Writing, name="copy_"):
    """``dst[...] = src``: broadcasts, casts whatever the dtypes. Raises ShapeError.

    ``strict``: takes only what a ufunc would write to an output: a value of the same shape and
    of a dtype of the same kind. Raises DTypeError for others.
    """

    dst = operand()
    src = operand()
    out = result()
    strict = attr(BOOL, default=False)

    @classmethod
    def as_pure(cls, emit: Emit, attrs: Attrs, target: Any, *others: Any) -> Any:
        return emit("conform", [*others, target], {"assign": not attrs.get("strict", False)})[0]

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        target = cls.written(types)
        check_stored(types[1], target, strict=attrs.get("strict", False))
        return (target,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return store(writable(args[0]), args[1], strict=attrs.get("strict", False))


class Put(Writing, name="put_"):
    """``dst[index] = src`` for one element of a tensor of rank 1. Raises BoundsError.

    ``index`` DYNAMIC stands for the operand ``position`` (an i64 scalar).
    """

    dst = operand()
    src = operand()
    position = operand(variadic=True)
    out = result()
    index = attr(I64)

    @classmethod
    def as_pure(cls, emit: Emit, attrs: Attrs, target: Any, *others: Any) -> Any:
        source, *position = others
        where = {"axis": 0, "index": attrs["index"]}
        (old,) = emit("pick", [target, *position], where)
        (new,) = emit("conform", [source, old], {"assign": True})
        return emit("pick_scatter", [target, new, *position], where)[0]

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        target = cls.written(types)
        if target.shape is not None:
            if len(target.shape) != 1:
                raise ShapeError(f"an element of a tensor of rank {len(target.shape)} is put")
            Pick.infer((target, *types[2:]), {"axis": 0, "index": attrs["index"]})
        check_assignment(shape_of(types[1]), ())
        return (target,)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Any:
        yield from check_sizes((attrs["index"],), len(types) - 2)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        target = writable(args[0])
        target[attrs["index"] if len(args) == 2 else operator.index(args[2])] = args[1]
        return target


class WriteAtIndices(Writing):
    """Family of in-place forms of ops that update what `index` picks; ``base`` = the pure op.

    Values broadcast and are cast as by assignment. Raises ShapeError, and BoundsError.
    """

    base: ClassVar[type[AtIndices]]

    @classmethod
    def as_pure(cls, emit: Emit, attrs: Attrs, target: Any, *others: Any) -> Any:
        source, *indices = others
        (old,) = emit("index", [target, *indices], attrs)
        (new,) = emit("conform", [source, old], {"assign": True})
        return emit(cls.base.name, [target, new, *indices], attrs)[0]

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        target = cls.written(types)
        (picked,) = Index.infer((target, *types[2:]), attrs)
        check_assignment(shape_of(types[1]), shape_of(picked))
        return (target,)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Any:
        yield from Index.verify((types[0], *types[2:]), attrs)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        target, value, *indices = args
        key = Index.key(writable(target), indices, attrs)
        # Ufuncs would compute in a wider dtype, and not broadcast as assignment does.
        like = target[key]
        cls.base.update(target, key, store(np.empty(like.shape, like.dtype), value, strict=False))
        return target


def writable(target: Any) -> np.ndarray:
    """``target`` if it is an array; raises DTypeError for NumPy scalars, which are immutable."""
    if not isinstance(target, np.ndarray):
        raise DTypeError(f"a {type(target).__name__} cannot be written in place")
    return target
