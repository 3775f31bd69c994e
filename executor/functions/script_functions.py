"""Functions and modules of TorchScript as functions of this package, called as in torch.

State that a method assigns to its module is carried from call to call in the module itself: what a
call reads of it becomes arguments of the graph, and what it assigns become results, which are set
behind the call.
"""

from __future__ import annotations

import copy
import functools
import operator
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, TraceError
from ...dialect.importers.foreign.torchscript.named_tuples import shaped
from ...dialect.importers.foreign.torchscript.script_function import ImportedScript
from ...dialect.importers.foreign.torchscript.script_graph import ScriptGraph, attribute
from ...dialect.importers.foreign.torchscript.script_reader import read_script
from ...dialect.importers.numpy.python.pausing import apart
from ...dialect.importers.numpy.tracing.current import current
from ..exchange.torch_tensors import TensorMemories
from ..plans.plan_options import Options
from ..settings.dynamo import unseen_by_dynamo
from .foreign_files import function_of
from .function import GraphFunction
from .outer_function import OuterFunction
from .script_values import argument_of, has_axes, holds_any, is_array, is_tensor, note_writes, with_arrays, with_tensors

_VARIANTS = 8  # of a method, for what its module has held


class _Attribute:
    """An attribute of a module, or of one within it.

    Args:
        module: the module.
        path: of the attribute, from there.

    Attributes:
        get: gives what the attribute holds.
    """

    def __init__(self, module: Any, path: str) -> None:
        *holders, self._name = path.split(".")
        for holder in holders:
            module = getattr(module, holder)
        self._holder = module._c
        self.get: Callable[[], Any] = functools.partial(self._holder.getattr, self._name)

    def set(self, value: Any) -> None:
        """Assign it."""
        self._holder.setattr(self._name, value)


class _Variant:
    """The graph of a method for what its module holds besides tensors, and functions of it.

    Args:
        script: the graph.
        module: whose method it is; None = a function.
        options: of the functions.

    Attributes:
        script: the graph.
        buffers: attributes of the module that are written.
        state: those that are assigned.
        tensors: the number of arguments, if these and the result are tensors, and nothing else is to be done.
    """

    def __init__(self, script: ScriptGraph, module: Any, options: Options) -> None:
        self.script, self._options, self._grad_mode = script, options, script.grad_mode
        # torch puts other memory into parameters where it converts a module, and users put other tensors there.
        self._tensors = [attribute(module, path) for path in script.tensors]
        self._held = [_Attribute(module, path).get for path in script.tensors]
        self._memories = TensorMemories(self._tensors)
        self._attributes = [(_Attribute(module, path), value) for path, value in script.attributes.items()]
        self.buffers = [_Attribute(module, path) for path in script.buffers]
        self.state = [_Attribute(module, path) for path in script.state]
        self._requires = [(_Attribute(module, path), requires) for path, requires in script.requires.items()]
        self._functions: dict[tuple[tuple[str, ...], tuple[int, ...]], GraphFunction] = {}
        is_pure = not (script.state or script.buffers) and script.result is None
        is_plain = (
            is_pure and not script.compares and all(parameter.type == "Tensor" for parameter in script.parameters)
        )
        self.tensors = len(script.parameters) if is_plain else None

    def holds(self) -> bool:
        """True while the module holds what it held."""
        if self._grad_mode is not None and self._grad_mode != _gradient_mode():
            return False
        if not all(map(operator.is_, map(operator.call, self._held), self._tensors)) or not self._memories.are_same():
            return False
        if any(place.get().requires_grad != requires for place, requires in self._requires):
            return False
        return all(_is_same(place.get(), value) for place, value in self._attributes)

    def function(self, tensors: tuple[str, ...] = (), same: tuple[int, ...] = ()) -> GraphFunction:
        """The function of the graph, with these parameters or buffers as further arguments.

        ``same``: which arguments are the same object; see `ScriptGraph.with_arguments`.
        """
        function = self._functions.get((tensors, same))
        if function is None:
            graph = self.script.with_arguments(tensors, same)
            function = self._functions[tensors, same] = function_of(ImportedScript(graph), self._options)
        return function


