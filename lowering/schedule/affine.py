"""Index expressions of the scheduler: integer combinations of loop indices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

from ...dialect.ir.symbolic import Dim, Sym

Atom = Hashable  # a loop (number in an operation, `Loop` in a nest), or an opaque run-time value


class AffineIndex:
    """``sum(coefficient * atom) + constant``; hashable. Coefficients and constant are sizes."""

    __slots__ = ("_hash", "const", "terms")

    def __init__(self, terms: Mapping[Atom, Dim], const: Dim = 0) -> None:
        self.terms = {a: c for a, c in terms.items() if c != 0}
        self.const = const
        self._hash: int | None = None

    def __hash__(self) -> int:
        if self._hash is None:  # few of the many expressions that are made are ever looked up
            self._hash = hash((frozenset(self.terms.items()), self.const))
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AffineIndex) and self.const == other.const and self.terms == other.terms

    def __add__(self, other: AffineIndex) -> AffineIndex:
        if not self.terms and self.const == 0:
            return other
        terms = dict(self.terms)
        for atom, coef in other.terms.items():
            terms[atom] = terms.get(atom, 0) + coef
        return AffineIndex(terms, self.const + other.const)

    def scale(self, factor: Dim) -> AffineIndex:
        """The expression times a size."""
        if factor == 1:
            return self
        return AffineIndex({a: c * factor for a, c in self.terms.items()}, self.const * factor)

    def substitute(self, values: Callable[[Any], AffineIndex | None]) -> AffineIndex | None:
        """Replace every atom; None if some atom has no expression."""
        out = AffineIndex({}, self.const)
        for atom, coef in self.terms.items():
            if isinstance(atom, Quotient):
                inner = atom.of.substitute(values)
                value = None if inner is None else quotient(inner, atom.by, atom.rest)
            else:
                value = values(atom)
            if value is None:
                return None
            out = out + value.scale(coef)
        return out

    def coefficient(self, atom: Atom) -> Dim:
        """The factor of one atom (0 when absent)."""
        return self.terms.get(atom, 0)

    @property
    def single(self) -> Atom | None:
        """The atom, if the expression is exactly one atom; else None."""
        if self.const == 0 and len(self.terms) == 1:
            ((atom, coef),) = self.terms.items()
            if coef == 1:
                return atom
        return None

    def __repr__(self) -> str:
        return " + ".join([f"{c}*{a}" for a, c in self.terms.items()] + [str(self.const)])


class Quotient:
    """``of // by``, or ``of % by`` if ``rest``; neither operand is ever negative."""

    __slots__ = ("by", "of", "rest")

    def __init__(self, of: AffineIndex, by: Dim, rest: bool) -> None:
        self.of, self.by, self.rest = of, by, rest

    def __hash__(self) -> int:
        return hash((self.of, self.by, self.rest))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quotient) and ((self.of, self.by, self.rest) == (other.of, other.by, other.rest))

    def __repr__(self) -> str:
        return f"({self.of} {'%' if self.rest else '//'} {self.by})"


def atom(value: Atom) -> AffineIndex:
    """The expression that is one atom."""
    return AffineIndex({value: 1})


def constant(value: Dim) -> AffineIndex:
    """The expression without atoms."""
    return AffineIndex({}, value)


def quotient(of: AffineIndex, by: Dim, rest: bool) -> AffineIndex:
    """``of // by`` or ``of % by``, folded when both are numbers."""
    if not of.terms and isinstance(of.const, int) and isinstance(by, int):
        return constant(of.const % by if rest else of.const // by)
    return atom(Quotient(of, by, rest))


def arithmetic(name: str, parts: Sequence[AffineIndex]) -> AffineIndex | None:
    """The result of an `arith` operation on index expressions; None = it is no index expression.

    The result is also None if coefficients reach 2**31: arithmetic on users' indices may wrap
    around, and an index expression would not.
    """
    out: AffineIndex | None = None
    if name == "arith.index_cast":
        out = parts[0]
    elif name == "arith.addi":
        out = parts[0] + parts[1]
    elif name == "arith.subi":
        out = parts[0] + parts[1].scale(-1)
    elif name == "arith.muli":
        left, right = parts
        if not right.terms:
            out = left.scale(right.const)
        elif not left.terms:
            out = right.scale(left.const)
    if out is None:
        return None
    numbers = [*out.terms.values(), *([out.const] if isinstance(out.const, int) else [])]
    return out if all(isinstance(n, int) and abs(n) < 2**31 for n in numbers) else None


def substituted(indices: Iterable[AffineIndex], values: Callable[[Any], AffineIndex | None]) -> tuple[AffineIndex, ...]:
    """Expressions with every atom replaced; an expression with an unknown atom is left out."""
    results = (index.substitute(values) for index in indices)
    return tuple(index for index in results if index is not None)


def linear(indices: Iterable[AffineIndex], strides: Sequence[Dim]) -> AffineIndex:
    """The element offset of an index tuple under strides."""
    total = constant(0)
    for index, stride in zip(indices, strides, strict=True):
        total = total + index.scale(stride)
    return total


def over_axes(strides: Sequence[Dim]) -> AffineIndex:
    """The element offset for these strides, as an expression over axis numbers."""
    return linear(map(atom, range(len(strides))), strides)


def atoms_of(index: AffineIndex) -> set[Atom]:
    """All atoms of an expression, including those inside quotients."""
    atoms: set[Atom] = set()
    for a in index.terms:
        if isinstance(a, Quotient):
            atoms |= atoms_of(a.of)
        else:
            atoms.add(a)
    return atoms


def has_digits(index: AffineIndex) -> bool:
    """True if an expression contains a quotient, of which the operands may not be negative."""
    return any(isinstance(a, Quotient) for a in index.terms)


def row_major(dims: Sequence[Dim]) -> tuple[Dim, ...]:
    """Element strides of a C-contiguous array."""
    strides: list[Dim] = []
    step: Dim = 1
    for dim in reversed(dims):
        strides.append(step)
        step = step * dim
    return tuple(reversed(strides))


def ceil_div(size: Dim, by: Dim) -> Dim:
    """``size / by``, rounded up."""
    if isinstance(by, Sym):
        return -(-size // by)  # one term with one divisor, which may be a long expression itself
    return (size + (by - 1)) // by


def product(dims: Iterable[Dim]) -> Dim:
    """Number of elements."""
    total: Dim = 1
    for dim in dims:
        total = total * dim
    return total
