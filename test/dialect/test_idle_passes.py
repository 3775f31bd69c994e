"""Passes that come again where nothing has changed are skipped, and that changes no result."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from every_case import fewer
from hypothesis import HealthCheck, given, settings
from mlir import ir
from profuse.dialect.errors import ProfuseError
from profuse.dialect.ir.program import Module
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.passes import load_passes
from profuse.dialect.passes.base import PASSES, Pass
from profuse.dialect.pipeline.execution import run_pipeline
from random_programs import modules
from test_cleanup_semantics import graphs

load_passes()

PROFILED = "profile-insensitive,pre-autodiff,no-grad,dce,final,prepare-kernels"
# Types stay, so that groups are formed.
TYPED = "inline-calls,pre-autodiff,no-grad,dce,final,prepare-kernels"
KEYED = "spec-driven,final,prepare-kernels"
COUNTING = sorted(name for name, cls in PASSES.items() if cls.counts_changes)
FILES = sorted((Path(__file__).parent / "passes").rglob("*.mlir"))
MANY = settings(max_examples=fewer(60), deadline=None, suppress_health_check=list(HealthCheck))


def text_of(module: ir.Module) -> str:
    return module.operation.get_asm(enable_debug_info=True, print_generic_op_form=True)


def ran(text: str, pipeline: str, *, skip: bool):
    """The module after a pipeline, what was at each boundary, the trace, and the statistics."""
    module = parse_module(text, verify=False)
    trace: list[str] = []
    stops: list[tuple[str, str, str]] = []
    found = run_pipeline(
        module,
        pipeline,
        trace=trace,
        repro_dir="",
        skip=skip,
        boundary=lambda before, after, at: stops.append((before, after, text_of(at))),
    )
    counts = {name: {k: n for k, n in c.items() if n} for name, c in found.items()}
    skipped = sum(c.pop("skipped", 0) for c in counts.values())
    return (text_of(module), stops, trace, counts), skipped


@pytest.mark.parametrize("pipeline", [PROFILED, TYPED, KEYED])
@given(module=graphs())
@MANY
def test_results_are_the_same_with_and_without(pipeline: str, module: Module):
    text = module.to_mlir()
    with_, _ = ran(text, pipeline, skip=True)
    without, none = ran(text, pipeline, skip=False)
    assert with_ == without
    assert none == 0


@given(module=graphs())
@MANY
def test_passes_count_what_they_change(module: Module):
    text = module.to_mlir()
    for name in COUNTING:
        check_counts(text, name)


@given(module=modules())
@MANY
def test_passes_count_what_they_change_in_programs_without_sense(module: Module):
    text = module.to_mlir()
    for name in COUNTING:
        check_counts(text, name)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_passes_count_what_they_change_in_our_own_tests(path: Path):
    for part in path.read_text(encoding="utf-8").split("// -----\n"):
        for name in COUNTING:
            check_counts(part, name)


def check_counts(text: str, name: str) -> None:
    """A pass that counts nothing has changed nothing; if it raises, it ran in vain anyway."""
    try:
        module = parse_module(text, verify=False)
        before = text_of(module)
        (counts,) = run_pipeline(module, name, repro_dir="").values()
    except ProfuseError:
        return
    assert any(counts.values()) or text_of(module) == before, name


CLEAN = """
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "profuse.exp"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}"""


@dataclass(frozen=True)
class _Silent(Pass):
    """Takes every ``exp`` for a ``tanh`` and does not say so."""

    name: ClassVar[str] = "test-silent"

    def run(self, module: ir.Module) -> None:
        for op in list(module.body.operations[0].regions[0].blocks[0].operations):
            if op.operation.name == "profuse.exp":
                made = ir.Operation.create(
                    "profuse.tanh",
                    [r.type for r in op.operation.results],
                    list(op.operation.operands),
                    ip=ir.InsertionPoint(op.operation),
                )
                op.operation.results[0].replace_all_uses_with(made.results[0])
                op.operation.erase()


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        ("dce,fold,dce", {"dce": 1}),
        ("dce,dce,dce", {"dce": 2}),
        ("fold,fold{max-elements=2}", {}),  # another pass
        ("dce,test-silent,dce", {}),  # what does not count may have changed anything
        ("dce,cse,dce", {}),  # MLIR's own
        ("canonicalize-profuse,dce,test-silent,canonicalize-profuse,dce,dce", {"dce": 1}),
    ],
)
def test_what_is_skipped(pipeline: str, expected: dict[str, int], monkeypatch):
    monkeypatch.setitem(PASSES, _Silent.name, _Silent)
    found = run_pipeline(parse_module(CLEAN), pipeline, repro_dir="")
    assert {name: c["skipped"] for name, c in found.items() if c["skipped"]} == expected


def test_a_pass_comes_again_once_something_has_changed():
    text = CLEAN.replace(
        "return",
        '%1 = "profuse.neg"(%0) : (tensor<4xf32>) -> tensor<4xf32>\n'
        '  %2 = "profuse.neg"(%1) : (tensor<4xf32>) -> tensor<4xf32>\n  return',
    )
    text = text.replace("return %0", "return %2")
    module = parse_module(text)
    found = run_pipeline(module, "dce,canonicalize-profuse,dce", repro_dir="")
    assert found["dce"] == {"ops-removed": 1}
    assert "profuse.neg" not in str(module)
