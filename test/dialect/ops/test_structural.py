"""Structural ops: explicit promotion, symbolic inference, verification, kernels, refusals."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from cases import SUITES, cases_of, difference, load_suites, silent
from profuse.dialect.errors import RangeError
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import BF16, BOOL, F16, F32, F64, I8, I64
from profuse.dialect.ir.op import OPS, op_named
from profuse.dialect.ir.size_algebra import bounds
from profuse.dialect.ir.symbolic import evaluate, symbol
from profuse.dialect.ir.types import TENSOR, ScalarType, TensorType, type_of
from profuse.dialect.ops.indexing.slicing import ABSENT, clamps_nothing, encode_bound, sliced
from profuse.dialect.reasons import Reason

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from reference import run_op

load_suites()
MODULES = {
    "contract",
    "create",
    "index",
    "join",
    "mm_tree",
    "moments",
    "queries",
    "reduce",
    "scan",
    "shape",
    "slicing",
    "split",
}
NAMES = [op.name for op in OPS.values() if op.__module__.rpartition(".")[2] in MODULES]
S0, S1 = symbol("s0"), symbol("s1")


def t(*shape, dtype=F32):
    return TensorType(dtype, shape)


def n(value=None):
    return ScalarType(I64, value)


def infer(name, *types, **attrs):
    op = op_named(name)
    found = op.infer(types, op.full_attrs(attrs))
    return found[0] if len(found) == 1 else found


def known(value):
    """The type of an operand inside a fusion function: sizes have known values there."""
    type_ = type_of(value)
    return ScalarType(type_.dtype, value) if isinstance(type_, ScalarType) else type_


def good_cases(name, dtype):
    """Cases that NumPy accepts."""
    full = f"profuse.{name}"
    if dtype not in SUITES[full].dtypes:
        return []
    return [c for c in cases_of(full, dtype) if not isinstance(c.reference, Exception)]


# --- promotion --------------------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [BOOL, I8, BF16, F32], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_casting_beforehand_changes_nothing(name, dtype):
    for case in good_cases(name, dtype):
        attrs, types = case.op.full_attrs(case.attrs), [known(a) for a in case.args]
        wanted = case.op.operand_dtypes(types, attrs)
        if wanted is None:
            continue
        args = [a if w is None else np.asarray(a).astype(w.numpy) for a, w in zip(case.args, wanted, strict=True)]
        with silent():
            found = case.op.evaluate(attrs, *args)
        assert not (wrong := difference(found, case.reference)), f"{case}: {wrong}"
        before = [x.dtype for x in case.op.infer(types, attrs)]
        after = [x.dtype for x in case.op.infer([known(a) for a in args], attrs)]
        assert before == after, case


# --- kernels ----------------------------------------------------------------------------------


def spread(cases, count):
    """``count`` of the cases, evenly chosen, without those too large for slow code."""
    small = [c for c in cases if all(np.size(a) <= 200 for a in c.args)]
    return [small[k * len(small) // count] for k in range(min(count, len(small)))]


def check_kernel(case, types, symbols=None):
    """Run a case natively if it can be lowered; True if it ran."""
    if case.op.can_lower_types(types, case.op.full_attrs(case.attrs)) is not None:
        return False
    found = run_op(case.op, *case.args, types=types, symbols=symbols, **case.attrs)
    reference = case.reference
    if isinstance(reference, tuple) and len(reference) == 1:
        (reference,) = reference
    wrong = difference(found, np.asarray(reference) if np.isscalar(reference) else reference, case.tolerance)
    assert not wrong, f"{case}: {wrong}"
    return True


LOWERED = [
    n
    for n in NAMES
    if OPS[f"profuse.{n}"].can_lower() and n not in ("constant", "size", "dim", "rank", "dtype_code", "dtype_constant")
]


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize("name", LOWERED)
def test_kernels(name):
    for dtype, count in ((F32, 8), (I8, 4), (BOOL, 3), (BF16, 3)):
        for case in spread(good_cases(name, dtype), count):
            ran = check_kernel(case, [known(a) for a in case.args])
            assert ran or any(0 in np.shape(a) for a in case.args), f"{case} is refused"


@pytest.mark.sampled(8, each=())
@pytest.mark.parametrize("name", [n for n in LOWERED if n not in ("full", "iota", "to_tensor")])
def test_kernels_of_symbolic_sizes(name):
    ran = 0
    for case in spread(good_cases(name, F32), 12):
        symbols = {}

        def generalized(size, symbols=symbols):
            if size < 2:
                return size
            symbols[f"s{size}"] = size
            return symbol(f"s{size}")

        types = [
            TensorType(x.dtype, tuple(map(generalized, x.shape))) if isinstance(x, TensorType) else x
            for x in map(known, case.args)
        ]
        ran += check_kernel(case, types, symbols)
    assert ran


def test_index_out_of_range_stays_inside_the_buffer_and_is_reported():
    def run(op, *args, **attrs):
        return run_op(op, *args, violates=True, **attrs)

    x, wild = np.arange(5, dtype=np.float32), np.array([-(2**62), -6, 5, 2**62, -5, 4])
    np.testing.assert_array_equal(run("take", x, wild), x[[0, 0, 4, 4, 0, 4]])
    np.testing.assert_array_equal(run("gather", x, wild), x[[0, 0, 4, 4, 0, 4]])
    np.testing.assert_array_equal(run("index", x, wild, axes=(0,)), x[[0, 0, 4, 4, 0, 4]])
    for position, element in ((7, 4), (-9, 0)):
        assert run("pick", x, position, types=[known(x), n()], index=DYNAMIC) == element
    assert run_op("pick", x, -2, types=[known(x), n()], index=DYNAMIC) == 3
    huge = np.array([2**64 - 1, 2**63, 1], np.uint64)
    np.testing.assert_array_equal(run("take", x, huge), x[[4, 0, 1]])


# --- symbolic inference -----------------------------------------------------------------------


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_slice_arithmetic_on_symbols(size):
    bounds = [ABSENT, 0, 1, 2, 3, 9, -1, -2, -3, -9]
    for start, stop, step in itertools.product(bounds, bounds, (1, 2, 3, -1, -2)):
        first, count = sliced(S0, start, stop, step)
        plain = slice(*(None if b == ABSENT else b for b in (start, stop)), step)
        expected = range(size)[plain]
        values = {"s0": size}
        assert evaluate(count, values) == len(expected), (start, stop, step)
        if len(expected):
            assert evaluate(first, values) == expected[0], (start, stop, step)


def test_equal_parts_have_equal_sizes():
    x = t(S0, S1)
    tail = infer("slice", x, starts=(1,), stops=(ABSENT,))
    head = infer("slice", x, starts=(0,), stops=(-1,))
    assert tail == head and tail.shape[1] == S1
    assert infer("slice", x, starts=(ABSENT,), stops=(ABSENT,), steps=(-1,)).shape == (S0, S1)
    half = infer("slice", x, n(S0 // 2), starts=(DYNAMIC,), stops=(ABSENT,))
    assert half.shape[0] is not None
    assert infer("slice", x, n(), starts=(DYNAMIC,), stops=(ABSENT,)).shape == (None, S1)
    assert infer("slice", x, n(2), starts=(0,), stops=(ABSENT,), steps=(DYNAMIC,)).shape == ((S0 + 1) // 2, S1)


def test_symbolic_shapes():
    x = t(S0, 4, S1)
    assert infer("reshape", x, shape=(-1, 2)).shape == (S0 * S1 * 2, 2)
    assert infer("reshape", x, n(S0 * S1), shape=(DYNAMIC, -1)).shape == (S0 * S1, 4)
    assert infer("reshape", x, n(), shape=(DYNAMIC, -1)).shape == (None, None)
    assert infer("concatenate", x, x, t(3, 4, S1)).shape == (S0 * 2 + 3, 4, S1)
    assert infer("concatenate", x, t(None, 4, 8)).shape == (None, 4, 8)
    assert infer("pad", x, n(0), widths=(1, 2)).shape == (S0 + 3, 7, S1 + 3)
    assert infer("tile", x, reps=(2, 1, 3)).shape == (S0 * 2, 4, S1 * 3)
    assert infer("matmul", t(S0, 4), t(4, S1)).shape == (S0, S1)
    assert [p.shape[0] for p in infer("split", x, sections=2)] == [S0 // 2] * 2
    assert infer("size", x).value == S0 * S1 * 4
    assert infer("dim", x, axis=-1).value == S1
    assert infer("iota", n(S0), shape=(DYNAMIC,)).shape == (S0,)
    assert infer("full", n(1), n(S0), shape=(DYNAMIC, 2)) == t(S0, 2, dtype=I64)
    assert infer("squeeze", x).shape is None
    assert infer("sum", x, axes=(1,), keepdims=True).shape == (S0, 1, S1)
    assert infer("cumsum", x).shape == (S0 * S1 * 4,)


@pytest.mark.parametrize("name", ["sum", "max", "mean", "argmax"])
def test_full_reductions_of_unknown_rank_are_0d(name):
    assert infer(name, TENSOR).shape == ()
    assert infer(name, TENSOR, keepdims=True).shape is None


# --- what is not lowered ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "types", "attrs"),
    [
        ("reshape", (t(S0, 2), n(S1)), {"shape": (DYNAMIC,)}),
        ("reshape", (t(S0),), {"shape": (-1, 2)}),
        ("broadcast_to", (t(S0), n(S1)), {"shape": (DYNAMIC,)}),
        ("squeeze", (t(S0),), {"axes": (0,)}),
        ("concatenate", (t(2, S0), t(2, S1)), {}),
        ("stack", (t(S0), t(S1)), {}),
        ("split", (t(S0),), {"sections": 2}),
        ("chunk", (t(S0),), {"chunks": 2}),
        ("matmul", (t(2, S0), t(S1, 3)), {}),
        ("max", (t(S0 - 1),), {}),
        ("argmax", (t(0, 3),), {}),
        ("take", (t(0), t(2, dtype=I64)), {}),
        ("sum", (t(3, dtype=None),), {}),
        ("item", (t(),), {}),
    ],
)
def test_refused_because_a_kernel_cannot_check(name, types, attrs):
    op = op_named(name)
    assert isinstance(op.can_lower_types(types, op.full_attrs(attrs)), Reason)


# --- verify, odds and ends --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "types", "attrs"),
    [
        ("sum", (t(2, 3),), {"axes": (2,)}),
        ("sum", (TENSOR,), {"axes": (1, 1)}),
        ("sum", (t(2, 3),), {"axes": (1, -1)}),
        ("argmax", (t(2),), {"axis": 1}),
        ("transpose", (t(2, 3),), {"perm": (0, 0)}),
        ("transpose", (t(2, 3),), {"perm": (0,)}),
        ("reshape", (t(2, 3),), {"shape": (DYNAMIC, 2)}),
        ("reshape", (t(2, 3),), {"shape": (-2, 3)}),
        ("expand_dims", (t(2),), {"axes": (0, 0)}),
        ("slice", (t(2),), {"starts": (0,), "stops": (0, 1)}),
        ("slice", (t(2),), {"starts": (0,), "stops": (1,), "steps": (0,)}),
        ("split", (t(2),), {}),
        ("split", (t(2),), {"sections": 0}),
        ("pad", (t(2), n(0)), {"widths": (1, -1)}),
        ("pad", (t(2), n(0)), {"widths": (1,)}),
        ("index", (t(2), t(2, dtype=I64)), {"axes": (0, 1)}),
        ("item", (t(),), {"dtype": F16}),
        ("iota", (), {"shape": (2,), "axis": 1}),
        ("swapaxes", (t(2, 3),), {"axis1": 0, "axis2": 2}),
        ("repeat", (t(2),), {"repeats": -1}),
    ],
)
def test_verify_complains(name, types, attrs):
    op = op_named(name)
    assert list(op.verify(types, op.full_attrs(attrs)))


def test_verify_accepts_what_runs():
    for name in NAMES:
        for case in good_cases(name, F32):
            complaints = list(case.op.verify([known(a) for a in case.args], case.op.full_attrs(case.attrs)))
            assert not complaints, f"{case}: {complaints}"


def test_known_scalars():
    assert infer("constant", value=3) == n(3)
    assert infer("constant", value=2.5) == ScalarType(F64, 2.5)
    assert infer("truth", n(0)).value is False
    assert infer("item", t(dtype=BF16)) == ScalarType(F64)
    assert infer("item", TENSOR) == TENSOR
    assert infer("item", TENSOR, dtype=I64) == n()
    assert op_named("item").evaluate({"dtype": I64}, np.float32(-2.75)) == -2
    assert encode_bound(None) == ABSENT and encode_bound(-sys.maxsize) > ABSENT


def test_bounds_that_no_axis_reaches():
    far = sys.maxsize
    assert clamps_nothing(0, far, 1) == (False, True) and clamps_nothing(0, far - 1, 1) == (False, False)
    assert clamps_nothing(-far, 3, 2) == (True, False) and clamps_nothing(far, far, 1) == (False, True)
    assert clamps_nothing(far, -far - 1, -1) == (True, True) and clamps_nothing(3, -far, -1) == (False, False)
    x = np.arange(7.0)
    f = pf.jit(lambda x: (x[1:far], x[far:], x[-far:2], x[far::-2], x[3 : -far - 1 : -1], x[:-far]), background=False)
    for _ in range(3):
        found = f(x)
    for part, wanted in zip(found, (x[1:], x[:0], x[:2], x[::-2], x[3::-1], x[:0]), strict=True):
        np.testing.assert_array_equal(part, wanted)


def test_views_are_views():
    x = np.arange(24.0).reshape(2, 3, 4)
    for name, attrs in (
        ("transpose", {}),
        ("reshape", {"shape": (-1,)}),
        ("squeeze", {}),
        ("flip", {}),
        ("slice", {"starts": (1,), "stops": (ABSENT,)}),
        ("expand_dims", {"axes": (0,)}),
        ("pick", {"index": 1}),
        ("split", {"sections": 2}),
    ):
        op = op_named(name)
        found = op.evaluate(op.full_attrs(attrs), x)
        for part in found if isinstance(found, tuple) else (found,):
            assert np.shares_memory(part, x), name


def test_every_structural_op_has_cases():
    assert {f"profuse.{name}" for name in NAMES} <= set(SUITES)


def test_counts_are_known_in_kernels_alone():
    """What a number is taken for holds where a kernel has looked at it, and nowhere else."""
    count = op_named("count")
    attrs = count.full_attrs({"symbol": "n0", "least": 2})
    assert count.infer([n()], attrs) == (n(),)
    assert bounds(count.taken_for(n(), attrs).value)[0] == 2
    equal = count.full_attrs({"symbol": "n0", "equals": "s0"})
    assert count.taken_for(n(), equal) == n(S0) and count.taken_for(n(5), equal) == n(5)
    for wrong, given in ((1, attrs), (2**31, attrs), (6, attrs | {"equals": "7"})):
        with pytest.raises(RangeError):
            count.evaluate(given, wrong)


@pytest.mark.parametrize("op", ["pow", "shift_left"])
def test_values_that_may_take_all_memory_are_not_computed(op):
    """Of 10**9 to the power of itself only the dtype is known."""
    huge = ScalarType(I64, 10**9)
    assert op_named(op).infer((huge, huge), {}) == (ScalarType(I64),)
    assert op_named(op).infer((ScalarType(I64, 3), ScalarType(I64, 2)), {})[0].value in (9, 12)
