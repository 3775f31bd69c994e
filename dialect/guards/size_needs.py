"""What has to be so of the symbols in sizes for these to be equal, positive, or one larger than another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import gcd
from typing import Any

from ..ir.size_algebra import least_of, root_of
from ..ir.symbolic import Dim, Sym, make_dim, terms_of
from .assumed_sizes import without_common_factors


def without_common_factor(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Two sizes that have to be equal, each divided by what is a factor of both: no free size is 0.

    So a number of elements asks something of those sizes alone in which both sides differ.
    """
    if len(sizes) != 2 or not all(isinstance(size, (int, Sym)) for size in sizes):
        return sizes
    sizes = without_common_factors(*sizes)
    terms = list(terms_of(sizes[0] - sizes[1]))
    if not terms:
        return sizes
    common = Counter(terms[0][0])
    for mono, _ in terms[1:]:
        common &= Counter(mono)
    common = Counter({atom: count for atom, count in common.items() if isinstance(atom, str)})
    number = gcd(*(times for _, times in terms))
    if not common and number == 1:
        return sizes
    divided = {tuple(sorted((Counter(mono) - common).elements(), key=repr)): times // number for mono, times in terms}
    return make_dim(divided), 0


def needed(dim: Dim, least: int) -> tuple[str, int] | None:
    """A symbol, and the value from which on an expression is ``least`` or more; None where no single symbol decides."""
    terms = dict(terms_of(dim))
    constant = terms.pop((), 0)
    (mono, times), *others = terms.items() or [((), 0)]
    if others or len(mono) != 1 or not times:
        return None
    (atom,) = mono
    op, *sides = atom if isinstance(atom, tuple) else ("", atom)
    if op == "//" and isinstance(sides[1], int) and sides[1] > 0:
        if times < 0:  # a quotient that is rounded up is a negated one
            return needed(-sides[0], 1 - sides[1] * ((constant - least) // -times + 1))
        return needed(sides[0], sides[1] * -((constant - least) // times))
    least = -((constant - least) // times)
    if times < 0 or not isinstance(atom, tuple):
        return (atom, least) if times > 0 and isinstance(atom, str) else None
    numbers = [side for side in sides if isinstance(side, int)]
    if op not in ("max", "min") or len(numbers) != 1 or (op == "min" and numbers[0] < least):
        return None
    return next(needed(side, least) for side in sides if not isinstance(side, int))


def comparisons(sizes: tuple[Any, ...]) -> Iterator[tuple[Dim, Dim]]:
    """The pairs of which sizes take the larger or the smaller one, those first that others do not depend on."""
    for size in sizes:
        for mono, _ in terms_of(size) if isinstance(size, Sym) else ():
            for atom in mono:
                if isinstance(atom, tuple):
                    yield from comparisons(atom[1:])
                    if atom[0] in ("max", "min"):
                        yield atom[1], atom[2]


def exceeded(difference: Dim) -> tuple[str, int, dict[str, int]] | None:
    """A symbol and what it has to exceed so that a difference is not negative: a number, or a root and by how much.

    None where the difference is no single symbol, less at most one other and a number.
    """
    terms = dict(terms_of(difference))
    constant = -terms.pop((), 0)
    signs = {mono[0]: times for mono, times in terms.items() if len(mono) == 1 and isinstance(mono[0], str)}
    larger, smaller = ([name for name, times in signs.items() if times == sign] for sign in (1, -1))
    if len(larger) != 1 or len(larger) + len(smaller) != len(terms) or not least_of(larger[0]):
        return None
    if not smaller:
        return larger[0], constant, {}
    if len(smaller) > 1 or root_of(smaller[0]) == root_of(larger[0]):
        return None
    return larger[0], 0, {root_of(smaller[0]): max(constant, 0)}


def linear(dim: Dim) -> dict[str, int]:
    """The symbols that stand by themselves in an expression, once, added or subtracted."""
    return {
        mono[0]: coefficient
        for mono, coefficient in terms_of(dim)
        if len(mono) == 1 and isinstance(mono[0], str) and coefficient in (1, -1)
    }
