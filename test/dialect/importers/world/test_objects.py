"""The table of what objects consist of, and that each fold of it has an entry for each kind."""

import functools
import types
from collections import OrderedDict, defaultdict, deque
from typing import get_args

import numpy as np
import pytest
from profuse.dialect.errors import InternalError
from profuse.dialect.importers.numpy.capture import outer_state
from profuse.dialect.importers.numpy.python.objects import FACETS, Kind, facets_of, parts_of, table
from profuse.dialect.importers.numpy.world import restoring, shadows

FOLDS = {"facets": FACETS, "journal": restoring.RESTORE, "shadows": shadows._FILL, "state": outer_state._READ}


@pytest.mark.parametrize("name", FOLDS)
def test_folds_have_an_entry_for_each_kind(name):
    assert set(get_args(Kind)) <= set(FOLDS[name])


@pytest.mark.parametrize("kind", get_args(Kind))
def test_a_kind_that_a_fold_lacks_is_an_error(kind):
    entries = {other: None for other in get_args(Kind) if other != kind}
    with pytest.raises(InternalError, match=f"differs in {kind}$"):
        table(entries)
    with pytest.raises(InternalError, match=r"differs in more$"):
        table({**entries, kind: None, "more": None})


class Slotted:
    __slots__ = ("value",)

    def __getattr__(self, name):
        raise AssertionError("no code of the class runs")


class Both(list):
    __slots__ = ("__dict__", "value")


class Point(tuple):
    __slots__ = ()


def made():
    held = object()
    both = Both([held])
    both.value, both.other = object(), object()
    return {
        "list": [held],
        "deque": deque([held]),
        "dict": {"key": held},
        "set": {held},
        "ordered dict": OrderedDict(key=held),
        "tuple": (held,),
        "subclass": Point([held]),
        "namespace": types.SimpleNamespace(value=held),
        "cell": types.CellType(held),
        "partial": functools.partial(print, held),
        "array": np.array([held, held]),
        "method": types.MethodType(print, held),
        "method of C": [held].append,
        "items, slots and attributes": both,
        "exception": ValueError(held),
    }, held


@pytest.mark.parametrize("name", made()[0])
def test_parts_are_what_an_object_leads_to(name):
    every, held = made()
    todo, found = [every[name]], []
    while todo:
        todo += parts_of(value := todo.pop())
        found.append(value)
    assert any(value is held for value in found)


def test_objects_may_have_several_facets():
    kinds = {name: [f.kind for f in facets_of(type(x))] for name, x in made()[0].items()}
    assert kinds["items, slots and attributes"] == ["list", "attributes", "slots"]
    assert kinds["exception"] == ["fields", "attributes"]
    assert [f.kind for f in facets_of(defaultdict)] == ["dict", "fields"]
    assert [f.kind for f in facets_of(Slotted)] == ["slots"]
    assert facets_of(int) == ()


@pytest.mark.parametrize("kind", [k for k, f in FACETS.items() if f.is_carried])
def test_what_is_carried_is_put_back(kind):
    facet, old, new = FACETS[kind], object(), object()
    target = {
        "list": [old],
        "dict": {"value": old},
        "attributes": types.SimpleNamespace(value=old),
        "slots": Slotted(),
    }[kind]
    if kind == "slots":
        assert facet.keyed(facet.copy(target)) == {}
        target.value = old
    held = facet.copy(target)
    (key,) = facet.keyed(held)
    facet.put(target, key, new)
    assert facet.keyed(facet.copy(target)) == {key: new} and facet.keyed(held) == {key: old}
