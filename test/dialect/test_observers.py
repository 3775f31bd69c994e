"""Where observers go (R1.16, R1.17), and that programs and IR agree on it (R1.22)."""

import pytest
from profuse.dialect.errors import Loc
from profuse.dialect.ir.dtypes import F32
from profuse.dialect.ir.op import OPS, Op, op_named, operand, result
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.types import BOOL_SCALAR, INT_SCALAR, TENSOR, TensorType
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops.control_flow.control import For, If, While
from profuse.dialect.ops.speculation import FallbackGraph, Profile, ProfileCounter, ProfileValue, TypeCheck
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.profiling.observers import (
    instrument,
    register_profiled_ops,
    wants_profiled_inputs,
    wants_profiled_outputs,
)

MUL, ADD, TANH = (op_named(n) for n in ("mul", "add", "tanh"))


def straight():
    """x*x + y*n, with a preset type."""
    p = Program("main")
    x, y, n = p.new_value(TensorType(F32, (4,))), p.new_value(), p.new_value(INT_SCALAR)
    a, b, c = p.new_value(TensorType(F32, (4,))), p.new_value(), p.new_value()
    p.body = Block(
        (x, y, n),
        [
            Instr(MUL, (x, x), (a,), loc=Loc("model.py", 1, 2)),
            Instr(MUL, (y, n), (b,), loc=Loc("model.py", 2, 2)),
            Instr(ADD, (a, b), (c,)),
        ],
        (c, n, c),
    )
    return Module(p)


def control_flow():
    """An if inside a for inside the top block, and a while."""
    p = Program("main")
    x, c, n = p.new_value(), p.new_value(BOOL_SCALAR), p.new_value(INT_SCALAR)
    t, i, a, e, s, r = (p.new_value() for _ in range(6))
    p.types[i] = INT_SCALAR
    branch = Instr(If, (c,), (s,), blocks=(Block((), [Instr(TANH, (a,), (e,))], (e,)), Block((), [], (x,))))
    loop = Instr(For, (n, n, n, t), (r,), blocks=(Block((i, a), [branch], (s,)),))
    before, body, w = (p.new_value() for _ in range(3))
    again = Instr(While, (r,), (w,), blocks=(Block((before,), [], (c, before)), Block((body,), [], (body,))))
    p.body = Block((x, c, n), [Instr(TANH, (x,), (t,)), loop, again], (w,))
    return Module(p)


def opaque():
    """An op that wants no observers."""
    p = Program("main")
    x, y = p.new_value(), p.new_value()
    body = Program("body")
    z = body.new_value()
    body.body = Block((z,), [], (z,))
    p.body = Block((x,), [Instr(FallbackGraph, (x,), (y,), {"callee": "body"})], (y,))
    return Module(p, {"body": body})


GRAPHS = [straight, control_flow, opaque]


def observers(module):
    return [i for i in module.main.body.walk() if i.op is Profile]


def test_r1_17_which_ops():
    assert wants_profiled_inputs(MUL)
    assert wants_profiled_outputs(MUL)
    assert wants_profiled_inputs(op_named("size"))
    for name in ("host_call", "custom_result", "item"):  # never fused, but differentiable
        assert wants_profiled_inputs(op_named(name)) and wants_profiled_outputs(op_named(name))
    assert not wants_profiled_outputs(op_named("size"))
    for op in (If, FallbackGraph, TypeCheck, ProfileValue):
        assert not wants_profiled_inputs(op)
        assert not wants_profiled_outputs(op)
    assert not wants_profiled_outputs(None)
    for name in ("autograd_add", "autograd_zero"):
        assert wants_profiled_inputs(op_named(name))
        assert wants_profiled_outputs(op_named(name))
    for name in ("any_nonzero", "all_nonzero", "all_zero"):
        assert wants_profiled_inputs(op_named(name))
        assert not wants_profiled_outputs(op_named(name))


def test_r1_17_one_observer_per_value_and_user():
    done = instrument(straight())
    assert [i.operands for i in observers(done)] == [(0,), (1,), (3,), (4,), (5,)]
    first = done.main.body.instrs[1]
    assert first.op is MUL
    assert first.operands[0] == first.operands[1]


def test_r1_17_returned_scalars_are_not_observed_and_a_value_returned_twice_once():
    done = instrument(straight())
    one, n, again = done.main.outputs
    assert n == 2
    assert one == again


def test_r1_17_an_opaque_op_gets_observers_on_returns_only():
    done = instrument(opaque())
    assert [i.op for i in done.main.body.instrs] == [FallbackGraph, Profile, ProfileCounter]


def test_r1_17_an_op_claimed_by_a_predicate_is_observed_on_both_sides():
    """R1.17: until the registration is removed; the pass asks the same predicates."""
    registration = register_profiled_ops(lambda op: op is FallbackGraph)
    try:
        done = instrument(opaque())
        assert [i.op for i in done.main.body.instrs] == [Profile, FallbackGraph, Profile, ProfileCounter]
        test_the_pass_and_the_program_agree(opaque)
        assert wants_profiled_outputs(FallbackGraph)
    finally:
        registration.remove()
    assert len(observers(instrument(opaque()))) == 1


