"""The arguments of a call: as flat lists, what holds them, and whether they share memory."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Container, Sequence
from typing import Any

import torch
from torch.utils import _pytree
from torch.utils._device import DeviceContext

from .module_state import kept_value

_CONTAINERS = (tuple, list, dict, OrderedDict, defaultdict, deque, torch.Size)
_FLAT = "flat"


def flat(args: tuple, kwargs: dict[str, Any]) -> tuple[Sequence[Any], Any]:
    """The leaves of arguments, and their structure."""
    if not kwargs and all(isinstance(x, torch.Tensor) for x in args):
        return args, (_FLAT, len(args))
    return _pytree.tree_flatten((args, kwargs))


def structure(args: tuple, kwargs: dict[str, Any]) -> Callable[[Sequence[Any]], tuple[tuple, dict[str, Any]]]:
    """From leaves to arguments."""
    _, tree = flat(args, kwargs)
    if isinstance(tree, tuple) and tree[0] == _FLAT:
        return lambda values: (tuple(values), {})
    return lambda values: _pytree.tree_unflatten(values, tree)


def strange_containers(tree: Any) -> list[type]:
    """Classes of users that hold arguments, and may have methods of their own."""
    if isinstance(tree, tuple) or tree.is_leaf():
        return []
    kind = tree.type
    inner = [k for child in tree.children() for k in strange_containers(child)]
    return inner if kind in _CONTAINERS or kind is _pytree.namedtuple or _is_torchs_tuple(kind) else [kind, *inner]


def _is_torchs_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and kind.__module__ == "torch.return_types"


def containers(value: Any) -> set[int]:
    """The identities of the lists and dicts in a value."""
    if isinstance(value, (list, dict, deque)):
        inner = value.values() if isinstance(value, dict) else value
        return {id(value)}.union(*map(containers, inner))
    return set().union(*map(containers, value)) if isinstance(value, tuple) else set()


def kinds_of_names(tree: Any) -> tuple:
    """The types of the keys of dicts among arguments that are no texts: keys may be equal, and no less different."""
    if isinstance(tree, tuple) or tree.is_leaf():
        return ()
    context = tree.context if isinstance(tree.context, (list, tuple)) else ()
    own = tuple([(type(x), kept_value(x)) for x in context if type(x) is not str])
    return own + tuple([kind for child in tree.children() for kind in kinds_of_names(child)])


def modes_are_on() -> bool:
    """True if modes of torch see each operation; that of a default device that is the CPU changes nothing."""
    modes = [torch._C._get_function_stack_at(k) for k in range(torch._C._len_torch_function_stack())]
    sees = any(not isinstance(mode, DeviceContext) or mode.device.type != "cpu" for mode in modes)
    return sees or torch._C._len_torch_dispatch_stack() > 0


def overlap(values: Sequence[Any], written: Container[int]) -> bool:
    """True if a tensor that is written to, by its number, lies in the memory of another one, whatever its storage."""
    storages = [(k, x.untyped_storage()) for k, x in enumerate(values) if isinstance(x, torch.Tensor)]
    memory = sorted([(start := s.data_ptr(), start + s.nbytes(), k in written) for k, s in storages])
    end = written_end = 0
    for start, stop, is_written in memory:
        if start < written_end or (is_written and start < end):
            return True
        end = max(end, stop)
        if is_written:
            written_end = max(written_end, stop)
    return False
