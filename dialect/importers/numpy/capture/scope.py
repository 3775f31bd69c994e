"""The world that a traced function sees: its own globals, cells and defaults, with substitutes.

A trace runs the user's code object in a new function whose globals are a `dict` subclass: reads of
globals ask it (`LOAD_GLOBAL` does for all but exact dicts), so that NumPy's creation functions,
clocks and the like are substituted *by value* for this code, in this trace, and for nobody else.
Functions of the user's that it calls get the same treatment; C code and libraries get none.
"""

from __future__ import annotations

import builtins
import functools
import types
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dataclass import dataclass
from ..handlers import all_handlers  # noqa: F401
from ..python.instances import PLAIN_TYPES, kept
from ..python.objects import TABLE
from ..python.pausing import apart
from ..python.purity import CACHED, CODE, is_pure_class
from ..python.users_code import IS, SOURCE, is_users_class, is_users_file, is_users_name
from ..tracing.current import HOW_TO_BE_READ, trace_error, world_error
from ..world.opaque import Hidden, hidden_error, is_hidden
from ..world.places import MISSING, Place, StateRead, cell_place
from ..world.substitutes import BUILTINS, conversion, substitute, unknown
from .code_names import asked_by
from .method_calls import (
    CALLEE,
    asks_identities,
    asks_source,
    codes_in,
    has_identities,
    is_unread,
    values_in,
    with_callees,
)

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder
    from .imports import Imports

