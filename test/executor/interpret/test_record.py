"""The profiling record (R1.16 - R1.23): what is seen, how it merges, when it is ready."""

from __future__ import annotations

import itertools
import math
import threading

import numpy as np
import profuse as pf
import pytest
from internals import executors, last_executor, types_seen
from profuse.dialect.ir.dtypes import F32, F64
from profuse.dialect.ir.op import OPS, Op, op_named, operand, result
from profuse.dialect.ir.program import Block, Instr, Module, Program
from profuse.dialect.ir.symbolic import Sym
from profuse.dialect.ir.types import BOOL_SCALAR, INT_SCALAR, TensorType
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.profiling.observers import instrument
from profuse.executor.interpret.evaluate import Evaluator
from profuse.executor.interpret.record import UNDEFINED, Record, RunRecord, SeenValue, merge_frame
from profuse.executor.tiers.profiling import Executor, Options
from small_graphs import add_graph, loop_graph


def run_once(record: Record, inputs: list) -> bool:
    frame = RunRecord()
    Evaluator(record.module.main, record.module, frame)(inputs)
    return record.finish(frame)


def record_runs(module: Module, *calls: list, runs: int | None = None) -> Record:
    record = Record(instrument(module), len(calls) if runs is None else runs)
    for inputs in calls:
        run_once(record, inputs)
    return record


def profiled(record: Record) -> list[TensorType | None]:
    return [i.attrs.get("profiled_type") for i in record.module.main.body.walk() if i.op.name == "profile"]


# --- what is recorded --------------------------------------------------------------------------


def test_preset_types_are_absent_from_the_instrumented_graph(tmp_path):
    """R1.16"""
    path = tmp_path / "preset.mlir"
    path.write_text(
        "func.func @preset(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
        '  %y = "profuse.exp"(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>\n'
        "  return %y : tensor<4x8xf32>\n}\n"
    )
    f = pf.load(str(path))
    f(np.ones((2, 3), np.float32))
    assert "tensor<4x8xf32>" in f.ir("graph")
    assert "4x8" not in f.ir("profiled")
    assert "profiled_type = tensor<2x3xf32" in f.ir("profiled")


def test_mul_has_two_operands_observed():
    """R1.17: and a second time on return."""
    f = pf.jit(lambda x, y: x * y)
    f(np.ones(3), np.ones(3))
    text = f.ir("profiled")
    assert text.count('"profuse.profile"') == 3
    assert text.index('"profuse.profile"') < text.index('"profuse.mul"')


def test_one_run_records_dtype_sizes_strides_device():
    """R1.18"""
    x = np.ones((4, 6), np.float32)[:, ::2]
    record = record_runs(add_graph(), [x, np.ones(3)])
    assert record.ready
    first, second, result = profiled(record)
    assert first == TensorType(F32, (4, 3), (6, 2), "cpu", False, True)
    assert second == TensorType(F64, (3,), "contiguous", "cpu", False, True)
    assert result == TensorType(F64, (4, 3), "contiguous", "cpu", False, True)


def test_undefined_tensors_replace_what_was_seen():
    """R1.18: None is the undefined tensor; anything else that is no tensor is ignored."""
    frame = RunRecord()
    frame.observe_type(0, np.ones(3))
    frame.observe_type(0, None)
    assert frame.types == {0: UNDEFINED}
    frame.observe_type(1, 2.5)
    frame.observe_type(1, [np.ones(3)])
    assert frame.types == {0: UNDEFINED}
    frame.observe_type(0, np.ones(3))
    assert frame.types[0].defined is None


def test_observers_are_identities():
    """R1.18: the very object goes through, None included."""
    main = Program("main")
    x, y = main.new_value(), main.new_value()
    main.body = Block((x,), [Instr(op_named("profile"), (x,), (y,), {"site": 0})], (y,))
    for value in (np.ones(3), None, 2.5):
        frame = RunRecord()
        assert Evaluator(main, None, frame)([value])[0] is value


def test_hits_in_one_frame_merge():
    """R1.18, R1.19: a value of growing size inside a loop loses that size."""
    record = record_runs(loop_graph(), [np.ones((3, 2)), 3])
    inside = profiled(record)[0]
    assert inside is not None
    assert inside.dtype is F64
    assert inside.shape == (None, 2)


