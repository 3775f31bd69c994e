"""The named pipelines: what runs and in which order, in `profuse-opt` as in the engine."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import profuse as pf
import pytest
from internals import executor_of
from profuse.dialect.autodiff.passes import DifferentiateDiffGraphs
from profuse.dialect.errors import PipelineError
from profuse.dialect.mlir.parse import parse_module
from profuse.dialect.passes import load_passes
from profuse.dialect.passes.backward.finishing import FinishingPass
from profuse.dialect.passes.base import PASSES
from profuse.dialect.passes.speculate.form_fusions import FormFusions
from profuse.dialect.pipeline.execution import run_pipeline
from profuse.dialect.pipeline.options import PipelineOptions
from profuse.dialect.pipeline.syntax import PIPELINES
from profuse.executor.settings.knobs import KNOBS
from profuse.tools.opt import main

load_passes()
assert DifferentiateDiffGraphs.name in PASSES  # which importing it has declared

TEXT = """
func.func @f(%x: !profuse.tensor) -> !profuse.tensor {
  %p = "profuse.profile"(%x) {site = 0 : i64, profiled_type = tensor<4xf32>}
    : (!profuse.tensor) -> !profuse.tensor
  %0 = "profuse.exp"(%p) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.tanh"(%0) : (!profuse.tensor) -> !profuse.tensor
  "profuse.profile_counter"() : () -> ()
  return %1 : !profuse.tensor
}
"""

# A captured backward run, which the passes that finish one take alone.
CAPTURED = """
func.func @f(%inputs: !profuse.list, %sizes: !profuse.list, %scalars: !profuse.list,
             %hooks: !profuse.list, %packed: !profuse.list) -> !profuse.tensor {
  %g = "profuse.list_get"(%inputs) {index = 0 : i64} : (!profuse.list) -> !profuse.tensor
  %0 = "profuse.exp"(%g) : (!profuse.tensor) -> !profuse.tensor
  return %0 : !profuse.tensor
}
"""

# What the requirements list, in the names that our passes have.
INLINE, CLEAR, GRAD = "inline-calls", "clear-profile-types", "lower-grad-blocks"
UNDEFINED, EXPAND, CANON, DCE = ("clear-undefinedness", "remove-expand", "canonicalize-profuse", "dce")
DECOMPOSE, FOLD, CSE, POOL = "decompose", "fold", "cse-profuse", "pool-constants"
PEEPHOLE, LISTS, CHECK = "peephole", "lower-lists", "in-place-check"
ZERO, UNROLL, MUTATION = "specialize-autograd-zero", "unroll-loops", "remove-list-mutation"

R1_24 = [
    INLINE,
    CLEAR,
    GRAD,
    UNDEFINED,
    EXPAND,
    CANON,
    DCE,
    DECOMPOSE,
    FOLD,
    DCE,
    CSE,
    POOL,
    PEEPHOLE,
    DCE,
    LISTS,
    CHECK,
]
R1_24_PLAIN = [CLEAR, GRAD, UNDEFINED, EXPAND, CANON, DCE]
R1_25 = [INLINE, GRAD, EXPAND, CANON, DCE]
R1_26 = [
    GRAD,
    ZERO,
    EXPAND,
    CANON,
    DCE,
    PEEPHOLE,
    FOLD,
    DCE,
    CSE,
    PEEPHOLE,
    FOLD,
    POOL,
    UNROLL,
    MUTATION,
    PEEPHOLE,
    FOLD,
    CSE,
    CHECK,
]
# `functionalize` is ours: in-place ops on a graph's own memory become fusible.
# Loops become groups before that, and those that do not are unrolled then, as R1.47 has it.
WRITTEN = ["specialize", "fuse-loops", UNROLL, "functionalize"]
UNFUSED = ["specialize", UNROLL, "functionalize"]
# `keep-layouts`, too: results lie in memory as NumPy's do.
R1_36 = [LISTS, *WRITTEN, "batch-matmul", "form-fusions", "insert-guards", "keep-layouts", "erase-types"]
R1_36_NO_FUSER = [LISTS, *UNFUSED, "batch-matmul", "erase-types"]
R1_27 = [*R1_26, *R1_36, DCE]
# Halves are cleaned before their ops are counted, and have branches in place of gradient blocks.
R1_34 = [
    "form-diff-graphs",
    "guard-diff-graphs",
    "differentiate-diff-graphs",
    DCE,
    "inline-diff-graphs",
    GRAD,
    "convert-fallbacks",
    "remove-profiling",
]
R3_1 = [
    "extract-constants",
    "specialize",
    "functionalize",
    "split-linear",
    "split-conv",
    "views-to-copies",
    "partition-device-groups",
    "insert-device-guards",
    "repair-batch-norm",
    "remove-value-observers",
    "drop-unprofiled-groups",
    "dtype-only-results",
    "join-views",
    "copies-to-views",
    "export-fallbacks",
    CSE,
    DCE,
    "shape-peephole",
    "erase-types",
    "dedupe-device-groups",
]
PROPAGATE = [FOLD, "propagate-shapes", "propagate-requires-grad"]
R2_9 = [ZERO, GRAD, EXPAND, CANON, DCE]
R2_11 = [DCE, CSE, POOL, PEEPHOLE, FOLD, UNROLL, CSE, CHECK]
R2_15 = [
    *R2_9,
    *PROPAGATE,
    *R2_11,
    "functionalize",
    *PROPAGATE,
    "form-diff-graphs",
    "differentiate-diff-graphs",
    DCE,
    "inline-diff-graphs",
    GRAD,
    DCE,
]
R1_45 = ["convert-fallbacks", "if-then-else"]
# Once more what needs types, in fusion functions: see "Departures" in docs/architecture.md.
TYPED = [EXPAND, CANON, DECOMPOSE, PEEPHOLE]
KERNELS = ["free-group-sizes", *TYPED, "insert-casts", CANON, FOLD, CSE, DCE]


def trace_of(pipeline: str) -> list[str]:
    trace: list[str] = []
    run_pipeline(parse_module(TEXT), pipeline, trace=trace, verify_each=True, repro_dir="")
    return trace


@pytest.mark.parametrize(
    ("pipeline", "expected"),
    [
        ("profile-insensitive", R1_24),
        ("profile-insensitive-plain", R1_24_PLAIN),
        ("no-opt", R1_25),
        ("pre-autodiff", R1_26),
        ("no-grad", R1_36),
        ("no-grad{general-fuser=no-fuser}", R1_36_NO_FUSER),
        ("profile-driven", R1_27),
        ("grad", R1_34),
        ("profile-driven{no-grad=grad}", [*R1_26, *R1_34, DCE]),
        ("spec-driven-grad", R2_15),
        ("final", R1_45),
        ("prepare-kernels", KERNELS),
        ("device-fuser", R3_1),
        ("no-grad{leave=all post-fusion=device-fuser}", [*R1_36[:-1], *R3_1, "erase-types"]),
    ],
)
def test_traces_are_the_lists_of_the_requirements(pipeline, expected):
    """R1.24, R1.25, R1.26, R1.27, R1.36, R1.45, R3.1: order of passes, as they ran."""
    assert trace_of(pipeline) == expected


def test_users_passes_run_before_and_after_fusion():
    """R1.36: the places of registered passes see the graph before and after fusion."""
    seen: list[tuple[str, bool, bool]] = []

    def look(before, after, module):
        text = str(module)
        seen.append((after, '"profuse.profile"' in text, "fusion_group" in text))

    users = "pre-fusion=(cse,fold{max-elements=1}) post-fusion=cse"
    run_pipeline(parse_module(TEXT), f"profile-driven{{min-size=1 {users}}}", boundary=look)
    assert [s for s in seen if s[0] == "cse"] == [("cse", True, False), ("cse", False, True)]
    names = [name for name, *_ in seen]
    assert names[names.index("cse") - 1 : names.index("cse") + 3] == [CHECK, "cse", FOLD, LISTS]


TYPED_INPUTS = {"differentiate"}
LOWERING = {"to-linalg", "to-gpu"}  # which take typed functions alone


@pytest.mark.parametrize("name", sorted({*PASSES, *PIPELINES} - LOWERING - TYPED_INPUTS))
def test_every_pass_and_pipeline_runs_alone(name, tmp_path, capsys):
    """R1.49: each by its name in `profuse-opt`, on a graph that all of its kind take."""
    graph = tmp_path / "f.mlir"
    finishes = name in PASSES and issubclass(PASSES[name], FinishingPass)
    graph.write_text(CAPTURED if finishes else TEXT)
    assert main([str(graph), f"--pass-pipeline={name}", "--verify-each", "--trace-passes"]) == 0
    printed = capsys.readouterr()
    assert "func.func @f" in printed.out
    expected = [name] if name in PASSES else trace_of(name)
    assert printed.err.split() == expected


@pytest.mark.parametrize(("behavior", "fuse"), [("static", True), ("dynamic", True), ("static", False)])
def test_the_engine_runs_the_named_pipelines(behavior, fuse):
    """R1.12: profile-insensitive, profile-driven, fallbacks converted, the final pass."""
    text = PipelineOptions(dynamic=behavior == "dynamic", stable_sizes=[8], fuse=fuse).optimizing()
    driven = R1_27 if fuse else [*R1_26, *R1_36_NO_FUSER, DCE]
    assert trace_of(text) == [*R1_24, *driven, *R1_45, *KERNELS]


@pytest.mark.parametrize("leave", ["cuda", "all"])
@pytest.mark.parametrize("fuse", [True, False])
def test_r3_1_the_fuser_of_device_groups_stands_after_fusion_before_users_passes(leave, fuse):
    """R3.1, R3.2, A7: where it is switched on; what is in no group of it goes to the general fuser."""
    text = PipelineOptions(leave=leave, fuse=fuse, after="cse").optimizing()
    left = ["form-fusions", "insert-guards", "keep-layouts"] if fuse else []
    ours = [*R3_1[:18], *left, *R3_1[18:]]
    before = (R1_36 if fuse else R1_36_NO_FUSER)[:-1]
    assert trace_of(text) == [*R1_24, *R1_26, *before, *ours, "cse", "erase-types", DCE, *R1_45, *KERNELS]
    off = PipelineOptions(fuse=fuse, after="cse").optimizing()
    assert not set(R3_1[3:15]) & set(trace_of(off))
    assert PipelineOptions(leave=leave).keyed() == PipelineOptions().keyed()


def test_options_of_the_fuser_of_device_groups_reach_its_pass():
    text = PipelineOptions(leave="all", single=True, horizontal=False, max_values=7, chip="sm_90").optimizing()
    assert "device-fuser{max-values=7 " in text
    assert " host=true chip=sm_90 single=true horizontal=false " in text
    for leave, groups in (("all", 1), ("cuda", 0)):
        module = parse_module(TEXT.replace("tensor<4xf32>", 'tensor<4xf32, {device = "cpu"}>'))
        run_pipeline(module, PipelineOptions(leave=leave).optimizing(), verify_each=True)
        assert str(module).count('"profuse.cuda_group"') == groups
        assert str(module).count('"profuse.fusion_group"') == 1 - groups


def test_the_result_of_a_compile_has_the_trace():
    """R1.27: what the executor ran is what the lists say."""
    f = pf.jit(lambda x: np.tanh(x) * 2)
    for _ in range(2):
        f(np.ones(4, np.float32))
    executor = executor_of(f)
    assert executor.result.trace == [*R1_24, *R1_27, *R1_45, *KERNELS]


def test_options_of_a_pipeline_reach_the_passes_that_have_them():
    text = parse_module(TEXT)
    run_pipeline(text, "profile-driven{dynamic=true min-size=1}")
    assert '"profuse.dynamic_guard"' in str(text)
    text = parse_module(TEXT)
    run_pipeline(text, "profile-driven{min-size=3}")
    assert "fusion_group" not in str(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("profile-driven{nosuch=1}", "pipeline profile-driven has no option 'nosuch'"),
        ("profile-driven{min-sizes=1}", "did you mean 'min-size'"),
        ("profile-driven{min-size=x}", "option 'min-size' must be an integer, not 'x'"),
        ("profile-driven{min-size=1 min-size=2}", "option 'min-size' is given twice"),
        ("profile-driven{pre-fusion=(nosuch)}", "unknown pass 'nosuch'"),
        ("profile-driven{pre-fusion=profile-driven}", "pipeline profile-driven contains itself"),
    ],
)
def test_wrong_options_of_a_pipeline_are_named(text, message):
    with pytest.raises(PipelineError) as caught:
        run_pipeline(parse_module(TEXT), text, repro_dir="")
    assert message in str(caught.value)


def test_boundaries_name_both_neighbours(tmp_path, capsys):
    """R1.49: a dump before, between and after passes."""
    graph = tmp_path / "f.mlir"
    graph.write_text(TEXT)
    assert main([str(graph), "-p", "no-opt", "--print-ir-at-boundaries"]) == 0
    printed = capsys.readouterr().err
    titles = [line for line in printed.splitlines() if line.startswith("// -----")]
    ends = ["start", *R1_25, "end"]
    assert titles == [f"// ----- after {a}, before {b}" for a, b in pairwise(ends)]
    assert printed.count("func.func @f") == len(titles)


@pytest.mark.parametrize(("operands", "groups"), [(127, 1), (128, 2)])
def test_r1_48_a_group_takes_and_gives_128_values_and_no_more(operands, groups):
    """R1.48: with the defaults of the pass, which are the engine's."""
    kind = "tensor<4xf32>"
    arguments = ", ".join(f"%x{k}: {kind}" for k in range(operands))
    sums = ['  %s1 = "profuse.mul"(%x0, %x1)'] + [
        f'  %s{k} = "profuse.mul"(%s{k - 1}, %x{k})' for k in range(2, operands)
    ]
    body = "\n".join(f"{line} : ({kind}, {kind}) -> {kind}" for line in sums)
    last = f"  return %s{operands - 1} : {kind}"
    module = parse_module(f"func.func @f({arguments}) -> {kind} {{\n{body}\n{last}\n}}")
    run_pipeline(module, "form-fusions{min-size=1}")
    assert str(module).count('"profuse.fusion_group"') == groups
    assert KNOBS["max_fusion_values"].default == FormFusions().max_values == PipelineOptions().max_values == 128
