"""Sizes that are free, but have to fit each other: what the ops of a group ask of their operands (A6).

A relaxed guard frees all sizes but 0 and 1 (R3.42). A kernel for all of them takes for granted that
they fit each other as its ops need it. What they need follows from the ops, never from what was
observed: each axis gets a symbol of its own, and types are inferred. Where an op needs two sizes to be
equal, one of them is replaced by the other, and it starts over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from math import gcd
from typing import Any

from ..dataclass import dataclass
from ..ir.size_algebra import least_of, parse_dim, substitute, symbol_name
from ..ir.symbolic import Dim, Sym, evaluate, make_dim, symbol, terms_of
from ..ir.types import TensorType, Type
from .assumed_sizes import divided_symbols, without_common_factors
from .relaxed import free_strides

Axis = tuple[int, int]  # operand, axis
_EQUALS = " == "
_LEAST = 2  # of a size that a guard frees


def axis_name(operand: int, axis: int) -> str:
    """The name of a size in what a guard asks of sizes; `least_of` knows it, as the guard refuses 0 and 1."""
    return f"s{operand}_{axis}"


def axis_of(name: str) -> Axis:
    """The operand and the axis that a name stands for; raises ValueError for another name."""
    operand, axis, *_least = name[1:].split("_") if least_of(name) else ("", "")
    if name[:1] != "s" or not operand:
        raise ValueError(f"{name} names no axis of an operand")
    return int(operand), int(axis)


@dataclass(frozen=True, slots=True)
class FreeSizes:
    """The relations between sizes that a relaxed guard holds besides each size by itself (A6).

    Attributes:
        equal: operand, axis, operand, axis: the two sizes are equal.
        fit: ``"P == Q"``, two expressions over sizes, each of which ``s1_0`` (operand 1, axis 0) names. A size
            that has to be large enough is ``"max(s1_0, 4) == s1_0"``.
    """

    equal: tuple[tuple[int, ...], ...] = ()
    fit: tuple[str, ...] = ()

    def fits(self) -> list[tuple[Dim, Dim]]:
        """The pairs of expressions in ``fit``; raises ValueError for other text."""
        return [_pair(text) for text in self.fit]

    def axes(self) -> set[Axis]:
        """All sizes that have a part in it; raises ValueError where ``fit`` names something else."""
        names = {name for pair in self.fits() for dim in pair if isinstance(dim, Sym) for name in dim.symbols}
        listed = {axis for quad in self.equal for axis in ((quad[0], quad[1]), (quad[2], quad[3]))}
        return listed | {axis_of(name) for name in names}

    def complaints(self, types: Sequence[Type]) -> list[str]:
        """Why a guard on operands of these types cannot hold it, in words."""
        for quad in self.equal:
            if len(quad) != 4:
                return [f"equal has {list(quad)}, which is not an operand, an axis, an operand and an axis"]
        try:
            axes = self.axes()
        except ValueError as error:
            return [f"fit cannot be read: {error}"]
        if any(isinstance(p, int) and isinstance(q, int) for p, q in self.fits()):
            return ["fit compares no size"]
        ranks = [t.rank if isinstance(t, TensorType) else None for t in types]
        return [
            f"there is no axis {axis} of operand {operand}"
            for operand, axis in sorted(axes)
            if not 0 <= operand < len(ranks) or ranks[operand] is None or not 0 <= axis < ranks[operand]  # type: ignore[operator]
        ]

    def shown(self, types: Sequence[Type]) -> tuple[Type, ...]:
        """The types with a name for each size that is free, the same for those that are equal."""
        first = {(m, b): (k, a) for k, a, m, b in self.equal}
        return tuple(
            replace(
                t,
                shape=tuple(
                    d if d in (0, 1) else symbol(axis_name(*first.get((k, a), (k, a)))) for a, d in enumerate(t.shape)
                ),
            )
            if isinstance(t, TensorType) and t.shape is not None
            else t
            for k, t in enumerate(types)
        )


def _pair(text: str) -> tuple[Dim, Dim]:
    left, equals, right = text.partition(_EQUALS)
    if not equals:
        raise ValueError(f"{text!r} has no {_EQUALS.strip()}")
    return parse_dim(left), parse_dim(right)


@dataclass
class SizeSolver:
    """The types of a group's operands, of which sizes are free as far as its ops let them be.

    Attributes:
        profiled: the types of the tensor operands. A size that differed from run to run is None.
        guarded: the number of those that a guard checks, which come first; the sizes of others, which
            are constants, stay as they are.
        sizes: name of an axis -> what its size is taken for.
        parts: the number of symbols that stand for parts of sizes.
        observed: symbol -> what it stood for when profiled, where that is known.
    """

    profiled: Sequence[TensorType]
    guarded: int
    sizes: dict[str, Dim] = field(default_factory=dict)
    parts: int = 0
    observed: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for k, type_ in enumerate(self.profiled[: self.guarded]):
            for axis, dim in enumerate(type_.shape or ()):
                if dim not in (0, 1):
                    self.sizes[axis_name(k, axis)] = symbol(axis_name(k, axis))
                    self.observed |= {axis_name(k, axis): dim} if isinstance(dim, int) else {}

    def types(self) -> tuple[TensorType, ...]:
        """The types of the operands for what is known so far."""
        return tuple(
            replace(t, shape=tuple(self._size(k, a, dim) for a, dim in enumerate(t.shape or ())), **self._layout(k, t))
            for k, t in enumerate(self.profiled)
        )

    def _layout(self, k: int, type_: TensorType) -> dict[str, Any]:
        return {"strides": free_strides(type_), "requires_grad": False} if k < self.guarded else {}

    def checked(self) -> tuple[TensorType, ...]:
        """The types that the guard compares with: a size that differed from run to run is none of 0 and 1."""
        shapes = [
            tuple(symbol(axis_name(k, a)) if dim is None else dim for a, dim in enumerate(t.shape or ()))
            for k, t in enumerate(self.profiled[: self.guarded])
        ]
        return tuple(replace(t, shape=shape) for t, shape in zip(self.profiled, shapes, strict=False))

    def _size(self, k: int, axis: int, dim: Any) -> Dim:
        return self.sizes.get(axis_name(k, axis), dim)

    def solve(self, refused: Callable[[tuple[TensorType, ...]], tuple[Any, ...] | None]) -> FreeSizes | None:
        """Infer until nothing is refused; None if even literal sizes are.

        Args:
            refused: infers with such types; returns None where that succeeds, else the sizes that would
                have to be equal, or the one that would have to be positive, as far as it is known which.
        """
        while True:
            sizes = refused(self.types())
            if sizes is None:
                return self.relations()
            if self.resolve(sizes) is None:
                return None

    def resolve(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Let sizes fit that have to be equal, or one that has to be positive; None where nothing helps.

        Returns the symbols that are taken for something else from now on; {} = sizes stay as they were
        profiled.
        """
        sizes = _without_common_factor(sizes)
        for step in (self._equate, self._unify, self._enlarge, self._divide):
            symbols = step(sizes)
            if symbols is not None:
                return symbols
        return {} if self._keep(sizes) else None

    def relations(self) -> FreeSizes:
        """The conditions on sizes, in terms of all axes that are free."""
        first: dict[Dim, str] = {}  # a size -> the first axis that has it
        equal, fit = [], []
        for name, dim in self.sizes.items():
            if isinstance(dim, Sym) and first.setdefault(dim, name) != name:
                equal.append((*axis_of(first[dim]), *axis_of(name)))
        alone = {own: name for dim, name in first.items() if (own := symbol_name(dim)) is not None}
        for name, dim in self.sizes.items():
            if isinstance(dim, int) or (first[dim] == name and symbol_name(dim) is None):
                fit.append(self._told(name, dim, alone))
        used = {own for dim in self.sizes.values() if isinstance(dim, Sym) for own in dim.symbols}
        for own in sorted(name for name in used if least_of(name) > _LEAST):
            place, times = (alone[own], 1) if own in alone else self._whole(own)
            fit.append(f"max({place}, {least_of(own) * times}){_EQUALS}{place}")
        return FreeSizes(tuple(equal), tuple(fit))

    def _told(self, name: str, dim: Dim, alone: dict[str, str]) -> str:
        """``"P == Q"`` for an axis that is no symbol; a symbol that stands for a part is told by a whole."""
        if isinstance(dim, Sym):
            parts = [own for own in sorted(dim.symbols) if own not in alone]
            dim = substitute(dim, {own: symbol(place) for own, place in alone.items()})
            for own in parts:
                whole, times = self._whole(own)
                if whole == name:
                    return f"{symbol(name) % times}{_EQUALS}0"
                dim = substitute(dim, {own: symbol(whole) // times})
        return f"{name}{_EQUALS}{dim}"

    def _whole(self, own: str) -> tuple[str, int]:
        """An axis that is a multiple of a symbol, and how many times."""
        return next(
            (name, dim.terms[0][1])
            for name, dim in self.sizes.items()
            if isinstance(dim, Sym) and len(dim.terms) == 1 and dim.terms[0][0] == (own,)
        )

    # --- what a refusal leads to ----------------------------------------------------------------

    def _replace(self, symbols: Mapping[str, Dim]) -> Mapping[str, Dim] | None:
        """Take symbols for something else, if that was so when they were profiled."""
        sizes = {own: substitute(size, symbols) for own, size in self.sizes.items()}
        before, self.sizes = self.sizes, sizes
        if self._is_readable() and all(self._was_so(name, dim) for name, dim in symbols.items()):
            return symbols
        self.sizes = before
        return None

    def _was_so(self, name: str, dim: Dim) -> bool:
        """False if a symbol was something else when profiled, as far as that is known."""
        try:
            return self.observed[name] == evaluate(dim, self.observed)
        except KeyError:
            return True
        except ZeroDivisionError:
            return False

    def _is_readable(self) -> bool:
        """True if each symbol is told by the size of an axis that is a multiple of it."""
        used = {name for dim in self.sizes.values() if isinstance(dim, Sym) for name in dim.symbols}
        told = {
            dim.terms[0][0][0]
            for dim in self.sizes.values()
            if isinstance(dim, Sym) and len(dim.terms) == 1 and len(dim.terms[0][0]) == 1 and dim.terms[0][1] > 0
        }
        return used <= told

    def _equate(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Solve for a symbol: the one of the last operand for which that can be done."""
        if len(sizes) != 2 or not all(isinstance(size, (int, Sym)) for size in sizes):
            return None
        difference = sizes[0] - sizes[1]
        for name in sorted(_linear(difference), key=self._order, reverse=True):
            rest = difference - _linear(difference)[name] * symbol(name)
            if name not in getattr(rest, "symbols", ()):
                solution = rest * -_linear(difference)[name]
                symbols = None if isinstance(solution, int) and solution <= 1 else self._replace({name: solution})
                if symbols is not None:
                    return symbols
        return None

    def _unify(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Take the symbols of one expression for those of another that is built alike.

        More is asked than has to be so: ``s0 // 2`` and ``s1 // 2`` may be equal although ``s0`` and ``s1``
        are not, and products although no factors are. A call of such sizes misses.
        """
        if len(sizes) != 2 or not all(isinstance(size, Sym) for size in sizes):
            return None
        p, q = sizes
        own, other = (sorted(a.symbols - b.symbols, key=self._order) for a, b in ((p, q), (q, p)))
        if not own or len(own) != len(other):
            return None
        symbols = dict(zip(other, map(symbol, own), strict=True))
        return self._replace(symbols) if substitute(q, symbols) == p else None

    def _order(self, name: str) -> tuple[int, ...]:
        return axis_of(name) if name[:1] == "s" else (-1, int(name[1:]))

    def _enlarge(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Take a symbol for one of which the least value is known, so that a size is positive."""
        if len(sizes) != 1 or not isinstance(sizes[0], Sym):
            return None
        name, least = _needed(_without_common_factor((sizes[0], 0))[0], 1) or ("", 0)
        if not _LEAST <= least_of(name) < least or self.observed.get(name, least) < least:
            return None
        larger = f"{axis_name(*axis_of(name))}_{least}"
        self.observed |= {larger: self.observed[name]} if name in self.observed else {}
        return self._replace({name: symbol(larger)})

    def _divide(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Take a symbol that is divided for a multiple of what divides it."""
        for size in sizes:
            for name, times in divided_symbols(size) if isinstance(size, (int, Sym)) else ():
                self.parts += 1
                part = f"k{self.parts}"
                self.observed |= {part: self.observed[name] // times} if name in self.observed else {}
                symbols = self._replace({name: symbol(part) * times})
                if symbols is not None:
                    return symbols
        return None

    def _keep(self, sizes: tuple[Any, ...]) -> bool:
        """Let the sizes stay what they were when profiled: those in question, else all of them."""
        own = {name for size in sizes if isinstance(size, Sym) for name in size.symbols}
        concerned = [n for n, d in self.sizes.items() if isinstance(d, Sym) and (not own or d.symbols & own)]
        for name in concerned:
            operand, axis = axis_of(name)
            size = self.profiled[operand].shape[axis]  # type: ignore[index]
            if size is None:
                return False
            self.sizes[name] = size
        return bool(concerned)


def _without_common_factor(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
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


def _needed(dim: Dim, least: int) -> tuple[str, int] | None:
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
            return _needed(-sides[0], 1 - sides[1] * ((constant - least) // -times + 1))
        return _needed(sides[0], sides[1] * -((constant - least) // times))
    least = -((constant - least) // times)
    if times < 0 or not isinstance(atom, tuple):
        return (atom, least) if times > 0 and isinstance(atom, str) else None
    numbers = [side for side in sides if isinstance(side, int)]
    if op not in ("max", "min") or len(numbers) != 1 or (op == "min" and numbers[0] < least):
        return None
    return next(_needed(side, least) for side in sides if not isinstance(side, int))


def _linear(dim: Dim) -> dict[str, int]:
    """The symbols that stand by themselves in an expression, once, added or subtracted."""
    return {
        mono[0]: coefficient
        for mono, coefficient in terms_of(dim)
        if len(mono) == 1 and isinstance(mono[0], str) and coefficient in (1, -1)
    }
