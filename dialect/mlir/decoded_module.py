"""The functions of a module as programs, for passes that rewrite programs and put them back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from ..errors import InternalError
from ..ir.op import Op
from ..ir.program import Program
from .decode import decode_function
from .parse import add_program, replace_function
from .rewrite import functions, is_a, is_private, symbol_of, walk

if TYPE_CHECKING:
    from mlir import ir


class DecodedModule:
    """The functions of a module by name, each decoded when it is first asked for.

    `mark` says that a program has changed, and `store` puts the changed ones into the module.
    Values of the module that were taken before `store` are of functions that may be gone.
    """

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._functions = {symbol_of(func): func for func in functions(module)}
        self._programs: dict[str, Program] = {}
        self._changed: dict[str, None] = {}
        self._removed: set[str] = set()

    def __getitem__(self, name: str) -> Program:
        """The program of a function; raises IRError where it is no program, InternalError where there is none."""
        if name not in self._programs:
            if name not in self._functions:
                raise InternalError(f"there is no function @{name} in the module")
            self._programs[name] = decode_function(self._functions[name])
        return self._programs[name]

    def __contains__(self, name: str) -> bool:
        return name not in self._removed and (name in self._programs or name in self._functions)

    def with_ops(self, *classes: type[Op], main: bool = True) -> Iterator[str]:
        """Names of the functions in which ops of these classes, or of subclasses, are.

        ``main``: only those that are graphs of their own; private ones are subgraphs of these.
        Asked of the module as it was decoded.
        """
        for name, func in self._functions.items():
            if not (main and is_private(func)) and any(is_a(op, *classes) for op in walk(func)):
                yield name

    def callees(self, op: type[Op]) -> list[str]:
        """Functions that ops of a class, or of subclasses, call, once each, in order."""
        names = [c for name in self.with_ops(op, main=False) for c in self[name].callees(op)]
        return list(dict.fromkeys(names))

    def mark(self, name: str) -> None:
        """Have `store` write this program into the module."""
        self._changed[name] = None

    def add(self, program: Program) -> None:
        """Add a private function."""
        self._programs[program.name] = program
        self.mark(program.name)

    def remove_unnamed(self, *names: str) -> None:
        """Remove those of these private functions that no function names any more, and then what only they named."""
        waiting = [name for name in names if name in self]
        while waiting:
            name = waiting.pop()
            func = self._functions.get(name)
            if name in self._removed or (func is not None and not is_private(func)) or self.count_calls(name):
                continue
            self._removed.add(name)
            waiting += [symbol for instr in self[name].body.walk() for symbol in instr.symbols]

    def count_calls(self, name: str) -> int:
        """The number of instructions of other functions that name a function."""
        others = (n for n in {*self._functions, *self._programs} if n != name and n not in self._removed)
        return sum(name in instr.symbols for other in others for instr in self[other].body.walk())

    def store(self) -> None:
        """Write what was changed, added and removed into the module."""
        for name in self._changed:
            if name in self._removed:
                continue
            if name in self._functions:
                self._functions[name] = replace_function(self._functions[name], self._programs[name])
            else:
                add_program(self._module, self._programs[name])
        for name in self._removed:
            if name in self._functions:
                self._functions[name].erase()
