"""`Array`: an array of NumPy's with its place on the tape."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from ...dialect.errors import DTypeError, GradientError
from ...dialect.importers.numpy.tracing.handler_tables import METHODS
from ...dialect.importers.numpy.tracing.traced import is_differentiated
from ...dialect.trees.leaves import register_leaf_type
from ..memory.output_pool import has_own_memory
from .conversions import Conversions
from .hooks import Handle
from .node import WRITES, Accumulate, Edge, Node, next_seq
from .views import CopySlices, ViewOf

FLOATS = "fcV"  # kinds of dtypes that have gradients; V is bfloat16


class Version:
    """The number of writes to memory that arrays share, and the place of the last one.

    Most never are: they are made without an initialiser, and have the values of the class.
    """

    count = 0
    place: tuple[Any, int] | None = None


UNKNOWN = -1 << 30  # holders: nobody has counted them, and there may be any number of others
_adding = threading.RLock()  # two threads may add to the gradient of one leaf
UNSEEN: Any = object()  # in place of the node of a base, for views that do not follow it


class _More:
    """The fields that few arrays have."""

    __slots__ = ("grad", "retains")

    def __init__(self) -> None:
        self.grad: Any = None
        self.retains = False


class _Kind(type):
    """The type of `Array`, as which traced arrays count where they stand for such."""

    def __instancecheck__(cls, x: Any) -> bool:
        differentiated = is_differentiated(x)
        return type.__instancecheck__(cls, x) if differentiated is None else differentiated


@register_leaf_type
class Array(Conversions, metaclass=_Kind):
    """An array of NumPy's, or a NumPy scalar, that may require gradients.

    NumPy's functions, operators and methods take it and return such arrays. What is computed of
    one that requires gradients is noted on the tape, unless gradient mode is off (`no_grad`).
    `array` makes one.

    Attributes:
        data: the ndarray or NumPy scalar.
        index: which output of its node it is.
        base: the array whose memory it is a view of; None = it is none.
    """

    _seen: Any  # of a view: the node of the base that it belongs to
    __slots__ = ("_more", "_node", "_seen", "_version", "base", "data", "index")
    storage = None

    def __init__(self, data: Any, node: Node | None = None, index: int = 0) -> None:
        self.data = data
        self._node = node
        self.index = index
        self.base: Array | None = None
        self._version: Version | None = None
        self._more: _More | None = None

    # --- place on the tape --------------------------------------------------------------------

    @property
    def node(self) -> Node | None:
        """The node that has computed it, `Accumulate` for a leaf; None = it requires no gradient."""
        base = self.base
        if base is not None and self._seen is not base._node and self._seen is not UNSEEN:
            self.set_node(None if base._node is None else ViewOf(base, self), 0)
            self._seen = base._node
        return self._node

    def set_node(self, node: Node | None, index: int) -> None:
        """Say what has computed the elements that the array has now."""
        before, place = self._node, self.index
        self._node, self.index = node, index
        if self._more is not None and self._more.retains and node is not None:
            if before is not None:
                before.hooks().retained.pop(place, None)
            self._retain_in(node)

    def view_of(self, x: Array, *, differentiable: bool) -> None:
        """Note that this is a view of ``x``; if ``differentiable``, also for what is written."""
        base = self.base = x if x.base is None else x.base
        self._version = base.version
        self._seen = base._node if differentiable and (x is base or x._seen is not UNSEEN) else (UNSEEN)

    def rebase(self, written: Array, key: Any = None) -> None:
        """Note that the elements, or those at ``key``, become those of ``written``.

        Raises GradientError for a view whose base cannot be told.
        """
        base = self.base
        if base is None and key is None:
            self.set_node(written.node, written.index)
            return
        if base is None:
            base = self
        elif self._seen is UNSEEN:
            raise GradientError(
                "what requires gradients is written to a view that was made by detach() or under "
                "pf.no_grad(), so that the gradient of the array behind it would be lost",
                hint="write to a copy: y = x.copy()",
            )
        base.set_node(CopySlices(base, self, written, key), 0)

    def wrote(self, place: Any) -> None:
        """Note that the user's code at ``place`` has written to the memory."""
        version = self.version
        version.count += 1
        version.place = place
        WRITES.last = next_seq()
        if WRITES.watchers:
            for tell in tuple(WRITES.watchers.values()):
                tell(version)

    def edge(self) -> Edge:
        """The node, and which of its outputs this is; None if it requires no gradient."""
        node = self.node
        return None if node is None else (node, self.index)

    @property
    def version(self) -> Version:
        """The counter of writes to its memory, which its views share."""
        version = self._version
        if version is None:
            version = self._version = Version()
        return version

    @property
    def requires_grad(self) -> bool:
        """True if what is computed of it is noted on the tape, in gradient mode.

        Of a leaf it may be set; GradientError is raised for another array, DTypeError where the
        dtype is no float.
        """
        return self.node is not None

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if not self.is_leaf:
            raise GradientError(
                "requires_grad of an array that was computed cannot be set",
                hint="write y = x.detach() first, or compute it under pf.no_grad()",
            )
        if not on:
            self._node = None
        elif self._node is None:
            self.require_grad()

    def require_grad(self) -> None:
        """As ``requires_grad = True``, of a leaf that has just been made."""
        dtype = self.data.dtype
        if dtype.kind not in FLOATS:
            raise DTypeError(f"an array of {dtype} has no gradient", hint="convert it: x.astype(float)")
        self._node = Accumulate(self)

    @property
    def is_leaf(self) -> bool:
        """True if no noted operation has computed it; leaves that require gradients get `grad`."""
        node = self.node
        return node is None or type(node) is Accumulate

    @property
    def grad(self) -> Any:
        """The sum of the gradients that `backward` has found; None before the first one."""
        return None if self._more is None else self._more.grad

    @grad.setter
    def grad(self, gradient: Any) -> None:
        if gradient is not None and np.shape(gradient) != self.shape:
            raise GradientError(
                f"a gradient of shape {np.shape(gradient)} is assigned to an array of shape {self.shape}"
            )
        if gradient is not None or self._more is not None:
            is_array = gradient is None or isinstance(gradient, (np.ndarray, np.generic))
            self.more().grad = gradient if is_array else np.asarray(gradient, self.dtype)[()]

    def more(self) -> _More:
        """The fields that few arrays have, made when they are needed."""
        if self._more is None:
            self._more = _More()
        return self._more

    def detach(self) -> Array:
        """An array with the same memory that requires no gradient."""
        result = Array(self.data)
        result.view_of(self, differentiable=False)
        return result

    def add_gradient(self, g: Any, holders: int) -> None:
        """Add a gradient to `grad` (R4.42); what nobody else holds is overwritten, or not copied.

        ``holders``: how many refer to ``g`` beside the argument, `UNKNOWN` to have it copied.
        """
        with _adding:
            more = self._more or self.more()
            if type(g) is Array or type(more.grad) is Array:
                more.grad = g if more.grad is None else more.grad + g
            elif more.grad is None:
                owned = sys.getrefcount(g) <= holders + 2 and _is_owned(g)
                copy = g if owned else np.array(g)
                more.grad = copy if copy.ndim else copy[()]
            elif sys.getrefcount(more.grad) == 2 and _is_owned(more.grad):
                more.grad += g
            else:
                more.grad = more.grad + g

    # --- hooks --------------------------------------------------------------------------------

    def register_hook(self, hook: Callable[[Any], Any]) -> Handle:
        """Have ``hook(gradient)`` be called with the gradient of this array in a backward run.

        It returns another gradient or None. Raises GradientError for an array that requires none.
        """
        hooks = self._own_node("register_hook").hooks()
        return hooks.add(hooks.outputs, hook, self.index)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Array], None]) -> Handle:
        """Have ``hook(x)`` be called when ``x.grad`` of this leaf has been added to.

        It returns nothing. Raises GradientError for an array that is no leaf.
        """
        node = self._own_node("register_post_accumulate_grad_hook")
        if type(node) is not Accumulate:
            raise GradientError(
                "a post-accumulate hook is registered on an array that was computed, which accumulates no gradient",
                hint="register it on a leaf, or write x.register_hook(f)",
            )
        hooks = node.hooks()
        return hooks.add(hooks.accumulated, hook)

    def retain_grad(self) -> None:
        """Have a backward run keep the gradient of this computed array in ``grad``, as a leaf's.

        It is the gradient that hooks have left. Raises GradientError for an array that requires
        none; for a leaf this changes nothing.
        """
        node = self._own_node("retain_grad")
        if type(node) is not Accumulate and not self.more().retains:
            self.more().retains = True
            self._retain_in(node)

    def _retain_in(self, node: Node) -> None:
        reference = ref(self)

        def retain(g: Any) -> None:
            array = reference()
            if array is not None and g is not None:
                array.add_gradient(g, UNKNOWN)

        node.hooks().retained[self.index] = retain

    def _own_node(self, what: str) -> Node:
        node = self.node
        if node is None:
            raise GradientError(
                f"{what} of an array that requires no gradient",
                hint="make it with pf.array(x, requires_grad=True), or compute it of such arrays",
            )
        return node

    def __copy__(self) -> Any:
        return METHODS["copy"](self)

    def __deepcopy__(self, memo: Any) -> Any:
        """A leaf of its own, with a copy of the elements; GradientError for other arrays."""
        self._check_leaf("copied by copy.deepcopy")
        return new_leaf(self.data.copy(), self.requires_grad)

    def __reduce_ex__(self, protocol: Any) -> tuple:
        """Pickle a leaf, without its gradient and its hooks; GradientError for other arrays."""
        self._check_leaf("pickled")
        return new_leaf, (self.data, self.requires_grad)

    def _check_leaf(self, what: str) -> None:
        if not self.is_leaf:
            raise GradientError(f"only leaves can be {what}", hint="write x.copy(), or x.detach()")


