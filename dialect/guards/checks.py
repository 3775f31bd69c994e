"""The checks of guards as one list (R1.39, R1.40, R3.42), and the types of dynamic guards.

`checks_of` lists the checks of a guard. The list is folded in four ways, each a table with one
entry per kind: `mismatch` decides on values and explains recorded types, `executor.plans.guard`
writes quick Python source, and `executor.dispatch.conditions.guards` the tests of emitted code.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count, repeat, zip_longest
from typing import Any, Literal, TypeVar, get_args

from ..dataclass import dataclass
from ..errors import InternalError
from ..ir.device import HOST
from ..ir.size_algebra import multiple_of
from ..ir.symbolic import Dim, Sym, symbol
from ..ir.types import ListType, ScalarType, TensorType, Type, contiguous_strides
from .free_sizes import FreeSizes, axis_name, axis_of
from .relaxed import free_strides, layout_of

Kind = Literal[
    "object",
    "dtype",
    "device",
    "requires_grad",
    "rank",
    "size",
    "positive",
    "symbol",
    "expression",
    "single",
    "aligned",
    "contiguous",
    "stride",
    "order",
    "fit",
]
_INTERLEAVED = (-1, 2, 3, 4)  # strides of a last axis, in elements
ALL_FREE = FreeSizes()
TENSOR_WORDS, UNDEFINED, LIST = "a tensor", "an undefined tensor", "a list"
_LISTED_WORDS = {"ints": "a list of integers", "bools": "a list of bools", "str": "a string"}
_Entry = TypeVar("_Entry")


@dataclass(frozen=True, slots=True)
class Check:
    """One check of one operand. The undefined tensor passes all but ``"object"``.

    Attributes:
        kind: ``"object"``: one of these, in words; ``"dtype"``: this (None: any) in native byte
            order; ``"device"``, ``"requires_grad"``, ``"rank"``; ``"size"``: this literal;
            ``"positive"``: at least 1, as ``wanted`` is; ``"symbol"``: of ``(name, times)``, that
            many times what the name is wherever it stands; ``"expression"``: of symbols, that
            value; ``"single"``: 0 and 1 where
            ``wanted`` is, and only there; ``"aligned"``: elements, if any, as their dtype asks for;
            ``"contiguous"``: in C order without gaps; ``"stride"``: in elements (None: any whole
            number), unless it is of one element or of none; ``"order"``: see `relaxed.Layout`;
            ``"fit"``: of two expressions of symbols, that they are equal.
        operand: index of the operand.
        wanted: what the operand, or its size or stride, has to be.
        axis: of sizes and strides.
    """

    kind: Kind
    operand: int
    wanted: Any = None
    axis: int = 0


def checks_of(
    types: Sequence[Type], *, relaxed: bool = False, flags: bool = False, free: FreeSizes = ALL_FREE
) -> tuple[Check, ...]:
    """The checks of a guard on operands of these types, in the order in which they are made.

    Args:
        relaxed: as `cuda_guard` compares (R3.42), not as `type_check` and `dynamic_guard` do.
        flags: as `rg_check` compares: dtypes, ranks and whether gradients are required (R1.39).
        free: what a relaxed guard asks of sizes beyond that (A6).
    """
    listed = _flag_checks if flags else _relaxed_checks if relaxed else _exact_checks
    checks = [Check(kind, k, *more) for k, type_ in enumerate(types) for kind, *more in listed(type_)]
    checks += _free_checks(free)
    # Expressions over several symbols can be checked only when all symbols have been met.
    return tuple(sorted(checks, key=lambda check: check.kind in ("expression", "fit")))


def _free_checks(free: FreeSizes) -> Iterator[Check]:
    first: dict[tuple[int, int], str] = {}  # axis -> the symbol that it shares with others
    for operand, axis, *other in free.equal:
        name = first.setdefault((operand, axis), axis_name(operand, axis))
        yield from _bound(operand, axis, name)
        yield from _bound(other[0], other[1], name)
    for sides in free.fits():
        names = sorted({name for dim in sides if isinstance(dim, Sym) for name in dim.symbols})
        for name in names:
            yield from _bound(*axis_of(name), name)
        yield Check("fit", axis_of(names[-1])[0], sides)


def described(type_: Type) -> str:
    """The words for what a value of this type is."""
    if isinstance(type_, TensorType):
        return TENSOR_WORDS
    if isinstance(type_, ScalarType):
        return f"a Python {type_.dtype}"
    return LIST if isinstance(type_, ListType) else _LISTED_WORDS[type_.kind]


def table(entries: Mapping[Kind, _Entry]) -> Mapping[Kind, _Entry]:
    """A fold's entries; raises InternalError unless there is one for each kind of check."""
    if differing := sorted(set(entries) ^ set(get_args(Kind))):
        raise InternalError(f"a fold over the checks of guards differs in {', '.join(differing)}")
    return entries


