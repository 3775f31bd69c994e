"""Warm state: profiles and compiles of earlier processes, from the disk cache and from files."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import profuse as pf
import pytest
from internals import FOLDER, executor_of, executors
from profuse.dialect.ir.dtypes import dtype_of_mlir
from profuse.dialect.ir.program import Module
from profuse.executor.compile.cache.cache_key import Key
from profuse.executor.compile.cache.entry import CacheEntry
from profuse.executor.compile.cache.store import Store
from profuse.executor.functions.saved.file import SavedFile
from profuse.executor.interpret.size_history import tensor_types
from profuse.executor.tiers.profiling import Executor, Options
from small_graphs import add_graph

W = np.arange(6, dtype=np.float32).reshape(2, 3)
PARENT = str(Path(pf.__file__).parents[1])


def layer(p, *, n):
    return {"y": np.tanh(p["x"] @ W + p["b"]) * n}


def arguments(rows):
    return {"x": np.full((rows, 2), 0.1 * rows, np.float32), "b": np.float32(0.5)}


def check(f, *rows):
    for k in rows:
        np.testing.assert_allclose(f(arguments(k), n=2.0)["y"], layer(arguments(k), n=2.0)["y"], rtol=1e-6)
        f.wait()


def counts(f):
    return SimpleNamespace(**f.state().counters)


def warmed(**options):
    f = pf.jit(layer, **options)
    check(f, 4, 4, 8, 8)
    return f


@pytest.fixture
def cache(tmp_path):
    with pf.knobs.override(cache=True, cache_dir=str(tmp_path / "cache")):
        yield Store(tmp_path / "cache")


# --- the disk cache ----------------------------------------------------------------------------


@pytest.mark.parametrize("background", [False, True])
def test_the_first_call_of_a_new_function_is_native(cache, background):
    warmed(background=background)
    f = pf.jit(layer, background=background)
    check(f, 8)
    c = counts(f)
    assert (c.profiled_runs, c.evaluated_ops) == (0, 0)
    assert c.profiles_restored == 2, "the fallback's specialisation came with it"
    assert c.disk_hits == 2
    assert c.disk_misses == 0
    check(f, 4, 8)
    assert counts(f).kernel_launches == 3
    assert "from the disk cache" in f.explain()


def test_a_new_process_does_so_without_the_compiler(cache):
    script = f"""
