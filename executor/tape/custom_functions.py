"""Functions with a gradient of their own, and functions that are computed again, on the tape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dialect.autodiff.custom import Checkpoint, CustomVjp, checked_gradients, pair
from ...dialect.errors import GradientError, ShapeError
from ...dialect.importers.numpy.tracing.captures import checksum
from ...dialect.importers.numpy.world.own_draws import keys_again, noted_keys
from ...dialect.ir.gradient_mode import gradient_mode, gradients
from ...dialect.trees.pytree import TreeDef, flatten, unflatten
from .array import FLOATS, Array
from .eager_builder import ArrayBuilder
from .hook_calls import shown
from .node import FIRST, WRITES, Edge, Node, user_line, users_place
from .op_node import note_shared
from .repeated_calls import Repeats
from .saved import Packed, Versions, check, freed, keep, saved_arrays_hooks

_ARRAYS = (np.ndarray, np.generic)
_SAMPLE = 64  # elements of a result that are compared where its last bits may differ


class CallNode(Node):
    """A call whose gradients a function computes; the base of such nodes.

    Attributes:
        saved: the leaves of the arguments and what else is kept, and counts of writes; None once
            they are freed.
    """

    __slots__ = ("saved", "what")
    saved: tuple[list[Any], list[Any], Versions] | None

    def __init__(self, what: str, leaves: Sequence[Any], others: Sequence[Any]) -> None:
        """``others``: pairs of what is kept and the `Array` that has its elements, if one has."""
        super().__init__([_edge(x) for x in leaves], ())
        self.what = what
        self.place = users_place()
        versions: Versions = []
        saved_leaves = [keep(x.data, x, versions) if type(x) is Array else x for x in leaves]
        self.saved = saved_leaves, [keep(x, array, versions) for x, array in others], versions

    @property
    def name(self) -> str:
        return f"{self.what}_backward"

    def kept(self) -> tuple[list[Any], list[Any]]:
        """Leaves and others; leaves on the tape where gradients are differentiable themselves."""
        saved = self.saved
        if saved is None:
            raise freed(self.what, self.loc)
        check(saved[2], self.what, self.loc)
        leaves, others = ([x.array() if type(x) is Packed else x for x in g] for g in saved[:2])
        if gradient_mode():
            leaves = [x if edge is None else Array(x, *edge) for x, edge in zip(leaves, self.edges, strict=True)]
        return leaves, others

    def release(self) -> None:
        self.saved = None

    def outputs(self, results: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        """The leaves of the result as outputs of this node; floats require gradients."""
        self.metas = [(np.shape(y), y.dtype if type(y) is Array else np.asarray(y).dtype) for y in results]
        out: list[Any] = []
        for k, (y, (_, dtype)) in enumerate(zip(results, self.metas, strict=True)):
            output = as_array(y, leaves)
            if type(output) is Array and dtype.kind in FLOATS:
                output.set_node(self, k)
            out.append(output)
        return out


def _edge(x: Any) -> Edge:
    return x.edge() if type(x) is Array else None


def as_array(y: Any, leaves: Sequence[Any]) -> Any:
    """A leaf of a result as an array of the tape, which shares memory with arguments as it did."""
    y = np.float64(y) if type(y) is float else np.complex128(y) if type(y) is complex else y
    if not isinstance(y, _ARRAYS) or type(y) is Array:
        return y
    array = Array(y)
    with gradients(False):  # nobody writes through what a function of users has returned
        for x in leaves:
            note_shared(array, x)
    return array


class CustomNode(CallNode):
    """A call of a function that `custom_vjp` has made."""

    __slots__ = ("custom", "result", "saved_tree", "tree")

    custom: CustomVjp
    tree: TreeDef
    result: TreeDef
    saved_tree: TreeDef

    def backward(self, gradients: list[Any]) -> Sequence[Any]:
        leaves, others = self.kept()
        tree = self.saved_tree
        if gradient_mode():  # what was saved depends on the arguments
            saved = pair(self.custom.forward(*unflatten(self.tree, leaves)), self.what)[1]
            others, tree = flatten(saved)
        leaf_gradients = custom_gradients(self, tree, others, gradients)
        b = ArrayBuilder([edge is not None for edge in self.edges])
        pairs = zip(leaf_gradients, leaves, self.edges, strict=True)
        try:
            return [None if e is None else b.like(_zeros(e) if g is None else _as_array(g), x) for g, x, e in pairs]
        except ShapeError as error:
            error.place(self.loc)
            raise


def custom_gradients(call: Any, tree: TreeDef, saved: Sequence[Any], gradients: Sequence[Any]) -> Sequence[Any]:
    """The gradients that the user's function gives for the leaves of the arguments of a call.

    ``call`` has the function, and the structures of arguments and results, as a `CustomNode` has;
    ``tree`` that of what was saved. Neither that nor gradients can be written to.
    """
    gs = [np.zeros(*meta)[()] if g is None else shown(g) for g, meta in zip(gradients, call.metas, strict=True)]
    residuals = unflatten(tree, list(map(shown, saved)))
    leaf_gradients = call.custom.backward(residuals, unflatten(call.result, gs))
    return checked_gradients(call.custom, leaf_gradients, call.tree)


def _zeros(edge: tuple[Node, int]) -> Any:
    """The gradient for an operand of which the user's function returns None, as for all of them.

    A captured run is made before anybody knows what it will return.
    """
    node, index = edge
    return np.zeros(*node.metas[index])[()]


def _as_array(g: Any) -> Any:
    if type(g) is Array:
        return g if gradient_mode() else g.data
    return np.asarray(g)[()]


def call_custom(custom: CustomVjp, args: tuple) -> Any:
    """Call a function with a gradient of its own outside of traces.

    Raises GradientError if it reads arrays that require gradients, and was not given them.
    """
    leaves, tree = flatten(args)
    if not any(type(x) is Array for x in leaves):
        return pair(custom.forward(*args), custom.__name__)[0]
    if isinstance(custom, Checkpoint):
        return _checkpoint(custom, args, leaves)
    plain = [x.data if type(x) is Array else x for x in leaves]
    result, saved = pair(custom.forward(*unflatten(tree, plain)), custom.__name__)
    results, result_tree = flatten(result)
    others, saved_tree = flatten(saved)
    for x in (*results, *others):
        if type(x) is Array and x.requires_grad:
            raise GradientError(
                f"{custom.__name__} reads an array that requires gradients, and was not given it",
                loc=user_line(),
                hint="pass it as an argument, so that it gets its gradient",
            )
    results, others = ([x.data if type(x) is Array else x for x in g] for g in (results, others))
    if not gradient_mode() or all(_edge(x) is None for x in leaves):
        return unflatten(result_tree, [as_array(y, leaves) for y in results])
    owners = {id(x.data): x for x in leaves if type(x) is Array}
    node = CustomNode(custom.__name__, leaves, [(x, owners.get(id(x))) for x in others])
    node.custom, node.tree, node.result, node.saved_tree = custom, tree, result_tree, saved_tree
    return unflatten(result_tree, node.outputs(results, leaves))


class _Again:
    """The call that the nodes of a checkpointed call keep, and that is run again when needed.

    Args:
        fn: the function.
        args: its arguments, of which arrays are kept as nodes keep them.
    """

    def __init__(self, fn: Callable[..., Any], args: tuple, leaves: Sequence[Any]) -> None:
        self._fn, self._leaves, self._tree = fn, [], flatten(args)[1]
        self._versions: Versions = []
        self._saved = 0
        self._found: dict[int, Any] = {}
        self._result: list[Any] = []
        self._loc = user_line()
        self.keys: list[Any] = []  # what it has drawn for `profuse.nn`
        self.repeats = Repeats()
        self._is_writing = False  # it may write to what it has saved
        for x in leaves:
            data = x.data if type(x) is Array else x
            self._leaves.append((keep(data, x, self._versions), _edge(x) is not None))

    def pack(self, _: Any) -> int:
        """The number of an array among those that the call saves."""
        self._saved += 1
        return self._saved - 1

    def unpack(self, number: int) -> Any:
        """The array of that number, which the call is run again for."""
        if number not in self._found:
            self._run()
        return self._found.pop(number)

    def returned(self, result: Any, last_write: float) -> None:
        """Note what the call has returned; ``last_write``: the last one to any array before it."""
        self._result = _marks(result, exact=self.repeats.is_exact)
        self._is_writing = last_write == FIRST or last_write != WRITES.last

    def _run(self) -> None:
        check(self._versions, "a checkpointed function", self._loc)
        leaves: list[Any] = []
        for leaf, requires_grad in self._leaves:
            x = leaf.array() if type(leaf) is Packed else leaf
            if isinstance(x, _ARRAYS):
                x = Array(x)
                x.requires_grad = requires_grad
            leaves.append(x)
        saved_arrays: list[Any] = []

        def pack(array: Any) -> None:
            saved_arrays.append(array.copy() if self._is_writing else array)

        with saved_arrays_hooks(pack, _unused), gradients(True), keys_again(self.keys), self.repeats.repeated():
            result = self._fn(*unflatten(self._tree, leaves))
        marks = _marks(result, exact=self.repeats.is_exact)
        if len(saved_arrays) != self._saved or not _are_alike(marks, self._result):
            raise GradientError(
                "a checkpointed function does not compute the same when it is run again",
                loc=self._loc,
                hint="draw random numbers before the call, and pass them as arguments",
            )
        self._found = dict(enumerate(saved_arrays))


def _unused(_: Any) -> Any:
    raise GradientError("a checkpointed function differentiates what it has just computed")


def _marks(result: Any, *, exact: bool) -> list[Any]:
    """Of each array of a result a number that depends on all bits, or if that is not ``exact`` some elements."""
    arrays = [np.asarray(x.data if type(x) is Array else x) for x in flatten(result)[0]]
    if exact:
        return [checksum(array) for array in arrays]
    return [array.flat[:: max(1, array.size // _SAMPLE)] for array in arrays]


def _are_alike(found: list[Any], noted: list[Any]) -> bool:
    return len(found) == len(noted) and all(map(_is_alike, found, noted))


def _is_alike(a: Any, b: Any) -> bool:
    """True if marks are the same, elements but for rounding."""
    if not isinstance(a, np.ndarray):
        return bool(a == b)
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in FLOATS:
        return np.array_equal(a, b)
    bound = float(np.finfo(a.dtype).eps) ** 0.5
    return np.allclose(a, b, rtol=bound, atol=bound * float(np.max(np.abs(b), initial=0)), equal_nan=True)


def _checkpoint(custom: Checkpoint, args: tuple, leaves: Sequence[Any]) -> Any:
    """Run a function whose nodes keep the arguments alone (see `_Again`)."""
    again, last_write = _Again(custom.fn, args, leaves), WRITES.last
    with saved_arrays_hooks(again.pack, again.unpack), noted_keys() as again.keys, again.repeats.noted():
        result = custom.fn(*args)
    again.returned(result, last_write)
    return result


def call_again(fn: Callable[..., Any], args: tuple, gradient: Any) -> Any:
    """Call a function whose result has this gradient; returns those of its arguments.

    It is that of a checkpoint in a trace which runs op by op.
    """
    leaves, tree = flatten(args)
    floats = [k for k, x in enumerate(leaves) if isinstance(x, _ARRAYS) and x.dtype.kind in FLOATS]

    def called(*values: Any) -> list[Any]:
        own = dict(zip(floats, values, strict=True))
        return flatten(fn(*unflatten(tree, [own.get(k, x) for k, x in enumerate(leaves)])))[0]

    gs = flatten(gradient)[0]
    pulled = ArrayBuilder(()).pulled(called, [leaves[k] for k in floats], gs)
    leaf_gradients = dict(zip(floats, pulled, strict=True))
    return tuple(unflatten(tree, [leaf_gradients.get(k) for k in range(len(leaves))]))
