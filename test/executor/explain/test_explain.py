"""`explain()` in words: slow calls, failing properties, what was not fused, and the way out."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import profuse as pf
import pytest
from every_case import fewer
from hypothesis import given, settings
from hypothesis import strategies as st
from internals import name_of
from profuse.dialect.guards.checks import generalize
from profuse.dialect.guards.mismatch import check_types, mismatches
from profuse.dialect.ir.types import type_of
from profuse.dialect.reasons import Kind, Reason
from profuse.executor.explain.advice import remedy

F32 = np.float32


def lines_of(f):
    return [line.strip() for line in f.explain().splitlines()]


def milliseconds(line):
    return re.sub(r"\d+\.\d ms", "T ms", line)


def test_slow_calls_say_which_work_they_did():
    f = pf.jit(lambda x: np.exp(x) + 1, name="f")
    for n in (2, 2, 2, 3, 3):
        f(np.ones((n, 3), F32))
    slow = [milliseconds(line) for line in lines_of(f) if line.startswith("Call ")]
    assert slow == [
        "Call 2 was slow by T ms because it compiled a static specialisation with 1 kernel for f (T ms).",
        "Call 4 was slow by T ms because it ran f/fallback_0 op by op to record types (T ms).",
        "Call 5 was slow by T ms because it compiled a static specialisation with 1 kernel for f/fallback_0 (T ms).",
    ]


def test_the_first_call_traces_and_profiles():
    f = pf.jit(lambda x: np.exp(x) + 1, name="f")
    f(np.ones(3))
    (slow,) = [milliseconds(line) for line in lines_of(f) if line.startswith("Call ")]
    assert slow == (
        "Call 1 was slow by T ms because it traced the function (T ms) and ran f op by op to record types (T ms)."
    )


FIRST_CALLS = """
import time, numpy as np, profuse as pf
def first(name):
    f = pf.jit(lambda x: np.exp(x) + 1, name=name)
    start = time.perf_counter()
    f(np.ones(3))
    print(time.perf_counter() - start, f.explain().splitlines()[1])
