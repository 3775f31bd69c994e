"""`Array`: an array of NumPy's with its place on the tape."""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any
from weakref import ref

import numpy as np

from ...dialect.errors import DTypeError, GradientError
from ...dialect.importers.handlers import METHODS
from ...dialect.importers.tracing.current import current, evaluator, trace_error
from ...dialect.importers.tracing.leaves import register_leaf_type
from ...dialect.importers.tracing.operators import Recording
from ...dialect.importers.tracing.traced import Traced
from ...dialect.ir.gradient_mode import gradient_mode
from .hooks import Handle, add
from .node import Accumulate, Edge, Node, user_line
from .views import CopySlices, ViewOf

FLOATS = "fcV"  # kinds of dtypes that have gradients; V is bfloat16
_OUTSIDE = "an Array of the tape is used in a function that is traced, which was not given it"


class Version:
    """How often memory that arrays share was written to, and where last."""

    __slots__ = ("count", "place")

    def __init__(self) -> None:
        self.count = 0
        self.place: tuple[Any, int] | None = None


_MANY = 1 << 30  # holders: nobody has counted them
_adding = threading.RLock()  # two threads may add to the gradient of one leaf
UNSEEN: Any = object()  # in place of the node of a base, for views that do not follow it


class _More:
    """What few arrays have."""

    __slots__ = ("grad", "retains")

    def __init__(self) -> None:
        self.grad: Any = None
        self.retains = False


