"""Groups that are made for values of the run: what is compared, and what runs where it differs (R3.36 - R3.43)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.reasons import Effect, Kind
from whole_groups import GroupedPlan, plan_of

PIPELINE = (
    "extract-constants,partition-device-groups{host=true single=true},insert-device-guards,remove-value-observers,"
    "erase-types,convert-fallbacks,prepare-kernels"
)
TYPE = 'tensor<2x6xf32, {device = "cpu", requires_grad = false, strides = "contiguous"}>'
GRAPH = f"""
func.func @main(%x: {TYPE}, %y: {TYPE}, %s: !profuse.ints, %k: i1, %t: !profuse.ints)
    -> (tensor<2x2x3xf32>, tensor<2x1xf32>, tensor<1x6xf32>) {{
  %v = "profuse.profile_value"(%s) {{site = 0 : i64, profiled_view_size = array<i64: 2, 2, 3>}}
    : (!profuse.ints) -> !profuse.ints
  %b = "profuse.profile_value"(%k) {{site = 1 : i64, profiled_bool = true}} : (i1) -> i1
  %r = "profuse.profile_value"(%t) {{site = 2 : i64, profiled_reduction_size = array<i64: 1, 6>}}
    : (!profuse.ints) -> !profuse.ints
  %a = "profuse.constant"() {{value = array<i64: 1>}} : () -> !profuse.ints
  %0 = "profuse.add"(%x, %y) : ({TYPE}, {TYPE}) -> {TYPE}
  %1 = "profuse.late"(%0, %v) {{op = "reshape", names = ["shape"]}}
    : ({TYPE}, !profuse.ints) -> tensor<2x2x3xf32, {{device = "cpu"}}>
  %2 = "profuse.mul"(%1, %1)
    : (tensor<2x2x3xf32, {{device = "cpu"}}>, tensor<2x2x3xf32, {{device = "cpu"}}>) -> tensor<2x2x3xf32>
  %3 = "profuse.late"(%0, %a, %b) {{op = "sum", names = ["axes", "keepdims"]}}
    : ({TYPE}, !profuse.ints, i1) -> tensor<2x1xf32>
  %4 = "profuse.late"(%0, %r) {{op = "sum_to_size", names = ["sizes"]}} : ({TYPE}, !profuse.ints) -> tensor<1x6xf32>
  return %2, %3, %4 : tensor<2x2x3xf32>, tensor<2x1xf32>, tensor<1x6xf32>
}}
"""


@pytest.fixture(scope="module")
def plan() -> GroupedPlan:
    compiled = plan_of(GRAPH, PIPELINE)
    assert not compiled.result.failures
    assert list(compiled.result.kernels) == ["cuda_group_0"]
    return compiled


def reference(x: np.ndarray, y: np.ndarray, sizes: Any, keepdims: bool, target: Any) -> tuple:
    """What the graph computes, in NumPy."""
    added = x + y
    viewed = added.reshape(sizes)
    summed = added
    if target:
        if len(target) > added.ndim or np.broadcast_shapes(target, added.shape) != added.shape:
            raise ValueError("no such sum")
        first = added.ndim - len(target)
        ones = tuple(first + k for k, size in enumerate(target) if size == 1)
        summed = added.sum(axis=(*range(first), *ones), keepdims=True).reshape(target)
    return viewed * viewed, added.sum(axis=1, keepdims=keepdims), summed


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float32)


def check(plan: GroupedPlan, shapes: tuple, sizes: Any, keepdims: bool, target: Any) -> bool:
    """Compare a call with NumPy, errors included; returns whether the group ran."""
    args = (*(numbers(*shape) for shape in shapes), sizes, keepdims, target)
    before = plan.counters.guard_hits
    try:
        expected = reference(*args)
    except ValueError:
        with pytest.raises(ValueError):
            plan(*args)
        return plan.counters.guard_hits > before
    for found, wanted in zip(plan(*args), expected, strict=True):
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_array_equal(found, wanted)
    return plan.counters.guard_hits > before


SAME = ((2, 6), (2, 6))


@pytest.mark.parametrize(
    ("shapes", "sizes", "keepdims", "target", "hit"),
    [
        (SAME, (2, 2, 3), True, (1, 6), True),
        # R3.38: a bool that has changed; the fallback uses that of the run (R3.36)
        (SAME, (2, 2, 3), False, (1, 6), False),
        # R3.40, R3.41: other sizes of the view, of the same way
        (((4, 6), (4, 6)), (4, 2, 3), True, (1, 6), True),
        (((4, 9), (4, 9)), (4, 3, 3), True, (1, 9), True),
        (((4, 6), (4, 6)), (4, -1, 3), True, (1, 6), True),
        (((4, 6), (4, 6)), (4, 3, 2), True, (1, 6), False),
        (SAME, (12,), True, (1, 6), False),
        (((4, 6), (4, 6)), (2, 2, 3), True, (1, 6), False),  # too few elements: NumPy raises
        # R3.43: the same positions are 1
        (SAME, (2, 2, 3), True, (2, 1), False),
        (SAME, (2, 2, 3), True, (6,), False),
        (SAME, (2, 2, 3), True, None, False),
        # A6: the target has to fit what is summed
        (SAME, (2, 2, 3), True, (1, 5), False),
        (((4, 6), (4, 6)), (4, 2, 3), True, (1, 9), False),
        # A6: operands have to fit each other
        (((2, 6), (3, 6)), (2, 2, 3), True, (1, 6), False),
        (((2, 6), (1, 6)), (2, 2, 3), True, (1, 6), False),
    ],
)
def test_r3_38_values_of_the_run_are_compared(plan, shapes, sizes, keepdims, target, hit):
    assert check(plan, shapes, sizes, keepdims, target) is hit


def test_r3_38_random_values_of_the_run(plan):
    rng, hits = random.Random(3), 0
    for _ in range(2000 if EVERY_CASE else 300):
        rows, parts = rng.choice((1, 2, 4)), rng.choice((1, 2, 3))
        shape = (rows, 3 * parts)
        other = shape if rng.random() < 0.8 else rng.choice(((1, 6), (2, 3), (4, 6), (2, 9)))
        view = rng.choice(((rows, parts, 3), (-1, parts, 3), (rows, 3, parts), (rows, parts, -1), (rows * parts, 3)))
        target = rng.choice(((1, 3 * parts), (1, 3 * parts), (1, 6), (rows, 1), None, ()))
        hits += check(plan, (shape, other), view, rng.random() < 0.7, target)
    assert hits > 20


def test_r3_43_the_switch_makes_sizes_pass_that_fit(plan):
    """Whether positions are 1 is not asked then; what would not fit what is summed stays with the fallback."""
    x = numbers(*SAME[0])
    before = pf.set_size_checks(False)
    try:
        hits = plan.counters.guard_hits
        plan(x, x, (2, 2, 3), True, (1, 6))
        with pytest.raises(ValueError):
            plan(x, x, (2, 2, 3), True, (1, 5))
        assert plan.counters.guard_hits == hits + 1
    finally:
        pf.set_size_checks(before)


LOADED = (
    """