def test_two_trips_of_a_traced_loop_leave_the_changing_size_unknown():
    """R1.18: sizes 3 and 4 in one run; the carried value is met as 3 and 4 rows of 2."""
    f = pf.jit(lambda x: pf.fori_loop(0, 2, lambda k, y: np.concatenate([y, y[:1]]), x))
    f(np.ones((3, 2), np.float32))
    assert "profiled_type = tensor<?x2xf32" in f.ir("profiled")
    for _ in range(3):
        assert f(np.ones((3, 2), np.float32)).shape == (5, 2)
    assert f.state().counters["compile_failures"] == 0


def test_an_observer_in_a_branch_not_taken_keeps_the_bare_type():
    """R1.20: the other branch is recorded; this one's values stay unspecialised."""
    f = pf.jit(lambda x: pf.cond(x.sum() > 0, lambda y: np.exp(y) * 2, lambda y: np.tanh(y) - 1, x))
    f(np.ones((3, 4), np.float32))
    lines = f.ir("profiled").splitlines()
    tanh = next(k for k, line in enumerate(lines) if "profuse.tanh" in line)
    exp = next(k for k, line in enumerate(lines) if "profuse.exp" in line)
    assert "profiled_type" not in lines[tanh - 1]
    assert "profuse.profile" in lines[tanh - 1]
    assert "profiled_type = tensor<3x4xf32" in lines[exp - 1]


# --- several runs ------------------------------------------------------------------------------


def merged_frames(*frames: dict[int, TensorType]) -> dict[int, TensorType]:
    merged: dict[int, TensorType] = {}
    names = (f"p{k}" for k in itertools.count())
    for frame in frames:
        merge_frame(merged, frame, names)
    return merged


def test_runs_share_symbols():
    """R1.21: x (2,3) then (5,3), y (2) then (5): one symbol for both leading sizes."""
    frames = [
        {0: TensorType(F32, (2, 3)), 1: TensorType(F32, (2,)), 2: TensorType(F32, (7,))},
        {0: TensorType(F32, (5, 3)), 1: TensorType(F32, (5,)), 2: TensorType(F32, (7, 1))},
    ]
    merged = merged_frames(*frames)
    assert merged[0].shape is not None
    assert merged[1].shape is not None
    assert isinstance(merged[0].shape[0], Sym)
    assert merged[0].shape[0] == merged[1].shape[0]
    assert merged[0].shape[1] == 3
    assert merged[2].shape is None


def test_pairs_of_sizes_that_differ_get_symbols_of_their_own():
    """R1.21: (2 -> 5) and (2 -> 6) are two symbols, and an unknown size is a fresh one each."""
    unknown = TensorType(F32, (None, None))
    frames = [{0: TensorType(F32, (2, 2)), 1: unknown}, {0: TensorType(F32, (5, 6)), 1: unknown}]
    merged = merged_frames(*frames)
    sizes = [*(merged[0].shape or ()), *(merged[1].shape or ())]
    assert all(isinstance(s, Sym) for s in sizes)
    assert len(set(map(str, sizes))) == 4


def test_the_rest_of_the_type_stays_the_first_runs():
    """R1.21: with equal ranks; strides of sizes that changed are dropped."""
    first = TensorType(F32, (4, 3), (6, 2), "cpu", False, True)
    second = TensorType(F64, (4, 3), "contiguous", "cpu", True, True)
    assert merged_frames({0: first}, {0: second})[0] == first
    grown = merged_frames({0: first}, {0: TensorType(F64, (5, 3), (6, 2))})[0]
    assert (grown.dtype, grown.strides, grown.device) == (F32, None, "cpu")


def test_a_value_met_in_one_run_only_keeps_that_runs_type():
    """R1.21"""
    one, two = TensorType(F32, (2,)), TensorType(F32, (3,))
    assert merged_frames({0: one}, {1: two}) == {0: one, 1: two}


