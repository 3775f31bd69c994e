"""Calls with tensors of other libraries in host memory: those of arrays of the same memory.

The function gets arrays, be it traced or run by Python, so that its results do not depend on who
serves a call; what it gives of arrays becomes tensors. The graphs are those of calls with arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...dialect.errors import ArgumentError, GradientError, ProfuseError, TraceError
from ...dialect.importers.numpy.tracing.current import current
from ...dialect.importers.numpy.tracing.operators import as_value, wrap
from ...dialect.trees.containers import Container, container_of
from ...dialect.trees.pytree import TreeDef
from ..arguments.plain_calls import flat_key
from ..exchange.host_tensors import TensorClass, array_of, is_lazy, note_write, returned, tensor_type
from ..routing.ledger import NoGraph
from ..routing.verdict import Cause
from .device_arguments import PLAIN_KINDS
from .graphs import Graphs, kinds_of
from .in_python import Arguments, PythonCalls

Run = Callable[[tuple, dict[str, Any]], Any]
_MOST_LOOKS = 256  # kinds of calls of which it is kept that they have been looked at
_MOST_PATTERNS = 4  # of which arguments are tensors, per graph, for which there is emitted code


class _Exchanged:
    """The arguments of one call with arrays in place of tensors, and the way back.

    Args:
        is_detached: gradients that tensors require do not matter.

    Attributes:
        types: the types of the tensors.
        tensors: by identity, arrays with the tensors that stand for them.
        copies: how many tensors were copied.
        is_undone: Python has run the call with the tensors themselves.
    """

    def __init__(self, args: tuple, kwargs: dict[str, Any], *, is_detached: bool = False) -> None:
        self._is_detached = is_detached
        self._own: Arguments = (args, kwargs)
        self._given: Arguments = ((), {})
        self.is_undone = False
        self._made: dict[int, tuple[Any, Any]] = {}
        self._containers: list[tuple[Any, Any, Container, Any, list]] = []
        self._returned: dict[int, tuple[Any, Any]] = {}
        self.types: dict[TensorClass, None] = {}
        self.tensors: dict[int, tuple[np.ndarray, Any]] = {}
        self.copies = 0

    def call(self) -> Arguments:
        """The arguments with arrays in place of tensors."""
        args, kwargs = self._own
        self._given = tuple([self.arrays(x) for x in args]), {name: self.arrays(x) for name, x in kwargs.items()}
        return self._given

    def undone(self, args: tuple, kwargs: dict[str, Any]) -> Arguments:
        """The arguments as the caller has them, for those of the call; for any others these themselves."""
        (own, own_named), (arrays, named) = self._own, self._given
        first = len(arrays) - len(args)  # where results are written comes first, and is no argument of the function
        pairs = [*zip(arrays[first:], args, strict=True), *((x, kwargs.get(name)) for name, x in named.items())]
        if len(kwargs) != len(named) or any(a is not b for a, b in pairs):
            return args, kwargs
        self.is_undone = True
        return own[first:], own_named

    def arrays(self, value: Any) -> Any:
        """An argument with arrays in place of tensors; the same object if it holds none."""
        kind = type(value)
        if kind in PLAIN_KINDS:
            return value
        entry = self._made.get(id(value))
        if entry is not None:
            return entry[1]
        type_ = tensor_type(kind)
        if type_ is not None:
            return self._array(value, type_)
        container = container_of(value)
        if container is None:
            return value
        meta, items = container.apart(value)
        new = [self.arrays(item) for item in items]
        if all(a is b for a, b in zip(new, items, strict=True)):
            return value
        copy = container.made(meta, new)
        self._made[id(value)] = value, copy
        self._containers.append((value, copy, container, meta, new))
        self._returned[id(copy)] = copy, value
        return copy

    def _array(self, tensor: Any, type_: TensorClass) -> Any:
        self.types[type_] = None
        if type_.refused:
            return tensor
        array: Any = array_of(tensor, type_, is_detached=self._is_detached)
        if array is None:
            return tensor
        self.copies += not array.flags.writeable and is_lazy(tensor, type_)
        self.tensors[id(array)] = array, tensor
        recorder = current()
        if recorder is not None:
            array = wrap(recorder, as_value(recorder, tensor))
        self._made[id(tensor)] = tensor, array
        return array

    def note(self, array: np.ndarray, tensor: Any) -> None:
        """Have a tensor that the function closes over be what stands for an array of it in the results."""
        self.tensors[id(array)] = array, tensor

    def back(self, value: Any, type_: TensorClass) -> Any:
        """A result with tensors in place of arrays, an argument as the caller has it."""
        kind = type(value)
        if kind is np.ndarray or issubclass(kind, np.generic):
            entry = self.tensors.get(id(value))
            if entry is None:  # one array is one tensor, wherever it is in the results
                entry = self.tensors[id(value)] = value, returned(value, type_)
            return entry[1]
        if kind in PLAIN_KINDS:
            return value
        if id(value) in self._returned:
            return self._returned[id(value)][1]
        container = container_of(value)
        if container is None:
            return value
        meta, items = container.apart(value)
        new = [self.back(item, type_) for item in items]
        result = value if all(a is b for a, b in zip(new, items, strict=True)) else container.made(meta, new)
        self._returned[id(value)] = value, result
        return result

    def write_back(self, type_: TensorClass) -> None:
        """Have the containers of the caller hold what the function has put into those that it got.

        Raises TraceError for a changed object of a class whose parts a function of the user's names.
        """
        for original, copy, container, meta, items in self._containers:
            if type(original) is tuple:
                continue
            now_meta, now = container.apart(copy)
            if now_meta == meta and len(now) == len(items) and all(a is b for a, b in zip(now, items, strict=True)):
                continue
            if isinstance(original, list):
                original[:] = [self.back(x, type_) for x in now]
            elif isinstance(original, dict):
                new = {key: self.back(x, type_) for key, x in copy.items()}
                original.clear()
                original.update(new)
            elif container.kind in ("dataclass", "namespace"):
                for name in set(meta[1]).difference(now_meta[1]):
                    object.__delattr__(original, name)
                for name, x in zip(now_meta[1], now, strict=True):
                    object.__setattr__(original, name, self.back(x, type_))
            else:
                raise TraceError(
                    f"the function changes a {type(original).__name__} that holds tensors",
                    hint="return what is new in place of storing it there",
                )


class TensorCalls:
    """Runs calls of one function with tensors.

    Args:
        graphs: of the function.
        python: runs calls in Python.
    """

    def __init__(self, graphs: Graphs, python: PythonCalls) -> None:
        self._graphs, self._python = graphs, python
        self._own: ProfuseError | None = None  # why the function gets tensors themselves
        self._looked: set[Any] = set()
        # What arguments are -> how many graphs there were, and the arguments that these write to.
        self._settled: dict[tuple | None, tuple[int, tuple[int, ...]]] = {}

    def call(self, args: tuple, kwargs: dict[str, Any], run: Run, run_as_is: Run, first: int = 0) -> Any:
        """The result of a call: tensors where the function gives arrays and NumPy scalars.

        Args:
            args: the arguments by position.
            kwargs: those by name.
            run: runs the call with arrays in place of tensors of the host.
            run_as_is: runs a call without such tensors, as one with those of a device, or in a trace.
            first: the number of the function's first argument: 1 in calls of `into`, which write to what is before.

        Raises ArgumentError for tensors of several libraries, and what `array_of` raises.
        """
        if self._own is not None and current() is None:
            return self._as_given(self._own, args, kwargs, first)
        exchanged = _Exchanged(args, kwargs)
        try:
            arrays, named = exchanged.call()
        except GradientError:
            detached = _Exchanged(args, kwargs, is_detached=True)
            arrays, named = detached.call()
            if self._is_own(detached, arrays[first:], named):
                return self._as_given(self._own, args, kwargs, first)
            raise
        refused = next((type_.refused for type_ in exchanged.types if type_.refused), "")
        if refused:
            error = ArgumentError(refused, hint="pass a plain tensor: x.as_subclass(torch.Tensor)")
            return self._as_given(error, args, kwargs, first)
        libraries = list(dict.fromkeys(type_.library for type_ in exchanged.types))
        if len(libraries) > 1:
            raise ArgumentError(
                f"tensors of {' and of '.join(libraries)} are arguments of one call: of which the results are, "
                "nobody has said",
                hint="pass tensors of one library",
            )
        if current() is not None or not exchanged.tensors:
            return run_as_is(arrays, named)
        type_ = next(iter(exchanged.types))
        flat = None if named or (key := flat_key(arrays)) is None else (key, *map(type, args))
        count, writes = self._settled.get(flat, (-1, ()))
        is_known = self._graphs.made == count
        if not is_known and self._is_own(exchanged, arrays[first:], named):
            return self._as_given(self._own, args, kwargs, first)
        leaves = None if is_known else self._flat(arrays, named)
        self._graphs.own.input_copies += exchanged.copies
        for k in writes if is_known else ():  # also of a call that raises behind its write
            note_write(args[k])
        exchanging = self._python.exchanging
        before, exchanging.call = exchanging.call, exchanged
        try:
            result = run(arrays, named)
        except BaseException:
            if not exchanged.is_undone:
                if leaves is not None:
                    self._note(exchanged, *leaves)
                exchanged.write_back(type_)
            raise
        finally:
            exchanging.call = before
        if exchanged.is_undone:
            return args[0] if first else result
        if leaves is not None:
            writes = self._note(exchanged, *leaves)
            if flat is not None:
                if len(self._settled) >= _MOST_LOOKS:
                    self._settled.clear()
                self._settled[flat] = self._graphs.made, writes
        exchanged.write_back(type_)
        return exchanged.back(result, type_)

    def arrays(self, value: Any) -> Any:
        """What Python has given, with arrays in place of tensors; raises what `array_of` raises."""
        return _Exchanged((value,), {}).call()[0][0]

    def _flat(self, args: tuple, kwargs: dict[str, Any]) -> tuple[list, TreeDef] | None:
        try:
            return self._graphs.source.flatten(self._graphs, args, kwargs)
        except (ProfuseError, NoGraph):
            return None  # what no graph takes

    def _is_own(self, exchanged: _Exchanged, args: tuple, kwargs: dict[str, Any]) -> bool:
        """True if the function computes with tensors themselves, of which its trace tells.

        ``args``, ``kwargs``: with arrays in place of tensors.
        """
        flat = self._flat(args, kwargs) if self._own is None and exchanged.tensors else None
        if flat is not None:
            self._look(next(iter(exchanged.types)), *flat, args, kwargs)
        return self._own is not None

    def _look(self, type_: TensorClass, leaves: list, tree: TreeDef, args: tuple, kwargs: dict[str, Any]) -> None:
        """Trace calls of a new kind, to see whether the function computes with tensors themselves."""
        graphs, key = self._graphs, (tree, kinds_of(leaves))
        if key in self._looked or not graphs.source.stands_for_python or graphs.raises:
            return
        if len(self._looked) >= _MOST_LOOKS:
            self._looked.clear()
        self._looked.add(key)
        if graphs.variants.get(key):
            return
        try:
            graphs.lookup(None, leaves, tree, args, kwargs)
        except NoGraph as refused:
            error, raised = refused.error, refused.raised
            if isinstance(error, TraceError) and error.library == type_.library:
                self._own = error
            elif isinstance(raised, AttributeError) and hasattr(type_.kind, raised.name or ""):
                self._own = TraceError(
                    f"{raised.name} is an attribute of tensors, and arrays have none of that name",
                    hint="write the function in NumPy, or compile one that is written in torch by pf.torch.compile",
                )
        except ProfuseError:
            return  # the call itself raises it

    def _as_given(self, error: ProfuseError | None, args: tuple, kwargs: dict[str, Any], first: int) -> Any:
        """Have Python run a call with the tensors themselves; raises the error where Python may not."""
        assert error is not None
        if self._graphs.raises:
            raise error
        self._graphs.ledger.tell(error)
        result = self._python.refuse(NoGraph(Cause.NO_GRAPH, error), args[first:], kwargs)
        if not first:
            return result
        self._python.put(self.arrays(result), self.arrays(args[0]))
        return args[0]

    def _note(self, exchanged: _Exchanged, leaves: list, tree: TreeDef) -> tuple[int, ...]:
        """Note which arguments are tensors, for emitted code, and which of them have been written to.

        Returns the numbers of the leaves that were tensors and are written to.
        """
        graphs = self._graphs
        tensors = [exchanged.tensors.get(id(leaf), (leaf, None))[1] for leaf in leaves]
        pattern = tuple([None if tensor is None else tensor_type(type(tensor)) for tensor in tensors])
        writes: set[int] = set()
        for variant in graphs.variants.get((tree, kinds_of(leaves)), ()):
            writes.update(k for k in variant.trace.writes if k < len(tensors) and tensors[k] is not None)
            if pattern not in variant.patterns and len(variant.patterns) < _MOST_PATTERNS:
                variant.patterns = (*variant.patterns, pattern)
                graphs.changes += 1
        for k in writes:
            note_write(tensors[k])
        return tuple(writes)
