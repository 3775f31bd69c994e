"""Elementwise families: what every pointwise op has in common.

A family supplies the schema, shape inference (broadcasting), the dtype rule, evaluation and the
lowering skeleton; an op adds the NumPy callable and a body on `lowering.linalg.scalar.Scalar`.

Operands are tensors or Python numbers.  Among tensors a Python number is weakly typed (NEP 50).
Where *all* operands are Python numbers and the op has a ``python`` callable, the result is a
Python number with Python's semantics: that is the arithmetic on sizes of a traced function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ...errors import DTypeError
from ...guards.checks import described
from ...ir.dtypes import BOOL, C128, F32, F64, I64, NUMBERS, DType, dtype_of
from ...ir.op import Attrs, Fusion, Op, Rounding, operand, result
from ...ir.symbolic import Sym
from ...ir.types import ListedType, ListType, ScalarType, TensorType, Type
from ...reasons import Kind, Reason
from ..broadcast import broadcast_types

if TYPE_CHECKING:
    from ....lowering.linalg.scalar import Scalar
    from ....lowering.linalg.tensor_builder import Builder, TensorValue

PYTHON_NUMBERS = frozenset(NUMBERS)
Key = tuple[DType, bool]  # dtype of an operand, and whether it is a (weak) Python number

# What `resolve_dtypes` takes for a weak operand; a Python bool promotes like a NumPy one.
_WEAK: dict[DType, Any] = {BOOL: np.dtype(bool), I64: int, F64: float, C128: complex}
# A Python number of each type.
SAMPLE: dict[DType, Any] = {BOOL: True, I64: 1, F64: 1.0, C128: 1.0 + 0.0j}
_INT64 = range(-(2**63), 2**63)


def keys_of(types: Sequence[Type]) -> tuple[Key, ...] | None:
    """The facts of operand types that dtype rules need; None if a dtype is unknown.

    Raises DTypeError for lists.
    """
    out = []
    for type_ in types:
        if isinstance(type_, (ListType, ListedType)):
            what = "a list of tensors" if isinstance(type_, ListType) else described(type_)
            raise DTypeError(f"{what} is no operand of an elementwise op")
        if type_.dtype is None:
            return None
        out.append((type_.dtype, isinstance(type_, ScalarType)))
    return tuple(out)


def is_python(types: Sequence[Type]) -> bool:
    """True when every operand is a Python number."""
    return all(isinstance(t, ScalarType) for t in types)


def in_f32(x: Scalar) -> Scalar:
    """``x``, in f32 if it has a 16-bit float dtype.

    For bodies of several steps that NumPy evaluates in float and rounds once.
    """
    return x.cast(F32) if x.dtype.is_float and x.dtype.bits == 16 else x


class Elementwise(Op):
    """One result element from the operand elements at the same (broadcast) index.

    Attributes:
        numpy: tier 0 on arrays and NumPy scalars.
        rule: ufunc whose loops decide the dtypes, where ``numpy`` is not that ufunc itself.
        python: the op on Python numbers only; absent = they are treated as NumPy treats them.
        symbolic: the same on sizes of which some are symbols.
        of_gradients: True if only gradients emit it, and it has no in-place form.
        element: what a kernel computes of one element of each operand; a family or an op that
            takes several steps for it overrides `scalar`.
    """

    fusion = Fusion.POINTWISE
    numpy: ClassVar[Callable[..., Any]]
    grows: ClassVar[bool] = False  # True for ops whose results on ints grow with the value of the last one
    rule: ClassVar[np.ufunc | None] = None
    python: ClassVar[Callable[..., Any] | None] = None
    symbolic: ClassVar[Callable[..., Any] | None] = None
    of_gradients: ClassVar[bool] = False
    of_numbers: ClassVar[bool] = False  # all operands are Python numbers
    element: ClassVar[Callable[..., Scalar]]
    # The op on Python's numbers of which one is complex; None = `scalar` computes it, or nothing.
    of_complex: ClassVar[Callable[..., Scalar] | None] = None

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        """The op on one element of each operand."""
        return cls.element(*xs)

    # --- types ----------------------------------------------------------------------------

    @classmethod
    def loop(cls, *keys: Key) -> tuple[DType, ...]:
        """Dtypes the computation is done in: one per operand, then the result's.

        Raises DTypeError when NumPy has no loop for the operands.
        """
        ufunc = cls.rule or cls.numpy
        assert isinstance(ufunc, np.ufunc)
        return _resolve(ufunc, keys)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        keys = keys_of(types)
        if keys is not None and cls.python is not None and is_python(types):
            return (cls.infer_python(types),)
        dtype = None if keys is None else cls.loop(*keys)[-1]
        return (TensorType(dtype, broadcast_types(types)),)

    @classmethod
    def infer_python(cls, types: Sequence[Type]) -> Type:
        """Type of the result on Python numbers only, with its value if all operands are known."""
        assert cls.python is not None
        dtypes = tuple(t.dtype for t in types if isinstance(t, ScalarType))
        dtype = _python_result(cls.python, dtypes)
        values = [t.value for t in types if isinstance(t, ScalarType)]
        if any(v is None for v in values):
            return ScalarType(dtype)
        return known_scalar(dtype, cls.python_value(values))

    @classmethod
    def may_be_huge(cls, values: Sequence[Any]) -> bool:
        """True for powers and shifts of Python ints that may take all memory, or hours."""
        return cls.grows and all(type(v) is int for v in values) and abs(values[-1]) > 64

    @classmethod
    def python_value(cls, values: Sequence[Any]) -> Any:
        """Value of the op on known values (numbers, or `Sym` among ints), None if it has none."""
        if cls.may_be_huge(values):
            return None
        if any(isinstance(v, Sym) for v in values):
            if cls.symbolic is None or not all(type(v) is int or type(v) is Sym for v in values):
                return None
            call = cls.symbolic
        else:
            assert cls.python is not None
            call = cls.python
        try:
            return call(*values)
        except (ArithmeticError, ValueError, TypeError):
            return None  # the user must see this error where the call runs, not here

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        keys = keys_of(types)
        if keys is None or (cls.python is not None and is_python(types)):
            return None
        return cls.casts(keys)

    @classmethod
    def casts(cls, keys: Sequence[Key]) -> tuple[DType | None, ...]:
        """`operand_dtypes` of tensors, or of tensors among Python numbers."""
        dtypes = cls.loop(*keys)[:-1]
        return tuple(want if want != have else None for want, (have, _) in zip(dtypes, keys, strict=True))

    @classmethod
    def can_lower_types(cls, types: Sequence[Type], attrs: Attrs) -> Reason | None:
        reason = super().can_lower_types(types, attrs)
        if reason is None and cls.python is not None and is_python(types):
            if any(t.dtype is not None and t.dtype.is_complex for t in types):  # type: ignore[union-attr]
                return cls.refuse_complex(types)
            return cls.refuse_python(types)
        return reason or cls.refuse(types)

    @classmethod
    def refuse(cls, types: Sequence[Type]) -> Reason | None:
        """The reason why complete, real operand types cannot be compiled all the same; None = they can."""
        return None

    @classmethod
    def refuse_python(cls, types: Sequence[Type]) -> Reason | None:
        """`refuse` for operands that are all Python numbers."""
        return None

    @classmethod
    def refuse_complex(cls, types: Sequence[Type]) -> Reason | None:
        """`refuse_python` where some of these are complex."""
        return Reason(Kind.COMPLEX) if cls.of_complex is None else None

    # --- values ---------------------------------------------------------------------------

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        if cls.python is not None and all(type(a) in PYTHON_NUMBERS for a in args):
            return cls.python(*args)
        return cls.numpy(*args)

    @classmethod
    def lower(
        cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any
    ) -> TensorValue | tuple[TensorValue, ...]:
        out = types[0]
        if not isinstance(out, ScalarType):
            return b.pointwise(cls.scalar, args, out)

        def body(*xs: Scalar) -> Scalar:
            if cls.of_complex is not None and any(x.dtype.is_complex for x in xs):
                return cls.of_complex(*xs)
            return cls.scalar(*cls.python_operands(out.dtype, *xs))

        return b.pointwise(body, args, out)

    @classmethod
    def python_operands(cls, target: DType, *xs: Scalar) -> tuple[Scalar, ...]:
        """Python-number operands in the dtype that Python computes in; ``target`` = result's."""
        return tuple(x.cast(target) for x in xs)


