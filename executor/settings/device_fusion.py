"""The switches of the fuser of device groups, which decide who fuses ops on devices (R3.2, R3.3).

The fuser runs as a pass after fusion (R1.36), before those of users. Where it is enabled, the general fuser
leaves it the ops of CUDA devices, and those of the host as well if that is asked for (A7).
"""

from __future__ import annotations

import threading
from typing import Literal

from ...dialect.errors import KnobError
from ...dialect.ir.registration import Registration, Registry
from .fork_gate import loaded
from .fork_lock import hold_over_forks
from .knobs import knobs

Choice = Literal["on", "off", "host"]
"""``host`` is ``on``, for the ops of the host as well."""

PIPELINE = "device-fuser"

_passes: Registry[str] = Registry()
registration: Registration[str] = _passes.add(PIPELINE)
"""The registration of the pass; once it is removed, the fuser cannot be enabled."""


class _RunTime:
    """The choice that a program has made; None = it has made none."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.choice: Choice | None = None

    def exchange(self, choice: Choice | None) -> Choice | None:
        with self.lock:
            before, self.choice = self.choice, choice
        return before


_run_time = _RunTime()
hold_over_forks(_run_time.lock)


def enabled(force_off: bool, runtime: bool | None, env: bool | None, default: bool) -> bool:
    """Tell whether the fuser is on: the first of four that says anything decides (R3.2).

    Args:
        force_off: True = it is off, whatever the others say.
        runtime: what the program has chosen; None = nothing.
        env: what the environment says; None = nothing.
        default: what holds otherwise.
    """
    if force_off:
        return False
    return next((choice for choice in (runtime, env) if choice is not None), default)


def default(has_device: bool, registered: bool, executor_mode: bool) -> bool:
    """Tell whether the fuser is on where nobody has chosen: iff all three are so (R3.2)."""
    return has_device and registered and executor_mode


def get_device_fusion() -> bool:
    """True if the fuser of device groups takes ops of CUDA devices, in graphs compiled from now on (R3.2)."""
    return _is_enabled("cuda:0")


def set_device_fusion(on: bool | None, *, host: bool = False) -> bool | None:
    """Switch the fuser of device groups, for graphs compiled from now on (R3.2).

    The general fuser, which makes a kernel for sizes that a graph has been profiled with, then leaves ops on
    CUDA devices to it: its groups serve all sizes of their ranks. The variable ``PROFUSE_DEVICE_FUSION_OFF``
    beats this call, and this call beats ``PROFUSE_DEVICE_FUSION``. Where neither is set, the fuser is on if
    there is a CUDA device.

    Args:
        on: None = forget what was chosen, so that environment and default decide.
        host: True = it takes the ops of host arrays as well; no CUDA device is needed then.

    Returns what was chosen before: None = nothing. Raises KnobError for ``on=True`` where the fuser cannot run:
    it is switched off by its variable, its pass is not registered, or there is no device and ``host`` is False.
    """
    if host and not on:
        raise KnobError("host=True switches the fuser of device groups on, and on is not True")
    choice: Choice | None = None if on is None else "host" if host else "on" if on else "off"
    if choice in ("on", "host"):
        _check_possible(choice)
    before = _run_time.exchange(choice)
    return None if before is None else before != "off"


def set_device_fusion_single(on: bool) -> bool:
    """Switch groups of a single op, which are off by default; returns the old value (R3.3)."""
    return knobs.exchange("device_fusion_single", bool(on))


def set_device_fusion_horizontal(on: bool) -> bool:
    """Switch fusing what reads the same arrays, which is on by default; returns the old value (R3.3)."""
    return knobs.exchange("device_fusion_horizontal", bool(on))


def left_devices(device: str) -> str:
    """The option ``leave`` of the general fuser for graphs of a device: "", "cuda" or "all" (A7).

    Raises KnobError if the environment asks for what is impossible.
    """
    if not _is_enabled(device):
        return ""
    return "all" if _chosen() == "host" else "cuda"


def _is_enabled(device: str) -> bool:
    chosen = _chosen()
    on_host = device == "cpu"
    if on_host and (chosen != "host" or knobs.device_fusion_off):
        return False  # nor is a driver looked for
    env = knobs.device_fusion
    is_on = enabled(
        knobs.device_fusion_off,
        _as_bool(_run_time.choice),
        _as_bool(None if env == "auto" else env),
        # The rest is asked for only where it counts.
        chosen is None and default(not _missing_device(), bool(_passes.items), knobs.executor_mode),
    )
    if is_on and chosen is not None:
        _check_possible(chosen)
    return is_on


def _chosen() -> Choice | None:
    """The choice of the program, or else that of the environment."""
    if _run_time.choice is not None:
        return _run_time.choice
    return None if knobs.device_fusion == "auto" else knobs.device_fusion


def _as_bool(choice: Choice | None) -> bool | None:
    return None if choice is None else choice != "off"


def _check_possible(choice: Choice) -> None:
    reason, hint = "", "pf.set_device_fusion(None) leaves the choice to the environment and the default"
    if knobs.device_fusion_off:
        reason, hint = "device_fusion_off is set", "unset PROFUSE_DEVICE_FUSION_OFF"
    elif not _passes.items:
        reason = f"the pass {PIPELINE} is not registered"
    elif choice == "on" and (reason := _missing_device()):
        hint = "pf.set_device_fusion(True, host=True) has it take the ops of host arrays"
    if reason:
        raise KnobError(f"the fuser of device groups cannot be enabled: {reason}", hint=hint)


def _missing_device() -> str:
    """Why there is no CUDA device; "" = there is one."""
    return loaded("executor.cuda.nvidia.driver").unavailable("cuda:0")
