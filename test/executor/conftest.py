import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import profuse as pf
import pytest


@pytest.fixture
def profiling_off():
    """Graphs made in this test get the spec-keyed executor."""
    before = pf.set_profiling_mode(False)
    yield
    pf.set_profiling_mode(before)
