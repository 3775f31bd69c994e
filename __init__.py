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
        GradientError,
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
    from .dialect.importers.numpy.capture.api import erf, op, relu, rsqrt, sigmoid
    from .dialect.importers.numpy.capture.host import host
    from .dialect.importers.numpy.python.purity import pure
    from .dialect.importers.numpy.tracing.containers import register_pytree
    from .dialect.importers.numpy.tracing.control import cond, fori_loop, while_loop
    from .dialect.profiling.observers import register_profiled_ops
    from .executor.backward.scope import compiled_autograd
    from .executor.explain.state import DebugState, ExecutorState, Specialization
    from .executor.functions.gradients import (
        checkpoint,
        custom_vjp,
        grad,
        jvp,
        stop_gradient,
        value_and_grad,
        vjp,
    )
    from .executor.functions.jit import jit
    from .executor.functions.load import load
    from .executor.observe.perfetto import trace
    from .executor.plans.last_executed import last_executed_graph
    from .executor.settings.events import events
    from .executor.settings.events import totals as counters
    from .executor.settings.knobs import knobs
    from .executor.settings.modes import (
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
    from .executor.settings.plain import disable_jit
    from .executor.settings.strategy import get_fusion_strategy, set_fusion_strategy
    from .executor.settings.strict import strict_fusion
    from .executor.settings.user_passes import (
        register_pass_after_fusion,
        register_pass_before_fusion,
    )
    from .executor.settings.warn import warn
    from .executor.tape.api import (
        Array,
        array,
        detect_anomaly,
        enable_grad,
        gradients,
        no_grad,
        saved_arrays_hooks,
    )
    from .tools.report import report

__version__ = "0.1.0"

# Public names by module; loaded on first use, so that tools pay only for what they need.
_PUBLIC = {
    ".dialect.errors": "ArgumentError AxisError BoundsError DeviceError DivisionError DTypeError "
    "FileError GradientError InternalError IRError KnobError LoweringError PipelineError "
    "ProfuseError RangeError ShapeError StrictFusionError TraceError WorkerError",
    ".dialect.importers.numpy.capture.api": "erf op relu rsqrt sigmoid",
    ".dialect.importers.numpy.capture.host": "host",
    ".dialect.importers.numpy.tracing.containers": "register_pytree",
    ".dialect.importers.numpy.tracing.control": "cond fori_loop while_loop",
    ".dialect.profiling.observers": "register_profiled_ops",
    ".executor.backward.scope": "compiled_autograd",
    ".executor.settings.events": "events counters=totals",
    ".executor.settings.user_passes": "register_pass_after_fusion register_pass_before_fusion",
    ".executor.tape.api": "Array array detect_anomaly enable_grad gradients no_grad "
    "saved_arrays_hooks",
    ".executor.functions.gradients": "checkpoint custom_vjp grad jvp stop_gradient "
    "value_and_grad vjp",
    ".executor.functions.jit": "jit",
    ".executor.settings.knobs": "knobs",
    ".executor.plans.last_executed": "last_executed_graph",
    ".executor.functions.load": "load",
    ".executor.observe.perfetto": "trace",
    ".executor.settings.modes": "get_executor_mode get_num_profiled_runs get_optimize "
    "get_profiling_mode get_size_checks set_executor_mode set_num_profiled_runs set_optimize "
    "set_profiling_mode set_size_checks",
    ".executor.explain.state": "DebugState ExecutorState Specialization",
    ".dialect.importers.numpy.python.purity": "pure",
    ".executor.settings.plain": "disable_jit",
    ".executor.settings.strategy": "get_fusion_strategy set_fusion_strategy",
    ".executor.settings.strict": "strict_fusion",
    ".executor.settings.warn": "warn",
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