def test_two_profiled_runs_through_the_executor():
    """R1.21, R1.12: the symbol reaches the IR, and what is compiled serves both sizes."""
    f = pf.jit(lambda x, y: np.exp(x) * y[:, None], profiled_runs=2)
    calls = [(np.ones((n, 3), np.float32), np.ones(n, np.float32)) for n in (2, 5, 2, 5)]
    for args in calls[:2]:
        f(*args)
    assert 'dims = ["p0", "3"]' in f.ir("profiled")
    assert 'dims = ["p0"]' in f.ir("profiled")
    for args in calls[2:]:
        np.testing.assert_allclose(f(*args), np.exp(args[0]), rtol=1e-6)
    counters = f.state().counters
    assert (counters["compiles"], counters["guard_misses"]) == (1, 0)


# --- readiness ---------------------------------------------------------------------------------


def test_not_ready_without_a_hit():
    """R1.20: if no observer recorded anything, the last decrement does not happen."""
    record = Record(instrument(add_graph()), 1)
    assert not record.finish(RunRecord())
    assert not record.ready
    assert run_once(record, [np.ones(2), np.ones(2)])
    assert record.ready


def test_ready_after_all_runs():
    """R1.20: the types are written by the run that makes it ready, and by no later one."""
    record = record_runs(add_graph(), [np.ones(2), np.ones(2)], runs=2)
    assert not record.ready
    assert profiled(record) == [None] * 3
    assert run_once(record, [np.ones(3), np.ones(3)])
    assert record.ready
    written = profiled(record)
    assert None not in written
    assert not run_once(record, [np.ones((4, 4)), np.ones(4)])
    assert profiled(record) == written


def test_a_run_that_raises_does_not_count():
    """R1.20: only finished runs do; what a broken one has seen is dropped."""
    f = pf.jit(lambda x, y: np.exp(x) + y)
    with pytest.raises(pf.ShapeError):
        f(np.ones((2, 3), np.float32), np.ones(4, np.float32))
    assert f.state().counters["profiled_runs"] == 0
    f(np.ones((5, 3), np.float32), np.ones(3, np.float32))
    assert f.state().counters["profiled_runs"] == 1
    assert "tensor<5x3xf32" in f.ir("profiled")
    assert "p0" not in f.ir("profiled")


def test_runs_of_racing_threads_are_counted_once_each():
    """R1.20"""
    record = Record(instrument(add_graph()), 40)
    made_ready = []

    def work():
        made_ready.extend(run_once(record, [np.ones(2), np.ones(2)]) for _ in range(10))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert record.ready
    assert made_ready.count(True) == 1


# --- memory ------------------------------------------------------------------------------------


def test_a_long_loop_holds_one_entry_per_observer():
    """R1.18: 20 000 trips of a loop are one frame."""
    record = Record(instrument(loop_graph()), 2)
    frame = RunRecord()
    run = Evaluator(record.module.main, record.module, frame)
    run([np.ones((0, 2)), 20_000])
    observers = len(profiled(record))
    assert len(frame.types) == observers
    record.finish(frame)
    assert record.held == observers


def test_many_runs_hold_one_entry_per_observer_and_none_when_ready():
    """R1.20, R1.21: of 200 runs of different sizes one merged frame is kept."""
    record = Record(instrument(add_graph()), 200)
    for n in range(2, 201):
        run_once(record, [np.ones((n, n)), np.ones(n)])
        assert record.held == 3
    assert run_once(record, [np.ones((300, 300)), np.ones(300)])
    assert record.held == 0


def test_the_executor_remembers_boundedly_many_argument_types():
    f = pf.jit(lambda x: np.exp(x) + 1, profiled_runs=60)
    for n in range(2, 62):
        f(np.ones(n, np.float32))
    assert types_seen(last_executor(f)) <= 16
    assert f(np.ones(99, np.float32)).shape == (99,)
    assert f.state().tier == "optimized"


def test_value_observers_hold_no_reference_to_what_they_saw():
    """R1.23"""
    seen = SeenValue.of([np.ones(1000)])
    assert (seen.value, seen.varied, seen.present) == (None, True, 1)


# --- values (R1.23) ----------------------------------------------------------------------------


@pytest.fixture
def optional_graph():
    """A graph of one op that has its second operand observed, as ops on optional sizes will."""

    class Reader(Op, name="reader_of_an_optional"):
        input = operand()
        sizes = operand(observed=True)
        output = result()

        @classmethod
        def evaluate(cls, attrs, *args):
            return args[0]

    main = Program("main")
    x, n, out = main.new_value(), main.new_value(INT_SCALAR), main.new_value()
    main.body = Block((x, n), [Instr(Reader, (x, n), (out,))], (out,))
    yield Module(main)
    del OPS[Reader.full_name()]


