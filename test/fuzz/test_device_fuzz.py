"""Random functions of both fusers: tier 0, the general fuser, device groups on the host and on an emulated device."""

import sys
from pathlib import Path

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE

from .device_programs import SIZES, arguments, generate

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / "executor" / "cuda"), str(HERE.parent / "lowering")]

import fakelib as xp  # noqa: E402
from emulated import EmulatedDriver  # noqa: E402
from profuse.executor.cuda.nvidia.driver import using  # noqa: E402

pytestmark = pytest.mark.compiles

PROGRAMS = 40 if EVERY_CASE else 12
GRADIENTS = 20 if EVERY_CASE else 6


def agree(ours, theirs, source, ulps=1e-3):
    """The same dtypes and shapes, and values that differ by rounding alone."""
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs, strict=True):
        one, other = np.asarray(one), np.asarray(other)
        assert (one.shape, one.dtype) == (other.shape, other.dtype), source
        scale = max(1.0, float(np.abs(other).max(initial=0)))
        np.testing.assert_allclose(one, other, rtol=ulps, atol=ulps * scale, err_msg=source)


def outcomes(f, calls, onto=lambda x: x, back=lambda x: x):
    """The results of calls, each with random numbers of its own."""
    out = []
    for number, args in enumerate(calls):
        pf.manual_seed(number)
        out.append([back(value) for value in f(*map(onto, args))])
    return out


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_ways_of_a_random_function_agree(seed):
    program = generate(seed)
    fn, source = program.function(), program.source
    calls = [arguments(seed + k, *sizes) for k, sizes in enumerate(SIZES)]
    pf.knobs.cache, before = False, pf.knobs.cache
    try:
        expected = outcomes(pf.jit(fn, profiled_runs=1_000_000), calls)
        general = pf.jit(fn, background=False)
        for ours, theirs in zip(outcomes(general, calls), expected, strict=True):
            agree(ours, theirs, source)
        # Not even calls that Python would run in less time are Python's.
        with pf.knobs.override(device_fusion="host", demote=False):
            groups = pf.jit(fn, background=False)
            results = outcomes(groups, calls)
            for ours, theirs in zip(results, expected, strict=True):
                agree(ours, theirs, source)
            counters = groups.state().counters
            assert counters["compile_failures"] == 0, source
            # From run to run, and over numbers of threads, every bit is the same once all have their plans.
            for _ in range(3):
                outcomes(groups, calls)
            bits = [[np.asarray(v).tobytes() for v in outputs] for outputs in outcomes(groups, calls)]
            for threads in (1, 2, 3):
                with pf.knobs.override(threads=threads):
                    again = outcomes(groups, calls)
                assert [[np.asarray(v).tobytes() for v in outputs] for outputs in again] == bits, (threads, source)
        if program.draws:
            return  # functions of device arrays draw no random numbers
        with using(EmulatedDriver()), pf.knobs.override(device_fusion="on"):
            device = pf.jit(fn, background=False)
            onto = outcomes(device, calls, xp.array, lambda value: value.get() if hasattr(value, "get") else value)
            for ours, theirs in zip(onto, expected, strict=True):
                agree(ours, theirs, source)
            counters = device.state().counters
            assert counters["device_fallbacks"] == 0 and counters["kernel_launches"] > 0, source
    finally:
        pf.knobs.cache = before


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(GRADIENTS))
def test_gradients_of_a_random_function_agree(seed):
    """Forward and backward halves are graphs of executors of their own, which have device groups as well."""
    program = generate(1000 + seed, smooth=True)
    fn, source = program.function(), program.source

    def loss(x, b, c):
        return sum((value.astype(np.float64) ** 2).sum() for value in fn(x, b, c))

    calls = [arguments(k, *sizes) for k, sizes in enumerate(SIZES[:3] + SIZES[:1])]
    by_way = {}
    for way in ("off", "host"):
        with pf.knobs.override(device_fusion=way, cache=False):
            g = pf.grad(loss, wrt=(0, 1, 2), background=False)
            by_way[way] = outcomes(g, calls)
            if way == "host":
                assert '"profuse.cuda_group"' in g.ir("optimized"), source
    for ours, theirs in zip(by_way["host"], by_way["off"], strict=True):
        agree(ours, theirs, source)
