"""Sums of matrix products, as one wide product where that pays (R1.47)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import LoweringError
from ...ir.attrs import BOOL_ARRAY, I64_ARRAY
from ...ir.op import Attrs, Fusion, Rounding, attr, operand, result
from ...ir.types import TensorType, Type
from ...reasons import Reason
from ..elementwise.binary import Add
from ..manipulation.join import Concatenate
from ..sizes import tensor_type
from ..structural import Proven
from .contract import Matmul

if TYPE_CHECKING:
    from ....lowering.linalg.tensor_builder import Builder, TensorValue

Pair = tuple[Any, Any]


class MMTree(Proven, name="mm_tree", rounding=Rounding.SUMS):
    """``a0 @ b0 + a1 @ b1 + …``: operands are the left factors, then as many right ones.

    ``adds[k]`` is how many additions follow product k, as in reverse Polish notation, so that
    products summed one by one are summed in the order of the tree. ``transposed`` says which
    products are read transposed. Where all products are of matrices of one dtype and shape, and
    joining the factors costs no more than the additions it saves, ``[a0 a1 …] @ [b0; b1; …]`` is
    computed instead: floats may then differ in the last bits.
    """

    factors = operand(variadic=True)
    out = result()
    adds = attr(I64_ARRAY)
    transposed = attr(BOOL_ARRAY, default=())
    fusion = Fusion.CONTRACTION
    undifferentiable = "it is made of products after they were differentiated"

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return (_sum(_product_types(types, attrs), attrs, lambda x, y: Add.infer((x, y), {})[0]),)

    @classmethod
    def operand_dtypes(cls, types: Sequence[Type], attrs: Attrs) -> tuple | None:
        dtypes = {t.dtype for t in _product_types(types, attrs)}
        return (dtypes.pop(),) * len(types) if len(dtypes) == 1 else None

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        pairs = _oriented(args, attrs, np.transpose)
        if _pays(pairs):
            left, right = zip(*pairs, strict=True)
            return np.matmul(np.concatenate(left, 1), np.concatenate(right, 0))
        products = [
            np.transpose(a @ b) if flipped else np.matmul(a, b)
            for (a, b), flipped in zip(_pairs(args), _flags(attrs), strict=True)
        ]
        return _sum(products, attrs, np.add)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        adds, transposed = attrs["adds"], attrs.get("transposed", ())
        if len(types) != 2 * len(adds) or not types:
            yield f"{len(adds)} products have {2 * len(adds)} factors, not {len(types)}"
        if transposed and len(transposed) != len(adds):
            yield f"transposed has {len(transposed)} entries for {len(adds)} products"
        depth = 0
        for count in adds:
            depth += 1 - count
            if count < 0 or depth < 1:
                yield "adds must leave a sum to add to at every product"
                return
        if depth != 1:
            yield f"adds leaves {depth} sums instead of one"

    @classmethod
    def prove(cls, types: Sequence[Type], attrs: Attrs) -> None:
        def added(x: Type, y: Type) -> Type:
            _require(Add.can_lower_types((x, y), {}))
            return Add.infer((x, y), {})[0]

        for pair in _pairs(types):
            _require(Matmul.can_lower_types(pair, {}))
        products = _product_types(types, attrs)
        if len({t.dtype for t in products}) > 1:
            raise LoweringError("products have several dtypes")
        _sum(products, attrs, added)

    @classmethod
    def lower(cls, b: Builder, attrs: Attrs, types: tuple[Type, ...], *args: Any) -> TensorValue:
        out = types[0]
        assert isinstance(out, TensorType)
        shown = [x.type for x in args]
        if _pays(_oriented(shown, attrs, _transposed_type)):
            sides = zip(*_oriented(args, attrs, b.transpose), strict=True)
            wide = [_joined(b, side, axis) for side, axis in zip(sides, (1, 0), strict=True)]
            return b.matmul(wide[0], wide[1], out)
        products = []
        for (x, y), flipped in zip(_pairs(args), _flags(attrs), strict=True):
            (type_,) = Matmul.infer((x.type, y.type), {})
            product = b.matmul(x, y, tensor_type(type_))
            products.append(b.transpose(product) if flipped else product)

        def added(x: TensorValue, y: TensorValue) -> Any:
            return Add.lower(b, {}, Add.infer((x.type, y.type), {}), x, y)

        return _sum(products, attrs, added)


def _pairs(factors: Sequence[Any]) -> list[Pair]:
    half = len(factors) // 2
    return list(zip(factors[:half], factors[half:], strict=True))


def _flags(attrs: Attrs) -> Sequence[bool]:
    return attrs.get("transposed") or (False,) * len(attrs["adds"])


def _oriented(factors: Sequence[Any], attrs: Attrs, transpose: Callable[[Any], Any]) -> list[Pair]:
    """The factors of each product as it is read: those of ``(a @ b).T`` are ``b.T`` and ``a.T``."""
    return [
        (transpose(b), transpose(a)) if flipped else (a, b)
        for (a, b), flipped in zip(_pairs(factors), _flags(attrs), strict=True)
    ]


def _pays(pairs: Sequence[Pair]) -> bool:
    """True if these products, of arrays or types, are one wide product, and sooner done so.

    Joining reads and writes each factor once; each addition reads two arrays and writes one.
    """
    (a, b), *_ = pairs
    key = (a.dtype, a.shape, b.dtype, b.shape)
    if any((x.dtype, x.shape, y.dtype, y.shape) != key for x, y in pairs):
        return False
    if a.dtype != b.dtype or len(a.shape) != 2 or len(b.shape) != 2 or a.shape[1] != b.shape[0]:
        return False
    (rows, inner), columns = a.shape, b.shape[1]
    if not all(isinstance(size, int) for size in (rows, inner, columns)):
        return False
    return 2 * inner * (rows + columns) <= 3 * rows * columns


def _product_types(types: Sequence[Type], attrs: Attrs) -> list[TensorType]:
    products = (tensor_type(Matmul.infer(pair, {})[0]) for pair in _pairs(types))
    flags = _flags(attrs)
    return [_transposed_type(p) if f else p for p, f in zip(products, flags, strict=True)]


def _transposed_type(type_: TensorType) -> TensorType:
    return TensorType(type_.dtype, None if type_.shape is None else type_.shape[::-1])


def _sum(products: Sequence[Any], attrs: Attrs, add: Callable[[Any, Any], Any]) -> Any:
    """Products added up in the order that ``adds`` says."""
    stack: list[Any] = []
    for product, count in zip(products, attrs["adds"], strict=True):
        stack.append(product)
        for _ in range(count):
            second = stack.pop()
            stack.append(add(stack.pop(), second))
    return stack.pop()


def _joined(b: Builder, side: Sequence[TensorValue], axis: int) -> TensorValue:
    attrs = {"axis": axis}
    return Concatenate.lower(b, attrs, Concatenate.infer([x.type for x in side], attrs), *side)


def _require(reason: Reason | None) -> None:
    if reason is not None:
        raise LoweringError(reason.why)
