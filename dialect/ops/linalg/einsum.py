"""`numpy.einsum` taken apart into transposes, matrix products, multiplications and sums.

Operands are whatever the caller's ``emit(name, *operands, **attrs)`` takes and returns: values
with ``ndim``, ``dtype`` (NumPy's) and ``shape``, whose entries are ints or scalar values that
multiply, compare and can be operands. A traced value has a ``hint`` as well: its sizes for the
example arguments, None where they are unknown. The hints decide what the graph looks like; the
sizes are compared only where other ones would need another graph, and a guard can tell them
(``is_derived`` of a traced size).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from ...dataclass import dataclass
from ...errors import DTypeError, ShapeError
from ...ir.attrs import DYNAMIC
from ...ir.dtypes import dtype_of
from ..sizes import promote

Emit = Callable[..., Any]
Labels = tuple[str, ...]


@dataclass(frozen=True)
class _Term:
    """A value and the label of each of its axes."""

    value: Any
    labels: Labels


def decompose_einsum(emit: Emit, subscripts: str, operands: Sequence[Any]) -> Any:
    """The value of ``numpy.einsum(subscripts, *operands)``, emitted as ops.

    Products are contracted pairwise, in NumPy's greedy order where all sizes are literal, else
    from left to right. An axis whose size is now 1 stands for a longer one of the same label.
    Raises ShapeError, DTypeError.
    """
    inputs, output = parse_subscripts(subscripts, [x.ndim for x in operands])
    dtype = promote([dtype_of(x.dtype) for x in operands])
    if dtype is None:
        raise DTypeError("einsum needs operands")
    terms = [
        _Term(x if dtype_of(x.dtype) is dtype else emit("cast", x, dtype=dtype), labels)
        for x, labels in zip(operands, inputs, strict=True)
    ]
    label_sizes = _label_sizes(terms)
    sizes = {label: size.value for label, size in label_sizes.items()}
    terms = [_diagonal(emit, _without_ones(emit, t, label_sizes), sizes) for t in terms]
    for chosen in _path(terms, sizes, output):
        picked = [terms[k] for k in chosen]
        terms = [t for k, t in enumerate(terms) if k not in chosen]
        kept = {*output, *(label for t in terms for label in t.labels)}
        while len(picked) > 1:
            rest = {label for t in picked[2:] for label in t.labels}
            picked[:2] = [_contract(emit, picked[0], picked[1], kept | rest, sizes)]
        terms += picked
    (term,) = terms
    term = _ordered(emit, _summed(emit, term, set(output)), output)
    value = term.value
    return value if dtype_of(value.dtype) is dtype else emit("cast", value, dtype=dtype)


# --- subscripts --------------------------------------------------------------------------------


def parse_subscripts(subscripts: str, ranks: Sequence[int]) -> tuple[list[Labels], Labels]:
    """Labels of each operand's axes and of the result's; raises ShapeError.

    Axes under an ellipsis are labelled ``.1``, ``.2``, … from the right.
    """
    left, arrow, right = subscripts.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(
            "more operands provided to einstein sum function than specified in the subscripts string"
            if len(ranks) > len(terms)
            else "fewer operands provided to einstein sum function than specified in the subscripts string"
        )
    inputs = [_labels(t, rank, k) for k, (t, rank) in enumerate(zip(terms, ranks, strict=True))]
    every = [label for labels in inputs for label in labels]
    hidden = tuple(sorted({s for s in every if s[0] == "."}, key=lambda s: -int(s[1:])))
    if not arrow:
        explicit = {s for s in every if s[0] != "."}
        return inputs, (*hidden, *sorted(s for s in explicit if every.count(s) == 1))
    head, dots, tail = right.partition("...")
    _check_letters(head + tail)
    if hidden and not dots:
        raise ShapeError("einsum: the output subscripts must contain the ellipsis of the inputs")
    output = (*head, *(hidden if dots else ()), *tail)
    for label in output:
        if output.count(label) > 1:
            raise ShapeError(f"einstein sum subscripts string includes output subscript '{label}' multiple times")
        if label not in every:
            raise ShapeError(
                f"einstein sum subscripts string included output subscript '{label}' which never appeared in an input"
            )
    return inputs, output


def _labels(term: str, rank: int, position: int) -> Labels:
    head, dots, tail = term.partition("...")
    _check_letters(head + tail)
    hidden = rank - len(head) - len(tail)
    if hidden < 0:
        raise ShapeError(f"einstein sum subscripts string contains too many subscripts for operand {position}")
    if hidden and not dots:
        raise ShapeError(
            "operand has more dimensions than subscripts given in einstein sum, but no '...' "
            "ellipsis provided to broadcast the extra dimensions."
        )
    return (*head, *(f".{k}" for k in range(hidden, 0, -1)), *tail)


def _check_letters(text: str) -> None:
    for letter in text:
        if not (letter.isascii() and letter.isalpha()):
            raise ShapeError(
                f"invalid subscript '{letter}' in einstein sum subscripts string, subscripts must be letters"
            )


# --- sizes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Size:
    """A size as an operand, and what it is for the example arguments (None: unknown)."""

    value: Any
    now: int | None

    @property
    def is_derived(self) -> bool:
        """True if it follows from the arguments' sizes, as far as a guard knows."""
        return getattr(self.value, "is_derived", True)


