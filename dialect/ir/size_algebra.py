"""The algebra of symbolic sizes: bounds, the larger of two, substitution, reading from text.

`symbolic` has the expressions themselves.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from keyword import iskeyword
from math import gcd, inf, lcm
from types import MappingProxyType
from typing import Any

from .symbolic import BINARY, LOOP, UP_TO, ArgumentRead, Atom, Dim, Leaf, Sym, make_dim, symbol, terms_of

Bounds = tuple[float, float]  # of integers; infinite where there is none
# `guards.free_sizes.axis_name`, the least value, and other sizes that this one is larger than.
_FREE = re.compile(r"(s\d+_\d+)(?:_(\d+))?((?:__\d+_(?:s\d+_|k)\d+)*)")
_LEAST = 2  # of a size that a guard frees
_REST = "rest_"  # begins the name of what a size has more than another one, which may be 0


def sym_max(a: Dim, b: Dim) -> Dim:
    """The larger of two sizes: one of them where that holds for all symbols from 0 on."""
    return _extremum("max", max, a, b)


def sym_min(a: Dim, b: Dim) -> Dim:
    """The smaller of two sizes, found as `sym_max` is."""
    return _extremum("min", min, a, b)


def _extremum(name: str, fn: Callable, a: Dim, b: Dim) -> Dim:
    if a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return fn(a, b)
    low, high = bounds(a - b, (0, inf))
    if low >= 0 or high <= 0:
        return a if (low >= 0) == (name == "max") else b
    return make_dim({((name, a, b),): 1})


OPERATORS: dict[str, Callable] = {**BINARY, "max": sym_max, "min": sym_min}  # these take expressions, too


def substitute(dim: Dim, sizes: Mapping[Any, Dim]) -> Dim:
    """``dim`` with the leaves in ``sizes`` replaced by what they stand for."""
    if isinstance(dim, int) or not dim.symbols & sizes.keys():
        return dim
    return dim.fold(lambda leaf: sizes.get(leaf, symbol(leaf)), int, lambda op, a, b: OPERATORS[op](a, b))


def bounds(dim: Dim, symbols: Bounds = (1, inf)) -> Bounds:
    """Two numbers that ``dim`` lies between if all its symbols lie between ``symbols``.

    Leaves that may be negative lie between the upper bound and the negated one.
    The numbers are not the tightest ones: terms are taken to be independent of each other, except
    for ``a // n * n`` beside ``a``, and for symbols of loops (`inside_loop`), whose ends count.
    """
    return _bounds(dim, symbols, {})


def _bounds(dim: Dim, symbols: Bounds, found: dict[Atom, Bounds]) -> Bounds:
    """`bounds`; ``found``: those of operators, which are asked for again and again, at every level."""
    if isinstance(dim, int):
        return dim, dim
    low, high = _open_bounds(dim, symbols, found)
    for name, floor in _known_floors(dim):
        other = _bounds(substitute(dim, {name: floor + symbol(_REST + name)}), symbols, found)
        low, high = max(low, other[0]), min(high, other[1])
    spans = _spans.get()
    if spans and symbols[1] == inf and not dim.symbols.isdisjoint(spans):
        low = max(low, _open_bounds(_at_its_least(dim, spans), symbols, found)[0])
        high = min(high, -_open_bounds(_at_its_least(-dim, spans), symbols, found)[0])
    return low, high


_spans: ContextVar[Mapping[str, Dim]] = ContextVar("spans", default=MappingProxyType({}))


@contextmanager
def inside_loop(name: str, span: Dim | None) -> Iterator[None]:
    """Know that the symbol of a loop stays at or below ``span``; None = nothing is known."""
    if span is None or not name:
        yield
        return
    token = _spans.set({**_spans.get(), name: span})
    try:
        yield
    finally:
        _spans.reset(token)


def _at_its_least(dim: Dim, spans: Mapping[str, Dim]) -> Dim:
    """An expression where it is least, as far as it is linear in symbols of loops."""
    for name in reversed(list(spans)):  # inner spans follow from outer symbols
        end = at_the_end(dim, name, spans[name])
        dim = dim if end is None else end
    return dim


def at_the_end(dim: Dim, name: str, span: Dim) -> Dim | None:
    """The least value of an expression that is linear in a symbol from 1 to ``span``.

    None for one that is not.
    """
    if not isinstance(dim, Sym) or name not in dim.symbols:
        return dim
    factor = 0
    for mono, coefficient in dim.terms:
        if mono == (name,):
            factor = coefficient
        elif any(name == a or (isinstance(a, tuple) and name in Sym((((a,), 1),)).symbols) for a in mono):
            return None
    return substitute(dim, {name: 1 if factor > 0 else span})


def _open_bounds(dim: Dim, symbols: Bounds, found: dict[Atom, Bounds]) -> Bounds:
    if isinstance(dim, int):
        return dim, dim
    low, high = _sum_bounds(dim, symbols, found)
    # Quotients are sums of other terms once the whole is multiplied by what they are divided by.
    times = lcm(*_divisors(dim))
    other = _sum_bounds(_with_remainders(dim * times), symbols, found)
    return max(low, -_quotient(-other[0], times)), min(high, _quotient(other[1], times))


def _sum_bounds(dim: Dim, symbols: Bounds, found: dict[Atom, Bounds]) -> Bounds:
    low = high = 0.0
    for mono, coef in terms_of(dim):
        span: Bounds = (coef, coef)
        for atom in mono:
            if atom not in found:
                found[atom] = _atom_bounds(atom, symbols, found)
            span = _product(span, found[atom])
        low, high = low + span[0], high + span[1]
    return low, high


def _divisors(dim: Sym) -> Iterator[int]:
    """The divisors in terms that are quotients by a literal, without their factors."""
    for mono, coef in dim.terms:
        atom = mono[0] if len(mono) == 1 else ""
        if isinstance(atom, tuple) and atom[0] == "//" and isinstance(atom[2], int) and atom[2] > 0:
            yield atom[2] // gcd(atom[2], coef)


def _with_remainders(dim: Dim) -> Dim:
    """``dim`` with ``a - a % n`` for each ``a // n * n`` in it."""
    out: Dim = dim
    for mono, coef in terms_of(dim):
        atom = mono[0] if len(mono) == 1 else ""
        if isinstance(atom, tuple) and atom[0] == "//" and isinstance(atom[2], int):
            times, rest = divmod(coef, atom[2])
            if not rest:
                out = out + (atom[1] - atom[1] % atom[2]) * times - make_dim({mono: coef})
    return out


