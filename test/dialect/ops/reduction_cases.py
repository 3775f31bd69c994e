"""Cases of reductions, scans and matrix products; operands of every shape class."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from cases import Attrs, array, edge_values, laid_out, register
from profuse.dialect.ir.dtypes import BF16, F16, F32, F64, I8, U64, DType, dtype_of

Args = tuple[Any, ...]
HALF = (F16, BF16)


def shapes(dtype: DType, rng: np.random.Generator, make: Callable = array) -> Iterator[np.ndarray]:
    """One operand of every shape class: 0-d, empty, size 1, plain, strided, reversed, large."""
    for shape in ((), (0,), (0, 3), (3, 0), (1,), (1, 1), (5,), (3, 4), (2, 3, 4)):
        yield make(dtype, shape, rng)
    for layout in ("strided", "reversed", "transposed"):
        yield laid_out(layout, dtype, (3, 4), rng)
    yield make(dtype, (70, 65), rng)


def positive(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Values whose sums and products are well conditioned: small integers, floats near 1."""
    if dtype.kind in "fc":
        values = rng.uniform(0.7, 1.3, shape)
        return np.asarray(values * (1 + 0.1j) if dtype.kind == "c" else values).astype(dtype.numpy)
    return array(dtype, shape, rng)


def axes_for(x: np.ndarray) -> Iterator[Attrs]:
    """Reduction attributes that fit the rank."""
    yield {}
    yield {"keepdims": True}
    yield {"axes": ()}
    if x.ndim:
        yield {"axes": (0,)}
        yield {"axes": (-1,), "keepdims": True}
    if x.ndim > 1:
        yield {"axes": (-1, 0)}
    if x.ndim > 2:
        yield {"axes": (1,)}


def numpy_axes(attrs: Attrs) -> Attrs:
    """Reduction attributes as NumPy's keywords."""
    axes = attrs.get("axes")
    return {"axis": None if axes is None else tuple(axes), "keepdims": attrs.get("keepdims", False)}


def rounded_once(name: str, halves: Sequence[DType] = HALF) -> Callable[[Attrs, Any], Any]:
    """NumPy's function, with halves in f32 and one rounding at the end."""

    def reference(attrs: Attrs, x: np.ndarray) -> Any:
        function, keywords = getattr(np, name), numpy_axes(attrs)
        if attrs.get("ddof"):
            keywords["ddof"] = attrs["ddof"]
        wanted = attrs["dtype"].numpy if attrs.get("dtype") else None
        if wanted is not None:
            keywords["dtype"] = wanted
        if wanted is None and dtype_of(x.dtype) in halves:
            return np.asarray(function(x.astype(np.float32), **keywords)).astype(x.dtype)
        return function(x, **keywords)

    return reference


def plain(name: str) -> Callable[[Attrs, Any], Any]:
    """NumPy's reduction as it is."""
    return lambda attrs, x: getattr(np, name)(x, **numpy_axes(attrs))


def scanned(name: str) -> Callable[[Attrs, Any], Any]:
    """NumPy's scan, with f16 and bf16 accumulated in f32."""

    def reference(attrs: Attrs, x: np.ndarray) -> Any:
        if attrs.get("dtype"):
            return getattr(np, name)(x, attrs.get("axis"), attrs["dtype"].numpy)
        if dtype_of(x.dtype) in HALF:
            wide = getattr(np, name)(x.astype(np.float32), attrs.get("axis"))
            return wide.astype(x.dtype)
        return getattr(np, name)(x, attrs.get("axis"))

    return reference


@register("sum", reference=rounded_once("sum"), tolerance=64)
@register("prod", reference=rounded_once("prod"), tolerance=64)
@register("mean", reference=rounded_once("mean"), tolerance=64)
def accumulations(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng, positive):
        for attrs in axes_for(x):
            yield attrs, (x,)
    if dtype.kind != "c":
        yield {"axes": (0,), "dtype": F64}, (positive(dtype, (3, 4), rng),)
        yield {"dtype": F32}, (positive(dtype, (7,), rng),)


