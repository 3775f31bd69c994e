"""Our dataclasses do what those of the standard decorator do."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, ClassVar

import pytest
from profuse.dialect import dataclass as module

ours = module._dataclass


def _made(decorator, **options):
    @decorator(**options)
    class Point:
        kind: ClassVar[str] = "point"
        x: Any
        y: Any = 2
        z: list = dataclasses.field(default_factory=list, compare=False)
        w: int = dataclasses.field(default=7, init=False, repr=False)

        def __post_init__(self):
            object.__setattr__(self, "w", self.w + 1)

    return Point


OPTIONS = [
    {},
    {"frozen": True},
    {"eq": False},
    {"frozen": True, "eq": False},
    {"repr": False},
    {"slots": True},
    {"frozen": True, "slots": True},
    {"kw_only": True},
]


def _text(found):
    return repr(found).replace("ours", "").partition(" object at ")[0]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_each_method_is_that_of_the_standard_decorator(options):
    standard, mine = _made(dataclasses.dataclass, **options), _made(ours, **options)
    assert mine.__match_args__ == standard.__match_args__
    a, b = ((cls(x=1), cls(x=1, z=[3]), cls(x=3, y=4)) for cls in (standard, mine))
    assert str(inspect.signature(mine)) == str(inspect.signature(standard))
    for p, q in zip(a, b, strict=True):
        assert _text(p) == _text(q)
        assert dataclasses.asdict(p) == dataclasses.asdict(q)
        assert dataclasses.asdict(dataclasses.replace(q, y=9))["y"] == 9
        assert p != q
    for p, q in ((0, 1), (0, 2), (0, 0)):
        assert (a[p] == a[q]) == (b[p] == b[q])
    assert (mine.__hash__ is None) == (standard.__hash__ is None)
    if mine.__hash__ is not None and options.get("eq", True):
        assert hash(b[0]) == hash(b[1])
    for cls in (standard, mine):
        with pytest.raises(TypeError, match=r"__init__\(\) missing 1 required"):
            cls()
        if options.get("frozen"):
            with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
                cls(x=1).x = 2
            with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
                del cls(x=1).x
        else:
            point = cls(x=1)
            point.x = 5
            assert point.x == 5


@ours(frozen=True, slots=True)
class Frozen:
    x: int
    y: tuple = ()


@ours(frozen=True)
class Base:
    x: int = 1

    def __hash__(self):
        return 42


@ours(frozen=True)
class Derived(Base):
    y: float = float("nan")


def test_copies_and_pickles_of_frozen_instances_with_slots():
    p = Frozen(1, (2,))
    assert pickle.loads(pickle.dumps(p)) == copy.copy(p) == copy.deepcopy(p) == p
    assert not hasattr(p, "__dict__")


def test_a_pickle_needs_no_instance_made_before():
    @ours
    class Late:
        x: int

    late = object.__new__(Late)
    late.__dict__["x"] = 3
    assert late == Late(3)


def test_inherited_fields_and_methods_of_the_class_itself():
    d = Derived(2)
    assert (d.x, hash(Base())) == (2, 42)
    assert d == Derived(2, d.y), "as a tuple, an attribute equals itself"
    assert d != Base(2)
    assert repr(d) == "Derived(x=2, y=nan)"
    with pytest.raises(dataclasses.FrozenInstanceError):
        d.other = 1


def test_patterns_match_by_position():
    match Frozen(1, (2,)):
        case Frozen(x, (y,)):
            assert (x, y) == (1, 2)
