"""Give device groups with equal bodies one function, hence one kernel (R3.49)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from mlir import ir

from ...ir.program import Block, Module, Program
from ...ir.size_algebra import floors_of, least_of, root_of, substitute
from ...ir.symbolic import Dim, Sym, symbol
from ...ir.types import TensorType, Type
from ...mlir.decode import decode_function
from ...mlir.rewrite import is_a, symbol_of, walk
from ...mlir.typed_values import main_functions
from ...ops.speculation import CudaGroup
from ..base import Pass, register_pass
from ..partition.alternatives import callee_of


@register_pass
@dataclass(frozen=True)
class DedupeDeviceGroups(Pass):
    """Give each device group a cache id, and groups with equal bodies one function.

    Bodies are equal if they differ in nothing but the names of values and of symbols for sizes. So ranks,
    dtypes, devices, which layouts are contiguous and which sizes are literal matter, and the sizes that a guard
    leaves free do not.  One kernel is compiled for all groups of a cache id.
    """

    name: ClassVar[str] = "dedupe-device-groups"

    def run(self, module: ir.Module) -> None:
        first: dict[str, str] = {}
        ids: dict[str, str] = {}
        for func in main_functions(module):
            for op in [op for op in walk(func) if is_a(op, CudaGroup)]:
                callee = callee_of(module, op)
                name = symbol_of(callee)
                if name not in ids:
                    ids[name] = cache_id(decode_function(callee))
                op.attributes["cache_id"] = ir.StringAttr.get(ids[name])
                shared = first.setdefault(ids[name], name)
                if shared != name:
                    op.attributes["callee"] = ir.FlatSymbolRefAttr.get(shared)
                    self.count("groups-shared")
        for name in set(ids) - set(first.values()):
            _erase_unused(module, name)


def cache_id(body: Program) -> str:
    """A digest of what is compiled of a body: equal for bodies that differ in names alone."""
    values = list(_values(body.body))
    names = _names(dict.fromkeys(name for value in values for name in _symbols(body.type_of(value))))
    types = {value: _renamed(body.type_of(value), names) for value in values}
    text = Module(Program("body", body.body, types, body.count)).to_mlir(locations=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _values(block: Block) -> Iterator[int]:
    """The values that a block and those in it define, in order."""
    yield from block.args
    for instr in block.instrs:
        yield from instr.results
        for inner in instr.blocks:
            yield from _values(inner)


def _symbols(type_: Type) -> Iterator[str]:
    for dim in (type_.shape or ()) if isinstance(type_, TensorType) else ():
        yield from sorted(dim.symbols) if isinstance(dim, Sym) else ()


def _names(symbols: Iterable[str]) -> dict[str, Dim]:
    """Names that tell the order in which symbols are first met, and what is known of their sizes."""
    places = {root_of(name): number for number, name in enumerate(symbols)}
    names: dict[str, Dim] = {}
    for number, name in enumerate(symbols):
        floors = sorted((places.get(root, -1), more) for root, more in floors_of(name).items())
        names[name] = symbol(f"n{number}_{least_of(name)}" + "".join(f"__{more}_n{root}" for root, more in floors))
    return names


def _renamed(type_: Type, names: Mapping[str, Dim]) -> Type:
    if not isinstance(type_, TensorType) or type_.shape is None:
        return type_
    sizes = (substitute(dim, names) if isinstance(dim, Sym) else dim for dim in type_.shape)
    return replace(type_, shape=tuple(sizes))


def _erase_unused(module: ir.Module, name: str) -> None:
    for op in module.body.operations:
        if symbol_of(op.operation) == name:
            op.operation.erase()
            return
