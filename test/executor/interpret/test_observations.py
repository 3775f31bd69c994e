"""What a record has observed, kept as JSON data and given to another record of the same graph."""

from __future__ import annotations

import json

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.ir.dtypes import F32
from profuse.dialect.ir.types import TensorType
from profuse.dialect.profiling.observers import instrument
from profuse.executor.interpret.evaluate import Evaluator
from profuse.executor.interpret.record import Observations, Record, RunRecord
from small_graphs import add_graph, loop_graph

VIEW = np.ones((4, 6), np.float32)[:, ::2]


def recorded(graph, *calls):
    record = Record(instrument(graph), len(calls))
    for inputs in calls:
        frame = RunRecord()
        Evaluator(record.module.main, record.module, frame)(inputs)
        record.finish(frame)
    assert record.ready
    return record


@pytest.mark.parametrize(
    ("graph", "calls"),
    [
        (add_graph, [[VIEW, np.ones(3)]]),
        (add_graph, [[np.ones((2, 3)), np.ones(3)], [np.ones((4, 3)), np.ones(3)]]),
        (add_graph, [[np.ones((3, 1), np.float32), np.ones((1, 0), np.int8)]]),
        (add_graph, [[np.float16(2), np.ones((), bool)]]),
        (loop_graph, [[np.ones((2, 3)), 2]]),
        (loop_graph, [[np.ones((2, 3)), 2], [np.ones((2, 3)), 1]]),
    ],
)
def test_a_restored_record_is_the_recorded_one(graph, calls):
    made = recorded(graph(), *calls)
    data = json.loads(json.dumps(made.observations().to_json()))
    other = Record(instrument(graph()), 7)
    other.restore(Observations.from_json(data))
    assert other.ready
    assert other.module.to_mlir() == made.module.to_mlir()
    assert other.values == made.values
    assert other.observations() == made.observations()


def test_observations_of_another_graph_change_nothing():
    record = Record(instrument(add_graph()), 1)
    before = record.module.to_mlir()
    with pytest.raises(pf.IRError, match="no profile"):
        record.restore(Observations({0: TensorType(F32, (2,)), 9: TensorType(F32, (2,))}, {}))
    assert not record.ready
    assert record.module.to_mlir() == before


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"types": [], "values": None},
        {"types": [[0, "i64"]], "values": []},
        {"types": [[-1, "tensor<2xf32>"]], "values": []},
        {"types": [], "values": [[0, ["array", "f32", [0], ""], False, 0, 1]]},
        {"types": [], "values": [[0, None, False, 0, -1]]},
    ],
)
def test_other_data_are_refused(data):
    with pytest.raises((LookupError, TypeError, ValueError)):
        Observations.from_json(data)
