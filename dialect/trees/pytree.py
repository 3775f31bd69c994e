"""Nested arguments and results as flat lists of leaves plus a hashable structure.

Containers are those of `containers`: tuples, lists, dicts, dataclass instances and others.  Leaves
are arrays, NumPy scalars and Python numbers; anything else that is hashable (strings, None,
enums, dtypes, functions …) is *static*: part of the structure, compared by type and value.
"""

from __future__ import annotations

import enum
import inspect
import textwrap
import types
from collections.abc import AsyncIterator, Callable, Container, Coroutine, Iterator, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from ..errors import ArgumentError, DTypeError
from ..importers.numpy.python.generators import is_generator, is_plain_generator
from .containers import ARRAY, CONTAINERS, container_of
from .leaves import LEAF_TYPES, NUMBERS, TraceValue, check_array, converted, kind_text
from .static_objects import Generator, Same, in_structure, real

LEAF = ("leaf",)
_LONGEST_TEXT = 300  # of a call's arguments, in characters


class TreeDef:
    """A structure with holes for leaves; equal structures compare and hash equal."""

    __slots__ = ("_hash", "leaves", "spec")

    def __init__(self, spec: tuple, leaves: int) -> None:
        self.spec, self.leaves = spec, leaves
        self._hash = hash(spec)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeDef) and self.spec == other.spec

    def __reduce__(self) -> tuple:
        return TreeDef, (self.spec, self.leaves)

    def __repr__(self) -> str:
        return f"TreeDef({_show(self.spec, repeat('*'))})"

    def unflatten(self, leaves: Sequence[Any]) -> Any:
        """The nested object with these leaves; raises ArgumentError on a wrong number."""
        if self.spec is LEAF and len(leaves) == 1:
            return leaves[0]
        if len(leaves) != self.leaves:
            raise ArgumentError(f"structure has {self.leaves} leaves, {len(leaves)} given")
        return _build(self.spec, iter(leaves))

    def paths(self) -> list[str]:
        """The path of each leaf, e.g. ``[0]['w']``."""
        return list(_paths(self.spec, ""))

    def statics(self) -> list[Any]:
        """The objects that are part of the structure."""
        return list(map(real, _statics(self.spec)))

    def classes(self) -> list[tuple[type, tuple[str, ...]]]:
        """The classes of the containers that are of no class of Python's, with the names of attributes, each once."""
        return list(dict.fromkeys(_classes(self.spec)))

    def keys(self) -> list[Any]:
        """The keys of its dicts that are no texts or numbers."""
        return [key for key in _dict_keys(self.spec) if type(key) is not str and type(key) not in NUMBERS]

    def static_keys(self) -> list[Any]:
        """The keys that stand for them in comparisons of structures (see `static_objects`)."""
        return list(_statics(self.spec))

    @property
    def is_flat(self) -> bool:
        """True of arguments without containers, in the structure of `flatten_call`."""
        return all(spec[0] in ("leaf", "static") for part in self.spec[2] for spec in part[2])

    def with_statics(self, new: Callable[[Any], Any]) -> TreeDef:
        """The same structure with another object in the place of each static one."""
        return TreeDef(_with_statics(self.spec, new), self.leaves)

    def with_arrays(self, are_arrays: Sequence[bool]) -> TreeDef:
        """The same structure, where some leaves of no axes are arrays and no scalars."""
        if not any(are_arrays):
            return self
        return TreeDef(_with_arrays(self.spec, iter(are_arrays)), self.leaves)

    def depths(self) -> list[int]:
        """The number of containers around each leaf."""
        return list(_depths(self.spec, 0))


def unflatten(tree: TreeDef, leaves: Sequence[Any]) -> Any:
    """The nested object of this structure with these leaves."""
    return tree.unflatten(leaves)


def flatten(tree: Any, whole: Container[int] = ()) -> tuple[list[Any], TreeDef]:
    """Leaves in order and the structure.

    ``whole``: identities of containers that are taken for leaves.

    Raises ArgumentError for an unhashable object that is no container, and DTypeError for arrays
    of an unsupported dtype; both say where (``[0]['w']``).
    """
    leaves: list[Any] = []
    try:
        spec = _flatten(tree, leaves, "", whole)
    except RecursionError:
        raise _nested_too_deeply() from None
    return leaves, TreeDef(spec, len(leaves))


def leaves_like(tree: TreeDef, given: Any) -> list[Any] | None:
    """The leaves of ``given`` in the order of ``tree``; None if it has another structure.

    Dicts may have their keys in another order. None in the place of a leaf, or of all that a
    container holds, stands for no leaf, and so does what ``tree`` has as a static.
    """
    try:
        return list(_like(tree.spec, given))
    except _Differs:
        return None


class _Differs(Exception):
    """Two structures are not the same."""