def test_r1_17_sites_are_numbered_in_walk_order():
    done = instrument(control_flow())
    sites = [i.attrs["site"] for i in observers(done)]
    assert sites == list(range(9))


def test_r1_16_types_are_erased_and_the_original_is_untouched():
    module = straight()
    before = module.to_mlir()
    done = instrument(module)
    assert "tensor<" in before
    assert module.to_mlir() == before
    assert "tensor<" not in done.to_mlir()
    assert done.main.type_of(2) == INT_SCALAR
    assert all(done.main.type_of(i.results[0]) == TENSOR for i in observers(done))


def test_r1_20_the_counter_is_the_last_op_of_the_top_block():
    for make in GRAPHS:
        counters = [i.op is ProfileCounter for i in instrument(make()).main.body.walk()]
        assert counters.count(True) == 1
        assert counters[-1]


def test_observers_have_the_location_of_their_user():
    assert [i.loc for i in observers(instrument(straight()))][:2] == [Loc("model.py", 1, 2), Loc("model.py", 2, 2)]


@pytest.mark.parametrize("make", GRAPHS)
def test_the_pass_and_the_program_agree(make):
    module = make()
    ir_module = parse_module(module.to_mlir(locations=False))
    run_pipeline(ir_module, "insert-profile")
    expected = parse_module(instrument(module).to_mlir(locations=False))
    assert str(ir_module) == str(expected)
    assert len(observers(decode_module(ir_module))) == len(observers(instrument(module)))


@pytest.mark.parametrize("make", GRAPHS)
def test_r1_22_removing_gives_back_the_unrefined_graph(make):
    module = make()
    ir_module = parse_module(module.to_mlir(locations=False))
    run_pipeline(ir_module, "insert-profile,remove-profiling")
    left = decode_module(ir_module).main
    ops = [i.op for i in left.body.walk()]
    assert ops == [i.op for i in module.main.body.walk()]
    assert all(t in (TENSOR, INT_SCALAR, BOOL_SCALAR) for t in left.types.values())


@pytest.fixture
def reader():
    """An op that has non-tensors observed, as ops on optional sizes will."""

    class Reader(Op, name="reader_of_optionals"):
        input = operand()
        sizes = operand(variadic=True, observed=True)
        last = operand(observed=True)
        output = result()

    yield Reader
    del OPS[Reader.full_name()]


def optionals(reader):
    """Values from the top block, a nested block's argument and a nested op, each read twice."""
    p = Program("main")
    x, n, m, c = (p.new_value(), *(p.new_value(INT_SCALAR) for _ in range(2)), p.new_value(BOOL_SCALAR))
    i, k, a, b, y, z, s, r, out = (p.new_value() for _ in range(9))
    for scalar in (i, k):
        p.types[scalar] = INT_SCALAR
    branch = Instr(
        If,
        (c,),
        (s,),
        blocks=(
            Block(
                (),
                [
                    Instr(op_named("constant"), (), (k,), {"value": 3}, loc=Loc("model.py", 4, 1)),
                    Instr(reader, (a, n, i, k), (b,)),
                ],
                (b,),
            ),
            Block((), [Instr(reader, (a, i), (y,))], (y,)),
        ),
    )
    loop = Instr(For, (n, n, m, x), (r,), blocks=(Block((i, a), [branch], (s,)),))
    again = Instr(reader, (r, m, n, n), (z,))
    p.body = Block((x, n, m, c), [loop, again, Instr(TANH, (z,), (out,))], (out,))
    return Module(p)


def test_r1_23_one_observer_right_after_each_definition(reader):
    """R1.23: every optional feeding such an op is observed where it is defined; others are not."""
    done = instrument(optionals(reader)).main
    found = [i for i in done.body.walk() if i.op is ProfileValue]
    assert [i.operands for i in found] == [(1,), (2,), (4,), (5,)]
    assert [i.op for i in done.body.instrs[:2]] == [ProfileValue, ProfileValue]
    loop = next(i for i in done.body.instrs if i.op is For)
    assert loop.operands[:3] == (1, 1, 2), "only the reading op sees the observer's result"
    assert loop.blocks[0].instrs[0].operands == (4,)
    then = next(i for i in loop.blocks[0].instrs if i.op is If).blocks[0].instrs
    assert [i.op for i in then[:2]] == [op_named("constant"), ProfileValue]
    assert then[1].loc == Loc("model.py", 4, 1)
    read = next(i for i in then if i.op is reader)
    assert read.operands[1:] == tuple(found[j].results[0] for j in (0, 2, 3))
    sites = [i.attrs["site"] for i in done.body.walk() if "site" in i.attrs]
    assert sorted(sites) == list(range(len(sites)))


def test_r1_23_the_pass_and_the_program_agree_on_optionals(reader):
    test_the_pass_and_the_program_agree(lambda: optionals(reader))


def test_r1_22_value_observers_go_too(reader):
    test_r1_22_removing_gives_back_the_unrefined_graph(lambda: optionals(reader))