def _exact_checks(want: Type) -> Iterator[tuple]:
    if not isinstance(want, TensorType):
        yield "object", (described(want),)
        return
    if want.defined is False:
        yield "object", (UNDEFINED,)
        return
    yield "object", (UNDEFINED, TENSOR_WORDS)
    yield from _common_checks(want)
    # Sizes are compared only when all of them are known (R1.39); strides need the same rank.
    sizes = want.shape if want.shape is not None and None not in want.shape else None
    layouts = (sizes, want.strides if isinstance(want.strides, tuple) else None)
    for rank in dict.fromkeys(len(layout) for layout in layouts if layout is not None):
        yield "rank", rank
    for axis, dim in enumerate(sizes or ()):
        yield from _size_checks(dim, axis)
    if want.strides is not None:
        yield ("aligned",)
    if want.strides == "contiguous":
        yield ("contiguous",)
    for axis, step in enumerate(want.strides if isinstance(want.strides, tuple) else ()):
        yield "stride", step, axis


def _common_checks(want: TensorType) -> Iterator[tuple]:
    if want.dtype is not None or want.strides is not None:
        yield "dtype", want.dtype
    for field in ("device", "requires_grad"):
        if getattr(want, field) is not None:
            yield field, getattr(want, field)


def _size_checks(want: Any, axis: int) -> Iterator[tuple]:
    if isinstance(want, int):
        yield "size", want, axis
        return
    # Lowerings take symbols for positive: NumPy raises for some reductions over nothing.
    yield "positive", want, axis
    symbol = multiple_of(want)
    yield ("expression", want, axis) if symbol is None else ("symbol", symbol, axis)


def _flag_checks(want: Type) -> Iterator[tuple]:
    yield "object", (TENSOR_WORDS,)
    if not isinstance(want, TensorType):
        return
    yield from _common_checks(replace(want, strides=None, device=None))
    if want.rank is not None:
        yield "rank", want.rank


def _relaxed_checks(want: Type) -> Iterator[tuple]:
    if not isinstance(want, TensorType) or None in (want.dtype, want.shape, want.device):
        yield "object", ("a tensor of which too little is known",)
        return
    yield "object", (TENSOR_WORDS,)
    yield from _common_checks(want)
    yield "rank", want.rank
    for axis, dim in enumerate(want.shape or ()):
        if dim is not None:
            yield "single", dim, axis
    yield from (("aligned",), ("order", layout_of(want)))
    # A kernel reads these strides in elements, whatever the others are.
    strides = free_strides(want)
    for axis, step in enumerate(strides if isinstance(strides, tuple) else ()):
        if step is None:
            yield "stride", None, axis


def _bound(operand: int, axis: int, name: str) -> Iterator[Check]:
    yield Check("positive", operand, symbol(name), axis)
    yield Check("symbol", operand, (name, 1), axis)


# --- generalisation (R1.40) --------------------------------------------------------------------


def generalize(
    types: Sequence[TensorType], literal: Container[int] = (), known: Sequence[TensorType | None] = ()
) -> tuple[TensorType, ...] | None:
    """The types of a dynamic guard for profiled ones; None if they cannot be generalised.

    Sizes 0 and 1 stay literal, those in ``literal``, and those that are literal in what is
    ``known`` of an operand whatever the sizes of others are; equal sizes share a symbol ``s0``,
    ``s1``, …; a C-contiguous operand stays so, else strides 0 and 1 stay literal, those of -1 to 4
    along a last axis, and the others are passed at run time.
    """
    if len(devices_of(types)) > 1 or any(t.requires_grad for t in types):
        return None
    numbers = count()
    symbols: dict[Dim, Sym] = {}
    out = []
    for t, fixed in zip_longest(types, known):
        if t.dtype is None or t.shape is None or t.defined is False:
            return None
        sizes: list[Dim] = []
        same = fixed.shape if fixed is not None and fixed.rank == t.rank else None
        for dim, fixed_dim in zip(t.shape, same or repeat(None), strict=False):
            if dim is None:
                return None
            if isinstance(dim, int) and (dim in (0, 1, fixed_dim) or dim in literal):
                sizes.append(dim)
                continue
            if dim not in symbols:
                symbols[dim] = symbol(f"s{next(numbers)}")
            sizes.append(symbols[dim])
        out.append(replace(t, shape=tuple(sizes), strides=_stride_class(t), requires_grad=False))
    return tuple(out)


def devices_of(types: Iterable[Type]) -> set[str]:
    """The devices that an op or a group of these operands would run on.

    Numbers run anywhere, and so do tensors of rank 0 in the host's memory: a kernel of any device
    takes their value.
    """
    tensors = [t for t in types if isinstance(t, TensorType)]
    return {t.device for t in tensors if t.device and (t.device != HOST or t.rank != 0)}


def _stride_class(t: TensorType) -> tuple[int | None, ...] | str | None:
    if not isinstance(t.strides, tuple):
        return t.strides
    shape = t.shape or ()
    if 0 in shape or _strides_fit(t.strides, contiguous_strides(shape), shape):  # type: ignore[arg-type]
        return "contiguous"
    # A dimension of size 1 is only ever indexed with 0: its stride needs no run-time value.
    *outer, last = (
        0 if size == 1 else (step if step in (0, 1) else None) for step, size in zip(t.strides, shape, strict=True)
    )
    # Every second element, or the last one first, is no size that changes, if none is the same; a
    # kernel that knows it loads whole vectors.
    step = t.strides[-1]
    if last is None and step in _INTERLEAVED and step not in shape[:-1]:
        last = step
    return (*outer, last)


def _strides_fit(strides: Sequence, wanted: Sequence, shape: Sequence) -> bool:
    return all(s == w for s, w, size in zip(strides, wanted, shape, strict=True) if size != 1)
