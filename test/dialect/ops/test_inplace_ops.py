"""Conformance of ops that write: made from the op table, on memory of every layout.

They are not among `cases.SUITES`: a suite calls an op many times on the same operands, which these
ops change, and compiles it, which these ops are not before `functionalize` has made them pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import OPS, SUITES, Case, cases_of, difference, load_suites, silent
from profuse.dialect.errors import BoundsError, DTypeError, ProfuseError, ShapeError
from profuse.dialect.ir.attrs import DYNAMIC
from profuse.dialect.ir.dtypes import F32, I8, DType
from profuse.dialect.ir.op import Op, op_named
from profuse.dialect.ir.types import type_of
from profuse.dialect.ops.indexing.inplace import LOANS, BorrowedArrays, InPlace
from profuse.dialect.ops.size_lists import OfValues

load_suites()
IN_PLACE = [op for op in OPS.values() if issubclass(op, InPlace)]
# Ops without a suite, and why; the rest of the table has one.
NO_SUITE = {
    **{op.full_name(): "writes its operands: tested here" for op in OPS.values() if op.writes},
    **dict.fromkeys(
        [
            "profuse.profile",
            "profuse.profile_value",
            "profuse.profile_counter",
            "profuse.type_check",
            "profuse.dynamic_guard",
            "profuse.cuda_guard",
            "profuse.rg_check",
            "profuse.fusion_group",
            "profuse.cuda_group",
            "profuse.diff_graph",
            "profuse.fallback_graph",
            "profuse.call_fallback",
        ],
        "speculation: test/dialect/passes, test/executor",
    ),
    **{
        op.full_name(): "on values that are no tensors: test_size_lists.py"
        for op in OPS.values()
        if issubclass(op, OfValues)
    },
    "profuse.late": "any other op: test_late.py",
    "profuse.borrow": "no kernel makes it: tested here",
    "profuse.conv2d": "sums in another order than references do: test_neural_ops.py",
    **dict.fromkeys(["scf.if", "scf.while", "scf.for"], "control flow: test_control_flow.py"),
    **dict.fromkeys(
        [
            "profuse.if_then_else",
            "profuse.list_construct",
            "profuse.list_unpack",
            "profuse.list_append",
            "profuse.grad_of",
            "profuse.yield",
            "profuse.autograd_add",
            "profuse.autograd_zero",
            "profuse.any_nonzero",
            "profuse.all_nonzero",
            "profuse.all_zero",
            "func.call",
            "profuse.custom_result",
        ],
        "made by passes or importers of other frontends: test/dialect",
    ),
    **dict.fromkeys(
        [
            "profuse.list_get",
            "profuse.call_gradient",
            "profuse.call_hook",
            "profuse.call_backward",
            "profuse.accumulate_grad",
            "profuse.validate_grads",
            "profuse.final_callbacks",
        ],
        "of captured backward runs: test/executor/backward",
    ),
    "profuse.python_call": "it calls users' functions: test_host.py",
    "profuse.host_call": "its suites are those of the libraries: test_host_functions.py",
    "profuse.warn": "computes nothing: test_settings.py",
}


def memories(value: np.ndarray) -> list[np.ndarray]:
    """The elements of ``value`` in memory of several layouts, to be written."""
    strided = np.zeros(tuple(2 * d for d in value.shape), value.dtype)
    views = [
        np.zeros_like(value),
        strided[tuple(slice(None, None, 2) for _ in value.shape)],
        np.zeros(value.shape[::-1], value.dtype).T,
    ]
    for view in views:
        view[...] = value
    return views


def cases(op: type[InPlace], dtype: DType) -> list[Case]:
    """Cases of the op that computes whose first operand is an array."""
    suite = f"profuse.{op.base.name}"
    if dtype not in SUITES[suite].dtypes:
        return []
    found = cases_of(suite, dtype)
    return [c for c in found if isinstance(c.args[0], np.ndarray) and c.args[0].ndim][:60]


def written(op: type[Op], attrs: dict[str, Any], target: np.ndarray, *others: Any) -> Any:
    """What the op leaves in ``target``, or what it raises."""
    try:
        out = op.evaluate(op.full_attrs(attrs), target, *others)
    except (TypeError, ValueError, ArithmeticError, ProfuseError) as error:
        return error
    assert out is target
    return target


@pytest.mark.sampled(3)
@pytest.mark.parametrize("dtype", [F32, I8], ids=str)
@pytest.mark.parametrize("op", IN_PLACE, ids=lambda op: op.name)
def test_in_place_forms_conform(op: type[InPlace], dtype: DType) -> None:
    """R3.8: what is written is what NumPy computes, cast as ``same_kind`` allows, or is refused."""
    for case in cases(op, dtype):
        first, *others = case.args
        for target in memories(first):
            with silent():
                found = written(op, case.attrs, target, *others)
            types = [type_of(a) for a in case.args]
            if isinstance(case.reference, Exception):
                assert isinstance(found, Exception), case
                continue
            result = np.asarray(case.reference)
            if not np.can_cast(result.dtype, first.dtype, "same_kind"):
                assert isinstance(found, (TypeError, DTypeError)), case
                with pytest.raises(DTypeError):
                    op.infer(types, case.attrs)
            elif result.shape != first.shape:
                assert isinstance(found, (ValueError, ShapeError)), case
                with pytest.raises(ShapeError):
                    op.infer(types, case.attrs)
            else:
                with silent():
                    wanted = result.astype(first.dtype)
                # NumPy's loops over strided memory round differently from its vector loops.
                ulps = 4 if dtype is F32 else 0
                assert not (wrong := difference(found, wanted, ulps)), f"{case}: {wrong}"
                assert op.infer(types, case.attrs)[0].shape == first.shape


def test_assignment_broadcasts_and_casts() -> None:
    op = op_named("copy_")
    for target in memories(np.zeros((3, 4), np.int8)):
        for value in (np.arange(4.5, 8.5), np.ones((3, 1), np.int64), 2.75, np.ones((1, 3, 4))):
            with silent():
                wanted = np.zeros((3, 4), np.int8)
                wanted[...] = value
                assert not difference(written(op, {}, target, value), wanted)
        assert isinstance(written(op, {}, target, np.ones(3)), ValueError)
        strict = {"strict": True}
        assert isinstance(written(op, strict, target, np.ones((3, 4))), TypeError)
        assert isinstance(written(op, strict, target, np.ones((3, 1), np.int8)), ShapeError)


def test_put() -> None:
    op = op_named("put_")
    for target in memories(np.arange(4.0)):
        assert written(op, {"index": -1}, target, 7)[3] == 7
        assert written(op, {"index": DYNAMIC}, target, np.float32(2), 1)[1] == 2
        with pytest.raises(IndexError):
            op.evaluate({"index": DYNAMIC}, target, 1.0, 4)
        with pytest.raises(BoundsError):
            op.infer([type_of(target), type_of(1)], {"index": 4})


def test_every_op_has_a_suite_or_a_reason() -> None:
    shipped = {n for n, op in OPS.items() if op.__module__.startswith("profuse.dialect.ops.")}
    assert shipped - set(SUITES) == set(NO_SUITE) & shipped
    assert not set(SUITES) & set(NO_SUITE)


def test_what_is_borrowed_is_a_copy_unless_it_is_lent() -> None:
    borrow, add = op_named("borrow"), op_named("add_")
    array = np.arange(6.0).reshape(2, 3)
    found = borrow.evaluate({}, array)
    assert not np.shares_memory(found, array) and found.tolist() == array.tolist()
    LOANS.open = loan = BorrowedArrays()
    try:
        row = borrow.evaluate({}, array)[1]
        other = np.zeros(3)
        for target in (row, other, row[1:]):
            loan.note(target)
            add.evaluate({}, target, 1.0)
        array.flags.writeable = False
        assert borrow.evaluate({}, array) is not array
        array.flags.writeable = True
    finally:
        LOANS.open = None
    assert array[1].tolist() == [4.0, 6.0, 7.0]
    loan.undo()
    assert array.tolist() == [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]] and other.tolist() == [1.0] * 3
