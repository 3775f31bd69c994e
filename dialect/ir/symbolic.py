"""Symbolic sizes: integer polynomials over leaves, kept in one normal form.

A dynamic fusion group has sizes such as ``s0``, ``s0*4`` or ``s1 + 3``, over symbols that are
names.  The sizes of a call are expressions over what is read from its arguments: leaves such as
`Dimension` and `Integer`.  Both mean what Python's integers do.  Two sizes are known to be equal
exactly when their normal forms are, so equality is ``==`` and hashing is structural.  Division and
modulo are kept as atoms unless they divide out.  Expressions beyond `MAX_DEPTH` and `MAX_ATOMS` are
a ShapeError: whoever infers types takes such a size for unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from math import inf
from typing import Any, ClassVar, Union

from ..errors import ShapeError

Leaf = Union[str, "Read"]  # the name of a symbol, or what is read from an argument
Atom = Union[Leaf, tuple]  # a leaf, or ("//" | "%" | "max" | "min", Sym|int, Sym|int)
Monomial = tuple[Atom, ...]
Dim = Union[int, "Sym"]
Bounds = tuple[float, float]  # of integers; infinite where there is none


class Read:
    """A leaf that stands for what is read from an argument; base of frozen dataclasses.

    Attributes:
        signed: it may be negative.
    """

    __slots__: ClassVar[tuple[str, ...]] = ()
    signed: ClassVar[bool] = False

    def __repr__(self) -> str:  # terms are sorted by it: leaves lie among the names
        return f"'{type(self).__name__} {[getattr(self, name) for name in self.__slots__]}'"


@dataclass(frozen=True, slots=True, repr=False)
class Dimension(Read):
    """The size of an array along an axis; how the array is told is up to who reads the size."""

    array: Any
    axis: int


@dataclass(frozen=True, slots=True, repr=False)
class Integer(Read):
    """A Python int that is passed at a position: no size, but a number."""

    position: Any
    signed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Sym:
    """A non-constant size expression; build with `symbol` and the operators ``+ - * // %``."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Dim) -> Dim:
        acc = dict(self.terms)
        for mono, coef in _terms(other):
            acc[mono] = acc.get(mono, 0) + coef
        return _make(acc)

    def __mul__(self, other: Dim) -> Dim:
        acc: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in _terms(other):
                mono = tuple(sorted(m1 + m2, key=repr))
                acc[mono] = acc.get(mono, 0) + c1 * c2
        return _make(acc)

    def __neg__(self) -> Dim:
        return self * -1

    def __sub__(self, other: Dim) -> Dim:
        return self + (-1 * other)

    def __rsub__(self, other: Dim) -> Dim:
        return (-1 * self) + other

    __radd__ = __add__
    __rmul__ = __mul__

    def __floordiv__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other < 0:
            return -self // -other  # one normal form, and literal divisors are positive
        if other == 1:
            return self
        quotient = _exact_quotient(self, other)
        if quotient is not None:
            return quotient
        whole, rest = _split(self, other)
        if isinstance(rest, int):
            return whole + rest // other
        return whole + _make({(("//", rest, other),): 1})

    def __rfloordiv__(self, other: Dim) -> Dim:
        return 0 if other == 0 else _make({(("//", other, self),): 1})

    def __mod__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other < 0:
            return -(-self % -other)
        if _exact_quotient(self, other) is not None:
            return 0
        _, rest = _split(self, other)
        return rest % other if isinstance(rest, int) else _make({(("%", rest, other),): 1})

    def __rmod__(self, other: Dim) -> Dim:
        return 0 if other == 0 else _make({(("%", other, self),): 1})

    @property
    def symbols(self) -> frozenset:
        """All leaves inside: the names of symbols, in a kernel."""
        found: set = set()
        for mono, _ in self.terms:
            for atom in mono:
                if isinstance(atom, tuple):
                    found.update(*(part.symbols for part in atom[1:] if isinstance(part, Sym)))
                else:
                    found.add(atom)
        return frozenset(found)

    def fold(self, leaf: Callable, const: Callable, binary: Callable):
        """Rebuild with callbacks: ``leaf(leaf)``, ``const(int)``, ``binary(op, a, b)``."""

        def walk(dim: Dim):
            return dim.fold(leaf, const, binary) if isinstance(dim, Sym) else const(dim)

        total = None
        for mono, coef in self.terms:
            value = None if coef != 1 or not mono else _NOTHING
            if value is None:
                value = const(coef)
            for atom in mono:
                if isinstance(atom, tuple):
                    factor = binary(atom[0], walk(atom[1]), walk(atom[2]))
                else:
                    factor = leaf(atom)
                value = factor if value is _NOTHING else binary("*", value, factor)
            total = value if total is None else binary("+", total, value)
        return total

    def __str__(self) -> str:
        return dim_text(self)

    __repr__ = __str__


