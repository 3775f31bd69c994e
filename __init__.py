"""Profuse: a profiling, specialising, fusing JIT for tensor graphs, written in Python on MLIR.

>>> import numpy as np, profuse as pf
>>> @pf.jit
... def f(x, b):
...     return np.tanh(x + b) * 0.5

The first call profiles, the second runs fused native code; ``f.explain()`` says what happened.
MLIR is loaded at the first compile, not at import.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .dialect.errors import (
        ArgumentError,
        AxisError,
        BoundsError,
        DeviceError,
        DivisionError,
        DTypeError,
        FileError,
        InternalError,
        IRError,
        KnobError,
        LoweringError,
        PipelineError,
        ProfuseError,
        RangeError,
        ShapeError,
        StrictFusionError,
        TraceError,
        WorkerError,
    )
    from .dialect.importers.api import erf, op, relu, rsqrt, sigmoid
    from .dialect.importers.control import cond, fori_loop, while_loop
    from .dialect.observers import register_profiled_ops
    from .executor.events import events
    from .executor.events import totals as counters
    from .executor.hooks import register_pass_after_fusion, register_pass_before_fusion
    from .executor.jit import jit
    from .executor.knobs import knobs
    from .executor.last_graph import last_executed_graph
    from .executor.load import load
    from .executor.observe.perfetto import trace
    from .executor.settings import (
        get_executor_mode,
        get_num_profiled_runs,
        get_optimize,
        get_profiling_mode,
        get_size_checks,
        set_executor_mode,
        set_num_profiled_runs,
        set_optimize,
        set_profiling_mode,
        set_size_checks,
    )
    from .executor.state import DebugState, ExecutorState, Specialization
    from .executor.strategy import get_fusion_strategy, set_fusion_strategy
    from .executor.strict import strict_fusion
    from .executor.warn import warn
    from .tools.report import report

__version__ = "0.1.0"

# Public names by module; loaded on first use, so that tools pay only for what they need.
_PUBLIC = {
    ".dialect.errors": "ArgumentError AxisError BoundsError DeviceError DivisionError DTypeError "
    "FileError InternalError IRError KnobError LoweringError PipelineError ProfuseError RangeError "
    "ShapeError StrictFusionError TraceError WorkerError",
    ".dialect.importers.api": "erf op relu rsqrt sigmoid",
    ".dialect.importers.control": "cond fori_loop while_loop",
    ".dialect.observers": "register_profiled_ops",
    ".executor.events": "events counters=totals",
    ".executor.hooks": "register_pass_after_fusion register_pass_before_fusion",
    ".executor.jit": "jit",
    ".executor.knobs": "knobs",
    ".executor.last_graph": "last_executed_graph",
    ".executor.load": "load",
    ".executor.observe.perfetto": "trace",
    ".executor.settings": "get_executor_mode get_num_profiled_runs get_optimize "
    "get_profiling_mode get_size_checks set_executor_mode set_num_profiled_runs set_optimize "
    "set_profiling_mode set_size_checks",
    ".executor.state": "DebugState ExecutorState Specialization",
    ".executor.strategy": "get_fusion_strategy set_fusion_strategy",
    ".executor.strict": "strict_fusion",
    ".executor.warn": "warn",
    ".tools.report": "report",
}
_HOME = {
    name.partition("=")[0]: (module, name.partition("=")[2] or name)
    for module, names in _PUBLIC.items()
    for name in names.split()
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'profuse' has no attribute {name!r}") from None
    from importlib import import_module

    value = getattr(import_module(module, __name__), attribute)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
