"""Device arrays among the arguments of a call; imports CUDA code only when one appears."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...dialect.errors import ProfuseError, TraceError
from ...dialect.importers.numpy.tracing.leaves import register_leaf_conversion
from ...dialect.importers.numpy.tracing.pytree import flatten
from ...dialect.ir.device import HOST, DeviceTensor, is_foreign
from ..arguments.device_kinds import converts
from ..arguments.plain_calls import NUMBERS
from ..plans.plan import PLANS


def as_leaf(value: Any) -> DeviceTensor | None:
    """An array of another library as a leaf; None for any other object."""
    if not is_foreign(value):
        return None
    from ..cuda.exchange.arrays import as_leaf as convert

    leaf = convert(value)
    if leaf is not None:
        if type(value) not in converts:
            PLANS.made += 1  # emitted code may now be able to read arrays of this type
        converts[type(value)] = convert
    return leaf


def check_captured(captured: Sequence[Any], home: str) -> None:
    """Raise TraceError for a host call of a function that closes over arrays of a device."""
    found = [as_leaf(array) for array in captured] if home == HOST else []
    devices = [leaf.device for leaf in found if leaf is not None]
    if devices:
        raise TraceError(
            f"the function closes over an array on {devices[0]}, and its arguments are host arrays",
            hint="pass arguments on that device, or a device array as an argument",
        )


def flat_leaves(args: tuple) -> tuple[tuple, list] | None:
    """Key and leaves of a call whose arguments are numbers and arrays of known device types.

    None for other calls: their arguments have to be flattened, or are not allowed.
    """
    if not converts:
        return None
    key: list[Any] = []
    leaves: list[Any] = []
    for arg in args:
        kind = type(arg)
        convert = converts.get(kind)
        if convert is not None:
            try:
                arg = convert(arg)
            except ProfuseError:
                return None  # the slow path raises it again, with the argument's name
            key.append(arg.kind)
        elif kind in NUMBERS:
            key.append(kind)
        else:
            return None
        leaves.append(arg)
    return tuple(key), leaves


register_leaf_conversion(as_leaf)


def home_of(leaves: Sequence[Any]) -> str:
    """The device of a call: the device of its first device array, or the host."""
    return next((leaf.device for leaf in leaves if isinstance(leaf, DeviceTensor)), HOST)


def are_of_host(args: tuple, kwargs: dict[str, Any]) -> bool:
    """Whether no argument is, or holds, an array of a device."""
    try:
        leaves, _ = flatten((args, kwargs))
    except ProfuseError:
        return True  # no graph takes them
    return home_of(leaves) == HOST


def stand_ins(leaves: Sequence[Any]) -> list[Any]:
    """The leaves for tracing: host arrays of the same shape stand in for device arrays."""
    return [leaf.stand_in() if isinstance(leaf, DeviceTensor) else leaf for leaf in leaves]
