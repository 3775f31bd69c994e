import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import profuse as pf
import pytest
from cached_graphs import caching_in


@pytest.fixture
def profiling_off():
    """Graphs made in this test get the spec-keyed executor."""
    before = pf.set_profiling_mode(False)
    yield
    pf.set_profiling_mode(before)


@pytest.fixture
def folder(tmp_path):
    """The store of a disk cache that is on, in a folder of its own."""
    with caching_in(tmp_path / "cache") as found:
        yield found
