"""A fuser may have a class of groups of its own: everything treats it like `FusionGroup`."""

import numpy as np
import profuse as pf
import pytest
from internals import slow_kernels
from profuse.dialect.ir.op import OPS
from profuse.dialect.ops.speculation import FusionGroup
from profuse.dialect.passes.speculate.form_fusions import Fusions
from profuse.dialect.passes.speculate.loop_members import LoopOutliner

pytestmark = pytest.mark.compiles  # the compiler is not the usual one

X = np.linspace(-1, 1, 1 << 16, dtype=np.float32)


def f_chain(x):
    return np.tanh(x) * x + np.tanh(x[::-1]).sum()


def f_loop(x):
    y = x
    for _ in range(100):
        y = np.tanh(y) * 0.5 + x
    return y.sum() - y


def f_branch(x):
    if x.sum() > 100:
        return np.exp(x) - x
    return np.tanh(x.T) + 1


@pytest.fixture
def renamed(monkeypatch):
    """Fusers make groups of a subclass of `FusionGroup`."""

    class OtherGroup(FusionGroup, name="other_group"):
        """A group of another fuser."""

    for fuser in (Fusions, LoopOutliner):
        monkeypatch.setattr(fuser, "call", OtherGroup)
    yield
    del OPS[OtherGroup.full_name()]


def observed(f, *args):
    """The IR of a function that has been called with these, then with others, and its counts."""
    other = [x[..., 1:] for x in args]
    made = pf.jit(f)
    for values in (args, args, args, other, other, other, args):
        np.testing.assert_allclose(made(*values), f(*values), rtol=1e-4, atol=1e-4)
    state = made.state()
    return made.ir("optimized"), state.counters, [str(reason) for reason in state.reasons], state.emitted


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ops", [2, 128], ids=["many-groups", "one-group"])
@pytest.mark.parametrize("f", [f_chain, f_loop, f_branch], ids=lambda f: f.__name__)
def test_a_group_of_a_subclass_is_compiled_guarded_run_and_counted(request, f, ops):
    x = X.reshape(256, 256)[:, :200]
    with pf.knobs.override(max_fusion_ops=ops):
        ir, counters, reasons, native = observed(f, x)
        request.getfixturevalue("renamed")
        renamed_ir, *others = observed(f, x)
    assert counters["kernel_launches"] > 0 and counters["guard_misses"] > 0
    assert "fusion_group" in ir and "fusion_group" not in renamed_ir
    assert renamed_ir.replace("other_group", "fusion_group") == ir
    assert others == [counters, reasons, native]


def test_a_slow_group_of_a_subclass_is_demoted(monkeypatch, renamed):
    slow_kernels(monkeypatch, 0.01)
    with pf.knobs.override(demote=True, threads=1):
        _, counters, _, _ = observed(lambda x: np.tanh(x) + 1, X)
    assert counters["demotions"] == counters["compiles"] > 0
    assert (counters["kernels_compiled"], counters["kernel_launches"]) == (0, 0)


def test_strict_fusion_accepts_a_group_of_a_subclass(renamed):
    with pf.strict_fusion():
        f = pf.jit(lambda x: np.tanh(x) + 1)
        for _ in range(2):
            np.testing.assert_allclose(f(X), np.tanh(X) + 1, rtol=1e-5)
    assert f.state().counters["kernels_compiled"] == 1
