"""Loops whose condition branches test it at the end of a round."""

from __future__ import annotations

import numpy as np
import profuse as pf
import pytest
from mlir import ir
from profuse.lowering.cpu.rotation import rotate_loops

WHILE = """
func.func @f(%a: memref<8xf64>, %key: f64, %start: i64) -> (i64, f64) {{
  %zero = arith.constant 0 : i64
  %one = arith.constant 1 : i64
  %no = arith.constant false
  %end:2 = scf.while (%j = %start, %last = %key) : (i64, f64) -> (i64, f64) {{
    %in = arith.cmpi sge, %j, %zero : i64
    %go = {condition}
    scf.condition(%go) %j, %last : i64, f64
  }} do {{
  ^bb0(%j: i64, %last: f64):
    %k = arith.index_cast %j : i64 to index
    %x = memref.load %a[%k] : memref<8xf64>
    %next = arith.subi %j, %one : i64
    scf.yield %next, %x : i64, f64
  }}
  return %end#0, %end#1 : i64, f64
}}"""
BRANCH = """scf.if %in -> (i1) {
      %at = arith.index_cast %j : i64 to index
      %here = memref.load %a[%at] : memref<8xf64>
      %larger = arith.cmpf ogt, %here, %key : f64
      scf.yield %larger : i1
    } else {
      scf.yield %no : i1
    }"""


def rotated(condition):
    with ir.Context() as context, ir.Location.unknown():
        module = ir.Module.parse(WHILE.format(condition=condition), context)
        rotate_loops(module)
        assert module.operation.verify()
        return str(module)


def test_a_condition_that_branches_is_there_twice():
    text = rotated(BRANCH)
    before, loop = text.split("scf.while", 1)
    test, rounds = loop.split("do {", 1)
    assert "scf.if" in before and "scf.if" in rounds and "scf.if" not in test


def test_a_long_one_and_one_without_a_branch_stay():
    plain = "arith.andi %in, %in : i1"
    assert rotated(plain).count("arith.cmpi") == 1
    adds = "\n".join(f"%u{k} = arith.addi %j, %one : i64" for k in range(30))
    assert rotated(f"{BRANCH}\n{adds}").count("scf.if") == 1


def sort(a):
    moves = 0
    for i in range(1, len(a)):
        key, j = a[i], i - 1
        while j >= 0 and a[j] > key:
            a[j + 1] = a[j]
            j -= 1
            moves += 1
        a[j + 1] = key
    return moves


def first_pair(a, wanted):
    i = 0
    while i + 1 < len(a) and (a[i] + a[i + 1] < wanted or a[i] == 0):
        i += 1
    return i


@pytest.mark.sampled(3)
@pytest.mark.parametrize("size", [0, 1, 2, 37])
def test_such_loops_compute_the_same(size):
    rng = np.random.default_rng(size)
    sorts, finds = (pf.jit(f, unsupported="python") for f in (sort, first_pair))
    for _ in range(6):
        source = rng.integers(0, 9, size).astype(float)
        ours, theirs = source.copy(), source.copy()
        assert sorts(ours) == sort(theirs)
        np.testing.assert_array_equal(ours, theirs)
        for wanted in (-1.0, 9.0, 99.0):
            assert finds(source, wanted) == first_pair(source, wanted)
    if size > 2:
        assert sorts.state().tier == finds.state().tier == "optimized"
