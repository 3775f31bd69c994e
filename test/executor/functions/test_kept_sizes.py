"""Sizes that a function keeps, as keys of dicts, in sets, objects and texts; the order of dicts."""

from __future__ import annotations

import re
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass
from functools import partial

import numpy as np
import profuse as pf
import pytest


class Box:
    pass


T = Box()
Pair = namedtuple("Pair", "a b")


@dataclass
class Record:
    n: int


def reset():
    vars(T).clear()
    vars(T).update(
        d={}, counts=Counter(), lists=defaultdict(list), ordered=OrderedDict(), queue=deque(), s=set(), items=[], n=0
    )


def key(x):
    T.d[len(x)] = float(len(x))
    return x + 1


def key_of_a_shape(x):
    if x.shape not in T.d:
        T.d[x.shape] = np.zeros(x.shape)
    T.d[x.shape] += 1
    return T.d[x.shape]


def setdefault(x):
    return T.d.setdefault((len(x), "k"), x * 1) * 2


def update(x):
    T.d.update({len(x): x.size, x.ndim: 0})
    return x


def pop(x):
    return T.d.pop(len(x), None), T.d.get(3), x


def nested(x):
    T.d["a"] = {"n": [len(x), (x.shape,)], len(x): {x.shape: 1}}
    return x


def counter(x):
    T.counts[len(x)] += 1
    return x


def lists(x):
    T.lists[len(x)].append(x.sum())
    return x


def in_a_set(x):
    T.s.add((len(x), 2))
    return x


def in_objects(x):
    T.items += [Record(len(x)), Pair(len(x), x.sum()), slice(len(x) - 1), range(len(x))]
    T.queue.append(len(x))
    T.add = partial(np.add, len(x))
    T.text = f"n={len(x)}"
    return x * len(T.queue)


def results(x):
    return {len(x): [x, {x.shape: len(x)}]}, Counter([len(x), 3]), defaultdict(int, {len(x): 1})


def to_the_end(x):
    T.ordered[x.shape] = x.size
    T.ordered.move_to_end(x.shape, last=False)
    return x


def least_recently_used(x):
    if len(x) in T.ordered:
        T.ordered.move_to_end(len(x))
    else:
        T.ordered[len(x)] = x * 2
        if len(T.ordered) > 2:
            T.ordered.popitem(last=False)
    return T.ordered[len(x)] + x


def again_at_the_end(x):
    T.d[len(x)] = T.d.pop(len(x)) if len(x) in T.d else x.sum()
    return list(T.d), x


FUNCTIONS = (
    key,
    key_of_a_shape,
    setdefault,
    update,
    pop,
    nested,
    counter,
    lists,
    in_a_set,
    in_objects,
    results,
    to_the_end,
    least_recently_used,
    again_at_the_end,
)


def played(function):
    reset()
    told = []
    for size in (3, 3, 4, 3, 5, 3, 4, 3, 3):
        given = function(np.ones(size))
        told.append(re.sub(r"0x\w+", "", repr((given, vars(T)))))
    return told


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_as_in_python(function):
    assert played(pf.jit(function, unsupported="python")) == played(function)


def test_keys_of_arguments():
    def f(q, x):
        q[len(x)] = x.sum()
        q["first"] = q.pop("first")
        return list(q)

    jitted = pf.jit(f, unsupported="python")
    for size in (2, 2, 3, 2):
        ours, theirs = {"first": 1, "second": 2}, {"first": 1, "second": 2}
        x = np.ones(size)
        assert jitted(ours, x) == f(theirs, x)
        assert list(ours.items()) == list(theirs.items())


class Ordered(OrderedDict):
    pass


@pytest.mark.parametrize("kind", [OrderedDict, Ordered])
def test_ordered_dicts_of_another_order_than_that_of_insertion(kind):
    def f(q):
        q["a"] = q["a"] + 1
        return q["a"] * 10 + q["b"], list(q)

    jitted = pf.jit(f, unsupported="python")
    weigh = pf.jit(lambda q: q["a"] * 10 + q["b"])
    for k in range(6):
        ours, theirs = (kind(a=np.ones(2), b=np.full(2, 5.0)) for _ in range(2))
        if k % 2:
            ours.move_to_end("a"), theirs.move_to_end("a")
        np.testing.assert_array_equal(weigh(ours), np.full(2, 15.0))
        assert repr(jitted(ours)) == repr(f(theirs))
        assert repr(ours) == repr(theirs)
        ours.popitem(), theirs.popitem()
        assert list(ours) == list(theirs)


def test_the_order_in_which_a_dict_is_read():
    scales = {"a": 1.0, "b": 2.0}

    @pf.jit
    def f(x):
        for name, scale in scales.items():
            x = x * scale + len(name) * scale
        return x

    for _ in range(3):
        for _ in range(5):
            np.testing.assert_array_equal(f(np.ones(3)), f.__wrapped__(np.ones(3)))
        first = next(iter(scales))
        scales[first] = scales.pop(first)
    assert f.state().counters["traces"] == 2
    assert not any("dispatch" in str(reason) for reason in f.state().reasons)