def _like(spec: tuple, given: Any) -> Iterator[Any]:
    if given is None:
        yield from repeat(None, len(list(_paths(spec, ""))))
    elif spec == LEAF:
        leaves, tree = flatten(given)
        if tree.spec != LEAF:
            raise _Differs
        yield from leaves
    elif spec[0] != "static":
        yield from _children_like(spec, given)


def _children_like(spec: tuple, given: Any) -> Iterator[Any]:
    kind, meta, children = spec
    items = CONTAINERS[kind].items_like(meta, given)
    if items is None or len(items) != len(children):
        raise _Differs
    for child, item in zip(children, items, strict=True):
        yield from _like(child, item)


def flatten_call(
    fn: Callable, args: tuple, kwargs: dict[str, Any], generators: bool = False
) -> tuple[list[Any], TreeDef]:
    """`flatten` of ``(args, kwargs)``; errors name the argument: ``argument 'x'[1]``.

    ``generators``: arguments may be generators of random numbers.
    """
    leaves: list[Any] = []
    names: list[str] | None = None
    seen: list[Any] = []
    specs = []
    where = ""
    try:
        for index, arg in enumerate(args):
            where = f"@{index}"
            if generators and is_plain_generator(arg):
                specs.append(_generator(arg, seen))
                continue
            specs.append(_flatten(arg, leaves, where))
        keyword_specs = []
        for key, arg in kwargs.items():
            where = f"@{key}"
            if generators and is_plain_generator(arg):
                keyword_specs.append(_generator(arg, seen))
                continue
            keyword_specs.append(_flatten(arg, leaves, where))
    except RecursionError:
        raise _nested_too_deeply() from None
    except (ArgumentError, DTypeError) as error:
        names = positional_names(fn, len(args))
        key = where[1:]
        name = names[int(key)] if key.isdigit() else key
        message = error.what if where in error.what else f"{where}: {error.what}"
        raise type(error)(message.replace(where, f"argument '{name}'", 1), hint=error.hint) from None
    spec = ("tuple", None, (("tuple", None, tuple(specs)), ("dict", tuple(kwargs), tuple(keyword_specs))))
    return leaves, TreeDef(spec, len(leaves))


def leaf_names(fn: Callable, tree: TreeDef) -> list[str]:
    """For each leaf of a `flatten_call` structure, ``'x'[1]`` with the parameter's name."""
    args, kwargs = tree.spec[2]
    names = positional_names(fn, len(args[2]))
    out: list[str] = []
    for name, spec in zip((*names, *kwargs[1]), (*args[2], *kwargs[2]), strict=True):
        out += (f"'{name}'{path}" for path in _paths(spec, ""))
    return out


def call_text(fn: Callable, tree: TreeDef, kinds: Sequence[Any]) -> str:
    """The text of the arguments of calls of a `flatten_call` structure: ``x: f32[?, ?], mode: 'max'``.

    ``kinds`` are the `leaf_kind` of the leaves.
    """
    args, kwargs = tree.spec[2]
    names = (*positional_names(fn, len(args[2])), *kwargs[1])
    leaves = map(kind_text, kinds)
    shown = (_show(spec, leaves) for spec in (*args[2], *kwargs[2]))
    text = ", ".join(f"{name}: {what}" for name, what in zip(names, shown, strict=True))
    return textwrap.shorten(text, _LONGEST_TEXT, placeholder=" …")


def _nested_too_deeply() -> ArgumentError:
    return ArgumentError(
        "containers are nested too deeply, or one contains itself", hint="pass and return flatter ones"
    )


def _flatten(tree: Any, leaves: list[Any], path: str, whole: Container[int] = ()) -> tuple:
    kind = type(tree)
    if whole and id(tree) in whole:
        leaves.append(tree)
        return LEAF
    if kind in NUMBERS or kind in LEAF_TYPES:
        leaves.append(tree)
        return LEAF
    if kind is np.ndarray or isinstance(tree, (np.generic, np.ndarray)):
        check_array(tree, f"{path}: " if path else "")
        leaves.append(tree)
        return LEAF
    container = container_of(tree)
    if container is not None:
        meta, items = container.apart(tree)
        labels = container.labels(meta, len(items))
        children = tuple(_flatten(item, leaves, path + label, whole) for label, item in zip(labels, items, strict=True))
        return (container.kind, meta, children)
    leaf = converted(tree)
    if leaf is not None:
        leaves.append(leaf)
        return LEAF
    return _static(tree, path)