def value_observer(record: Record) -> dict:
    (found,) = (i for i in record.module.main.body.walk() if i.op.name == "profile_value")
    return {k: v for k, v in found.attrs.items() if k != "site"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([None, None, None], {"none": 3, "present": 0}),
        ([7, None, 7], {"none": 1, "present": 2}),
        ([7, 7], {"none": 0, "present": 2, "seen": 7}),
        ([7, 8], {"none": 0, "present": 2}),
        ([1, True], {"none": 0, "present": 2}),
        ([0.0, -0.0], {"none": 0, "present": 2}),
        ([7, 8, 7], {"none": 0, "present": 3}),
        ([(2, 3), (2, 3)], {"none": 0, "present": 2}),
        ([np.ones(3), np.ones(3)], {"none": 0, "present": 2}),
        ([2**70, 2**70], {"none": 0, "present": 2}),
    ],
)
def test_counts_match_the_runs(optional_graph, values, expected):
    """R1.23: None and present are counted; a number is noted only if every hit gave it."""
    record = record_runs(optional_graph, *([np.ones(2), value] for value in values))
    assert record.ready
    assert value_observer(record) == expected


def test_nan_is_the_same_number(optional_graph):
    """R1.23"""
    record = record_runs(optional_graph, *([np.ones(2), float("nan")] for _ in range(2)))
    assert math.isnan(value_observer(record)["seen"])


def test_counts_reach_the_ir_and_make_no_constant(optional_graph):
    """R1.23, R1.22: nothing guards the value, so nothing may be made of it yet."""
    record = record_runs(optional_graph, [np.ones(2), 7], [np.ones(2), 7])
    module = parse_module(record.module.to_mlir())
    assert "present = 2 : i64, seen = 7 : i64" in str(module)
    run_pipeline(module, "specialize", verify_each=True)
    assert "profile" not in str(module)
    assert "constant" not in str(module)


def test_gradient_ops_are_observed_and_still_run():
    """R1.17: an undefined gradient passes its observers, and what follows is as before."""
    program = Program("main")
    x, zero, total, some, out = (program.new_value() for _ in range(5))
    program.types[some] = BOOL_SCALAR
    there = Block((), [Instr(op_named("exp"), (total,), (e := program.new_value(),))], (e,))
    program.body = Block(
        (x,),
        [
            Instr(op_named("autograd_zero"), (), (zero,)),
            Instr(op_named("autograd_add"), (zero, x), (total,)),
            Instr(op_named("any_nonzero"), (zero, total), (some,)),
            Instr(op_named("scf.if"), (some,), (out,), {}, (there, Block((), [], (zero,)))),
        ],
        (out,),
    )
    executor = Executor(Module(program), Options())
    value = np.ones((2, 3), np.float32)
    for _ in range(3):
        np.testing.assert_allclose(executor.run([value])[0], np.exp(value), rtol=1e-6)
        if executor.counters.profiled_runs == 1 and executor.optimized is None:
            seen = executor.record.observations().types
    defined = [seen[site].defined for site in sorted(seen)]
    assert defined[:4] == [False, True, False, True], "of the sum, then of the test"
    assert executor.optimized.kind == "optimized"
    assert '"profuse.autograd_add"' not in executor.result.ir
    assert executor.counters.kernel_launches == 2


def test_r1_19_a_layout_that_varies_in_a_loop_keeps_what_stays():
    """R1.19: contiguous first, with gaps between rows later: the last axis is dense throughout."""

    def body(v):
        return np.concatenate([v * 0.5, v], axis=1)[:, :8]

    f = pf.jit(lambda x: pf.while_loop(lambda v: v.max() > 0.2, body, x))
    x = np.linspace(-1, 1, 32, dtype=np.float32).reshape(4, 8)
    for _ in range(3):
        np.testing.assert_allclose(f(x), x / 8, rtol=1e-6)
    expected = {g.types[0].strides for g in executors(f)[0].optimized.guards}
    assert expected == {(None, 1)}
    assert f.state().counters["guard_misses"] == 0
