"""`Trace` <-> plain JSON data: how a traced function is kept without its Python code.

As in `dialect.ir.serialize`, data hold no code and name no class: structures are made of tuples,
lists, dicts, numbers and text alone. Captured arrays are kept beside the data, as bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from .... import ops  # noqa: F401 - fills the op table
from ....errors import ArgumentError, IRError, Loc
from ....ir.attrs import VALUE
from ....ir.dtypes import DType, dtype_of, dtype_of_mlir
from ....ir.op import op_named
from ....ir.serialize import module_from_json, module_to_json
from ....ir.size_algebra import parse_dim
from ....ir.symbolic import Dimension, Integer, Leaf, dim_text
from ....trees.containers import CONTAINERS
from ....trees.leaves import NUMBERS
from ....trees.pytree import LEAF, TreeDef
from ..tracing.trace_guards import Computed, Expr, NumberConstant, PassedNumber, SameObject, TraceGuard
from .trace import Trace

_NUMBERS = {cls.__name__: cls for cls in NUMBERS}
_PLAIN = (str, type(None))
_LEAF = re.compile(r"n(\d+)|d(\d+)_(\d+)")  # leaves in the text of integers: numbers, dimensions


def trace_to_json(trace: Trace) -> dict[str, Any]:
    """The trace as JSON data, without its captured arrays; inverse of `trace_from_json`.

    Raises ArgumentError for arguments or results with containers or static values of classes that
    could only be found by running code: named tuples, dataclasses, enums, functions.
    """
    return {
        "module": module_to_json(trace.module),
        "in_tree": tree_to_json(trace.in_tree),
        "out_tree": tree_to_json(trace.out_tree),
        "guards": [_guard_to_json(guard) for guard in trace.guards if not _is_of_memory(guard)],
        "kinds": [_kind_to_json(kind) for kind in trace.kinds],
        "names": list(trace.names),
        "strict": trace.strict,
    }


def trace_from_json(data: dict[str, Any], captured: Sequence[np.ndarray]) -> Trace:
    """The trace that `trace_to_json` wrote, with its captured arrays.

    Raises IRError, LookupError, TypeError or ValueError for other data.
    """
    module = module_from_json(data["module"])
    trace = Trace(
        module,
        tree_from_json(data["in_tree"]),
        tree_from_json(data["out_tree"]),
        list(captured),
        [_guard_from_json(guard) for guard in data["guards"]],
        tuple(map(_kind_from_json, data["kinds"])),
        tuple(map(str, data["names"])),
        bool(data["strict"]),
    )
    inputs, leaves = len(module.main.inputs), trace.in_tree.leaves
    if inputs != leaves + len(trace.captured) or len(trace.kinds) != leaves:
        raise IRError(f"a graph of {inputs} inputs does not take {leaves} arguments")
    if len(module.main.outputs) != trace.out_tree.leaves:
        raise IRError("the graph and the structure of its result differ in size")
    return trace


# --- structures --------------------------------------------------------------------------------


def tree_to_json(tree: TreeDef) -> list[Any]:
    """A structure as JSON data; raises ArgumentError as `trace_to_json` does."""
    return _spec_to_json(tree.spec)


def tree_from_json(data: list[Any]) -> TreeDef:
    """The structure that `tree_to_json` wrote; raises ValueError or TypeError for other data."""
    spec = _spec_from_json(data)
    return TreeDef(spec, _leaves(spec))


def _spec_to_json(spec: tuple) -> list[Any]:
    if spec == LEAF:
        return ["leaf"]
    kind, meta, children = spec
    if kind == "static":
        return ["static", _plain_to_json(children)]
    cls = CONTAINERS[kind].class_of(meta)
    if cls is not None:
        raise _not_plain(f"{kind} {cls.__qualname__}")
    keys = None if meta is None else [_plain_to_json(key) for key in meta]
    return [kind, keys, [_spec_to_json(child) for child in children]]


def _spec_from_json(data: list[Any]) -> tuple:
    kind, *rest = data
    if kind == "leaf" and not rest:
        return LEAF
    if kind == "static":
        value = _plain_from_json(*rest)
        return ("static", type(value), value)
    keys, children = rest
    specs = tuple(map(_spec_from_json, children))
    if kind in ("tuple", "list") and keys is None:
        return (kind, None, specs)
    if kind not in ("dict", "ordered") or len(keys) != len(specs):
        raise ValueError(f"there is no container {kind!r} with these keys")
    return (kind, tuple(map(_plain_from_json, keys)), specs)


def _leaves(spec: tuple) -> int:
    if spec == LEAF:
        return 1
    return 0 if spec[0] == "static" else sum(map(_leaves, spec[2]))


def _plain_to_json(value: Any) -> list[Any]:
    if type(value) in _PLAIN:
        return ["plain", value]
    if type(value) in _NUMBERS.values():
        return ["number", VALUE.to_json(value)]
    raise _not_plain(f"the static value {value!r} of type {type(value).__name__}")


def _plain_from_json(data: list[Any]) -> Any:
    kind, value = data
    if kind == "number":
        return VALUE.from_json(value)
    if kind != "plain" or type(value) not in _PLAIN:
        raise ValueError(f"{value!r} is not a key or a static value")
    return value


def _not_plain(what: str) -> ArgumentError:
    return ArgumentError(
        f"{what} cannot be saved: what is loaded must not depend on code found by name",
        hint="pass tuples, lists, dicts, arrays, numbers and text; or keep the Python function "
        "and give jit the file as profile=",
    )


# --- guards and kinds --------------------------------------------------------------------------


def _is_of_memory(guard: TraceGuard) -> bool:
    """True where an argument is not an array from outside, of which what is loaded has a copy."""
    expr = guard.expr
    if not isinstance(expr, SameObject) or type(expr.other) is int:
        return False
    if guard.expected:
        raise ArgumentError("a graph for an argument that is an array which the function reads by name cannot be saved")
    return True


def _guard_to_json(guard: TraceGuard) -> list[Any]:
    loc = guard.loc
    where = None if loc is None else [loc.file, loc.line, loc.col]
    return [_expr_to_json(guard.expr), VALUE.to_json(guard.expected), where, list(guard.names)]


def _guard_from_json(data: list[Any]) -> TraceGuard:
    expr, expected, where, names = data
    loc = None if where is None else Loc(*where)
    return TraceGuard(_expr_from_json(expr), VALUE.from_json(expected), loc, tuple(names))


def _expr_to_json(expr: Expr) -> list[Any]:
    if isinstance(expr, PassedNumber):
        return ["passed", expr.leaf]
    if isinstance(expr, NumberConstant):
        return ["constant", VALUE.to_json(expr.value)]
    if isinstance(expr, SameObject):
        return ["same", expr.leaf, expr.other]
    if not isinstance(expr, Computed):
        return ["integer", dim_text(expr, _leaf_text)]
    kinds = op_named(expr.op).attrs
    attrs = [[name, kinds[name].kind.to_json(value)] for name, value in expr.attrs]
    return ["computed", expr.op, [_expr_to_json(arg) for arg in expr.args], attrs]


def _expr_from_json(data: list[Any]) -> Expr:
    kind, *rest = data
    if kind == "passed":
        return PassedNumber(int(*rest))
    if kind == "constant":
        return NumberConstant(VALUE.from_json(*rest))
    if kind == "same":
        return SameObject(*map(int, rest))
    if kind == "integer":
        (integer,) = rest
        return parse_dim(integer, _leaf_from_text)
    if kind != "computed":
        raise ValueError(f"there is no guard expression {kind!r}")
    op, args, attrs = rest
    kinds = op_named(op).attrs
    attr_values = tuple((name, kinds[name].kind.from_json(value)) for name, value in attrs)
    return Computed(op, tuple(map(_expr_from_json, args)), attr_values)


def _leaf_text(leaf: Any) -> str:
    if isinstance(leaf, Integer):
        return f"n{leaf.position}"
    return f"d{leaf.array}_{leaf.axis}"


def _leaf_from_text(text: str) -> Leaf:
    match = _LEAF.fullmatch(text)
    if match is None:
        raise ValueError(f"there is no leaf {text!r} of a guard expression")
    position, array, axis = match.groups()
    return Integer(int(position)) if position else Dimension(int(array), int(axis))


def _kind_to_json(kind: Any) -> list[Any]:
    """A `leaves.leaf_kind` as JSON data: a dtype and a rank, or the type of a scalar or number."""
    if isinstance(kind, tuple):
        dtype, rank = kind
        return ["array", dtype_of(dtype).mlir, rank]
    if kind in _NUMBERS.values():
        return ["number", kind.__name__]
    return ["scalar", dtype_of(np.dtype(kind)).mlir]


def _kind_from_json(data: list[Any]) -> Any:
    kind, *rest = data
    if kind == "number":
        return _NUMBERS[rest[0]]
    dtype: DType = dtype_of_mlir(rest[0])
    if kind == "array":
        return np.dtype(dtype.numpy), int(rest[1])
    if kind != "scalar":
        raise ValueError(f"there is no argument kind {kind!r}")
    return np.dtype(dtype.numpy).type
