"""Relaxed guards and size checks in emitted code: the same answers as their definitions."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import profuse as pf
import pytest
from internals import last_executor
from profuse.dialect.guards.mismatch import fits_relaxed
from profuse.dialect.importers.numpy.tracing.pytree import LEAF
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import TensorType, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.executor.dispatch.arguments import flat_arguments
from profuse.executor.dispatch.conditions.guards import guard_tests
from profuse.executor.dispatch.entry import make_entry
from profuse.executor.dispatch.leaf_spec import HostKernel
from profuse.executor.dispatch.reader import leaf_of
from profuse.executor.memory.placement import Refused
from profuse.executor.plans.kernel_call import native_kernel
from profuse.executor.plans.plan import build_plan
from profuse.executor.settings.events import Counters
from test_dispatch_guards import entry_for, plain_settings


def random_layout(rng: random.Random, shape: tuple[int, ...]) -> np.ndarray:
    """An f64 array with axes in any order, some of which broadcast, are reversed or have gaps."""
    axes = rng.sample(range(len(shape)), len(shape))
    steps = [rng.choice((1, 1, 1, 2, -1)) for _ in shape]
    whole = [
        1 if rng.random() < 0.15 else shape[a] * abs(s) for a, s in zip(axes, steps, strict=True)
    ]
    raw = np.zeros(whole)
    raw = raw[
        tuple(slice(None, None, 1 if n == 1 else s) for n, s in zip(whole, steps, strict=True))
    ]
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
        shape = tuple(symbol(f"s{k}") if d > 1 and rng.random() < 0.5 else d
                      for k, d in enumerate(found.shape))  # fmt: skip
        found = replace(found, shape=shape)
    return found


def test_random_relaxed_guards():
    """R3.42, R1.39: emitted, they answer as `fits_relaxed` does."""
    seen: Counter = Counter()
    for seed in range(150):
        rng = random.Random(seed)
        rank = rng.randrange(4)
        pool = rng.sample((1, 2, 3, 4), 2) + [0] * (seed % 10 == 0)
        first = random_layout(rng, tuple(rng.choice(pool) for _ in range(rank)))
        type_ = relaxed_type(rng, first)
        entry, _recent = entry_for((type_,), partial(guard_tests, relaxed=True))
        for k in range(40):
            given = (
                first
                if k % 10 == 0
                else random_layout(rng, tuple(rng.choice(pool) for _ in range(rank)))
            )
            fits = fits_relaxed([type_], [given])
            assert (entry.call(given) == ()) == fits, (seed, type_, given.shape, given.strides)
            seen[fits] += 1
    assert seen[True] > 1000
    assert seen[False] > 1000


@pytest.mark.parametrize(
    "type_", [type_of(np.zeros((2, 3))), replace(type_of(np.zeros(2)), device="cpu")]
)
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
    %a = "profuse.dim"(%x) {axis = 0 : i64} : (!profuse.tensor) -> i64
    %b = "profuse.dim"(%x) {axis = 1 : i64} : (!profuse.tensor) -> i64
    %l = "profuse.list_construct"(%a, %b) : (i64, i64) -> !profuse.list
    %ok = "profuse.size_eq"(%l) {reference = array<i64: 4, 8>} : (!profuse.list) -> i1
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
    plan = build_plan(module, {"group": runner}, {"slow": lambda args: [-args[0]]}, counters)
    artifact, loaded = native_kernel(runner)
    arguments = flat_arguments([(np.dtype(np.float32), 2)])
    kernels = {"group": HostKernel(artifact, loaded.address)}
    leaf, fallback = leaf_of(module, kernels, arguments.values)
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
    assert counters.evaluated_ops == leaf.evaluated * 3 == 12


def test_size_checks_of_another_length_never_hold():
    """R3.43"""
    text = CHECKED.replace("array<i64: 4, 8>", "array<i64: 4>")
    module = decode_module(parse_module(text))
    with pytest.raises(Refused, match="never holds"):
        leaf_of(module, {}, flat_arguments([(np.dtype(np.float32), 2)]).values)
