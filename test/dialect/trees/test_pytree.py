"""Nested arguments: flattening, rebuilding, hashing, and errors that name the argument."""

import enum
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import profuse as pf
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profuse.dialect.errors import ArgumentError, DTypeError
from profuse.dialect.trees.leaves import leaf_kind
from profuse.dialect.trees.pytree import flatten, flatten_call, leaf_names, unflatten

Pair = namedtuple("Pair", "left right")


@dataclass
class Layer:
    w: Any
    name: str = "layer"


class Mode(enum.IntEnum):
    TRAIN = 1
    TEST = 2


LEAVES = st.one_of(st.booleans(), st.integers(), st.floats(allow_nan=False), st.just(np.float32(1)))
STATIC = st.one_of(st.none(), st.text(max_size=3), st.sampled_from(Mode))
TREES = st.recursive(
    LEAVES | STATIC,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.dictionaries(st.integers(), inner, max_size=2).map(OrderedDict),
        st.tuples(inner, inner).map(lambda t: Pair(*t)),
        inner.map(Layer),
    ),
    max_leaves=8,
)


@given(TREES)
def test_unflatten_inverts_flatten_and_structures_hash(tree):
    leaves, structure = flatten(tree)
    assert unflatten(structure, leaves) == tree
    again = flatten(unflatten(structure, leaves))[1]
    assert again == structure and hash(again) == hash(structure)
    assert len(structure.paths()) == structure.leaves == len(leaves)


def test_structures_tell_containers_statics_and_orders_apart():
    trees = [
        [1],
        (1,),
        {"a": 1},
        {"b": 1},
        Pair(1, 2),
        (1, 2),
        (1, None),
        (1, "x"),
        (1, Mode.TRAIN),
        (1, Mode.TEST),
        Layer(1),
        {"a": 1, "b": 2},
        {"b": 1, "a": 2},
    ]
    assert len({flatten(t)[1] for t in trees}) == len(trees)


def test_numpy_scalars_are_tensors_and_python_numbers_are_not():
    assert leaf_kind(np.float64(1)) is np.float64
    assert leaf_kind(np.array(1.0)) == (np.dtype(np.float64), 0)
    assert leaf_kind(1.0) is float
    assert leaf_kind(True) is bool
    assert leaf_kind(np.ones((2, 3), np.int8)) == (np.dtype(np.int8), 2)


def f(x, y, *rest, scale=1):
    return x


@pytest.mark.parametrize(
    "args, kwargs, where",
    [
        (([1, np.array(["a"])],), {}, "argument 'x'[1]: arrays of dtype"),
        ((1, {"w": np.array([None])}), {}, "argument 'y'['w']: arrays of dtype object"),
        ((1, 2, 3, np.array(["a"])), {}, "argument 'rest[1]': arrays"),
        ((1, 2), {"scale": np.array(["a"])}, "argument 'scale': arrays"),
        ((1, {1, 2}), {}, "argument 'y': objects of type set"),
        ((1, np.ma.ones(3)), {}, "argument 'y': MaskedArray arrays"),
        ((1, Layer(bytearray(b""))), {}, "argument 'y'.w: objects of type bytearray"),
    ],
)
def test_errors_name_the_argument(args, kwargs, where):
    with pytest.raises((DTypeError, ArgumentError)) as info:
        flatten_call(f, args, kwargs)
    assert info.value.what.startswith(where)


def test_containers_without_an_end_are_refused():
    cyclic = [1]
    cyclic.append(cyclic)
    deep = 1
    for _ in range(5000):
        deep = [deep]
    for tree in (cyclic, deep):
        with pytest.raises(ArgumentError, match="nested too deeply, or one contains itself"):
            flatten(tree)
        with pytest.raises(ArgumentError, match="nested too deeply, or one contains itself"):
            flatten_call(f, (1, tree), {})


def test_names_of_leaves():
    _, tree = flatten_call(f, ([1, 2], {"w": 3}, 4), {"scale": Pair(5, 6)})
    assert leaf_names(f, tree) == ["'x'[0]", "'x'[1]", "'y'['w']", "'rest[0]'", "'scale'.left", "'scale'.right"]


def test_wrong_number_of_leaves():
    with pytest.raises(ArgumentError, match="has 2 leaves, 1 given"):
        unflatten(flatten((1, 2))[1], [1])


def test_equal_keys_of_other_types_are_another_structure():
    """Code may compute with them: 1, 1.0 and True, and within tuples."""
    for keys in ((1, 1.0, True), ((1, "a"), (1.0, "a"), (True, "a"))):
        trees = [flatten({key: np.ones(2)})[1] for key in keys]
        assert len(set(trees)) == 3
        assert trees == [flatten({key: np.zeros(2)})[1] for key in keys]
    f = pf.jit(lambda t: [v * k for k, v in t.items()])
    for key in (1, 1.0, True) * 2:
        assert f({key: np.arange(3)})[0].dtype == np.asarray(key * np.arange(3)).dtype
