"""`pf.torch.script`: modules and functions of TorchScript as functions of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..arguments.user_input import check_device
from ..functions.script_functions import ScriptFunction, script_function
from ..plans.plan_options import Options
from ..settings.knobs import knobs
from ..settings.strategy import normalize


def script(
    module: Any,
    *,
    strategy: Sequence[tuple[str, int]] | None = None,
    background: bool | None = None,
    name: str | None = None,
    device: str | None = None,
) -> ScriptFunction:
    """A `torch.jit.ScriptModule` or `torch.jit.ScriptFunction` as a function of this package.

    It is called as in torch, with tensors or arrays, which are what it gives then. Parameters share
    memory with the module, whose methods are attributes; what these assign is carried from call to
    call in the module. `jit` explains the settings.

    Raises ArgumentError for anything else, TraceError for operators that are not supported.
    """
    check_device(device)
    background = knobs.background if background is None else background
    frozen = None if strategy is None else normalize(strategy)
    return script_function(module, Options(frozen, background=background, device=device, name=name or "main"))
