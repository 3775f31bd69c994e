"""Profuse: a profiling, specialising, fusing JIT for tensor graphs, written in Python on MLIR.

>>> import numpy as np, profuse as pf
>>> @pf.jit
... def f(x, b):
...     return np.tanh(x + b) * 0.5

The first call profiles, the second runs fused native code; ``f.explain()`` says what happened.
MLIR is loaded at the first compile, not at import.
"""

import ast
import gc
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import nn
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
        ModelError,
        PipelineError,
        ProfuseError,
        RangeError,
        ShapeError,
        StrictFusionError,
        TraceError,
        WorkerError,
    )
    from .dialect.importers.numpy.capture.host_functions import host
    from .dialect.importers.numpy.capture.user_functions import erf, op, relu, rsqrt, sigmoid
    from .dialect.importers.numpy.python.purity import pure
    from .dialect.importers.numpy.tracing.traced_control import cond, fori_loop, while_loop
    from .dialect.importers.numpy.world.own_draws import manual_seed
    from .dialect.profiling.observers import register_profiled_ops
    from .dialect.trees.containers import register_pytree
    from .executor import torch
    from .executor.backward.switching import compiled_autograd
    from .executor.explain.state import DebugState, ExecutorState, Specialization
    from .executor.functions.grad import checkpoint, custom_vjp, grad, jvp, stop_gradient, value_and_grad, vjp
    from .executor.functions.jit import jit
    from .executor.functions.load import load
    from .executor.observe.perfetto import trace
    from .executor.plans.device_groups import on_fused_result
    from .executor.plans.last_executed import last_executed_graph
    from .executor.settings.device_fusion import (
        get_device_fusion,
        set_device_fusion,
        set_device_fusion_horizontal,
        set_device_fusion_single,
    )
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
    from .executor.settings.user_passes import register_pass_after_fusion, register_pass_before_fusion
    from .executor.settings.warn import warn
    from .executor.tape.api import Array, array, detect_anomaly, enable_grad, gradients, no_grad, saved_arrays_hooks
    from .tools.report import report

__version__ = "0.1.0"

# Public names load on first use, so that tools pay only for what they need. Where each comes from is read in the
# imports above, which type checkers follow and which never run; None stands for a module itself.
_HOME: dict[str, tuple[str, str | None]] = {
    alias.asname or alias.name: (f".{node.module}", alias.name) if node.module else (f".{alias.name}", None)
    for part in ast.parse(Path(__file__).read_text("utf-8")).body
    if isinstance(part, ast.If)
    for node in part.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
}

__all__ = sorted([*_HOME, "__version__"])


def __getattr__(name: str) -> Any:
    try:
        module, attribute = _HOME[name]
    except KeyError:
        raise AttributeError(f"module 'profuse' has no attribute {name!r}") from None
    # Where nothing is traced yet, most modules are still to be loaded.
    load = import_module if f"{__name__}.dialect.importers.numpy.capture" in sys.modules else _load_all_at_once
    home = load(module, __name__)
    if attribute is not None and not hasattr(home, attribute):
        import_module(f"{module}.{attribute}", __name__)  # a package within another one
    value = home if attribute is None else getattr(home, attribute)
    globals()[name] = value
    return value


def _load_all_at_once(module: str, package: str) -> ModuleType:
    """Import a module that many come along with, and have Python look for no garbage meanwhile.

    It would do so some 60 times, a tenth of the time that the modules take, and their functions and classes stay.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(module, package)
    finally:
        if collects:
            gc.enable()


def __dir__() -> list[str]:
    return __all__
