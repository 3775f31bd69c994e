"""Random functions of both fusers: tier 0, the general fuser, device groups on the host and on an emulated device."""

from collections import Counter

import pytest
from every_case import EVERY_CASE

from .device_programs import generate
from .device_ways import check, check_gradients

pytestmark = pytest.mark.compiles

PROGRAMS = 40 if EVERY_CASE else 12
GRADIENTS = 20 if EVERY_CASE else 6


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(PROGRAMS))
def test_ways_of_a_random_function_agree(seed):
    program = generate(seed)
    assert check(program, seed, Counter()) == {}, program.source


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(GRADIENTS))
def test_gradients_of_a_random_function_agree(seed):
    """Forward and backward halves are graphs of executors of their own, which have device groups as well."""
    program = generate(1000 + seed, smooth=True)
    assert check_gradients(program, Counter()) == {}, program.source
