"""Tier 0 and type inference of every op against NumPy, over dtypes, shapes and layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from cases import OPS, SUITES, Case, all_suites, cases_of, difference, silent
from profuse.dialect.errors import DTypeError, ProfuseError
from profuse.dialect.ir.dtypes import DType, dtype_of
from profuse.dialect.ir.symbolic import Sym, evaluate, symbol
from profuse.dialect.ir.types import TENSOR, ListType, ScalarType, TensorType, Type, type_of
from profuse.dialect.ops.elementwise.families import Elementwise


def suites(*, elementwise: bool = False) -> pytest.MarkDecorator:
    """Every op with a suite, or only elementwise ones, in every dtype of its suite."""
    chosen = [s for s in all_suites() if not elementwise or issubclass(OPS[s[0]], Elementwise)]
    ids = [f"{name.removeprefix('profuse.')}-{dtype}" for name, dtype in chosen]
    return pytest.mark.parametrize(("name", "dtype"), chosen, ids=ids)


def contradiction(type_: Type, value: Any) -> str | None:
    """What an inferred type says that is not true of the value; None = nothing."""
    if type(value) in (bool, int, float, complex):
        if type_ == TENSOR:
            return None
        if isinstance(type_, ScalarType) and type_.value is not None:
            if repr(type_.value) != repr(value):
                return f"value {type_.value!r} was inferred, {value!r} is right"
            type_ = replace(type_, value=None)
        if type_ == type_of(value):
            return None
        return f"{type_!r} is not the type of {value!r}"
    if isinstance(value, list):
        return None if isinstance(type_, ListType) else f"{type_!r} is not a list"
    if not isinstance(type_, TensorType):
        return f"{type_!r} is not the type of an array"
    if type_.dtype is not None and type_.dtype is not dtype_of(value.dtype):
        return f"dtype {type_.dtype} was inferred, {value.dtype} is right"
    if type_.shape is None:
        return None
    shape = np.shape(value)
    fits = len(shape) == len(type_.shape) and all(a is None or a == b for a, b in zip(type_.shape, shape, strict=True))
    return None if fits else f"shape {type_.shape} was inferred, {shape} is right"


def contradictions(types: Sequence[Type], reference: Any) -> str | None:
    values = reference if isinstance(reference, tuple) else (reference,)
    assert len(types) == len(values)
    found = (contradiction(t, v) for t, v in zip(types, values, strict=True))
    return next((c for c in found if c), None)


def check_inference(case: Case, types: Sequence[Type]) -> None:
    """Static, then symbolic, then no knowledge of the operands."""
    op = case.op
    inferred = op.infer(types, case.attrs)
    assert not (wrong := contradictions(inferred, case.reference)), f"{case}: {wrong}"
    if issubclass(op, Elementwise) and op.name != "pow":
        assert all(isinstance(t, ScalarType) or t.is_static for t in inferred), case
    unknown = [TENSOR if isinstance(t, TensorType) else t for t in types]
    inferred = op.infer(unknown, case.attrs)
    assert not (wrong := contradictions(inferred, case.reference)), f"{case}: {wrong}"
    if not SUITES[op.full_name()].symbolic:
        return
    sizes: dict[str, int] = {}

    def generalized(size: int):
        if size == 1:
            return 1
        sizes[f"s{size}"] = size
        return symbol(f"s{size}")

    symbolic = [
        TensorType(t.dtype, tuple(map(generalized, t.shape)))
        if isinstance(t, TensorType) and t.shape is not None
        else t
        for t in types
    ]
    inferred = op.infer(symbolic, case.attrs)
    concrete = [
        TensorType(t.dtype, tuple(None if d is None else evaluate(d, sizes) for d in t.shape))
        if isinstance(t, TensorType) and t.shape is not None
        else replace(t, value=evaluate(t.value, sizes))
        if isinstance(t, ScalarType) and isinstance(t.value, Sym)
        else t
        for t in inferred
    ]
    assert not (wrong := contradictions(concrete, case.reference)), f"{case}: {wrong}"
    if issubclass(op, Elementwise) and op.name != "pow":
        assert all(isinstance(t, ScalarType) or t.is_complete for t in concrete), case


@pytest.mark.sampled(6)
@suites()
def test_conforms(name: str, dtype: DType) -> None:
    """`infer` predicts and `evaluate` returns what NumPy does, or both refuse as NumPy does."""
    for case in cases_of(name, dtype):
        types = [type_of(a) for a in case.args]
        with silent():
            if isinstance(case.reference, TypeError):
                with pytest.raises(DTypeError):
                    case.op.infer(types, case.attrs)
            elif not isinstance(case.reference, Exception):
                check_inference(case, types)
            if isinstance(case.reference, Exception):
                with pytest.raises((type(case.reference), ProfuseError)):
                    case.op.evaluate(case.attrs, *case.args)
                continue
            found = case.op.evaluate(case.attrs, *case.args)
        expected = case.reference
        if isinstance(expected, tuple) and len(expected) == 1:
            (expected,) = expected  # of one result that is the result
        assert not (wrong := difference(found, expected)), f"{case}: {wrong}"


@pytest.mark.sampled(8)
@suites(elementwise=True)
def test_explicit_promotion(name: str, dtype: DType) -> None:
    """Casting operands to `operand_dtypes` beforehand changes nothing: kernels rely on it."""
    for case in cases_of(name, dtype):
        if isinstance(case.reference, Exception):
            continue
        types = [type_of(a) for a in case.args]
        wanted = case.op.operand_dtypes(types, case.attrs)
        if wanted is None:
            continue
        with silent():
            args = [
                a if want is None else np.asarray(a).astype(want.numpy)
                for a, want in zip(case.args, wanted, strict=True)
            ]
            found = case.op.evaluate(case.attrs, *args)
        assert not (wrong := difference(found, case.reference)), f"{case}: {wrong}"


def test_every_elementwise_op_has_cases() -> None:
    shipped = [op for op in OPS.values() if op.__module__.startswith("profuse.dialect.ops.")]
    assert all(op.full_name() in SUITES for op in shipped if issubclass(op, Elementwise))
