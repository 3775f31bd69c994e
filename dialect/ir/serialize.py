"""`program.Module` <-> plain JSON data, without MLIR: what lies in caches and crosses processes.

Data hold no code and name no class: ops are looked up in the op table, attributes are read by
their kind, types are written as IR spells them. So what somebody else wrote can be read safely;
whether it is right is another matter, for which checksums are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import IRError, Loc
from .op import op_named
from .program import Block, Instr, Module, Program
from .types import Type, type_from_mlir, type_to_mlir


def module_to_json(module: Module, places: Sequence[Loc] = ()) -> dict[str, Any]:
    """The module as JSON data; inverse of `module_from_json`.

    Like IR text it says of a type what IR can spell: no known values of scalars. A location that is
    among ``places`` is written as its index there: who reads the data puts its own in its stead.
    """
    tables = _Tables(places)
    programs = [_program_to_json(p, tables) for p in (module.main, *module.functions.values())]
    return {"types": list(tables.types), "files": list(tables.files), "programs": programs}


def module_from_json(data: dict[str, Any], places: Sequence[Loc] = ()) -> Module:
    """The module that `module_to_json` wrote; raises IRError for anything else.

    The op table has to be filled: whoever calls this imports `dialect.ops`.
    """
    try:
        reader = _ModuleReader(data, places)
        main, *functions = map(reader.program, data["programs"])
        return Module(main, {f.name: f for f in functions})
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, IRError):
            raise
        raise IRError(f"not a serialised module: {type(error).__name__}: {error}") from error


class _Tables:
    """Types and file names, each written once; the order of a dict is that of the indices."""

    def __init__(self, places: Sequence[Loc]) -> None:
        self.places = {loc: index for index, loc in enumerate(places)}
        self.types: dict[str, int] = {}
        self.files: dict[str, int] = {}

    def type(self, type_: Type | None) -> int | None:
        if type_ is None:
            return None
        return self.types.setdefault(type_to_mlir(type_), len(self.types))

    def loc(self, loc: Loc | None) -> int | list[int] | None:
        if loc is None or loc in self.places:
            return None if loc is None else self.places[loc]
        return [self.files.setdefault(loc.file, len(self.files)), loc.line, loc.col]


def _program_to_json(program: Program, tables: _Tables) -> dict[str, Any]:
    types = [tables.type(program.types.get(value)) for value in range(program.count)]
    return {"name": program.name, "types": types, "body": _block_to_json(program.body, tables)}


def _block_to_json(block: Block, tables: _Tables) -> list[Any]:
    instrs = [_instr_to_json(instr, tables) for instr in block.instrs]
    return [list(block.args), instrs, list(block.outputs)]


def _instr_to_json(instr: Instr, tables: _Tables) -> list[Any]:
    attrs = {
        name: definition.kind.to_json(instr.attrs[name])
        for name, definition in instr.op.attrs.items()
        if name in instr.attrs and not definition.is_default(instr.attrs[name])
    }
    return [
        instr.op.full_name(),
        list(instr.operands),
        list(instr.results),
        attrs,
        [_block_to_json(block, tables) for block in instr.blocks],
        tables.loc(instr.loc),
    ]


class _ModuleReader:
    """Holds the tables of one module."""

    def __init__(self, data: dict[str, Any], places: Sequence[Loc]) -> None:
        self.places = places
        self.types = [type_from_mlir(text) for text in data["types"]]
        self.files: list[str] = data["files"]
        self.count = 0

    def program(self, data: dict[str, Any]) -> Program:
        listed = data["types"]
        self.count = len(listed)
        types = {v: self.types[k] for v, k in enumerate(listed) if k is not None}
        return Program(data["name"], self.block(data["body"]), types, self.count)

    def block(self, data: list[Any]) -> Block:
        args, instrs, outputs = data
        return Block(self.values(args), [self.instr(i) for i in instrs], self.values(outputs))

    def instr(self, data: list[Any]) -> Instr:
        name, operands, results, attrs, blocks, loc = data
        cls = op_named(name)
        unknown = set(attrs) - set(cls.attrs)
        if unknown:
            raise IRError(f"{name} has no attribute {sorted(unknown)[0]!r}")
        plain_attrs = {key: cls.attrs[key].kind.from_json(value) for key, value in attrs.items()}
        return Instr(
            cls,
            self.values(operands),
            self.values(results),
            cls.full_attrs(plain_attrs),
            tuple(map(self.block, blocks)),
            self.loc(loc),
        )

    def loc(self, data: int | list[int] | None) -> Loc | None:
        if data is None:
            return None
        if isinstance(data, int):
            if not 0 <= data < len(self.places):
                raise IRError(f"there is no place {data} among {len(self.places)}")
            return self.places[data]
        file, line, col = data
        return Loc(self.files[file], line, col)

    def values(self, data: list[int]) -> tuple[int, ...]:
        for value in data:
            if type(value) is not int or not 0 <= value < self.count:
                raise IRError(f"a program of {self.count} values has no value {value!r}")
        return tuple(data)
