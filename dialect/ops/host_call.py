"""`host_call`: a function of NumPy or SciPy on real arrays, between fusion groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import IRError, TraceError
from ..ir.attrs import I64, STR, TYPES
from ..ir.dtypes import NUMBERS
from ..ir.op import Attrs, Failure, Op, Values, attr, bare, operand, result
from ..ir.types import Type

if TYPE_CHECKING:
    from ..ir.gradients import GradientBuilder
    from ..ir.program import Module


class HostCall(Op, name="host_call"):
    """Call a library's function on the operands; the results are as the library gives them.

    ``function`` names it, and has to be in the table of `ops.host`: no graph calls anything else.
    ``arguments`` says where the operands stand among the plain arguments (`ops.host.arguments`),
    and ``count`` is the number of arrays and numbers in what it returns. Raises what the function
    raises.
    """

    values = operand(variadic=True)
    outs = result(variadic=True)
    function = attr(STR)
    arguments = attr(STR)
    count = attr(I64, default=1)
    failure = Failure.CONTENTS

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        from .host.probing import result_types

        return result_types(attrs["function"], attrs["arguments"], types, attrs.get("count", 1))

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        result = _called(attrs["function"], attrs["arguments"])(args)
        if type(result) is np.ndarray:
            return _own(result, args)
        from .host.probing import mapped

        leaves: list[Any] = []
        mapped(leaves.append, result)
        return bare(tuple(_own(leaf, args) for leaf in leaves))

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        from .host.call_text import parsed_arguments
        from .host.host_gradients import gradient_of
        from .host.rule import BoundCall, rule_named

        rule = rule_named(attrs["function"])
        gradient = gradient_of(rule)
        if gradient is None:
            raise TraceError(
                f"{rule.shown} has no gradient yet",
                hint="state one with pf.custom_vjp, or compute it of np.asarray outside",
            )
        call = BoundCall(rule, parsed_arguments(attrs["arguments"]), range(len(xs)))
        return gradient(b, call, xs, ys, gs)

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        from .host.rule import rule_named

        try:
            rule_named(attrs["function"])
            yield from _misplaced(attrs, len(types))
        except IRError as error:
            yield error.what
            return
        if attrs.get("count", 1) < 0:
            yield "a call has no negative number of results"


class PythonCall(HostCall, name="python_call"):
    """Call a function that `pf.host` has been given.

    ``types`` are those of the results, in order. The function gets arrays that it cannot write to,
    and what it returns is copied, as it may keep either. Raises TraceError where it raises anything
    or returns other types, so that Python runs the call.
    """

    types = attr(TYPES)

    @classmethod
    def infer(cls, types: Sequence[Type], attrs: Attrs) -> tuple[Type, ...]:
        return tuple(attrs["types"])

    @classmethod
    def evaluate(cls, attrs: Attrs, *args: Any) -> Any:
        from .host.call_text import parsed_arguments
        from .host.probing import mapped, type_of_result
        from .host.users import users_function

        name = attrs["function"]
        positional, kwargs = parsed_arguments(attrs["arguments"]).filled(lambda k: _read_only(args[k]))
        function = users_function(name)
        leaves: list[Any] = []
        try:
            mapped(leaves.append, function(*positional, **kwargs))
        except Exception as error:
            raise TraceError(
                f"{name} raises {type(error).__name__}: {error}",
                hint="the function that calls it runs in Python, which raises this",
            ) from error
        is_typed = all(hasattr(leaf, "dtype") or type(leaf) in NUMBERS for leaf in leaves)
        if not is_typed or [type_of_result(leaf) for leaf in leaves] != list(attrs["types"]):
            raise TraceError(
                f"{name} returns other types than when it was traced",
                hint="give pf.host a function `like` whose results have the dtypes and numbers of "
                "axes that this one has, or leave it to Python",
            )
        return bare(tuple(leaf.copy() if type(leaf) is np.ndarray else leaf for leaf in leaves))

    @classmethod
    def vjp(cls, b: GradientBuilder, attrs: Attrs, xs: Values, ys: Values, gs: Values) -> Values:
        raise TraceError(
            f"{attrs['function']}, which the host computes, has no gradient", hint="state one with pf.custom_vjp"
        )

    @classmethod
    def verify(cls, types: Sequence[Type], attrs: Attrs) -> Iterator[str]:
        yield from _misplaced(attrs, len(types))
        if attrs.get("count", 1) != len(attrs["types"]):
            yield "a call has as many results as types"


def _misplaced(attrs: Attrs, count: int) -> Iterator[str]:
    """The mistake in the places that a call's arguments have for so many operands."""
    from .host.call_text import parsed_arguments

    places = set(parsed_arguments(attrs["arguments"]).places())
    if places != set(range(count)):
        yield f"the arguments have places for operands {sorted(places)}, {count} are given"


def calls_users_functions(module: Module) -> bool:
    """True if a graph calls functions that this process alone has."""
    programs = (module.main, *module.functions.values())
    return any(instr.op is PythonCall for p in programs for instr in p.body.walk())


def _read_only(x: Any) -> Any:
    if type(x) is np.ndarray:
        x = x.view()
        x.flags.writeable = False
    return x


@lru_cache(maxsize=1024)
def _called(function: str, arguments: str) -> Callable[[Sequence[Any]], Any]:
    """A function that calls the library's with operands in their places."""
    from .host.call_text import OperandPlace, parsed_arguments
    from .host.rule import rule_named

    call, parsed = rule_named(function).function, parsed_arguments(arguments)
    if not parsed.named and parsed.positional == tuple(map(OperandPlace, range(len(parsed.positional)))):
        return lambda args: call(*args)

    def called(args: Sequence[Any]) -> Any:
        positional, kwargs = parsed.filled(lambda index: args[index])
        return call(*positional, **kwargs)

    return called


def shown(function: str) -> str:
    """The name by which users write a function, and whose work it is: ``np.linalg.svd (NumPy)``."""
    if not function.startswith(("numpy.", "scipy.")):
        return f"{function} (pf.host)"
    library = "SciPy" if function.startswith("scipy.") else "NumPy"
    if function == "numpy.ndarray.__getitem__":
        return f"x[mask] ({library})"
    return f"{function.replace('numpy.', 'np.', 1)} ({library})"


def _own(leaf: Any, args: Sequence[Any]) -> Any:
    """A result in memory of its own: graphs know of no memory that it might share."""
    if type(leaf) is np.ndarray and any(isinstance(x, np.ndarray) and np.may_share_memory(leaf, x) for x in args):
        return leaf.copy()
    return leaf