first("f"), first("g")
"""


def test_what_the_first_call_of_a_process_loads_is_told(tmp_path):
    """Once: of a second function it takes next to nothing, unless the machine is very busy."""
    settings = {"PROFUSE_CACHE": "on", "PROFUSE_CACHE_DIR": str(tmp_path), "PROFUSE_BACKGROUND": "on"}
    ran = subprocess.run(
        [sys.executable, "-c", FIRST_CALLS],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    first, second = ran.stdout.splitlines()
    seconds, told = first.split(maxsplit=1)
    for work in ("looked for stored profiles of f", "loaded what compiles in the background"):
        assert re.search(rf"{work} \(\d+\.\d ms\)", told), told
    explained = float(re.search(r"was slow by (\S+) ms", told)[1]) * 1e-3
    assert 0.5 * float(seconds) < explained <= float(seconds) + 1e-4
    assert "loaded what compiles" not in second


def test_every_failing_property_with_the_arguments_names():
    f = pf.jit(lambda x, tree: np.exp(x) * tree["w"][0] + 1, name="f", strategy=[("static", 2)])
    good = np.ones((4, 6), F32), {"w": [np.ones((4, 6), F32)]}
    f(*good), f(*good)
    f(np.ones((5, 7), F32), {"w": [np.ones((7, 5), F32).T]})
    found = lines_of(f)
    start = found.index(
        "The latest miss differs from the nearest, the static specialisation for "
        "f32[4, 6] contiguous, f32[4, 6] contiguous, in:"
    )
    assert found[start + 1 : start + 9] == [
        "x: size of dimension 0 is 5, specialised for 4",
        "x: size of dimension 1 is 7, specialised for 6",
        "tree['w'][0]: size of dimension 0 is 5, specialised for 4",
        "tree['w'][0]: size of dimension 1 is 7, specialised for 6",
        "tree['w'][0]: is not contiguous, specialised for contiguous",
        "The next such call profiles f/fallback_0 or compiles a static specialisation of it.",
        "To fix it, pass tree['w'][0] in one layout, e.g. np.ascontiguousarray.",
        "To fix it, add dynamic depth to the strategy, which serves all sizes, "
        'e.g. pf.jit(strategy=[("static", 2), ("dynamic", 10)]).',
    ]


def test_the_nearest_specialisation_is_chosen_from_the_whole_chain():
    f = pf.jit(lambda x: np.exp(x) + 1, strategy=[("static", 2)])
    for shape in [(2, 3), (2, 3), (8, 9), (8, 9), (8, 5)]:
        f(np.ones(shape, F32))
    found = lines_of(f)
    start = found.index(
        "The latest miss differs from the nearest, the static specialisation for f32[8, 9] contiguous, in:"
    )
    assert found[start + 1] == "x: size of dimension 1 is 5, specialised for 9"
    assert found[start + 2] == (
        "Such calls run op by op in f__lambda_/fallback_0/fallback_1, because no depth is left."
    ).replace("f__lambda_", name_of(f))


def test_a_miss_that_a_deeper_specialisation_serves():
    f = pf.jit(lambda x: np.exp(x) + 1, strategy=[("static", 1), ("dynamic", 1)])
    for n in (2, 2, 3, 3, 4):
        f(np.ones((n, 5), F32))
    assert (
        "The latest call that missed it is now served by the dynamic specialisation for "
        "f32[s0, s1] contiguous." in lines_of(f)
    )


def test_sizes_that_were_equal_while_profiling():
    f = pf.jit(lambda x, y: np.exp(x).sum() + np.exp(y).sum(), strategy=[("dynamic", 1)])
    f(np.ones(4), np.ones(4))
    f(np.ones(4), np.ones(4))
    f(np.ones(4), np.ones(5))
    found = lines_of(f)
    assert "y: size of dimension 0 is 5, must equal dimension 0 of x, which is 4" in found
    assert "To fix it, profile calls in which these sizes differ, e.g. pf.jit(profiled_runs=2)." in found


def test_dtypes_and_ranks_of_a_loaded_graph(tmp_path):
    path = tmp_path / "two.mlir"
    path.write_text("""
