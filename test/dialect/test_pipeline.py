"""Pipelines as strings: parsing, trace, times, statistics, and replay of failures."""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from profuse.dialect.errors import InternalError, Loc, PipelineError, ShapeError
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.passes.base import PASSES, Pass, register_pass
from profuse.dialect.passes.cleanup.dce import Dce
from profuse.dialect.passes.cleanup.fold import Fold
from profuse.dialect.pipeline import syntax as pipeline
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.pipeline.syntax import parse_pipeline, register_pipeline
from profuse.tools.opt import main

TEXT = """
func.func @f(%x: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.tanh"(%x) : (!profuse.tensor) -> !profuse.tensor loc("user.py":3:5)
  return %0 : !profuse.tensor
}
"""


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> type[Pass]:
    """A pass with an option of each type; it fails when asked to."""
    monkeypatch.setattr(pipeline, "PASSES", PASSES)
    monkeypatch.setattr(pipeline, "PIPELINES", dict(pipeline.PIPELINES))

    @register_pass
    @dataclass(frozen=True)
    class Probe(Pass):
        """Count, or fail."""

        name: ClassVar[str] = "probe"
        flag: bool = False
        min_size: int = 2
        ratio: float = 0.5
        fail: str = ""
        limit: int | None = None

        def run(self, module) -> None:
            self.count("runs")
            if self.fail == "shape":
                raise ShapeError("sizes differ", loc=Loc("user.py", 3, 5))
            if self.fail:
                raise RuntimeError(self.fail)

    yield Probe
    del PASSES["probe"]


def test_contiguous_upstream_passes_are_one_stage():
    stages = parse_pipeline(" dce , canonicalize,func.func(cse,canonicalize),fold{max-elements=7}")
    assert stages == [Dce(), ("canonicalize", "func.func(cse,canonicalize)"), Fold(7)]


@pytest.mark.parametrize("text", ["", "  ", "builtin.module()"])
def test_an_empty_pipeline_does_nothing(text):
    module = parse_module(TEXT)
    before = str(module)
    assert run_pipeline(module, text) == {}
    assert str(module) == before


def test_options_have_the_types_of_the_fields(options):
    (found,) = parse_pipeline("probe{flag=true min-size=3, ratio=1e-3 fail='a b' limit=none}")
    assert found == options(True, 3, 1e-3, "a b", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nosuch", "unknown pass 'nosuch'"),
        ("func.func(nosuch)", "unknown pass 'nosuch'"),
        ("canonicalise", "did you mean 'canonicalize'"),
        ("dec", "did you mean 'dce'"),
        ("probe{min-sizes=1}", "pass probe has no option 'min-sizes'\n  hint: did you mean"),
        ("probe{min_size=1}", "has no option 'min_size'"),
        ("probe{statistics=1}", "has no option 'statistics'"),
        ("probe{flag=yes}", "option 'flag' must be true or false, not 'yes'"),
        ("probe{min-size=1.5}", "option 'min-size' must be an integer, not '1.5'"),
        ("probe{ratio=x}", "option 'ratio' must be a number, not 'x'"),
        ("probe{flag}", "option 'flag' needs a value"),
        ("probe{flag=true flag=true}", "option 'flag' is given twice"),
        ("probe{", "missing '}'"),
        ("dce)", "unbalanced ')'"),
        ("dce,,cse", "expected a pass name, found ''"),
        ("dce cse", "expected a pass name, found 'dce cse'"),
        ("func.func(dce)", "pass dce runs on a module and cannot stand inside func.func"),
        ("canonicalize{nosuch=1}", "no such option nosuch"),
    ],
)
def test_mistakes_are_named_before_anything_runs(options, text, message):
    module = parse_module(TEXT)
    before = str(module)
    with pytest.raises(PipelineError) as caught:
        run_pipeline(module, f"dce,{text}")
    assert message in str(caught.value)
    assert str(module) == before


@given(st.text("dce,(){}<>= '\"canonicalize.-_", max_size=30))
def test_any_text_is_a_pipeline_or_a_pipeline_error(text):
    try:
        run_pipeline(parse_module("module {}"), text, repro_dir="")
    except PipelineError as error:
        assert error.what