@functools.lru_cache(4096)
def least_of(name: str) -> int:
    """The least size that a symbol stands for where its kernel runs; 0 = that depends on who asks.

    Names such as ``s1_0`` are given to sizes behind relaxed guards, which are neither 0 nor 1 (R3.42); ``s1_0_4`` is
    one that the guard wants to be 4 at least.
    """
    match = _FREE.fullmatch(name)
    return int(match[2] or _LEAST) if match else 0


@functools.lru_cache(4096)
def floors_of(name: str) -> dict[str, int]:
    """What the size of a symbol exceeds where its kernel runs: root of another symbol -> by how much at least.

    The guard wants ``s1_0__2_s0_1`` to be 2 more than the size of axis 1 of operand 0, or larger. Which symbol that
    axis has, its root tells: see `root_of`.
    """
    match = _FREE.fullmatch(name)
    floors = match[3].split("__")[1:] if match else []
    return {root: int(more) for more, _, root in (floor.partition("_") for floor in floors)}


def root_of(name: str) -> str:
    """The name of a symbol without what is known of its size."""
    match = _FREE.fullmatch(name)
    return match[1] if match else name


def floored_name(name: str, least: int, floors: Mapping[str, int]) -> str:
    """A name for the same size of which this is known; see `least_of` and `floors_of`."""
    least_text = f"_{least}" if least > _LEAST else ""
    return root_of(name) + least_text + "".join(f"__{more}_{root}" for root, more in sorted(floors.items()))


def _known_floors(dim: Sym) -> list[tuple[str, Dim]]:
    """The symbols that are terms of an expression, and what they exceed, where that is a term, too."""
    names = [atom for mono, _ in dim.terms for atom in mono if isinstance(atom, str)]
    by_root = {root_of(name): name for name in names}
    floors = [(name, root, more) for name in dict.fromkeys(names) for root, more in floors_of(name).items()]
    return [(name, symbol(by_root[root]) + more) for name, root, more in floors if root in by_root]