func.func @two(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {
  %0 = "profuse.exp"(%x) : (!profuse.tensor) -> !profuse.tensor
  %1 = "profuse.add"(%0, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
  return %1 : !profuse.tensor
}""")
    f = pf.load(str(path))
    x = np.ones((2, 3), F32)
    for args in ((x, x), (x, x), (x, x[0].astype(np.float64))):
        f(*args)
    found = lines_of(f)
    start = found.index("input 1: dtype is f64, specialised for f32")
    assert found[start + 1] == "input 1: rank is 1, specialised for 2"
    assert found[start + 3 : start + 5] == [
        "To fix it, pass input 1 with one dtype always.",
        "To fix it, pass input 1 with one rank always.",
    ]


def test_no_depth_left():
    f = pf.jit(lambda x: np.exp(x) + 1, strategy=[], name="f")
    f(np.ones(3))
    assert lines_of(f)[:2] == [
        "f does not run as native code: it runs op by op in NumPy, unguarded, because no depth is left.",
        'To fix it, give the strategy depth, e.g. pf.jit(strategy=[("static", 2), ("dynamic", 10)]).',
    ]


def test_profiled_and_switched_off():
    f = pf.jit(lambda x: np.exp(x) + 1, name="f", profiled_runs=2)
    f(np.ones(3))
    assert lines_of(f)[0] == (
        "f does not run as native code yet: it is being profiled, the next call runs op by op in "
        "NumPy and records types."
    )
    f(np.ones(3))
    assert lines_of(f)[0] == ("f does not run as native code yet: it has been profiled, the next call compiles it.")
    g = pf.jit(lambda x: np.exp(x) + 1, name="g")
    with pf.knobs.override(optimize=False):
        g(np.ones(3))
    assert lines_of(g)[:2] == [
        "g does not run as native code: it runs op by op in NumPy, because optimisation or profiling is switched off.",
        "To fix it, call pf.set_optimize(True) and pf.set_profiling_mode(True).",
    ]


def test_a_graph_that_could_not_be_compiled(monkeypatch):
    def refuse(request):
        raise pf.PipelineError("this pass gave up")

    monkeypatch.setattr("profuse.executor.compile.compiler.compile_graph", refuse)
    f = pf.jit(lambda x: np.exp(x) + 1, name="f")
    for _ in range(3):
        np.testing.assert_array_equal(f(np.ones(3)), np.exp(np.ones(3)) + 1)
    found = lines_of(f)
    assert found[0] == (
        "f does not run as native code: it runs op by op in NumPy, unguarded, because it could not be compiled."
    )
    assert "not compiled: this pass gave up." in found
    slow = [milliseconds(line) for line in found if line.startswith("Call ")]
    assert slow[-1].endswith("because it failed to compile f (T ms).")
    assert f.state().counters["compile_failures"] == 1


def test_unfused_ops_are_named_with_the_users_line():
    @pf.jit
    def f(x):
        return np.arctan(np.arcsin(x))  # the line that is named

    f(np.ones(3) + 1j), f(np.ones(3) + 1j)
    where = f"{__file__}:{f.__wrapped__.__code__.co_firstlineno + 2}"
    reason = "complex is not lowered. To fix it, compute with real and imaginary parts as floats."
    assert [t for t in lines_of(f) if t.startswith("Not fused: ")] == [
        f"Not fused: asin at {where}: {reason}",
        f"Not fused: atan at {where}: {reason}",
    ]


@pytest.mark.parametrize(
    ("reason", "start"),
    [
        (Reason(Kind.UNKNOWN_OPERAND, operand=3), "Its operand was not reached"),
        (Reason(Kind.VARYING_SIZE, operand=0), "Its sizes changed while profiling"),
        (Reason(Kind.RUN_TIME_SIZES), "To fix it, write its sizes as literals"),
        (Reason(Kind.FEW_NEIGHBOURS), "To fix it, lower pf.knobs.min_fusion_size."),
        (Reason(Kind.LARGE_INTEGER, subject="300", detail="u8"), "To fix it, pass the number as"),
        (Reason(Kind.NEVER_FUSED), ""),
    ],
)
def test_remedies(reason, start):
    assert remedy(reason).startswith(start)
    assert bool(remedy(reason)) == bool(start)


def test_what_is_native_and_what_is_not_comes_first():
    @pf.jit(name="f", background=False)
    def f(x, w):
        y = np.tanh(x @ w) + 1
        z = np.arctan(np.arcsin(y + 0j)).real  # not fused: two operations of one line
        return np.exp(z) - 1

    x, w = np.ones((4, 6), F32), np.ones((6, 6), F32)
    for array in (x, x, x, x[:3]):
        f(array, w)
    first = f.__wrapped__.__code__.co_firstlineno + 2
    told, inside = f.explain().split("  Internals of f:\n")
    lines = [line.strip() for line in told.splitlines()]
    assert lines[:3] == [
        "f runs as native code, but for 2 operations that run one by one in NumPy.",
        f"Native code of {__file__}:{first}-{first + 1}, for x: f32[4, 6] contiguous, "
        "w: f32[6, 6] contiguous, has run 2 times.",
        f"Native code of {__file__}:{first + 1}-{first + 2} has run 2 times.",
    ]
    assert "x: size of dimension 0 is 3, specialised for 4" in lines
    assert [line.split(": ")[1].split(" at ")[0] for line in lines if "Not fused" in line] == ["asin", "atan"]
    for word in ("depth 12", "@fusion_0", "profiled", "checked", "compiled 2 kernels"):
        assert word not in told.replace("profiles f/", "").replace("pf.jit(profiled", ""), word
    for word in ("Tier: optimized, depth 12 left", "Guard of @fusion_0", "2 hits, 1 miss"):
        assert word in inside


def test_what_runs_as_a_whole_says_so():
    f = pf.jit(lambda x: np.exp(x) + 1, name="f", background=False)
    f(np.ones(3)), f(np.ones(3))
    assert lines_of(f)[0] == "f runs as native code."
    view = pf.jit(lambda x: x[1:], name="view", background=False, unsupported="python")
    view(np.ones(3)), view(np.ones(3))
    assert lines_of(view)[0] == "view computes nothing: it gives what it is given, or views of that."
    g = pf.jit(lambda z: np.arcsin(z), name="g", background=False)
    g(np.ones(3) + 1j), g(np.ones(3) + 1j)
    assert lines_of(g)[0] == "g runs op by op in NumPy: nothing of it is native code."
    with pf.knobs.override(profiling_mode=False):
        h = pf.jit(lambda z: np.arcsin(z), name="h", background=False)
        h(np.ones(3) + 1j)
    assert lines_of(h)[0] == "h runs op by op in NumPy: nothing of it is native code."


def test_strides_that_follow_from_sizes_are_no_advice():
    f = pf.jit(lambda x: np.exp(x) + 1, name="f")
    for n in (4, 4, 5):
        f(np.asfortranarray(np.ones((n, 3), F32)))
    found = lines_of(f)
    assert "x: size of dimension 0 is 5, specialised for 4" in found
    assert "x: stride of dimension 1 is 5, specialised for 4" in found
    assert not any("np.ascontiguousarray" in line for line in found)


def test_trace_guards_and_unknown_functions():
    f = pf.jit(lambda x: x + 1, name="f")
    assert f.explain() == "f has not been called yet."


def arrays(shape, dtype, layout):
    made = np.ones(shape, dtype)
    if layout == "reversed":
        return made[::-1]
    return np.asfortranarray(made) if layout == "fortran" else made


SHAPES = st.lists(st.sampled_from([0, 1, 2, 3]), min_size=2, max_size=2).map(tuple)
ARRAYS = st.builds(
    arrays, SHAPES, st.sampled_from([np.float32, np.int64]), st.sampled_from(["c", "fortran", "reversed"])
)


@settings(max_examples=fewer(300), deadline=None, derandomize=True)
@given(st.lists(ARRAYS, min_size=2, max_size=2), st.lists(ARRAYS, min_size=2, max_size=2))
def test_mismatches_are_empty_exactly_where_the_guard_passes(profiled, values):
    """R1.39, R1.40"""
    static = tuple(map(type_of, profiled))
    for types in (static, generalize(static)):
        found = mismatches(types, [type_of(v) for v in values])
        assert (not found) == check_types(types, values), found


@pytest.mark.parametrize(
    ("want", "seen", "kinds"),
    [
        (np.ones(3, F32), np.ones(3), ["dtype"]),
        (np.ones(3, F32), np.ones((4, 4)), ["dtype", "rank"]),
        (np.ones((3, 4)), np.ones((5, 4)).T[:5, :3], ["size", "size", "layout"]),
        (np.ones(3), 2.0, ["object"]),
    ],
)
def test_kinds_of_mismatches(want, seen, kinds):
    """R1.39: one property at a time."""
    found = mismatches([type_of(want)], [type_of(seen)])
    assert sorted(m.kind for m in found) == sorted(kinds), found
    assert all(m.text.startswith("operand 0: ") for m in found)


def test_graphs_of_one_function_are_told_apart():
    f = pf.jit(lambda x, p, mode="sum": x * 2 if mode == "sum" else x + p["w"], name="f")
    x = np.ones((4, 6), F32)
    f(x, {"w": 1.5})
    assert not any("This graph serves" in line for line in lines_of(f))
    f(x, {"w": 1.5}, mode="add"), f(x[0], {"w": x[0], "b": (2,)})
    assert [line for line in lines_of(f) if line.startswith("This graph serves")] == [
        "This graph serves f(x: f32[?, ?], p: {'w': float}).",
        "This graph serves f(x: f32[?, ?], p: {'w': float}, mode: 'add').",
        "This graph serves f(x: f32[?], p: {'w': f32[?], 'b': (int,)}).",
    ]
    with pf.knobs.override(profiling_mode=False):
        g = pf.jit(lambda x: x * 2, name="g")
        g(1.5), g(np.float32(2))
    assert "This graph serves g(x: float)." in lines_of(g)
    assert "This graph serves g(x: float32)." in lines_of(g)
