"""Relaxed guards and size checks in emitted code: the same answers as their definitions."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import combinations, product

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from internals import last_executor
from profuse.dialect.guards.checks import checks_of
from profuse.dialect.guards.free_sizes import FreeSizes, axis_name
from profuse.dialect.guards.mismatch import fits_relaxed, mismatches
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import TensorType, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.trees.pytree import LEAF
from profuse.executor.dispatch.arguments import flat_arguments
from profuse.executor.dispatch.conditions.guards import guard_tests
from profuse.executor.dispatch.leaf_spec import HostKernel
from profuse.executor.dispatch.leaf_values import MadeValue
from profuse.executor.dispatch.loaded_dispatcher import make_entry
from profuse.executor.dispatch.reader import leaf_of
from profuse.executor.memory.offsets import Refused
from profuse.executor.plans.guard import quick_check
from profuse.executor.plans.kernel_call import native_kernel
from profuse.executor.plans.plan import build_plan
from profuse.executor.plans.plan_steps import plan_steps
from profuse.executor.settings.events import Counters
from test_dispatch_guards import entry_for, plain_settings


def random_layout(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    """An f64 array with axes in any order, some of which broadcast, are reversed or have gaps."""
    axes = rng.sample(range(len(shape)), len(shape))
    steps = [rng.choice((1, 1, 1, 2, -1)) for _ in shape]
    whole = [1 if rng.random() < 0.15 else shape[a] * abs(s) for a, s in zip(axes, steps, strict=True)]
    raw = np.zeros(whole)
    raw = raw[tuple(slice(None, None, 1 if n == 1 else s) for n, s in zip(whole, steps, strict=True))]
    return np.broadcast_to(np.transpose(raw, np.argsort(axes)), shape)


def relaxed_type(rng: random.Random, given: np.ndarray) -> TensorType:
    """A type that was profiled of an array, or knows less of it."""
    found = replace(type_of(given), device="cpu", requires_grad=False)
    strides = found.strides
    if isinstance(strides, tuple) and rng.random() < 0.3:
        found = replace(found, strides=tuple(rng.choice((s, None)) for s in strides))
    if rng.random() < 0.1:
        found = replace(found, strides=rng.choice((None, "contiguous")))
    if rng.random() < 0.3 and found.shape:
        shape = tuple(symbol(f"s{k}") if d > 1 and rng.random() < 0.5 else d for k, d in enumerate(found.shape))
        found = replace(found, shape=shape)
    return found


def test_random_relaxed_guards():
    """R3.42, R1.39: emitted, they answer as `fits_relaxed` does."""
    seen: Counter = Counter()
    seeds = 150 if EVERY_CASE else 60
    for seed in range(seeds):
        rng = random.Random(seed)
        rank = rng.randrange(4)
        pool = rng.sample((1, 2, 3, 4), 2) + [0] * (seed % 10 == 0)
        first = random_layout(rng, tuple(rng.choice(pool) for _ in range(rank)))
        type_ = relaxed_type(rng, first)
        entry, _recent = entry_for((type_,), partial(guard_tests, relaxed=True))
        for k in range(40):
            given = first if k % 10 == 0 else random_layout(rng, tuple(rng.choice(pool) for _ in range(rank)))
            fits = fits_relaxed([type_], [given])
            assert (entry.call(given) == ()) == fits, (seed, type_, given.shape, given.strides)
            seen[fits] += 1
    assert seen[True] > 6 * seeds
    assert seen[False] > 6 * seeds


def random_relations(rng: random.Random, shapes: list[tuple[int, ...]]) -> FreeSizes:
    """Relations between sizes, most of which hold for these shapes, of which no size is 0 or 1."""
    size_at = {(k, a): size for k, shape in enumerate(shapes) for a, size in enumerate(shape)}
    equal = tuple(
        (*first, *other)
        for first, other in combinations(size_at, 2)
        if (size_at[first] == size_at[other]) == (rng.random() < 0.8) and rng.random() < 0.5
    )
    fit = []
    for axis, size in size_at.items():
        other = rng.choice(list(size_at))
        name, far = axis_name(*axis), axis_name(*other)
        texts = [
            f"{name} == {size}",
            f"({name} % 2) == {size % 2}",
            f"{name} == {far} + {size - size_at[other]}",
            f"({far} // 2) == {size_at[other] // 2}",
            f"max({name}, {far} + {size - size_at[other] - rng.randrange(2)}) == {name}",
        ]
        fit += [text for text in texts if rng.random() < 0.3]
    fit += [f"{'*'.join(axis_name(k, a) for a in range(len(s)))} == {np.prod(s)}" for k, s in enumerate(shapes)]
    return FreeSizes(equal, tuple(fit))


def test_a6_random_relations_between_sizes():
    """All folds answer alike: the decision, the words, the quick source, and emitted code."""
    seen: Counter = Counter()
    seeds = 120 if EVERY_CASE else 40
    for seed in range(seeds):
        rng = random.Random(seed)
        pool = rng.sample((2, 3, 4, 6), 2)
        ranks = [rng.randrange(1, 3), rng.randrange(1, 3)]
        draws = [[tuple(rng.choice(pool) for _ in range(rank)) for rank in ranks] for _ in range(30)]
        shapes = draws[0]
        types = [replace(type_of(np.zeros(shape)), device="cpu", requires_grad=False) for shape in shapes]
        free = random_relations(rng, shapes)
        entry, _recent = entry_for(tuple(types), partial(guard_tests, relaxed=True, free=free))
        checks = checks_of(types, relaxed=True, free=free)
        names: dict[str, object] = {}
        source = quick_check(types, checks, ["v0", "v1"], partial(bind, names))
        assert source is not None
        for k, other in enumerate(draws):
            arrays = [np.zeros(shape) for shape in (shapes if k % 6 == 0 else other)]
            fits = fits_relaxed(types, arrays, free)
            where = (seed, free, [a.shape for a in arrays])
            assert (entry.call(*arrays) == ()) == fits, where
            assert bool(eval(source, {**names, "v0": arrays[0], "v1": arrays[1]})) == fits, where
            assert (mismatches(types, list(map(type_of, arrays)), relaxed=True, free=free) == []) == fits, where
            seen[fits] += 1
    assert seen[True] > 4 * seeds
    assert seen[False] > 4 * seeds


def bind(names: dict[str, object], prefix: str, value: object) -> str:
    """A name under which a source finds a value."""
    name = f"{prefix}{len(names)}"
    names[name] = value
    return name


def test_a6_products_of_sizes_of_two_arrays_do_not_overflow():
    """Emitted code takes factors of 31 bits alone, or fewer of several; Python serves what is larger."""

    def rows(n: int, m: int) -> np.ndarray:
        return np.broadcast_to(np.zeros((1, m)), (n, m))

    types = (replace(type_of(rows(2, 3)), device="cpu"),) * 2
    free = FreeSizes(fit=("s0_0*s1_0 == s0_1*s1_1",))
    entry, _recent = entry_for(types, partial(guard_tests, relaxed=True, free=free))
    calls = [((6, 3), (3, 6), True), ((2, 3), (2, 3), False), ((2**33, 2), (2**33, 2), False)]
    for first, second, fits in calls:
        assert fits_relaxed(types, [rows(*first), rows(*second)], free) is fits
        assert (entry.call(rows(*first), rows(*second)) == ()) is fits
    values = flat_arguments([(np.dtype(np.float64), 2)] * 2).values
    for fit, limit in (("s0_0*s1_0 == 4", 2**31), ("s0_1 == 3*s0_0*s1_0", 2**24), ("s0_0*s1_0*s0_1 == 4", 2**20)):
        tests = guard_tests(types, values, relaxed=True, free=FreeSizes(fit=(fit,)))
        assert {t.field[2] for t in tests if t.field[0] == "less"} == {limit}
    with pytest.raises(Refused, match="as Python does"):
        guard_tests(types, values, relaxed=True, free=FreeSizes(fit=("s0_0*s1_0*s0_1*s1_1 == 4",)))


def test_relaxed_guards_hold_for_what_kernels_make_in_c_order():
    """R3.42: such a value has the sizes that follow from those of the arguments, and no gaps."""
    rows = np.zeros((2, 3))
    made = MadeValue(rows.dtype, (symbol("n"), symbol("m")))
    in_order = replace(type_of(rows), device="cpu", requires_grad=False)
    assert all(test.field[0] in ("same", "positive") for test in guard_tests([in_order], [made], relaxed=True))
    turned = replace(type_of(rows.T), device="cpu", requires_grad=False)
    with pytest.raises(Refused, match="another order"):
        guard_tests([turned], [made], relaxed=True)


@pytest.mark.parametrize("type_", [type_of(np.zeros((2, 3))), replace(type_of(np.zeros(2)), device="cpu")])
def test_relaxed_guards_that_never_hold_are_refused(type_):
    """R3.42: a device has to be known, and the rank has to be that of the arguments."""
    known = replace(type_, device=None if type_.rank == 2 else "cpu")
    values = flat_arguments([(np.dtype(np.float64), 2)]).values
    with pytest.raises(Refused, match="never holds"):
        guard_tests([known], values, relaxed=True)


CHECKED = """
func.func @main(%x: !profuse.tensor) -> !profuse.tensor {
  %0:2 = "profuse.cuda_guard"(%x) {types = [TYPE]} : (!profuse.tensor) -> (KNOWN, i1)
  %1 = scf.if %0#1 -> (!profuse.tensor) {
    %l = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
    %ok = "profuse.size_eq"(%l) {reference = array<i64: 4, 8>} : (!profuse.ints) -> i1
    %2 = scf.if %ok -> (!profuse.tensor) {
      %3 = "profuse.fusion_group"(%x) {callee = @group} : (!profuse.tensor) -> !profuse.tensor
      scf.yield %3 : !profuse.tensor
    } else {
      %3 = "profuse.call_fallback"(%x) {callee = @slow} : (!profuse.tensor) -> !profuse.tensor
      scf.yield %3 : !profuse.tensor
    }
    scf.yield %2 : !profuse.tensor
  } else {
    %2 = "profuse.call_fallback"(%x) {callee = @slow} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }
  return %1 : !profuse.tensor
}
func.func private @group(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
func.func private @slow(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.neg"(%x) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
""".replace("TYPE", 'tensor<4x8xf32, {device = "cpu", strides = "contiguous"}>').replace(
    "KNOWN", 'tensor<?x?xf32, {device = "cpu", strides = "contiguous"}>'
)


@pytest.mark.parametrize(
    ("reference", "checks", "fits"),
    [("4, 8", True, True), ("4, 8", False, True), ("1, 8", True, False), ("1, 8", False, True)],
)
def test_size_checks_behind_relaxed_guards(reference, checks, fits):
    """R3.42, R3.43: one leaf for any sizes that fit; a switch makes size checks true."""
    f = pf.jit(lambda x: np.exp(x), strategy=[("dynamic", 1)])
    for _ in range(3):
        f(np.ones((4, 8), np.float32))
    (runner,) = last_executor(f).optimized.kernels.values()
    module = decode_module(parse_module(CHECKED.replace("4, 8>}", f"{reference}>}}")))
    counters = Counters()
    plan = build_plan(module, {"group": runner}, lambda *_: lambda args: [-args[0]], counters)
    artifact, loaded = native_kernel(runner)
    arguments = flat_arguments([(np.dtype(np.float32), 2)])
    kernels = {"group": HostKernel(artifact, loaded.address)}
    leaf, fallback = leaf_of(plan.steps, kernels, arguments.values)
    assert fallback is None
    leaf.remembered = plan.ref
    leaf.finish(arguments, LEAF)
    recent = np.zeros(3, np.int64)
    entry = make_entry([leaf], lambda x: None, plain_settings(recent), [loaded])
    pf.set_size_checks(checks)
    try:
        for shape in ((4, 8), (16, 32), (2, 2), (1, 8), (4, 1), (0, 8)):
            x = np.full(shape, 0.5, np.float32)
            (wanted,), found = plan.run([x]), entry.call(x)
            assert (found is not None) == (fits and min(shape) > 1)
            np.testing.assert_array_equal(wanted, -x if found is None else found)
        x = np.full((8, 4), 0.5, np.float32).T
        assert entry.call(x) is None and plan.run([x])[0][0, 0] < 0
    finally:
        pf.set_size_checks(True)
    assert counters.guard_hits == 3
    assert counters.evaluated_ops == leaf.evaluated * 3 == 6


def test_size_checks_of_another_length_never_hold():
    """R3.43"""
    text = CHECKED.replace("array<i64: 4, 8>", "array<i64: 4>")
    module = decode_module(parse_module(text))
    with pytest.raises(Refused, match="never holds"):
        leaf_of(plan_steps(module.main, {}), {}, flat_arguments([(np.dtype(np.float32), 2)]).values)


SPECULATED = """
func.func @main(%x: !profuse.tensor, %k: i1, %n: i64) -> !profuse.tensor {
  %0:2 = "profuse.cuda_guard"(%x) {types = [TYPE]} : (!profuse.tensor) -> (KNOWN, i1)
  %c = "profuse.constant"() {value = PROFILED} : () -> i1
  %t = "profuse.constant"() {value = true} : () -> i1
  %a = "profuse.bool_xor"(%k, %c) : (i1, i1) -> i1
  %b = "profuse.bool_xor"(%a, %t) : (i1, i1) -> i1
  %i = "profuse.value_eq"(%n) {value = -3 : i64} : (i64) -> i1
  %s = "profuse.sizes"(%x) : (!profuse.tensor) -> !profuse.ints
  %w = "profuse.value_eq"(%s) {value = array<i64: 4, 8>} : (!profuse.ints) -> i1
  %ok = "profuse.all_true"(%b, %i, %w, %0#1) : (i1, i1, i1, i1) -> i1
  %1 = scf.if %ok -> (!profuse.tensor) {
    %3 = "profuse.fusion_group"(%x) {callee = @group} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %3 : !profuse.tensor
  } else {
    %3 = "profuse.call_fallback"(%x) {callee = @slow} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %3 : !profuse.tensor
  }
  return %1 : !profuse.tensor
}
""" + CHECKED[CHECKED.index("func.func private @group") :]
SPECULATED = SPECULATED.replace("TYPE", 'tensor<4x8xf32, {device = "cpu", strides = "contiguous"}>').replace(
    "KNOWN", 'tensor<?x?xf32, {device = "cpu", strides = "contiguous"}>'
)


@pytest.mark.parametrize("profiled", [True, False])
def test_r3_38_values_of_calls_are_compared_in_emitted_code(profiled):
    """A call with another bool, integer or size is no hit of the leaf, whatever the arrays are."""
    f = pf.jit(lambda x: np.exp(x), strategy=[("dynamic", 1)])
    for _ in range(3):
        f(np.ones((4, 8), np.float32))
    (runner,) = last_executor(f).optimized.kernels.values()
    module = decode_module(parse_module(SPECULATED.replace("PROFILED", str(profiled).lower()), "t"))
    counters = Counters()
    plan = build_plan(module, {"group": runner}, lambda *_: lambda args: [-args[0]], counters)
    artifact, loaded = native_kernel(runner)
    arguments = flat_arguments([(np.dtype(np.float32), 2), bool, int])
    leaf, fallback = leaf_of(plan.steps, {"group": HostKernel(artifact, loaded.address)}, arguments.values)
    assert fallback is None
    leaf.remembered = plan.ref
    leaf.finish(arguments, LEAF)
    entry = make_entry([leaf], lambda *_: None, plain_settings(np.zeros(3, np.int64)), [loaded])
    seen = Counter()
    for shape, keep, n in product(((4, 8), (8, 4), (4, 1)), (True, False), (-3, 3, 0, 2**62, -(2**63), 2**70)):
        x = np.full(shape, 0.5, np.float32)
        fits = shape == (4, 8) and keep is profiled and n == -3
        result = entry.call(x, keep, n)
        assert (result is not None) == fits, (shape, keep, n)
        if n < 2**63:
            (wanted,) = plan.run([x, keep, n])
            np.testing.assert_array_equal(wanted, -x if result is None else result)
        seen[fits] += 1
    assert seen == {True: 1, False: 35}
    assert counters.guard_hits == 1 and leaf.evaluated == 6


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("value = array<i64: 4, 8>", "value = array<i64: 4>", "never holds"),
        ('"profuse.bool_xor"(%k, %c)', '"profuse.bool_xor"(%k, %k)', "runs in Python"),
        ("(%b, %i, %w, %0#1)", "(%k, %i, %w, %0#1)", "profuse.all_true"),
    ],
)
def test_other_comparisons_are_pythons(before, after, reason):
    text = SPECULATED.replace("PROFILED", "true").replace(before, after)
    module = decode_module(parse_module(text, "t"))
    arguments = flat_arguments([(np.dtype(np.float32), 2), bool, int])
    with pytest.raises(Refused, match=reason):
        leaf_of(plan_steps(module.main, {}), {}, arguments.values)
