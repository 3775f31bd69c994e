"""The values that a trace has read of objects that outlive the call, and tests of whether they are the same now.

A graph holds the values that globals, closure cells, attributes and items had when it was traced.
Each of them becomes a `StateRead`, and a call compares it with the value that is there now.

Globals and cells count if the code has read them. Which attributes of the objects behind them the code
reads is not observed but concluded from the names in it, those of texts for `getattr` included. An
attribute that is named but not read is compared for nothing. Code that may put names together, as in
``getattr(self, f"w{k}")``, is taken to read every attribute (`makes_names`).
"""

from __future__ import annotations

import inspect
import sys
import types
import weakref
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from ....errors import TraceError
from ....ir.device import is_foreign
from ..python.instances import slots_of
from ..python.objects import (
    ATTRIBUTES,
    CLASS,
    CONTENTS,
    DESCRIPTORS,
    FIELDS,
    FIXED,
    LIST,
    MEMBERS,
    STATE,
    TABLE,
    Facet,
    attributes_of,
    facet_of_attribute,
    facets_of,
    fields_of,
    table,
)
from ..python.purity import CODE, is_python_state, is_value
from ..python.users_code import (
    SLOT_TYPES,
    is_of_a_library,
    is_users_class,
    is_users_file,
    is_users_module,
    names_of_class,
)
from ..world.contents import may_change
from ..world.places import ALL, KIND, MISSING, PLAIN, Place, StateRead, cell_place
from .code_names import CodeNames

if TYPE_CHECKING:
    from ..world.shadows import Shadows
    from .scope import TraceScope
    from .watching import TraceWatch

_TOLD = frozenset({"__annotations__", "__doc__", "__name__", "__qualname__"})  # by functions
_DEFAULTS = ("__defaults__", "__kwdefaults__")
MOST_READS = 4096  # of one trace
_CONSTANT = frozenset({"cmath", "math", "numpy", "profuse"})  # modules that nobody changes
_DESCRIPTORS = (*SLOT_TYPES, *DESCRIPTORS)


def state_reads(
    scope: TraceScope,
    watch: TraceWatch,
    reached: Iterable[tuple[Any, str]],
    is_plain: Callable[[np.ndarray, bool], bool],
    shadows: Shadows | None,
    containers: Iterable[tuple[type, Sequence[str]]] = (),
) -> list[StateRead]:
    """The reads of the traced code of what was there before the call, each place once.

    Args:
        scope: of the trace, which has ended.
        watch: what else has run.
        reached: objects that it got without reading a name: itself, and arguments that are no
            leaves, each with its name.
        is_plain: whether the code got an array itself, and may have computed of its contents; with
            True, code that gets no shadows has reached it.
        shadows: of the trace, if it has any.
        containers: classes of containers among the arguments, each with the names of their attributes.

    Raises TraceError where that is more than calls can compare.
    """
    names = CodeNames.of((*scope.codes, *watch.codes))
    walk = _NameWalk(names, is_plain, scope.check_reached, shadows, watch.codes)
    with walk.of_objects_themselves():
        for read in (*watch.reads, *(place.read() for place in watch.later)):
            walk.note(read)
    for read in scope.read():
        walk.note(read)
    for kind, key in watch.bindings:
        walk.read(CLASS, kind, key, f"{kind.__name__}.{key}")
    for value, name in reached:
        walk.descend(value, name)
    for cls, attributes in containers:
        walk.container(cls, attributes)
    return walk.reads


