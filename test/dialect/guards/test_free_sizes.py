"""What the sizes of operands have to fit, derived from ops (A6)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from mlir import ir
from profuse.dialect.guards.free_sizes import FreeSizes, SizeSolver, axis_name, axis_of
from profuse.dialect.guards.mismatch import fits_relaxed, mismatches
from profuse.dialect.guards.relaxed import free_strides
from profuse.dialect.guards.size_needs import needed as needed_of
from profuse.dialect.ir.size_algebra import floored_name, floors_of, least_of, parse_dim
from profuse.dialect.ir.symbolic import Sym, evaluate, symbol
from profuse.dialect.ir.types import TensorType, type_of
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.mlir.rewrite import body_of, functions
from profuse.dialect.mlir.rewrite import type_of as value_type
from profuse.dialect.passes import load_passes
from profuse.dialect.reasons import Kind, Reason


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, np.float32)


def profiled(*shapes: tuple[int, ...]) -> list[TensorType]:
    return [type_of(zeros(*shape)) for shape in shapes]  # type: ignore[misc]


def relations(text: str, *shapes: tuple[int, ...]) -> FreeSizes | Reason:
    """What the guard of a group with this body asks, of operands with these shapes when profiled."""
    load_passes()
    from profuse.dialect.passes.device_fuser.group_sizes import free_group

    arguments = ", ".join(f"%{chr(ord('a') + k)}: !profuse.tensor" for k in range(len(shapes)))
    module = parse_module(f"func.func @f({arguments}) -> !profuse.tensor {{ {text} return %out : !profuse.tensor }}")
    with module.context, ir.Location.unknown():
        (func,) = functions(module)
        answer = free_group(func, {k: k for k in range(len(shapes))}, profiled(*shapes))
        if isinstance(answer, Reason):
            return answer
        types = [value_type(v) for v in body_of(func).arguments]
    names = {name for t in types for d in t.shape if isinstance(d, Sym) for name in d.symbols}
    axes = {d.terms[0][0] for t in types for d in t.shape if isinstance(d, Sym) and len(d.terms) == 1}
    assert names <= {mono[0] for mono in axes}, "a kernel could not read its sizes"
    return answer[0]


TENSOR = "!profuse.tensor"
ADD = (
    f'%0 = "profuse.add"(%a, %b) : ({TENSOR}, {TENSOR}) -> {TENSOR} %out = "profuse.tanh"(%0) : ({TENSOR}) -> {TENSOR}'
)
MATMUL = f"""%0 = "profuse.matmul"(%a, %b) : ({TENSOR}, {TENSOR}) -> {TENSOR}
  %out = "profuse.add"(%0, %c) : ({TENSOR}, {TENSOR}) -> {TENSOR}"""
ROWS = f"""%0 = "profuse.mul"(%a, %b) : ({TENSOR}, {TENSOR}) -> {TENSOR}
  %out = "profuse.sum"(%0) {{axes = array<i64: 1>}} : ({TENSOR}) -> {TENSOR}"""


@pytest.mark.parametrize(
    ("text", "shapes", "equal"),
    [
        (ADD, [(8, 8), (8, 8)], ((0, 0, 1, 0), (0, 1, 1, 1))),
        (MATMUL, [(4, 8), (8, 3), (3,)], ((0, 1, 1, 0), (1, 1, 2, 0))),
        (ROWS, [(4, 8), (1, 8)], ((0, 1, 1, 1),)),
    ],
)
def test_a6_equal_sizes(text, shapes, equal):
    assert relations(text, *shapes) == FreeSizes(equal)


def test_a6_sizes_that_do_not_fit_are_no_hit():
    free = relations(ADD, (4, 8), (4, 8))
    types = profiled((4, 8), (4, 8))
    assert not fits_relaxed(types, (zeros(4, 8), zeros(5, 8)), free)
    assert fits_relaxed(types, (zeros(16, 32), zeros(16, 32)), free)
    product = relations(f'%out = "profuse.matmul"(%a, %b) : ({TENSOR}, {TENSOR}) -> {TENSOR}', (4, 8), (8, 3))
    assert not fits_relaxed(profiled((4, 8), (8, 3)), (zeros(4, 9), zeros(8, 3)), product)


def test_a6_what_cannot_be_compiled_for_any_sizes_is_refused():
    flagged = [replace(t, requires_grad=True) for t in profiled((4,), (4,))]
    load_passes()
    from profuse.dialect.passes.device_fuser.group_sizes import free_group

    module = parse_module(f"func.func @f(%a: {TENSOR}, %b: {TENSOR}) -> {TENSOR} {{ {ADD} return %out : {TENSOR} }}")
    with module.context, ir.Location.unknown():
        answer = free_group(functions(module)[0], {0: 0, 1: 1}, flagged)
    assert isinstance(answer, Reason)
    assert answer.kind is Kind.NOT_GENERAL


def test_a6_a_size_that_differed_from_run_to_run_is_none_of_0_and_1():
    """It is a symbol from the start; a guard that asked nothing of it would let it broadcast."""
    solver = SizeSolver([replace(type_of(zeros(4, 8)), shape=(None, 8))], 1)  # type: ignore[arg-type]
    (checked,) = solver.checked()
    assert checked.shape == (symbol("s0_0"), 8)
    for rows, fits in ((5, True), (1, False), (0, False)):
        assert fits_relaxed([checked], [zeros(rows, 8)]) is fits


def test_a6_expressions_are_told_in_the_words_of_a_miss():
    free = FreeSizes(fit=("s1_0 == s0_0*s0_1", "(s0_0 % 2) == 0"))
    types = profiled((4, 6), (24,))
    assert fits_relaxed(types, (zeros(2, 5), zeros(10)), free)
    seen = [type_of(zeros(3, 5)), type_of(zeros(16))]
    assert [m.text for m in mismatches(types, seen, ["x", "y"], relaxed=True, free=free)] == [
        "x: sizes do not fit: (dimension 0 of x % 2) must be 0, they are 1 and 0",
        "y: sizes do not fit: dimension 0 of y must be dimension 0 of x*dimension 1 of x, they are 16 and 15",
    ]


def test_a6_a_size_that_has_to_be_large_enough():
    """An op over what is left of an axis needs some of it: the guard asks for that, and not for the size profiled."""
    cut = "{starts = array<i64: 2>, stops = array<i64: 9223372036854775807>, steps = array<i64: 1>}"
    text = f"""%0 = "profuse.slice"(%a) {cut}
      : ({TENSOR}) -> {TENSOR}
      %out = "profuse.max"(%0) {{axes = array<i64: 0>}} : ({TENSOR}) -> {TENSOR}"""
    free = relations(text, (8,))
    assert free == FreeSizes(fit=("max(s0_0, 3) == s0_0",))
    types = profiled((8,))
    assert [fits_relaxed(types, [zeros(n)], free) for n in (2, 3, 9)] == [False, True, True]
    assert [m.text for m in mismatches(types, [type_of(zeros(2))], ["x"], relaxed=True, free=free)] == [
        "x: dimension 0 of x is 2, must be at least 3"
    ]


def cut(starts: str, stops: str) -> str:
    """The rows of b that are as many as a has, added to it; the edges of the cut that follow from ``%n`` are given."""
    return f"""%n = "profuse.dim"(%a) {{axis = 0 : i64}} : ({TENSOR}) -> i64
      %m = "profuse.neg"(%n) : (i64) -> i64
      %0 = "profuse.slice"(%b, {"%m" if starts == RUN_TIME else "%n"}) {{
        starts = array<i64: {starts}>, stops = array<i64: {stops}>, steps = array<i64: 1>
      }} : ({TENSOR}, i64) -> {TENSOR}
      %out = "profuse.add"(%a, %0) : ({TENSOR}, {TENSOR}) -> {TENSOR}"""


RUN_TIME, END = "-9223372036854775808", "-9223372036854775807"


@pytest.mark.parametrize(("starts", "stops"), [("0", RUN_TIME), (RUN_TIME, END)])
@pytest.mark.parametrize("rows", [9, 4])
def test_a6_a_size_that_has_to_be_as_large_as_another(starts, stops, rows):
    """A table of positions is as long as the text or longer, also where it was as long when profiled."""
    free = relations(cut(starts, stops), (4,), (rows,))
    assert free == FreeSizes(fit=("max(s1_0, s0_0) == s1_0",))
    types = profiled((4,), (rows,))
    assert [fits_relaxed(types, [zeros(5), zeros(n)], free) for n in (4, 5, 6)] == [False, True, True]
    seen = [type_of(zeros(5)), type_of(zeros(4))]
    assert [m.text for m in mismatches(types, seen, ["x", "table"], relaxed=True, free=free)] == [
        "table: dimension 0 of table is 4, must be at least dimension 0 of x = 5"
    ]


@pytest.mark.parametrize(
    ("steps", "sizes", "fit"),
    [
        ([("min(s0_0 + 2, s1_0)", "s0_0 + 2")], {"s1_0": "s1_0__2_s0_0"}, ("max(s1_0, s0_0 + 2) == s1_0",)),
        ([("min(s1_0, 4)", "4")], {"s1_0": "s1_0_4"}, ("max(s1_0, 4) == s1_0",)),
        # What a size is known to exceed is equal to another one, is a number, or is divided.
        (
            [("min(s0_0, s1_0)", "s0_0"), ("s0_0", "s2_0")],
            {"s1_0": "s1_0__0_s0_0", "s2_0": "s0_0"},
            ("max(s1_0, s0_0) == s1_0",),
        ),
        (
            [("min(s2_0, s1_0)", "s2_0"), ("s0_0", "s2_0")],
            {"s1_0": "s1_0__0_s0_0", "s2_0": "s0_0"},
            ("max(s1_0, s0_0) == s1_0",),
        ),
        (
            [("min(s0_0, s1_0)", "s0_0"), ("s0_0", 4)],
            {"s0_0": "4", "s1_0": "s1_0_4"},
            ("s0_0 == 4", "max(s1_0, 4) == s1_0"),
        ),
        ([("min(s0_0, s1_0)", "s0_0"), ("(s0_0 % 2)", 0)], {"s0_0": "2*k1"}, ("(s0_0 % 2) == 0",)),
        # Two facts of one size; one of a size that exceeds another one.
        (
            [("min(s0_0, s1_0)", "s0_0"), ("min(s2_0, s1_0__0_s0_0)", "s2_0")],
            {"s1_0": "s1_0__0_s0_0__0_s2_0"},
            ("max(s1_0, s0_0) == s1_0", "max(s1_0, s2_0) == s1_0"),
        ),
        (
            [("min(s0_0, s1_0)", "s0_0"), ("min(s0_0, 3)", 3)],
            {"s0_0": "s0_0_3", "s1_0": "s1_0__0_s0_0"},
            ("max(s0_0, 3) == s0_0", "max(s1_0, s0_0) == s1_0"),
        ),
    ],
)
def test_a6_what_is_known_of_sizes_stays_known(steps, sizes, fit):
    solver = SizeSolver(profiled((4,), (8,), (4,)), 3)
    for p, q in steps:
        assert solver.resolve((parse_dim(str(p)), parse_dim(str(q)))) is not None
    assert {name: str(dim) for name, dim in solver.sizes.items() if str(dim) != name} == sizes
    assert solver.relations().fit == fit


def test_a6_factors_that_were_as_large_are_taken_for_equal():
    """A reshape that divides the last axis alone: the sizes of the others may be any."""
    solver = SizeSolver(profiled((4, 6), (4, 3, 2)), 2)
    before = parse_dim("s0_0*s0_1"), parse_dim("s1_0*s1_1*s1_2")
    assert solver.resolve(before) == {"s1_0": symbol("s0_0")}
    assert solver.resolve((before[0], parse_dim("s0_0*s1_1*s1_2"))) == {"s0_1": parse_dim("s1_1*s1_2")}
    assert solver.relations() == FreeSizes(((0, 0, 1, 0),), ("s0_1 == s1_1*s1_2",))
    assert SizeSolver(profiled((4, 6), (8, 3)), 2).resolve((before[0], parse_dim("s1_0*s1_1"))) == {}


def test_a6_what_did_not_hold_when_profiled_is_not_taken_for_granted():
    solver = SizeSolver(profiled((9,), (8,)), 2)
    sizes = parse_dim("min(s0_0, s1_0)"), parse_dim("s0_0")
    assert solver.resolve(sizes) == {"s0_0": symbol("s0_0__0_s1_0")}
    assert solver.resolve((parse_dim("s1_0"), parse_dim("s0_0__0_s1_0"))) == {}  # they were not equal
    assert solver.sizes == {"s0_0": 9, "s1_0": 8}


@pytest.mark.parametrize(
    ("size", "needed"),
    [
        ("s0_0 + -2", ("s0_0", 3)),
        ("3*s0_0 + -7", ("s0_0", 3)),
        ("((s0_0 + -3) // 2) + 1", ("s0_0", 3)),
        ("((s0_0 + -4) // 2)", ("s0_0", 6)),
        ("-1*((-1*s0_0 + 3) // 2)", ("s0_0", 4)),
        ("-2*((-1*s0_0 + 3) // 4) + -3", ("s0_0", 8)),
        ("s0_0*s0_1 + -1", None),
        ("max(s0_0 + -2, 0)", ("s0_0", 3)),
        ("min(s0_0, 5) + -2", ("s0_0", 3)),
        ("min(s0_0, 5) + -5", None),
        ("s0_0 + -1*s0_1", None),
        ("-1*s0_0 + 9", None),
    ],
)
def test_a6_what_a_size_needs_to_be_positive(size, needed):
    dim = parse_dim(size)
    assert needed_of(dim, 1) == needed
    if needed is not None:
        values = {n: evaluate(dim, {"s0_0": n}) for n in range(2, 20)}
        assert [n for n, value in values.items() if value > 0] == list(range(needed[1], 20))


def test_a6_names_of_axes():
    floored = "s3_1_12__0_k1__2_s0_4"
    assert axis_of(axis_name(3, 1)) == axis_of("s3_1_12") == axis_of(floored) == (3, 1)
    assert (least_of("s3_1"), least_of("s3_1_12"), least_of(floored), least_of("k1")) == (2, 12, 12, 0)
    assert (floors_of("s3_1"), floors_of(floored)) == ({}, {"k1": 0, "s0_4": 2})
    assert floored_name("s3_1_7", 12, {"s0_4": 2, "k1": 0}) == floored
    for name in ("k1", "s3", "x3_1"):
        with pytest.raises(ValueError):
            axis_of(name)


@pytest.mark.parametrize(
    ("array", "strides"),
    [
        (zeros(4, 8), "contiguous"),
        (zeros(4, 1, 8), "contiguous"),
        (zeros(8, 4).T, (1, None)),
        (zeros(4, 16)[:, ::2], (None, None)),
        (zeros(4, 16)[:, :8], (None, 1)),
        (np.broadcast_to(zeros(8), (4, 8)), (None, None)),
        (np.broadcast_to(zeros(4, 1), (4, 8)), (None, None)),
        (zeros(0, 4), "contiguous"),
    ],
)
def test_a6_strides_that_a_guard_tells(array, strides):
    assert free_strides(type_of(array)) == strides  # type: ignore[arg-type]
