"""IR text as MLIR objects: parsed, and checked for its meaning; programs as functions of modules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ..errors import IRError, Loc
from ..ir.program import Module, Program
from .context import TEXT, context, one_line, position_of
from .verify import check

if TYPE_CHECKING:
    from mlir import ir

_HUGE_RESULT = re.compile(r"%[\w.$-]+#\d{7,}")  # %name#number, one result of several


def parse_module(text: str, filename: str = TEXT, *, verify: bool = True) -> ir.Module:
    """Parse a module in this thread's context, and check its meaning unless ``verify`` is off.

    ``filename`` names positions in the text, both in messages and as the location of ops that
    carry none of their own; with the default such ops have no location.  Raises IRError.
    """
    from mlir import ir

    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise IRError("unexpected NUL character", loc=Loc(filename, line))
    huge = _HUGE_RESULT.search(text)
    if huge:  # the parser makes room for as many results, and aborts where there is none
        line = text[: huge.start()].count("\n") + 1
        raise IRError(f"no op has the result {huge[0]}", loc=Loc(filename, line))
    try:
        module = ir.Module.parse(text, context())
    except ir.MLIRError as error:
        raise _parse_error(error, filename) from None
    except UnicodeEncodeError:
        raise IRError("the text holds a character that is not valid Unicode", loc=Loc(filename, 1)) from None
    if filename != TEXT:
        _name_positions(module, filename)
    if verify:
        check(module)
    return module


def _name_positions(module: ir.Module, filename: str) -> None:
    from mlir import ir

    def name(op: ir.Operation) -> ir.WalkResult:
        old = op.location
        if old.is_a_file() and old.filename == TEXT:
            op.location = ir.Location.file(filename, old.start_line, old.start_col)
        return ir.WalkResult.ADVANCE

    with module.context:
        module.operation.walk(name)


def _parse_error(error: ir.MLIRError, filename: str) -> IRError:
    diagnostics = list(error.error_diagnostics)
    if not diagnostics:
        return IRError(one_line(str(error)), loc=Loc(filename, 1))
    first = diagnostics[0]
    return IRError(one_line(first.message), loc=position_of(first.location, filename))


def replace_function(func: ir.Operation, program: Program) -> ir.Operation:
    """Put a program in the place of a function, whose visibility and foreign attributes stay.

    Returns the new function.
    """
    from mlir import ir

    new = _function_of(program, func.context)
    for name in ("sym_visibility", *(n for n in func.attributes if "." in n)):
        if name in func.attributes:
            new.attributes[name] = func.attributes[name]
    ir.InsertionPoint(func).insert(new)
    func.erase()
    return new


def add_program(module: ir.Module, program: Program) -> None:
    """Append a program as a private function of its name."""
    from mlir import ir

    new = _function_of(program, module.context)
    new.attributes["sym_visibility"] = ir.StringAttr.get("private", module.context)
    ir.InsertionPoint(module.body).insert(new)


def _function_of(program: Program, context: ir.Context) -> ir.Operation:
    """A program as a function of no module."""
    from mlir import ir

    parsed = ir.Module.parse(Module(program).to_mlir(), context)
    return parsed.body.operations[0].operation.detach_from_parent()