def test_trace_times_and_statistics(options):
    trace, timings, printed = [], {}, []
    statistics = run_pipeline(
        parse_module(TEXT),
        "probe,cse,dce,probe{min-size=3}",
        trace=trace,
        timings=timings,
        print_after_all=lambda name, module: printed.append((name, "tanh" in str(module))),
        verify_each=True,
    )
    assert trace == ["probe", "cse", "dce", "probe"]
    assert list(timings) == ["probe", "cse", "dce"]
    assert all(seconds > 0 for seconds in timings.values())
    assert printed == [("probe", True), ("cse", True), ("dce", False), ("probe", False)]
    assert statistics == {"probe": {"runs": 2}, "dce": {"ops-removed": 1}}


def test_named_pipelines_expand(options):
    register_pipeline("clean", "dce,cse")
    register_pipeline("clean-twice", "clean,clean")
    assert parse_pipeline("clean-twice,probe") == [Dce(), ("cse",), Dce(), ("cse",), options()]
    with pytest.raises(InternalError, match="clean is declared twice"):
        register_pipeline("clean", "")
    with pytest.raises(PipelineError, match="clean has no option 'a'"):
        parse_pipeline("clean{a=1}")
    pipeline.PIPELINES["loop"] = "dce,loop"
    with pytest.raises(PipelineError, match="loop contains itself"):
        parse_pipeline("loop")


def test_a_failure_writes_its_input_and_says_how_to_replay_it(options, tmp_path, capsys):
    with pytest.raises(PipelineError) as caught:
        run_pipeline(parse_module(TEXT), "dce,probe{fail=shape}", repro_dir=str(tmp_path))
    error = caught.value
    assert error.what == "pass probe failed: sizes differ"
    assert error.loc == Loc("user.py", 3, 5)
    assert isinstance(error.__cause__, ShapeError)
    (path,) = tmp_path.iterdir()
    assert error.hint == f"replay with: profuse-opt -p 'dce,probe{{fail=shape}}' {path}"
    # The file is the input of the whole pipeline, locations included.
    assert "profuse.tanh" in path.read_text() and "user.py" in path.read_text()
    assert main(shlex.split(error.hint.partition("profuse-opt ")[2])) == 1
    assert "user.py:3:5: error: pass probe failed: sizes differ" in capsys.readouterr().err


def test_a_folder_that_is_missing_does_not_hide_the_failure(options, tmp_path):
    with pytest.raises(PipelineError, match="pass probe failed: sizes differ") as caught:
        run_pipeline(parse_module(TEXT), "probe{fail=shape}", repro_dir=str(tmp_path / "absent"))
    assert caught.value.hint.startswith("its input is not kept for a replay: ")


def test_a_bug_in_a_pass_is_reported_too(options, tmp_path):
    with pytest.raises(PipelineError, match="pass probe failed: RuntimeError: boom"):
        run_pipeline(parse_module(TEXT), "probe{fail=boom}", repro_dir=str(tmp_path))
    with pytest.raises(PipelineError) as caught:
        run_pipeline(parse_module(TEXT), "probe{fail=boom}", repro_dir="")
    assert caught.value.hint is None
    assert len(list(Path(tmp_path).iterdir())) == 1


def test_a_failing_upstream_pass_is_located(tmp_path):
    text = 'func.func @f(%x: tensor<4xf32>) {\n  "test.op"(%x) : (tensor<4xf32>) -> ()\n  return\n}'
    module = parse_module(text, "in.mlir", verify=False)
    with pytest.raises(PipelineError) as caught:
        run_pipeline(module, "dce,one-shot-bufferize", repro_dir=str(tmp_path))
    assert caught.value.what.startswith("pass one-shot-bufferize")
    assert str(caught.value.loc) == "in.mlir:2:3"


def test_verify_each_blames_the_pass(options, monkeypatch):
    def spoil(self, module) -> None:
        from mlir import ir

        for op in module.body.operations[0].regions[0].blocks[0].operations:
            op.operation.attributes["spoilt"] = ir.UnitAttr.get()

    monkeypatch.setattr(options, "run", spoil)
    with pytest.raises(PipelineError, match=r"probe failed: 'profuse[.]exp' has no attribute"):
        run_pipeline(parse_module(TEXT), "dce,probe,cse", verify_each=True, repro_dir="")
