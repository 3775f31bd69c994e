"""The clean-up passes change neither values nor what a caller sees of shared memory."""

import numpy as np
import pytest
from every_case import fewer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profuse.dialect.errors import ProfuseError
from profuse.dialect.ir.op import op_named
from profuse.dialect.ir.program import Instr, Module, Program
from profuse.dialect.ir.types import TensorType, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops import seldom  # noqa: F401
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.executor.interpret.evaluate import Evaluator

CLEAN = "canonicalize-profuse,fold,cse-profuse,canonicalize-profuse,dce"
X = np.array([[0.0, -0.0, np.nan], [np.inf, -1.5, 2.0]], np.float32)
N = np.array([[3, -7, 0], [127, -128, 5]], np.int8)
B = np.array([[True], [False]])
INPUTS = [X, N, B]
CONSTANTS = st.sampled_from([0, 1, 2, -1, 0.0, -0.0, 1.0, 0.5, True, np.array(2.0, np.float32), np.arange(3), X[0]])
NO_ATTRS = [
    "neg",
    "abs",
    "positive",
    "logical_not",
    "bitwise_not",
    "floor",
    "square",
    "conj",
    "real",
    "add",
    "sub",
    "mul",
    "div",
    "maximum",
    "lt",
    "bitwise_or",
    "shift_left",
    "pow",
    "size",
    "rank",
]
ATTRS = st.one_of(
    st.tuples(st.just("cast"), st.sampled_from(["f32", "f64", "i8"]).map(lambda d: {"dtype": d})),
    st.tuples(st.just("reshape"), st.sampled_from([(-1,), (2, 3), (3, 2)]).map(lambda s: {"shape": s})),
    st.tuples(st.just("transpose"), st.sampled_from([None, (1, 0), (0, 1)]).map(lambda p: {"perm": p})),
    st.tuples(st.just("expand_dims"), st.just({"axes": (0,)})),
    st.tuples(st.just("squeeze"), st.just({"axes": (0,)})),
    st.tuples(st.just("broadcast_to"), st.just({"shape": (2, 3)})),
    st.tuples(st.just("sum"), st.sampled_from([None, (0,)]).map(lambda a: {"axes": a})),
)


@st.composite
def graphs(draw: st.DrawFn) -> Module:
    """A graph that runs on INPUTS; types are known, or all forgotten."""
    program = Program("f")
    known = draw(st.booleans())
    values: dict[int, object] = {}
    for array in INPUTS:
        values[program.new_value(type_of(array).without_layout())] = array
    program.body.args = tuple(values)
    for _ in range(draw(st.integers(1, 10))):
        name, attrs = draw(
            st.one_of(
                ATTRS,
                st.sampled_from(NO_ATTRS).map(lambda n: (n, {})),
                CONSTANTS.map(lambda v: ("constant", {"value": v})),
            )
        )
        cls = op_named(name)
        if "dtype" in attrs:
            from profuse.dialect.ir.dtypes import dtype_named

            attrs = {"dtype": dtype_named(attrs["dtype"])}
        count = sum(not f.variadic for f in cls.operands)
        operands = tuple(draw(st.sampled_from(list(values))) for _ in range(count))
        full = cls.full_attrs(attrs)
        try:
            (type_,) = cls.infer([program.type_of(o) for o in operands], full)
            with np.errstate(all="ignore"):
                value = cls.evaluate(full, *(values[o] for o in operands))
        except (ProfuseError, TypeError, ValueError, ArithmeticError):
            continue
        if type(value) is int and abs(value) >= 2**63:
            continue
        result = program.new_value(type_)
        values[result] = value
        program.body.instrs.append(Instr(cls, operands, (result,), full))
    returned = st.lists(st.sampled_from(list(values)), min_size=1, max_size=3)
    program.body.outputs = tuple(draw(returned))
    if not known:
        for value, type_ in program.types.items():
            if isinstance(type_, TensorType):
                program.types[value] = TensorType()
    return Module(program)


def run(module: Module) -> list:
    return Evaluator(module.main, module)([a.copy() for a in INPUTS])


def cleaned(module: Module) -> Module:
    ir_module = parse_module(module.to_mlir(), verify=False)
    run_pipeline(ir_module, CLEAN, verify_each=True, repro_dir="")
    return decode_module(ir_module)


@given(graphs())
@settings(max_examples=fewer(300), deadline=None, suppress_health_check=list(HealthCheck))
def test_results_are_the_same_bits(module: Module):
    for one, two in zip(run(module), run(cleaned(module)), strict=True):
        assert isinstance(one, np.ndarray | np.generic) == isinstance(two, np.ndarray | np.generic)
        a, b = np.asarray(one), np.asarray(two)
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tobytes() == b.tobytes()


@given(graphs())
@settings(max_examples=fewer(300), deadline=None, suppress_health_check=list(HealthCheck))
def test_results_share_no_more_memory_than_before(module: Module):
    def sharing(graph: Module) -> set[tuple[int, int]]:
        inputs = [a.copy() for a in INPUTS]
        outputs = Evaluator(graph.main, graph)(inputs)
        arrays = [*outputs, *inputs]
        return {
            (i, j)
            for i, a in enumerate(outputs)
            for j, b in enumerate(arrays)
            if i != j and isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and np.shares_memory(a, b)
        }

    assert sharing(cleaned(module)) <= sharing(module)


@pytest.mark.parametrize("name", ["canonicalize-profuse", "fold", "cse-profuse", "dce"])
def test_a_clean_module_is_left_as_it_is(name):
    text = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""
    module = parse_module(text)
    before = str(module)
    run_pipeline(module, name)
    assert str(module) == before
