"""Calls that run on the host: functions of libraries on real arrays, recorded as `host_call`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ....errors import IRError, ProfuseError, TraceError
from ....ir.device import is_foreign
from ....ir.dtypes import dtype_of
from ....ir.types import ScalarType, TensorType, Type, type_of
from ....ops.host.call_text import CallTemplate, OperandPlace, arguments_text
from ....ops.host.probing import mapped, outcome
from ....ops.host.rule import Rule, bound, name_of_function, rule_named
from ....trees.leaves import NUMBERS
from ..tracing.current import size_error, trace_error
from ..tracing.handler_tables import CREATION, Handler
from ..tracing.mutation import in_memory
from ..tracing.operators import op
from ..tracing.outputs import laid_out, note_copy, write_out
from ..tracing.traced import Traced
from ..tracing.traced_scalar import TracedScalar

# Parameters that take numbers, as many as a rank or a caller says, or arrays one by one.
_SEQUENCES = frozenset({"axis", "axes", "range", "shape", "dims", "choicelist", "condlist", "choices", "pad_width"})


def host_function(function: Any, name: str | None = None) -> Handler | None:
    """The handler of a library's function that runs on the host; None for any other.

    ``name``: by which graphs call it, where the function does not tell.
    """
    name = name or name_of_function(function)
    if name is None:
        return None
    try:
        rule_named(name)
    except IRError:
        return None
    return lambda *args, **named: call(name, args, named)


def call(name: str, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
    """Record the call of a function of the table; the result has the function's structure.

    Raises TraceError for an argument that a graph cannot hold, and what the function raises for
    operands of such dtypes and ranks.
    """
    rule = rule_named(name)
    named = dict(named)
    out = named.pop("out", None)
    result = RecordedCall(rule).recorded(args, named)
    return result if out is None else write_out(rule.shown, out, result)


@dataclass
class RecordedCall:
    """One call, whose operands are being collected."""

    rule: Rule
    operands: list[Any] = field(default_factory=list)

    def recorded(self, args: tuple[Any, ...], named: dict[str, Any]) -> Any:
        try:
            parameters = bound(self.rule.function, args, named)
        except TypeError as error:
            raise trace_error(str(error)) from None
        self._see_sizes(parameters)
        arguments = self.collected(args, named, [*parameters])
        text = arguments_text(arguments)
        try:
            returns = outcome(self.rule.name, text, self.types)
        except ProfuseError as error:
            if error.loc is not None:
                raise
            if isinstance(error, TraceError):
                raise trace_error(error.what, error.hint) from None
            raise size_error(type(error), error.what) from None
        if returns is None:
            raise trace_error(f"{self.rule.shown}: what it returns depends on sizes that are not known here")
        results = op(
            "host_call",
            *self.operands,
            function=self.rule.name,
            arguments=text,
            **({} if len(returns.types) == 1 else {"count": len(returns.types)}),
        )
        given_back = results if isinstance(results, tuple) else (results,)
        outs = [in_memory(x) if k in returns.arrays else x for k, x in enumerate(given_back)]
        for k, index in returns.views:
            take = partial(_taken, arguments, self.rule.function, k)
            note_copy(outs[k], self.operands[index], take if len(self.operands) == 1 else None)
        for k in returns.gaps:
            laid_out(outs[k], self.operands[0], None)
        return mapped(outs.__getitem__, returns.structure)

    @property
    def types(self) -> list[Type]:
        """The types of the operands, as far as they are known."""
        return [_type_of(x) for x in self.operands]

    def _see_sizes(self, parameters: Mapping[str, Any]) -> None:
        for parameter, axis in () if self.rule.sized is None else self.rule.sized(parameters):
            if isinstance(parameters[parameter], Traced):
                int(parameters[parameter].shape[axis])

    def collected(self, args: Any, named: Mapping[str, Any], names: Sequence[str]) -> CallTemplate:
        """The arguments, with places for the operands; ``names``: of the positional ones."""
        return CallTemplate(
            tuple(self._node(x, names[min(k, len(names) - 1)]) for k, x in enumerate(args)),
            {name: self._node(x, name) for name, x in named.items()},
        )

    def _node(self, x: Any, parameter: str) -> Any:
        """An argument as a graph holds it: operands are collected, and leave their place."""
        if isinstance(x, TracedScalar):
            if x.kind in (float, complex) or parameter in (self.rule.neutral or ()):
                return self._operand(x)
            return x.kind(x.bake())
        if isinstance(x, (Traced, np.ndarray)) or is_foreign(x):
            return self._operand(x)
        if x is None or x is Ellipsis or type(x) in (*NUMBERS, str):
            return x
        if isinstance(x, (list, tuple)) and self._is_array(x, parameter):
            return self._operand(CREATION["array"](x))
        if isinstance(x, (list, tuple, range)):
            items = [self._node(item, parameter) for item in x]
            return tuple(items) if isinstance(x, tuple) else items
        if isinstance(x, slice):
            return slice(*(self._node(part, parameter) for part in (x.start, x.stop, x.step)))
        if isinstance(x, (np.generic, np.dtype, type)):
            dtype_of(x.dtype if isinstance(x, np.generic) else x)
            return x
        raise trace_error(
            f"{self.rule.shown}: an object of type {type(x).__name__} cannot be part of a graph",
            "call it outside of the traced function",
        )

    def _is_array(self, x: list | tuple, parameter: str) -> bool:
        """True for a sequence that stands for an array, whose size no tiny array is to meet."""
        return parameter not in _SEQUENCES and parameter not in (self.rule.neutral or ()) and (_is_of_numbers(x))

    def _operand(self, x: Any) -> OperandPlace:
        self.operands.append(x)
        return OperandPlace(len(self.operands) - 1)


def _taken(arguments: CallTemplate, function: Callable[..., Any], number: int, array: Any) -> Any:
    """The value that a function gives of an array as one of its results, with the memory that it shares."""
    args, kwargs = arguments.filled(lambda _: array)
    leaves: list[Any] = []
    mapped(leaves.append, function(*args, **kwargs))
    return leaves[number]


def _is_of_numbers(x: Any) -> bool:
    if isinstance(x, (list, tuple)):
        return bool(x) and all(map(_is_of_numbers, x))
    return isinstance(x, TracedScalar) or type(x) in NUMBERS or isinstance(x, np.generic)


def _type_of(x: Any) -> Type:
    if isinstance(x, TracedScalar):
        return ScalarType(dtype_of(x.kind))
    if isinstance(x, Traced):
        return TensorType(dtype_of(x.dtype), tuple(getattr(x, "hint", x.shape)))
    return type_of(x)