class Unary(Elementwise):
    """An elementwise op of one operand."""

    x = operand()
    out = result()

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        if cls.python is not None and type(args[0]) in PYTHON_NUMBERS:
            return cls.python(args[0])
        return cls.numpy(args[0])


class MathUnary(Unary):
    """A unary op that is one operation of MLIR's `math` dialect; ``math`` = its name there."""

    math: ClassVar[str] = ""

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        return xs[0].math(cls.math or cls.name)


class Binary(Elementwise):
    """An elementwise op of two operands."""

    a = operand()
    b = operand()
    out = result()

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        a, b = args
        if cls.python is not None and type(a) in PYTHON_NUMBERS and type(b) in PYTHON_NUMBERS:
            return cls.python(a, b)
        return cls.numpy(a, b)


class PartialBinary(Binary):
    """A binary op that Python refuses for some second operands, as division does for 0."""

    @classmethod
    def python_total(cls, value: Any) -> bool:
        """True if Python computes a result for every first operand and this second one."""
        return type(value) in (int, float) and value != 0

    @classmethod
    def refuse_python(cls, types: Sequence[Type]) -> Reason | None:
        second = types[1]
        if isinstance(second, ScalarType) and cls.python_total(second.value):
            return None
        return Reason(Kind.PYTHON_RAISES, detail="for some of these numbers")


