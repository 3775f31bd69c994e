"""Arrays of other libraries among the arguments of a call, and in closures; their code is imported when one appears."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...dialect.errors import ProfuseError, TraceError
from ...dialect.importers.numpy.python.instances import ClassSet
from ...dialect.ir.device import HOST, DeviceTensor, has_exchange, is_foreign
from ...dialect.trees.containers import WHEN_REGISTERED, container_of
from ...dialect.trees.leaves import register_leaf_conversion, register_memory
from ...dialect.trees.pytree import flatten
from ..arguments.device_kinds import converts
from ..arguments.plain_calls import NUMBERS
from ..plans.plan import PLANS
from ..settings.events import Counters


def as_leaf(value: Any) -> DeviceTensor | None:
    """An array of another library as a leaf; None for any other object."""
    if not is_foreign(value):
        return None
    from ..cuda.exchange.arrays import as_leaf as convert

    leaf = convert(value)
    if leaf is not None:
        if type(value) not in converts:
            PLANS.count += 1  # emitted code may now be able to read arrays of this type
        converts[type(value)] = convert
    return leaf


def check_captured(captured: Sequence[Any], home: str) -> None:
    """Raise TraceError for a host call of a function that closes over arrays of a device."""
    leaves = [as_leaf(array) for array in present(captured)] if home == HOST else []
    devices = [leaf.device for leaf in leaves if leaf is not None]
    if devices:
        raise TraceError(
            f"the function closes over an array on {devices[0]}, and its arguments are host arrays",
            hint="pass arguments on that device, or a device array as an argument",
        )


register_leaf_conversion(as_leaf)

PLAIN_KINDS = frozenset({np.ndarray, *NUMBERS, str, bytes, type(None), type, np.dtype, *np.sctypeDict.values()})
_plain = ClassSet(PLAIN_KINDS)  # of whose objects none is a tensor, or holds one
are_plain = _plain.ids.issuperset
"""Called with the identities of the classes of objects: True if none is a tensor, or may hold one."""
WHEN_REGISTERED.append(_plain.remove)


def holds_tensors(args: tuple, kwargs: dict[str, Any]) -> bool:
    """True if an argument is, or holds, a tensor of another library that may lie in host memory."""
    try:
        return _holds(args) or (bool(kwargs) and _holds(kwargs.values()))
    except (ProfuseError, RecursionError):
        return False  # what no graph takes


def _holds(items: Any) -> bool:
    for item in items:
        kind = type(item)
        if id(kind) in _plain.ids:
            continue
        if kind is list or kind is tuple:
            inside = item
        elif kind is dict:
            inside = item.values()
        elif has_exchange(kind):
            return True
        else:
            container = container_of(item)
            if container is None:
                if kind is not defaultdict:  # of which some are containers
                    _plain.add(kind)
                continue
            inside = container.items(item)
        if not are_plain(map(id, map(type, inside))) and _holds(inside):
            return True
    return False


def _memory(value: Any) -> np.ndarray | None:
    kind: Any = type(value)
    if not has_exchange(kind):
        return None
    from ..exchange.host_tensors import array_of, tensor_type

    type_ = tensor_type(kind)
    return None if type_ is None or type_.refused else array_of(value, type_)


register_memory(_memory)


def present(captured: Sequence[Any], counters: Counters | None = None) -> list[Any]:
    """The objects that a function closes over as arrays, tensors with the memory that they have now.

    Tensors that have to be copied, as their elements are conjugate to what memory holds, are
    counted as ``input_copies``.
    """
    return [x if isinstance(x, np.ndarray) else _present(x, counters) for x in captured]


def _present(value: Any, counters: Counters | None) -> Any:
    array = _memory(value)
    if array is None:
        return value
    if counters is not None:
        from ..exchange.host_tensors import is_copied

        counters.input_copies += is_copied(value)
    return array


def home_of(leaves: Sequence[Any]) -> str:
    """The device of a call: the device of its first device array, or the host."""
    return next((leaf.device for leaf in leaves if isinstance(leaf, DeviceTensor)), HOST)


def are_of_host(args: tuple, kwargs: dict[str, Any]) -> bool:
    """True if no argument is, or holds, an array of a device."""
    try:
        leaves, _ = flatten((args, kwargs))
    except ProfuseError:
        return True  # no graph takes them
    return home_of(leaves) == HOST


def stand_ins(leaves: Sequence[Any]) -> list[Any]:
    """The leaves for tracing: host arrays of the same shape stand in for device arrays."""
    return [leaf.stand_in() if isinstance(leaf, DeviceTensor) else leaf for leaf in leaves]
