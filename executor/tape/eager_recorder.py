"""The recorder that handlers of NumPy's functions meet on the tape in place of a trace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...dialect.importers.numpy.tracing.handler_tables import CREATION
from ...dialect.importers.numpy.tracing.layouts import Layouts
from ...dialect.importers.numpy.tracing.operators import Recording
from ...dialect.importers.numpy.tracing.recorder import Recorder
from ...dialect.ir.device import is_foreign
from ...dialect.ir.op import op_named
from ...dialect.trees.leaves import check_array
from .array import Array
from .custom_functions import call_again, call_custom
from .elementwise import PLAIN
from .operations import apply

_USUAL = PLAIN | {Array}


class _Forgets(dict):
    """Takes what a trace notes of its values; here arrays say it themselves."""

    def add(self, value: Any) -> None:
        """Note a value."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Note something of a value."""


class _Captures:
    """Arrays are what they are: nobody captures them."""

    def __init__(self, created: Any) -> None:
        self.created = created

    def take(self, array: Any, stand_in: np.ndarray | None = None) -> Any:
        return Array(array)

    def note_view(self, array: np.ndarray) -> None:
        """Views say themselves whose memory they have."""


class _Numbers:
    def pin(self) -> None:
        """Nothing is recorded that other sizes could change."""


class Tape(Recorder):
    """The recorder that handlers of NumPy's functions meet outside of traces.

    It evaluates ops at once. Its values are the arrays themselves.
    """

    evaluates = True
    # What handlers ask of traces: arrays are NumPy's own here, and nothing lifts them.
    exact = is_native = lifts_new = writes_new = False

    def __init__(self) -> None:
        self.line = self.refused = self.fn = None
        nothing: Any = _Forgets()
        self.layouts = Layouts()
        self.layouts.unordered = self.layouts.raveled = self.layouts.copied = nothing
        captures: Any = _Captures(nothing)
        numbers: Any = _Numbers()
        self.captures, self.numbers, self.defs, self.known = captures, numbers, nothing, nothing

    def evaluate(self, op: str, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        return apply(op_named(op), attrs, [operand(x) for x in operands])

    def call_custom(self, function: Any, args: tuple) -> Any:
        return call_custom(function, args)

    def call_again(self, function: Any, args: tuple, gradient: Any) -> Any:
        return call_again(function, args, gradient)

    def shape(self, value: Any) -> tuple[int, ...]:
        return value.shape

    def dtype(self, value: Any) -> np.dtype:
        return value.dtype

    def constant(self, value: Any) -> Any:
        return value

    def catching(self) -> bool:
        return False


def operand(x: Any) -> Any:
    """An operand as the tape takes it: lists, and what NumPy makes an array of numbers of, as arrays.

    Raises ArgumentError for arrays whose class gives operators another meaning, as masks and matrices do.
    """
    if type(x) in _USUAL or isinstance(x, (Recording, np.generic)) or is_foreign(x):
        return x
    if isinstance(x, (list, tuple)):
        return CREATION["array"](x)
    if isinstance(x, np.ndarray):
        check_array(x, "an operand beside an array of the tape: ")
        return x
    array = np.asarray(x)
    return array if array.dtype.kind in "biufc" else x
