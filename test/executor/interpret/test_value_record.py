"""Records of values that are given to attributes (R3.4, R3.5): one value, or it has failed, for good."""

from __future__ import annotations

import json

import numpy as np
import pytest
from profuse.dialect.ir.op import OPS, op_named
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.ops import seldom  # noqa: F401  (fills the table of ops)
from profuse.dialect.ops.late import Late
from profuse.dialect.ops.value_kinds import KINDS, LATE_KINDS, MAX_ITEMS, late_kind
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.profiling.observers import instrument
from profuse.executor.interpret.evaluate import Evaluator
from profuse.executor.interpret.record import Observations, Record, RunRecord

X = np.arange(24.0).reshape(2, 3, 4)


def graph(op: str, name: str, type_: str):
    """``op`` of ``x``, the attribute of which is the second argument."""
    return decode_module(
        parse_module(
            f"""
            func.func @main(%x: !profuse.tensor, %v: {type_}) -> !profuse.tensor {{
              %0 = "profuse.late"(%x, %v) {{op = "{op}", names = ["{name}"]}} :
                (!profuse.tensor, {type_}) -> !profuse.tensor
              return %0 : !profuse.tensor
            }}
            """,
            "t",
        )
    )


def recorded(module, *calls, values=True):
    record = Record(instrument(module, values=values), len(calls))
    for inputs in calls:
        frame = RunRecord()
        Evaluator(record.module.main, record.module, frame)(inputs)
        record.finish(frame)
    assert record.ready
    return record


def observers(record):
    return [i.attrs for i in record.module.main.body.walk() if i.op.name == "profile_value"]


def extracted(record) -> str:
    """The graph with conditional constants, as IR."""
    module = parse_module(record.module.to_mlir(), "t")
    run_pipeline(module, "extract-constants", verify_each=True)
    return str(module)


KINDS_SEEN = [
    ("sum", "axes", "!profuse.ints", "int_list", (0, 1), (1,)),
    ("sum", "axes", "i64", "int", -1, 1),
    ("sum", "keepdims", "i1", "bool", True, False),
    ("reshape", "shape", "!profuse.ints", "view_size", (6, -1), (24,)),
    ("sum_to_size", "sizes", "!profuse.ints", "reduction_size", (4,), (3, 4)),
    ("transpose", "perm", "!profuse.ints", "int_list", (2, 0, 1), (0, 1, 2)),
    ("expand_dims", "axes", "i64", "int", 0, 1),
    ("cast", "dtype", "i64", "int", 11, 12),
]


@pytest.mark.parametrize(("op", "name", "type_", "kind", "value", "other"), KINDS_SEEN)
def test_r3_5_one_value_is_kept_and_a_differing_hit_fails(op, name, type_, kind, value, other):
    module = graph(op, name, type_)
    (attrs,) = observers(recorded(module, [X, value], [X, value]))
    assert attrs["kind"] == kind and attrs[f"profiled_{kind}"] == value and not attrs.get("failed")
    assert type(attrs[f"profiled_{kind}"]) is type(value)
    for calls in ([value, other], [value, other, value], [other, value, value]):
        record = recorded(module, *([X, v] for v in calls))
        (attrs,) = observers(record)
        assert attrs["failed"] is True and not any(name.startswith("profiled_") for name in attrs)
        assert "profile_value" not in extracted(record)  # no constant: the op stays late
    assert f"value = {op_named('constant').attrs['value'].kind.text(value)}" in extracted(recorded(module, [X, value]))


def test_r3_5_hits_of_one_run_merge_as_well():
    text = """
    func.func @main(%x: !profuse.tensor, %n: i64) -> !profuse.tensor {
      %0 = "profuse.constant"() {value = 0 : i64} : () -> i64
      %1 = "profuse.constant"() {value = 1 : i64} : () -> i64
      %2 = scf.for %i = %0 to %n step %1 iter_args(%a = %x) -> (!profuse.tensor) : i64 {
        %3 = "profuse.late"(%a, %i) {op = "expand_dims", names = ["axes"]} : (!profuse.tensor, i64) -> !profuse.tensor
        scf.yield %3 : !profuse.tensor
      }
      return %2 : !profuse.tensor
    }
    """
    module = decode_module(parse_module(text, "t"))
    assert [a.get("failed", False) for a in observers(recorded(module, [X, 1]))] == [False]
    assert [a["failed"] for a in observers(recorded(module, [X, 2]))] == [True]


