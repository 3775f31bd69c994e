"""The disk cache: what an entry depends on, what a miss says, what is not looked up or kept."""

from __future__ import annotations

import importlib.metadata
import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from cached_graphs import (
    IR,
    Asked,
    caching_in,
    copy_of,
    never,
    output_of,
    request,
    start,
)
from profuse.dialect import pipeline as pipelines
from profuse.dialect.passes import base as passes
from profuse.executor import compile as compile_module
from profuse.executor import users_own
from profuse.executor.cache import fingerprint, key
from profuse.executor.cache.key import Key, describe, key_of, nearest
from profuse.executor.knobs import knobs

# --- keys -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("ir", {"ir": IR.replace("tanh", "sin")}),
        ("locations", {"ir": IR.replace('"user.py":4', '"user.py":3')}),
        ("pipeline", {"pipeline": "required"}),
        ("options", {"keep_stages": True}),
        ("options", {"verify_each": True}),
        ("triple", {"target": replace(request().target, triple="other-triple")}),
        ("cpu", {"target": replace(request().target, cpu="other-cpu")}),
        ("features", {"target": replace(request().target, features="+other")}),
    ],
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


def test_what_does_not_matter_to_code_is_not_in_the_key(folder):
    Asked(request())
    assert Asked(request(name="g", repro_dir="elsewhere"), never).counts == (1, 0)


@pytest.mark.parametrize("name", ["profuse", "numpy", "llvmlite", "xtc-mlir-python-bindings"])
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
    for name in fingerprint._DISTRIBUTIONS:
        assert found[name] == importlib.metadata.version(name)


def test_a_version_is_found_however_the_package_was_installed(monkeypatch):
    monkeypatch.setattr(fingerprint, "_installed", dict)
    assert fingerprint.versions.__wrapped__() == fingerprint.versions()
    assert fingerprint._version("no-such-distribution") == "not installed"


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
        "import sys, profuse.executor.compile as c, json\n"
        "from profuse.lowering.target import host_target\n"
        f"c.compile_graph(c.CompileRequest({IR!r}, {request().pipeline!r}, host_target()))\n"
        "print(json.dumps([m for m in sys.modules if m.startswith('profuse.')]))"
    )
    loaded = json.loads(output_of(start(program, Path(os.devnull))))
    # Settings, events, logs and dumps: they are asked about the compile, and make no code.
    aside = {"", ".compile", ".dump", ".events", ".knobs", ".observe", ".observe.log_file",
             ".stress"}  # fmt: skip
    digested = (
            "profuse.executor.cache", "profuse.executor.evaluate", "profuse.executor.proof",
            "profuse.dialect", "profuse.lowering",
        )  # fmt: skip
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
    from profuse.lowering import stages

    def results():
        for error in (pf.LoweringError("none"), pf.InternalError("broken")):

            def fail(*_args, error=error, **_options):
                raise error

            monkeypatch.setattr(stages, "compile_program", fail)
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
def test_a_bad_setting_is_an_error_and_no_reason_to_run_slowly(
    folder, monkeypatch, profiling, name, text
):
    monkeypatch.delitem(knobs.__dict__["_values"], name, raising=False)
    monkeypatch.setenv(f"PROFUSE_{name.upper()}", text)
    with knobs.override(profiling_mode=profiling):
        f = pf.jit(lambda x: np.tanh(x) + 1)
        with pytest.raises(pf.KnobError, match=f"PROFUSE_{name.upper()}='{text}'"):
            f(np.ones(3)), f(np.ones(3))


def test_the_tests_of_this_suite_run_without():
    assert knobs.cache is False
