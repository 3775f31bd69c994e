"""Graphs cut into device groups compute what they computed, whatever sizes they are given (R3.14 to R3.33)."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import profuse.dialect.ops.seldom  # noqa: F401  (fills OPS)
import pytest
from profuse.dialect.ir.dtypes import F32, I64
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.types import BOOL_SCALAR, INTS, ScalarType, TensorType
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops.control_flow.control import If
from profuse.dialect.ops.speculation import CudaGroup, Subgraph
from profuse.dialect.pipeline.execution import run_pipeline

SHAPES = [(4, 8), (8,), (4, 1), (1, 8)]
OPTIONS = ["", "{single=true}", "{horizontal=false}", "{max-values=8}", "{leading-chunks=true concat=true}"]


def run(module: Module, args: list[Any]) -> list[Any]:
    def block(body: Block, env: dict[int, Any], args: list[Any]) -> list[Any]:
        env.update(zip(body.args, args, strict=True))
        for instr in body.instrs:
            ins = [env[v] for v in instr.operands]
            if instr.op is If:
                outs = block(instr.blocks[0 if ins[0] else 1], env, [])
            elif issubclass(instr.op, Subgraph):
                outs = block(module.functions[instr.attrs["callee"]].body, {}, ins)
            else:
                out = instr.op.evaluate(instr.op.full_attrs(instr.attrs), *ins)
                outs = [out] if len(instr.results) == 1 else list(out)
            env.update(zip(instr.results, outs, strict=True))
        return [env[v] for v in body.outputs]

    return block(module.main.body, {}, args)


class Random:
    """A random program on (4, 8) arrays of two devices, and on what broadcasts to these."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.program = Program("f")
        self.devices = ["cuda:0", "cuda:1"] if seed % 4 == 0 else ["cuda:0"]
        self.inputs = [(shape, d) for d in self.devices for shape in SHAPES]
        self.full: dict[str, list[int]] = {d: [] for d in self.devices}
        self.narrow: dict[str, list[int]] = {d: [] for d in self.devices}
        self.own: dict[str, list[int]] = {d: [] for d in self.devices}
        self.numbers: list[int] = []
        args = []
        for shape, device in self.inputs:
            value = self.program.new_value(TensorType(F32, shape, "contiguous", device))
            (self.full if shape == (4, 8) else self.narrow)[device].append(value)
            args.append(value)
        self.flag = self.program.new_value(BOOL_SCALAR)
        self.block = self.program.body
        self.block.args = (*args, self.flag)
        self.fill(self.block, self.rng.randint(8, 30), 2)
        kept = [v for vs in self.full.values() for v in vs]
        self.block.outputs = (
            *self.rng.sample(kept, min(5, len(kept))),
            *self.rng.sample(self.numbers, min(2, len(self.numbers))),
        )

    def emit(self, name: str, operands: tuple[int, ...], type_: Any, count: int = 1, **attrs: Any) -> tuple[int, ...]:
        results = tuple(self.program.new_value(type_) for _ in range(count))
        self.block.instrs.append(Instr(op_named(name), operands, results, attrs))
        return results

    def fill(self, block: Block, count: int, depth: int) -> None:
        outer, self.block = self.block, block
        for _ in range(count):
            self.one(self.rng.choice(self.devices), depth)
        self.block = outer

    def one(self, device: str, depth: int) -> None:
        rng, full, own = self.rng, self.full[device], self.own[device]
        t = TensorType(F32, (4, 8), None, device)
        kind = rng.choice(
            ["unary", "binary", "binary", "chunk", "chunk", "write", "view", "query", "reduce", "join", "if"]
        )
        if kind == "unary":
            full += self.emit(rng.choice(["tanh", "neg", "abs", "relu"]), (rng.choice(full),), t)
        elif kind == "binary":
            x, y = rng.choice(full), rng.choice([*full, *self.narrow[device]])
            full += self.emit(rng.choice(["add", "sub", "mul", "maximum"]), rng.choice([(x, y), (y, x)]), t)
        elif kind == "chunk":
            p = rng.choice(full)
            for _ in range(rng.randint(0, 2)):
                y = rng.choice([*full, *self.narrow[device]])
                (p,) = self.emit(rng.choice(["add", "mul"]), (p, y), t)
            if rng.random() < 0.3:
                self.numbers += self.emit("sizes", (p,), INTS)
            axis, n = rng.choice([(1, 2), (-1, 4), (0, 2), (1, 3)])
            size = -(-(4, 8)[axis] // n)
            first = TensorType(F32, (4, size) if axis else (size, 8), None, device)
            rest = (4, 8)[axis] - size * (n - 1)
            last = TensorType(F32, (4, rest) if axis else (rest, 8), None, device)
            pieces = self.emit("chunk", (p,), first, n, axis=axis, chunks=n)
            self.program.types[pieces[-1]] = last
            if rng.random() < 0.7 and size == rest:
                (s,) = self.emit("add", pieces[:2], first)
                for piece in pieces[2:]:
                    (s,) = self.emit("mul", (s, piece), first)
                pieces = (s,) * n
            full += self.emit("concatenate", pieces, t, axis=axis)
        elif kind == "write" and own:
            self.emit(rng.choice(["add_", "mul_"]), (rng.choice(own), rng.choice([*full, *self.narrow[device]])), t)
        elif kind == "view":
            views = self.emit("flip", (rng.choice(full),), t)
            full += views
            if rng.random() < 0.3 and views[0] in own:
                own += views
        elif kind == "query":
            x = rng.choice(full)
            (n,) = self.emit("dim", (x,), ScalarType(I64), axis=rng.choice([0, 1]))
            if rng.random() < 0.5:
                (n,) = self.emit("mul", (n, n), ScalarType(I64))
            full += self.emit("div", (rng.choice(full), n), t)
            if rng.random() < 0.4:
                self.numbers.append(n)
        elif kind == "reduce":
            column = TensorType(F32, (4, 1), None, device)
            self.narrow[device] += self.emit("sum", (rng.choice(full),), column, axes=(1,), keepdims=True)
        elif kind == "join":
            (r,) = self.emit("concatenate", (rng.choice(full),), t, axis=0)
            full.append(r)
            own.append(r)
        elif kind == "if" and depth:
            arms = []
            for _ in range(2):
                arm = Block()
                before = [{d: list(vs) for d, vs in held.items()} for held in (self.full, self.narrow, self.own)]
                numbers = list(self.numbers)
                self.fill(arm, rng.randint(1, 6), depth - 1)
                self.block, outer = arm, self.block
                arm.outputs = self.emit("neg", (rng.choice(self.full[device]),), t)
                self.block = outer
                self.full, self.narrow, self.own = before
                self.numbers = numbers
                arms.append(arm)
            result = self.program.new_value(t)
            self.block.instrs.append(Instr(If, (self.flag,), (result,), blocks=tuple(arms)))
            self.full[device].append(result)
        if kind in ("unary", "binary") and rng.random() < 0.5:
            own.append(full[-1])

    def arrays(self, seed: int, sizes: tuple[int, int] = (4, 8), one: bool = False) -> list[np.ndarray]:
        make = np.random.default_rng(seed)
        named = {4: sizes[0], 8: sizes[1], 1: 1}
        shapes = [tuple(named[n] for n in shape) for shape, _ in self.inputs]
        if one:  # what broadcasts no longer does where it was recorded, and does elsewhere
            shapes = [shape if shape != (sizes[1],) else (1,) for shape in shapes]
        return [make.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("seed", range(60))
def test_r3_17_partitioned_graphs_compute_the_same(seed):
    graph = Random(seed)
    module = Module(graph.program)
    text = module.to_mlir()
    ir_module = parse_module(text)
    statistics = run_pipeline(ir_module, f"partition-device-groups{OPTIONS[seed % len(OPTIONS)]}", verify_each=True)
    cut = decode_module(ir_module)
    if seed % len(OPTIONS) == 0:
        assert statistics["partition-device-groups"].get("groups", 0) == len(
            {i.attrs["callee"] for i in cut.main.body.walk() if i.op is CudaGroup}
        )
    for k, (sizes, one, flag) in enumerate(
        [((4, 8), False, True), ((4, 8), False, False), ((6, 12), False, True), ((4, 8), True, False)]
    ):
        args = graph.arrays(seed + k, sizes, one)
        with np.errstate(all="ignore"):
            expected = run(module, [*(a.copy() for a in args), flag])
            results = run(cut, [*(a.copy() for a in args), flag])
        for a, b in zip(expected, results, strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_array_equal(a, b)


def test_random_graphs_have_what_they_are_for():
    """Groups, moved chunks, chunks that are lowered and results that are there for their sizes occur."""
    seen: dict[str, int] = {}
    for seed in range(60):
        ir_module = parse_module(Module(Random(seed).program).to_mlir())
        statistics = run_pipeline(ir_module, "partition-device-groups")["partition-device-groups"]
        for name, count in statistics.items():
            seen[name] = seen.get(name, 0) + count
    assert seen["groups"] > 100 and seen["chunks-moved"] > 10 and seen["chunks-lowered"] > 5
    assert seen["size-queries-replaced"] > 2
