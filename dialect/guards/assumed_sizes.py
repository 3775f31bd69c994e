"""Under which assumptions sizes fit each other: which ones are multiples, which ones are equal.

A dynamic guard checks what is assumed, so that a wrong assumption costs a miss and no result.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from math import gcd
from typing import Any

from ..ir.size_algebra import symbol_name
from ..ir.symbolic import Dim, Monomial, Sym, evaluate, make_dim, symbol, terms_of


def assumption(sizes: Sequence[Dim], observed: dict[str, int]) -> tuple[str, Dim] | None:
    """A symbol and the size to take it for, so that sizes fit; None where none is of help.

    ``x[::2] + x[1::2]`` fits where the size of ``x`` is even, which is so if it is ``2*k1``. Where a product has to be
    a number, as in ``x.reshape(9, 64)``, its symbols are taken for numbers, one after the other.

    Args:
        sizes: two sizes that are not known to be equal, or one that is not known to be positive.
        observed: what symbols have stood for; nothing is assumed that did not hold then. A symbol
            that is new is added.
    """
    for size in sizes:
        for name, times in divided_symbols(size):
            if name in observed and observed[name] % times == 0:
                fresh = f"k{len(observed)}"
                observed[fresh] = observed[name] // times
                return name, symbol(fresh) * times
    try:
        if len(sizes) != 2 or evaluate(sizes[0], observed) != evaluate(sizes[1], observed):
            return None
    except (KeyError, ZeroDivisionError):  # no size was observed that tells
        return None
    sizes = without_common_factors(*sizes)
    for size, other in (sizes, sizes[::-1]):
        equal = symbol_name(size)
        if equal is not None and not (isinstance(other, Sym) and equal in other.symbols):
            return equal, other
    for size, other in (sizes, sizes[::-1]):
        if isinstance(size, Sym) and isinstance(other, int):  # no symbol alone: each in it is taken for a number
            names = sorted(size.symbols & observed.keys())
            return (names[0], observed[names[0]]) if names else None
    return None


def without_common_factors(size: Dim, other: Dim) -> tuple[Dim, Dim]:
    """Two sizes that are equal where these are: ``s0`` and ``2*s1`` for ``9*s0*s2 + s0`` and ``18*s1*s2 + 2*s1``.

    What is multiplied may be 0 only where both are, so nothing is lost.
    """
    (first, rest), (second, other_rest) = map(_factored, (size, other))
    if rest != other_rest:
        return size, other
    common, shared = gcd(first[1], second[1]), list((Counter(first[0]) & Counter(second[0])).elements())
    parts = [(_without(mono, shared) or (), coef // common) for mono, coef in (first, second)]
    return make_dim(dict(parts[:1])), make_dim(dict(parts[1:]))


def _factored(size: Dim) -> tuple[tuple[Monomial, int], Dim]:
    """The factor that all terms of a size have in common, and what is left without it."""
    terms = list(terms_of(size))
    factors, number = Counter(terms[0][0]) if terms else Counter(), 0
    for mono, coef in terms:
        factors &= Counter(mono)
        number = gcd(number, coef)
    if not number:
        return ((), 1), size
    shared = tuple(factors.elements())
    rest = {_without(mono, shared) or (): coef // number for mono, coef in terms}
    return (shared, number), make_dim(rest)


def divided_symbols(size: Dim) -> Iterator[tuple[str, int]]:
    """Symbols that are divided by literals in a size, which need not divide them."""
    for mono, _ in terms_of(size):
        for atom in mono:
            if not isinstance(atom, tuple):
                continue
            op, numerator, denominator = atom
            yield from divided_symbols(numerator)
            yield from divided_symbols(denominator)
            if op not in ("//", "%") or len(terms_of(denominator)) != 1:
                continue
            ((common, times),) = terms_of(denominator)
            for factors, coef in terms_of(numerator):
                rest = _without(factors, common)
                factor = times // gcd(times, coef)
                if factor > 1 and rest:  # one factor of a product that is a multiple will do: the last axis first
                    yield from ((name, factor) for name in reversed(rest) if isinstance(name, str))


def _without(factors: Monomial, common: Sequence[Any]) -> Monomial | None:
    """The factors that are left without the common ones; None if some of these are missing."""
    rest = list(factors)
    for atom in common:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
