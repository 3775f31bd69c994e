"""Targets: the width of vectors as a preference among their features."""

from dataclasses import replace

import pytest
from graphs import Graph, tensor
from profuse.dialect.errors import KnobError
from profuse.dialect.ir.dtypes import I64
from profuse.executor.compile.cache.cache_key import key_of
from profuse.executor.compile.request import CompileRequest
from profuse.executor.plans.host_backend import target as target_of_calls
from profuse.executor.settings.knobs import knobs
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import Target, host_target

OLD = "+avx2,+avx512f,+avx512vl,-avx512bf16,-avxvnni"
NEW = "+avx2,+avx512f,+avx512vl,+avx512bf16"


def target(features, cpu="made-up"):
    return Target("x86_64-unknown-linux-gnu", cpu, features)


@pytest.mark.parametrize(
    ("features", "width", "wanted"),
    [
        (NEW, 0, f"{NEW},-prefer-256-bit"),
        (NEW, 256, f"{NEW},+prefer-256-bit"),
        (NEW, 512, f"{NEW},-prefer-256-bit"),
        ("+avx512f,+avx512vl,+avxvnni", 0, "+avx512f,+avx512vl,+avxvnni,-prefer-256-bit"),
        (OLD, 0, OLD),
        (OLD, 512, f"{OLD},-prefer-256-bit"),
        ("+avx2,-avx512f,+avxvnni", 0, "+avx2,-avx512f,+avxvnni"),
        ("+avx2", 512, "+avx2"),
        ("+neon", 256, "+neon"),
        ("", 512, ""),
    ],
)
def test_a_width_is_a_feature_where_there_is_a_choice(features, width, wanted):
    found = target(features).preferring(width)
    assert found == target(wanted)
    assert found.preferring(width) == found, "there is one preference at a time"
    assert found.machine == target(features)
    assert found.preferring(256).preferring(0) == target(features).preferring(0)


@pytest.mark.parametrize(
    ("cpu", "loads"), [("cascadelake", True), ("icelake-server", True), ("sapphirerapids", False), ("znver4", False)]
)
def test_gathers_are_avoided_where_they_take_longer_than_loads(cpu, loads):
    found = target(OLD, cpu).without_slow_gathers()
    assert found.features == (f"{OLD},+prefer-no-gather" if loads else OLD)
    assert found.preferring(512).features.count("gather") == loads


@pytest.mark.parametrize("cpu", ["cascadelake", "sapphirerapids"])
def test_code_has_gathers_or_not(cpu):
    g = Graph(tensor(100), tensor(1000, dtype=I64))
    program = g.returning(g.exp(g.take(*g.inputs, axis=0)))
    machine = Target(host_target().triple, cpu, "+avx2,+avx512f,+avx512vl,+fma")
    kernel = compile_program(program, machine.without_slow_gathers(), keep_stages=True)
    assert ("gather" in kernel.stages["asm"]) == (cpu == "sapphirerapids")


def test_the_width_is_in_the_cache_key():
    keys = [key_of(CompileRequest("module {}", "cse", target(NEW).preferring(width))) for width in (256, 512)]
    assert keys[0].digest != keys[1].digest
    assert keys[0].differing(keys[1]) == ["features"]


@pytest.mark.parametrize("width", ["auto", "256", 512])
def test_the_setting_reaches_compiles(width):
    with knobs.override(vector_width=width):
        found = target_of_calls("")
    assert found == host_target().machine.preferring(0 if width == "auto" else int(width))
    assert found.machine == host_target().machine
    assert replace(found, features="") == replace(host_target(), features="")


def test_other_widths_are_refused():
    for width in (0, 1, 128, "wide", ""):
        with pytest.raises(KnobError, match="expected one of auto, 256, 512"):
            knobs.vector_width = width