def test_none_is_an_empty_target_and_else_no_value():
    """R3.5: of the target of a sum None is stored as empty, and stands for None."""
    reduction = KINDS["reduction_size"]
    assert reduction.stored(None) == () and reduction.constant(()) is None and reduction.stored((4, 1)) == (4, 1)
    assert KINDS["int_list"].stored(None) is None and KINDS["view_size"].constant(()) == ()
    module = graph("sum", "axes", "!profuse.ints")
    assert observers(recorded(module, [X, None]))[0]["failed"] is True
    record = recorded(module, [X, None], [X, (0,)])
    assert observers(record)[0]["failed"] is True


@pytest.mark.parametrize("value", [(0,) * (MAX_ITEMS + 1), "x" * (MAX_ITEMS + 1)])
def test_records_hold_short_values_alone(value):
    frame = RunRecord()
    frame.observe_value(0, value)
    assert (frame.values[0].value, frame.values[0].varied) == (None, True)


@pytest.mark.parametrize("values", [((0,), (0,)), ((0,), (1,)), (None, None)])
def test_r3_5_what_has_failed_stays_so_after_reload(values):
    module = graph("sum", "axes", "!profuse.ints")
    record = recorded(module, *([X, v] for v in values))
    data = json.loads(json.dumps(record.observations().to_json()))
    restored = Record(instrument(module, values=True), 7)
    restored.restore(Observations.from_json(data))
    assert restored.module.to_mlir() == record.module.to_mlir()
    assert restored.values == record.values
    assert bool(observers(restored)[0].get("failed")) == (values[0] != values[1] or values[0] is None)


@pytest.mark.parametrize("bad", [["ints", [1.5]], ["ints", [0] * (MAX_ITEMS + 1)], ["str", 7], [0, 1]])
def test_observations_of_other_data_are_errors(bad):
    with pytest.raises((ValueError, TypeError, LookupError)):
        Observations.from_json({"types": [], "values": [[0, bad, False, 0, 1]]})


@pytest.mark.parametrize("values", [False, True])
def test_programs_and_ir_agree_on_observers(values):
    """R1.22, R3.5"""
    text = """
    !t = !profuse.tensor
    !i = !profuse.ints
    func.func @main(%x: !t, %s: !i, %k: i1, %n: i64) -> (!t, i1) {
      %0 = "profuse.constant"() {value = 0 : i64} : () -> i64
      %1 = "profuse.late"(%x, %s, %k) {op = "sum", names = ["axes", "keepdims"]} : (!t, !i, i1) -> !t
      %2 = "profuse.late"(%1, %s) {op = "reshape", names = ["shape"]} : (!t, !i) -> !t
      %3 = scf.if %k -> (!t) {
        %4 = "profuse.add"(%n, %0) : (i64, i64) -> i64
        %5 = "profuse.late"(%2, %4, %0) {op = "swapaxes", names = ["axis1", "axis2"]} : (!t, i64, i64) -> !t
        scf.yield %5 : !t
      } else {
        scf.yield %2 : !t
      }
      return %3, %k : !t, i1
    }
    """
    module = parse_module(text, "t")
    by_program = instrument(decode_module(module), values=values)
    run_pipeline(module, f"insert-profile{{values={str(values).lower()}}}", verify_each=True)
    copy = decode_module(parse_module(by_program.to_mlir(), "t"))
    assert copy.to_mlir(locations=False) == decode_module(module).to_mlir(locations=False)
    assert by_program.to_mlir().count("profile_value") == (4 if values else 0)


def test_only_attributes_are_speculated_on():
    """R3.5, A11: each op and attribute of the table is there, and takes values of its kinds; no seed is among them."""
    for op, names in LATE_KINDS.items():
        cls = op_named(op)
        for name, kinds in names.items():
            assert name in cls.attrs
            for kind in kinds:
                others = [n for n, a in cls.attrs.items() if not a.optional and n != name]
                types = [*([KINDS["int"].type] * sum(not f.variadic for f in cls.operands)), KINDS[kind].type]
                complaints = list(Late.verify(types, {"op": op, "names": (name,)}))
                assert all(f"needs attribute '{other}'" in said for other, said in zip(others, complaints, strict=True))
                assert late_kind(op, name, KINDS[kind].type) == kind
    fields = {field.name for cls in OPS.values() for field in cls.operands if field.observed}
    fields |= {name for names in LATE_KINDS.values() for name in names}
    assert fields.isdisjoint({"seed", "offset"})
    assert late_kind("cumsum", "axis", KINDS["int"].type) == ""
