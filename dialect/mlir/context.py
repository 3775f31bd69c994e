"""MLIR contexts and locations.

The `profuse` dialect is *not* loaded into the context.  IRDL ties every value of a variadic field
to one type (a constraint variable holds one value for the whole operation), so a dialect loaded
from IRDL would refuse ``type_check(%a, %b)`` of two different types, and MLIR has no way to load
a dialect that leaves some ops open.  Contexts allow unregistered dialects instead; what an op may
look like is said once, by its class, and checked by `dialect.mlir.verify`.
"""

from __future__ import annotations

import difflib
import re
import sys
import threading
from collections.abc import Iterable
from types import ModuleType
from typing import TYPE_CHECKING

from ..errors import Loc
from ..ir.op import DIALECT, OPS

if TYPE_CHECKING:
    from mlir import ir

TEXT = "-"  # file name MLIR gives to positions in a text without a name

_THREAD = threading.local()


def context() -> ir.Context:
    """This thread's context, made on first use."""
    ctx = getattr(_THREAD, "context", None)
    if ctx is None:
        from mlir import ir

        from ..ops import nn  # noqa: F401  (a module may have its ops)

        ctx = ir.Context(load_on_create_dialects=[])
        # One thread per context: modules are small, and diagnostics stay in order.
        ctx.enable_multithreading(False)
        ctx.allow_unregistered_dialects = True
        _THREAD.context = ctx
        # The bindings look for op classes of a dialect in this module at every op they hand out;
        # a search that fails is not remembered, and costs more than most passes.
        sys.modules.setdefault(f"mlir.dialects.{DIALECT}", ModuleType(f"mlir.dialects.{DIALECT}"))
    return ctx


def loc_of(location: ir.Location) -> Loc | None:
    """The first file position of a location; None for unknown ones and nameless texts."""
    # Asking a location for a part that its kind lacks crashes: look at the kind first.
    if location.is_a_file():
        if location.filename == TEXT or location.start_line == 0:
            return None
        return Loc(location.filename, location.start_line, location.start_col)
    if location.is_a_name():
        return loc_of(location.child_loc)
    if location.is_a_callsite():
        return loc_of(location.callee) or loc_of(location.caller)
    if location.is_a_fused():
        return next(filter(None, map(loc_of, location.locations)), None)
    return None


def position_of(location: ir.Location, filename: str = TEXT) -> Loc | None:
    """Like `loc_of`, but a position in a nameless text counts, under the name ``filename``."""
    if location.is_a_file() and location.filename == TEXT and location.start_line:
        return Loc(filename, location.start_line, location.start_col)
    return loc_of(location)


def located(location: ir.Location, filename: str = TEXT) -> str:
    """Text of a position, for messages: ``file:line:col``, or ``unknown location``."""
    return str(position_of(location, filename) or "unknown location")


def to_location(loc: Loc | None) -> ir.Location:
    """MLIR location of a `Loc` in this thread's context."""
    from mlir import ir

    if loc is None:
        return ir.Location.unknown(context())
    return ir.Location.file(loc.file, loc.line, loc.col, context())


def near(word: str, known: Iterable[str]) -> str | None:
    """``did you mean 'a' or 'b'?`` for a misspelt name, or None."""
    matches = difflib.get_close_matches(word, list(known), n=3, cutoff=0.6)
    return f"did you mean {' or '.join(map(repr, matches))}?" if matches else None


def similar_op(name: str) -> str | None:
    """Like `near`, for the name of an op; names are compared without their dialect."""
    full = {full_name.rpartition(".")[2]: full_name for full_name in OPS}
    matches = difflib.get_close_matches(name.rpartition(".")[2], full, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(repr(full[f]) for f in matches)}?" if matches else None


def first_diagnostic(error: ir.MLIRError) -> tuple[str, ir.Location | None]:
    """The first message of an error of MLIR, on one line, and its location, if it has one."""
    for diagnostic in error.error_diagnostics:
        return one_line(diagnostic.message), diagnostic.location
    return one_line(str(error)), None


def one_line(text: str) -> str:
    """A diagnostic message on one line."""
    return re.sub(r"\s+", " ", text).strip()
