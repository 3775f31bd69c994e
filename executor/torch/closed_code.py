"""Whether the code of a model is closed: whether it reads and changes nothing but its arguments and its modules.

An export runs the code of a model once, and what it has read then stands in the graph for good. So it may
only serve later calls if this code can read nothing that may change unseen, and has no effects. Permissions
alone are listed here: names that are bound to torch's functions on tensors, to plain values and to functions that
are closed themselves. All of these are compared at each call. Calls of any other model go through Dynamo, which has
guards of its own.
"""

from __future__ import annotations

import builtins
import dis
import math
import operator
import types
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef

from .object_comparison import ObjectComparison

_PLAIN = (
    bool, int, float, complex, str, bytes, type(None), type(Ellipsis), torch.dtype, torch.device, torch.layout,
    torch.memory_format, torch.Size,
)  # fmt: skip
_BUILTINS = frozenset(
    {
        abs, all, any, bool, complex, dict, divmod, enumerate, float, int, isinstance, len, list, max, min, pow, range,
        reversed, round, set, slice, sorted, str, sum, super, tuple, zip,
    }
)  # fmt: skip
_CREATION = (
    "arange", "as_tensor", "empty", "empty_like", "eye", "finfo", "full", "full_like", "iinfo", "is_tensor", "linspace",
    "logspace", "ones", "ones_like", "promote_types", "rand", "rand_like", "randint", "randint_like", "randn",
    "randn_like", "randperm", "result_type", "scalar_tensor", "tensor", "tril_indices", "triu_indices", "zeros",
    "zeros_like",
)  # fmt: skip
_CONTEXTS = (torch.no_grad, torch.enable_grad, torch.autocast, torch.amp.autocast)
# Of what tensors have, that which is no computation on them: it shows memory or how gradients flow, or changes these.
_NOT_OF_TENSORS = frozenset(
    {
        "apply_", "backward", "data", "data_ptr", "grad", "grad_dtype", "grad_fn", "is_inference", "is_leaf",
        "is_pinned", "is_set_to", "is_shared", "map2_", "map_", "module_load", "names", "numpy", "output_nr",
        "register_hook",
        "register_post_accumulate_grad_hook", "requires_grad", "requires_grad_", "resize_", "resize_as_", "retain_grad",
        "retains_grad", "set_", "share_memory_", "storage", "storage_offset", "storage_type", "untyped_storage",
    }
)  # fmt: skip
# Of this, what Dynamo takes from the tensors of its own graph.
_OF_GRAPHS = frozenset(
    {"grad_fn", "is_inference", "is_leaf", "is_pinned", "is_set_to", "is_shared", "output_nr", "retains_grad"}
)
# Of what every module has, that which only reads, and conversions, whose names are those of tensors as well.
_OF_MODULES = frozenset(
    {
        "__call__", "bfloat16", "buffers", "children", "cpu", "double", "float", "forward", "get_buffer",
        "get_parameter", "get_submodule", "half", "modules", "named_buffers", "named_children", "named_modules",
        "named_parameters",
        "parameters", "to", "training", "type",
    }
)  # fmt: skip
_DUNDERS = frozenset({"__call__", "__contains__", "__getitem__", "__iter__", "__len__"})
# Functions that are given names or functions, and do with these what no check of code sees.
_BY_NAME = ("attrgetter", "call", "methodcaller")
_OPCODES = (
    "BINARY_", "BUILD_", "CACHE", "CALL", "CHECK_", "COMPARE_", "CONTAINS_", "CONVERT_", "COPY",
    "DELETE_FAST", "DELETE_SUBSCR", "DICT_", "END_", "EXTENDED_ARG", "FORMAT_", "FOR_ITER", "GET_ITER",
    "GET_LEN", "GET_YIELD_FROM_ITER", "IS_OP", "JUMP_", "KW_NAMES", "LIST_", "LOAD_", "MAKE_", "MAP_",
    "MATCH_", "NOP", "POP_", "PRECALL", "PUSH_", "RAISE_", "RERAISE", "RESUME", "RETURN_", "SEND", "SET_",
    "STORE_DEREF", "STORE_FAST", "STORE_SLICE", "STORE_SUBSCR", "SWAP", "TO_BOOL", "UNARY_", "UNPACK_",
    "WITH_EXCEPT_START", "BEFORE_WITH", "YIELD_VALUE",
)  # fmt: skip
_NOT_LOADED = ("LOAD_BUILD_CLASS", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_GLOBALS", "LOAD_LOCALS", "LOAD_NAME")
_OWN_LOOKUP = ("__call__", "__getattr__", "__getattribute__", "__setattr__", "__torch_function__")
_HOOKS = ("_backward_hooks", "_backward_pre_hooks", "_forward_hooks", "_forward_pre_hooks")
_GLOBAL_HOOKS = [
    hooks
    for name, hooks in vars(torch.nn.modules.module).items()
    if name.startswith("_global_") and type(hooks) is OrderedDict
]
_MISSING = object()


def _tensor_functions() -> frozenset:
    """torch's functions on tensors, and those that make them; of `math` and `operator` all."""
    listed = torch.overrides.get_overridable_functions()
    functions = {f for space, fs in listed.items() if isinstance(space, types.ModuleType) for f in fs}
    functions |= {getattr(torch, name) for name in _CREATION} | set(_CONTEXTS)
    for module in (math, operator):
        functions |= {f for name, f in vars(module).items() if callable(f) and name not in _BY_NAME}
    functions -= {torch.is_inference}
    return frozenset(functions)


def _attributes() -> frozenset[str]:
    """What tensors and Python's containers have, and may be asked for."""
    own = {
        name
        for kind in (list, tuple, dict, set, str, range, slice, int, float, complex, torch.Size)
        for name in dir(kind)
    }
    names = set(dir(torch.Tensor)) - _NOT_OF_TENSORS | own
    return frozenset({name for name in names if not name.startswith("_")} | _DUNDERS)


_FUNCTIONS = _tensor_functions()
_ATTRIBUTES = _attributes()


class OpenCodeError(Exception):
    """Why code is not closed, in words.

    Attributes:
        is_dynamos: Dynamo runs such code as Python does, or guards it; if not, the code is torch's as a whole.
    """

    def __init__(self, reason: str, *, is_dynamos: bool = True) -> None:
        super().__init__(reason)
        self.is_dynamos = is_dynamos


class ClosedCode:
    """What the code of a model reads besides its arguments and its modules' tensors, compared at each call.

    Args:
        model: a module, or a function.

    Attributes:
        asks_for_numbers: it asks whether something is a number of Python, which a symbol for a size is not.

    Raises OpenCodeError for code that is not closed.
    """

    def __init__(self, model: Callable[..., Any]) -> None:
        self._modules = list(model.modules()) if isinstance(model, torch.nn.Module) else []
        self._kinds = [type(module) for module in self._modules]
        self._bindings: list[tuple[Any, str, Any]] = []  # tables, names, and what was bound
        self._builtins: set[Any] = set()
        self._cells: list[tuple[types.CellType, Any]] = []
        self._codes: list[tuple[types.FunctionType, Any, Any, Any]] = []
        self._seen: set[int] = set()
        self._names: set[str] = set()
        self._asked: set[str] = set()
        if self._modules:
            for module in self._modules:
                self._check_module(module)
        elif type(model) is types.FunctionType:
            self._check_function(model)
        else:
            raise OpenCodeError(f"it is a {type(model).__name__}, and no function or module")
        while self._names != self._asked:
            for name in sorted(self._names - self._asked):
                self._asked.add(name)
                self._check_attribute(name)
        if _has_global_hooks():
            raise OpenCodeError("there are hooks of all modules")
        self.asks_for_numbers = isinstance in self._builtins and not self._builtins.isdisjoint({int, float})

    def is_current(self) -> bool:
        """True if all names are bound to what they were, and no hooks have come."""
        return (
            all(table.get(name, _MISSING) is value for table, name, value in self._bindings)
            and all(_content(cell) is value for cell, value in self._cells)
            and all(
                f.__code__ is code and f.__defaults__ is defaults and _has_items(f.__kwdefaults__, named)
                for f, code, defaults, named in self._codes
            )
            and all(type(module) is kind for module, kind in zip(self._modules, self._kinds, strict=True))
            and not any(_has_hooks(module) for module in self._modules)
            and not _has_global_hooks()
        )

    def note_in(self, comparison: ObjectComparison) -> None:
        """Note all that `is_current` compares."""
        for hooks in _GLOBAL_HOOKS:
            comparison.empty(hooks)
        for table, name, _ in self._bindings:
            comparison.binding(table, name)
        for cell, _ in self._cells:
            comparison.cell(cell)
        for function, *_ in self._codes:
            comparison.function(function)
        for module in self._modules:
            comparison.kind(module)
            comparison.table(module.__dict__)
            for name in _HOOKS:
                comparison.empty(module.__dict__.get(name))

    def _check_module(self, module: torch.nn.Module) -> None:
        kind = type(module)
        if _has_hooks(module):
            raise OpenCodeError(f"a {kind.__name__} has hooks")
        if "forward" in module.__dict__:
            raise OpenCodeError(f"a {kind.__name__} has a function forward of its own")
        if _is_torchs(kind):
            self._check_values(module, module.__dict__)
            owner = next((owner for owner in kind.__mro__ if "forward" in owner.__dict__), kind)
            self._bind(owner.__dict__, "forward")
            return
        for name in _OWN_LOOKUP:
            if _is_users_attribute(kind, name):
                raise OpenCodeError(f"{kind.__name__} has a method {name} of its own")
        self._names.add("forward")

    def _check_values(self, module: torch.nn.Module, names: Any) -> None:
        """What torch's own code may read: plain values, which the module's state compares, and functions."""
        for name in names:
            if not name.startswith("_") and name not in ("training", "forward"):
                self._check_held(type(module).__name__, name, module.__dict__[name])

    def _check_held(self, owner: str, name: str, value: Any) -> None:
        if type(value) is types.FunctionType and value not in _FUNCTIONS:
            self._check_function(value)
        elif not (_is_plain(value) or _is_function(value)):
            raise OpenCodeError(f"{owner}.{name} is a {type(value).__name__}, which may change unseen")

    def _check_attribute(self, name: str) -> None:
        """An attribute that code asks for: of modules, of their classes, or of tensors and containers."""
        if name.startswith("__") and name not in _DUNDERS:
            raise OpenCodeError(f"it asks for an attribute {name}")
        is_known = name in _ATTRIBUTES
        for module in self._modules:
            kind = type(module)
            if name in module.__dict__:
                is_known = True
                self._check_held(kind.__name__, name, module.__dict__[name])
            if name in module._parameters or name in module._buffers or name in module._modules:
                is_known = True
            is_users = False
            for owner in kind.__mro__:
                if not _is_torchs(owner) and owner is not object:
                    self._bind(owner.__dict__, name)
                if name not in owner.__dict__:
                    continue
                if owner is torch.nn.Module and not is_users and name not in _OF_MODULES:
                    raise OpenCodeError(f"it asks for {name}, by which a module may be changed")
                is_known = True
                if not _is_torchs(owner) and owner is not object:
                    is_users = True
                    self._check_of_class(owner, name, owner.__dict__[name])
        if not is_known and (name in _OF_GRAPHS or (name.startswith("_") and name in dir(torch.Tensor))):
            raise OpenCodeError(f"it asks for {name}, which tells how a tensor came about", is_dynamos=False)
        if not is_known:
            raise OpenCodeError(f"it asks for an attribute {name}, which is none of tensors or of its modules")

    def _check_of_class(self, owner: type, name: str, value: Any) -> None:
        if isinstance(value, (staticmethod, classmethod)):
            value = value.__func__
        if isinstance(value, property):
            value = value.fget
        if type(value) is types.FunctionType:
            self._check_function(value)
        elif not (_is_plain(value) or _is_function(value)):
            raise OpenCodeError(f"{owner.__name__}.{name} is a {type(value).__name__}, which may change unseen")

    def _bind(self, table: Any, name: str) -> Any:
        value = table.get(name, _MISSING)
        if not any(name == n and table is t for t, n, _ in self._bindings):
            self._bindings.append((table, name, value))
        return value

    def _check_function(self, function: types.FunctionType) -> None:
        if id(function) in self._seen:
            return
        self._seen.add(id(function))
        code = function.__code__
        self._codes.append((function, code, function.__defaults__, dict(function.__kwdefaults__ or {})))
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._check_value(function.__name__, "a default", value)
        if function.__dict__.get("__wrapped__") is not None or code.co_flags & (0x80 | 0x200):
            raise OpenCodeError(f"{function.__name__} is wrapped, or a coroutine")
        cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
        self._check_code(code, function.__name__, function.__globals__, cells)

    def _check_code(
        self, code: types.CodeType, owner: str, table: dict[str, Any], cells: dict[str, types.CellType]
    ) -> None:
        instructions = [i for i in dis.get_instructions(code) if i.opname not in ("CACHE", "PUSH_NULL", "EXTENDED_ARG")]
        at = 0
        while at < len(instructions):
            instruction = instructions[at]
            at += 1
            name = instruction.opname
            if not name.startswith(_OPCODES) or name in _NOT_LOADED or name == "LOAD_GLOBALS":
                raise OpenCodeError(f"{owner} has an instruction {name}")
            if name == "CHECK_EXC_MATCH" or (
                name == "PUSH_EXC_INFO" and instructions[at].opname != "WITH_EXCEPT_START"
            ):
                raise OpenCodeError(f"{owner} handles exceptions, which only contents may raise", is_dynamos=False)
            if name == "MATCH_CLASS":
                self._builtins.add(isinstance)
            if name == "STORE_DEREF" and instruction.argval in cells:
                raise OpenCodeError(f"{owner} assigns to {instruction.argval}, which is a variable of another function")
            if name == "LOAD_GLOBAL":
                value = self._global(owner, table, instruction.argval)
            elif name == "LOAD_DEREF" and instruction.argval in cells:
                value = self._of_cell(owner, instruction.argval, cells[instruction.argval])
            else:
                if name.startswith(("LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER")):
                    self._names.add(instruction.argval)
                continue
            text = instruction.argval
            while isinstance(value, types.ModuleType) and at < len(instructions):
                following = instructions[at]
                if not following.opname.startswith(("LOAD_ATTR", "LOAD_METHOD")):
                    break
                at += 1
                text = f"{text}.{following.argval}"
                self._bindings.append((vars(value), following.argval, vars(value).get(following.argval, _MISSING)))
                value = vars(value).get(following.argval, _MISSING)
            self._check_value(owner, text, value)
        for constant in code.co_consts:
            if isinstance(constant, types.CodeType):
                self._check_code(constant, owner, table, {n: c for n, c in cells.items() if n in constant.co_freevars})

    def _global(self, owner: str, table: dict[str, Any], name: str) -> Any:
        value = table.get(name, _MISSING)
        self._bindings.append((table, name, value))
        if value is _MISSING:
            value = vars(builtins).get(name, _MISSING)
            if value in _BUILTINS:
                self._builtins.add(value)
        if value is _MISSING:
            raise OpenCodeError(f"{owner} reads {name}, which is not bound")
        return value

    def _of_cell(self, owner: str, name: str, cell: types.CellType) -> Any:
        value = _content(cell)
        if value is _MISSING:
            raise OpenCodeError(f"{owner} reads {name}, which is not bound")
        self._cells.append((cell, value))
        return value

    def _check_value(self, owner: str, name: str, value: Any) -> None:
        if type(value) is types.FunctionType and not _is_function(value):
            self._check_function(value)
        elif not (_is_plain(value) or _is_function(value) or _is_error(value)):
            raise OpenCodeError(
                f"{owner} reads {name}, a {type(value).__name__}, which may change unseen or have effects"
            )


def _content(cell: types.CellType) -> Any:
    """The value of a variable of another function, which may be without one by now."""
    try:
        return cell.cell_contents
    except ValueError:
        return _MISSING


def _is_plain(value: Any) -> bool:
    return type(value) in _PLAIN or (type(value) is tuple and all(map(_is_plain, value)))


def _is_function(value: Any) -> bool:
    """True for functions of torch and Python that compute, and for operators that users have given to torch."""
    if isinstance(value, torch.Tensor):
        return False
    try:
        return isinstance(value, CustomOpDef) or value in _FUNCTIONS or value in _BUILTINS or value is torch.Tensor
    except (TypeError, RuntimeError):  # what has no hash, or compares in its own way
        return False


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Exception) and value.__module__ == "builtins"


def _is_torchs(kind: type) -> bool:
    return kind.__module__.partition(".")[0] == "torch"


def _is_users_attribute(kind: type, name: str) -> bool:
    return any(name in owner.__dict__ for owner in _users_classes(kind))


def _users_classes(kind: type) -> Iterator[type]:
    return (owner for owner in kind.__mro__ if owner is not object and not _is_torchs(owner))


def _has_hooks(module: torch.nn.Module) -> bool:
    return any(module.__dict__.get(name) for name in _HOOKS)


def _has_items(table: dict[str, Any] | None, before: dict[str, Any]) -> bool:
    return not before if not table else len(table) == len(before) and all(table.get(k) is v for k, v in before.items())


def _has_global_hooks() -> bool:
    """True if torch calls functions of users around those of each module."""
    return any(_GLOBAL_HOOKS)
