"""The code that runs in the thread of a trace, whoever calls it: frames of Python, and calls of C functions.

A graph may hold for later calls only if all that its trace has done is in the graph, or compared.
The scope sees the code that it has made. Code that Python itself calls (properties, operators,
iteration, ``with``) and code that a library calls is seen here, by a profile function of the
thread: what such frames read by name is compared at each call, like all other reads, and a C
function that is not known to be pure (see `purity`) raises before it runs, so that the function is
Python's.

Frames of NumPy and of imports are units: nobody asks what they read. Those of this package belong
to the trace itself, and are mostly not watched (see `pausing`).
"""

from __future__ import annotations

import _lsprof
import abc
import dis
import functools
import inspect
import sys
import types
from typing import TYPE_CHECKING, Any

from ..python import purity
from ..python.instances import HEAP_TYPE
from ..python.objects import TABLE, facet_of_attribute
from ..python.pausing import WATCHES
from ..python.users_code import is_users_class
from ..tracing.current import trace_error, unknown_call, world_error
from ..world.opaque import hidden_error, is_hidden
from ..world.places import ANSWER, MISSING, Place, StateRead, cell_place
from ..world.substitutes import UNFOLLOWED
from .code_names import asked_by
from .method_calls import codes_in, has_identities, values_in
from .watched_frames import LIBRARY, OWN, UNIT, USERS, function_of, is_of_the_collector, owner_of, owners_above, wrapped

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder

