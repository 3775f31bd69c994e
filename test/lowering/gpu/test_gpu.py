"""Launch plans of GPU functions, and their machine code."""

import numpy as np
import pytest
from graphs import Graph, tensor
from needs import needs_ptxas
from profuse.dialect.errors import LoweringError
from profuse.dialect.ir.dtypes import F16, F64, I64
from profuse.lowering.gpu.gpu_stages import compile_gpu
from profuse.lowering.gpu.launch_plan import Choice, Condition, Launch, LaunchPlan, holds
from profuse.lowering.gpu.nvvm import assemble


def plan_of(program):
    return compile_gpu(program, "sm_90", until="gpu", keep_stages=True).plan


def added(*shape, dtype=None):
    g = Graph(*[tensor(*shape, **({"dtype": dtype} if dtype else {}))] * 2)
    return g.returning(g.add(*g.inputs))


def names(plan, aligned=True, **sizes):
    return [s.kernel for s in plan.launches(sizes, lambda number, count: aligned)]


def test_vectors_need_aligned_inputs():
    plan = plan_of(added(64, 64))
    assert names(plan) == ["kernel_nest0"]
    assert names(plan, aligned=False) == ["kernel_nest0_general"]


def test_an_unaligned_input_chooses_the_general_kernel_whichever_it_is():
    plan = plan_of(added(64, 64))
    asked = []
    list(plan.launches({}, lambda number, count: asked.append((number, count)) or True))
    assert sorted(asked) == [(0, 16), (1, 16)]


@pytest.mark.parametrize("size, name", [(2**29, "kernel_nest0"), (2**30, "kernel_nest0_general")])
def test_offsets_past_32_bits_are_the_general_kernels(size, name):
    assert names(plan_of(added("n")), n=size) == [name]


def test_static_sizes_need_no_condition_on_them():
    (step,) = plan_of(added(64, 64)).steps
    assert {c.kind for c in step.conditions} == {"aligned"}


def test_nothing_is_launched_over_nothing():
    assert names(plan_of(added("n")), n=0) == []


def test_grids_follow_sizes():
    plan = plan_of(added("n"))
    (launch,) = plan.launches({"n": 100_000}, lambda number, count: True)
    assert launch.grid == ("98", "1", "1")  # 256 threads with 4 elements each
    assert launch.block == ("256", "1", "1")


def test_vectors_have_sixteen_bytes_of_every_type():
    for dtype, width in ((F16, 8), (None, 4), (F64, 2), (I64, 2)):
        found = compile_gpu(added(4096, dtype=dtype), "sm_90", until="gpu", keep_stages=True).stages["gpu"]
        assert f"vector<{width}x" in found


def test_conditions():
    def never(number, count):
        return False

    assert holds(Condition("divisible", "n*3", 4), {"n": 8}, never)
    assert not holds(Condition("divisible", "n*3", 4), {"n": 3}, never)
    assert holds(Condition("below", "n", 10), {"n": 9}, never)
    assert not holds(Condition("below", "n", 10), {"n": 10}, never)
    assert not holds(Condition("aligned", 0, 16), {}, never)


def test_a_choice_is_made_by_all_of_its_conditions():
    launch = Launch("a", ("n", "1", "1"), ("32", "1", "1"), ())
    other = Launch("b", ("n", "1", "1"), ("32", "1", "1"), ())
    conditions = (Condition("below", "n", 5), Condition("divisible", "n", 2))
    plan = LaunchPlan("f", None, (Choice(conditions, (launch,), (other,)),))
    assert [names(plan, n=n) for n in (4, 3, 6)] == [["a"], ["b"], ["b"]]


def test_a_full_reduction_takes_two_kernels_and_a_small_one_takes_one():
    g = Graph(tensor(1 << 20))
    assert names(plan_of(g.returning(g.sum(*g.inputs)))) == ["kernel_nest0", "kernel_nest0_chunks"]
    g = Graph(tensor(1000))
    assert names(plan_of(g.returning(g.sum(*g.inputs)))) == ["kernel_nest0"]


def test_unknown_stages_are_refused():
    with pytest.raises(LoweringError, match="no stage 'object'"):
        compile_gpu(added(4), "sm_90", until="object")


@needs_ptxas
def test_what_ptxas_refuses_is_told():
    with pytest.raises(LoweringError, match="ptxas refuses"):
        assemble(".version 7.8\n.target sm_90\nnonsense\n", "sm_90")


@needs_ptxas
def test_machine_code():
    artifact = compile_gpu(added(64, 64), "sm_90")
    assert artifact.code[:4] == b"\x7fELF"
    assert set(artifact.usage) == {"kernel_nest0", "kernel_nest0_general"}
    assert all(u.spilled == 0 and 0 < u.registers <= 64 for u in artifact.usage.values())
    assert np.all([s > 0 for s in artifact.seconds.values()])
