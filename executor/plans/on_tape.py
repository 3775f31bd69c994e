"""Evaluation of a graph whose values may be on the tape: each op outside of subgraphs is a node.

Only what requires gradients flows through such a graph as an `Array`; all else is a plain array,
so that kernels take it. A graph that writes to its own arrays has `Array` everywhere: the tape must
see which of them are views of which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...dialect.ir.gradient_mode import gradient_mode
from ...dialect.ir.op import Op, op_named
from ...dialect.ir.program import Instr, Module
from ...dialect.ops.gradient_ops import AutogradAdd
from ...dialect.ops.late import Late
from ..interpret.evaluate import Adapt, own
from ..tape.array import Array
from ..tape.operations import apply

_VALUES = (np.ndarray, np.generic)
_ADD = op_named("add")


def is_noted(value: Any) -> bool:
    """True if what is computed of a value is noted on the tape, if gradient mode is on."""
    return type(value) is Array and value.node is not None


def needs_tape(inputs: Sequence[Any]) -> bool:
    """True if a call with these inputs is noted on the tape."""
    return gradient_mode() and any(map(is_noted, inputs))


def plain(value: Any) -> Any:
    """The array of an `Array`; any other value itself."""
    return value.data if type(value) is Array else value


def on_tape(module: Module) -> Adapt:
    """An `evaluate.Adapt` by which ops of a module note on the tape what they compute."""
    programs = (module.main, *module.functions.values())
    writes = any(instr.op.writes for program in programs for instr in program.body.walk())

    def adapt(instr: Instr, evaluate: Callable[..., Any]) -> Callable[..., Any]:
        # Which gradients are undefined is known here, so that a sum of others is any sum.
        adds = instr.op is AutogradAdd
        op, attrs = (_ADD, {}) if adds else (instr.op, instr.op.full_attrs(instr.attrs))
        applied = partial(_applied_late if op is Late else apply, op, attrs)

        def noted(*args: Any) -> Any:
            if not any(type(x) is Array for x in args) or (adds and _lacks(args)):
                return evaluate(*args)
            results = applied(args)
            return tuple(map(_bare, results)) if type(results) is tuple else _bare(results)

        def tracked(*args: Any) -> Any:
            if adds and _lacks(args):
                return evaluate(*args)
            results = applied([_array(x) for x in args])
            if not args:
                return tuple(map(_array, results)) if type(results) is tuple else _array(results)
            return results

        return tracked if writes else noted

    return adapt


def _applied_late(_: type[Op], attrs: dict[str, Any], args: Sequence[Any]) -> Any:
    """The results of a late op, noted as those of the op that its values make of it."""
    op, bound_attrs, operands = Late.plain_form(attrs, args)
    return apply(op, bound_attrs, operands)


def _lacks(args: Sequence[Any]) -> bool:
    return any(x is None for x in args)


def _bare(value: Any) -> Any:
    """A result without its wrapper, unless it requires gradients."""
    return value.data if type(value) is Array and value.node is None else value


def _array(value: Any) -> Any:
    return Array(value) if isinstance(value, _VALUES) and type(value) is not Array else value


def owned(out: Any, inputs: Sequence[Any]) -> Any:
    """A result of a call that shares no memory with an input, and is an array if it is not noted.

    A copy, noted as one, of what might share some.
    """
    if not is_noted(out):
        return own(plain(out), [plain(x) for x in inputs])
    data = out.data
    if type(data) is np.ndarray and (
        data.base is not None or out.base is not None or any(data is plain(x) for x in inputs)
    ):
        return apply(op_named("copy"), {}, [out])
    return out


def kernel_of_arrays(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that may be given an `Array`: one that requires no gradient, as its guard says."""

    def run(*args: Any) -> Any:
        return kernel(*map(plain, args))

    run.interprets = True  # type: ignore[attr-defined]
    return run
