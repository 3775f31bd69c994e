"""Profuse: a profiling, specialising, fusing JIT for tensor graphs, written in Python on MLIR.

>>> import numpy as np, profuse as pf
>>> @pf.jit
... def f(x, b):
...     return np.tanh(x + b) * 0.5

The first call profiles, the second runs fused native code; ``f.explain()`` says what happened.
MLIR is loaded at the first compile, not at import.
"""

from .dialect.errors import (
    ArgumentError,
    BoundsError,
    DTypeError,
    FileError,
    InternalError,
    IRError,
    KnobError,
    LoweringError,
    PipelineError,
    ProfuseError,
    ShapeError,
    TraceError,
)
from .dialect.importers.api import erf, relu, rsqrt, sigmoid
from .dialect.importers.control import cond, fori_loop, while_loop
from .executor.events import events
from .executor.events import totals as counters
from .executor.jit import jit, load
from .executor.knobs import knobs
from .executor.settings import (
    get_num_profiled_runs,
    get_optimize,
    get_profiling_mode,
    set_num_profiled_runs,
    set_optimize,
    set_profiling_mode,
)
from .executor.state import ExecutorState, Specialization
from .executor.strategy import get_fusion_strategy, set_fusion_strategy

__version__ = "0.1.0"

__all__ = [
    "ArgumentError", "BoundsError", "DTypeError", "ExecutorState", "FileError", "IRError",
    "InternalError", "KnobError", "LoweringError", "PipelineError", "ProfuseError", "ShapeError",
    "Specialization", "TraceError", "__version__", "cond", "counters", "erf", "events",
    "fori_loop", "get_fusion_strategy", "get_num_profiled_runs", "get_optimize",
    "get_profiling_mode", "jit", "knobs", "load", "relu", "rsqrt", "set_fusion_strategy",
    "set_num_profiled_runs", "set_optimize", "set_profiling_mode", "sigmoid", "while_loop",
]  # fmt: skip