@register_leaf_type
class Array(Traced):
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
        """What has computed it, `Accumulate` for a leaf; None = it requires no gradient."""
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
        self._seen = base._node if differentiable and (x is base or x._seen is not UNSEEN) else (
            UNSEEN
        )  # fmt: skip

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

    def edge(self) -> Edge:
        """The node, and which of its outputs this is; None if it requires no gradient."""
        node = self.node
        return None if node is None else (node, self.index)

    @property
    def version(self) -> Version:
        """The counter of writes to its memory, which its views share."""
        found = self._version
        if found is None:
            found = self._version = Version()
        return found

    @property
    def requires_grad(self) -> bool:
        """Whether what is computed of it is noted on the tape, in gradient mode.

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
        if on and self.dtype.kind not in FLOATS:
            raise DTypeError(
                f"an array of {self.dtype} has no gradient", hint="convert it: x.astype(float)"
            )
        if on != (self._node is not None):
            self._node = Accumulate(self) if on else None

    @property
    def is_leaf(self) -> bool:
        """Whether no noted operation has computed it; leaves that require gradients get `grad`."""
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
                f"a gradient of shape {np.shape(gradient)} is assigned to an array of shape "
                f"{self.shape}"
            )
        if gradient is not None or self._more is not None:
            self.more().grad = gradient

    def more(self) -> _More:
        """What few arrays have, made when it is needed."""
        if self._more is None:
            self._more = _More()
        return self._more

    def detach(self) -> Array:
        """An array with the same memory that requires no gradient."""
        made = Array(self.data)
        made.view_of(self, differentiable=False)
        return made

    def add_gradient(self, g: Any, holders: int) -> None:
        """Add a gradient to `grad` (R4.42); what nobody else holds is overwritten, or not copied.

        ``holders``: how many refer to ``g`` beside the argument.
        """
        with _adding:
            more = self._more or self.more()
            if type(g) is Array or type(more.grad) is Array:
                more.grad = g if more.grad is None else more.grad + g
            elif more.grad is None:
                owned = sys.getrefcount(g) == holders + 2 and _is_owned(g)
                more.grad = g if owned else np.array(g)[()]
            elif sys.getrefcount(more.grad) == 2 and _is_owned(more.grad):
                more.grad += g
            else:
                more.grad = more.grad + g

    # --- hooks --------------------------------------------------------------------------------

    def register_hook(self, hook: Callable[[Any], Any]) -> Handle:
        """Have ``hook(gradient)`` be called with the gradient of this array in a backward run.

        It returns another gradient or None. Raises GradientError for an array that requires none.
        """
        return add(self._own_node("register_hook").hooks().outputs, (self.index, hook))

    def register_post_accumulate_grad_hook(self, hook: Callable[[Array], None]) -> Handle:
        """Have ``hook(x)`` be called when ``x.grad`` of this leaf has been added to.

        It returns nothing. Raises GradientError for an array that is no leaf.
        """
        node = self._own_node("register_post_accumulate_grad_hook")
        if type(node) is not Accumulate:
            raise GradientError(
                "a post-accumulate hook is registered on an array that was computed, which "
                "accumulates no gradient",
                hint="register it on a leaf, or write x.register_hook(f)",
            )
        return add(node.hooks().accumulated, hook)

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
        kept = ref(self)

        def retain(g: Any) -> None:
            array = kept()
            if array is not None and g is not None:
                array.add_gradient(g, _MANY)

        node.hooks().retained[self.index] = retain

    def _own_node(self, what: str) -> Node:
        node = self.node
        if node is None:
            raise GradientError(
                f"{what} of an array that requires no gradient",
                hint="make it with pf.array(x, requires_grad=True), or compute it of such arrays",
            )
        return node

    # --- what NumPy and traced functions ask for ----------------------------------------------

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.data)

    @property
    def rec(self) -> Any:  # type: ignore[override]
        return evaluator()

    @property
    def value(self) -> Any:
        return self

    @property
    def hint(self) -> tuple[int, ...]:
        return self.data.shape

    @property
    def shape(self) -> tuple[int, ...]:
        return self.data.shape

    @shape.setter
    def shape(self, shape: Any) -> None:
        raise GradientError(
            "the shape of an array on the tape cannot be assigned",
            hint="write x = x.reshape(shape)",
        )

    @property
    def ndim(self) -> int:
        return self.data.ndim

    @property
    def dtype(self) -> np.dtype:
        return self.data.dtype

    @property
    def size(self) -> int:
        return self.data.size

    @property
    def strides(self) -> tuple[int, ...]:
        return self.data.strides

    @property
    def flags(self) -> Any:
        return self.data.flags

    def check_live(self) -> None:
        if current() is not None:
            raise trace_error(_OUTSIDE, "pass it as an argument, or np.asarray(x) of it")

    def share(self, base: Recording) -> None:
        """The memory of arrays is looked up where ops are evaluated."""

    def bake(self) -> Any:
        self.check_live()
        return self.data.item()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self.check_live()
        self._check_kept(sys._getframe(1))
        return np.array(self.data, dtype, copy=copy)

    def __hash__(self) -> int:  # type: ignore[override]
        return id(self) >> 4

    def __repr__(self) -> str:
        shown = repr(self.data).removeprefix("array").removeprefix("np.").strip()
        shown = shown if shown.startswith("(") else f"({shown})"
        if self.node is None:
            return f"array{shown}"
        of = "requires_grad=True" if self.is_leaf else f"node={self.node.name}"
        return f"array{shown[:-1]}, {of})"

    def __str__(self) -> str:
        return str(self.data)

    def __format__(self, spec: str) -> str:
        return format(self.data, spec)

    def __bool__(self) -> bool:
        self.check_live()
        return bool(self.data)

    def __int__(self) -> int:
        self.check_live()
        self._check_kept(sys._getframe(1))
        return int(self.data)

    def __float__(self) -> float:
        self.check_live()
        self._check_kept(sys._getframe(1))
        return float(self.data)

    def __complex__(self) -> complex:
        self.check_live()
        self._check_kept(sys._getframe(1))
        return complex(self.data)

    def _check_kept(self, frame: Any) -> None:
        """Raise GradientError if ``frame`` is about to store the elements in an ndarray.

        Users ask for numbers with np.asarray(x) and float(x); a store looks as if it kept the
        gradient.
        """
        if not gradient_mode() or self.node is None:
            return
        code = frame.f_code
        stores = dis.opname[code.co_code[frame.f_lasti]] == "STORE_SUBSCR"
        fills = code.co_name == "full" and frame.f_globals.get("__name__") == "numpy._core.numeric"
        if stores or fills:
            raise GradientError(
                "an array that requires gradients is written to an ndarray, which would lose them",
                loc=user_line(),
                hint="make the other array with pf.array(np.zeros(…)), or fill one by "
                "np.broadcast_to(x, shape); for numbers alone write np.asarray(x)",
            )

    def __index__(self) -> int:
        self.check_live()
        return self.data.__index__()

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Any]:
        if not self.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[k] for k in range(len(self.data)))

    def item(self, *args: int) -> Any:
        """An element as a Python number, through which no gradient flows."""
        return self.data.item(*args)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers."""
        return self.data.tolist()

    def __getstate__(self) -> Any:
        raise GradientError("an Array cannot be pickled", hint="pickle np.asarray(x)")

    def __copy__(self) -> Any:
        return METHODS["copy"](self)

    def __deepcopy__(self, memo: Any) -> Any:
        """A leaf of its own, with a copy of the elements; GradientError for other arrays."""
        if not self.is_leaf:
            raise GradientError(
                "only leaves can be copied by copy.deepcopy", hint="write x.copy(), or x.detach()"
            )
        made = Array(self.data.copy())
        made.requires_grad = self.requires_grad
        return made


def _is_owned(x: Any) -> bool:
    """Whether an array has memory of its own that may be written to."""
    return type(x) is np.ndarray and x.flags.owndata and x.flags.writeable


__all__ = ["FLOATS", "UNSEEN", "Array", "Version"]
