"""Optimised IR computes what the graph computes, whether guards pass or fail (R1.36 to R1.41)."""

import random

import numpy as np
import pytest
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.types import BOOL_SCALAR, FLOAT_SCALAR, merge_types, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops.control_flow.control import If
from profuse.dialect.ops.speculation import Profile, Subgraph
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.profiling.observers import instrument

TAIL = "convert-fallbacks,insert-casts,canonicalize-profuse,fold,cse-profuse,dce"
PIPELINES = {
    "static": f"specialize,form-fusions,insert-guards,{TAIL}",
    "dynamic": f"specialize,form-fusions{{dynamic=true}},insert-guards{{dynamic=true}},{TAIL}",
    "narrow": f"specialize,form-fusions{{max-values=4}},insert-guards,{TAIL}",
}
UNARY = [op_named(n) for n in ("tanh", "neg", "abs", "transpose", "exp")]
BINARY = [op_named(n) for n in ("add", "mul", "maximum")]


def run(module, args, trace):
    """A few lines of interpreter; ``trace`` sees every instruction with its operand values."""

    def block(block, values, given):
        values.update(zip(block.args, given, strict=True))
        for instr in block.instrs:
            ins = [values[v] for v in instr.operands]
            trace(instr, ins)
            if instr.op is If:
                outs = block_of(instr.blocks[0 if ins[0] else 1], values)
            elif issubclass(instr.op, Subgraph):
                outs = block_of(module.functions[instr.attrs["callee"]].body, {}, ins)
            else:
                outs = instr.op.evaluate(instr.op.full_attrs(instr.attrs), *ins)
                outs = (outs,) if len(instr.results) == 1 else outs
            values.update(zip(instr.results, outs, strict=True))
        return tuple(values[v] for v in block.outputs)

    def block_of(body, values, given=()):
        return block(body, values, given)

    return block(module.main.body, {}, args)


def random_graph(rng):
    """Square tensors, an f64 number, an i1; nested ifs."""
    p = Program("main")
    x, y = p.new_value(), p.new_value()
    s, c = p.new_value(FLOAT_SCALAR), p.new_value(BOOL_SCALAR)

    def fill(block, visible, depth):
        visible = list(visible)
        for _ in range(rng.randint(2, 7)):
            result = p.new_value()
            kind = rng.random()
            if kind < 0.15 and depth:
                arms = []
                for _ in range(2):
                    arm = Block()
                    inner = fill(arm, visible, depth - 1)
                    arm.outputs = (rng.choice(inner),)
                    arms.append(arm)
                block.instrs.append(Instr(If, (c,), (result,), blocks=tuple(arms)))
            elif kind < 0.5:
                op = rng.choice(UNARY)
                block.instrs.append(Instr(op, (rng.choice(visible),), (result,)))
            else:
                ins = (rng.choice(visible), rng.choice([*visible, s]))
                block.instrs.append(Instr(rng.choice(BINARY), ins, (result,)))
            visible.append(result)
        return visible

    p.body = Block((x, y, s, c))
    made = fill(p.body, [x, y], 2)
    p.body.outputs = tuple(rng.sample(made, 2))
    return Module(p)


def optimised(module, args, pipeline):
    """The module after one profiled run and the pipeline."""
    profiled = instrument(module)

    def record(instr, ins):
        if instr.op is Profile:
            old, new = instr.attrs.get("profiled_type"), type_of(ins[0])
            instr.attrs["profiled_type"] = new if old is None else merge_types(old, new)

    with np.errstate(all="ignore"):
        run(profiled, args, record)
    ir_module = parse_module(profiled.to_mlir())
    run_pipeline(ir_module, pipeline, verify_each=True)
    return decode_module(ir_module)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pipeline", PIPELINES)
def test_optimised_graphs_compute_the_same(pipeline, seed):
    rng = random.Random(seed)
    module = random_graph(rng)

    def inputs(size, dtype, c):
        make = np.random.default_rng(seed)
        x, y = (make.standard_normal((size, size)).astype(dtype) for _ in range(2))
        return [x, y.T if seed % 2 else y, 0.5, c]

    fast = optimised(module, inputs(3, np.float32, True), PIPELINES[pipeline])
    for args in (
        inputs(3, np.float32, True),
        inputs(3, np.float32, False),
        inputs(4, np.float32, True),
        inputs(3, np.float64, False),
        inputs(1, np.float32, True),
    ):
        with np.errstate(all="ignore"):
            expected = run(module, args, lambda *_: None)
            got = run(fast, args, lambda *_: None)
        for a, b in zip(got, expected, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6)
