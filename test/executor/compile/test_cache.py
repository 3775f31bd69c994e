"""The disk cache: what it returns, and where the user's code may move meanwhile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import profuse as pf
import pytest
from cached_graphs import IR, Asked, copy_of, never, only_file, output_of, request, result, start
from profuse.dialect.errors import Loc
from profuse.dialect.reasons import Effect, Kind, Reason
from profuse.executor.compile import compiler as compile_module
from profuse.executor.compile.cache.cache_key import key_of
from profuse.executor.compile.cache.source_locations import SourceLocations
from profuse.executor.settings.knobs import knobs
from profuse.executor.tiers.profiling import Executor, Options
from small_graphs import add_graph

# --- hits -----------------------------------------------------------------------------------------


def test_the_second_compile_of_a_graph_is_read_from_the_disk(folder):
    first = Asked(request())
    assert (first.kinds, first.counts) == (["disk-miss", "disk-store"], (0, 1))
    assert not first.result.found_in
    again = Asked(request(), never)
    assert (again.kinds, again.counts) == (["disk-hit"], (1, 0))
    assert again.result.found_in == "the disk cache"
    assert only_file(folder).digest == key_of(request()).digest


def test_what_comes_back_is_what_was_compiled(folder):
    """Only its costs are others: those of reading."""
    Asked(request())
    found, made = Asked(request(), never).result, result()
    assert made.kernels, "the graph of this test has to have a kernel"
    assert found.module.to_mlir() == made.module.to_mlir()
    for name in ("ir", "kernels", "failures", "refusals", "sizes", "trace"):
        assert getattr(found, name) == getattr(made, name), name
    assert list(found.seconds) == ["disk cache"]


def test_failures_refusals_and_stages_come_back(folder):
    """A missing lowering is a property of the graph: it is kept."""
    given = request(keep_stages=True)
    made = compile_module.compile_graph(given)
    assert all(kernel.stages for kernel in made.kernels.values())
    given_place, other = Loc("user.py", 3), Loc("other.py", 4, 5)
    made.failures["g"] = Reason(Kind.NOT_LOWERED, detail="no lowering", hint="none")
    made.refusals += [
        Reason(Kind.VARYING_SIZE, "exp", operand=2, effect=Effect.NOT_FUSED, loc=given_place),
        Reason(Kind.LARGE_INTEGER, "add", detail="u8", subject="300", loc=other, count=3),
    ]
    Asked(given, lambda _: made)
    found = Asked(given, never).result
    assert (found.failures, found.refusals) == (made.failures, made.refusals)
    assert found.kernels == made.kernels


def test_an_executor_hits_what_another_has_stored(folder, monkeypatch):
    """Counted as a compile that took no compiler, and told as such."""

    def two_calls():
        executor = Executor(add_graph(), Options())
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        outputs = [executor.run([x, x]) for _ in range(2)]
        np.testing.assert_array_equal(outputs[0][0], outputs[1][0])
        return executor.counters

    made = two_calls()
    assert (made.disk_hits, made.disk_misses, made.compiles) == (0, 1, 1)
    monkeypatch.setattr(compile_module, "compile_graph", never)
    found = two_calls()
    assert (found.disk_hits, found.disk_misses, found.compiles) == (1, 0, 1)
    assert found.kernel_launches == 2, "it has the profile, too"


def test_every_stage_can_be_seen_after_a_hit(folder):
    """Those that are not kept are made again, as they are without the cache."""

    def stages():
        f = pf.jit(lambda x: np.tanh(x) + 1)
        f(np.ones(3)), f(np.ones(3))
        assert len(f.ir("asm")) > 100
        return f.state().counters["disk_hits"], [f.ir(s) for s in ("optimized", "linalg", "llvm")]

    (misses, made), (hits, found) = stages(), stages()
    assert (misses, hits) == (0, 1)
    assert found == made


def test_explain_says_where_the_code_came_from(folder):
    def text():
        f = pf.jit(lambda x: np.tanh(x) + 1)
        f(np.ones(3)), f(np.ones(3))
        return f.explain()

    lines = [text() for _ in range(2)]
    assert "not in the disk cache: the cache is empty" in lines[0]
    assert "loaded 1 kernel from the disk cache" in lines[1]
    assert "and loaded a static specialisation with 1 kernel from the disk cache" in lines[1]


def test_the_spec_keyed_executor_uses_it(folder, profiling_off):
    """Plans and the fallback plan alike (R2.5, R2.6)."""

    def counts():
        f, plain = (pf.jit(lambda x: np.tanh(x) + 1) for _ in range(2))
        f(np.ones(3, np.float32))
        with knobs.override(optimize=False):
            plain(np.ones(3, np.float32))
        counters = f.state().counters
        assert counters["kernel_launches"] == counters["cache_misses"] == 1
        disk = [counters[n] + plain.state().counters[n] for n in ("disk_hits", "disk_misses")]
        return *disk, f.explain()

    made, found = counts(), counts()
    assert made[:2] == (0, 2)
    assert "not in the disk cache: the cache is empty" in made[2]
    assert found[:2] == (2, 0)


PROGRAM = """
import sys
import numpy as np, profuse as pf
pf.set_profiling_mode({profiling})
def f(x, b):
    y = np.tanh(x + b) * 0.5
    return (y @ y.T).sum(axis=-1) + np.exp(b).sum()
