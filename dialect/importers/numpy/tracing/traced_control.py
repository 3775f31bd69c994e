"""Control flow that depends on run-time values: `cond`, `while_loop`, `fori_loop`.

Outside of a trace they run in Python. Inside one they become ``scf.if``, ``scf.while`` and
``scf.for``; values from outside may be used in branches and bodies directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ....dataclass import dataclass
from ....errors import ArgumentError
from ....ir.dtypes import BOOL, I64
from ....ir.op import op_named
from ....ir.program import Block, Instr
from ....ir.types import INT_SCALAR, ScalarType, TensorType, Type
from ....trees.pytree import TreeDef, flatten, unflatten
from .current import current, trace_error, user_loc
from .operators import as_value, op, recorder_of, wrap
from .recorder import Recorder
from .traced import Traced, TracedArray, is_tracing

_ROUNDS = 4  # rounds in which a loop's carried types may widen: the dtype first, then sizes


def cond(pred: Any, true_fn: Callable, false_fn: Callable, *operands: Any) -> Any:
    """``true_fn(*operands)`` if ``pred`` holds, else ``false_fn(*operands)``.

    Both must return the same structure with the same dtypes and ranks, else TraceError is raised.
    Raises ArgumentError for branches that are no functions, as the loops do for their bodies.
    """
    _check_functions("cond", true_fn=true_fn, false_fn=false_fn)
    if not is_tracing([pred]):
        return true_fn(*operands) if pred else false_fn(*operands)
    rec = recorder_of((pred,))
    condition = truth(rec, pred)
    sides = [_run_block(rec, fn, operands) for fn in (true_fn, false_fn)]
    (then, then_tree), (other, other_tree) = ((s.block, s.tree) for s in sides)
    if then_tree != other_tree:
        raise trace_error(
            f"the branches of cond return different structures: {then_tree} and {other_tree}",
            "return the same tuples, lists and dicts from both, with arrays or numbers at each *",
        )
    names = _paths(then_tree)
    hints = []
    for k, (a, b) in enumerate(zip(then.outputs, other.outputs, strict=True)):
        joined = join_hints(rec.hints[a], rec.hints[b])
        if joined is None:
            raise trace_error(
                f"the branches of cond return different types{names[k]}: "
                f"{_describe(rec.hints[a])} and {_describe(rec.hints[b])}",
                "make them agree with astype, np.asarray or reshape",
            )
        hints.append(joined)
    results = tuple(rec.new_value(h) for h in hints)
    rec.append(Instr(op_named("scf.if"), (condition,), results, {}, (then, other), user_loc()))
    return unflatten(then_tree, [wrap(rec, r) for r in results])


def while_loop(cond_fn: Callable, body_fn: Callable, init: Any) -> Any:
    """``while cond_fn(value): value = body_fn(value)``, starting at ``init``.

    The value must keep its structure, dtypes and ranks, else TraceError is raised.
    """
    _check_functions("while_loop", cond_fn=cond_fn, body_fn=body_fn)
    leaves, tree = flatten(init)
    rec = _recorder_for(leaves)
    if rec is None:
        value = init
        while cond_fn(value):
            value = body_fn(value)
        return value
    cond_fn, body_fn = rec.callee(cond_fn), rec.callee(body_fn)
    carry = Carry(rec, leaves, tree, "while_loop")
    while True:
        before = Block(carry.arguments())
        with rec.nested(before):
            own_arguments(rec, before)
            condition = truth(rec, cond_fn(carry.value(before.args)))
        before.outputs = (condition, *before.args)
        body = Block(carry.arguments())
        with rec.nested(body):
            own_arguments(rec, body)
            outputs = carry.collect(body_fn(carry.value(body.args)))
        if outputs is not None:
            body.outputs = outputs
            return carry.emit("scf.while", carry.inits, (before, body))


def fori_loop(lower: Any, upper: Any, body_fn: Callable, init: Any) -> Any:
    """``for i in range(lower, upper): value = body_fn(i, value)``, starting at ``init``.

    The value must keep its structure, dtypes and ranks, else TraceError is raised.
    """
    _check_functions("fori_loop", body_fn=body_fn)
    leaves, tree = flatten(init)
    rec = _recorder_for([lower, upper, *leaves])
    if rec is None:
        value = init
        for i in range(int(lower), int(upper)):
            value = body_fn(i, value)
        return value
    bounds = [_int_scalar(rec, x) for x in (lower, upper)]
    step = rec.constant(1)
    body_fn = rec.callee(body_fn)
    carry = Carry(rec, leaves, tree, "fori_loop")
    while True:
        block = Block()
        with rec.nested(block):
            index = rec.new_value(INT_SCALAR)
            block.args = (index, *carry.arguments())
            own_arguments(rec, block)
            outputs = carry.collect(body_fn(wrap(rec, index), carry.value(block.args[1:])))
        if outputs is not None:
            block.outputs = outputs
            return carry.emit("scf.for", [*bounds, step, *carry.inits], (block,))


# --- pieces -----------------------------------------------------------------------------------


def _check_functions(name: str, **functions: Any) -> None:
    """Raise for values where functions are asked for, as in ``cond(p, x, -x)``."""
    for parameter, function in functions.items():
        if not callable(function):
            raise ArgumentError(
                f"{parameter} of {name} is no function but a {type(function).__name__}",
                loc=user_loc(),
                hint="write a function that computes the value, e.g. lambda: -x",
            )


@dataclass
class _Side:
    block: Block
    tree: TreeDef


def _run_block(rec: Recorder, fn: Callable, operands: Sequence[Any]) -> _Side:
    block = Block()
    with rec.nested(block):
        leaves, tree = flatten(rec.callee(fn)(*operands))
        block.outputs = tuple(as_value(rec, leaf) for leaf in leaves)
        for value in block.outputs:
            rec.check_visible(value)
    return _Side(block, tree)


class Carry:
    """The values a loop carries: their joined types, and the initial values in these types."""

    def __init__(self, rec: Recorder, leaves: Sequence[Any], tree: TreeDef, name: str) -> None:
        """Begin with the values before the loop; ``name`` is what errors call the loop."""
        self.rec, self.tree, self.name = rec, tree, name
        self.inits = [as_value(rec, leaf) for leaf in leaves]
        self.hints = [unknown_number(rec.hints[v]) for v in self.inits]
        # In the first round a body gets the initial values themselves.
        storages = [leaf.storage if isinstance(leaf, Traced) else None for leaf in leaves]
        self.owners = [s.owner if s else None for s in storages]
        self.rounds = 0
        self.first: list[Type] = []  # types behind the first round
        self.latest: list[Type] = []  # types behind the round that has been collected last

    def arguments(self) -> tuple[int, ...]:
        """Fresh block arguments (their home is set by `own_arguments`)."""
        return tuple(self.rec.new_value(h) for h in self.hints)

    def value(self, args: Sequence[int]) -> Any:
        """The carried value made of block arguments."""
        return unflatten(
            self.tree,
            [
                TracedArray(self.rec, a, owner=o) if isinstance(h, TensorType) and h.shape else wrap(self.rec, a)
                for a, h, o in zip(args, self.hints, self.owners, strict=True)
            ],
        )

    def collect(self, result: Any) -> tuple[int, ...] | None:
        """Values the body yields, or None if types were widened and it must be recorded anew."""
        leaves, tree = flatten(result)
        if tree != self.tree:
            raise trace_error(
                f"the body of {self.name} returns another structure than it is given: {tree}, given {self.tree}",
                "return what the body was given, with a new array or number at each *",
            )
        values = [as_value(self.rec, leaf) for leaf in leaves]
        for value in values:
            self.rec.check_visible(value)
        widened = False
        self.latest = [unknown_number(self.rec.hints[value]) for value in values]
        self.first = self.first or self.latest
        for k, (value, got) in enumerate(zip(values, self.latest, strict=True)):
            if got == self.hints[k]:
                continue
            joined = self._joined(k, got)
            if joined == self.hints[k]:
                values[k] = self._promoted(value, joined)
            else:
                self.hints[k], widened = joined, True
        self.rounds += 1
        return None if widened else tuple(values)

    def is_steady(self) -> bool:
        """True if values have the types that the loop carries behind each round.

        False where Python's depend on the number of rounds, as in ``a, b = b, a + x[i]``.
        """
        triples = zip(self.first, self.latest, self.hints, strict=True)
        return all(_is_as(a, hint) and _is_as(b, hint) for a, b, hint in triples)

    def _joined(self, k: int, got: Type) -> Type:
        have = self.hints[k]
        joined = join_hints(have, got)
        if joined is None:
            joined = _promote(have, got)
        if joined is None or self.rounds > _ROUNDS:
            raise trace_error(
                f"the body of {self.name} changes the type of the carried value"
                f"{_paths(self.tree)[k]}: from {_describe(have)} to {_describe(got)}",
                "start with a value of the final dtype and rank, or convert it with astype",
            )
        return joined

    def _promoted(self, value: int, wanted: Type) -> int:
        """``value``, converted where the loop carries a wider number or a rank-0 array."""
        have = self.rec.hints[value]
        if isinstance(have, ScalarType) and _kind(have) != _kind(wanted):
            return _convert(self.rec, value, wanted)
        return value

    def emit(self, name: str, operands: Sequence[int], blocks: tuple[Block, ...]) -> Any:
        """Record the loop itself and return the carried value after it."""
        rec = self.rec
        count = len(self.inits)
        fixed = list(operands)
        for k in range(count):
            at = len(fixed) - count + k
            fixed[at] = self._promoted(fixed[at], self.hints[k])
        for value in fixed:
            rec.check_visible(value)
        results = tuple(rec.new_value(h) for h in self.hints)
        rec.append(Instr(op_named(name), tuple(fixed), results, {}, blocks, user_loc()))
        return unflatten(self.tree, [wrap(rec, r) for r in results])


def _is_as(got: Type, wanted: Type) -> bool:
    """True of types of the same class and dtype, whatever their sizes are."""
    return type(got) is type(wanted) and getattr(got, "dtype", None) is getattr(wanted, "dtype", None)


def _recorder_for(leaves: Sequence[Any]) -> Recorder | None:
    """The trace in progress if the loop must be recorded, None if it can run in Python."""
    if current() is None and not is_tracing(leaves):
        return None
    # Bodies may close over traced values: inside a trace a loop is always recorded.
    return recorder_of(leaves)


def own_arguments(rec: Recorder, block: Block) -> None:
    """Make a block the home of its arguments: they must not be used outside of it."""
    for value in block.args:
        rec.home[value] = block


def truth(rec: Recorder, pred: Any) -> int:
    """``pred`` as an i1 scalar value."""
    if type(pred) in (bool, np.bool):
        return rec.constant(bool(pred))
    value = as_value(rec, pred)
    hint = rec.hints[value]
    if isinstance(hint, ScalarType):
        if hint.dtype is BOOL:
            return value
        return op("ne", wrap(rec, value), 0).value
    if rec.shape(value) != () and any(d not in (1, None) for d in rec.shape(value)):
        raise trace_error(
            f"the condition has shape {rec.shape(value)}, a single truth value is needed", "use .any() or .all()"
        )
    return rec.emit("truth", [value])[0]


def required(value: Any, holds: Any, reason: str) -> Any:
    """An array or a number of which ``holds`` is true at run time; else the call is Python's."""
    result = op("require", value, holds, message=reason)
    return result if hasattr(value, "ndim") else op("item", result, dtype=None)


