"""What memory and histories ask of guards they ask of every op of the family."""

from __future__ import annotations

import pytest
from profuse.dialect.ir.op import OPS
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)
from profuse.dialect.ops.speculation import CallFallback, FusionGroup, Guard
from profuse.executor.plans.plan_steps import plan_steps
from profuse.lowering.abi import KernelABI, TensorSpec

GUARDS = sorted(cls.name for cls in OPS.values() if issubclass(cls, Guard))
KNOWN = {"type_check": "tensor<4x8xf32>", "dynamic_guard": "tensor<4x8xf32>"}
TEXT = """
func.func @f(%x: !profuse.tensor) -> !profuse.tensor {
  %0:2 = "profuse.GUARD"(%x) {types = [tensor<4x8xf32>]} : (!profuse.tensor) -> (KNOWN, i1)
  %1 = scf.if %0#1 -> !profuse.tensor {
    %2 = "profuse.fusion_group"(%0#0) {callee = @k} : (KNOWN) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  } else {
    %2 = "profuse.call_fallback"(%x) {callee = @b} : (!profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }
  return %1 : !profuse.tensor
}
"""


def test_the_family():
    assert GUARDS == ["cuda_guard", "dynamic_guard", "rg_check", "type_check"]
    behaviors = {OPS[f"profuse.{name}"].behavior for name in GUARDS}
    assert behaviors == {"relaxed", "dynamic", "gradients", "static"}


@pytest.mark.parametrize("name", GUARDS)
def test_guards_make_no_memory_and_say_what_they_are_for(name: str):
    known = KNOWN.get(name, "tensor<?x?xf32>")
    text = TEXT.replace("GUARD", name).replace("KNOWN", known)
    module = decode_module(parse_module(text, verify=False))
    guard, branch = module.main.body.instrs
    array = TensorSpec("tensor", "f32", ("4", "8"))
    abi = KernelABI((array,), (array,), {}, (), "0", in_place=((0, 0),))
    steps = plan_steps(module.main, {"k": abi}, [0])
    test, chosen = steps.body.steps
    assert test.dead == [] and steps.body.arrays == list(branch.results)
    assert test.guard is chosen.guard is steps.guards[0]
    assert (test.guard.callee, test.guard.fallback) == ("k", "b")
    assert [t.shape for t in test.guard.types] == [(4, 8)]
    assert [side.steps[0].instr.op for side in chosen.blocks] == [FusionGroup, CallFallback]
    assert {step.operands for side in chosen.blocks for step in side.steps} == {guard.operands}
    # The group is the last to read the input, since the fallback runs in its stead.
    assert steps.donations == ((0, 0),)
    assert plan_steps(module.main, {}, [0]).donations == ()
    assert branch.results == module.main.outputs
