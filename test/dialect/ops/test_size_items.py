"""What is asked of sizes where there is no tensor any more, and sizes by the inference of ops."""

import numpy as np
import profuse.dialect.ops.seldom  # noqa: F401
import pytest
from profuse.dialect.errors import AxisError, ShapeError
from profuse.dialect.ir.dtypes import DTYPES
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.symbolic import symbol
from profuse.dialect.ir.types import INTS, ListedType

A = symbol("a")
_OF_AXES = [("dim_of", "dim", {"axis": axis}) for axis in (1, -2)]
ITEMS = [*_OF_AXES, ("rank_of", "rank", {}), ("size_of", "size", {})]


def run(name, *operands, **attrs):
    op = op_named(name)
    return op.evaluate(op.full_attrs(attrs), *operands)


def inferred(name, *shapes, **attrs):
    (type_,) = op_named(name).infer([ListedType("ints", s) for s in shapes], op_named(name).full_attrs(attrs))
    return type_.value


@pytest.mark.parametrize(("name", "query", "attrs"), ITEMS)
@pytest.mark.parametrize("shape", [(2, 3), (4, 0, 5)])
def test_sizes_answer_as_tensors_do(name, query, attrs, shape):
    answer = run(name, shape, **attrs)
    assert answer == run(query, np.zeros(shape), **attrs) and type(answer) is int
    assert inferred(name, shape, **attrs) == answer


def test_what_is_known_of_sizes_is_known_of_items():
    assert inferred("dim_of", (A, None), axis=0) == A
    assert inferred("dim_of", (A, None), axis=1) is None
    assert inferred("rank_of", (A, None)) == 2
    assert inferred("size_of", (A, 3)) == A * 3
    assert inferred("size_of", (A, None)) is None
    assert op_named("rank_of").infer([INTS], {})[0].value is None


def test_errors_of_items():
    with pytest.raises(AxisError):
        run("dim_of", (2, 3), axis=2)
    for name, _, attrs in ITEMS:
        with pytest.raises(ShapeError, match="takes sizes, not None"):
            run(name, None, **attrs)


@pytest.mark.parametrize("dtype", DTYPES)
def test_r3_47_a_dtype_constant_is_what_the_query_gives(dtype):
    """A9, R3.47: the dtype itself stands in the graph."""
    code = run("dtype_constant", dtype=dtype)
    assert code == run("dtype_code", np.zeros(1, dtype.numpy))
    assert op_named("dtype_constant").infer([], {"dtype": dtype})[0].value == code


def test_inferred_sizes_tell_what_does_not_fit_as_numpy_does():
    with pytest.raises(ValueError, match="mismatch in its core dimension"):
        run("matmul_sizes", (2, 3), (4, 5))
    with pytest.raises(ValueError, match="cannot reshape array of size 6"):
        run("reshape_sizes", (2, 3), shape=(4, -1))
    with pytest.raises(ShapeError, match="the last axis of x has size 3"):
        run("linear_sizes", (2, 3), (5, 4))
    with pytest.raises(ShapeError, match="no arrays of"):
        run("linear_sizes", (2, 3), (5, 3, 3))


def test_inferred_sizes_of_symbols():
    assert inferred("matmul_sizes", (A, 3), (3, 5)) == (A, 5)
    assert inferred("transpose_sizes", (A, 3)) == (3, A)
    assert inferred("reshape_sizes", (A, 6), shape=(-1, 3)) == (A * 2, 3)
    assert inferred("linear_sizes", (7, A, 3), (5, 3)) == (7, A, 5)