g = pf.jit(f)
x, b = np.ones((64, 32), np.float32), np.zeros(32, np.float32)
for _ in range({calls}):
    np.testing.assert_allclose(g(x, b), f(x, b), rtol=1e-4)
c = g.state().counters
print(c["kernel_launches"] > 0, c["disk_hits"], c["disk_misses"], "mlir" in sys.modules)
"""


@pytest.mark.parametrize(("profiling", "calls"), [(True, 2), (False, 1)])
def test_a_new_process_runs_native_code_without_mlir(tmp_path, profiling, calls):
    """On its second call, the first being profiled; without profiles on its first."""
    program = PROGRAM.format(profiling=profiling, calls=calls)
    assert output_of(start(program, tmp_path)).split() == ["True", "0", "1", "True"]
    assert output_of(start(program, tmp_path)).split() == ["True", "1", "0", "False"]


# --- places in the user's source ------------------------------------------------------------------

MOVED = IR.replace('"user.py":3', '"cell \\"2\\"\\0A é":33').replace('"user.py":4:0', '"b\\\\c.py":44:5')


def test_moved_code_is_found_and_told_at_its_new_place(folder):
    """As when a line is added above it, or in a notebook, where files are named by process."""
    here, there = ([Loc("user.py", 3), Loc("user.py", 4)], [Loc('cell "2"\n é', 33), Loc("b\\c.py", 44, 5)])
    assert [SourceLocations.of(text).listed for text in (IR, MOVED)] == [tuple(here), tuple(there)]
    made = copy_of(request())
    unfused = Reason(Kind.NEVER_FUSED, "sort", effect=Effect.NOT_FUSED)
    elsewhere = Loc("user.py", 41)
    made.refusals = [replace(unfused, loc=loc) for loc in (here[1], elsewhere)]
    made.failures = {"g": Reason(Kind.NOT_LOWERED, detail="has no lowering", loc=here[0])}
    Asked(request(), lambda _: made)
    found = Asked(request(ir=MOVED), never).result
    assert str(found.failures["g"]) == f"{there[0]}: has no lowering"
    assert found.refusals == [replace(unfused, loc=loc) for loc in (there[1], elsewhere)]
    moved = dict(zip(here, there, strict=True))
    expected = [moved.get(loc, loc) for loc in locations(made.module)]
    assert locations(found.module) == expected
    assert set(there) <= set(expected)
    again = Asked(request(), never).result
    assert (again.refusals, again.failures) == (made.refusals, made.failures)
    assert locations(again.module) == locations(made.module)


def locations(module) -> list:
    programs = (module.main, *module.functions.values())
    return [instr.loc for program in programs for instr in program.body.walk()]


def test_the_function_of_a_moved_file_is_native_on_its_second_call(tmp_path):
    """One that raises names the line that it has now."""
    source = "import numpy as np\n\ndef f(x):\n    y = np.tanh(x)\n    return np.exp(y) * 2\n"
    program = (
        "import sys, numpy as np, profuse as pf, model\n"
        "g, x = pf.jit(model.f), np.ones(9)\n"
        "g(x), g(x)\n"
        "from internals import last_executor\n"
        "text = last_executor(g).result.module.to_mlir()\n"
        "print(g.state().counters['disk_hits'], 'mlir' in sys.modules, 'model.py\":4:' in text, "
        "'model.py\":9:' in text)"
    )
    for name, above in (("one", ""), ("two", "# a line\n" * 5)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.py").write_text(above + source)
    runs = [output_of(start(program, tmp_path / "cache", cwd=tmp_path / d)) for d in ("one", "two")]
    assert [run.split() for run in runs] == [["0", "True", "True", "False"], ["1", "False", "False", "True"]]
