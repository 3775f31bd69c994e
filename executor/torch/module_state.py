"""What a module of torch holds: its tensors, and the plain values that its code reads, guarded from call to call."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from ...dialect.errors import TraceError
from ..exchange.torch_tensors import TensorMemories
from .object_comparison import ObjectComparison

_PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device)
PLAIN_TENSORS = (torch.Tensor, torch.nn.Parameter)  # others may compute in their own way
_EXACT = (bool, int, str, type(None))  # those that are the same where they are equal and of one type
_TABLES = (
    "_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_backward_hooks", "_backward_pre_hooks",
    "_forward_hooks", "_forward_pre_hooks", "_state_dict_hooks", "_load_state_dict_pre_hooks",
)  # fmt: skip
_OF_RNN = ("_flat_weights", "_flat_weight_refs")  # the parameters of recurrent modules once more
_OF_TORCH = frozenset(torch.nn.Module().__dict__) - {"training"} | frozenset(_OF_RNN)


class ModuleState:
    """The state of a module, or of none.

    Args:
        module: None = a function, which has none.

    Attributes:
        tensors: its parameters and buffers, each once.
        names: the names under which users know them.
    """

    def __init__(self, module: torch.nn.Module | None) -> None:
        self._modules: list[torch.nn.Module] = [] if module is None else list(module.modules())
        self._named = {} if module is None else dict(module.named_modules(remove_duplicate=False))
        self.tensors: list[torch.Tensor] = []
        self.names: list[str] = []
        self._slots: list[tuple[dict[str, Any], str, torch.Tensor | None]] = []
        self._places: list[tuple[tuple[int, bool, str], int]] = []
        self._tables: list[tuple[dict[str, Any], int]] = []
        self._children: list[tuple[dict[str, Any], tuple]] = []
        numbers: dict[int, int] = {}
        for prefix, owner in self._named.items():
            self._children.append((owner._modules, tuple(owner._modules.values())))
            for held in (owner._parameters, owner._buffers):
                self._tables.append((held, len(held)))
                for name, tensor in held.items():
                    number = -1 if tensor is None else numbers.setdefault(id(tensor), len(numbers))
                    if tensor is not None and number == len(self.tensors):
                        self.tensors.append(tensor)
                        self.names.append(f"{prefix}.{name}" if prefix else name)
                    self._slots.append((held, name, tensor))
                    if number >= 0:
                        self._places.append(((id(owner), held is owner._buffers, name), number))
        self._memories = TensorMemories(self.tensors)

    def is_current(self) -> bool:
        """True if the module still holds the same modules and tensors, in the same memory."""
        for held, children in self._children:
            if len(held) != len(children) or any(a is not b for a, b in zip(held.values(), children, strict=True)):
                return False
        for slot, name, tensor in self._slots:
            if slot.get(name) is not tensor:
                return False
        if any(len(table) != count for table, count in self._tables):
            return False
        return self._memories.are_same()

    def strange(self) -> str:
        """What is said of a tensor of the module that is no plain one of the CPU; empty = all are."""
        for name, x in zip(self.names, self.tensors, strict=True):
            if type(x) not in PLAIN_TENSORS:  # whose attributes may be what their class makes of them
                return f"{name} of the module is a {type(x).__name__}"
            if not x.is_cpu or x.layout != torch.strided:
                return f"{name} of the module has the layout {x.layout} and is on {x.device}"
        return ""

    def note_in(self, comparison: ObjectComparison) -> None:
        """Note all that `is_current` and `values` compare."""
        for module in self._modules:
            comparison.table(module.__dict__)
        for table in (*(held for held, _ in self._children), *(held for held, _ in self._tables)):
            comparison.table(table)
        comparison.memories(self._memories)

    def values(self) -> tuple:
        """The plain values that the module's code may read, with their types, other objects by identity, and hooks by
        number."""
        return tuple(
            (name, type(value), value if type(value) in _EXACT else kept_value(value))
            for module in self._modules
            for name, value in module.__dict__.items()
            if name not in _OF_TORCH
        ) + tuple(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in self._modules)

    @contextmanager
    def replaced(self, tensors: Sequence[torch.Tensor]) -> Iterator[Any]:
        """Give a module with the same code and values, which holds other tensors; None = there is no module.

        The module itself stays as it is, since other threads may call it. Raises TraceError where the code that
        runs meanwhile changes the module that it is given.
        """
        copies = {id(module): _copied(module) for module in self._modules}
        for module in copies.values():
            table = module._modules
            table.update({name: None if child is None else copies[id(child)] for name, child in table.items()})
        for (owner, is_buffer, name), number in self._places:
            table = copies[owner]._buffers if is_buffer else copies[owner]._parameters
            table[name] = tensors[number]
        for module in copies.values():
            if isinstance(module, torch.nn.RNNBase):
                module.__dict__["_flat_weights"] = [getattr(module, name) for name in module._flat_weights_names]
        before = [_state_of(module) for module in copies.values()]
        yield copies[id(self._modules[0])] if self._modules else None
        if not all(_same(_state_of(module), state) for module, state in zip(copies.values(), before, strict=True)):
            raise TraceError(
                "the module sets its own attributes while it runs, which a graph does not",
                hint="write to its buffers in place, as by self.state.copy_(x)",
            )


def kept_value(value: Any) -> Any:
    """A plain value such that equal ones are the same to any code; another object by identity.

    Numbers of two types are equal in Python, and so are zeros of two signs.
    """
    if type(value) is float:
        return value, math.copysign(1.0, value)
    if type(value) is complex:
        return repr(value)
    if type(value) is tuple:
        return tuple([(type(x), kept_value(x)) for x in value])
    return value if type(value) in _PLAIN else id(value)


def _copied(module: torch.nn.Module) -> Any:
    """A module with the attributes of another, and with tables of its own."""
    copy = object.__new__(type(module))
    copy.__dict__.update({name: value.copy() if name in _TABLES else value for name, value in module.__dict__.items()})
    return copy


def _state_of(module: torch.nn.Module) -> list[tuple[str, Any, Any]]:
    """The attributes of a module, and what its tables hold, in order."""
    held = [("", name, value) for name, value in module.__dict__.items() if name not in _OF_RNN]
    for table in _TABLES:
        items = module.__dict__.get(table, ())
        held += [(table, name, items[name] if isinstance(items, dict) else None) for name in items]
    return held


def _same(first: Sequence[tuple[str, Any, Any]], second: Sequence[tuple[str, Any, Any]]) -> bool:
    return len(first) == len(second) and all(
        a[:2] == b[:2] and a[2] is b[2] for a, b in zip(first, second, strict=True)
    )
