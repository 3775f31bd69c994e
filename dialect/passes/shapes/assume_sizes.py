"""Name sizes of which only the rank is known, and assume those equal that have to be (R2.12)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

from mlir import ir

from ...errors import PipelineError, ProfuseError
from ...ir.op import Op
from ...ir.size_algebra import substitute, symbol_name
from ...ir.symbolic import Dim, Sym, symbol
from ...ir.types import MaybeDim, ScalarType, TensorType, Type
from ...mlir.propagation import Propagation
from ...mlir.rewrite import attrs_of, body_of, types_of
from ...mlir.typed_values import main_functions
from ...ops.structural import Proven
from ..base import Pass, register_pass

_ATTEMPTS = 64  # per op: as many pairs of sizes as its operands may have to agree in


@register_pass
@dataclass(frozen=True)
class AssumeSizes(Pass):
    """Make every unknown size a symbol; two symbols become one where an op needs them equal.

    Types then say more than is known. They serve to form groups, and `insert-guards` checks for
    each group what its own operands have to fulfil.

    ``unit-axes`` (``0.1:2.0``: axis 1 of input 0, axis 0 of input 2) are axes that had size 1 when
    the graph was compiled: where such a size would have to equal another one, it is taken for a
    literal 1, which broadcasts. ``contiguous`` (``0:2``) are inputs assumed to be C-contiguous.
    """

    name: ClassVar[str] = "assume-sizes"
    unit_axes: str = ""
    contiguous: str = ""

    def run(self, module: ir.Module) -> None:
        units = {_numbers(pair, ".") for pair in self.unit_axes.split(":") if pair}
        contiguous = _numbers(self.contiguous, ":")
        for func in main_functions(module):
            sizes = _Sizes(func)
            for index, value in enumerate(body_of(func).arguments):
                sizes.name_input(index, value, units, index in contiguous)
            sizes.run()
            sizes.write()
            self.count("sizes-equated", len(sizes.known))


def _numbers(text: str, separator: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(separator) if part)
    except ValueError:
        raise PipelineError(f"{text!r} is no list of numbers") from None


class _Sizes(Propagation):
    """Infers with symbols. ``known`` maps each symbol that has been given up to its size."""

    def __init__(self, func: ir.Operation) -> None:
        super().__init__(func)
        self.known: dict[str, Dim] = {}
        self.units: set[str] = set()
        self.numbers = count()
        self.named: dict[tuple[ir.Value, int], Sym] = {}

    def name_input(self, index: int, value: ir.Value, units: set[tuple[int, ...]], contiguous: bool) -> None:
        """Give an input symbolic sizes."""
        type_ = self.named_type(value, self[value])
        if not isinstance(type_, TensorType) or type_.shape is None:
            return
        for axis, dim in enumerate(type_.shape):
            name = symbol_name(dim)
            if name is not None and (index, axis) in units:
                self.units.add(name)
        self.facts[value] = replace(type_, strides="contiguous") if contiguous else type_

    def named_type(self, value: ir.Value, type_: Type) -> Type:
        """``type_`` with a symbol of its own for each size of ``value`` that is not known."""
        if not isinstance(type_, TensorType) or type_.shape is None or None not in type_.shape:
            return type_
        shape: list[MaybeDim] = []
        for axis, dim in enumerate(type_.shape):
            if dim is None:
                if (value, axis) not in self.named:
                    self.named[value, axis] = symbol(f"s{next(self.numbers)}")
                dim = self.named[value, axis]
            shape.append(dim)
        return replace(type_, shape=tuple(shape))

    def __getitem__(self, value: ir.Value) -> Type:
        type_ = super().__getitem__(value)
        if not self.known:
            return type_
        if isinstance(type_, ScalarType) and isinstance(type_.value, Sym):
            return ScalarType(type_.dtype, self._current(type_.value))
        if isinstance(type_, TensorType) and type_.shape is not None:
            return replace(type_, shape=tuple(map(self._current, type_.shape)))
        return type_

    def _current(self, dim: MaybeDim) -> MaybeDim:
        while isinstance(dim, Sym) and dim.symbols & self.known.keys():
            dim = substitute(dim, self.known)
        return dim

    def transfer(self, op: ir.Operation, cls: type[Op]) -> Sequence[Type]:
        attrs = attrs_of(op)
        result_types: Sequence[Type] = types_of(op.results)
        for _ in range(_ATTEMPTS):
            types = self.of(op.operands)
            try:
                result_types = cls.infer(types, attrs)
                if issubclass(cls, Proven) and all(map(_is_complete, types)):
                    cls.prove(types, attrs)
                break
            except ProfuseError as error:
                if len(error.sizes) != 2 or not self._equate(*error.sizes):
                    break
        return [self.named_type(v, t) for v, t in zip(op.results, result_types, strict=False)]

    def common(self, types: Sequence[Type]) -> Type:
        type_ = super().common(types)
        layouts = {t.strides for t in types if isinstance(t, TensorType)} - {None}
        # Of computed values no layout is known; kernels make contiguous ones, and guards check.
        if isinstance(type_, TensorType) and layouts == {"contiguous"}:
            return replace(type_, strides="contiguous")
        return type_

    def _equate(self, a: MaybeDim, b: MaybeDim) -> bool:
        """Assume that two sizes are equal, or that one is 1; False if neither is a symbol."""
        if 0 in (a, b):
            return False  # symbols stand for sizes of at least 1
        first, second = symbol_name(a), symbol_name(b)
        units = [name for name in (first, second) if name in self.units]
        if len(units) == 1:
            self.known[units[0]] = 1
        elif second is not None and a is not None and not _mentions(a, second):
            self.known[second] = a
        elif first is not None and b is not None and not _mentions(b, first):
            self.known[first] = b
        else:
            return False
        return True


def _mentions(dim: Dim, name: str) -> bool:
    return isinstance(dim, Sym) and name in dim.symbols


def _is_complete(type_: Type) -> bool:
    return not isinstance(type_, TensorType) or type_.is_complete
