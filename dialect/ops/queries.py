"""Between tensors and Python numbers: sizes, dtypes, elements, truth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import RangeError, ShapeError
from ..ir.attrs import DTYPE, I64, STR
from ..ir.dtypes import BOOL, C128, DTYPES, F64, NUMBERS, DType, dtype_of
from ..ir.dtypes import I64 as INT64
from ..ir.op import Attrs, Failure, Fusion, Op, Rounding, Values, attr, operand, result
from ..ir.size_algebra import parse_dim
from ..ir.symbolic import FAR, LOOP, UP_TO, symbol
from ..ir.types import BOOL_SCALAR, TENSOR, ScalarType, TensorType, Type
from .sizes import check_axis, normalize_axis, product, tensor_type

if TYPE_CHECKING:
    from ...lowering.linalg.tensor_builder import Builder, TensorValue
    from ..ir.gradients import GradientBuilder

_PYTHON: dict[DType, type] = {BOOL: bool, INT64: int, F64: float, C128: complex}
_KINDS: dict[str, DType] = {"b": BOOL, "i": INT64, "u": INT64, "f": F64, "c": C128}


class Query(Op, rounding=Rounding.MOVES):
    """Family: an i64 scalar that follows from the type of a tensor."""

    exact = True
    x = operand()
    out = result()
    fusion = Fusion.QUERY
    lowers_complex = True
    failure = Failure.NEVER
    no_gradient = True

    @classmethod
    def known(cls, type_: TensorType, attrs: Attrs) -> Any:
        """The value (int or `Sym`) that the type gives, or None."""
        raise NotImplementedError

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (ScalarType(INT64, cls.known(tensor_type(types[0]), attrs)),)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> Any:
        return b.size(cls.known(args[0].type, attrs))


class Size(Query, name="size"):
    """Number of elements."""

    @classmethod
    def known(cls, type_: TensorType, attrs: Attrs) -> Any:
        return None if type_.shape is None else product(type_.shape)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return int(np.size(args[0]))


class Dim(Query, name="dim"):
    """Size of an axis. Raises AxisError."""

    axis = attr(I64)

    @classmethod
    def known(cls, type_: TensorType, attrs: Attrs) -> Any:
        shape = type_.shape
        return None if shape is None else shape[normalize_axis(attrs["axis"], len(shape))]

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        shape = np.shape(args[0])
        return int(shape[normalize_axis(attrs["axis"], len(shape))])

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from check_axis(attrs["axis"], types[0])


class Rank(Query, name="rank"):
    """Number of axes."""

    @classmethod
    def known(cls, type_: TensorType, attrs: Attrs) -> Any:
        return type_.rank

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return np.ndim(args[0])


class DTypeCode(Query, name="dtype_code"):
    """The dtype, as its position in `dtypes.DTYPES`."""

    @classmethod
    def known(cls, type_: TensorType, attrs: Attrs) -> Any:
        return None if type_.dtype is None else DTYPES.index(type_.dtype)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return DTYPES.index(dtype_of(np.asarray(args[0]).dtype))


class DTypeConstant(Op, name="dtype_constant", rounding=Rounding.MOVES):
    """What `dtype_code` gives for an array of a dtype, which the attribute writes out."""

    exact = True
    out = result()
    dtype = attr(DTYPE)
    fusion = Fusion.QUERY
    failure = Failure.NEVER
    no_gradient = True

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (ScalarType(INT64, DTYPES.index(attrs["dtype"])),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return DTYPES.index(attrs["dtype"])

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> Any:
        return b.scalar(DTYPES.index(attrs["dtype"]))


class Count(Op, name="count", rounding=Rounding.MOVES):
    """A Python int ``x``, of which the kernel of a loop takes for granted that sizes depend on it.

    Its value is an expression over a symbol of its own, which ``symbol`` names, or ``equals``, the
    text of a size that it has to be the same as. A run of the kernel in which ``x`` is another
    number, or below ``least``, or `FAR` and more, is void.
    """

    x = operand()
    out = result()
    symbol = attr(STR)
    equals = attr(STR, default="")
    least = attr(I64, default=0)
    fusion = Fusion.QUERY
    failure = Failure.NEVER
    no_gradient = True

    @classmethod
    def name_of(cls, attrs: Attrs) -> str:
        """The name of the symbol, which is 1 where ``x`` is least."""
        return f"{LOOP}{attrs['symbol']}{UP_TO}{FAR}"

    @classmethod
    def taken_for(cls, type_: Type, attrs: Attrs) -> ScalarType:
        """The type of the result in a kernel, which holds ``x`` to it.

        Nothing else may count on it, see `infer`: a void run is repeated without the kernel.
        """
        size = type_.value if isinstance(type_, ScalarType) else None
        if size is None and attrs["equals"]:
            size = parse_dim(attrs["equals"])
        if size is None:
            size = symbol(cls.name_of(attrs)) + (attrs["least"] - 1)
        return ScalarType(INT64, size)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (ScalarType(INT64, types[0].value if isinstance(types[0], ScalarType) else None),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        (x,), attrs = args, cls.full_attrs(attrs)
        equals = attrs["equals"]
        if not attrs["least"] <= x < FAR or (equals.isdigit() and int(equals) != x):
            # Types say what holds only if the number is what it was taken for.
            raise RangeError(
                f"{x} stands for a size here, which was {equals or attrs['least']} or more",
                hint="pf.knobs.unsupported = 'python' leaves such a call to Python",
            )
        return x


class Item(Op, name="item"):
    """The one element of a tensor as a Python number.

    ``dtype`` (bool, i64, f64, c128) converts as Python's ``bool int float complex`` do; absent =
    the Python number of the tensor's own kind. Raises ShapeError for any other number of elements.
    """

    x = operand()
    out = result()
    dtype = attr(DTYPE, default=None)
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.spread(b.like(np.reshape(g, (1,) * np.ndim(xs[0])), xs[0]), xs[0])

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x = tensor_type(types[0])
        size = None if x.shape is None else product(x.shape)
        if isinstance(size, int) and size != 1:
            raise ShapeError("can only convert an array of size 1 to a Python scalar")
        dtype = attrs.get("dtype")
        if dtype is None and x.dtype is not None:
            dtype = _KINDS[x.dtype.kind]
        return (TENSOR if dtype is None else ScalarType(dtype),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        x = np.asarray(args[0])
        if x.size != 1:
            raise ShapeError("can only convert an array of size 1 to a Python scalar")
        dtype = attrs.get("dtype") or _KINDS[dtype_of(x.dtype).kind]
        return _PYTHON[dtype](x.reshape(()).item())

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        if attrs.get("dtype") is not None and attrs["dtype"] not in _PYTHON:
            yield f"no Python number has dtype {attrs['dtype']}"


class Truth(Op, name="truth"):
    """``bool(x)`` of a number or a tensor of one element, for conditions.

    Raises ShapeError for any other number of elements.
    """

    x = operand()
    out = result()
    no_gradient = True

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x = tensor_type(types[0])
        size = None if x.shape is None else product(x.shape)
        if isinstance(size, int) and size != 1:
            what = "an empty array" if size == 0 else "an array with more than one element"
            raise ShapeError(f"The truth value of {what} is ambiguous. Use a.any() or a.all()")
        value = types[0].value if isinstance(types[0], ScalarType) else None
        if isinstance(value, NUMBERS):
            return (ScalarType(BOOL, bool(value)),)
        return (BOOL_SCALAR,)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        return bool(args[0])


class ToTensor(Op, name="to_tensor", rounding=Rounding.MOVES):
    """A number as a 0-d tensor; ``dtype`` absent = the number's own.

    Kernels return Python's numbers so (see `Item`). An int of more than 64 bits stays what it is.
    """

    exact = True
    aliases = {0: 0}
    x = operand()
    out = result()
    dtype = attr(DTYPE, default=None)
    fusion = Fusion.POINTWISE
    lowers_complex = True
    failure = Failure.NEVER
    linear = ((0,),)

    @classmethod
    def transpose(cls, b: GradientBuilder, attrs: Attrs, xs: Values, y: Any, g: Any, k: int) -> Any:
        return b.like(g, xs[0])

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        x = tensor_type(types[0])
        dtype = x.dtype if attrs.get("dtype") is None else attrs["dtype"]
        return (TensorType(dtype, x.shape),)

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        dtype = attrs.get("dtype")
        return np.asarray(args[0], None if dtype is None else dtype.numpy)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        out = types[0]
        assert isinstance(out, TensorType) and out.dtype is not None
        dtype = out.dtype
        return b.pointwise(lambda x: x.cast(dtype), [args[0]], out)
