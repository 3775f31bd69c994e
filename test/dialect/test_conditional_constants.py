"""Conditional constants: no pass takes them for constants, merges or moves them (R3.6, R3.7)."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.facts import is_conditional, is_constant, speculated_value
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.mlir.rewrite import walk
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.executor.interpret.evaluate import evaluate

TEXT = """
func.func @main(%x: !profuse.tensor, %k: i1) -> (!profuse.tensor, !profuse.tensor) {
  %0 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.profile_value"(%k) {site = 0 : i64, kind = "bool", profiled_bool = true} : (i1) -> i1
  %2 = "profuse.constant"(%1) {value = true} : (i1) -> i1
  %3 = "profuse.constant"(%1) {value = true} : (i1) -> i1
  %4 = "profuse.late"(%0, %2) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, i1) -> !profuse.tensor
  %5 = "profuse.late"(%x, %3) {op = "sum", names = ["keepdims"]} : (!profuse.tensor, i1) -> !profuse.tensor
  return %4, %5 : !profuse.tensor, !profuse.tensor
}
"""
PASSES = [
    "fold",
    "cse-profuse",
    "pool-constants",
    "canonicalize-profuse",
    "peephole",
    "decompose",
    "specialize",
    "bind-late",
    "functionalize",
    "unroll-loops",
    "inline-calls",
    "specialize,fuse-loops,form-fusions,insert-guards",
    "profile-insensitive",
    "pre-autodiff",
    "typed-rewrites",
]
X = np.linspace(0, 1, 6).reshape(2, 3)


@pytest.mark.parametrize("passes", PASSES)
def test_r3_6_conditional_constants_stay(passes):
    module = parse_module(TEXT, "t")
    run_pipeline(module, passes, verify_each=True)
    names = [op.name for op in walk(module.operation) if op.name in ("profuse.profile_value", "profuse.constant")]
    assert names == ["profuse.profile_value", "profuse.constant", "profuse.constant"]
    lates = [op for op in walk(module.operation) if op.name == "profuse.late"]
    assert [op.operands[1].owner.operands[0].owner.name for op in lates] == ["profuse.profile_value"] * 2
    for op in lates:
        assert not is_constant(op.operands[1]) and is_conditional(op.operands[1].owner)
        assert speculated_value(op.operands[1])[1] is True


@pytest.mark.parametrize("passes", ["", "specialize", "remove-value-observers", "remove-profiling"])
@pytest.mark.parametrize("keep", [True, False])
def test_without_a_guard_they_are_what_they_stand_for(passes, keep):
    """R3.7"""
    module = parse_module(TEXT, "t")
    run_pipeline(module, passes, verify_each=True)
    one, two = evaluate(decode_module(module), [X, keep])
    np.testing.assert_array_equal(one, np.tanh(X).sum(keepdims=keep))
    np.testing.assert_array_equal(two, X.sum(keepdims=keep))


def test_they_are_no_part_of_what_is_compiled_without_a_guard():
    """A group of the general fuser holds neither them nor an op that reads one."""
    typed = "%x: tensor<4x8xf32>", '"profuse.tanh"(%x) : (tensor<4x8xf32>)', "(tensor<4x8xf32>, i1)"
    text = TEXT.replace("%x: !profuse.tensor", typed[0]).replace('"profuse.tanh"(%x) : (!profuse.tensor)', typed[1])
    first, last = text.split("  %5 =")
    module = parse_module(f"{first}  %5 ={last.replace('(!profuse.tensor, i1)', typed[2])}", "t")
    run_pipeline(module, "specialize,form-fusions{min-size=1}", verify_each=True)
    text = str(module)
    assert "fusion_group" in text and "profuse.late" not in text.split("func.func private")[1]
    assert "profuse.constant" not in text.split("func.func private")[1]
