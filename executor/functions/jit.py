"""`jit`: functions in plain NumPy that specialise to their arguments."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..arguments.user_input import check_path, check_settings
from ..memory.donation import parameter_names
from ..settings.knobs import knobs
from ..settings.strategy import normalize
from ..tiers.profiling import Options
from .function import GraphFunction
from .numpy_source import NumPySource

if TYPE_CHECKING:
    from .saved.file import SavedFile


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    strategy: Sequence[tuple[str, int]] | None = None,
    profiled_runs: int | None = None,
    device: str | None = None,
    background: bool | None = None,
    profile: str | os.PathLike | None = None,
    donate: str | int | Sequence[str | int] | None = None,
    unsupported: str | None = None,
    name: str | None = None,
) -> Any:
    """Turn ``fn``, written in plain NumPy, into a function that specialises to its arguments.

    Args:
        fn: the function; absent in the form ``@jit(...)``. It gets arrays, and gives them, where
            calls have tensors of other libraries in host memory, as torch's: their results are tensors.
        strategy: e.g. ``[("static", 2), ("dynamic", 10)]``; default: the process-wide strategy.
        profiled_runs: number of recorded runs before the function is specialised; default: the
            knob (1).
        device: ``None`` = the device of the arguments; ``"cuda"`` or ``"cuda:1"`` = every call
            copies host arrays to that GPU and the results back; ``"cpu"`` = only host arrays.
        background: True = compile in a worker process, while calls run on the best plan available.
            If a worker is lost, one event is logged, and the graph that it compiled stays on tier 0
            with the reason. False = the call that completes the profile waits for the compile.
            Default: the knob (True). See the methods `wait` and `warmup` of the result.
        profile: a file that ``save`` wrote, of this function or of one with the same graphs. A
            graph's profile in the file replaces recorded runs. Its compiled code is used if it is
            for this CPU and these versions. Graphs that the file lacks are profiled as usual, and
            `explain` says why the file did not fit.
        donate: parameters, by name or position, whose arrays calls may overwrite and return as
            results; nobody may read these arrays afterwards. Optimised plans reuse an array if
            their kernel can, and if the array is writable, C-contiguous, no view, and overlaps no
            other argument (counter ``donated_results``).
        unsupported: what becomes of calls that no graph can hold (effects, control flow on data,
            functions without a graph form): ``"python"`` runs them as they are, counted and
            explained; ``"raise"`` raises TraceError, ArgumentError or DTypeError. Default: the knob
            (``"python"``).
        name: the name in messages and IR; default: the name of ``fn``.

    Raises ArgumentError if ``fn`` cannot be called, KnobError for wrong settings, and FileError if
    the profile cannot be read.
    """
    if fn is None:
        return functools.partial(
            jit,
            strategy=strategy,
            profiled_runs=profiled_runs,
            device=device,
            background=background,
            profile=profile,
            donate=donate,
            unsupported=unsupported,
            name=name,
        )
    check_settings(fn, device, background, profiled_runs, name, unsupported)
    frozen = None if strategy is None else normalize(strategy)
    label = name or str(getattr(fn, "__name__", type(fn).__name__))
    background = knobs.background if background is None else background
    saved = None if profile is None else _saved_file(profile)
    options = Options(
        frozen,
        profiled_runs,
        _symbol(label),
        background=background,
        donate=parameter_names(fn, donate),
        saved=saved,
        device=device,
        unsupported=unsupported,
    )
    return GraphFunction(NumPySource(fn), options)


def _saved_file(path: str | os.PathLike) -> SavedFile:
    from .saved.file import SavedFile

    check_path("profile", path)
    return SavedFile.read(path)


def _symbol(name: str) -> str:
    """The name as a valid function name in IR."""
    name = re.sub(r"\W", "_", name, flags=re.ASCII) or "main"
    return f"_{name}" if name[0].isdigit() else name