_WRITES = {
    "STORE_GLOBAL": "the global variable",
    "DELETE_GLOBAL": "the global variable",
    "STORE_DEREF": "the variable of an enclosing function",
    "DELETE_DEREF": "the variable of an enclosing function",
}
_STORES = frozenset(
    number
    for name, number in dis.opmap.items()
    if name in ("STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "DELETE_SUBSCR", "STORE_SLICE")
)
_IMPORT = dis.opmap["IMPORT_NAME"]
_ASK_REGISTRY = tuple(vars(abc)[f"_abc_{name}"] for name in ("instancecheck", "subclasscheck"))
_ENDS = frozenset({"__exit__", "release"})


class TraceWatch:
    """The code that a trace has run and that its scope has not made.

    Args:
        rec: the trace.

    Attributes:
        codes: code of these frames, in the order in which they started.
        reads: what they may read by name.
        later: places of modules that they may have imported first.
        bindings: classes of the user's, and the names under which they have code that has run.
        is_on: the profile function is in force.
        pauses: it may be out of force while this package records.
    """

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self.codes: dict[types.CodeType, None] = {}
        self.reads: list[StateRead] = []
        self.later: list[Place] = []
        self.bindings: dict[tuple[type, str], None] = {}
        self.is_on, self.pauses = False, True
        self._known: set[int] = set()  # ids of code that has been looked at
        self._before: Any = None  # the profile function that was in force
        self._user: Any = None  # the same, if it is the user's
        self._writes = False  # code that is about to run assigns attributes or items
        self._values: frozenset[str] = frozenset()  # names whose values that code takes
        self._taken: set[str] = set()  # names of modules, and of what they have, among these
        self._asks_registry = False
        self._unshadowed = ""  # the name of an object that code got itself

    def __enter__(self) -> None:
        """Watch this thread. A profile function of the user's is called on, and set again."""
        before = self._before = sys.getprofile()
        other = getattr(before, "__self__", None)
        if isinstance(other, TraceWatch):
            other.is_on = False
        elif callable(before):
            self._user, self.pauses = before, False
        elif isinstance(before, _lsprof.Profiler):
            before.disable()  # it is written in C, and calls no other
        self.is_on = True
        sys.setprofile(self._event)

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)
        self.is_on = False
        before = self._before
        other = getattr(before, "__self__", None)
        if isinstance(other, TraceWatch):
            other.is_on = True
            sys.setprofile(before)
        elif callable(before):
            sys.setprofile(before)
        elif isinstance(before, _lsprof.Profiler):
            before.enable()

    # --- events -------------------------------------------------------------------------------

    def _event(self, frame: types.FrameType, event: str, arg: Any) -> None:
        if self._user is not None:
            self._user(frame, event, arg)
        if event == "c_call":
            owner = owner_of(frame.f_code.co_filename)
            if owner is OWN:
                return
            if arg in _ASK_REGISTRY:
                self._registry()
            if purity.is_pure_call(arg):
                return
            self._called(frame, arg)
        elif event == "call":
            code = frame.f_code
            owner = owner_of(code.co_filename)
            if owner is OWN:
                return
            if code.co_name == "__getattr__" and code.co_argcount == 2:
                self._missing(frame, code)
            if id(code) not in self._known:
                self._started(frame, code, owner)
            elif owner is LIBRARY and code.co_freevars:
                self._kept(frame, code)

    def _registry(self) -> None:
        """Note that it matters which classes are registered with abstract ones."""
        if not self._asks_registry:
            self._asks_registry = True
            holder = functools.partial(_is_token, abc.get_cache_token())
            self.reads.append(StateRead(Place(ANSWER, holder, None, "registered classes"), True))

    def _called(self, frame: types.FrameType, function: Any) -> None:
        """Raise TraceError where the user's code is about to call something that is not pure."""
        owners = list(owners_above(frame))
        if owners[-1] is not USERS or is_of_the_collector(frame):
            return
        if owners[0] is UNIT and purity.is_of_numpys(function):
            return
        is_pythons = owners[0] is LIBRARY and purity.is_pure_module(frame.f_globals["__name__"])
        if is_pythons and purity.is_of_pythons(function):
            return
        error = world_error(*unknown_call(purity.name_of(function)))
        error.library = (getattr(function, "__module__", None) or "").partition(".")[0]
        if function.__name__ in _ENDS:
            # Nobody sees a ``with`` begin in C code; what it holds has to be given back.
            self._rec.refused = self._rec.refused or error
            return
        raise error

    def _started(self, frame: types.FrameType, code: types.CodeType, owner: int) -> None:
        """Note what a frame may read by name that no scope has made."""
        if owner is UNIT:
            return
        if is_of_the_collector(frame):
            return
        space = frame.f_globals
        if owner is USERS:
            self._note_binding(frame, code)
            self._rec.journal.ask(*asked_by(code))
            if type(space) is not dict:
                if code.co_flags & inspect.CO_OPTIMIZED:
                    return  # the scope has made the function
                space = getattr(space, "real", space)  # text that is evaluated looks names up past the scope
        elif list(owners_above(frame))[-1] is not USERS:
            return
        self._known.add(id(code))
        self.codes[code] = None
        if owner is LIBRARY:
            self._rec.journal.ask(*asked_by(code))
            self._read_settings(code, space)
            self._kept(frame, code)
            return
        for kind, name in _writes(code):
            raise world_error(
                f"{kind} {name} is assigned by {code.co_name}, which Python calls: that would "
                "happen once, while tracing, and at no later call",
                "return the new value as a result, and assign it outside",
            )
        self._writes = any(map(stores, codes_in(code)))
        if any(map(has_identities, codes_in(code))):
            self._rec.asks_unseen = True
        names = {name for inner in codes_in(code) for name in inner.co_names}
        # What text and bodies of classes take as values is not followed.
        variables, attributes = values_in(code) if space is frame.f_globals else (frozenset[str](), frozenset[str]())
        self._values = variables
        values = (space.get(name) for name in variables)
        self._taken |= attributes | {m.__name__ for m in values if isinstance(m, types.ModuleType)}
        if "modules" in names and any(space.get(name) is sys for name in names):
            raise world_error(*UNFOLLOWED)
        for name in sorted(names & space.keys()):
            self._read(Place(TABLE, space, name, name), space[name])
        if any(map(_has_imports, codes_in(code))):
            self._imported(code, space)
        if code.co_freevars and not self._is_inner(frame, code):
            function = function_of(frame, code)
            if function is None:
                raise world_error(
                    f"{code.co_name} reads variables of the function around it "
                    f"({', '.join(code.co_freevars)}), and Python calls it in a way that does not "
                    "tell where they are",
                    "call it by its name, or pass what it reads as arguments",
                )
            for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
                try:
                    value = cell.cell_contents
                except ValueError:
                    continue  # not bound yet
                self._read(cell_place(cell, name), value)

    def _imported(self, code: types.CodeType, space: dict[str, Any]) -> None:
        """Note which modules code may import."""
        from .imports import read_by  # little of such code imports anything

        for place in read_by(code, space.get("__package__") or space.get("__name__", "")):
            if place.key in sys.modules:
                self._read(place, sys.modules[place.key])
            else:
                self.later.append(place)

    def _kept(self, frame: types.FrameType, code: types.CodeType) -> None:
        """Note what a decorator of a package keeps for a user's function: code that it calls may change that."""
        values = frame.f_locals if code.co_freevars else {}
        for name in code.co_freevars:
            if name in values and is_users_class(type(values[name])):  # what else there is may be a cache
                self._rec.journal.watch(values[name], name)

    def _note_binding(self, frame: types.FrameType, code: types.CodeType) -> None:
        """Note under which names of its class the code of a frame is found.

        Python looks operators and the like up by itself; no code names them.
        """
        if not code.co_argcount:
            return
        first = frame.f_locals.get(code.co_varnames[0])
        kind: Any = first if isinstance(first, type) else type(first)
        if not is_users_class(kind):
            return
        for cls in kind.__mro__:
            if not cls.__flags__ & HEAP_TYPE:
                continue  # C code has declared it, and nobody can put code into it
            for key, value in tuple(vars(cls).items()):
                if (key == code.co_name and key.startswith("__")) or wrapped(value, code):
                    self.bindings[kind, key] = None

    def _is_inner(self, frame: types.FrameType, code: types.CodeType) -> bool:
        """True if the frame that has made a comprehension, a lambda or the like is at work."""
        outer = frame.f_back
        while outer is not None and outer.f_code is not self._rec.entry:
            if code in outer.f_code.co_consts:
                return True
            outer = outer.f_back
        return False

    def _missing(self, frame: types.FrameType, code: types.CodeType) -> None:
        """Note that an object has no attribute of a name, for which its class is asked."""
        holder, name = (frame.f_locals[variable] for variable in code.co_varnames[:2])
        shadows = self._rec.shadows
        holder = holder if shadows is None else shadows.original(holder)
        place = Place(facet_of_attribute(holder, name), holder, name, f"its attribute {name}")
        self.reads.append(StateRead(place, MISSING))

    def _read(self, place: Place, value: Any) -> None:
        """Note a read by name, of the real object: this code has no scope."""
        shadows, kind, name = self._rec.shadows, type(value), place.name
        if is_hidden(value, kind):
            raise hidden_error(name, kind)
        if shadows is not None and shadows.follows(value):
            self._unshadowed = self._unshadowed or name
        if type(value) is purity.CACHED:
            raise world_error(
                f"{name} keeps its results, and code that Python calls may ask for them",
                f"call what it wraps: {name}.__wrapped__",
            )
        is_class = isinstance(value, type) and is_users_class(value)
        if self._writes and is_class and name != "__class__":  # which `super` reads
            raise world_error(
                f"code that Python calls may assign attributes of {name}: that would happen once, "
                "while tracing, and at no later call",
                "return the new value as a result, and assign it outside",
            )
        if name in self._values:
            self._rec.scope.check_reached(value)
        self._rec.journal.watch(value, name)
        self.reads.append(StateRead(place, value))

    def check_shadows(self) -> None:
        """Raise TraceError where code writes to shadows and other code reads the objects.

        The function is then traced without shadows.
        """
        shadows = self._rec.shadows
        if shadows is None or shadows.is_empty:
            return
        if shadows.is_read_elsewhere():
            raise trace_error("an object of a package holds what the function has written to")
        for value in shadows.substituted():
            if value.__name__ in self._taken:
                raise trace_error(f"{value.__name__} is in an object, and code that Python calls may ask for it")
        if not self._unshadowed:
            return
        codes = (*self._rec.scope.codes, *self.codes)
        is_written = shadows.changed_since(0) is not None or bool(self._rec.written)
        if is_written or any(stores(inner) for code in codes for inner in codes_in(code)):
            raise trace_error(f"{self._unshadowed} is read by code that Python calls, and may have been written")

    def _read_settings(self, code: types.CodeType, space: dict[str, Any]) -> None:
        """Note what code of a package names of its module, but for functions and classes."""
        if purity.is_pure_module(space.get("__name__")):
            return
        for name in code.co_names:
            value = space.get(name, MISSING)
            if not (value is MISSING or isinstance(value, purity.CODE) or name.startswith("__")):
                place = Place(TABLE, space, name, f"{space['__name__']}.{name}")
                self.reads.append(StateRead(place, value))


def _is_token(token: Any) -> bool:
    return abc.get_cache_token() == token


@functools.lru_cache(maxsize=1024)
def _writes(code: types.CodeType) -> tuple[tuple[str, str], ...]:
    """The kinds of variables that code assigns and that outlive its frame, and their names."""
    writes = []
    for inner in codes_in(code):
        for step in dis.get_instructions(inner):
            kind = _WRITES.get(step.opname)
            if kind is None or ("DEREF" in step.opname and step.argval not in code.co_freevars):
                continue
            writes.append((kind, step.argval))
    return tuple(writes)


@functools.lru_cache(maxsize=4096)
def stores(code: types.CodeType) -> bool:
    """True for code that assigns attributes or items."""
    return not _STORES.isdisjoint(code.co_code[::2])


def _has_imports(code: types.CodeType) -> bool:
    return _IMPORT in code.co_code[::2]


WATCHES.add(TraceWatch._event)