def _static(value: Any, path: str) -> tuple:
    if issubclass(type(value), TraceValue):
        value = value.bake()
    where = f"{path}: " if path else ""
    # Python numbers of a subclass would lose their class as leaves; enums are meant as choices.
    if isinstance(value, NUMBERS) and not isinstance(value, enum.Enum):
        raise ArgumentError(
            f"{where}numbers of type {type(value).__name__} are not supported", hint="pass a plain int or float"
        )
    # These hold code that has yet to run: it would run once, while tracing, and never again.
    if isinstance(value, (Iterator, Coroutine, AsyncIterator)):
        raise ArgumentError(
            f"{where}objects of type {type(value).__name__} are not supported: what they give is not there yet",
            hint="make a list or tuple of it; write functions without yield and async",
        )
    if is_generator(value):
        raise ArgumentError(
            f"{where}random generators ({type(value).__name__}) are not supported: every call "
            "would get the numbers that are drawn while tracing",
            hint="draw them outside and pass them as an argument",
        )
    try:
        static = in_structure(value)
    except TypeError:
        raise ArgumentError(
            f"{where}objects of type {type(value).__name__} are not supported: neither arrays, "
            "numbers or containers of them, nor hashable",
            hint="pass arrays, numbers, tuples, lists, dicts or dataclasses of them, or name the "
            "parts of such objects by profuse.register_pytree",
        ) from None
    return ("static", type(value), static)


def _generator(value: Any, met: list[Any]) -> tuple:
    number = next((k for k, other in enumerate(met) if value is other), len(met))
    if number == len(met):
        met.append(value)
    return ("static", type(value), Generator(number, value))


def static_of(spec: tuple) -> Any:
    """The object that is part of a structure."""
    return real(spec[2])


def _build(spec: tuple, leaves: Iterator[Any]) -> Any:
    if spec is LEAF or spec == LEAF:
        return next(leaves)
    kind, meta, children = spec
    if kind == "static":
        return static_of(spec)
    items = [_build(child, leaves) for child in children]
    return CONTAINERS[kind].made(meta, items)


def _children(spec: tuple) -> Iterator[tuple[str, tuple]]:
    kind, meta, children = spec
    return zip(CONTAINERS[kind].labels(meta, len(children)), children, strict=True)


def _paths(spec: tuple, path: str) -> Iterator[str]:
    if spec == LEAF:
        yield path
    elif spec[0] != "static":
        for label, child in _children(spec):
            yield from _paths(child, path + label)


def _statics(spec: tuple) -> Iterator[Any]:
    if spec != LEAF:
        if spec[0] == "static":
            yield spec[2]
        else:
            for child in spec[2]:
                yield from _statics(child)


def _classes(spec: tuple) -> Iterator[tuple[type, tuple[str, ...]]]:
    if spec == LEAF or spec[0] == "static":
        return
    kind, meta, children = spec
    container = CONTAINERS[kind]
    cls = container.class_of(meta)
    if cls is not None:
        yield cls, container.attributes(meta)
    for child in children:
        yield from _classes(child)


def _dict_keys(spec: tuple) -> Iterator[Any]:
    if spec == LEAF or spec[0] == "static":
        return
    kind, meta, children = spec
    if kind in ("dict", "ordered"):
        yield from meta
    elif kind == "dict subclass":
        yield from meta[2]
    for child in children:
        yield from _dict_keys(child)


def _with_statics(spec: tuple, new: Callable[[Any], Any]) -> tuple:
    if spec == LEAF:
        return spec
    kind, meta, children = spec
    if kind == "static":
        old = static_of(spec)
        replacement = new(old)
        return spec if replacement is old else (kind, meta, Same(replacement))
    return kind, meta, tuple([_with_statics(child, new) for child in children])


def _with_arrays(spec: tuple, are_arrays: Iterator[bool]) -> tuple:
    if spec == LEAF:
        return (ARRAY.kind, None, (LEAF,)) if next(are_arrays) else spec
    kind, meta, children = spec
    if kind == "static":
        return spec
    return kind, meta, tuple([_with_arrays(child, are_arrays) for child in children])


def _depths(spec: tuple, depth: int) -> Iterator[int]:
    if spec == LEAF:
        yield depth
    elif spec[0] != "static":
        for _, child in _children(spec):
            yield from _depths(child, depth + 1)


def _show(spec: tuple, leaves: Iterator[str]) -> str:
    if spec == LEAF:
        return next(leaves)
    kind, meta, children = spec
    if kind == "static":
        return repr(children)
    shown = [_show(child, leaves) for child in children]
    return CONTAINERS[kind].text(meta, shown)


def positional_names(fn: Callable, count: int) -> list[str]:
    """Names of the first ``count`` positional parameters; ``args[k]`` for variadic ones."""
    names: list[str] = []
    if type(fn) is types.FunctionType and not vars(fn):  # it wraps nothing, and has no signature of its own
        code = fn.__code__
        names += code.co_varnames[: code.co_argcount]
        if code.co_flags & inspect.CO_VARARGS:
            variadic = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
            names += [f"{variadic}[{k}]" for k in range(count - len(names))]
    else:
        for p in _parameters(fn):
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
                names.append(p.name)
            elif p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{k}]" for k in range(count - len(names))]
    return (names + [f"args[{k}]" for k in range(len(names), count)])[:count]


def _parameters(fn: Callable) -> Sequence[inspect.Parameter]:
    """The parameters that a callable tells; none if it has no signature."""
    try:
        return list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        return []
