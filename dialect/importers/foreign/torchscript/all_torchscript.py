"""The table of TorchScript's operators, with all of its handlers."""

from . import list_operators, number_operators, script_branches, script_loops, tensor_queries, text_operators  # noqa: F401 - each fills the table
from .script_table import TORCHSCRIPT

__all__ = ["TORCHSCRIPT"]