import sys, numpy as np, profuse as pf
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parents[1]), FOLDER]!r}
from test_warm import *
f = pf.jit(layer)
check(f, 4, 4, 8, 8) if sys.argv[1] == "cold" else check(f, 8)
print(counts(f).profiled_runs, f.state().tier, "mlir" in sys.modules)
"""
    env = {
        **os.environ,
        "PYTHONPATH": PARENT,
        "PROFUSE_CACHE": "1",
        "PROFUSE_CACHE_DIR": str(cache.root),
        "PROFUSE_BACKGROUND": "1",
    }
    said = [
        subprocess.run(
            [sys.executable, "-c", script, how], env=env, check=True, capture_output=True, text=True
        ).stdout.split()
        for how in ("cold", "warm")
    ]
    assert said == [["2", "optimized", "False"], ["0", "optimized", "False"]]


def test_a_profile_of_the_same_history_only(cache):
    """What a fallback has seen is not what a graph sees first."""
    x = np.ones((2, 3), np.float32)
    for expected, history in ((0, ()), (1, ()), (0, (tensor_types([x]),)), (1, ())):
        executor = Executor(add_graph(), Options(), history)
        executor.run([x, x]), executor.run([x, x])
        assert executor.counters.profiles_restored == expected


def test_a_profile_of_the_same_runs_only(cache):
    warmed(background=False)
    f = pf.jit(layer, background=False, profiled_runs=2)
    check(f, 8)
    assert counts(f).profiled_runs == 1


def test_another_strategy_compiles_the_stored_profile_anew(cache):
    warmed(background=False, strategy=[("static", 2)])
    f = pf.jit(layer, background=False, strategy=[("dynamic", 1)])
    check(f, 4, 5)
    c = counts(f)
    assert (c.profiled_runs, c.disk_misses, c.guard_misses) == (0, 1, 0)


def test_a_flush_forgets_what_is_stored(cache):
    """R1.14"""
    f = warmed(background=False)
    f.flush()
    check(f, 16)
    assert f.state().tier == "profiling"
    check(f, 16, 4)
    assert counts(f).profiles_restored == 0
    other = pf.jit(layer, background=False)
    check(other, 16)
    assert counts(other).guard_hits == 1, "the profile after the flush is the stored one"


def test_profiles_of_users_ops_are_not_stored(cache):
    with pf.register_profiled_ops(lambda op: op.name == "reshape"):
        warmed(background=False)
        f = pf.jit(layer, background=False)
        check(f, 4)
        assert counts(f).profiles_restored == 0


def test_a_corrupt_profile_is_recorded_anew(cache):
    warmed(background=False)
    for file in cache.files():
        if file.size < 4096:  # profiles
            file.path.write_bytes(file.path.read_bytes()[:-3])
    f = pf.jit(layer, background=False)
    check(f, 4, 4)
    assert counts(f).profiled_runs == 1
    assert "disk-corrupt" in [e.kind for e in pf.events()]
    again = pf.jit(layer, background=False)
    check(again, 4)
    assert counts(again).profiled_runs == 0


@pytest.mark.parametrize("background", [False, True])
def test_what_is_compiled_is_printed_once(monkeypatch, background):
    """Without a profile to restore nothing is looked up, so the request is made once."""
    made = []
    to_mlir = Module.to_mlir
    monkeypatch.setattr(Module, "to_mlir", lambda self: made.append(self) or to_mlir(self))
    f = pf.jit(lambda x: np.tanh(x) * 2, background=background, profiled_runs=0)
    f(W)
    assert f.wait(30)
    executor = executor_of(f)
    assert sum(module is executor.record.module for module in made) == 1


# --- files -------------------------------------------------------------------------------------


def test_a_saved_function_needs_neither_source_nor_profile(tmp_path):
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    f = pf.load(path)
    check(f, 8, 4)
    c = counts(f)
    assert (c.profiled_runs, c.evaluated_ops, c.profiles_restored) == (0, 0, 2)
    assert str(path) in f.explain()
    check(f, 5, 5)
    assert counts(f).profiled_runs == 1, "it goes on learning"
    check(pickle.loads(pickle.dumps(f)), 8)


def test_a_saved_function_holds_its_captured_arrays(tmp_path):
    path = tmp_path / "f.profuse"
    f = pf.jit(lambda x: x + W, background=False)
    f(W), f(W)
    f.save(path)
    kept, W[0, 0] = W[0, 0], 100
    try:
        assert pf.load(path)(np.zeros_like(W))[0, 0] == kept
    finally:
        W[0, 0] = kept


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).astype(">f8"),
        np.arange(24.0).reshape(4, 6)[::-2, ::2],
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(4, dtype=dtype_of_mlir("bf16").numpy),
        np.array(2.5),
        np.zeros((0, 3)),
    ],
    ids=["big-endian", "strided", "fortran", "bf16", "rank-0", "empty"],
)
def test_captured_arrays_of_any_layout_are_saved_by_value(tmp_path, array):
    path = tmp_path / "f.profuse"
    f = pf.jit(lambda x: np.add(x, array), background=False)
    expected = f(np.float32(1))
    f.save(path)
    got = pf.load(path)(np.float32(1))
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    np.testing.assert_array_equal(expected, np.add(np.float32(1), array))


def test_a_saved_function_joins_traces(tmp_path):
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    f = pf.load(path)
    outer = pf.jit(lambda p: f(p, n=2.0)["y"] + 1, background=False)
    for _ in range(2):
        np.testing.assert_allclose(outer(arguments(4)), layer(arguments(4), n=2.0)["y"] + 1, rtol=1e-6)
    assert counts(outer).kernel_launches == 1


@pytest.mark.parametrize("unsupported", ["python", "raise"])
def test_other_arguments_are_refused_in_words(tmp_path, unsupported):
    """Python cannot run the call, as there is no Python code."""
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    told = r"saved for other arguments.*float32 of rank 2"
    with pf.knobs.override(unsupported=unsupported), pytest.raises(pf.ArgumentError, match=told):
        pf.load(path)(arguments(4), n=2)


def test_a_loaded_graph_can_be_saved(tmp_path):
    text, path = tmp_path / "g.mlir", tmp_path / "g.profuse"
    text.write_text(
        "func.func @g(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        '  %y = "profuse.exp"(%x) : (tensor<?xf32>) -> tensor<?xf32>\n'
        "  return %y : tensor<?xf32>\n}\n"
    )
    g = pf.load(text, background=False)
    x = np.ones(3, np.float32)
    g(x), g(x)
    g.save(path)
    again = pf.load(path, background=False)
    np.testing.assert_allclose(again(x), np.exp(x), rtol=1e-6)
    assert counts(again).profiled_runs == 0
    assert counts(again).kernel_launches == 1


def test_a_profile_steers_another_process(tmp_path):
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    f = pf.jit(layer, profile=path, background=False)
    check(f, 4, 8)
    c = counts(f)
    assert (c.profiled_runs, c.guard_hits, c.guard_misses) == (0, 2, 1)


def test_a_profile_of_another_graph_is_told(tmp_path):
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    f = pf.jit(lambda x: np.exp(x) + 1, profile=path, background=False)
    f(W)
    assert counts(f).profiles_restored == 0
    assert f"profiled anew: what {path} holds differs in the graph" in f.explain()
    with pf.knobs.override(cache=True, cache_dir=str(tmp_path / "cache")):
        pf.jit(lambda x: np.exp(x) + 1, background=False).warmup(W)
        f = pf.jit(lambda x: np.exp(x) + 1, profile=path, background=False)
        f(W)
    assert counts(f).profiles_restored == 1
    assert f"profile taken from the disk cache: what {path} holds differs" in f.explain()
    assert "profiled anew" not in f.explain()


def test_a_file_of_another_format_is_refused(tmp_path):
    """What an earlier version wrote of guards is not taken for what this one writes."""
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    with open(path, "rb") as file:
        entry = CacheEntry.from_file(file)
    assert entry.key.parts == {"saved": "2"}
    path.write_bytes(replace(entry, key=Key({"saved": "1"})).to_bytes())
    with pytest.raises(pf.FileError, match="of format 1, not 2"):
        pf.load(path)


def test_only_the_target_differs(tmp_path):
    """The profile is used, the code is not, and which part differs is said."""
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    saved = SavedFile.read(path)
    entries = []
    for entry in saved.entries:
        parts = dict(entry.key.parts)
        if "cpu" in parts:
            parts["cpu"] = "pentium4"
        entries.append(type(entry)(type(entry.key)(parts), *list(vars(entry).values())[1:4]))
    SavedFile(saved.path, saved.name, saved.graphs, tuple(entries)).write(path)
    f = pf.load(path, background=False)
    check(f, 4)
    c = counts(f)
    assert (c.profiled_runs, c.kernels_compiled, c.kernel_launches) == (0, 2, 1)
    assert re.search(r"compiled anew: .*cpu \('.*' here, 'pentium4' there\)", f.explain())


def test_a_released_function_can_be_saved(tmp_path):
    """R1.13: what saving needs of the record outlives it."""
    path = tmp_path / "f.profuse"
    with pf.knobs.override(release_profiling_graph=True):
        f = pf.jit(layer, background=False, profiled_runs=0)
        check(f, 4)
        f.save(path)
        assert next(e for e in executors(f)[0].chain()).released
    g = pf.load(path, background=False)
    check(g, 4)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda data: data[:-1], "damaged"),
        (lambda data: data[:40], "damaged"),
        (lambda data: data[:300] + bytes([data[300] ^ 1]) + data[301:], "damaged"),
        (lambda data: b"profuse-cache 1\n", "damaged"),
    ],
)
def test_damaged_files_are_refused(tmp_path, spoil, message):
    path = tmp_path / "f.profuse"
    warmed(background=False).save(path)
    path.write_bytes(spoil(path.read_bytes()))
    for use in (pf.load, lambda p: pf.jit(layer, profile=p)):
        with pytest.raises(pf.FileError, match=message):
            use(path)


def test_entries_of_the_cache_are_no_functions(cache):
    warmed(background=False)
    with pytest.raises(pf.FileError, match="a cache entry"):
        pf.load(cache.files()[0].path)


def test_what_cannot_be_saved_or_loaded(tmp_path):
    f = pf.jit(layer)
    with pytest.raises(pf.ArgumentError, match="no graph to save"):
        f.save(tmp_path / "f.profuse")
    check(f, 4)
    with pytest.raises(pf.FileError, match="cannot write"):
        f.save(tmp_path / "nowhere" / "f.profuse")
    for use in (pf.load, f.save, lambda p: pf.jit(layer, profile=p or 3)):
        with pytest.raises(pf.ArgumentError, match="needs the path of a file"):
            use(None)
    with pytest.raises(pf.FileError, match="cannot read"):
        pf.load(tmp_path / "missing.profuse")
    for name, hinted in (("junk.profuse", True), ("junk.mlir", False)):
        (tmp_path / name).write_text("hello")
        with pytest.raises(pf.IRError, match="hello") as caught:
            pf.load(tmp_path / name)
        assert ("what save() writes" in str(caught.value)) == hinted
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        for use in (pf.load, lambda p: pf.jit(layer, profile=p)):
            with pytest.raises(pf.FileError, match="no regular file"):
                use(path)
