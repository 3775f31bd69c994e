"""Passes of users around fusion (R1.36): what they see, in which order, and how they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import profuse as pf
import pytest
from internals import last_executor
from profuse.dialect.ir.op import op_named
from profuse.dialect.mlir.rewrite import create, op_class, replace, type_of, walk
from profuse.dialect.passes import load_passes
from profuse.dialect.passes.base import PASSES, Pass, register_pass
from profuse.executor.settings.knobs import knobs
from profuse.executor.settings.user_passes import registered

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


def spy_named(title: str, seen: list) -> None:
    @register_pass
    @dataclass(frozen=True)
    class Spy(Pass):
        """Keep the text of the module."""

        name: ClassVar[str] = title

        def run(self, module):
            seen.append((title, str(module)))


@pytest.fixture
def seen():
    """What the passes ``spy-1`` and ``spy-2`` have seen."""
    found: list = []
    load_passes()
    known = set(PASSES)
    spy_named("spy-1", found)
    spy_named("spy-2", found)
    yield found
    for name in set(PASSES) - known:
        del PASSES[name]


@pytest.fixture
def hooks():
    """Registrations that end with the test."""
    made: list = []
    yield made
    for registration in made:
        registration.remove()
    assert registered() == ("", "")


def twice(f):
    f(X)
    return f(X)


def test_spies_see_the_graph_before_and_after_fusion(seen, hooks):
    """R1.36"""
    hooks.append(pf.register_pass_before_fusion("spy-1"))
    hooks.append(pf.register_pass_after_fusion("spy-2"))
    f = pf.jit(lambda x: np.exp(x) + 1)
    f(X)
    assert seen == [], "nothing runs before the graph is optimised"
    f(X), f(X)
    assert [name for name, _ in seen] == ["spy-1", "spy-2"]
    before, after = (text for _, text in seen)
    assert "profiled_type = tensor<3x4xf32" in before
    assert "fusion_group" not in before
    assert "fusion_group" in after
    assert "profuse.type_check" in after
    assert "fallback_graph" in after, "fallbacks are made of what the pass leaves"


def test_several_passes_run_in_the_order_of_registration(seen, hooks):
    """R1.36: a text may name several passes, with options, and MLIR's own."""
    hooks.append(pf.register_pass_before_fusion("spy-2,canonicalize"))
    hooks.append(pf.register_pass_before_fusion("dce,spy-1"))
    f = pf.jit(lambda x: np.exp(x) + 1)
    twice(f)
    assert [name for name, _ in seen] == ["spy-2", "spy-1"]
    assert "pre-fusion=(spy-2,canonicalize,dce,spy-1)" in last_executor(f).request.pipeline


def test_a_removed_pass_runs_no_more(seen):
    """R1.36: removing twice does nothing; graphs optimised before keep their plan."""
    registration = pf.register_pass_before_fusion("spy-1")
    f, g = pf.jit(lambda x: np.exp(x) + 1), pf.jit(lambda x: np.exp(x) + 2)
    twice(f)
    registration.remove()
    registration.remove()
    twice(g)
    assert len(seen) == 1


def test_passes_run_on_fallbacks_as_well(seen, hooks):
    """R1.36, R1.44: each is a graph of its own that is optimised."""
    hooks.append(pf.register_pass_before_fusion("spy-1"))
    f = pf.jit(lambda x: np.exp(x) + 1)
    twice(f)
    f(X[:2]), f(X[:2])
    assert len(seen) == 2
    assert "tensor<2x4xf32" in seen[1][1]


@pytest.mark.parametrize("register", [pf.register_pass_before_fusion, pf.register_pass_after_fusion])
def test_without_the_general_fuser_passes_run_all_the_same(seen, hooks, register):
    """R1.36"""
    hooks.append(register("spy-1"))
    with knobs.override(general_fuser=False):
        twice(pf.jit(lambda x: np.exp(x) + 1))
    assert len(seen) == 1
    assert "fusion_group" not in seen[0][1]


def test_a_pass_can_change_what_is_fused(seen, hooks):
    """R1.36: the compiled function computes what the pass made of the graph."""

    @register_pass
    @dataclass(frozen=True)
    class ExpToTanh(Pass):
        """Replace exp by tanh."""

        name: ClassVar[str] = "exp-to-tanh"

        def run(self, module):
            for op in list(walk(module.operation)):
                if op_class(op) is op_named("exp"):
                    types = [type_of(op.results[0])]
                    made = create(op_named("tanh"), list(op.operands), {}, types, op)
                    replace(op, list(made.results))

    hooks.append(pf.register_pass_before_fusion("exp-to-tanh"))
    f = pf.jit(lambda x: np.exp(x) + 1)
    np.testing.assert_allclose(twice(f), np.tanh(X) + 1, rtol=1e-6)
    assert f.state().counters["kernels_compiled"] == 1


def test_a_failing_pass_pins_the_graph_to_tier_0_with_a_line_that_replays_it(seen, hooks):
    """R1.36: values are right, and the reason names the pass."""

    @register_pass
    @dataclass(frozen=True)
    class Broken(Pass):
        """Fail."""

        name: ClassVar[str] = "broken"

        def run(self, module):
            raise RuntimeError("out of luck")

    hooks.append(pf.register_pass_after_fusion("broken"))
    f = pf.jit(lambda x: np.exp(x) + 1)
    np.testing.assert_allclose(twice(f), np.exp(X) + 1, rtol=1e-6)
    state = f.state()
    assert state.tier == "simple"
    assert state.counters["compile_failures"] == 1
    assert any("pass broken failed: RuntimeError: out of luck" in r for r in state.reasons)
    assert any("profuse-opt -p" in r and "broken" in r for r in state.reasons)


@pytest.mark.parametrize("register", [pf.register_pass_before_fusion, pf.register_pass_after_fusion])
@pytest.mark.parametrize("text", ["no-such-pass", "dce{", "dce{depth=3}", "func.func(dce)"])
def test_unknown_passes_are_refused_when_they_are_registered(register, text):
    """R1.36"""
    with pytest.raises(pf.PipelineError):
        register(text)
    assert registered() == ("", "")


def test_opt_runs_a_registered_pass_of_another_module(tmp_path):
    """R1.36: what the engine runs, profuse-opt can run."""
    (tmp_path / "mine.py").write_text(
        "from dataclasses import dataclass\n"
        "from typing import ClassVar\n"
        "from profuse.dialect.passes.base import Pass, register_pass\n"
        "@register_pass\n"
        "@dataclass(frozen=True)\n"
        "class Mine(Pass):\n"
        "    '''Print a line.'''\n"
        "    name: ClassVar[str] = 'mine'\n"
        "    def run(self, module):\n"
        "        print('mine has run')\n"
    )
    package_parent = str(Path(pf.__file__).parents[1])
    command = [sys.executable, "-m", "profuse.tools.opt", "--load", "mine", "-p", "mine"]
    done = subprocess.run(
        command,
        input="",
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join((str(tmp_path), package_parent))},
    )
    assert done.returncode == 0, done.stderr
    assert "mine has run" in done.stdout
    command[command.index("mine")] = "no_such_module"
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "cannot import no_such_module" in done.stderr