class Compare(Binary, rounding=Rounding.NONE):
    """A comparison: bool result. Integers are compared by value whatever their dtypes.

    ``element`` compares two elements of one dtype.
    """

    exact = True
    lowers_complex = True
    no_gradient = True

    @classmethod
    def casts(cls, keys: Sequence[Key]) -> tuple[DType | None, ...]:
        if not any(weak for _, weak in keys) or not all(d.is_int or d is BOOL for d, _ in keys):
            return super().casts(keys)
        # A Python int out of the array's range still compares by value: meet in i64, and leave
        # u64 to the body's mixed comparison.
        return tuple(None if d.bits == 64 else I64 for d, _ in keys)

    @classmethod
    def scalar(cls, *xs: Scalar) -> Scalar:
        a, b = xs
        if a.dtype.kind + b.dtype.kind == "iu":
            return (a < 0).select(cls.element(a, a.const(0)), cls.element(a.cast(b.dtype), b))
        if a.dtype.kind + b.dtype.kind == "ui":
            return (b < 0).select(cls.element(b.const(0), b), cls.element(a, b.cast(a.dtype)))
        return cls.element(a, b)

    @classmethod
    def python_operands(cls, target: DType, *xs: Scalar) -> tuple[Scalar, ...]:
        wide = F64 if any(x.dtype.is_float for x in xs) else I64
        return tuple(x.cast(wide) for x in xs)


def known_scalar(dtype: DType, value: Any) -> ScalarType:
    """A Python number of known value; values that its i64 could not hold are not kept."""
    if type(value) is int and value not in _INT64:
        return ScalarType(dtype)
    return ScalarType(dtype, value)


@lru_cache(maxsize=4096)
def _resolve(ufunc: np.ufunc, keys: tuple[Key, ...]) -> tuple[DType, ...]:
    operand_dtypes = [_WEAK[dtype] if weak else dtype.numpy for dtype, weak in keys]
    try:
        dtypes = ufunc.resolve_dtypes((*operand_dtypes, None))
    except TypeError as error:
        raise DTypeError(str(error)) from None
    return tuple(map(dtype_of, dtypes))


@lru_cache(maxsize=4096)
def _python_result(call: Callable[..., Any], dtypes: tuple[DType, ...]) -> DType:
    """Dtype of what ``call`` returns for Python numbers of these dtypes."""
    try:
        value = call(*(SAMPLE[d] for d in dtypes))
    except TypeError as error:
        raise DTypeError(str(error)) from None
    return dtype_of(type(value))


def result_dtype(keys: Sequence[Key]) -> DType:
    """`numpy.result_type` of tensors and weak Python numbers; raises DTypeError."""
    return _result_dtype(tuple(keys))


@lru_cache(maxsize=4096)
def _result_dtype(keys: tuple[Key, ...]) -> DType:
    try:
        return dtype_of(np.result_type(*(SAMPLE[d] if weak else d.numpy for d, weak in keys)))
    except TypeError as error:
        raise DTypeError(str(error)) from None