_MISSING = object()
_NUMBERS = frozenset({int, float, bool, complex})
_PLAIN = PLAIN_TYPES | {np.ufunc, np.dtype}
# What is looked at, and copied, by this package's own code alone.
_OF_NO_CODE = frozenset(
    {
        *(list, dict, tuple, set, type, types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
        *(np.ndarray, np.ufunc, type(np.sum)),
    }
)
# Names that are no variables of the user's; C code that imports asks for the last.
_PROVIDED = frozenset({CALLEE, SOURCE, IS, "__builtins__"})


class Globals(dict):
    """A module's globals for one trace: reads are substituted, writes stay here."""

    __slots__ = ("absent", "real", "scope", "seen", "start")

    def __init__(self, scope: TraceScope, real: dict[str, Any]) -> None:
        super().__init__(real)
        dict.__setitem__(self, "__builtins__", scope.builtins)
        dict.__setitem__(self, CALLEE, scope.called)
        self.scope, self.real = scope, real
        self.start = dict(self)
        self.seen: set[str] = set()
        self.absent: set[str] = set()  # names that the code has read, and that are not bound

    def __getitem__(self, name: str) -> Any:
        value = dict.get(self, name, _MISSING)
        if name in _PROVIDED:
            return value
        if value is _MISSING:
            if name not in self.scope.builtins:
                self.absent.add(name)
            raise KeyError(name)
        if name not in self.seen:
            self.seen.add(name)
            self.scope.watch(value, name)
        if type(value) in _OF_NO_CODE:
            return apart(self.scope.given, value, name)
        return self.scope.given(value, name)

    def provide(self, name: str, value: Any) -> None:
        """Let the code read a name that the module does not have."""
        if name not in self.start:
            dict.__setitem__(self, name, value)
            self.start[name] = value

    def written(self) -> list[str]:
        """Names that the traced code has assigned."""
        return [
            name
            for name in {**self.start, **self}
            if dict.get(self, name, _MISSING) is not self.start.get(name, _MISSING) and name != "__warningregistry__"
        ]


@dataclass(eq=False)
class _Cell:
    """A closure cell, and the one that the traced code has in its place."""

    original: types.CellType
    substitute: types.CellType
    name: str
    held: Any = _MISSING  # by the original when the traced code got the other one
    shadow: Any = _MISSING  # of what was held, as the code got it
    filled: bool = False


class TraceScope:
    """The substitutes of one trace, made as they are needed."""

    def __init__(self, rec: Recorder, fn: Callable) -> None:
        self._rec = rec
        module = getattr(fn, "__module__", None) or type(fn).__module__
        self._package = module.partition(".")[0]  # of the traced function; it counts as the user's
        builtin = vars(builtins)
        self.builtins = {**builtin, **BUILTINS}
        self._globals: dict[int, Globals] = {}
        self._functions: dict[int, tuple[Any, Any]] = {}
        # Of functions and modules in whose place code gets others: those that it takes as values
        # by name, and those that it gets themselves. `is` would tell the two apart.
        self._taken: dict[int, Any] = {}
        self._taken_of_modules: frozenset[str] = frozenset()  # names of what these have
        self._reached: dict[int, Any] = {}
        self._cells: dict[int, _Cell] = {}
        self._answers: list[StateRead] = []  # of what keeps its results
        self._imports: Imports | None = None
        self.codes: list[types.CodeType] = []
        self.unread = ""  # a sentence on the last function whose source cannot be read

    # --- what is handed to the user's code ----------------------------------------------------

    def watch(self, value: Any, name: str) -> None:
        """Remember what a value that the function reads holds now (see `journal`)."""
        self._rec.journal.watch(value, name)

    def given(self, value: Any, name: str) -> Any:
        """The object that the user's code gets for a value that it reads by name."""
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is types.FunctionType:
            return self.function(value)
        if kind is types.MethodType or kind is functools.partial or kind is CACHED:
            return self.callee(value, called=False)
        stand_in = substitute(value)
        if stand_in is value and isinstance(value, type):
            _check_class(value)
        return self._shadow(value, name) if stand_in is value else stand_in

    def _shadow(self, value: Any, name: str) -> Any:
        shadows = self._rec.shadows
        if shadows is not None:
            return shadows.of(value, name)
        return Hidden(value, name) if is_hidden(value, type(value)) else value

    def callee(self, value: Any, called: bool = True) -> Any:
        """The callable in place of ``value``; it raises TraceError if that must not be called."""
        kind = type(value)
        if called and isinstance(value, type):
            _check_class(value)
        if kind is types.FunctionType:
            return self.function(value)
        if kind is types.MethodType:
            function = self.callee(value.__func__, called=False)
            if function is not value.__func__:
                return types.MethodType(function, self._shadow(value.__self__, "self"))
        elif kind is functools.partial:
            function = self.callee(value.func, called=False)
            if function is not value.func:
                args = [self._shadow(arg, "an argument") for arg in value.args]
                kwargs = {k: self._shadow(v, k) for k, v in value.keywords.items()}
                copy = functools.partial(function, *args, **kwargs)
                copy.__dict__.update(vars(value))
                return copy
        elif kind is CACHED:
            return self._cached(value)
        elif called and isinstance(value, type):
            return conversion(value) if value in _NUMBERS else self._constructor(value)
        stand_in = substitute(value)
        if not called or stand_in is not value:
            return stand_in
        function = getattr(kind, "__call__", None)  # noqa: B004
        if type(function) is types.FunctionType and self._is_users(function):
            return types.MethodType(self.function(function), self._shadow(value, "self"))
        return value

    def called(self, value: Any) -> Any:
        """The callable in place of what the user's code is about to call."""
        return apart(self.callee, value) if type(value) in _OF_NO_CODE else self.callee(value)

    def function(self, fn: types.FunctionType) -> Any:
        """The function in place of ``fn``: a copy of a user's, or the substitute of a library's."""
        globals_ = fn.__globals__
        if type(globals_) is Globals:
            if globals_.scope is self:
                return fn
            globals_ = globals_.real
        entry = self._functions.get(id(fn))
        if entry is not None:
            return entry[1]
        if not self._is_users(fn):
            return substitute(fn)
        self._take(fn)
        table = self._of(globals_)
        options = self._rec.policy is not None, "branches" in self._rec.memory
        code = with_callees(fn, *options)
        if is_unread(fn, *options):
            self._note_unread(fn)
        if asks_source(code):
            table.provide(SOURCE, self._source())
        if asks_identities(code):
            from ..world.identities import is_same  # few functions ask

            table.provide(IS, is_same)
        elif any(map(has_identities, codes_in(fn.__code__))):
            self._rec.asks_unseen = True
        self.codes.append(code)
        self._rec.journal.ask(*asked_by(code))
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True))
        # Cells are shared among functions, and may hold the function itself.
        closure = [self._cell(cells[name], name) for name in code.co_freevars]
        copy = types.FunctionType(code, table, fn.__name__, None, tuple(c.substitute for c in closure))
        self._functions[id(fn)] = (fn, copy)
        if self._rec.shadows is not None:
            self._rec.shadows.stands_for(copy, fn)
        for cell in closure:
            self._fill(cell)
        if fn.__defaults__:
            last = code.co_varnames[: code.co_argcount][-len(fn.__defaults__) :]
            copy.__defaults__ = tuple(map(self._read, fn.__defaults__, last))
        if fn.__kwdefaults__:
            copy.__kwdefaults__ = {k: self._read(v, k) for k, v in fn.__kwdefaults__.items()}
        for name in ("__qualname__", "__doc__", "__module__", "__annotations__"):
            setattr(copy, name, getattr(fn, name))
        copy.__dict__ = fn.__dict__
        self._rec.journal.watch(fn, fn.__name__)
        return copy

    def reached(self, fn: types.FunctionType, name: str) -> Any:
        """The function that the user's code gets for a function that an object holds."""
        if not self._is_users(fn):
            return substitute(fn)
        if id(fn) in self._taken:
            return self.function(fn)
        self._reached[id(fn)] = fn
        return fn

    def check_reached(self, value: Any) -> None:
        """Raise TraceError for a function that code gets itself, past the shadows, and must not.

        It is in a class, or code that Python calls has taken it: its copy would be another one, and
        what C code calls, as `functools.partial` and `itertools.starmap` do, nobody sees.
        """
        if (why := unknown(value)) is not None:
            raise world_error(*why)
        is_users = type(value) is types.FunctionType and self._is_users(value)
        if not is_users and substitute(value) is value:
            return
        is_of_module = not is_users and value.__name__ in self._taken_of_modules
        if id(value) in self._taken or is_of_module:
            raise _of_two_identities(value)
        self._reached[id(value)] = value

    def _take(self, fn: types.FunctionType) -> None:
        """Note the functions and modules that code takes as values, by name or as a default."""
        names, attributes = values_in(fn.__code__)
        cells = _variables(fn)
        values = [cells.get(name, fn.__globals__.get(name)) for name in names]
        for value in (*values, *(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            if id(value) in self._reached:
                raise _of_two_identities(value)
            if isinstance(value, CODE):
                self._taken[id(value)] = value
        self._taken_of_modules |= attributes

    def _note_unread(self, fn: types.FunctionType) -> None:
        """Tell of a function of which neither loops nor branches are recorded as such."""
        place = f"{fn.__code__.co_filename}:{fn.__code__.co_firstlineno}"
        self.unread = f"the source of {fn.__name__} ({place}) cannot be read"
        self._rec.remark(
            f"{self.unread}: its loops are recorded round by round, and branches on contents are "
            f"Python's; {HOW_TO_BE_READ}"
        )

    def _source(self) -> Any:
        if self._rec.source is None:
            from ..source.source import ConvertedSource  # which few functions need

            self._rec.source = ConvertedSource(self._rec)
        return self._rec.source

    def _is_users(self, fn: types.FunctionType) -> bool:
        module = dict.get(fn.__globals__, "__name__") or ""  # __module__ is copied by decorators
        if not is_users_name(module):
            return False
        return is_users_file(fn.__code__.co_filename) or module.partition(".")[0] == self._package

    def _of(self, real: dict[str, Any]) -> Globals:
        table = self._globals.get(id(real))
        if table is None:
            table = self._globals[id(real)] = Globals(self, real)
        return table

    def _read(self, value: Any, name: str) -> Any:
        self.watch(value, name)
        return self.given(value, name)

    def _cell(self, cell: types.CellType, name: str) -> _Cell:
        entry = self._cells.get(id(cell))
        if entry is None:
            entry = self._cells[id(cell)] = _Cell(cell, types.CellType(), name)
        return entry

    def _fill(self, cell: _Cell) -> None:
        if not cell.filled:
            cell.filled = True
            try:
                value = cell.original.cell_contents
            except ValueError:
                return  # not bound yet
            cell.held, cell.shadow = value, self._read(value, cell.name)
            cell.substitute.cell_contents = cell.shadow

    def _cached(self, value: Any) -> Callable:
        """A wrapper of a user's ``lru_cache``, whose answers calls compare."""
        entry = self._functions.get(id(value))
        if entry is None:
            from .kept_answers import answering  # few functions keep their results

            entry = self._functions[id(value)] = value, answering(self._rec, value, self._answers, self._shadow)
        return entry[1]

    def _constructor(self, cls: type) -> Any:
        """A class, or a function that makes its instances with this trace's ``__init__``."""
        init = cls.__init__  # type: ignore[misc]
        if (
            type(cls) is not type
            or cls.__new__ is not object.__new__
            or type(init) is not types.FunctionType
            or not self._is_users(init)
        ):
            return substitute(cls)
        initialise = self.function(init)

        def construct(*args: Any, **kwargs: Any) -> Any:
            instance: Any = object.__new__(cls)
            if self._rec.shadows is not None:
                self._rec.shadows.leave(instance)
            initialise(instance, *args, **kwargs)
            return instance

        return construct if not getattr(cls, "__abstractmethods__", None) else cls

    @property
    def imports(self) -> Imports:
        """What the code imports."""
        if self._imports is None:
            from .imports import Imports  # few functions import anything

            self._imports = Imports(self._rec)
        return self._imports

    # --- what the user's code did -------------------------------------------------------------

    def read(self) -> Iterator[StateRead]:
        """The values that the code has read by name."""
        for table in self._globals.values():
            for name in sorted(table.seen & table.real.keys()):
                yield StateRead(Place(TABLE, table.real, name, name), table.start.get(name))
            for name in sorted(table.absent):
                yield StateRead(Place(TABLE, table.real, name, name), MISSING)
        for cell in self._cells.values():
            if cell.held is not _MISSING:
                yield StateRead(cell_place(cell.original, cell.name), cell.held)
        yield from self._answers
        if self._imports is not None:
            yield from self._imports.reads()

    def assigned(self) -> list[tuple[str, str]]:
        """Kind and name of each global and nonlocal variable that the traced code has assigned."""
        out = [("global", name) for table in self._globals.values() for name in table.written()]
        for cell in self._cells.values():
            try:
                value = cell.substitute.cell_contents
            except ValueError:
                value = _MISSING
            if value is not cell.shadow:
                out.append(("nonlocal", cell.name))
        return out


def _check_class(cls: type) -> None:
    """Raise TraceError for a class whose objects may do what nobody sees, or at no known moment."""
    if not is_pure_class(cls):
        raise hidden_error(cls.__name__, cls)
    if any("__del__" in vars(base) for base in cls.__mro__) and is_users_class(cls):
        raise world_error(
            f"{cls.__name__} has a __del__: it would run for an object that a trace has made, and at no later call",
            "make the objects outside of the function",
        )


def _variables(fn: types.FunctionType) -> dict[str, Any]:
    """The objects that the free variables of a function are bound to."""
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    return {name: kept(cell, "cell_contents") for name, cell in cells}


def _of_two_identities(value: Any) -> Exception:
    return trace_error(
        f"{value.__name__} is taken by its name, and is in an object too: a trace gives code "
        "something else in its place, and `is` would tell the two apart",
        "take it from one place",
    )
