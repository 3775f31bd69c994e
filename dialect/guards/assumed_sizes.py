"""Under which assumptions sizes fit each other: which ones are multiples, which ones are equal.

A dynamic guard checks what is assumed, so that a wrong assumption costs a miss and no result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import gcd

from ..ir.size_algebra import symbol_name
from ..ir.symbolic import Dim, Monomial, Sym, evaluate, symbol, terms_of


def assumption(sizes: Sequence[Dim], observed: dict[str, int]) -> tuple[str, Dim] | None:
    """A symbol and the size to take it for, so that sizes fit; None where none is of help.

    ``x[::2] + x[1::2]`` fits where the size of ``x`` is even, which is so if it is ``2*k1``.

    Args:
        sizes: two sizes that are not known to be equal, or one that is not known to be positive.
        observed: what symbols have stood for; nothing is assumed that did not hold then. A symbol
            that is new is added.
    """
    for size in sizes:
        for name, times in _divided(size):
            if name in observed and observed[name] % times == 0:
                fresh = f"k{len(observed)}"
                observed[fresh] = observed[name] // times
                return name, symbol(fresh) * times
    try:
        if len(sizes) != 2 or evaluate(sizes[0], observed) != evaluate(sizes[1], observed):
            return None
    except (KeyError, ZeroDivisionError):  # no size was observed that tells
        return None
    for size, other in (sizes, sizes[::-1]):
        equal = symbol_name(size)
        if equal is not None and not (isinstance(other, Sym) and equal in other.symbols):
            return equal, other
    return None


def _divided(size: Dim) -> Iterator[tuple[str, int]]:
    """Symbols that are divided by literals in a size, which need not divide them."""
    for mono, _ in terms_of(size):
        for atom in mono:
            if not isinstance(atom, tuple):
                continue
            op, numerator, denominator = atom
            yield from _divided(numerator)
            yield from _divided(denominator)
            if op not in ("//", "%") or len(terms_of(denominator)) != 1:
                continue
            ((common, times),) = terms_of(denominator)
            for factors, coef in terms_of(numerator):
                rest = _without(factors, common)
                needed = times // gcd(times, coef)
                if needed > 1 and rest is not None and len(rest) == 1 and isinstance(rest[0], str):
                    yield rest[0], needed


def _without(factors: Monomial, common: Monomial) -> Monomial | None:
    """The factors that are left without the common ones; None if some of these are missing."""
    rest = list(factors)
    for atom in common:
        if atom not in rest:
            return None
        rest.remove(atom)
    return tuple(rest)
