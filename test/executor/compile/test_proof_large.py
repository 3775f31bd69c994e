"""Checks of large kernels: some rows are compared, and what there is no time for is left out."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest
from internals import break_kernel
from profuse.executor.compile.proof import check as module
from profuse.executor.compile.proof.check import Budget, Difference, KernelCheck, check_kernel
from profuse.executor.compile.proof.reference import Reference
from profuse.executor.compile.proof.sampled_rows import rows_of
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import host_target

sys.path.insert(0, str(Path(__file__).parents[2] / "lowering"))
from graphs import Graph, tensor

SHAPES = ((300, 400), (400, 300), (400,))
NOT_BY_ROWS = ("flipped", "scalar")


def compiled(program):
    return compile_program(program, host_target())


def typed(g: Graph, output: int):
    """The function with the types of all values, as compiles have it."""
    g.program.types |= g.types
    return g.returning(output)


def affine(factor: float, *shape):
    g = Graph(tensor(*shape))
    (x,) = g.inputs
    return typed(g, g.add(g.mul(g.exp(x), g.number(factor)), x))


def large(name: str):
    g = Graph(*(tensor(*shape) for shape in SHAPES))
    x, w, b = g.inputs
    if name == "softmax":
        e = g.exp(g.sub(x, g.max(x, axes=(1,), keepdims=True)))
        return typed(g, g.div(e, g.sum(e, axes=(-1,), keepdims=True)))
    if name == "product":
        return typed(g, g.tanh(g.add(g.matmul(g.exp(x), g.exp(w)), g.number(1.0))))
    if name == "views":
        y = g.transpose(g.reshape(g.mul(x, b), shape=(300, 20, 20)), perm=(0, 2, 1))
        z = g.add(g.expand_dims(g.sum(y, axes=(1,), keepdims=False), axes=(1,)), y)
        most = g.max(x, axes=(0, 1), keepdims=False)
        return typed(g, g.add(z, g.broadcast_to(most, shape=(300, 1, 20))))
    if name == "square":  # as many rows as columns, the sums of which are no rows
        y = g.mul(g.matmul(x, w), g.number(0.01))
        return typed(g, g.add(g.expand_dims(g.sum(y, axes=(0,), keepdims=False), axes=(1,)), y))
    if name == "columns":
        y = g.exp(x)
        return typed(g, g.mul(g.div(y, g.sum(y, axes=(0,), keepdims=True)), y))
    if name == "flipped":
        return typed(g, g.flip(g.exp(x), axes=(0,)))
    return typed(g, g.sum(g.exp(x), axes=(0, 1), keepdims=False))


@pytest.mark.parametrize("name", ["softmax", "product", "views", "square", "columns", *NOT_BY_ROWS])
def test_rows_of_large_results_are_what_the_definition_gives(name):
    program = large(name)
    args = [np.random.default_rng(0).random(shape, np.float32) for shape in SHAPES]
    rows = rows_of(program)
    assert (rows is None) == (name in NOT_BY_ROWS), "no row of those is of the same row alone"
    (whole,) = Reference(program)(args)
    if rows is not None:
        assert {0, 299} < set(rows.picked.tolist()) and rows.picked.size < 80
        (some,) = Reference(program, rows=rows)(args)
        np.testing.assert_allclose(some, whole[rows.picked], rtol=1e-5)  # BLAS sums otherwise
        ((moved,),) = Reference(program, rows=rows).nearby(args, 1, 0)
        np.testing.assert_allclose(moved, some, rtol=1e-3)
    verdict = check_kernel(program, compiled(program), Budget(seconds=5.0))
    told = "" if rows is None else f"{rows.picked.size} rows of large results were compared"
    assert (verdict.runs, verdict.detail) == (4, told)


def test_a_wrong_row_is_told_by_its_number():
    right = affine(2.0, 400, 300)
    artifact = compiled(right)
    with pytest.raises(Difference, match=r"element \[0, 0\] is .* of \d{4} wrong"):
        check_kernel(affine(2.001, 400, 300), artifact, Budget(seconds=5.0))
    check = KernelCheck(right, artifact, Budget(seconds=5.0))

    def fault(address):
        slots = (ctypes.c_uint64 * 2).from_address(address)
        ctypes.c_float.from_address(slots[1] + 4 * (399 * 300 + 7)).value = 9.0

    break_kernel(check, fault)
    with pytest.raises(Difference, match=r"element \[399, 7\] is 9.0, .* \(1 of"):
        check.run()


@pytest.mark.parametrize(
    ("launch", "reference", "runs", "said"),
    [
        (1, 1, 4, ""),
        (15, 15, 4, "too large to be run twice on the same inputs"),
        (15, 30, 4, "too large: telling what its results should be takes about 30 ms"),
        (50, 1, 0, "too large: a run takes about 51 ms"),
    ],
)
def test_what_there_is_no_time_for_is_left_out(monkeypatch, launch, reference, runs, said):
    monkeypatch.setattr(module, "estimate", lambda *_: (launch / 1e3, reference / 1e3))
    monkeypatch.setattr(module.time, "thread_time", lambda: 0.0)
    program = affine(2.0, 4, 5)
    verdict = check_kernel(program, compiled(program), Budget())
    assert (verdict.runs, verdict.detail) == (runs, said)
    assert verdict.compared == (0 if reference == 30 or not runs else 4 * 20)
    assert check_kernel(program, compiled(program), Budget("all")).outcome == "checked"


def test_sizes_whose_squares_take_numpy_long_are_left_out(monkeypatch):
    """Operands and results may be small where what is between them is not."""
    g = Graph(tensor("s0"))
    (x,) = g.inputs
    square = g.mul(g.expand_dims(x, axes=(0,)), g.expand_dims(x, axes=(1,)))
    program = typed(g, g.sum(square, axes=(0, 1), keepdims=False))
    sizes, one = [], Reference.__call__
    monkeypatch.setattr(Reference, "__call__", lambda self, args: sizes.append(len(args[0])) or one(self, args))
    monkeypatch.setattr(module.time, "thread_time", lambda: 0.0)
    verdict = check_kernel(program, compiled(program), Budget())
    assert 131 in sizes and max(sizes) < 4000
    assert (verdict.outcome, verdict.runs) == ("checked", len(sizes))  # smaller sizes test the same code