class ScriptFunction(OuterFunction):
    """A function of TorchScript, or a method of one of its modules.

    Args:
        function: the function or method, with ``inlined_graph`` and ``schema``.
        module: whose method it is; None = a function.
        source: what it is, for users.
        options: of the function.

    Raises TraceError for graphs with operators that are not supported.
    """

    def __init__(self, function: Any, module: Any, source: str, options: Options) -> None:
        self._script, self._module, self._source = function, module, source
        self._options = replace(options, unsupported="raise")
        self.__name__ = self.__qualname__ = options.name
        self._variants = [self._read()]  # the one used last comes first
        self._function = self._variants[0].function()

    def _read(self) -> _Variant:
        script = read_script(self._script, self._module, self._options.name, self._source)
        return _Variant(script, self._module, self._options)

    def _variant(self) -> _Variant:
        """The graph for what the module holds now."""
        for k, variant in enumerate(self._variants):
            if variant.holds():
                if k:
                    self._variants.insert(0, self._variants.pop(k))
                return variant
        self._variants = [self._read(), *self._variants[: _VARIANTS - 1]]
        return self._variants[0]

    # --- calls ----------------------------------------------------------------------------------

    @unseen_by_dynamo
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call as in torch, with tensors or arrays.

        Results are tensors, but arrays where arguments are arrays and no tensors. Raises GradientError for
        tensors that require gradients while torch records them, TraceError for what no graph can hold.
        """
        return apart(self._call, {}, args, kwargs)

    def functional_call(self, tensors: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Call with other parameters or buffers in the place of those with these names, as `torch.func` does.

        Gradients of parameters are those of this function's first argument. Raises ArgumentError for
        names of parameters and buffers that the function does not read.
        """
        return apart(self._call, tensors, args, kwargs)

    def tensors(self) -> dict[str, np.ndarray]:
        """The parameters and buffers that the function reads, as arrays of their memory."""
        script = self._variant().script
        return {path: script.graph.constants[number] for path, number in script.tensors.items()}

    def _call(self, tensors: Mapping[str, Any], args: tuple, kwargs: dict[str, Any]) -> Any:
        variant = self._variant()
        if len(args) == variant.tensors and not (tensors or kwargs) and all(map(has_axes, args)):
            self._function = function = variant.function()
            return function(*args)
        script, names = variant.script, tuple(tensors)
        unknown = [name for name in names if name not in script.tensors]
        if unknown:
            raise ArgumentError(f"{self.__name__} reads no parameter or buffer named {unknown[0]}")
        is_traced = current() is not None
        if (script.state or script.buffers) and is_traced:
            raise TraceError(
                f"{self.__name__} changes {', '.join((*script.state, *script.buffers))} of its module, and is "
                "called while tracing",
                hint="call it outside of jitted and differentiated functions",
            )
        bound = self._bound(args, kwargs)
        values = [argument_of(value, parameter) for value, parameter in zip(bound, script.parameters, strict=True)]
        takes_arrays = holds_any(values, is_array) and not holds_any(values, is_tensor)
        exchanged: dict[int, tuple[np.ndarray, Any]] = {}
        values += [with_arrays(place.get(), exchanged) for place in (*variant.buffers, *variant.state)]
        if not is_traced and not takes_arrays:
            values = [with_arrays(value, exchanged) for value in values]
        values += tensors.values()
        same = _same_objects(bound) if script.compares else ()
        self._function = function = variant.function(names, same)
        if not is_traced:
            note_writes([*(bound[k] for k in script.written), *(place.get() for place in variant.buffers)])
        results = function(*(x for k, x in enumerate(values) if k >= len(same) or same[k] == k))
        if script.state:
            results, *state = results
            for place, value in zip(variant.state, state, strict=True):
                place.set(with_tensors(value, exchanged))
        if not is_traced and not takes_arrays:
            results = with_tensors(results, exchanged)
        return shaped(results, script.result)

    def _bound(self, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
        """The arguments in order; raises ArgumentError where they do not fit the parameters."""
        parameters = self._variants[0].script.parameters
        if len(args) > len(parameters):
            raise ArgumentError(f"{self.__name__} takes {len(parameters)} arguments, {len(args)} were given")
        values = list(args)
        for parameter in parameters[len(args) :]:
            if parameter.name in kwargs:
                values.append(kwargs.pop(parameter.name))
            elif parameter.has_default:
                values.append(parameter.default)
            else:
                raise ArgumentError(f"{self.__name__} needs an argument {parameter.name}")
        if kwargs:
            raise ArgumentError(f"{self.__name__} takes no argument {next(iter(kwargs))}, or it is given twice")
        return values

    def warmup(self, *args: Any, **kwargs: Any) -> None:
        """Call with these arguments until their optimised plan exists; drops the results, and puts state back."""
        variant = self._variant()
        state = [(place, copy.deepcopy(place.get())) for place in variant.state]
        buffers = [(place.get(), place.get().detach().clone()) for place in variant.buffers]
        for _ in range(self._options.recorded_runs + 1):
            self(*args, **kwargs)
            self.wait()
            for place, value in state:
                place.set(copy.deepcopy(value))
            for tensor, contents in buffers:
                tensor.data.copy_(contents)

    def save(self, path: str | os.PathLike) -> None:
        """Write graph, parameters, profiles and compiled code to one file, for processes without torch.

        See `GraphFunction.save`.

        Raises ArgumentError before the first call, for functions with state, and for results with named tuples.
        """
        variant = self._variant()
        script, name = variant.script, self.__name__
        hint = "save the module by torch.jit.save; what has been compiled is in the disk cache"
        if script.state or script.buffers:
            raise ArgumentError(
                f"{name} changes {', '.join((*script.state, *script.buffers))} of its module", hint=hint
            )
        if "named" in repr(script.result):
            raise ArgumentError(f"results of {name} are named tuples, whose classes no file has", hint=hint)
        (self._function if script.compares else variant.function()).save(path)

    def __repr__(self) -> str:
        return f"<profuse {self._source}>"


class ScriptModule(ScriptFunction):
    """A module of TorchScript: its method ``forward``; other methods of it are attributes.

    Args:
        module: a `torch.jit.ScriptModule`.
        source: what it is, for users.
        options: of all methods.

    Attributes:
        module: the module of torch, whose memory parameters share and which holds the state.
    """

    def __init__(self, module: Any, source: str, options: Options) -> None:
        self.module, self._methods = module, dict[str, ScriptFunction]()
        # A recurrent layer has a method for each kind of its input, and torch itself calls none; tensors come first.
        is_overloaded = not module._c._has_method("forward") and module._c._has_method("forward__0")
        super().__init__(_method(module, "forward__0" if is_overloaded else "forward"), module, source, options)

    def __getattr__(self, name: str) -> Any:
        """A method of the module by its name."""
        if name.startswith("_") or name == "module" or not self.module._c._has_method(name):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        method = self._methods.get(name)
        if method is None:
            options = replace(self._options, name=f"{self._options.name}.{name}")
            method = ScriptFunction(
                _method(self.module, name), self.module, f"method {name} of {self._source}", options
            )
            self._methods[name] = method
        return method


def _method(module: Any, name: str) -> Any:
    if not module._c._has_method(name):
        raise ArgumentError(
            f"the module has no method {name}", hint=f"its methods are {', '.join(module._c._method_names())}"
        )
    method = module._c._get_method(name)
    if not hasattr(method, "inlined_graph"):
        raise ArgumentError(f"torch gives no graph of the method {name}")
    return method


def _is_same(a: Any, b: Any) -> bool:
    """True for equal attributes; tensors in them are the same if their memory is."""
    if type(a) is not type(b):
        return False
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(_is_same(a[key], b[key]) for key in a)
    return a.data_ptr() == b.data_ptr() if is_tensor(a) else a == b or (a != a and b != b)


def _gradient_mode() -> bool:
    import torch

    return torch.is_grad_enabled()


def _same_objects(values: list[Any]) -> tuple[int, ...]:
    """For each argument the number of the first one that is the same tensor."""
    return tuple(
        next(j for j in range(k + 1) if values[j] is value and (j == k or has_axes(value)))
        for k, value in enumerate(values)
    )


def script_function(script: Any, options: Options, source: str | None = None) -> ScriptFunction:
    """A `torch.jit.ScriptModule` or `ScriptFunction` as a function of this package.

    Raises ArgumentError for anything else.
    """
    name = getattr(script, "original_name", None) or getattr(script, "name", None) or "script"
    options = options if options.name != "main" else replace(options, name=str(name))
    if hasattr(script, "_c") and hasattr(script, "named_modules"):
        return ScriptModule(script, source or f"the TorchScript module {name}", options)
    if hasattr(script, "inlined_graph") and hasattr(script, "schema"):
        return ScriptFunction(script, None, source or f"the TorchScript function {name}", options)
    raise ArgumentError(
        f"an object of type {type(script).__name__} is no module or function of TorchScript",
        hint="make one by torch.jit.script or torch.jit.trace, or use pf.torch.compile",
    )
