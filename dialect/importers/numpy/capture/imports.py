"""Imports in a traced function, which read the table of modules: a graph holds for the modules that it had.

The user's code that has a scope asks `Imports`, as ``import`` looks ``__import__`` up among the builtins. Of code
that Python calls, `read_by` tells which entries of the table it may read.
"""

from __future__ import annotations

import builtins
import dis
import functools
import importlib.util
import sys
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..python.objects import TABLE, facet_of_attribute
from ..python.users_code import is_users_file, is_users_module, is_users_name
from ..tracing.current import world_error
from ..world.places import MISSING, Place, StateRead
from .method_calls import codes_in

if TYPE_CHECKING:
    from ..tracing.recorder import Recorder


def _place_of_module(key: str) -> Place:
    """The place of a module in the table of those that have been imported."""
    return Place(TABLE, sys.modules, key, key)


class Imports:
    """What the user's code has imported in one trace.

    Args:
        rec: the trace.
    """

    def __init__(self, rec: Recorder) -> None:
        self._rec = rec
        self._keys: dict[str, Any] = {}
        self._absent: dict[tuple[int, str], StateRead] = {}

    def find(
        self,
        name: str,
        space: dict[str, Any] | None = None,
        variables: Any = None,
        wanted: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        """The module that an import gives, as the user's code gets it; arguments are those of ``__import__``.

        Raises TraceError where there is no such module, as a later call might find one, and where one of the
        user's would be run: what it does would be undone with the trace, and no later import does it again.
        """
        key = _absolute(name, space or {}, level)
        if (first := _runs_first(key, wanted or ())) is not None:
            raise _unrun(first)
        try:
            module = builtins.__import__(name, space, variables, wanted or (), level)
        except ImportError as error:
            raise world_error(
                f"the import of {name} fails ({error}), and a later one may find a module",
                "import it outside of the function, and test there whether it is there",
            ) from None
        for read in (key,) if wanted else _with_parents(key):
            self._keys[read] = sys.modules.get(read, MISSING)
        if wanted and isinstance(module, types.ModuleType) and is_users_module(module):
            for attribute in wanted:
                if attribute not in vars(module):
                    place = Place(facet_of_attribute(module, attribute), module, attribute, f"{key}.{attribute}")
                    self._absent[id(module), attribute] = StateRead(place, MISSING)
        self._rec.scope.watch(module, key)
        return self._rec.scope.given(module, key)

    def reads(self) -> Iterator[StateRead]:
        """The entries of the table that imports have found, and names that modules of the user's lack."""
        for key, module in self._keys.items():
            yield StateRead(_place_of_module(key), module)
        yield from self._absent.values()


def _unrun(key: str) -> Exception:
    """The error for a module of the user's that nobody has imported yet."""
    return world_error(
        f"the module {key} is imported for the first time: what it does happens once, and at no later call",
        "import it outside of the function",
    )


def _runs_first(key: str, wanted: Iterable[str] = ()) -> str | None:
    """The module of the user's that an import would run, which is not there yet; None if there is none."""
    module = sys.modules.get(key)
    if module is None:
        outer, is_inner, _ = key.partition(".")
        package = sys.modules.get(outer)
        if package is not None:
            return key if is_inner and isinstance(package, types.ModuleType) and is_users_module(package) else None
        spec = _spec(outer)
        is_users = spec is not None and (spec.origin is None or is_users_file(spec.origin))
        return key if is_users and is_users_name(outer) else None
    if not hasattr(module, "__path__") or not is_users_module(module):
        return None
    inner = ((f"{key}.{name}") for name in wanted if name not in vars(module))
    return next((name for name in inner if name not in sys.modules and _spec(name) is not None), None)


def _spec(key: str) -> Any:
    try:
        return importlib.util.find_spec(key)
    except (ImportError, ValueError):  # it has no loader, or no specification
        return None


@functools.lru_cache(maxsize=1024)
def _imported_by(code: types.CodeType, package: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """The keys in the table of modules that imports in code of a package read, and what they want of each."""
    keys: list[tuple[str, tuple[str, ...]]] = []
    for inner in codes_in(code):
        constants: list[Any] = [None, None]
        for step in dis.get_instructions(inner):
            if step.opname.startswith("LOAD_"):
                constants = [constants[-1], step.argval]
            elif step.opname == "IMPORT_NAME":
                level, wanted = constants
                key = _absolute(step.argval, {"__package__": package}, level)
                keys += [(key, wanted)] if wanted else [(outer, ()) for outer in _with_parents(key)]
    return tuple(keys)


def read_by(code: types.CodeType, package: str) -> list[Place]:
    """The places of modules that imports in code of a package may read.

    Raises TraceError where one of the user's may be run.
    """
    keys = _imported_by(code, package)
    for key, wanted in keys:
        if (first := _runs_first(key, wanted)) is not None:
            raise _unrun(first)
    return [_place_of_module(key) for key, _ in keys]


def _absolute(name: str, space: dict[str, Any], level: int) -> str:
    """The key of a module, of which an import tells the name from the package of the code."""
    if not level:
        return name
    package = space.get("__package__") or space.get("__name__", "")
    return importlib.util.resolve_name("." * level + name, package)


def _with_parents(key: str) -> Iterator[str]:
    """The keys of the packages around a module, outer ones first, and its own."""
    parts = key.split(".")
    return (".".join(parts[: k + 1]) for k in range(len(parts)))
