"""What tests need of the machine."""

import pytest
from profuse.dialect.errors import LoweringError
from profuse.lowering.gpu.ptxas import find_ptxas


def has_ptxas():
    """Whether NVIDIA's assembler is installed."""
    try:
        return bool(find_ptxas())
    except LoweringError:
        return False


needs_ptxas = pytest.mark.skipif(not has_ptxas(), reason="needs profuse[cuda]")
