"""The check for races (``make racecheck``) finds one that is planted, and none without."""

import pytest
import racecheck
from racecheck import PLANTED, RACE, is_found, reports

reason = racecheck.why_not()
pytestmark = pytest.mark.skipif(bool(reason), reason=f"no ThreadSanitizer: {reason}")


def test_a_planted_race_is_found():
    """Threads that leave a launch without a release: on x86-64 no value would ever show it."""
    (plant,) = [p for p in PLANTED if p.name == "threads leave without a release"]
    assert is_found(plant, 60)


def test_there_is_none_in_the_pool_and_in_kernels():
    found = reports(40, names=("elementwise", "columns"))
    assert RACE not in found, found
