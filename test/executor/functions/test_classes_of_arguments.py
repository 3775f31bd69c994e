"""Whether an argument holds a tensor is asked of its class, once for most classes."""

from __future__ import annotations

import dataclasses
import gc
import weakref
from collections import defaultdict, namedtuple
from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.ir.device import EXCHANGE_NAMES
from profuse.executor.functions.device_arguments import holds_tensors

Tensor = type("Tensor", (), {EXCHANGE_NAMES[0]: 1})
TENSOR = Tensor()


@dataclasses.dataclass
class Pair:
    a: object
    b: object = None


@dataclasses.dataclass(slots=True)
class Slotted:
    a: object


HOLDERS = {
    "list": lambda x: [1, x],
    "tuple": lambda x: (x,),
    "dict": lambda x: {"a": x},
    "nested": lambda x: [{"a": (1, [x])}],
    "dataclass": Pair,
    "slots": Slotted,
    "namespace": lambda x: SimpleNamespace(a=x),
    "named tuple": namedtuple("Named", "a"),
    "default dict": lambda x: defaultdict(list, a=x),
}


@pytest.mark.parametrize("name", HOLDERS)
def test_tensors_are_found_wherever_they_are(name):
    make = HOLDERS[name]
    for _ in range(3):
        assert not holds_tensors((np.ones(3), make(2.0)), {})
        assert holds_tensors((np.ones(3), make(TENSOR)), {})
        assert holds_tensors((), {"x": make(TENSOR)}) and not holds_tensors((), {"x": make(None)})


def test_what_a_class_holds_may_change():
    class Box:
        def __init__(self, x):
            self.x = x

    made = defaultdict(lambda: 0, a=TENSOR)
    for _ in range(2):
        assert not holds_tensors((Box(TENSOR), made), {})
    made.default_factory = int
    assert holds_tensors((made,), {})
    pf.register_pytree(Box, lambda box: ((box.x,), None), lambda _, parts: Box(*parts))
    assert holds_tensors((Box(TENSOR),), {})
    pair = Pair(1)
    assert not holds_tensors((pair,), {})
    pair.c = TENSOR
    assert holds_tensors((pair,), {})


def test_classes_are_not_kept():
    def refs():
        kinds = [type("Local", (), {}), dataclasses.make_dataclass("Made", "a")]
        for kind in kinds:
            assert not holds_tensors((kind() if kind.__name__ == "Local" else kind(1),), {})
        return list(map(weakref.ref, kinds))

    gone = refs()
    gc.collect()
    assert [ref() for ref in gone] == [None, None]


def test_memory_that_has_no_hash_is_pythons():
    """A view of bytes has a hash, and one of what may be written to raises a ValueError."""
    data = np.arange(3.0)
    f = pf.jit(lambda b: np.frombuffer(b, float) * 2, unsupported="python")
    for given in (data.tobytes(), bytearray(data.tobytes()), memoryview(data.tobytes()), memoryview(data), data.data):
        for _ in range(3):
            np.testing.assert_array_equal(f(given), data * 2)
