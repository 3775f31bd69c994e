"""The names and texts in code, by which it may ask for what objects hold."""

from __future__ import annotations

import dis
import functools
import itertools
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....dataclass import dataclass
from .method_calls import codes_in

if TYPE_CHECKING:
    from .scope import TraceScope

# What gives attributes by names that are no names or texts of the code.
_BY_NAME = frozenset({"__dict__", "__getattribute__", "__getattr__", "__slots__"})
_LISTS = frozenset({"asdict", "astuple", "attrgetter", "dir", "fields", "getmembers", "methodcaller", "vars"})
_MODULES = frozenset({"dataclasses", "inspect", "operator"})  # of these functions
_ERRORS = frozenset({"AttributeError", "BaseException", "Exception"})  # of absent attributes
_CAUGHT = ("PUSH_EXC_INFO", "CHECK_EXC_MATCH", "WITH_EXCEPT_START")
_CALLS = ("PRECALL", "CALL", "CALL_FUNCTION", "CALL_FUNCTION_KW", "CALL_FUNCTION_EX", "CALL_KW")
_MATCH_CLASS = dis.opmap["MATCH_CLASS"]


@dataclass(frozen=True)
class CodeNames:
    """The names by which code may ask for what objects hold.

    Attributes:
        names: names and texts in the code.
        absent: attributes that the code may have found absent.
        any_name: the code may ask for any attribute, by names that it makes up.
        patterns: the code has patterns of classes, which name attributes by their place alone.
    """

    names: frozenset[str]
    absent: frozenset[str]
    any_name: bool
    patterns: bool

    @classmethod
    def of(cls, codes: Iterable[types.CodeType]) -> CodeNames:
        """Those of code, and of code inside of it."""
        every = [inner for code in codes for inner in codes_in(code)]
        texts = set(texts_in(every))
        names = {*names_in(every), *texts}
        absent = set(names_in(filter(_finds_absent, every)))
        if names & {"getattr", "hasattr"}:
            absent |= texts
        return cls(frozenset(names), frozenset(absent), any(map(makes_names, every)), any(map(_matches_classes, every)))


@functools.lru_cache(maxsize=4096)
def asked_by(code: types.CodeType) -> tuple[frozenset[str], bool]:
    """The names and texts in code, and whether it may put names together."""
    names = CodeNames.of((code,))
    return names.names, names.any_name


def named(scope: TraceScope) -> set[str]:
    """All names and texts in the code that a trace has run."""
    codes = [inner for code in scope.codes for inner in codes_in(code)]
    return {*names_in(codes), *texts_in(codes)}


def names_in(codes: Iterable[types.CodeType]) -> Iterator[str]:
    """All names in code."""
    return (name for code in codes for name in code.co_names)


def texts_in(codes: Iterable[types.CodeType]) -> Iterator[str]:
    """All texts in code, with which it may ask for attributes."""
    for code in codes:
        for constant in code.co_consts:
            parts = constant if isinstance(constant, tuple) else (constant,)
            yield from (part for part in parts if isinstance(part, str))


def _finds_absent(code: types.CodeType) -> bool:
    """True for code that may catch the error for an attribute that an object does not have."""
    if not code.co_exceptiontable:
        return False
    if not _ERRORS.isdisjoint(code.co_names):
        return True
    steps = code.co_code[::2]
    caught, matched, of_with = (dis.opmap[name] in steps for name in _CAUGHT)
    return caught and not matched and not of_with  # ``except`` without a class


def makes_names(code: types.CodeType) -> bool:
    """True of code that may ask for attributes by names that it makes up."""
    names = {*code.co_names}
    if names & _BY_NAME:
        return True
    if not names & _LISTS and "getattr" not in names:
        return False
    steps = list(dis.get_instructions(code))
    for k, step in enumerate(steps):
        if step.argval in _LISTS and (step.opname == "LOAD_GLOBAL" or names & _MODULES):
            return True
        if step.argval == "getattr" and step.opname.startswith("LOAD_"):
            arguments = list(itertools.takewhile(lambda s: s.opname not in _CALLS, steps[k + 1 :]))
            loads = all(s.opname.startswith(("LOAD_", "PUSH_", "CACHE", "COPY")) for s in arguments)
            if not loads or not any(type(s.argval) is str and "CONST" in s.opname for s in arguments):
                return True
    return False


def _matches_classes(code: types.CodeType) -> bool:
    """True of code with patterns of classes, which name attributes by their place alone."""
    return _MATCH_CLASS in code.co_code[::2]