_NOTHING = object()
MAX_DEPTH = 32  # of operators in each other, as all that reads expressions is recursive
MAX_ATOMS = 512


def symbol(leaf: Leaf) -> Sym:
    """The size expression that is just a leaf: the symbol of a name (``[A-Za-z_]\\w*``), say."""
    return Sym((((leaf,), 1),))


def sym_max(a: Dim, b: Dim) -> Dim:
    """Larger of two sizes, the one that it is where this is known of symbols from 0 on."""
    return _extremum("max", max, a, b)


def sym_min(a: Dim, b: Dim) -> Dim:
    """Smaller of two sizes, likewise."""
    return _extremum("min", min, a, b)


def _extremum(name: str, fn: Callable, a: Dim, b: Dim) -> Dim:
    if a == b:
        return a
    if isinstance(a, int) and isinstance(b, int):
        return fn(a, b)
    low, high = bounds(a - b, (0, inf))
    if low >= 0 or high <= 0:
        return a if (low >= 0) == (name == "max") else b
    return _make({((name, a, b),): 1})


def evaluate(dim: Dim, values: Mapping[Any, int] | Callable[[Any], int]) -> int:
    """The integer that ``dim`` has under ``values`` (leaf -> int)."""
    if isinstance(dim, int):
        return dim
    read = values if callable(values) else values.__getitem__
    return dim.fold(read, int, lambda op, a, b: BINARY[op](a, b))


BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}
OPERATORS: dict[str, Callable] = {**BINARY, "max": sym_max, "min": sym_min}  # of expressions, too


def substitute(dim: Dim, sizes: Mapping[Any, Dim]) -> Dim:
    """``dim`` with the leaves in ``sizes`` replaced by what they stand for."""
    if isinstance(dim, int) or not dim.symbols & sizes.keys():
        return dim
    return dim.fold(
        lambda leaf: sizes.get(leaf, symbol(leaf)), int, lambda op, a, b: OPERATORS[op](a, b)
    )


def bounds(dim: Dim, symbols: Bounds = (1, inf)) -> Bounds:
    """Numbers that ``dim`` lies between, if all its symbols lie between ``symbols``.

    Leaves that may be negative lie between the upper bound and the negated one.
    Not the tightest ones: terms are taken to be independent of each other, but for ``a // n * n``
    beside ``a``.
    """
    if isinstance(dim, int):
        return dim, dim
    low, high = _sum_bounds(dim, symbols)
    other = _sum_bounds(_with_remainders(dim), symbols)
    return max(low, other[0]), min(high, other[1])


def _sum_bounds(dim: Dim, symbols: Bounds) -> Bounds:
    low = high = 0.0
    for mono, coef in _terms(dim):
        found: Bounds = (coef, coef)
        for atom in mono:
            found = _product(found, _atom_bounds(atom, symbols))
        low, high = low + found[0], high + found[1]
    return low, high


def _with_remainders(dim: Sym) -> Dim:
    """``dim`` with ``a - a % n`` for each ``a // n * n`` in it."""
    out: Dim = dim
    for mono, coef in dim.terms:
        atom = mono[0] if len(mono) == 1 else ""
        if isinstance(atom, tuple) and atom[0] == "//" and isinstance(atom[2], int):
            times, rest = divmod(coef, atom[2])
            if not rest:
                out = out + (atom[1] - atom[1] % atom[2]) * times - _make({mono: coef})
    return out


def fits_64_bits(dim: Dim) -> bool:
    """True if no step of evaluating ``dim`` overflows where leaves are below 2**31."""
    if isinstance(dim, int):
        return -(2**63) <= dim < 2**63
    total = 0.0
    for mono, coef in dim.terms:
        found: Bounds = (coef, coef)
        for atom in mono:
            if isinstance(atom, tuple) and not all(map(fits_64_bits, atom[1:])):
                return False
            found = _product(found, _atom_bounds(atom, (1, 2**31)))
        total += max(map(abs, found))
    return total < 2**63


