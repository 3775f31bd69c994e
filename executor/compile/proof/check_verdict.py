"""The verdict of a kernel's check, and measured times, as values to be stored, sent and shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import Any

from ....dialect.dataclass import dataclass

CHECKED, PARTLY, UNCHECKED, FAILED = "checked", "partly", "unchecked", "failed"


@dataclass(frozen=True)
class CheckVerdict:
    """The outcome of one kernel's check.

    Attributes:
        outcome: ``"checked"``, ``"partly"``, ``"unchecked"`` or ``"failed"``.
        detail: why the check was not complete, or how it failed; "" for ``"checked"``.
        runs: number of sets of inputs on which the kernel ran (twice each, if time allowed).
        compared: number of compared elements.
        skipped: number of elements that were not judged, because rounding decides their values.
    """

    outcome: str
    detail: str = ""
    runs: int = 0
    compared: int = 0
    skipped: int = 0

    def __str__(self) -> str:
        """``checked on 9 inputs``, ``checked partly on 2 inputs: …``, ``unchecked: …``."""
        how = {PARTLY: "checked partly"}.get(self.outcome, self.outcome)
        if self.runs and self.outcome in (CHECKED, PARTLY):
            how += f" on {self.runs} input{'s' * (self.runs != 1)}"
        return f"{how}: {self.detail}" if self.detail else how

    def to_json(self) -> list[Any]:
        """Plain data; inverse of `from_json`."""
        return list(astuple(self))

    @classmethod
    def from_json(cls, data: list[Any]) -> CheckVerdict:
        """The verdict of which `to_json` gave the text; raises ValueError for anything else."""
        outcome, detail, *counts = data
        if outcome not in (CHECKED, PARTLY, UNCHECKED, FAILED):
            raise ValueError(f"no verdict is called {outcome!r}")
        runs, compared, skipped = map(int, counts)
        return cls(outcome, str(detail), runs, compared, skipped)


@dataclass(frozen=True)
class Times:
    """The time that a kernel takes, and that of the op-by-op evaluation of its fusion function.

    Attributes:
        kernel: processor seconds of the calling thread for one launch: the least of all rounds.
        evaluated: the same for one op-by-op evaluation on the same inputs.
        rounds: number of times that both were measured, in turn.
        can_share: True if other threads, which did not help while it was measured, may run a part
            of a launch.
        is_whole: False = an evaluation ended before the last round of its loops, as the kernel was
            known to be much faster.
    """

    kernel: float
    evaluated: float
    rounds: int
    can_share: bool = False
    is_whole: bool = True

    def __str__(self) -> str:
        """``a launch takes 1.33 ms, op-by-op evaluation 0.19 ms (least of 7 runs)``."""
        least = "" if self.is_whole else "more than "
        return (
            f"a launch takes {self.kernel * 1e3:.2f} ms, op-by-op evaluation "
            f"{least}{self.evaluated * 1e3:.2f} ms (least of {self.rounds} "
            f"run{'s' * (self.rounds != 1)})"
        )

    def slowdown(self, threads: int = 1) -> float:
        """The factor by which a launch takes longer at the least, if ``threads`` threads run it."""
        return self.kernel / (threads if self.can_share else 1) / max(self.evaluated, 1e-9)

    def to_json(self) -> list[Any]:
        """Plain data; inverse of `from_json`."""
        return list(astuple(self))

    @classmethod
    def from_json(cls, data: list[Any]) -> Times:
        """The times of which `to_json` gave the text; raises TypeError or ValueError for anything else."""
        kernel, evaluated, rounds, can_share, is_whole = data
        return cls(float(kernel), float(evaluated), int(rounds), bool(can_share), bool(is_whole))


def summary(verdicts: Iterable[CheckVerdict]) -> str:
    """Text such as ``2 checked, 1 unchecked``; "" without verdicts."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.outcome] = counts.get(verdict.outcome, 0) + 1
    order = [k for k in (CHECKED, PARTLY, UNCHECKED, FAILED) if k in counts]
    return ", ".join(f"{counts[k]} {k}" for k in order)
