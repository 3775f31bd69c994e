"""Extrema of masked data are SIMD code, whatever constant the mask leaves."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from every_case import pairs
from graphs import Graph, tensor
from profuse.dialect.ir.dtypes import BOOL, dtype_of
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import Target, host_target

X86, ARM = "x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"
# Machine code is only looked at, so any host has all of them.
TARGETS = [
    Target(X86, "haswell"),
    Target(X86, "skylake-avx512"),
    Target(X86, "znver4"),
    Target(X86, "znver5"),
    Target(ARM, "neoverse-n1"),
]
DTYPES = [np.float16, ml_dtypes.bfloat16, np.float32, np.float64, np.int8, np.uint8, np.int32, np.int64, np.uint64]
AXES = [-1, 0, None]
VECTORS = {X86: r"%[yz]mm", ARM: r"\bv\d+\."}


def constants(dtype):
    """What a minimum or a maximum takes for nothing or for all; another number is the last."""
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        return [info.min, info.max, 0, 5]
    return [-np.inf, np.inf, np.nan, 0.0, 5.0]


def vectors(g, result, target):
    """How often a kernel's code names vectors."""
    artifact = compile_program(g.returning(result), target, keep_stages=True)
    return len(re.findall(VECTORS[target.triple], artifact.stages["asm"]))


def reduced(name, dtype, axis, constant, target, change=None):
    """The vectors in a reduction of what a mask leaves, or of what ``change`` makes of that."""
    g = Graph(tensor(64, 1024, dtype=dtype_of(dtype)), tensor(64, 1024, dtype=BOOL))
    x, keep = g.inputs
    kept = g.select(keep, x, g.number(constant, dtype))
    if change is not None:
        kept = change(g, kept)
    return vectors(g, getattr(g, name)(kept, axes=None if axis is None else (axis,)), target)


@pytest.mark.sampled(6, each=())
@pytest.mark.parametrize(
    ("dtype", "target", "way"), pairs(DTYPES, TARGETS, [(name, axis) for axis in AXES for name in ("max", "min")])
)
def test_no_constant_costs_the_vectors(dtype, target, way):
    *special, other = (reduced(*way[:1], dtype, way[1], c, target) for c in constants(dtype))
    assert other > 20
    # A constant that decides the result takes less of them, as an `any` does.
    assert min(special) > 0.1 * other, (special, other)


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    "change",
    [
        lambda g, x: g.neg(x),
        lambda g, x: g.minimum(x, g.number(2)),
        lambda g, x: g.div(g.number(1), x),
        lambda g, x: g.select(g.gt(x, g.number(1)), g.number(-np.inf), x),
    ],
    ids=["negative", "bound", "reciprocal", "two masks"],
)
@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("target", TARGETS[:3])
def test_what_is_computed_of_a_constant_costs_none(name, change, target):
    """An infinity may come of another number."""
    *special, other = (reduced(name, np.float32, -1, c, target, change) for c in (-np.inf, np.inf, 0.0, -0.0, 5.0))
    assert other > 20
    assert min(special) > 0.75 * other, (special, other)


def test_bounds_stay_bounds():
    """The lesser of a number and a bound is one instruction, which LLVM knows by these."""
    g = Graph(tensor(64, 1024))
    (x,) = g.inputs
    one = g.number(1)
    found = g.max(g.select(g.lt(x, one), x, one), axes=(1,))
    artifact = compile_program(g.returning(found), TARGETS[0], keep_stages=True)
    assert "vminps" in artifact.stages["asm"]


def rounds(reduction, constant):
    def function(x, keep):
        out = np.zeros(len(x))
        for i in range(len(x)):
            out[i] = reduction(np.where(keep[i], x[i], constant)) + out[i // 2]
        return out

    return function


@pytest.mark.sampled(9, each=("reduction",))
@pytest.mark.skipif(not host_target().triple.startswith("x86_64"), reason="of vectors of x86-64")
@pytest.mark.parametrize("reduction", [np.max, np.min])
@pytest.mark.parametrize("dtype", DTYPES)
def test_so_it_is_in_loops(reduction, dtype):
    x, keep = np.ones((8, 1024), dtype), np.ones((8, 1024), bool)
    found = []
    for constant in constants(dtype):
        jitted = pf.jit(rounds(reduction, dtype(constant)))
        for _ in range(3):
            jitted(x, keep)
        found.append(len(re.findall(VECTORS[X86], jitted.ir("asm"))))
    assert found[-1] > 20
    assert min(found) > 0.75 * found[-1], found
