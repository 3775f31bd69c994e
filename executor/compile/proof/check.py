"""The check of one kernel: it runs on generated inputs, is compared, and gets a verdict."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialect.dataclass import dataclass
from ....dialect.ir.program import Module, Program
from ....dialect.ir.types import TensorType
from ...interpret.loop_limit import Limit, TooLong
from .check_verdict import CHECKED, FAILED, PARTLY, UNCHECKED, CheckVerdict
from .comparison import Result
from .cost import estimate, evaluation
from .guarded_memory import same_bits
from .guarded_run import Launcher, RunOutcome
from .inputs import InputSetting, overlaid, settings, shape_of, smallest_size, strides_of, values
from .loop_rounding import has_loops, may_not_end
from .reference import Reference
from .sampled_rows import rows_of

if TYPE_CHECKING:
    from ....lowering.abi import KernelArtifact

# Before a kernel is called wrong, the reference is evaluated with moved operands. Each pair is the
# total number of such evaluations, and by how many units in the last place operands move in the
# evaluations that the step adds. The last step uses a small move, for functions that change at
# single points: f(x) ** f(x) of negative numbers is NaN unless f(x) is an integer.
_NEARBY = ((1, 4), (4, 4), (32, 8), (64, 1))
_ELEMENTS = 1 << 16  # differing elements of a result that are judged, unless the mode is "all"
_TWICE = 2  # the first set of inputs may take this many times the budget's seconds
_LOOPS = 4  # an evaluation of loops may take this many times the budget's seconds
_LONG = 20.0  # seconds that one may take without a budget
_LEAST = 1e-3  # seconds that any check may take
_LARGE = 4 << 20  # bytes; later sets of sizes are left out if a run needs more
_MANY = 0.1  # if a larger share of elements cannot be judged, another kind of inputs is tried


@dataclass(frozen=True)
class Budget:
    """The time and memory that a check may take.

    Attributes:
        mode: ``"sampled"`` = check as many sets of inputs as the time allows, and compare only some
            rows of large results; ``"all"`` = check all sets and rows, without a time limit.
        seconds: CPU time of this thread, after which no further set begins. If the first set would
            take more than twice this time, parts of its check are left out.
        bytes: largest size of all arrays of a run; sets of inputs that need more are left out.
    """

    mode: str = "sampled"
    seconds: float = 0.02
    bytes: int = 64 << 20


class Difference(Exception):
    """A kernel is wrong; the message says where, and ``setting`` is the set of inputs."""

    def __init__(self, what: str, setting: InputSetting) -> None:
        self.setting = setting
        super().__init__(f"{what} (on {setting})")


class _TooLarge(Exception):
    """A set of inputs needs more memory or time than the check may take."""


def check_kernel(
    function: Program,
    artifact: KernelArtifact,
    budget: Budget,
    module: Module | None = None,
    observed: Mapping[str, int] | None = None,
) -> CheckVerdict:
    """Compare a kernel with its fusion function on inputs that fulfil the guard.

    ``observed``: symbol -> size, one more set of sizes to check. Returns the verdict; raises
    Difference if the kernel is wrong. A kernel that crashes ends the process.
    """
    return KernelCheck(function, artifact, budget, module).run(observed)


class KernelCheck:
    """The state of one kernel's check."""

    def __init__(
        self, function: Program, artifact: KernelArtifact, budget: Budget, module: Module | None = None
    ) -> None:
        self.function, self.abi, self.budget = function, artifact.abi, budget
        self.launcher = Launcher(artifact)
        # Rows are not sampled if the kernel can void its results: every row may make NumPy raise.
        by_rows = budget.mode != "all" and not self.abi.can_violate
        self.rows = rows_of(function) if by_rows else None
        limit = Limit(max(_LOOPS * budget.seconds, _LEAST) if budget.mode != "all" else _LONG)
        self.reference = Reference(function, module, self.rows, limit)
        self.turns, self.compares = 2, True
        self.runs = self.compared = self.skipped = 0
        self.raised = ""
        self.in_part = False

    def run(self, observed: Mapping[str, int] | None = None) -> CheckVerdict:
        """Check all sets of inputs that the budget allows; returns the verdict."""
        begun, too_large = time.thread_time(), ""
        input_sets = list(settings(list(self.abi.symbols)))
        if observed and self.abi.symbols.keys() <= observed.keys():
            # Behind the first set, which is small: from it the time that others take is estimated.
            input_sets.insert(1, InputSetting(dict(observed), "plain", len(input_sets)))
        least = 2 if observed else 1
        try:
            gaps = [self._hurry(input_sets[0])]
        except _TooLarge as error:
            return CheckVerdict(UNCHECKED, str(error))
        slowest = 0.0
        for number, setting in enumerate(input_sets):
            spent = time.thread_time() - begun
            is_late = self.budget.mode != "all" and spent + slowest > self.budget.seconds
            if number >= least and is_late:
                gaps.append(f"the time is up after {number} of {len(input_sets)} inputs")
                break
            try:
                self.one(setting)
            except (_TooLarge, TooLong) as error:
                too_large = str(error)
            slowest = max(slowest, time.thread_time() - begun - spent)
        else:
            if self.compared and self.skipped > _MANY * self.compared:
                with suppress(_TooLarge, TooLong):
                    self.one(InputSetting(input_sets[0].sizes, "positive", 1000))
        if not self.runs:
            return CheckVerdict(UNCHECKED, too_large or self.raised or "no inputs fit")
        if too_large and 2 * self.runs < len(input_sets):
            gaps.append(too_large)
        if self.rows is not None and self.compares:
            gaps.append(f"{self.rows.picked.size} rows of large results were compared")
        if self.in_part:
            gaps.append(f"of results, {_ELEMENTS} elements that differ in bits were judged")
        why = "; ".join(filter(None, gaps))
        return CheckVerdict(PARTLY if why else CHECKED, why, self.runs, self.compared, self.skipped)

    def _hurry(self, setting: InputSetting) -> str:
        """Decide which parts of the check to leave out for lack of time; returns them in words.

        Raises _TooLarge if there is no time for a single launch.
        """
        if self.budget.mode == "all":
            return ""
        limit = max(_TWICE * self.budget.seconds, _LEAST)
        launch, reference = estimate(self.function, self.abi.bytes_of_run(dict(setting.sizes)), self.rows)
        launches = launch * (1 + len(self.abi.in_place))
        self.compares = launches + reference <= limit
        self.turns = 2 if launches + launch + self.compares * reference <= limit else 1
        if self.compares:
            return "" if self.turns == 2 else "too large to be run twice on the same inputs"
        if launches > limit or may_not_end(self.function):  # a kernel might never end
            raise _TooLarge(f"too large: a run takes about {1e3 * (launches + reference):.0f} ms")
        return f"too large: telling what its results should be takes about {1e3 * reference:.0f} ms"

    def one(self, setting: InputSetting) -> None:
        """Check the kernel on one set of inputs; raises Difference and _TooLarge."""
        self._fits(setting)
        types = [self.function.type_of(v) for v in self.function.inputs]
        strides = [
            strides_of(t, shape_of(t, setting.sizes), backwards=setting.backwards)
            if isinstance(t, TensorType)
            else None
            for t in types
        ]
        most: int | None = smallest_size(self.function, setting.sizes)
        if setting.kind == "wide":
            most = None
        expected: list[np.ndarray] | None = None
        while True:
            args = overlaid(values(self.function, setting, most), strides)
            try:
                expected = self.reference(args) if self.compares else None
            except TooLong as error:
                raise _TooLarge(str(error)) from None
            except Exception as error:
                self.raised = f"NumPy raises for all inputs tried: {error}"
                if most is None:
                    # Some number is out of range: the kernel must report that, and must not access
                    # memory outside of its buffers.
                    most = smallest_size(self.function, setting.sizes)
                    self._voids(setting, args, strides, most, error)
                    continue
                if most <= 1:
                    return  # NumPy raises for these sizes, whatever the values
                most //= 2
                continue
            break
        first, second = self._twice(setting, args, strides)
        if first.violated:
            if expected is None or self.reference.meets_nothing(args):
                return  # NumPy does not check indices into empty arrays; the kernel may do so
            if self._raises_for_scalars(args):
                return
            if has_loops(self.function):
                # Whether places are in range is decided before the first round, for all rounds.
                self.raised = "the kernel leaves all inputs tried to NumPy"
                return
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
            index = onto[1]
            if strides[index] is None:
                over = self.launcher.run(args, strides, setting.sizes, onto=onto)
                self._sound(over, setting)
                if expected is not None:
                    how = f", made onto input {index},"
                    self._compare(setting, args, over.outputs, expected, how)
        self.runs += 1

    def _voids(
        self, setting: InputSetting, args: Sequence[Any], strides: Sequence, most: int, error: Exception
    ) -> None:
        """Check that the kernel voids a run for which NumPy raises because of the values."""
        try:
            self.reference(overlaid(values(self.function, setting, 1), strides))
        except Exception:
            return  # NumPy raises for these sizes, whatever the values
        first, second = self._twice(setting, args, strides)
        if not (first.violated and second.violated):
            what = f"{type(error).__name__}: {error}"
            raise Difference(f"it gives results for which NumPy raises {what}", setting)

    def _raises_for_scalars(self, args: Sequence[Any]) -> bool:
        """True if NumPy raises if its scalars stand in the place of arrays without axes.

        It converts scalars that are stored as numbers, and casts arrays; a kernel sees no
        difference between them, and voids a run with a number out of range.
        """
        scalars = [a[()] if isinstance(a, np.ndarray) and not a.ndim else a for a in args]
        try:
            self.reference(scalars)
        except Exception:
            return True
        return False

    def _twice(self, setting: InputSetting, args: Sequence[Any], strides: Sequence) -> tuple[RunOutcome, RunOutcome]:
        """The outcomes of two runs, one per memory pattern; of one run if there is no more time."""
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

    def _sound(self, outcome: RunOutcome, setting: InputSetting) -> None:
        if outcome.wrong:
            raise Difference(outcome.wrong, setting)

    def _compare(
        self,
        setting: InputSetting,
        args: Sequence[Any],
        results: Sequence[np.ndarray],
        expected: Sequence[np.ndarray],
        how: str = "",
    ) -> None:
        most = None if self.budget.mode == "all" else _ELEMENTS
        nearby: list[list[np.ndarray]] = []
        for number, (f, e) in enumerate(zip(results, expected, strict=True)):
            picked = None
            if self.rows is not None and self.rows.outputs[number]:
                picked = self.rows.picked
                f = f[picked]
            if f.shape != e.shape or f.dtype != e.dtype:
                raise Difference(
                    f"result {number}{how} is {f.dtype}{list(f.shape)}, not {e.dtype}{list(e.shape)}", setting
                )
            result = Result(
                f, e, rounds=self.reference.rounds[number], moves=self.reference.moves, most=most, picked=picked
            )
            judged = result.judge([])
            # The effect of rounding is only estimated if elements differ, and step by step.
            for count, ulps in _NEARBY if result.rounds else ():
                if not judged.wrong:
                    break
                if len(nearby) < count:
                    seed = setting.seed + 1 + len(nearby)
                    nearby += self.reference.nearby(args, count - len(nearby), seed, ulps)
                    if count == _NEARBY[-1][0]:
                        nearby += self.reference.widened(args, expected)
                judged = result.judge([n[number] for n in nearby])
            if judged.wrong:
                raise Difference(f"result {number}{how}: {judged.worst}", setting)
            self.compared += result.compared
            self.skipped += judged.skipped
            self.in_part |= result.in_part

    def _fits(self, setting: InputSetting) -> None:
        """Raise _TooLarge if the arrays of a run need more bytes than allowed, or NumPy too much time."""
        total = self.abi.bytes_of_run(dict(setting.sizes))
        most = self.budget.bytes
        if self.abi.symbols and self.runs:
            most = min(most, _LARGE)  # smaller sizes test the same code in less time
            # Results may be small, and what is between ops the square of a size.
            seconds = evaluation(self.function, setting.sizes)
            if self.budget.mode != "all" and seconds > max(_TWICE * self.budget.seconds, _LEAST):
                raise _TooLarge(f"its ops take about {1e3 * seconds:.0f} ms in NumPy for {setting.sizes}")
        elif self.budget.mode == "all":
            return
        if total > most:
            raise _TooLarge(f"its arrays take {total} bytes, of {most} that they may")


__all__ = ["CHECKED", "FAILED", "PARTLY", "UNCHECKED", "Budget", "Difference", "KernelCheck", "check_kernel"]