def _sizes(term: _Term) -> dict[str, _Size]:
    """Size of each axis; of a label that stands for several axes, the last one's."""
    return dict(_axes(term))


def _axes(term: _Term) -> list[tuple[str, _Size]]:
    shape = term.value.shape
    hint = getattr(term.value, "hint", shape)
    return [(s, _Size(*size)) for s, *size in zip(term.labels, shape, hint, strict=True)]


def _label_sizes(terms: Sequence[_Term]) -> dict[str, _Size]:
    """Size of each label, of an axis that is not 1 if there is one; raises ShapeError."""
    sizes: dict[str, _Size] = {}
    for label, size in (axis for term in terms for axis in _axes(term)):
        other = sizes.setdefault(label, size)
        literal = _is_literal(size.value) and not _is_literal(other.value)
        if size.now != 1 and (other.now == 1 or literal):
            sizes[label] = size
        if other.now not in (None, 1) and size.now not in (None, 1, other.now):
            raise ShapeError(
                f"operands could not be broadcast together: dimension '{label}' has sizes {other.now} and {size.now}"
            )
    return sizes


def _is_literal(size: Any) -> bool:
    # Not isinstance: a traced size passes for the int it stands for.
    return type(size) is int


def _without_ones(emit: Emit, term: _Term, sizes: dict[str, _Size]) -> _Term:
    """``term`` without the axes of size 1 that stand for longer ones.

    Where all axes of a label are 1 now, and no guard can hold that, ops find out if they differ.
    """

    def stands_for_longer(label: str, size: _Size) -> bool:
        whole = sizes[label]
        if size.now != 1:
            return False
        is_told = size.is_derived and whole.is_derived
        if whole.now == 1 and not is_told and term.labels.count(label) == 1:
            return False
        return bool(size.value != whole.value and size.value == 1)

    axes = [k for k, axis in enumerate(_axes(term)) if stands_for_longer(*axis)]
    if not axes:
        return term
    labels = tuple(s for k, s in enumerate(term.labels) if k not in axes)
    return _Term(emit("squeeze", term.value, axes=tuple(axes)), labels)


def _diagonal(emit: Emit, term: _Term, sizes: dict[str, Any]) -> _Term:
    """``term`` with one axis per label: the diagonal of repeated ones."""
    while len(set(term.labels)) < len(term.labels):
        label = next(s for s in term.labels if term.labels.count(s) > 1)
        axes = [k for k, s in enumerate(term.labels) if s == label]
        rest = [k for k in range(len(term.labels)) if k not in axes]
        value = emit("transpose", term.value, perm=(*rest, *axes))
        static, dynamic = _split_sizes([sizes[label]])
        along = emit("iota", *dynamic, shape=static)
        indexed = tuple(range(len(rest), len(rest) + len(axes)))
        value = emit("index", value, *[along] * len(axes), axes=indexed)
        term = _Term(value, (*(term.labels[k] for k in rest), label))
    return term


def _split_sizes(values: Sequence[Any]) -> tuple[tuple[int, ...], list[Any]]:
    """Sizes as a size attribute and its operands."""
    static = tuple(v if _is_literal(v) else DYNAMIC for v in values)
    return static, [v for v in values if not _is_literal(v)]