def new_leaf(data: Any, requires_grad: bool) -> Array:
    """A leaf with these elements, which are not copied."""
    leaf = Array(data)
    leaf.requires_grad = requires_grad
    return leaf


def add_gradients(leaves: Sequence[Array | None], gradients: list[Any]) -> None:
    """Add the last of the gradients to the leaves, None among them; ``gradients`` lets go of it."""
    with _adding:
        for k, leaf in enumerate(leaves, len(gradients) - len(leaves)):
            g = gradients[k]
            gradients[k] = None
            if leaf is None:
                continue
            more = leaf._more or leaf.more()
            # Mostly a new array of a leaf without gradient, to which nothing else refers.
            if more.grad is None and type(g) is np.ndarray and sys.getrefcount(g) == 2 and (g.ndim and _is_owned(g)):
                more.grad = g
            else:
                leaf.add_gradient(g, 1)


def keep_apart(gradients: list[Any]) -> None:
    """Have arrays in a list be copies of what something else refers to as well, or that are views."""
    for k in range(len(gradients)):  # of which nothing holds an array, as `enumerate` would
        g = gradients[k]
        gradients[k] = None
        is_apart = type(g) is not np.ndarray or not g.ndim or (sys.getrefcount(g) == 2 and _is_owned(g))
        gradients[k] = g if is_apart else np.array(g)


def _is_owned(x: Any) -> bool:
    """True if an array has memory of its own that may be written to."""
    if type(x) is not np.ndarray:
        return False
    flags = x.flags
    return flags.writeable and (flags.owndata or has_own_memory(x))