def _int_scalar(rec: Recorder, x: Any) -> int:
    value = as_value(rec, x)
    hint = rec.hints[value]
    if isinstance(hint, ScalarType) and hint.dtype is I64:
        return value
    if _is_integer_array(hint):
        return rec.emit("item", [value])[0]
    raise trace_error(f"a loop bound must be an integer, not {_describe(hint)}")


def _is_integer_array(hint: Type) -> bool:
    if not isinstance(hint, TensorType) or hint.dtype is None:
        return False
    return hint.shape == () and hint.dtype.is_int


def unknown_number(hint: Type) -> Type:
    """``hint`` without the number, as a carried one is not the same in every round."""
    return ScalarType(hint.dtype) if isinstance(hint, ScalarType) else hint


def join_hints(a: Type, b: Type) -> Type | None:
    """The hint of a value that has either type; None if they differ in kind, dtype or rank."""
    if isinstance(a, ScalarType) and isinstance(b, ScalarType):
        return ScalarType(a.dtype) if a.dtype is b.dtype else None
    if not isinstance(a, TensorType) or not isinstance(b, TensorType):
        return None
    if a.dtype is not b.dtype or a.shape is None or b.shape is None:
        return None
    if len(a.shape) != len(b.shape):
        return None
    shape = tuple(m if m == n else None for m, n in zip(a.shape, b.shape, strict=True))
    return TensorType(a.dtype, shape)


