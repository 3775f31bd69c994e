"""einsum's decomposition against NumPy, evaluated op by op on arrays."""

from __future__ import annotations

import numpy as np
import pytest
from profuse.dialect.errors import ShapeError
from profuse.dialect.ir.op import op_named
from profuse.dialect.ops.linalg.einsum import decompose_einsum

RNG = np.random.default_rng(3)
SIZES = {"i": 3, "j": 4, "k": 5, "l": 2, "m": 3, "b": 2, "h": 3, "q": 4, "d": 5}


class Opaque(np.ndarray):
    """An array whose sizes are not ints, as those of a traced one are not."""

    @property
    def shape(self):
        return tuple(map(np.int64, super().shape))


def emit(name, *operands, **attrs):
    op, attrs = op_named(name), op_named(name).full_attrs(attrs)
    found = np.asarray(op.evaluate(attrs, *operands))
    assert found.dtype == op.infer([_type(x) for x in operands], attrs)[0].dtype.numpy
    return found.view(Opaque) if any(isinstance(x, Opaque) for x in operands) else found


def _type(x):
    from profuse.dialect.ir.types import TensorType, type_of

    found = type_of(int(x) if isinstance(x, np.integer) else np.asarray(x))
    return found.without_layout() if isinstance(found, TensorType) else found


def operand(term, dtype=float):
    shape = tuple(SIZES[s] for s in term.replace("...", "lm"))
    return RNG.integers(0, 5, shape).astype(dtype)


SUBSCRIPTS = [
    "ij,jk->ik",
    "ij,jk",
    "ij,jk->ki",
    "ij,kj->ik",
    "ji,jk->ik",
    "i,i->",
    "i,i",
    "i,j->ij",
    "ij->ji",
    "ij->",
    "ij->j",
    "ii",
    "ii->i",
    "iij->j",
    "iji->ij",
    "ij,ij->ij",
    "ij,ij->",
    "ij,j->i",
    "bij,bjk->bik",
    "bhqd,bhkd->bhqk",
    "bhqk,bhkd->bqhd",
    "bi,bi->b",
    "bij,bj->bi",
    "bij,bi->bj",
    "ijk,jkl->il",
    "ijk,ljk->li",
    "ijkl,kl->ij",
    "ij,kl->ijkl",
    "ij,jk,kl->il",
    "i,j,k->ijk",
    "ij,ij,ij->i",
    "ijk,k->",
    "...ij,jk->...ik",
    "...ij,...jk->...ik",
    "i...->...",
    "...",
    "i...j->j...",
    "ij , jk -> ik",
    "ik,jk,lk->ijl",
    "bijk,bkl->bijl",
    "im,mi->",
    "imi->m",
]


@pytest.mark.parametrize("subscripts", SUBSCRIPTS)
@pytest.mark.parametrize("literal", [True, False], ids=["literal", "traced"])
def test_like_numpy(subscripts, literal):
    terms = subscripts.replace(" ", "").split("->")[0].split(",")
    for dtype in (float, np.int8, bool):
        arrays = [operand(t, dtype) for t in terms]
        expected = np.einsum(subscripts, *arrays)
        given = arrays if literal else [a.view(Opaque) for a in arrays]
        found = np.asarray(decompose_einsum(emit, subscripts, given))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_mixed_dtypes_do_not_overflow_before_promotion():
    a, b = np.full((4, 100), 100, np.int8), np.ones(4)
    found = decompose_einsum(emit, "ij,k->k", [a, b])
    np.testing.assert_array_equal(found, np.einsum("ij,k->k", a, b))


@pytest.mark.parametrize(("subscripts", "shapes"), [("ij,jk", [(2, 1), (3, 4)]), ("ij,ij->i", [(1, 3), (2, 3)])])
def test_size_one_broadcasts(subscripts, shapes):
    arrays = [RNG.standard_normal(s) for s in shapes]
    found = decompose_einsum(emit, subscripts, arrays)
    np.testing.assert_allclose(found, np.einsum(subscripts, *arrays))


def test_empty_sum_is_zero():
    a, b = np.ones((2, 0)), np.ones((0, 3))
    np.testing.assert_array_equal(decompose_einsum(emit, "ij,jk", [a, b]), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("subscripts", "shapes"),
    [
        ("ij,jk", [(2, 3), (4, 5)]),
        ("ij", [(2,)]),
        ("i", [(2, 3)]),
        ("i->ij", [(2,)]),
        ("ij->ii", [(2, 3)]),
        ("i,j", [(2,)]),
        ("i", [(2,), (3,)]),
        ("i1", [(2, 3)]),
        ("...i->i", [(2, 3)]),
        ("ii", [(2, 3)]),
    ],
)
def test_refused_like_numpy(subscripts, shapes):
    arrays = [np.ones(s) for s in shapes]
    with pytest.raises(ValueError):
        np.einsum(subscripts, *arrays)
    with pytest.raises(ShapeError):
        decompose_einsum(emit, subscripts, arrays)
