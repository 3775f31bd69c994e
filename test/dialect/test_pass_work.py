"""Passes do not compute what they cannot need: on most ops most passes have nothing to do."""

from __future__ import annotations

from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.mlir.rewrite import blocks_in, body_of, functions, ops_in
from profuse.dialect.ops.elementwise.binary import Add
from profuse.dialect.pipeline.execution import run_pipeline

SUMS = """
func.func @main(%x: tensor<4xf64>, %p: i1) -> tensor<4xf64> {
  %c = "profuse.constant"() {value = 2 : i64} : () -> i64
  %d = "profuse.add"(%c, %c) : (i64, i64) -> i64
  %y = "profuse.add"(%x, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %z = "profuse.add"(%y, %d) : (tensor<4xf64>, i64) -> tensor<4xf64>
  %r = scf.if %p -> (tensor<4xf64>) {
    scf.yield %y : tensor<4xf64>
  } else {
    scf.yield %z : tensor<4xf64>
  }
  return %r : tensor<4xf64>
}
"""

SIZES = """
func.func @main(%x: tensor<4x?xf32>) -> (i64, i64) {
  %0 = "profuse.dim"(%x) {axis = 0} : (tensor<4x?xf32>) -> i64
  %1 = "profuse.dim"(%x) {axis = 1} : (tensor<4x?xf32>) -> i64
  return %0, %1 : i64, i64
}
"""


def test_folding_infers_only_types_of_what_may_be_known(monkeypatch):
    module = parse_module(SUMS)
    asked = []
    infer = Add.infer
    monkeypatch.setattr(Add, "infer", lambda types, attrs: asked.append(types) or infer(types, attrs))
    assert run_pipeline(module, "fold")["fold"]["ops-folded"] == 1
    assert len(asked) == 1


def test_sizes_that_types_tell_are_folded():
    module = parse_module(SIZES)
    assert run_pipeline(module, "fold")["fold"]["ops-folded"] == 1


def test_lists_of_what_is_in_an_op_are_whole():
    module = parse_module(SUMS)
    with module.context:
        (func,) = functions(module)
        names = [op.name for op in ops_in(body_of(func))]
        assert names == ["profuse.constant", *["profuse.add"] * 3, "scf.if", "func.return"]
        branch = ops_in(body_of(func))[4]
        assert len(blocks_in(branch)) == 2
        assert [ops_in(block)[0].operands[0] for block in blocks_in(branch)] == [
            op.results[0] for op in ops_in(body_of(func))[2:4]
        ]
        assert blocks_in(ops_in(body_of(func))[0]) == []