@register("var", reference=rounded_once("var", (BF16,)), tolerance=256)
@register("std", reference=rounded_once("std", (BF16,)), tolerance=256)
def spreads(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        for attrs in axes_for(x):
            yield attrs, (x,)
            yield {**attrs, "ddof": 1.0}, (x,)


@register("max", reference=plain("max"), tolerance=0.5)
@register("min", reference=plain("min"), tolerance=0.5)
@register("any", reference=plain("any"))
@register("all", reference=plain("all"))
def selections(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng):
        for attrs in axes_for(x):
            yield attrs, (x,)
    yield {}, (edge_values(dtype),)
    yield {"axes": (0,)}, (np.stack([edge_values(dtype), edge_values(dtype)[::-1]]),)
    yield {"axes": (1,)}, (np.zeros((3, 4), dtype.numpy),)
    yield {"axes": (1,)}, (np.ones((3, 4), dtype.numpy),)


def arg_reference(name: str) -> Callable[[Attrs, Any], Any]:
    return lambda attrs, x: getattr(np, name)(x, attrs.get("axis"), keepdims=attrs.get("keepdims", False))


@register("argmax", reference=arg_reference("argmax"))
@register("argmin", reference=arg_reference("argmin"))
def places(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in [*shapes(dtype, rng), edge_values(dtype), edge_values(dtype)[::-1]]:
        for keepdims in (False, True):
            yield {"keepdims": keepdims}, (x,)
            for axis in (0, -1):
                yield {"axis": axis, "keepdims": keepdims}, (x,)


@register("cumsum", reference=scanned("cumsum"), tolerance=64)
@register("cumprod", reference=scanned("cumprod"), tolerance=64)
def scans(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    for x in shapes(dtype, rng, positive):
        yield {}, (x,)
        yield {"axis": 0}, (x,)
        yield {"axis": -1}, (x,)
    if dtype.kind != "c":
        yield {"dtype": F64}, (positive(dtype, (3, 4), rng),)


@register("matmul", reference=lambda a, x, y: np.matmul(x, y), tolerance=64)
def products(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    pairs = [
        ((3,), (3,)),
        ((3,), (3, 4)),
        ((2, 3), (3,)),
        ((2, 3), (3, 4)),
        ((1, 1), (1, 1)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (3,)),
        ((5, 1, 2, 3), (4, 3, 2)),
        ((0, 3), (3, 4)),
        ((2, 0), (0, 4)),
        ((2, 3), (4, 5)),
        ((3,), ()),
        ((), (3, 4)),
        ((2, 2, 3), (3, 3, 4)),
        ((33, 70), (70, 65)),
    ]
    for a, b in pairs:
        yield {}, (positive(dtype, a, rng), positive(dtype, b, rng))
    yield {}, (laid_out("transposed", dtype, (3, 3), rng) * 0, positive(dtype, (3, 2), rng))
    for other in (I8, U64, F32):
        yield {}, (positive(dtype, (2, 3), rng), positive(other, (3, 2), rng))


def scaled(factor: float, x: Any) -> Any:
    return x if factor == 1 else factor * x


@register(
    "addmm",
    reference=lambda at, c, a, b: scaled(at.get("beta", 1), c) + scaled(at.get("alpha", 1), np.matmul(a, b)),
    tolerance=64,
)
def biased_products(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    a, b = positive(dtype, (2, 3), rng), positive(dtype, (3, 4), rng)
    for c in (positive(dtype, (4,), rng), positive(dtype, (2, 4), rng), positive(dtype, (), rng)):
        for attrs in ({}, {"alpha": 2}, {"beta": 3}, {"alpha": 1.0, "beta": 2}):
            yield attrs, (c, a, b)
    yield {}, (positive(dtype, (3,), rng), a, b)
    yield {}, (positive(dtype, (4,), rng), a, a)
    for other in (I8, U64, F32):
        yield {}, (positive(other, (4,), rng), a, b)


def summed_products(attrs: Attrs, *factors: np.ndarray) -> np.ndarray:
    half = len(factors) // 2
    flags = attrs.get("transposed") or (False,) * half
    stack: list[Any] = []
    for a, b, flipped, adds in zip(factors[:half], factors[half:], flags, attrs["adds"], strict=True):
        stack.append(np.matmul(a, b).T if flipped else np.matmul(a, b))
        for _ in range(adds):
            last = stack.pop()
            stack[-1] = stack[-1] + last
    return stack[0]


@register("mm_tree", reference=summed_products, tolerance=64)
def sums_of_products(dtype: DType, rng: np.random.Generator) -> Iterator[tuple[Attrs, Args]]:
    # Whole numbers: a wide product adds up in another order, which floats must not show here.
    def whole(shape: tuple[int, ...], dtype: DType = dtype) -> np.ndarray:
        return rng.integers(0, 4, shape).astype(dtype.numpy)

    def tree(left: Sequence[tuple], right: Sequence[tuple]) -> Args:
        return tuple(map(whole, (*left, *right)))

    chain, pairs = {"adds": (0, 1, 1, 1)}, {"adds": (0, 1, 0, 2)}
    wide, deep = (((8, 2),) * 4, ((2, 8),) * 4), (((3, 9),) * 4, ((9, 2),) * 4)
    for attrs in (chain, pairs):
        yield attrs, tree(*wide)
        yield attrs, tree(*deep)
        yield attrs, tree([(2, 3)] * 4, [(3, 4), (3, 1), (3,), (3, 4)][::-1])
    yield {"adds": (0, 1), "transposed": (True, False)}, tree(*(s[:2] for s in wide))
    yield {"adds": (0, 1), "transposed": (True, True)}, tree(*(s[:2] for s in deep))
    yield {"adds": (0, 1)}, tree([(5, 2, 3), (2, 3)], [(3, 2), (3, 2)])
    yield {"adds": (0, 1)}, tree([(0, 3), (0, 3)], [(3, 4), (3, 4)])
    yield {"adds": (0, 1)}, tree([(2, 0), (2, 0)], [(0, 4), (0, 4)])
    yield {"adds": (0, 1)}, tree([(2, 3), (2, 3)], [(3, 4), (4, 4)])
    yield {"adds": (0, 1)}, tree([(2, 3), (2, 3)], [(3, 4), (3, 5)])
    yield {"adds": (0,)}, tree([(2, 3)], [(3, 4)])
    for other in (I8, U64, F32):
        a, b = whole((8, 2)), whole((2, 8), other)
        yield {"adds": (0, 1)}, (a, a, b, b)
