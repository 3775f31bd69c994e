"""Ops whose attributes are values of the run (R3.5)."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.errors import DTypeError, ProfuseError, ShapeError
from profuse.dialect.ir.dtypes import DTYPES, F32
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import BOOL_SCALAR, INTS, ListedType, ScalarType, TensorType
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.executor.interpret.evaluate import evaluate

LATE = op_named("late")
X = np.arange(24.0).reshape(2, 3, 4)


def late(name, *args, **values):
    attrs = {"op": name, "names": tuple(values)}
    return LATE.evaluate(attrs, *args, *values.values())


@pytest.mark.parametrize("axes", [None, 1, (0, 2), ()])
@pytest.mark.parametrize("keepdims", [False, True])
def test_r3_5_sums(axes, keepdims):
    np.testing.assert_array_equal(late("sum", X, axes=axes, keepdims=keepdims), np.sum(X, axes, keepdims=keepdims))


def test_r3_5_other_attributes():
    np.testing.assert_array_equal(late("transpose", X, perm=(2, 0, 1)), X.transpose(2, 0, 1))
    np.testing.assert_array_equal(late("transpose", X, perm=None), X.T)
    np.testing.assert_array_equal(late("reshape", X, shape=(6, -1)), X.reshape(6, -1))
    assert late("cast", X, dtype=DTYPES.index(F32)).dtype == np.float32
    assert late("reduction_sizes", (4, 8), axes=0) == (8,)
    for piece, other in zip(late("chunk", X, axis=2, chunks=2), np.split(X, 2, 2), strict=True):
        np.testing.assert_array_equal(piece, other)


def test_wrong_values_are_errors():
    with pytest.raises(ShapeError, match="reshape needs shape, which is None"):
        late("reshape", X, shape=None)
    for number in (-1, len(DTYPES)):
        with pytest.raises(DTypeError, match=f"no dtype has the number {number}"):
            late("cast", X, dtype=number)


def test_types_are_known_with_the_values():
    attrs = {"op": "sum", "names": ("axes", "keepdims")}
    x, axes, keep = TensorType(F32, (4, 8)), ListedType("ints", (1,)), ScalarType(BOOL_SCALAR.dtype, True)
    assert LATE.infer([x, axes, keep], attrs) == (TensorType(F32, (4, 1)),)
    assert LATE.infer([x, INTS, keep], attrs) == ()
    assert LATE.infer([x, axes, BOOL_SCALAR], attrs) == ()
    attrs = {"op": "reshape", "names": ("shape",)}
    assert LATE.infer([x, ListedType("ints", (symbol("a"), -1))], attrs) == ()


GRAPH = """
!t = !profuse.tensor
!i = !profuse.ints
func.func @main(%x: !t, %axes: !i, %keep: i1) -> (!t, !i, !t) {
  %0 = "profuse.late"(%x, %axes, %keep) {op = "sum", names = ["axes", "keepdims"]} : (!t, !i, i1) -> !t
  %1 = "profuse.sizes"(%x) : (!t) -> !i
  %2 = "profuse.late"(%1, %axes, %keep) {op = "reduction_sizes", names = ["axes", "keepdims"]} : (!i, !i, i1) -> !i
  %one = "profuse.constant"() {value = 1 : i64} : () -> i64
  %3 = "profuse.late"(%x, %one) {op = "chunk", names = ["chunks"]} : (!t, i64) -> !t
  return %0, %2, %3 : !t, !i, !t
}
"""


@pytest.mark.parametrize("pipeline", ["", "bind-late", "profile-insensitive,pre-autodiff"])
@pytest.mark.parametrize(("axes", "keep"), [((0,), True), ((1, 2), False), (None, True)])
def test_graphs_run_late_ops(pipeline, axes, keep):
    """Results that are lists, and ops with any number of results."""
    module = parse_module(GRAPH, "t")
    run_pipeline(module, pipeline, verify_each=True)
    assert ("profuse.chunk" in str(module)) == bool(pipeline)
    total, sizes, piece = evaluate(decode_module(module), [X, axes, keep])
    np.testing.assert_array_equal(total, X.sum(axes, keepdims=keep))
    assert sizes == X.sum(axes, keepdims=keep).shape
    np.testing.assert_array_equal(piece, X)


def test_errors_name_the_line():
    text = GRAPH.replace("value = 1 : i64", "value = 2 : i64")
    with pytest.raises(ProfuseError, match="gives 2 values where the graph has 1") as caught:
        evaluate(decode_module(parse_module(text, "t.mlir")), [X, (0,), True])
    assert caught.value.loc is not None and caught.value.loc.line == 9


def test_what_a_late_op_writes_through_is_told():
    """Any result may be a view of any operand."""
    assert LATE.shared_operands(0, 3) == (0, 1, 2)
