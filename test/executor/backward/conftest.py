"""Tests here share `programs`, and begin and end without captured runs."""

import sys
from pathlib import Path

import profuse as pf
import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _fresh():
    pf.compiled_autograd.reset()
    yield
    pf.compiled_autograd.reset()
