"""What tests compile by, see compiling.py: a memo that nothing notices, and quick code."""

import functools

import numpy as np
import profuse as pf
import profuse.executor.compile.compiler as compiler
import pytest
from compiling import Memo, compiles_as_ever, quick_code
from every_case import EVERY_CASE
from profuse.dialect.passes.cleanup import cse
from profuse.dialect.pipeline.options import PipelineOptions
from profuse.executor.compile import group_kernels
from profuse.executor.compile.compiler import compile_cached
from profuse.executor.compile.request import CompileRequest
from profuse.executor.interpret import evaluate
from profuse.executor.memory import thread_block
from profuse.executor.settings.events import Counters
from profuse.executor.tiers.keyed import KeyedExecutor
from profuse.lowering.schedule import scheduling
from profuse.lowering.target import host_target

pytestmark = pytest.mark.optimised  # or else quick code would be the default here
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)


def warmed():
    """A function of its own, with a kernel, and what it gives."""
    f = pf.jit(lambda x: (np.tanh(x) * 2 + x).sum(axis=1))
    for _ in range(3):
        result = f(X)
    return f, result


@pytest.mark.compiles
def test_equal_requests_are_compiled_once_and_counted_each_time(tmp_path):
    memo = Memo(tmp_path)
    with memo.used():
        first, result = warmed()
        again, same = warmed()
    assert memo.hits == 1
    assert first.state().counters == again.state().counters
    assert first.state().counters["compiles"] == 1
    np.testing.assert_array_equal(result, same)
    assert first.explain().count("kernel") == again.explain().count("kernel")


@pytest.mark.compiles
def test_code_of_one_mode_does_not_serve_another(tmp_path):
    memo = Memo(tmp_path)
    with memo.used():
        for wanted in (True, False, True):
            with quick_code(wanted):
                warmed()
    assert memo.hits == 1


@pytest.mark.compiles
def test_what_is_not_plain_is_compiled_anew(tmp_path):
    memo, request = Memo(tmp_path), _request()
    with memo.used():
        for _ in range(2):
            compile_cached(_request(keep_stages=True), Counters())
        assert memo.hits == 0
        made, found = (compile_cached(request, Counters()) for _ in range(2))
    assert memo.hits == 1
    assert (found.ir, found.trace, found.checks) == (made.ir, made.trace, made.checks)
    assert {n: k.object for n, k in found.kernels.items()} == {n: k.object for n, k in made.kernels.items()}


@pytest.mark.compiles
def test_what_a_compile_may_use_is_not_replaced_unnoticed(tmp_path, monkeypatch):
    memo = Memo(tmp_path, lambda: compiles_as_ever(monkeypatch))
    with memo.used():
        warmed()
        monkeypatch.setattr(thread_block, "frame", thread_block.frame)
        monkeypatch.setattr(KeyedExecutor, "run", KeyedExecutor.run)
        warmed()
        assert memo.hits == 1
        for module in (scheduling, cse, evaluate, group_kernels, np):
            with monkeypatch.context() as patches:
                memo.is_in_use = functools.partial(compiles_as_ever, patches)
                patches.setattr(module, "__doc__", module.__doc__)
                warmed()
                patches.undo()
                patches.setenv("SOME_VARIABLE", "1")
                warmed()
        assert memo.hits == 1


@pytest.mark.skipif(EVERY_CASE, reason="each request is compiled")
def test_the_memo_of_a_test_is_told_what_the_test_replaces(monkeypatch):
    memo = compiler.compile_graph.func.__self__
    assert memo.is_in_use()
    monkeypatch.setattr(scheduling, "schedule", scheduling.schedule)
    assert not memo.is_in_use()


@pytest.mark.skipif(not host_target().triple.startswith("x86"), reason="names of x86's registers")
def test_quick_code_has_no_vectors():
    vectors = []
    for wanted in (True, False):
        with quick_code(wanted):
            (kernel,) = compile_cached(_request(keep_stages=True), Counters()).kernels.values()
        vectors.append(kernel.stages["asm"].count("%ymm") + kernel.stages["asm"].count("%zmm"))
    quick, optimised = vectors
    assert quick == 0 < optimised


def _request(**options) -> CompileRequest:
    ir = """
    module {
      func.func @f(%0: !profuse.tensor) -> (!profuse.tensor) {
        %1 = "profuse.profile"(%0) {profiled_type = tensor<64xf32, {strides = "contiguous"}>, site = 0 : i64} : (!profuse.tensor) -> !profuse.tensor
        %2 = "profuse.mul"(%1, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
        %3 = "profuse.add"(%2, %1) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
        return %3 : !profuse.tensor
      }
    }
    """  # noqa: E501
    return CompileRequest(ir, PipelineOptions().optimizing(), None, name="f", **options)