def _atom_bounds(atom: Atom, symbols: Bounds) -> Bounds:
    if not isinstance(atom, tuple):
        signed = isinstance(atom, Read) and atom.signed
        return (-symbols[1], symbols[1]) if signed else symbols
    op, (a, b), (c, d) = atom[0], bounds(atom[1], symbols), bounds(atom[2], symbols)
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


def dim_text(dim: Dim, name: Callable[[Any], str] = str) -> str:
    """A size as text; it is Python code if the names that leaves get are."""
    if isinstance(dim, int):
        return str(dim)
    parts = []
    for mono, coef in dim.terms:
        factors = [_atom_text(a, name) for a in mono]
        if coef != 1 or not factors:
            factors.insert(0, str(coef))
        parts.append("*".join(factors))
    return " + ".join(parts)


def _atom_text(atom: Atom, name: Callable[[Any], str]) -> str:
    if not isinstance(atom, tuple):
        return name(atom)
    op, a, b = atom[0], *(dim_text(part, name) for part in atom[1:])
    if op in ("max", "min"):
        return f"{op}({a}, {b})"
    a, b = (f"({t})" if _binds(d) else t for d, t in zip(atom[1:], (a, b), strict=True))
    return f"({a} {op} {b})"


def _binds(dim: Dim) -> bool:
    """True for what needs parentheses beside an operator: more than one atom or digits."""
    if isinstance(dim, int):
        return dim < 0
    (mono, coef), *others = dim.terms
    return bool(others) or coef != 1 or len(mono) != 1


def parse_dim(text: str, leaf: Callable[[str], Leaf] = str) -> Dim:
    """Inverse of `dim_text`: ``"s0"``, ``"4*s0 + 1"``, ``"(s0 // 2)"``.

    ``leaf`` is the inverse of ``name`` there.  Raises ValueError for other text, and what ``leaf``
    raises.
    """
    names = set(re.findall(r"[A-Za-z_]\w*", text)) - {"max", "min"}
    plain = re.fullmatch(r"[\w\s+*/%(),-]+", text) and "**" not in text
    if not plain or any(map(iskeyword, names)):
        raise ValueError(f"not a size expression: {text!r}")
    scope = {"__builtins__": {}, "max": sym_max, "min": sym_min}
    scope |= {name: symbol(leaf(name)) for name in names}
    try:  # only names, integers and + * // % , ( ) get past the check above
        found = eval(text, scope)
    except (SyntaxError, TypeError, ArithmeticError):
        found = None
    if type(found) not in (int, Sym):
        raise ValueError(f"not a size expression: {text!r}")
    return found


def _terms(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    return dim.terms if isinstance(dim, Sym) else (((), int(dim)),)


def _make(acc: Mapping[Monomial, int]) -> Dim:
    kept = {m: c for m, c in acc.items() if c}
    if not kept:
        return 0
    if set(kept) == {()}:
        return kept[()]
    made = Sym(tuple(sorted(kept.items(), key=repr)))
    depth, atoms = _extent(made)
    if depth > MAX_DEPTH or atoms > MAX_ATOMS:
        raise ShapeError("a size depends on other sizes in too many steps to be written down")
    return made


def _extent(dim: Dim) -> tuple[int, int]:
    """How deep operators are nested in an expression, and how many atoms it has."""
    depth = atoms = 0
    for mono, _ in _terms(dim):
        atoms += 1 + len(mono)
        for atom in mono:
            if isinstance(atom, tuple):
                for inner_depth, inner_atoms in map(_extent, atom[1:]):
                    depth = max(depth, 1 + inner_depth)
                    atoms += inner_atoms
    return depth, atoms


def _split(dim: Sym, by: Dim) -> tuple[Dim, Dim]:
    """Whole and rest with ``dim == whole * by + rest``, for a literal that divides some terms."""
    if not isinstance(by, int) or by <= 0:
        return 0, dim
    whole, rest = {}, {}
    for mono, coef in dim.terms:
        times, left = divmod(coef, by)
        if not mono or not left:  # of other terms, multiples stay with what is left
            whole[mono], coef = times, left
        rest[mono] = coef
    return _make(whole), _make(rest)


def _exact_quotient(a: Sym, b: Dim) -> Dim | None:
    """a / b when b is one monomial that divides every term of a."""
    divisor = _terms(b)
    if len(divisor) != 1 or divisor[0][1] == 0:
        return None
    mono, coef = divisor[0]
    out: dict[Monomial, int] = {}
    for m, c in a.terms:
        rest = list(m)
        for atom in mono:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % coef:
            return None
        out[tuple(rest)] = c // coef
    return _make(out)
