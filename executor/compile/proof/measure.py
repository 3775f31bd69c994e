"""Measures a new kernel and the op-by-op evaluation that it replaces, on the same inputs.

Both run in turn, and the least time of each counts. Times are processor time of the calling thread:
a process that is scheduled late or seldom, as a worker is, measures the same as an idle one. The
sizes are those that the profile has observed. `plans.demote` decides what follows.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ....dialect.ir.program import Module, Program
from ....dialect.ir.types import TensorType
from ....lowering.abi import KernelArtifact
from ...interpret.evaluate import as_kernels_give_it, own
from ...interpret.loop_limit import Limit, TooLong
from ...settings.events import log
from .check_verdict import Times
from .cost import evaluation
from .guarded_run import Launcher
from .inputs import InputSetting, overlaid, shape_of, smallest_size, strides_of, values
from .loop_rounding import has_loops, may_not_end
from .reference import Reference

if TYPE_CHECKING:
    from ....lowering.gpu.artifact import GpuArtifact
    from ..request import CompileRequest

Clock = Callable[[], float]

LEAST = 1e-4
"""Seconds: shorter kernels are not compared, as calls of several ops take about as long."""
_LEAST_ESTIMATED = 1e-5  # seconds of estimated evaluation below which nothing is run
_MOST_ESTIMATED = 1.0  # seconds of estimated evaluation above which nothing is run
_MOST_UNKNOWN = 0.1  # seconds in which loops have to end of which nothing else tells that they do
_ROUNDS = 7
# After a first, second and each later round, a kernel that takes at most this part of the
# evaluation's time is measured no further. Libraries of products that wait for threads of their
# own may take many times as long on a busy machine, so a small lead proves little at first.
_KEPT = (0.25, 0.5, 1.0)
_clock: Clock = time.thread_time


def measured(
    artifact: KernelArtifact | GpuArtifact,
    function: Program,
    request: CompileRequest,
    sizes: Mapping[str, int],
    module: Module | None = None,
) -> Times | None:
    """The measured times of a kernel; None if it was not measured.

    ``sizes``: symbol -> observed size. This never raises: a kernel that cannot be measured is used.
    """
    if not request.measure or not isinstance(artifact, KernelArtifact) or request.is_foreign:
        return None
    try:
        return measure(function, artifact, sizes, request.check_bytes, module)
    except Exception as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())
        log("unmeasured", request.name, said, group=function.name)
        return None


def measure(
    function: Program, artifact: KernelArtifact, sizes: Mapping[str, int], most_bytes: int, module: Module | None = None
) -> Times | None:
    """The times of a kernel; None if it is too small to matter, too large, or cannot be run.

    Args:
        function: the fusion function.
        artifact: its kernel.
        sizes: symbol -> observed size.
        most_bytes: largest size of all arrays of a run.
        module: the module of functions that the function calls, if any.
    """
    abi = artifact.abi
    if not abi.symbols.keys() <= sizes.keys():
        return None
    setting = InputSetting({name: sizes[name] for name in abi.symbols}, "positive", 0)
    if not _LEAST_ESTIMATED <= evaluation(function, setting.sizes) <= _MOST_ESTIMATED:
        return None
    if abi.bytes_of_run(dict(setting.sizes)) > most_bytes:
        return None
    types = [function.type_of(value) for value in function.inputs]
    strides = [
        strides_of(t, shape_of(t, setting.sizes), backwards=False) if isinstance(t, TensorType) else None for t in types
    ]
    most = smallest_size(function, setting.sizes)
    args = overlaid(values(function, setting, most), strides)
    from ....lowering.cpu.kernel_threads import launch_address
    from ....lowering.cpu.pool_block import usual_chunks

    limit = Limit(_MOST_UNKNOWN)
    reference = Reference(function, module, limit=limit)

    def evaluate() -> None:
        for out in reference(args):
            # A view is no result yet: what it shows has to be copied.
            own(as_kernels_give_it(out), args)

    if may_not_end(function):
        try:
            evaluate()
        except Exception:
            return None  # it raises for these values, or it may not end
    with usual_chunks():
        launcher = Launcher(artifact)
        placed = launcher.place(args, strides, setting.sizes)
        placed.launch()
        if has_loops(function) and launcher.has_voided(placed):
            return None  # it has not computed
        can_share = bool(artifact.shared_steps) and not launch_address()
        try:
            return compared(placed.launch, evaluate, _clock, limit, can_share=can_share)
        except Exception:
            return None  # NumPy raises for these values, so that there is nothing to compare


def compared(
    launch: Callable[[], Any],
    evaluate: Callable[[], Any],
    clock: Clock,
    limit: Limit | None = None,
    *,
    can_share: bool = False,
) -> Times | None:
    """The least times of both; None for a kernel that takes less than `LEAST`.

    A kernel that is much faster is measured once, one that is not slower three times. So only those
    that may be demoted take all rounds. ``limit``: of the evaluation's loops, which end as soon as
    the kernel is known to be much faster.
    """
    kernel = evaluated = float("inf")
    is_whole = True
    for number in range(1, _ROUNDS + 1):
        kernel = min(kernel, _timed(launch, clock))
        if kernel < LEAST:
            return None
        if limit is not None:
            limit.seconds = kernel / _KEPT[0]
        begun = clock()
        try:
            evaluate()
        except TooLong:
            is_whole = False
        evaluated = min(evaluated, clock() - begun)
        if kernel <= evaluated * _KEPT[min(number, len(_KEPT)) - 1]:
            break
    return Times(kernel, evaluated, number, can_share, is_whole)


def _timed(run: Callable[[], Any], clock: Clock) -> float:
    begun = clock()
    run()
    return clock() - begun