func.func @main(%x: T, %y: T, %s: !profuse.ints, %k: i1, %t: !profuse.ints) -> (T, T, T) {
  %a = "profuse.constant"() {value = array<i64: 1>} : () -> !profuse.ints
  %0 = "profuse.add"(%x, %y) : (T, T) -> T
  %1 = "profuse.late"(%0, %s) {op = "reshape", names = ["shape"]} : (T, !profuse.ints) -> T
  %2 = "profuse.mul"(%1, %1) : (T, T) -> T
  %3 = "profuse.late"(%0, %a, %k) {op = "sum", names = ["axes", "keepdims"]} : (T, !profuse.ints, i1) -> T
  %4 = "profuse.late"(%0, %t) {op = "sum_to_size", names = ["sizes"]} : (T, !profuse.ints) -> T
  return %2, %3, %4 : T, T, T
}
""".replace("T,", "!profuse.tensor,")
    .replace("T)", "!profuse.tensor)")
    .replace(" T\n", " !profuse.tensor\n")
)


def test_r3_36_a_loaded_graph_is_right_for_all_values_of_the_run(tmp_path):
    """From calls on: observers, constants, guards, and fallbacks that are made for other values."""
    path = tmp_path / "late.mlir"
    path.write_text(LOADED)
    pf.set_device_fusion(True, host=True)
    try:
        f = pf.load(str(path), background=False)
        rng = random.Random(5)
        for k in range(400 if EVERY_CASE else 60):
            rows, parts = (2, 2) if k < 4 else (rng.choice((1, 2, 4)), rng.choice((1, 2, 3)))
            x = numbers(rows, 3 * parts)
            y = x if k < 4 or rng.random() < 0.85 else numbers(*rng.choice(((1, 6), (2, 3), (4, 6))))
            view = (rows, parts, 3) if k < 4 else rng.choice(((rows, parts, 3), (-1, parts, 3), (rows, 3, parts)))
            target = (1, 3 * parts) if k < 4 else rng.choice(((1, 3 * parts), (1, 6), (rows, 1), None))
            args = x, y, view, k < 4 or rng.random() < 0.7, target
            try:
                expected = reference(*args)
            except ValueError:
                with pytest.raises(ValueError):
                    f(*args)
                continue
            for found, wanted in zip(f(*args), expected, strict=True):
                assert np.shape(found) == np.shape(wanted), args
                np.testing.assert_array_equal(found, wanted)
        assert "Calls are dispatched in Python: " in f.explain()
        assert "failed" not in f.explain()
        assert f.state().counters["guard_hits"] > 10
        assert f.state().counters["guard_misses"] > 10
    finally:
        pf.set_device_fusion(None)


UNKNOWN = """
func.func @main(%x: ARG, %s: !profuse.ints) -> !profuse.tensor {
  %0 = "profuse.profile_value"(%s) {site = 0 : i64} : (!profuse.ints) -> !profuse.ints
  %1 = "profuse.cuda_group"(%x, %0) {callee = @cuda_group_0} : (ARG, !profuse.ints) -> !profuse.tensor
  return %1 : !profuse.tensor
}
func.func private @cuda_group_0(%x: ARG, %s: !profuse.ints) -> !profuse.tensor {
  %0 = "profuse.constant"(%s) {value = array<i64: 2, 2, 3>} : (!profuse.ints) -> !profuse.ints
  %1 = MADE
  %2 = "profuse.late"(%1, %0) {op = "reshape", names = ["shape"]} : (VIEWED, !profuse.ints) -> !profuse.tensor
  return %2 : !profuse.tensor
}
"""
VARYING = TYPE.replace("2x6", "?x6")
REPEATED = '"profuse.repeat"(%x) {axis = 0 : i64, repeats = 2 : i64} : (ARG) -> VIEWED'


@pytest.mark.parametrize(
    ("argument", "made", "viewed", "kind"),
    [
        (VARYING, '"profuse.exp"(%x) : (ARG) -> VIEWED', "tensor<?x6xf32>", Kind.VARYING_SIZE),
        (TYPE, REPEATED, "tensor<4x6xf32>", Kind.TYPES),  # no view of what was profiled
        (TYPE.replace("2x6", "1x6"), REPEATED, "tensor<2x6xf32>", Kind.SIZES_NOT_EXPRESSED),
    ],
)
def test_a10_without_the_sizes_of_what_is_viewed_there_is_no_group(argument, made, viewed, kind):
    """R3.40: the ops stay whole, with what the run gives, and a reason."""
    text = UNKNOWN.replace("MADE", made).replace("VIEWED", viewed).replace("ARG", argument)
    module, reasons = parse_module(text), {}
    run_pipeline(module, "insert-device-guards", verify_each=True, reasons=reasons)
    assert "cuda_group" not in str(module)
    assert "cuda_guard" not in str(module)
    assert '"profuse.late"(%1, %0)' in str(module)
    (reason,) = reasons["insert-device-guards"]
    assert (reason.kind, reason.effect) == (kind, Effect.DISSOLVED)
