"""The table of StableHLO's operators, with all of its handlers."""

from . import hlo_control, hlo_indexing, hlo_lapack, hlo_windows  # noqa: F401 - each fills the table
from .hlo_elementwise import STABLEHLO

__all__ = ["STABLEHLO"]
