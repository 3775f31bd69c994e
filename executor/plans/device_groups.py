"""Device groups at run time: one that has failed is interpreted for good, and results can be watched (R3.50)."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...dialect.errors import LoweringError
from ...dialect.ir.program import Program
from ...dialect.ir.registration import Registration, Registry
from ...dialect.ops.speculation import CudaGroup
from ...dialect.reasons import Effect, Kind, Reason
from ...dialect.trees.leaves import NUMBERS
from ..interpret.loop_limit import SoonerInPython
from ..settings.events import log
from ..settings.fork_lock import hold_over_forks
from ..settings.knobs import knobs

Watcher = Callable[[list, list], object]

_watchers: Registry[Watcher] = Registry()


class FailedGroups:
    """The cache ids of groups whose kernel has failed in this process, each with the reason."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._reasons: dict[str, str] = {}
        hold_over_forks(self._lock)

    def add(self, cache_id: str, reason: str) -> bool:
        """Note a failure; False if the id has failed before."""
        with self._lock:
            return self._reasons.setdefault(cache_id, reason) is reason

    def why(self, cache_id: str) -> str:
        """The reason of the first failure; "" = there was none."""
        return self._reasons.get(cache_id, "")

    def clear(self) -> None:
        """Forget all failures."""
        with self._lock:
            self._reasons.clear()


FAILED = FailedGroups()


def on_fused_result(watcher: Watcher) -> Registration[Watcher]:
    """Have a function see what device groups compute, for debugging (R3.50).

    Each run of a device group of a plan made from now on computes its results twice, by its kernel and op by
    op. ``watcher`` gets both lists, the fused one first: one array per result, of the dtype, shape and device
    that the group returns. The program goes on with the fused ones; what the function raises, the call raises.
    """
    return _watchers.add(watcher)


def cache_ids(program: Program) -> dict[str, str]:
    """The cache id of each function that device groups of a program call."""
    groups = (instr for instr in program.body.walk() if instr.op is CudaGroup)
    return {instr.attrs["callee"]: instr.attrs["cache_id"] for instr in groups if instr.attrs.get("cache_id")}


class DeviceGroup:
    """A callable on the operands of a device group, as a kernel's.

    Args:
        cache_id: the group's, of which others have the same kernel.
        function: what the group computes.
        run: runs its kernel.
        interpreted: computes the group op by op.
        owner: name of the function that runs it, for events.
    """

    def __init__(
        self, cache_id: str, function: Program, run: Callable[..., Any], interpreted: Callable[..., Any], owner: str
    ) -> None:
        self._cache_id, self._name, self._owner = cache_id, function.name, owner
        self._count = len(function.inputs)  # what follows the operands is memory for results
        self._run, self._interpreted = run, interpreted
        self._watchers = _watchers.items
        if not self._watchers:
            # By these emitted code runs the kernel without this object.
            for name in ("kernel", "native"):
                if hasattr(run, name):
                    setattr(self, name, getattr(run, name))

    def __call__(self, *args: Any) -> Any:
        """The result of the group, or a tuple of several.

        Raises what the ops raise, and what the kernel raises while the knob ``device_fallback`` is off, or where
        results may lie on operands: as donated memory, the group cannot be computed once more.
        """
        operands = args[: self._count]
        if FAILED.why(self._cache_id):
            return self._interpreted(*operands)
        unfused = self._interpreted(*operands) if self._watchers else None  # a kernel may write into operands
        try:
            fused = self._run(*args)
        except SoonerInPython:
            raise
        except Exception as error:
            # After an error of the driver, the whole graph leaves its device.
            from ..cuda.nvidia.driver_api import DriverError  # which few processes need

            if not knobs.device_fallback or isinstance(error, DriverError):
                raise
            why = f"its kernel raised {type(error).__name__}: {error}"
            if _may_overlap(operands, args[self._count :]):
                # What the kernel has written by then is not known: the ops would compute with that.
                fail(self._cache_id, f"{why}, and may have written over operands", self._name, self._owner)
                raise
            # Where the ops raise as well, it is the operands that are wrong.
            fused = self._interpreted(*operands)
            fail(self._cache_id, why, self._name, self._owner)
        for watcher in self._watchers:
            watcher(_listed(fused), _listed(unfused))
        return fused


def failed_group(reason: Reason, cache_id: str, interpreted: Callable[..., Any], owner: str) -> Callable[..., Any]:
    """The function that runs in place of a device group of which no kernel could be made.

    It raises LoweringError while the knob ``device_fallback`` is off.
    """
    fail(cache_id, reason.why, reason.subject, owner)

    def call(*args: Any) -> Any:
        if not knobs.device_fallback:
            raise LoweringError(
                f"{owner}: group @{reason.subject} has no kernel: {reason.why}",
                loc=reason.loc,
                hint="PROFUSE_DEVICE_FALLBACK=1 has it interpreted",
            )
        return interpreted(*args)

    call.interprets = True  # type: ignore[attr-defined]
    return call


def fail(cache_id: str, why: str, group: str, owner: str) -> None:
    """Note that a kernel has failed; warns once per cache id."""
    if FAILED.add(cache_id, why):
        log("device-group-failed", owner, why, group=group, cache_id=cache_id)


def failed_before(cache_id: str, group: str) -> Reason | None:
    """Why a group is interpreted although there is a kernel for it; None = it is not."""
    why = FAILED.why(cache_id)
    return Reason(Kind.FAILED_BEFORE, detail=why, subject=group, effect=Effect.INTERPRETED) if why else None


def _may_overlap(operands: Sequence[Any], destinations: Sequence[Any]) -> bool:
    """True if a result may be written where an operand lies; of arrays of other libraries it is not known."""
    arrays = [x for x in operands if not isinstance(x, (*NUMBERS, np.generic))]
    places = [x for x in destinations if x is not None]
    return any(
        np.may_share_memory(place, x) if isinstance(place, np.ndarray) and isinstance(x, np.ndarray) else True
        for place in places
        for x in arrays
    )


def _listed(results: Any) -> list:
    return list(results) if isinstance(results, tuple) else [results]
