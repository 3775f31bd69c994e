"""Alias and access analysis: what shares memory, who writes it, what may trade places."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import profuse.dialect.ops.seldom  # noqa: F401  (fills OPS)
import pytest
from profuse.dialect.analysis.alias import OUTSIDE, Aliases, forbidden
from profuse.dialect.analysis.functional import functionalize
from profuse.dialect.analysis.must_alias import Accesses
from profuse.dialect.ir.dtypes import F64, I64
from profuse.dialect.ir.op import OPS, op_named
from profuse.dialect.ir.program import Block, Instr, Program
from profuse.dialect.ir.types import TENSOR, ScalarType, TensorType

sys.path.insert(0, str(Path(__file__).parent / "ops"))
from cases import all_suites, cases_of, silent


class Graph:
    """A program under construction."""

    def __init__(self, inputs: int = 1) -> None:
        self.program = Program("f")
        self.block = self.program.body
        self.block.args = tuple(self.program.new_value(TENSOR) for _ in range(inputs))

    def __call__(self, name: str, *operands: int, blocks: Any = (), **attrs: Any) -> Any:
        op = op_named(name)
        count = len(op.results)
        results = tuple(self.program.new_value(TENSOR) for _ in range(attrs.pop("results", count)))
        self.block.instrs.append(Instr(op, operands, results, attrs, tuple(blocks)))
        return results[0] if len(results) == 1 else results

    def number(self, value: int) -> int:
        out = self("constant", value=value)
        self.program.types[out] = ScalarType(I64)
        return out

    def inside(self, block: Block) -> Graph:
        inner = Graph.__new__(Graph)
        inner.program, inner.block = self.program, block
        return inner

    def aliases(self) -> Aliases:
        return Aliases(self.program.body, self.program.type_of)

    def accesses(self) -> Accesses:
        return Accesses(self.program.body, self.program.type_of)


def test_views_share_and_copies_do_not():
    g = Graph()
    (x,) = g.block.args
    y = g("neg", x)
    v, c = g("flip", y), g("copy", y)
    w = g("transpose", v)
    found = g.aliases()
    assert found.of(y) == found.of(v) == found.of(w) == {y}
    assert found.of(c) == {c} and found.of(x) == {OUTSIDE}


def test_writers_and_what_is_written():
    """R3.11: "does this value have a writer" looks through views."""
    g = Graph()
    (x,) = g.block.args
    y, z = g("neg", x), g("exp", x)
    v = g("flip", y)
    g("add_", v, z)
    found = g.aliases()
    write = g.block.instrs[-1]
    assert found.writers(y) == [write] and found.writers(z) == []
    assert found.is_written(v) and not found.is_written(z)
    assert forbidden(found, write) is None


@pytest.mark.parametrize("view", [False, True])
def test_arguments_and_constants_must_not_be_written(view):
    """R1.24: the in-place check."""
    for name, word in (("x", "argument"), ("c", "constant")):
        g = Graph()
        value = g.block.args[0] if name == "x" else g("constant", value=np.ones(2))
        g("neg_", g("flip", value) if view else value)
        assert word in str(forbidden(g.aliases(), g.block.instrs[-1]))


def test_r3_17_reads_and_writes_of_memory_keep_their_order():
    g = Graph()
    (x,) = g.block.args
    y, z = g("neg", x), g("exp", x)
    g("sum", y)
    g("add_", y, x)
    g("sum", z)
    g("exp_", g("flip", y))
    g("dim", y, axis=0)
    pairs = list(g.aliases().order(g.block))
    read, write, _, view, second = range(2, 7)
    assert (read, write) in pairs and (write, second) in pairs
    assert (write, view) in pairs, "a view is taken to read what it views"
    assert not any(4 in pair or 7 in pair for pair in pairs), "other memory, and sizes, which do not change"


@pytest.mark.parametrize("seed", range(12))
def test_r3_17_the_order_holds_every_pair_that_touches_the_same_memory(seed):
    """What `order` leaves out follows from the pairs that it gives."""
    rng = random.Random(seed)
    g = Graph(2)
    values = list(g.block.args)
    for _ in range(25):
        name = rng.choice(["neg", "flip", "add_", "exp_", "copy", "warn"])
        if name == "warn":
            g("warn", message="w", results=0)
        else:
            operands = rng.choices(values, k=2 if name == "add_" else 1)
            values.append(g(name, *operands))
    aliases = g.aliases()

    def keeps(earlier: Instr, later: Instr) -> bool:
        one, two = aliases.effects(earlier), aliases.effects(later)
        return bool(one.writes & (two.reads | two.writes) or two.writes & one.reads or (one.ordered and two.ordered))

    instrs, pairs = g.block.instrs, sorted(aliases.order(g.block), reverse=True)
    assert all(keeps(instrs[a], instrs[b]) for a, b in pairs)
    behind = [0] * len(instrs)  # per instruction those that stay behind it, as bits
    for a, b in pairs:
        behind[a] |= behind[b] | 1 << b
    for b, later in enumerate(instrs):
        assert all(behind[a] >> b & 1 for a in range(b) if keeps(instrs[a], later))


def test_control_flow_hands_memory_on():
    g = Graph(2)
    x, p = g.block.args
    y = g("neg", x)
    then, other = Block(), Block()
    made = g.inside(then)("exp", x)
    then.outputs, other.outputs = (made,), (y,)
    r = g("scf.if", p, blocks=(then, other), results=1)
    g("add_", r, x)
    found = g.aliases()
    assert found.of(r) == {made, y} and found.writers(y) == [g.block.instrs[-1]]
    # Which of the two is written is not known: neither is a variable.
    assert g.accesses().writable == frozenset()


def test_loops_carry_accesses_where_every_round_agrees():
    for carried in (True, False):
        g = Graph()
        (x,) = g.block.args
        y = g("neg", x)
        bounds = [g.number(k) for k in (0, 3, 1)]
        body = Block((g.program.new_value(ScalarType(I64)), g.program.new_value(TENSOR)))
        inner = g.inside(body)
        inner("add_", body.args[1], x)
        body.outputs = (body.args[1] if carried else inner("exp", body.args[1]),)
        r = g("scf.for", *bounds, y, blocks=(body,), results=1)
        found = g.accesses()
        assert (found.of.get(r) == (y, ())) is carried
        assert (y in found.writable) is carried


def test_reshapes_of_unknown_layout_are_conflicts():
    """A reshape is a view or a copy: who sees a write must not hang on it."""
    for source, rank, wanted in (("neg", 2, 1), ("neg", 1, 0), ("copy", 2, 0)):
        g = Graph()
        y = g(source, g.block.args[0])
        g.program.types[y] = TensorType(F64, (None,) * rank)
        r = g("reshape", y, shape=(-1,))
        g("exp_", y)
        g.block.outputs = (r,)
        assert len(g.accesses().conflicts) == wanted
        assert bool(g.accesses().writable) is not bool(wanted)


def test_writes_before_a_reshape_are_no_conflict():
    g = Graph()
    y = g("neg", g.block.args[0])
    g.program.types[y] = TensorType(F64, (None, None))
    g("exp_", y)
    g.block.outputs = (g("reshape", y, shape=(-1,)),)
    assert not g.accesses().conflicts
    assert functionalize(g.program) == (1, [])
    assert [i.op.name for i in g.block.instrs] == ["neg", "exp", "conform", "reshape"]


SUITES = all_suites()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", list(dict.fromkeys(n for n, _ in SUITES)))
def test_declared_aliases_are_what_evaluation_does(name):
    """A result that shares memory with an operand on tier 0 is declared to (`Op.aliases`)."""
    for dtype in [d for n, d in SUITES if n == name]:
        for case in cases_of(name, dtype):
            if isinstance(case.reference, Exception):
                continue
            with silent():
                found = case.op.evaluate(case.attrs, *case.args)
            results = found if isinstance(found, (tuple, list)) else (found,)
            for r, out in enumerate(results):
                for k, arg in enumerate(case.args):
                    if all(isinstance(a, np.ndarray) for a in (out, arg)) and np.shares_memory(out, arg):
                        assert k in case.op.shared_operands(r, len(case.args)), str(case)


def test_ops_that_write_are_impure_and_return_what_they_write():
    writing = [op for op in OPS.values() if op.writes]
    assert len(writing) > 40
    assert all(not op.pure and op.shared_operands(0, 2) == op.writes == (0,) for op in writing)