class _NameWalk:
    """Follows what the code names through the objects that it reads.

    Args:
        names: by which the code may ask for what objects hold.
        is_plain, shadows: see `state_reads`.
        check: is given what is read of objects that have no shadow.
        watched: what has run of code that has no scope, packages' among it.
    """

    def __init__(
        self,
        names: CodeNames,
        is_plain: Callable[[np.ndarray, bool], bool],
        check: Callable[[Any], None],
        shadows: Shadows | None,
        watched: Container[types.CodeType],
    ) -> None:
        self.reads: list[StateRead] = []
        self._names, self._asked, self._all, self._matches = names.names, names.absent, names.any_name, names.patterns
        self._is_plain, self._check, self._shadows, self._watched = is_plain, check, shadows, watched
        self._of_themselves = False
        self._apart: dict[int, Any] = {}
        self._seen: dict[int, Any] = {}
        self._inner: dict[int, types.ModuleType] = {}
        self._classes: dict[type, None] = {}

    @contextmanager
    def of_objects_themselves(self) -> Iterator[None]:
        """Note what is met now as read by code that gets no shadows."""
        before, self._of_themselves = self._of_themselves, True
        try:
            yield
        finally:
            self._of_themselves = before

    def read(self, facet: Facet, holder: Any, key: Any, name: str) -> None:
        """Note what is found somewhere now, and what the code names of it."""
        read = Place(facet, holder, key, name).read()
        if read.is_absent or not read.holds():  # a descriptor makes it anew each time
            if facet.step == "attribute":
                self._descriptor(facet, holder, key, name)
            return
        value = read.value
        if type(value) is types.MethodType or key in _DEFAULTS or (facet is TABLE and key is ALL):
            self._apart[id(value)] = value  # of which code gets the parts alone
        elif key is not ALL and not self._is_given(holder):
            self._check(value)
        self.note(read)

    def _descriptor(self, facet: Facet, holder: Any, key: str, name: str) -> None:
        """Note that nothing hides a descriptor, and what a package's code reads of one of its own."""
        descriptor = inspect.getattr_static(holder, key, None)
        if facet in STATE and facet.find(holder, key) is MISSING and not inspect.isdatadescriptor(descriptor):
            self.reads.append(StateRead(Place(facet, holder, key, name), MISSING))
        if is_of_a_library(descriptor, type(descriptor)) and not isinstance(descriptor, _DESCRIPTORS):
            with self.of_objects_themselves():
                self.descend(descriptor, name)

    def note(self, read: StateRead) -> None:
        """Note a read, and what the code names of the value."""
        value, name = read.value, read.place.name
        if isinstance(value, SLOT_TYPES):
            return
        if len(self.reads) >= MOST_READS:
            raise TraceError(
                f"the function reads more than {MOST_READS} values that are there before the call, "
                f"{name} among them: comparing them would take longer than the call",
                hint="pass them as arguments",
            )
        self.reads.append(read)
        self.descend(value, name)

    def _is_given(self, holder: Any) -> bool:
        """True if what an object holds has been handed to the code by the trace."""
        if id(holder) in self._apart:
            return True
        return self._shadows is not None and self._shadows.has(holder) and not self._of_themselves

    def descend(self, value: Any, name: str) -> None:
        """Note what the code names of an object."""
        kind = type(value)
        if kind in PLAIN or value is None or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if isinstance(value, types.ModuleType):
            if is_users_module(value):
                self._attributes(value, vars(value), name)
            else:
                self._settings(value, name)
            return
        facets = facets_of(kind)
        for facet in facets:
            _READ[facet.kind](self, value, name)
        if not facets:
            self._attributes_of(value, name)

    # --- what a facet holds ---------------------------------------------------------------------

    def _attributes_of(self, value: Any, name: str) -> None:
        """Note the attributes of an object that the code names, those in slots among them.

        Raises TraceError for an object that holds more than what Python tells of it.
        """
        kind: Any = type(value)
        is_noted = any(f not in STATE for f in facets_of(kind))  # what C code holds for it
        is_known = is_noted or is_python_state(kind)
        if type(kind.__getattribute__) is types.FunctionType:
            raise TraceError(
                f"the function may read {name}, a {kind.__name__}, whose class finds attributes in its own way: "
                "to compare them would run its code",
                hint="define __getattr__, or properties",
            )
        if is_known and is_users_class(kind):
            self._instance(value, kind, name)
        elif CONTENTS in facets_of(kind):
            pass  # of a package, as masked arrays are: `Contents` has what their attributes are
        elif is_foreign(value) and self._is_given(value):
            pass  # a tensor that is an input of the graph
        elif is_known and is_of_a_library(value, kind):
            every = kind.__module__.partition(".")[0] == "numpy"  # whose code nobody watches
            with self.of_objects_themselves():
                self._attributes(value, vars(value), name, every=every)
                if self._asked:
                    self._absent(value, kind, name)
        elif is_noted:
            self._attributes(value, attributes_of(value) or (), name)
        elif not is_value(value, kind):
            error = TraceError(
                f"the function may read {name}, a {kind.__name__}, whose state nobody can "
                "compare: it may change from call to call, unseen",
                hint="read it outside of the function and pass what it gives as an argument, "
                "or tell pf.pure that its class is pure",
            )
            error.library = kind.__module__.partition(".")[0]
            raise error

    def _slots(self, value: Any, name: str) -> None:
        if ATTRIBUTES not in facets_of(type(value)):
            self._attributes_of(value, name)

    def _items(self, value: Any, name: str) -> None:
        self.read(LIST, value, ALL, f"len({name})")
        for k in range(len(value)):
            self.read(LIST, value, k, f"{name}[{k}]")

    def _table(self, value: dict, name: str) -> None:
        self.read(TABLE, value, ALL, f"the keys of {name}")
        for key in TABLE.outline(value):
            self.read(TABLE, value, key, f"{name}{TABLE.label(key)}")

    def _members(self, value: Any, name: str) -> None:
        self.read(MEMBERS, value, ALL, name)

    def _fixed(self, value: Any, name: str) -> None:
        if type(value) is not types.FunctionType:  # whose cells are read by name
            for part in FIXED.parts(value):
                if not self._is_given(value):
                    self._check(part)
                if id(value) in self._apart and type(part) is weakref.ref:
                    part = part()  # a key of a table, which forgets what is gone
                self.descend(part, name)

    def _fields(self, value: Any, name: str) -> None:
        if type(value) is types.FunctionType:
            self._function(value, name)
        elif type(value) is types.CellType:
            self.read(*cell_place(value, name))
        else:
            for key in fields_of(value):
                self.read(FIELDS, value, key, f"{name}.{key}")

    def _contents(self, value: Any, name: str) -> None:
        if may_change(value) and self._is_plain(value, self._of_themselves):
            from ..world.contents import Contents  # few functions need any

            self.reads.append(StateRead(Place(CONTENTS, value, ALL, name), Contents(value)))

    def _function(self, function: types.FunctionType, name: str) -> None:
        """Note what a function of the user's consists of, which may be replaced in place."""
        if not is_users_file(function.__code__.co_filename):
            if function.__closure__ and function.__code__ in self._watched:
                with self.of_objects_themselves():  # what a decorator of a package keeps there
                    for cell in function.__closure__:
                        self.read(*cell_place(cell, f"what {name} keeps"))
            return
        self.reads.append(Place(FIELDS, function, "__code__", name).read())
        for key in _DEFAULTS:
            if getattr(function, key):
                self.read(FIELDS, function, key, f"the defaults of {name}")
        for key in sorted(self._names & _TOLD):
            self.read(FIELDS, function, key, f"{name}.{key}")

    def _instance(self, value: Any, kind: type, name: str) -> None:
        attributes = {**dict(slots_of(value, kind)), **getattr(value, "__dict__", {})}
        if self._matches:
            self._patterns(kind)
        self._attributes(value, attributes, name)
        if self._all and hasattr(value, "__dict__"):
            self.read(TABLE, vars(value), ALL, f"the attributes of {name}")
        self.reads.append(Place(KIND, value, None, f"the class of {name}").read())
        self._class(kind)
        # The object may be given attributes that hide those of its class.
        for key in sorted(self._names & names_of_class(kind)):
            if key not in attributes and not key.startswith("__"):
                self.read(facet_of_attribute(value, key), value, key, f"{name}.{key}")
        if self._asked:
            self._absent(value, kind, name)

    def _patterns(self, kind: type) -> None:
        """Note the names of the attributes that patterns ask objects of a class for."""
        for cls in kind.__mro__:
            if "__match_args__" in vars(cls):
                self.read(CLASS, cls, "__match_args__", f"{cls.__name__}.__match_args__")
                self._names |= set(cls.__match_args__)  # type: ignore[attr-defined]

    def _attributes(self, holder: Any, held: Iterable[str], name: str, *, every: bool = False) -> None:
        every |= self._all and not isinstance(holder, types.ModuleType)
        for key in sorted(set(held) if every else self._names & set(held)):
            if not (key.startswith("__") and key.endswith("__")):
                self.read(facet_of_attribute(holder, key), holder, key, f"{name}.{key}")

    def _settings(self, module: types.ModuleType, name: str, is_inner: bool = False) -> None:
        """Note what the code names of a package's module.

        Of functions and classes the name alone tells which are called: the watch sees what they read. ``is_inner``: a
        module that another one of a package holds, of whose other objects none is asked, as most are private.
        """
        if module.__name__.partition(".")[0] in _CONSTANT or (is_inner and id(module) in self._inner):
            return
        self._inner[id(module)] = module
        attributes = vars(module)
        for key in sorted(self._names & attributes.keys()):
            value, label = attributes[key], f"{name}.{key}"
            if value is sys.modules or key.startswith("__"):
                continue
            if isinstance(value, CODE):
                self.reads.append(Place(ATTRIBUTES, module, key, label).read())
                if type(value) is types.ModuleType:
                    self._settings(value, label, is_inner=True)
            elif not is_inner or type(value) in PLAIN:
                self.read(ATTRIBUTES, module, key, label)

    def container(self, cls: type, names: Sequence[str]) -> None:
        """Note what the code names of the class of a container; ``names``: of attributes, which the structure tells."""
        if not is_users_class(cls):
            return
        self._class(cls)
        held = {key for base in cls.__mro__ if is_users_class(base) for key in vars(base)}
        for key in sorted(self._names & held):
            if not key.startswith("__"):
                self.read(CLASS, cls, key, f"{cls.__name__}.{key}")
        for key in filter(str.isidentifier, sorted(self._asked.difference(names))):
            if CLASS.find(cls, key) is MISSING:
                self.reads.append(StateRead(Place(CLASS, cls, key, f"{cls.__name__}.{key}"), MISSING))

    def _type(self, kind: Any, name: str) -> None:
        """Note what the code names of a class that it reads itself, and may look through."""
        self._class(kind)
        if self._all and is_users_class(kind):
            self.read(CLASS, kind, ALL, f"the attributes of {name}")

    def _class(self, kind: type) -> None:
        if type(kind) is not type and is_users_class(type(kind)):
            self._class(type(kind))  # its properties are those of the class
        for cls in kind.__mro__:
            if cls not in self._classes and is_users_class(cls):
                self._classes[cls] = None
                attributes = vars(cls)
                self._attributes(cls, attributes, cls.__name__)

    def _absent(self, holder: Any, kind: type, name: str) -> None:
        """Note attributes that the code may have asked for, and that there are none."""
        for key in filter(str.isidentifier, sorted(self._asked)):
            label, of_class = f"{name}.{key}", CLASS.find(kind, key)
            own = StateRead(Place(facet_of_attribute(holder, key), holder, key, label), MISSING)
            is_slot = type(of_class) is types.MemberDescriptorType
            if own.holds() and (of_class is MISSING or is_slot):
                self.reads += own, StateRead(Place(CLASS, kind, key, label), of_class)


_READ = table(
    {
        "list": _NameWalk._items,
        "dict": _NameWalk._table,
        "set": _NameWalk._members,
        "fixed": _NameWalk._fixed,
        "fields": _NameWalk._fields,
        "contents": _NameWalk._contents,
        "attributes": _NameWalk._attributes_of,
        "slots": _NameWalk._slots,
        "class": _NameWalk._type,
    }
)