def _promote(have: Type, got: Type) -> Type | None:
    """A carried Python number gives way to a wider number or to a rank-0 array."""
    order = "bifc"
    if isinstance(have, ScalarType) and isinstance(got, ScalarType):
        return have if order.index(have.dtype.kind) > order.index(got.dtype.kind) else got
    if isinstance(have, ScalarType) and isinstance(got, TensorType) and got.shape == ():
        return got
    if isinstance(got, ScalarType) and isinstance(have, TensorType) and have.shape == ():
        return have
    return None


def _kind(hint: Type) -> tuple[type, Any]:
    return type(hint), getattr(hint, "dtype", None)


def _convert(rec: Recorder, value: int, wanted: Type) -> int:
    if isinstance(wanted, TensorType):
        assert wanted.dtype is not None
        return op("cast", wrap(rec, value), dtype=wanted.dtype).value
    factor: Any = {"i": 1, "f": 1.0, "c": 1.0 + 0.0j}[wanted.dtype.kind]  # type: ignore[union-attr]
    return op("mul", wrap(rec, value), factor).value


def _paths(tree: TreeDef) -> list[str]:
    return [f" at {path}" if path else "" for path in tree.paths()]


def _describe(hint: Type) -> str:
    if isinstance(hint, ScalarType):
        return f"a Python {type(hint.dtype.numpy.type(0).item()).__name__}"
    if isinstance(hint, TensorType) and hint.shape is not None:
        sizes = ", ".join("?" if d is None else str(d) for d in hint.shape)
        return f"an array of {hint.dtype} and shape ({sizes})"
    return "a list"