def multiple_of(dim: Any) -> tuple[str, int] | None:
    """The name and the number of a size that is one symbol, a positive number of times; else None.

    ``s0`` is ``("s0", 1)``, ``4*s0`` is ``("s0", 4)``; literals and other expressions are None.
    """
    if not isinstance(dim, Sym) or len(dim.terms) != 1:
        return None
    (mono, times) = dim.terms[0]
    return (mono[0], times) if len(mono) == 1 and isinstance(mono[0], str) and times > 0 else None


def symbol_name(dim: Any) -> str | None:
    """The name of a size that is just a symbol; None for literals and expressions."""
    name, times = multiple_of(dim) or (None, 1)
    return name if times == 1 else None


def fits_64_bits(dim: Dim, below: int = 2**31) -> bool:
    """True if no step of evaluating ``dim`` overflows where leaves are below a power of two."""
    if isinstance(dim, int):
        return -(2**63) <= dim < 2**63
    total = 0.0
    for mono, coef in dim.terms:
        span: Bounds = (coef, coef)
        for atom in mono:
            if isinstance(atom, tuple) and not all(fits_64_bits(part, below) for part in atom[1:]):
                return False
            span = _product(span, _atom_bounds(atom, (1, below), {}))
        total += max(map(abs, span))
    return total < 2**63


def _atom_bounds(atom: Atom, symbols: Bounds, found: dict[Atom, Bounds]) -> Bounds:
    if not isinstance(atom, tuple):
        if isinstance(atom, str) and atom.startswith(LOOP):
            _, is_known, most = atom.partition(UP_TO)
            return (max(symbols[0], 1), int(most) if is_known else symbols[1])
        if isinstance(atom, str) and atom.startswith(_REST):
            return (0, symbols[1])
        if isinstance(atom, str) and (least := least_of(atom)):
            return (max(symbols[0], least), symbols[1])
        signed = isinstance(atom, ArgumentRead) and atom.signed
        return (-symbols[1], symbols[1]) if signed else symbols
    op, (a, b), (c, d) = atom[0], _bounds(atom[1], symbols, found), _bounds(atom[2], symbols, found)
    if op in ("max", "min"):
        pick = max if op == "max" else min
        return pick(a, c), pick(b, d)
    if op == "%":
        return (min(0, c + 1), max(0, d - 1))
    if c > 0:  # divided by 1 at least
        return _quotient(a, c if a < 0 else d), _quotient(b, d if b < 0 else c)
    return -inf, inf


def _product(a: Bounds, b: Bounds) -> Bounds:
    corners = [0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient(a: float, b: float) -> float:
    if abs(a) == inf:
        return a
    return (-1 if a < 0 else 0) if b == inf else a // b


def without_remainders(dim: Dim) -> Dim:
    """``dim`` with every ``a % b`` as ``a - a // b * b``, which tells more sizes to be equal."""
    if isinstance(dim, int):
        return dim
    operators = {**OPERATORS, "%": lambda a, b: a - a // b * b}
    return dim.fold(symbol, int, lambda op, a, b: operators[op](a, b))


def parse_dim(text: str, leaf: Callable[[str], Leaf] = str) -> Dim:
    """Inverse of `dim_text`: ``"s0"``, ``"4*s0 + 1"``, ``"(s0 // 2)"``.

    ``leaf`` is the inverse of ``name`` there.  Raises ValueError for other text, and what ``leaf``
    raises.
    """
    return _read_before(text) if leaf is str else _read(text, leaf)


@functools.lru_cache(4096)
def _read_before(text: str) -> Dim:
    """Most sizes are read again and again: at each launch of a check, in each kernel of a graph."""
    return _read(text, str)


def _read(text: str, leaf: Callable[[str], Leaf]) -> Dim:
    names = set(re.findall(r"[A-Za-z_]\w*", text)) - {"max", "min"}
    plain = re.fullmatch(r"[\w\s+*/%(),-]+", text) and "**" not in text
    if not plain or any(map(iskeyword, names)):
        raise ValueError(f"not a size expression: {text!r}")
    scope = {"__builtins__": {}, "max": sym_max, "min": sym_min}
    scope |= {name: symbol(leaf(name)) for name in names}
    try:  # only names, integers and + * // % , ( ) get past the check above
        dim = eval(text, scope)
    except (SyntaxError, TypeError, ArithmeticError):
        dim = None
    if type(dim) not in (int, Sym):
        raise ValueError(f"not a size expression: {text!r}")
    return dim