def _path(terms: Sequence[_Term], sizes: dict[str, Any], output: Labels) -> list[tuple[int, ...]]:
    """The terms to contract in turn; the result of each step goes to the end of the list."""
    if len(terms) <= 2:
        return [tuple(range(len(terms)))]
    if not all(_is_literal(sizes[label]) for t in terms for label in t.labels):
        return [(0, 1), *((0, len(terms) - 2 - k) for k in range(len(terms) - 2))]
    numbers = {label: k for k, label in enumerate(sizes)}
    arguments: list[Any] = []
    for term in terms:
        shape = tuple(sizes[label] for label in term.labels)
        arguments += [np.broadcast_to(np.float32(0), shape), [numbers[s] for s in term.labels]]
    steps, _ = np.einsum_path(*arguments, [numbers[s] for s in output], optimize="greedy")
    return [tuple(step) for step in steps[1:]]


# --- contraction -------------------------------------------------------------------------------


def _contract(emit: Emit, a: _Term, b: _Term, kept: set[str], sizes: dict[str, Any]) -> _Term:
    """Product of two terms, summed over the labels that are not kept."""
    a = _summed(emit, a, kept | set(b.labels))
    b = _summed(emit, b, kept | set(a.labels))
    shared = [s for s in a.labels if s in b.labels]
    batch = tuple(s for s in shared if s in kept)
    inner = tuple(s for s in shared if s not in kept)
    rows = tuple(s for s in a.labels if s not in shared)
    columns = tuple(s for s in b.labels if s not in shared)
    if not inner:
        return _multiply(emit, a, b, (*batch, *rows, *columns))
    if len(inner) > 1:  # merged, axes of unlike sizes may have one size
        _check_equal(a, b, inner)
    x = _merged(emit, a, (batch, rows, inner))
    y = _merged(emit, b, (batch, inner, columns))
    # Without batch axes a missing row or column axis makes the operand a vector, which matmul
    # takes as it is; among batch axes it has to be there.
    if batch and not rows:
        x = emit("expand_dims", x, axes=(-2,))
    if batch and not columns:
        y = emit("expand_dims", y, axes=(-1,))
    value = emit("matmul", x, y)
    if batch and not (rows and columns):
        gone = [axis for axis, labels in ((-2, rows), (-1, columns)) if not labels]
        value = emit("squeeze", value, axes=tuple(gone))
    labels = (*batch, *rows, *columns)
    if len(rows) > 1 or len(columns) > 1:
        static, dynamic = _split_sizes([sizes[s] for s in labels])
        value = emit("reshape", value, *dynamic, shape=static)
    return _Term(value, labels)


def _check_equal(a: _Term, b: _Term, labels: Labels) -> None:
    """Raise ShapeError unless these axes of both terms have equal sizes."""
    of_a, of_b = _sizes(a), _sizes(b)
    for label in labels:
        if of_a[label].value != of_b[label].value:
            raise ShapeError(f"operands could not be broadcast together: dimension '{label}' differs")


def _multiply(emit: Emit, a: _Term, b: _Term, labels: Labels) -> _Term:
    """Elementwise product of two terms, broadcast to ``labels``."""
    values = []
    for term in (a, b):
        term = _ordered(emit, term, tuple(s for s in labels if s in term.labels))
        missing = tuple(k for k, s in enumerate(labels) if s not in term.labels)
        values.append(emit("expand_dims", term.value, axes=missing) if missing else term.value)
    return _Term(emit("mul", *values), labels)


def _merged(emit: Emit, term: _Term, groups: tuple[Labels, ...]) -> Any:
    """``term`` with its axes in the order of ``groups``, all but the first group merged.

    The sizes are the term's own: where another one has others, the product of both has to see it.
    """
    sizes = {label: size.value for label, size in _sizes(term).items()}
    value = _ordered(emit, term, tuple(s for group in groups for s in group)).value
    if all(len(group) <= 1 for group in groups[1:]):
        return value
    merged = [sizes[s] for s in groups[0]]
    merged += [reduce(mul, (sizes[s] for s in group)) for group in groups[1:] if group]
    static, dynamic = _split_sizes(merged)
    return emit("reshape", value, *dynamic, shape=static)


def _summed(emit: Emit, term: _Term, kept: set[str]) -> _Term:
    """``term`` summed, in its own dtype, over the labels that are not kept."""
    axes = tuple(k for k, s in enumerate(term.labels) if s not in kept)
    if not axes:
        return term
    labels = tuple(s for s in term.labels if s in kept)
    return _Term(emit("sum", term.value, axes=axes, promote=False), labels)


def _ordered(emit: Emit, term: _Term, labels: Labels) -> _Term:
    """``term`` with its axes in the order of ``labels``."""
    if term.labels == labels:
        return term
    perm = tuple(term.labels.index(s) for s in labels)
    return replace(term, value=emit("transpose", term.value, perm=perm), labels=labels)
