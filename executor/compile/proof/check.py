"""One kernel's check: run on generated inputs, compared, told as a verdict."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialect.ir.dtypes import dtype_named
from ....dialect.ir.program import Module, Program
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import evaluate
from ....dialect.ir.types import TensorType
from .compare import Result
from .cost import estimate
from .inputs import Setting, settings, shape_of, smallest_size, strides_of, values
from .launch import Launcher, Outcome
from .memory import Framed, same_bits
from .reference import Reference
from .rows import rows_of
from .verdict import CHECKED, FAILED, PARTLY, UNCHECKED, Verdict

if TYPE_CHECKING:
    from ....lowering.abi import KernelArtifact

# Evaluations with moved operands before a kernel is called wrong, and by how many units in the last
# place operands are moved in those that are added. The last are for single points that decide: of
# f(x) ** f(x) all is NaN for negative numbers but where f(x) is an integer.
_NEARBY = ((1, 4), (4, 4), (32, 8), (64, 1))
_ELEMENTS = 1 << 16  # of each result that are compared one by one, unless all are to be
_TWICE = 2  # times the seconds of a budget are not exceeded on purpose
_LEAST = 1e-3  # seconds that any check may take
_LARGE = 4 << 20  # bytes of a run, above which sizes that are not the only ones are left out
_MANY = 0.1  # share of elements that cannot be judged above which other inputs are tried


@dataclass(frozen=True)
class Budget:
    """What a check may take.

    Attributes:
        mode: ``"sampled"``: as many sets of inputs as there is time for, and of large results some
            rows; ``"all"``: all of them, whatever it takes.
        seconds: of this thread's CPU time, after which no further set is begun. A first set may
            take twice as long, and is left out in part for more.
        bytes: of all arrays of a run; sets that need more are left out.
    """

    mode: str = "sampled"
    seconds: float = 0.02
    bytes: int = 64 << 20


class Difference(Exception):
    """A kernel is wrong; the message says where, ``setting`` on what inputs."""

    def __init__(self, what: str, setting: Setting) -> None:
        self.setting = setting
        super().__init__(f"{what} (on {setting})")


class _TooLarge(Exception):
    """A set of inputs needs more memory than a check may take."""


def check_kernel(
    function: Program,
    artifact: KernelArtifact,
    budget: Budget,
    module: Module | None = None,
) -> Verdict:
    """Compare a kernel with its fusion function on inputs that fulfil the guard.

    Returns its verdict; raises Difference where it is wrong. A kernel that crashes takes the
    process with it.
    """
    return Check(function, artifact, budget, module).run()


class Check:
    """The check of one kernel under way."""

    def __init__(
        self,
        function: Program,
        artifact: KernelArtifact,
        budget: Budget,
        module: Module | None = None,
    ) -> None:
        self.function, self.abi, self.budget = function, artifact.abi, budget
        self.launcher = Launcher(artifact)
        # Of what can be void all of NumPy's complaints count.
        by_rows = budget.mode != "all" and not self.abi.can_violate
        self.rows = rows_of(function) if by_rows else None
        self.reference = Reference(function, module, self.rows)
        self.turns, self.compares = 2, True
        self.runs = self.compared = self.skipped = 0
        self.raised = ""
        self.in_part = False

    def run(self) -> Verdict:
        """Go through all sets of inputs that the budget allows."""
        begun, too_large = time.thread_time(), ""
        wanted = list(settings(list(self.abi.symbols)))
        try:
            left = [self._hurry(wanted[0])]
        except _TooLarge as error:
            return Verdict(UNCHECKED, str(error))
        slowest = 0.0
        for number, setting in enumerate(wanted):
            spent = time.thread_time() - begun
            if number and self.budget.mode != "all" and spent + slowest > self.budget.seconds:
                left.append(f"the time is up after {number} of {len(wanted)} inputs")
                break
            try:
                self.one(setting)
            except _TooLarge as error:
                too_large = str(error)
            slowest = max(slowest, time.thread_time() - begun - spent)
        else:
            if self.compared and self.skipped > _MANY * self.compared:
                self.one(Setting(wanted[0].sizes, "positive", 1000))
        if not self.runs:
            return Verdict(UNCHECKED, too_large or self.raised or "no inputs fit")
        if too_large and 2 * self.runs < len(wanted):
            left.append(too_large)
        if self.rows is not None and self.compares:
            left.append(f"{self.rows.picked.size} rows of large results were compared")
        if self.in_part:
            left.append(f"of results, {_ELEMENTS} elements that differ in bits were judged")
        why = "; ".join(filter(None, left))
        return Verdict(PARTLY if why else CHECKED, why, self.runs, self.compared, self.skipped)

    def _hurry(self, setting: Setting) -> str:
        """Leave out what there is no time for on these sizes; returns what that is, in words.

        Raises _TooLarge where there is no time for a single launch.
        """
        if self.budget.mode == "all":
            return ""
        limit = max(_TWICE * self.budget.seconds, _LEAST)
        launch, reference = estimate(self.function, self._bytes(setting), self.rows)
        launches = launch * (1 + len(self.abi.in_place))
        self.compares = launches + reference <= limit
        self.turns = 2 if launches + launch + self.compares * reference <= limit else 1
        if self.compares:
            return "" if self.turns == 2 else "too large to be run twice on the same inputs"
        if launches > limit:
            raise _TooLarge(f"too large: a run takes about {1e3 * (launches + reference):.0f} ms")
        return f"too large: telling what its results should be takes about {1e3 * reference:.0f} ms"

    def one(self, setting: Setting) -> None:
        """Run on one set of inputs. Raises Difference, _TooLarge."""
        self._fits(setting)
        types = [self.function.type_of(v) for v in self.function.inputs]
        strides = [
            strides_of(t, shape_of(t, setting.sizes), backwards=setting.backwards)
            if isinstance(t, TensorType) else None
            for t in types
        ]  # fmt: skip
        most: int | None = smallest_size(self.function, setting.sizes)
        if setting.kind == "wide":
            most = None
        expected: list[np.ndarray] | None = None
        while True:
            args = _overlaid(values(self.function, setting, most), strides)
            try:
                expected = self.reference(args) if self.compares else None
            except Exception as error:
                self.raised = f"NumPy raises for all inputs tried: {error}"
                if most is None:
                    # Some number is out of range: the kernel has to say so, and to keep to its
                    # memory.
                    most = smallest_size(self.function, setting.sizes)
                    self._voids(setting, args, strides, most, error)
                    continue
                if most <= 1:
                    return  # it raises for these sizes
                most //= 2
                continue
            break
        first, second = self._twice(setting, args, strides)
        if first.violated:
            if expected is None or self.reference.meets_nothing(args):
                return  # of nothing NumPy asks nothing; the call is evaluated instead
            raise Difference("it reports an index out of range, and there is none", setting)
        for number, (a, b) in enumerate(zip(first.outputs, second.outputs, strict=True)):
            if not same_bits(a, b):
                raise Difference(
                    f"result {number} depends on what memory held before: it is not wholly "
                    "written, or is made of what nothing has written",
                    setting,
                )
        if expected is not None:
            self._compare(setting, args, first.outputs, expected)
        for onto in self.abi.in_place:
            given = onto[1]
            if strides[given] is None:
                over = self.launcher.run(args, strides, setting.sizes, onto=onto)
                self._sound(over, setting)
                if expected is not None:
                    how = f", made onto input {given},"
                    self._compare(setting, args, over.outputs, expected, how)
        self.runs += 1

    def _voids(
        self, setting: Setting, args: Sequence[Any], strides: Sequence, most: int, error: Exception
    ) -> None:
        """NumPy raises for these arguments: if only for their values, the kernel must say so."""
        try:
            self.reference(_overlaid(values(self.function, setting, 1), strides))
        except Exception:
            return  # for these sizes it raises whatever the values
        first, second = self._twice(setting, args, strides)
        if not (first.violated and second.violated):
            what = f"{type(error).__name__}: {error}"
            raise Difference(f"it gives results for which NumPy raises {what}", setting)

    def _twice(
        self, setting: Setting, args: Sequence[Any], strides: Sequence
    ) -> tuple[Outcome, Outcome]:
        """The outcomes with memory of either pattern, or of one if there is no time for two."""
        outcomes = [
            self.launcher.run(args, strides, setting.sizes, turn=turn, aligned=setting.aligned)
            for turn in range(self.turns)
        ]
        for outcome in outcomes:
            self._sound(outcome, setting)
        first, second = outcomes[0], outcomes[-1]
        if first.violated != second.violated:
            raise Difference("whether it reports an index out of range varies", setting)
        return first, second

    def _sound(self, outcome: Outcome, setting: Setting) -> None:
        if outcome.wrong:
            raise Difference(outcome.wrong, setting)

    def _compare(
        self,
        setting: Setting,
        args: Sequence[Any],
        found: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
        how: str = "",
    ) -> None:
        most = None if self.budget.mode == "all" else _ELEMENTS
        nearby: list[list[np.ndarray]] = []
        for number, (f, e) in enumerate(zip(found, expected, strict=True)):
            picked = None
            if self.rows is not None and self.rows.outputs[number]:
                picked = self.rows.picked
                f = f[picked]
            if f.shape != e.shape or f.dtype != e.dtype:
                raise Difference(
                    f"result {number}{how} is {f.dtype}{list(f.shape)}, not "
                    f"{e.dtype}{list(e.shape)}",
                    setting,
                )
            result = Result(
                f, e, rounds=self.reference.rounds[number], moves=self.reference.moves, most=most,
                picked=picked,
            )  # fmt: skip
            judged = result.judge([])
            # How far rounding goes is found out where something differs, and as well as it takes.
            for count, ulps in _NEARBY if result.rounds else ():
                if not judged.wrong:
                    break
                if len(nearby) < count:
                    seed = setting.seed + 1 + len(nearby)
                    nearby += self.reference.nearby(args, count - len(nearby), seed, ulps)
                judged = result.judge([n[number] for n in nearby])
            if judged.wrong:
                raise Difference(f"result {number}{how}: {judged.worst}", setting)
            self.compared += result.compared
            self.skipped += judged.skipped
            self.in_part |= result.in_part

    def _bytes(self, setting: Setting) -> int:
        """What the arrays of a run need."""
        total = self.abi.workspace_size(dict(setting.sizes))
        for spec in (*self.abi.inputs, *self.abi.outputs):
            size = dtype_named(spec.dtype).itemsize
            for dim in spec.dims:
                size *= evaluate(parse_dim(dim), setting.sizes)
            total += size
        return total

    def _fits(self, setting: Setting) -> None:
        """Raise _TooLarge where the arrays of a run need more than is allowed."""
        total = self._bytes(setting)
        most = self.budget.bytes
        if self.abi.symbols and self.runs:
            most = min(most, _LARGE)  # other sizes tell the same for less
        elif self.budget.mode == "all":
            return
        if total > most:
            raise _TooLarge(f"its arrays take {total} bytes, of {most} that they may")


def _overlaid(args: Sequence[Any], strides: Sequence[Sequence[int] | None]) -> list[Any]:
    """The values as they lie in memory, where strides have elements share it."""
    out = []
    for value, steps in zip(args, strides, strict=True):
        if steps is None or not isinstance(value, np.ndarray):
            out.append(value)
            continue
        frame = Framed(value.shape, value.dtype, 0, steps)
        frame.array[...] = value
        out.append(frame.array)
    return out


__all__ = ["CHECKED", "FAILED", "PARTLY", "UNCHECKED", "Budget", "Check", "Difference",
           "check_kernel"]  # fmt: skip
