"""Emitted guards answer as `check_types`, their definition, does: random types, random arrays."""

from __future__ import annotations

import pickle
import random
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from dispatched import outcome
from every_case import EVERY_CASE
from profuse.dialect.guards.checks import checks_of, generalize
from profuse.dialect.guards.mismatch import check_types, fits_relaxed, mismatches
from profuse.dialect.guards.seen import noted, seen_type, type_noted
from profuse.dialect.ir.dtypes import BOOL, C64, C128, F16, F32, F64, I32, I64, U8
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import TensorType, type_of
from profuse.executor.dispatch.arguments import flat_arguments
from profuse.executor.dispatch.conditions.guards import guard_tests
from profuse.executor.dispatch.counter_table import Settings
from profuse.executor.dispatch.leaf_spec import Leaf
from profuse.executor.dispatch.loaded_dispatcher import make_entry
from profuse.executor.memory import output_pool, thread_block
from profuse.executor.memory.offsets import Refused
from profuse.executor.plans.guard import quick_check, sure_miss
from profuse.executor.plans.last_executed import LAST

DTYPES = (F32, F64, I64, C128, C64, F16, I32, U8, BOOL)
SIZES = (0, 1, 2, 3, 4)


class Sub(np.ndarray):
    pass


def random_array(rng: random.Random, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """An array of this shape in any layout that NumPy can make."""
    steps = [rng.choice((1, 1, 1, 2)) for _ in shape]
    raw = np.zeros(tuple(s * k for s, k in zip(shape, steps, strict=True)), dtype)
    raw = np.asarray(raw[tuple(slice(None, None, k) for k in steps)])
    how = rng.randrange(9)
    if how == 0:
        return np.asfortranarray(raw)
    if how == 1:
        return np.asarray(raw[tuple(slice(None, None, rng.choice((1, -1))) for _ in shape)])
    if how == 2:
        return np.broadcast_to(np.zeros((), dtype), shape)
    if how == 3:
        return shifted(rng.choice((1, 2, 4, 8)), dtype, shape)
    if how == 4:
        return raw.view(Sub)
    if how == 5:
        return raw.astype(dtype.newbyteorder())
    if how == 6:
        return pickle.loads(pickle.dumps(raw))
    return np.ascontiguousarray(raw).reshape(shape)


def shifted(by: int, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Contiguous, but ``by`` bytes off where NumPy would put it."""
    memory = np.zeros(int(np.prod(shape)) * dtype.itemsize + by, np.uint8)
    return memory[by:].view(dtype).reshape(shape)


def random_types(rng: random.Random, given: list[np.ndarray]) -> tuple[TensorType, ...]:
    """Types of a static or a dynamic guard, some of which these arrays fit."""
    types = tuple(replace(type_of(np.asarray(a)), requires_grad=False) for a in given)
    if rng.random() < 0.5:
        types = generalize(types, literal=rng.sample(SIZES, 2)) or types
    out = []
    for t in types:
        if rng.random() < 0.3 and t.strides != "contiguous" and isinstance(t.strides, tuple):
            t = replace(t, strides=tuple(rng.choice((s, None)) for s in t.strides))
        if rng.random() < 0.2 and t.shape:
            n = symbol("s0")
            dims = [rng.choice((d, n, n + 1, n * 2, n * 3, 2)) for d in t.shape]
            t = replace(t, shape=tuple(dims))
        if rng.random() < 0.2:
            t = replace(t, strides=rng.choice((None, "contiguous")))
        out.append(t)
    return tuple(out)


def expected(types: tuple[TensorType, ...], given: list[np.ndarray]) -> bool:
    """What the guard says of arguments that need no copy; others are Python's (`flat.flat_key`)."""
    plain = all(type(a) is np.ndarray and a.flags.aligned and a.dtype.isnative for a in given)
    return plain and check_types(types, given)


def entry_for(types: tuple[TensorType, ...], tests_of=guard_tests):
    """A dispatcher that answers () where the guard holds, else None."""
    arguments = flat_arguments([(t.dtype.numpy, t.rank) for t in types])
    leaf = Leaf(tests=tests_of(types, arguments.values))
    leaf.finish(arguments, ("tuple", None, ()))
    recent = np.zeros(3, np.int64)
    return make_entry([leaf], lambda *_: None, plain_settings(recent)), recent


def plain_settings(recent: np.ndarray) -> Settings:
    """``recent``: three numbers that outlive the dispatcher."""
    return Settings(64, 10_000, recent.ctypes.data, LAST, output_pool.empty, output_pool.workspace, thread_block.take)


def answers(seed: int) -> Counter:
    """How often emitted code was right about arguments that fit and do not fit a random guard."""
    rng = random.Random(seed)
    ranks = [rng.randrange(4) for _ in range(rng.choice((1, 2, 3)))]
    dtypes = [rng.choice(DTYPES).numpy for _ in ranks]

    def arguments() -> list[np.ndarray]:
        pool = rng.sample(SIZES, 2)
        shapes = [tuple(rng.choice(pool) for _ in range(r)) for r in ranks]
        return [random_array(rng, d, s) for d, s in zip(dtypes, shapes, strict=True)]

    first = [np.asarray(a).astype(d, copy=False) for a, d in zip(arguments(), dtypes, strict=True)]
    types = random_types(rng, first)
    seen: Counter = Counter()
    try:
        entry, _recent = entry_for(types)
    except Refused:
        return Counter(refused=1)
    for k in range(150):
        given = list(first) if k % 10 == 0 else arguments()
        if k % 7 == 3:
            given[0] = random_array(rng, rng.choice(DTYPES).numpy, given[0].shape)
        if k % 11 == 5:
            given[0] = given[0][None]
        fits = expected(types, given)
        described = [(a.dtype, a.shape, a.strides, a.ctypes.data % 16) for a in given]
        assert (entry.call(*given) == ()) == fits, (seed, types, described)
        seen[fits] += 1
    return seen


def test_random_guards():
    seen = sum((answers(seed) for seed in range(60 if EVERY_CASE else 30)), Counter())
    assert seen[True] > 150
    assert seen[False] > 150
    assert seen["refused"] < 5


def quick_answer(types: tuple[TensorType, ...], given: list[np.ndarray]) -> bool | None:
    """What the comparison says that plans try first; None = there is none for these types."""
    scope: dict = {f"v{k}": array for k, array in enumerate(given)}

    def bind(prefix: str, value: object) -> str:
        scope[f"{prefix}{len(scope)}"] = value
        return f"{prefix}{len(scope) - 1}"

    values = [f"v{k}" for k in range(len(types))]
    source = quick_check(types, checks_of(types), values, bind)
    return None if source is None else bool(eval(source, scope))


def surely_misses(types: tuple[TensorType, ...], given: list[np.ndarray]) -> bool:
    """What the comparison says by which plans pass over a guard."""
    source = sure_miss(checks_of(types), [f"v{k}" for k in range(len(types))])
    scope = {f"v{k}": array for k, array in enumerate(given)}
    return source is not None and bool(eval(source, scope))


def test_r1_39_quick_checks_and_explanations_say_what_the_definition_says():
    """Quick checks admit nothing that the definition refuses; what it refuses is explained."""
    seen: Counter = Counter()
    for seed in range(1500):
        rng = random.Random(seed)
        dtype = rng.choice(DTYPES).numpy
        sizes = rng.sample(SIZES, 2)
        shapes = [tuple(rng.choice(sizes) for _ in range(rng.randrange(3))) for _ in range(2)]
        first = [np.zeros(shape, dtype) for shape in shapes]
        types = random_types(rng, first)
        if rng.random() < 0.1:
            change = rng.choice(({"requires_grad": True}, {"defined": False}))
            types = (replace(types[0], **change), types[1])
        given = [random_array(rng, dtype, shape) for shape in shapes]
        fits, quick = check_types(types, given), quick_answer(types, given)
        misses = surely_misses(types, given)
        assert fits or not quick, (seed, types, given)
        assert not (fits and misses), (seed, types, given)
        assert [type_noted(noted(array)) for array in given] == [seen_type(a) for a in given]
        told = mismatches(types, [seen_type(array) for array in given])
        if not any(t.requires_grad for t in types):  # profiled types say no such thing
            assert bool(told) == (not fits), (seed, types, told)
        seen[fits, quick] += 1
        seen["sure"] += misses
    assert seen[True, True] > 300 and seen["sure"] > 20
    assert seen[False, False] > 300
    assert seen[True, False] > 10  # sizes of 1, nothing at all


@pytest.mark.parametrize("array", [shifted(1, np.dtype("f4"), (4,)), np.zeros(4, ">f4")])
def test_r3_42_relaxed_guards_admit_nothing_that_kernels_cannot_read(array):
    assert fits_relaxed([type_of(np.zeros(4, "f4"))], [np.zeros(4, "f4")])
    assert not fits_relaxed([type_of(np.zeros(4, "f4"))], [array])


def mixed(x, y):
    return np.tanh(x + y) * x, x - y


def columns(x, y):
    return [(x * y).sum(axis=0) + x]


@pytest.mark.sampled(8, each=("fn",))
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("fn", [mixed, columns])
def test_random_calls(fn, seed):
    """Values, errors, counts and what `explain` says, of both dispatchers after the same calls."""
    rng = random.Random(seed)
    pool = []
    for _ in range(6):
        dtype = rng.choice((F32, F64, C128)).numpy
        shape = rng.choice(((2, 3), (3, 2), (4, 3), (1, 3)))
        pool.append((random_array(rng, dtype, shape), random_array(rng, dtype, shape)))
    calls = [rng.choice(pool) for _ in range(40)]
    got, counted = outcome(fn, calls, native=True)
    want, python = outcome(fn, calls, native=False)
    assert got == want
    assert counted == python
