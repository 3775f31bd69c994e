"""The conformance cases of ONNX: what has run must go on running, and nothing may be wrong; skipped without onnx."""

from __future__ import annotations

import json
import unittest

import numpy as np
import pytest
from every_case import EVERY_CASE
from onnx_cases import KINDS, RECORD, cases, ops_of, outcome

pytest.importorskip("onnx.reference", reason="onnx is not installed")  # a folder of tests is called onnx
pytestmark = pytest.mark.filterwarnings("ignore")  # of the references, which compute with infinities
_LEAST = 1200  # of the node cases
_SAMPLE = 24
_SEED = 7


def recorded() -> dict:
    return json.loads(RECORD.read_text())


def test_the_record_holds_enough_and_nothing_wrong():
    node = recorded()["node"]
    assert node["runs"] == len(node["names"]) >= _LEAST
    assert node["of"] == len(node["names"]) + len(node["others"])
    assert not [name for name, how in node["others"].items() if not how.startswith(("refused", "error: TimeoutError"))]
    assert sum(sum(count.values()) for count in node["by_op"].values()) == node["of"]


def chosen(kind: str) -> list[str]:
    names = recorded().get(kind, {"names": []})["names"]
    if EVERY_CASE:
        return names
    return sorted(np.random.default_rng(_SEED).choice(names, min(_SAMPLE, len(names)), replace=False).tolist())


@pytest.mark.each_run
@pytest.mark.parametrize("kind", KINDS if EVERY_CASE else KINDS[:1])
def test_what_has_run_runs(kind):
    names = set(chosen(kind))
    failures = {case.name: how for case in cases(kind) if case.name in names and (how := outcome(case)) != "runs"}
    assert not failures


@pytest.mark.skipif(not EVERY_CASE, reason="takes many minutes")
@pytest.mark.parametrize("kind", KINDS)
def test_what_has_not_run_is_refused(kind):
    names = recorded().get(kind, {"others": {}})["others"]
    hows = {case.name: outcome(case) for case in cases(kind) if case.name in names}
    assert not {name: how for name, how in hows.items() if how.startswith("wrong")}
    assert not {name for name, how in hows.items() if how == "runs"}, "renew the record"


def test_cases_have_an_operator():
    ops = {ops_of(case) for case in cases("node")}
    assert {"Add", "Loop", "attention (expanded)"} <= ops


@pytest.mark.parametrize("seed", range(2000 if EVERY_CASE else 6))
def test_random_models_are_as_the_evaluator_of_the_package_says(seed):
    from onnx_fuzz import difference

    assert difference(seed) is None


@pytest.mark.parametrize("number", range(2000) if EVERY_CASE else range(0, 160, 20))
def test_random_operators_are_as_the_evaluator_or_onnxruntime_says(number):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    from operator_fuzz import outcome as drawn_outcome

    how, what = drawn_outcome(number, 7)
    assert how != "differs", what


def test_random_operators_agree_and_do_not_fail_all():
    from operator_draws import MAKERS
    from operator_fuzz import outcome as drawn_outcome

    assert len(MAKERS) >= 39
    assert drawn_outcome(0, 7)[0] == "agrees"


def test_the_backend_serves_the_runner_of_the_package():
    from onnx.backend.test import BackendTest
    from profuse.executor.functions.onnx_backend import ProfuseBackend

    runner = BackendTest(ProfuseBackend, __name__)
    runner.include("test_relu_cpu").include("test_reshape_negative_dim_cpu")
    result = unittest.TestResult()
    runner.test_suite.run(result)
    assert result.testsRun - len(result.skipped) == 2 and result.wasSuccessful(), result.errors
