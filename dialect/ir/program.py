"""A graph as a *program*: decoded instructions that tier 0 and plans run without MLIR.

Values are integers, unique within a program. A `Module` holds a main program and the private
functions it names by symbol, exactly as the IR text does; `to_mlir` prints it, and
`dialect.mlir.decode` reads IR back into the same form.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from ..dataclass import dataclass
from ..errors import Loc
from .attrs import SYMBOL, quoted
from .op import Op
from .types import TENSOR, Type, type_to_mlir


@dataclass(slots=True)
class Instr:
    """One operation: op class, operand and result values, attributes, nested blocks, location."""

    op: type[Op]
    operands: tuple[int, ...]
    results: tuple[int, ...]
    attrs: dict[str, Any] = field(default_factory=dict)
    blocks: tuple[Block, ...] = ()
    loc: Loc | None = None

    @property
    def symbols(self) -> list[str]:
        """The functions of the module that the instruction names."""
        names = (self.attrs.get(k) for k, a in self.op.attrs.items() if a.kind is SYMBOL)
        return [name for name in names if name is not None]

    def replace(self, values: Mapping[int, int]) -> None:
        """Use other values, in nested blocks as well."""
        if values:
            self.operands = tuple([values.get(v, v) for v in self.operands])
            for block in self.blocks:
                block.replace(values)


@dataclass(slots=True)
class Block:
    """Arguments, instructions, and the values it yields (returns, for a function body)."""

    args: tuple[int, ...] = ()
    instrs: list[Instr] = field(default_factory=list)
    outputs: tuple[int, ...] = ()

    def walk(self) -> Iterator[Instr]:
        """Every instruction, nested blocks included, in order."""
        for instr in self.instrs:
            yield instr
            for block in instr.blocks:
                yield from block.walk()

    def replace(self, values: Mapping[int, int]) -> None:
        """Have instructions and outputs, those of nested blocks included, use other values."""
        self.outputs = tuple([values.get(v, v) for v in self.outputs])
        for instr in self.instrs:
            instr.replace(values)


@dataclass(slots=True)
class Program:
    """One function. ``types`` holds what is known of values; absent = unknown tensor."""

    name: str
    body: Block = field(default_factory=Block)
    types: dict[int, Type] = field(default_factory=dict)
    count: int = 0

    def new_value(self, type_: Type = TENSOR) -> int:
        """A fresh value of this type."""
        value = self.count
        self.count += 1
        self.types[value] = type_
        return value

    def type_of(self, value: int) -> Type:
        return self.types.get(value, TENSOR)

    def callees(self, op: type[Op]) -> list[str]:
        """Functions that ops of this class, or of subclasses, call, once each, in order."""
        names = [instr.attrs["callee"] for instr in self.body.walk() if issubclass(instr.op, op)]
        return list(dict.fromkeys(names))

    @property
    def inputs(self) -> tuple[int, ...]:
        return self.body.args

    @property
    def outputs(self) -> tuple[int, ...]:
        return self.body.outputs


@dataclass(slots=True)
class Module:
    """A main program and the private functions it refers to."""

    main: Program
    functions: dict[str, Program] = field(default_factory=dict)

    def part(self, name: str) -> Module:
        """The private function ``name`` as a module of its own, with what it calls."""
        waiting, functions = [name], {}
        while waiting:
            current = waiting.pop()
            if current not in functions:
                functions[current] = self.functions[current]
                for instr in functions[current].body.walk():
                    waiting += instr.symbols
        return Module(functions.pop(name), functions)

    def to_mlir(self, *, locations: bool = True) -> str:
        """IR text of the whole module (inverse of `dialect.mlir.decode.decode_module`)."""
        printer = _Printer(locations)
        printer.lines.append("module {")
        printer.function(self.main, private=False)
        for program in self.functions.values():
            printer.function(program, private=True)
        printer.lines.append("}")
        return "\n".join(printer.lines) + "\n"


class _Printer:
    """Writes programs as MLIR: our ops in generic form, `func` and `scf` in theirs."""

    def __init__(self, locations: bool) -> None:
        self.lines: list[str] = []
        self.locations = locations

    def function(self, program: Program, *, private: bool) -> None:
        p = program
        args = ", ".join(f"%{a}: {type_to_mlir(p.type_of(a))}" for a in p.inputs)
        outs = ", ".join(type_to_mlir(p.type_of(o)) for o in p.outputs)
        word = "private " if private else ""
        arrow = f" -> ({outs})" if p.outputs else ""
        self.lines.append(f"  func.func {word}@{p.name}({args}){arrow} {{")
        self.block(p, p.body, 4)
        self.lines.append(f"    return{self._typed(p, p.outputs)}")
        self.lines.append("  }")

    def block(self, p: Program, block: Block, indent: int) -> None:
        for instr in block.instrs:
            self.instr(p, instr, indent)

    def instr(self, p: Program, instr: Instr, indent: int) -> None:
        pad = " " * indent
        head = ", ".join(f"%{r}" for r in instr.results)
        head = f"{head} = " if head else ""
        operands = ", ".join(f"%{o}" for o in instr.operands)
        attrs = self._attrs(instr)
        ins = ", ".join(type_to_mlir(p.type_of(o)) for o in instr.operands)
        outs = ", ".join(type_to_mlir(p.type_of(r)) for r in instr.results)
        if len(instr.results) != 1:
            outs = f"({outs})"
        line = f'{pad}{head}"{instr.op.full_name()}"({operands})'
        if instr.blocks:
            self.lines.append(f"{line} ({{")
            for k, block in enumerate(instr.blocks):
                if k:
                    self.lines.append(f"{pad}}}, {{")
                self.nested(p, instr, k, block, indent + 2)
            line = f"{pad}}})"
        self.lines.append(f"{line}{attrs} : ({ins}) -> {outs}{self._loc(instr)}")

    def nested(self, p: Program, instr: Instr, index: int, block: Block, indent: int) -> None:
        pad = " " * indent
        if block.args:
            args = ", ".join(f"%{a}: {type_to_mlir(p.type_of(a))}" for a in block.args)
            self.lines.append(f"{pad[:-1]}^bb{index}({args}):")
        self.block(p, block, indent)
        is_condition = instr.op.name == "while" and index == 0
        name = "scf.condition" if is_condition else f"{instr.op.dialect}.yield"
        outs = ", ".join(f"%{o}" for o in block.outputs)
        types = ", ".join(type_to_mlir(p.type_of(o)) for o in block.outputs)
        self.lines.append(f'{pad}"{name}"({outs}) : ({types}) -> ()')

    def _attrs(self, instr: Instr) -> str:
        shown = []
        for key, value in sorted(instr.attrs.items()):
            definition = instr.op.attrs.get(key)
            if definition is None or definition.is_default(value):
                continue
            shown.append(f"{key} = {definition.kind.text(value)}")
        return f" {{{', '.join(shown)}}}" if shown else ""

    def _typed(self, p: Program, values: Sequence[int]) -> str:
        if not values:
            return ""
        names = ", ".join(f"%{v}" for v in values)
        return f" {names} : {', '.join(type_to_mlir(p.type_of(v)) for v in values)}"

    def _loc(self, instr: Instr) -> str:
        if not self.locations or instr.loc is None:
            return ""
        return f" loc({quoted(instr.loc.file)}:{instr.loc.line}:{instr.loc.col})"
