"""Sizes that are free, but have to fit each other: what the ops of a group ask of their operands (A6).

A relaxed guard frees all sizes but 0 and 1 (R3.42). A kernel for all of them takes for granted that
they fit each other as its ops need it. What they need follows from the ops, never from what was
observed: each axis gets a symbol of its own, and types are inferred. Where an op needs two sizes to be
equal, one of them is replaced by the other, and it starts over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from math import inf
from typing import Any

from ..dataclass import dataclass
from ..ir.size_algebra import floored_name, floors_of, least_of, parse_dim, root_of, substitute, symbol_name
from ..ir.symbolic import Dim, Sym, evaluate, symbol
from ..ir.types import TensorType, Type
from .assumed_sizes import divided_symbols
from .relaxed import free_strides
from .size_needs import comparisons, exceeded, linear, needed, without_common_factor

Axis = tuple[int, int]  # operand, axis
_EQUALS = " == "
_LEAST = 2  # of a size that a guard frees


def axis_name(operand: int, axis: int) -> str:
    """The name of a size in what a guard asks of sizes; `least_of` knows it, as the guard refuses 0 and 1."""
    return f"s{operand}_{axis}"


def axis_of(name: str) -> Axis:
    """The operand and the axis that a name stands for; raises ValueError for another name."""
    if not least_of(name):
        raise ValueError(f"{name} names no axis of an operand")
    operand, axis = root_of(name)[1:].split("_")
    return int(operand), int(axis)


@dataclass(frozen=True, slots=True)
class FreeSizes:
    """The relations between sizes that a relaxed guard holds besides each size by itself (A6).

    Attributes:
        equal: operand, axis, operand, axis: the two sizes are equal.
        fit: ``"P == Q"``, two expressions over sizes, each of which ``s1_0`` (operand 1, axis 0) names. A size
            that has to be large enough is ``"max(s1_0, 4) == s1_0"``, or ``"max(s1_0, s0_1) == s1_0"``.
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
        sizes = without_common_factor(sizes)
        for step in (self._equate, self._unify, self._enlarge, self._divide, self._compare, self._pair):
            symbols = step(sizes)
            if symbols is not None:
                return symbols
        return self.keep(sizes)

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
        used = self._used()
        by_root = {root_of(own): own for own in used}
        for own in sorted(used):
            place, times = (alone[own], 1) if own in alone else self._whole(own)
            least = [least_of(own)] if least_of(own) > _LEAST else []
            floors = [self._size_of(by_root[root], alone) + more for root, more in floors_of(own).items()]
            fit += [f"max({place}, {floor * times}){_EQUALS}{place}" for floor in (*least, *floors)]
        return FreeSizes(tuple(equal), tuple(fit))

    def _size_of(self, own: str, alone: dict[str, str]) -> Dim:
        """What a symbol stands for, as an expression over axes."""
        place, times = (alone[own], 1) if own in alone else self._whole(own)
        return symbol(place) // times

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
        symbols = self._refloored({root_of(name): size for name, size in symbols.items()}, symbols)
        sizes = {own: substitute(size, symbols) for own, size in self.sizes.items()}
        before, self.sizes = self.sizes, sizes
        if self._is_readable() and all(self._was_so(name, dim) for name, dim in symbols.items()):
            return symbols
        self.sizes = before
        return None

    def _refloored(self, places: Mapping[str, Dim | None], symbols: Mapping[str, Dim]) -> dict[str, Dim]:
        """``symbols``, with new names for those symbols that are known to exceed what is replaced.

        Where that becomes an expression, the knowledge is lost; an op that needs it is refused again.

        Args:
            places: root of a symbol -> what is in its place; None = nothing.
            symbols: what is taken for something else.
        """
        symbols = dict(symbols)
        for name in sorted(self._used() - symbols.keys()):
            least, floors = least_of(name), dict(floors_of(name))
            for root in sorted(places.keys() & floors.keys()):
                more, size = floors.pop(root), places[root]
                if isinstance(size, int):
                    least = max(least, size + more)
                elif (own := symbol_name(size)) is not None and root_of(own) != root_of(name):
                    floors[root_of(own)] = max(more, floors.get(root_of(own), 0))
            if floors != floors_of(name):
                self._rename(symbols, name, floored_name(name, least, floors))
        return symbols

    def _rename(self, symbols: dict[str, Dim], name: str, new: str) -> None:
        """Add to ``symbols`` another name of the same size."""
        self.observed |= {new: self.observed[name]} if name in self.observed else {}
        renamed = {name: symbol(new)}
        symbols |= {own: substitute(size, renamed) for own, size in symbols.items()} | renamed

    def _used(self) -> set[str]:
        return {name for dim in self.sizes.values() if isinstance(dim, Sym) for name in dim.symbols}

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
        told = {
            dim.terms[0][0][0]
            for dim in self.sizes.values()
            if isinstance(dim, Sym) and len(dim.terms) == 1 and len(dim.terms[0][0]) == 1 and dim.terms[0][1] > 0
        }
        return self._used() <= told

    def _equate(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Solve for a symbol: the one of the last operand for which that can be done."""
        if len(sizes) != 2 or not all(isinstance(size, (int, Sym)) for size in sizes):
            return None
        difference = sizes[0] - sizes[1]
        for name in sorted(linear(difference), key=self._order, reverse=True):
            rest = difference - linear(difference)[name] * symbol(name)
            if name not in getattr(rest, "symbols", ()):
                solution = rest * -linear(difference)[name]
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
        name, least = needed(without_common_factor((sizes[0], 0))[0], 1) or ("", 0)
        if not _LEAST <= least_of(name) < least or self.observed.get(name, least) < least:
            return None
        return self._replace({name: symbol(self._with_knowledge(name, least, {}))})

    def _compare(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Take a symbol for one that is known to exceed something, so that it is decided which of two sizes is larger.

        A table of positions has to be as long as the text of which it holds the positions: ``table[:text.shape[1]]``.
        """
        candidates = []
        for a, b in comparisons(sizes):
            for name, least, floors in filter(None, (exceeded(b - a), exceeded(a - b))):
                floor = sum(self.observed.get(root, inf) + more for root, more in floors.items())
                new = self._with_knowledge(name, least, floors)
                if new != name and self.observed.get(name, 0) >= max(least, floor):
                    candidates.append({name: symbol(new)})
        # Where both are as large, what makes the sizes equal is right.
        candidates.sort(key=lambda symbols: len({substitute(size, symbols) for size in sizes}))
        return next((symbols for each in candidates if (symbols := self._replace(each)) is not None), None)

    def _with_knowledge(self, name: str, least: int, floors: Mapping[str, int]) -> str:
        """The name of a symbol of which more is known; it is noted what that stood for."""
        before = floors_of(name)
        floors = before | {root: max(more, before.get(root, 0)) for root, more in floors.items()}
        new = floored_name(name, max(least, least_of(name)), floors)
        self.observed |= {new: self.observed[name]} if name in self.observed else {}
        return new

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

    def _pair(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Take a factor of a product for one of another product that was as large; more is asked, as in `_unify`.

        So it follows what a reshape divides an axis into, once the sizes of the others are known to be those of before.
        """
        if len(sizes) != 2 or not all(isinstance(size, Sym) and len(size.terms) == 1 for size in sizes):
            return None
        own, other = ({atom for atom in size.terms[0][0] if isinstance(atom, str)} for size in sizes)
        for pair in sorted(product(own - other, other - own), key=lambda pair: sorted(map(self._order, pair))):
            earlier, later = sorted(pair, key=self._order)
            if self.observed.get(earlier, inf) == self.observed.get(later):
                symbols = self._replace({later: symbol(earlier)})
                if symbols is not None:
                    return symbols
        return None

    def keep(self, sizes: tuple[Any, ...]) -> Mapping[str, Dim] | None:
        """Let sizes stay what they were when profiled: those in question, else all of them; as `resolve` returns."""
        own = {name for size in sizes if isinstance(size, Sym) for name in size.symbols}
        concerned = [n for n, d in self.sizes.items() if isinstance(d, Sym) and (not own or d.symbols & own)]
        for name in concerned:
            operand, axis = axis_of(name)
            size = self.profiled[operand].shape[axis]  # type: ignore[index]
            if size is None:
                return None
            self.sizes[name] = size
        gone = map(root_of, own - self._used())
        symbols = self._refloored(dict.fromkeys(gone), {})
        self.sizes = {name: substitute(dim, symbols) for name, dim in self.sizes.items()}
        return {} if concerned else None
