"""Symbolic sizes: integer polynomials over leaves, kept in one normal form.

A dynamic fusion group has sizes such as ``s0``, ``s0*4`` or ``s1 + 3``, over symbols that are
names.  The sizes of a call are expressions over what is read from its arguments: leaves such as
`Dimension` and `Integer`.  Both mean what Python's integers do.  Two sizes are known to be equal
exactly when their normal forms are, so equality is ``==`` and hashing is structural.  Division and
modulo are kept as atoms unless they divide out.  Expressions beyond `MAX_DEPTH` and `MAX_ATOMS` are
a ShapeError: whoever infers types takes such a size for unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Union

from ..dataclass import dataclass
from ..errors import ShapeError

Leaf = Union[str, "ArgumentRead"]  # the name of a symbol, or what is read from an argument
LOOP = "round"  # begins the names of symbols of loops, which are 1 or more in every round
UP_TO = "upto"  # ends such a name, before the largest value, where that is known
FAR = 2**31
"""Bounds of loops lie within this distance of 0, as sizes of axes do."""
Atom = Union[Leaf, tuple]  # a leaf, or ("//" | "%" | "max" | "min", Sym|int, Sym|int)
Monomial = tuple[Atom, ...]
Dim = Union[int, "Sym"]


class ArgumentRead:
    """A leaf that stands for what is read from an argument; base of frozen dataclasses.

    Attributes:
        signed: it may be negative.
    """

    __slots__: ClassVar[tuple[str, ...]] = ()
    signed: ClassVar[bool] = False

    def __repr__(self) -> str:  # terms are sorted by it: leaves lie among the names
        return f"'{type(self).__name__} {[getattr(self, name) for name in self.__slots__]}'"


@dataclass(frozen=True, slots=True, repr=False)
class Dimension(ArgumentRead):
    """The size of an array along an axis; how the array is told is up to who reads the size."""

    array: Any
    axis: int


@dataclass(frozen=True, slots=True, repr=False)
class Integer(ArgumentRead):
    """A Python int that is passed at a position: no size, but a number."""

    position: Any
    signed: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Sym:
    """A non-constant size expression; build with `symbol` and the operators ``+ - * // %``."""

    terms: tuple[tuple[Monomial, int], ...]

    def __add__(self, other: Dim) -> Dim:
        acc = dict(self.terms)
        for mono, coef in terms_of(other):
            acc[mono] = acc.get(mono, 0) + coef
        return make_dim(acc)

    def __mul__(self, other: Dim) -> Dim:
        acc: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in terms_of(other):
                mono = tuple(sorted(m1 + m2, key=repr))
                acc[mono] = acc.get(mono, 0) + c1 * c2
        return make_dim(acc)

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
        return whole + make_dim({(("//", rest, other),): 1})

    def __rfloordiv__(self, other: Dim) -> Dim:
        return 0 if other == 0 else make_dim({(("//", other, self),): 1})

    def __mod__(self, other: Dim) -> Dim:
        if isinstance(other, int) and other < 0:
            return -(-self % -other)
        if _exact_quotient(self, other) is not None:
            return 0
        _, rest = _split(self, other)
        return rest % other if isinstance(rest, int) else make_dim({(("%", rest, other),): 1})

    def __rmod__(self, other: Dim) -> Dim:
        return 0 if other == 0 else make_dim({(("%", other, self),): 1})

    @property
    def symbols(self) -> frozenset:
        """All leaves inside: the names of symbols, in a kernel."""
        return frozenset().union(*(leaves_of(mono) for mono, _ in self.terms))

    def fold(self, leaf: Callable, const: Callable, binary: Callable):
        """Rebuild with callbacks: ``leaf(leaf)``, ``const(int)``, ``binary(op, a, b)``.

        What an operator gives is used wherever it has the same operands.
        """
        return self._fold(leaf, const, binary, {})

    def _fold(self, leaf: Callable, const: Callable, binary: Callable, found: dict[tuple, Any]):
        def walk(dim: Dim):
            return dim._fold(leaf, const, binary, found) if isinstance(dim, Sym) else const(dim)

        total = None
        for mono, coef in self.terms:
            value = None if coef != 1 or not mono else _NOTHING
            if value is None:
                value = const(coef)
            for atom in mono:
                if not isinstance(atom, tuple):
                    factor = leaf(atom)
                elif atom in found:
                    factor = found[atom]
                else:
                    factor = found[atom] = binary(atom[0], walk(atom[1]), walk(atom[2]))
                value = factor if value is _NOTHING else binary("*", value, factor)
            total = value if total is None else binary("+", total, value)
        return total

    def __str__(self) -> str:
        return dim_text(self)

    __repr__ = __str__


_NOTHING = object()
MAX_DEPTH = 32  # of operators in each other, as all that reads expressions is recursive
MAX_ATOMS = 2048


def symbol(leaf: Leaf) -> Sym:
    """The size expression that is just a leaf: the symbol of a name (``[A-Za-z_]\\w*``), say."""
    return Sym((((leaf,), 1),))


def evaluate(dim: Dim, values: Mapping[Any, int] | Callable[[Any], int]) -> int:
    """The integer that ``dim`` has under ``values`` (leaf -> int)."""
    if isinstance(dim, int):
        return dim
    value_of = values if callable(values) else values.__getitem__
    return dim.fold(value_of, int, lambda op, a, b: BINARY[op](a, b))


BINARY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "max": max,
    "min": min,
}


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


def terms_of(dim: Dim) -> tuple[tuple[Monomial, int], ...]:
    """The terms of a size; an integer is one without atoms."""
    return dim.terms if isinstance(dim, Sym) else (((), int(dim)),)


def leaves_of(factors: Monomial) -> frozenset:
    """All leaves inside of a product."""
    leaves: set = set()
    for atom in factors:
        if isinstance(atom, tuple):
            leaves.update(*(part.symbols for part in atom[1:] if isinstance(part, Sym)))
        else:
            leaves.add(atom)
    return frozenset(leaves)


def make_dim(acc: Mapping[Monomial, int]) -> Dim:
    """The size that is the sum of monomials times integers; raises ShapeError beyond the limits."""
    terms = {m: c for m, c in acc.items() if c}
    if not terms:
        return 0
    if set(terms) == {()}:
        return terms[()]
    dim = Sym(tuple(sorted(terms.items(), key=repr)))
    depth, atoms = _extent(dim)
    if depth > MAX_DEPTH or atoms > MAX_ATOMS:
        raise ShapeError("a size depends on other sizes in too many steps to be written down")
    return dim


def _extent(dim: Dim) -> tuple[int, int]:
    """The depth to which operators are nested in an expression, and its number of atoms."""
    depth = atoms = 0
    for mono, _ in terms_of(dim):
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
        times, remainder = divmod(coef, by)
        if not mono or not remainder:  # of other terms, multiples stay with what is left
            whole[mono], coef = times, remainder
        rest[mono] = coef
    return make_dim(whole), make_dim(rest)


def _exact_quotient(a: Sym, b: Dim) -> Dim | None:
    """a / b when b is one monomial that divides every term of a."""
    divisor = terms_of(b)
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
    return make_dim(out)
