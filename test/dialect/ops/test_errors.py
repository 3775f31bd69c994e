"""Calls that can never work: `infer` refuses them as NumPy does, with NumPy's words."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.errors import DTypeError, ProfuseError, ShapeError
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import F32, F64, I64
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.types import ScalarType, type_of

F = np.float32


def z(*shape, dtype=F):
    return np.zeros(shape, dtype)


def ints(*shape):
    return np.zeros(shape, np.int64)


# op, attributes, operands, NumPy's call
CASES = [
    ("max", {}, [z(0)], lambda x: np.max(x)),
    ("min", {"axes": (0,)}, [z(0, 3)], lambda x: np.min(x, 0)),
    ("argmax", {}, [z(0)], lambda x: np.argmax(x)),
    ("argmin", {"axis": 1}, [z(2, 0)], lambda x: np.argmin(x, 1)),
    ("sum", {"axes": (2,)}, [z(2, 3)], lambda x: np.sum(x, 2)),
    ("sum", {"axes": (1, -1)}, [z(2, 3)], lambda x: np.sum(x, (1, -1))),
    ("cumsum", {"axis": 1}, [z(2)], lambda x: np.cumsum(x, 1)),
    ("reshape", {"shape": (4,)}, [z(2, 3)], lambda x: np.reshape(x, 4)),
    ("reshape", {"shape": (4, -1)}, [z(2, 3)], lambda x: np.reshape(x, (4, -1))),
    ("reshape", {"shape": (-1, -1)}, [z(2, 3)], lambda x: np.reshape(x, (-1, -1))),
    ("reshape", {"shape": (0, -1)}, [z(0, 3)], lambda x: np.reshape(x, (0, -1))),
    ("transpose", {"perm": (0, 0)}, [z(2, 3)], lambda x: np.transpose(x, (0, 0))),
    ("transpose", {"perm": (0,)}, [z(2, 3)], lambda x: np.transpose(x, (0,))),
    ("squeeze", {"axes": (0,)}, [z(2, 1)], lambda x: np.squeeze(x, 0)),
    ("expand_dims", {"axes": (4,)}, [z(2)], lambda x: np.expand_dims(x, 4)),
    ("expand_dims", {"axes": (0, 0)}, [z(2)], lambda x: np.expand_dims(x, (0, 0))),
    ("flip", {"axes": (0, 0)}, [z(2)], lambda x: np.flip(x, (0, 0))),
    ("broadcast_to", {"shape": (4,)}, [z(3)], lambda x: np.broadcast_to(x, (4,))),
    ("broadcast_to", {"shape": (3,)}, [z(2, 3)], lambda x: np.broadcast_to(x, (3,))),
    ("slice", {"starts": (0,), "stops": (1,), "steps": (0,)}, [z(3)], lambda x: x[0:1:0]),
    ("pick", {"index": 3}, [z(3)], lambda x: x[3]),
    ("pick", {"index": -4}, [z(3)], lambda x: x[-4]),
    ("pick", {"index": 0}, [z()], lambda x: z()[0]),
    ("pick", {"index": DYNAMIC}, [z(2), 2], lambda x, i: x[i]),
    ("split", {"sections": 2}, [z(3)], lambda x: np.split(x, 2)),
    ("split", {"sections": 0}, [z(3)], lambda x: np.array_split(x, 0)),
    ("concatenate", {}, [z(2), z(2, 2)], lambda *xs: np.concatenate(xs)),
    ("concatenate", {}, [z(2, 3), z(2, 2)], lambda *xs: np.concatenate(xs)),
    ("concatenate", {}, [z()], lambda *xs: np.concatenate(xs)),
    ("concatenate", {}, [], lambda *xs: np.concatenate(xs)),
    ("stack", {}, [z(2), z(3)], lambda *xs: np.stack(xs)),
    ("stack", {}, [], lambda *xs: np.stack(xs)),
    ("pad", {"widths": (-1, 0)}, [z(3), 0], lambda x, v: np.pad(x, (-1, 0))),
    ("tile", {"reps": (-1,)}, [z(3)], lambda x: np.tile(x, -1)),
    ("repeat", {"repeats": -1}, [z(3)], lambda x: np.repeat(x, -1)),
    ("take", {"axis": 2}, [z(3), ints(1)], lambda x, i: np.take(x, i, 2)),
    ("gather", {"axis": 0}, [z(2, 3), ints(2)], lambda x, i: np.take_along_axis(x, i, 0)),
    ("index", {"axes": (0, 1)}, [z(2, 3), ints(2), ints(3)], lambda x, i, j: x[i, j]),
    ("index", {"axes": (0, 1)}, [z(2), ints(2), ints(2)], lambda x, i, j: x[i, j]),
    ("matmul", {}, [z(2, 3), z(4, 5)], np.matmul),
    ("matmul", {}, [z(), z(4, 5)], np.matmul),
    ("matmul", {}, [z(2, 3, 4), z(3, 4, 5)], np.matmul),
    ("full", {"shape": (-1,)}, [0], lambda v: np.full(-1, v)),
    ("full", {"shape": (2,)}, [z(3)], lambda v: np.full(2, v)),
    ("swapaxes", {"axis1": 0, "axis2": 2}, [z(2, 2)], lambda x: np.swapaxes(x, 0, 2)),
    ("moveaxis", {"source": (0,), "destination": ()}, [z(2)], lambda x: np.moveaxis(x, (0,), ())),
    ("moveaxis", {"source": (0, 0), "destination": (0, 1)}, [z(2, 2)], lambda x: np.moveaxis(x, (0, 0), (0, 1))),
    ("item", {}, [z(2)], lambda x: x.item()),
    ("truth", {}, [z(2)], bool),
    ("truth", {}, [z(0)], bool),
    # dtypes
    ("take", {}, [z(3), z(1)], np.take),
    ("index", {"axes": (0,)}, [z(3), z(1)], lambda x, i: x[i]),
]


@pytest.mark.parametrize(("name", "attrs", "args", "call"), CASES, ids=[f"{c[0]}-{k}" for k, c in enumerate(CASES)])
def test_refused_like_numpy(name, attrs, args, call):
    op = op_named(name)
    with pytest.raises((ValueError, TypeError, IndexError)) as refused:
        call(*args)
    types = [type_of(a) for a in args]
    types = [ScalarType(I64, a) if isinstance(a, int) else x for x, a in zip(types, args)]  # noqa: B905
    with pytest.raises(ProfuseError) as error:
        op.infer(types, op.full_attrs(attrs))
    expected = refused.value
    if isinstance(expected, np.exceptions.AxisError) or not isinstance(expected, IndexError):
        # TypeError, ValueError: the same class; an index array's IndexError is a dtype mistake.
        assert isinstance(error.value, (TypeError, ValueError))
    if isinstance(expected, TypeError):
        assert isinstance(error.value, DTypeError)
    words = {w.strip("`',.()").lower() for w in str(expected).split() if len(w) > 4}
    said = error.value.what.lower()
    # NumPy words a few of its messages by the function behind; a word in common is enough there.
    assert any(w in said for w in words), f"{said!r} against {expected}"


EXACT = [
    ("max", {}, [z(0)], "zero-size array to reduction operation maximum which has no identity"),
    ("argmax", {}, [z(0)], "attempt to get argmax of an empty sequence"),
    ("sum", {"axes": (2,)}, [z(2, 3)], "axis 2 is out of bounds for array of dimension 2"),
    ("sum", {"axes": (1, -1)}, [z(2, 3)], "duplicate value in 'axis'"),
    ("reshape", {"shape": (4,)}, [z(2, 3)], "cannot reshape array of size 6 into shape (4,)"),
    ("reshape", {"shape": (4, -1)}, [z(2, 3)], "cannot reshape array of size 6 into shape (4,newaxis)"),
    ("pick", {"index": 3}, [z(3)], "index 3 is out of bounds for axis 0 with size 3"),
    (
        "matmul",
        {},
        [z(2, 3), z(4, 5)],
        "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
        "(n?,k),(k,m?)->(n?,m?) (size 4 is different from 3)",
    ),
    (
        "concatenate",
        {},
        [z(2, 3), z(2, 2)],
        "all the input array dimensions except for the concatenation axis must match exactly, but "
        "along dimension 1, the array at index 0 has size 3 and the array at index 1 has size 2",
    ),
    ("item", {}, [z(2)], "can only convert an array of size 1 to a Python scalar"),
]


@pytest.mark.parametrize(("name", "attrs", "args", "text"), EXACT, ids=[c[0] for c in EXACT])
def test_numpy_s_own_words(name, attrs, args, text):
    op = op_named(name)
    with pytest.raises(ProfuseError) as error:
        op.infer([type_of(a) for a in args], op.full_attrs(attrs))
    assert error.value.what == text


@pytest.mark.parametrize("name", ["take", "gather", "index"])
@pytest.mark.parametrize("index", [3, -4])
def test_tier0_refuses_indices_out_of_range(name, index):
    op = op_named(name)
    attrs = {"axes": (0,)} if name == "index" else {"axis": 0}
    with pytest.raises(IndexError):
        op.evaluate(op.full_attrs(attrs), z(3), np.array([index]))


def test_huge_unsigned_indices_are_negative_as_in_numpy():
    take, x = op_named("take"), np.arange(3.0)
    assert take.evaluate({"axis": 0}, x, np.array([2**64 - 1], np.uint64)) == 2
    with pytest.raises(IndexError):
        take.evaluate({"axis": 0}, x, np.array([2**64 - 4], np.uint64))


def test_axis_errors_are_both_value_and_index_errors():
    op = op_named("flip")
    for kind in (ValueError, IndexError, ShapeError):
        with pytest.raises(kind):
            op.infer([type_of(z(2))], {"axes": (3,)})


@pytest.mark.parametrize("name", ["mean", "var", "std"])
def test_means_need_a_float_dtype(name):
    op = op_named(name)
    with pytest.raises(DTypeError):
        op.infer([type_of(z(2))], op.full_attrs({"dtype": I64}))
    with pytest.raises(DTypeError):
        op.infer([type_of(z(2, dtype=np.complex64))], op.full_attrs({"dtype": F64}))
    assert op.infer([type_of(z(2, dtype=np.int8))], op.full_attrs({"dtype": F32}))[0].dtype is F32


def test_types_without_a_common_dtype():
    import ml_dtypes

    op = op_named("concatenate")
    with pytest.raises(DTypeError):
        op.infer([type_of(z(2, dtype=np.float16)), type_of(z(2, dtype=ml_dtypes.bfloat16))], {})
