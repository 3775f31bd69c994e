"""Device groups behind relaxed guards on an emulated device: one kernel for all sizes of a rank (R3.42, A6)."""

from __future__ import annotations

import random
from collections import Counter

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from support import host

FUNCTIONS = [
    (lambda x, y: np.tanh(x + y) * x, (2, 2)),
    (lambda x, y: (x * y).sum(axis=1), (2, 1)),
    (lambda x, y: x[:, : x.shape[1] // 2] * y + y, (2, 2)),
    (lambda x, y: np.concatenate([x, y]) * 2 + 1, (2, 2)),
    (lambda x, y: (x.reshape(-1) + y) * 2, (2, 1)),
    (lambda x, y: (x[1:] - y) * y, (1, 1)),
]
CASES = range(len(FUNCTIONS)) if EVERY_CASE else (0, 2, 4)


@pytest.fixture(autouse=True)
def fused(device):
    """The fuser of device groups is on, of which the emulated driver is the device."""
    pf.set_device_fusion(True)
    yield
    pf.set_device_fusion(None)


def test_a6_six_shapes_of_a_rank_are_one_compile_without_a_miss():
    f = pf.jit(FUNCTIONS[0][0], background=False)
    for shape in ((8, 8), (4, 6), (16, 32), (7, 7), (5, 9), (3, 2)):
        for _ in range(3):
            x = host(*shape)
            np.testing.assert_allclose(f(xp.array(x), xp.array(x)).get(), np.tanh(x + x) * x, rtol=1e-5)
    names = "compiles", "kernels_compiled", "kernel_launches", "guard_hits", "guard_misses"
    assert [f.state().counters[name] for name in names] == [1, 1, 17, 17, 0]


def test_a6_misfits_never_reach_a_kernel():
    """A kernel for (8, 8) and (8, 8) would read past the second of (8, 8) and (5, 8)."""
    f = pf.jit(lambda x, y: (x + y) * 2, background=False)
    x = host(8, 8)
    for _ in range(2):
        f(xp.array(x), xp.array(x))
    assert f(xp.array(host(4, 6)), xp.array(host(4, 6))).shape == (4, 6)
    launches = f.state().counters["kernel_launches"]
    with pytest.raises(ValueError, match=r"shapes \(4,8\) \(5,8\)"):
        f(xp.array(host(4, 8)), xp.array(host(5, 8)))
    counters = f.state().counters
    assert (counters["kernel_launches"], counters["guard_misses"]) == (launches, 1)


def test_a6_guards_of_loaded_graphs_get_what_their_groups_ask(tmp_path):
    """A guard and a group that somebody has written: without relations the kernel would read past y."""
    type_ = 'tensor<8x8xf32, {device = "cuda:0", strides = "contiguous"}>'
    free = type_.replace("8x8", "?x?")
    path = tmp_path / "written.mlir"
    path.write_text(f"""
func.func @main(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {{
  %0:3 = "profuse.cuda_guard"(%x, %y) {{types = [{type_}, {type_}]}} :
      (!profuse.tensor, !profuse.tensor) -> ({free}, {free}, i1)
  %1 = scf.if %0#2 -> (!profuse.tensor) {{
    %2 = "profuse.cuda_group"(%0#0, %0#1) {{callee = @cuda_group_0}} : ({free}, {free}) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }} else {{
    %2 = "profuse.add"(%x, %y) : (!profuse.tensor, !profuse.tensor) -> !profuse.tensor
    scf.yield %2 : !profuse.tensor
  }}
  return %1 : !profuse.tensor
}}
func.func private @cuda_group_0(%x: {type_}, %y: {type_}) -> !profuse.tensor {{
  %0 = "profuse.add"(%x, %y) : ({type_}, {type_}) -> !profuse.tensor
  return %0 : !profuse.tensor
}}
""")
    f = pf.load(str(path), background=False)
    for shape in ((8, 8), (8, 8), (8, 8), (4, 6), (16, 32)):
        x = host(*shape)
        np.testing.assert_allclose(f(xp.array(x), xp.array(x)).get(), x + x)
    counters = f.state().counters
    assert counters["kernel_launches"] > 0
    with pytest.raises(ValueError, match=r"shapes \(4,8\) \(5,8\)"):
        f(xp.array(host(4, 8)), xp.array(host(5, 8)))


@pytest.mark.parametrize("case", CASES)
def test_a6_no_shapes_give_a_wrong_value_on_a_device(case):
    fn, ranks = FUNCTIONS[case]
    rng, seen = random.Random(case), Counter()

    def shapes(fits: bool, sizes: tuple[int, ...] = (2, 3, 4, 6)) -> list[tuple[int, ...]]:
        while True:
            pool = rng.sample(sizes, 3)
            chosen = [tuple(rng.choice(pool) for _ in range(rank)) for rank in ranks]
            if not fits or not isinstance(outcome([host(*s) for s in chosen]), Exception):
                return chosen

    def outcome(args):
        try:
            return fn(*args)
        except ValueError as error:
            return error

    f = pf.jit(fn, background=False, strategy=[("static", 1)])
    first = shapes(True)
    for _ in range(3):
        f(*[xp.array(host(*shape)) for shape in first])
    for _ in range(60 if EVERY_CASE else 30):
        args = [
            host(*shape) for shape in shapes(rng.random() < 0.7, (1, 2, 3, 4) if rng.random() < 0.3 else (2, 3, 4, 6))
        ]
        expected, hits = outcome(args), f.state().counters["guard_hits"]
        where = (case, first, [a.shape for a in args])
        if isinstance(expected, Exception):
            with pytest.raises(ValueError):
                f(*map(xp.array, args))
        else:
            np.testing.assert_allclose(f(*map(xp.array, args)).get(), expected, rtol=1e-5, err_msg=str(where))
        seen[f.state().counters["guard_hits"] > hits, isinstance(expected, Exception)] += 1
    assert seen[True, True] == 0
    assert seen[True, False] > 0, seen
