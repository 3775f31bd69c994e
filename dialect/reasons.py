"""Reasons why something is not fused, not compiled or slower than it might be: a value, worded last.

A `Reason` is made where the decision is made, and travels as it is: through statistics of passes,
results of compiles, the disk cache, the pipe to a worker, and executors. ``str(reason)`` puts it
into words, from the table of this module; what a user can do about one is looked up by its kind
(`executor.explain.advice`). Nothing reads the words back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from .dataclass import dataclass
from .errors import Loc, ProfuseError


class Effect(Enum):
    """The effect of a reason; the value stands in front of the words."""

    NONE = ""
    NOT_FUSED = "refused"
    LEFT = "left"  # to another fuser
    DISSOLVED = "dissolved"  # a group that was formed
    APART = "not part of a subgraph"
    STABLE_SIZES = "stable sizes stay literal"
    CONSTANT_SIZES = "sizes of arrays made of constants stay literal"
    ASSUMED_SIZES = "sizes are guarded to fit as they have so far"
    WRITE_KEPT = "kept"  # an op that writes into an array
    GROUPS_APART = "kept apart"
    LEFT_WHOLE = "stays whole"
    RESULT_KEPT = "a group returns more than is asked for"
    LOOP_IN_PLAN = "a loop runs round by round"
    INTERPRETED = "group @{subject} is interpreted"


class Kind(Enum):
    """The kind of a reason. The value names the kind in JSON; `_WORDS` words it."""

    # Of an op, before it is fused.
    NEVER_FUSED = "never-fused"
    INEXACT = "inexact"
    OTHER_LAYOUT = "other-layout"
    ON_HOST = "on-host"
    SIDE_EFFECTS = "side-effects"
    WRITTEN_VIEW = "written-view"
    PART_OF_CARRIED = "part-of-carried"
    LIST_OPERAND = "list-operand"
    UNKNOWN_OPERAND = "unknown-operand"
    VARYING_SIZE = "varying-size"
    DEVICES = "devices"
    LEFT_TO_DEVICE_FUSER = "left-to-device-fuser"
    OLD_DEVICE = "old-device"
    RUN_TIME_SIZES = "run-time-sizes"
    PYTHON_NUMBER = "python-number"
    NUMBER_COPIES = "number-copies"
    NUMBERS_APART = "numbers-apart"
    FEW_NEIGHBOURS = "few-neighbours"
    TYPES = "types"
    UNSURE_INTEGER = "unsure-integer"
    LARGE_INTEGER = "large-integer"
    # Of an op, as its class says.
    NO_LOWERING = "no-lowering"
    UNKNOWN_TYPE = "unknown-type"
    LISTS = "lists"
    SPECULATED = "speculated"
    COMPLEX = "complex"
    PYTHON_RAISES = "python-raises"
    UNDEFINED = "undefined"
    UNPROVEN = "unproven"
    SIZES_NOT_EXPRESSED = "sizes-not-expressed"
    RESERVE_COMPUTED = "reserve-computed"
    # Of an op in a loop.
    SIZES_VARY = "sizes-vary"
    ROUNDS_APART = "rounds-apart"
    # Of a group.
    GROUP_LIMIT = "group-limit"
    ROUND_LIMIT = "round-limit"
    NOT_GENERAL = "not-general"
    SIZES_WITHOUT_SYMBOLS = "sizes-without-symbols"
    UNOBSERVED = "unobserved"
    UNPROFILED_VALUE = "unprofiled-value"
    NOT_DIFFERENTIATED = "not-differentiated"
    DIFFERENTIATED = "differentiated"
    # Of a write into an array.
    UNKNOWN_WRITER = "unknown-writer"
    SHARED_MEMORY = "shared-memory"
    RUN_TIME_INDEX = "run-time-index"
    THROUGH_VIEW = "through-view"
    UNKNOWN_RANK = "unknown-rank"
    NOT_OWN_MEMORY = "not-own-memory"
    # Of a group without a kernel.
    NOT_LOWERED = "not-lowered"
    COMPILER_FAULT = "compiler-fault"
    WRONG_KERNEL = "wrong-kernel"
    CHECK_CRASHED = "check-crashed"
    WORKER_LOST = "worker-lost"
    SLOWER = "slower"
    FAILED_BEFORE = "failed-before"
    # Of a whole graph.
    UNPROFILED = "unprofiled"
    NOT_COMPILED = "not-compiled"
    AS_IMPORTED = "as-imported"
    IN_PROCESS = "in-process"
    FILE_NOT_USED = "file-not-used"
    OTHER_PROFILE = "other-profile"
    PROFILED_ANEW = "profiled-anew"
    CACHED_PROFILE = "cached-profile"
    COMPILED_ANEW = "compiled-anew"
    # Of calls.
    COPIED = "copied"
    BIAS_APART = "bias-apart"
    OFF_DEVICE = "off-device"
    NO_GRAPH = "no-graph"
    DEBUGGED = "debugged"


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason why something was not done.

    Attributes:
        kind: why.
        op: short name of the op it is about; "" = it is about more than one.
        operand: number of the operand at fault; None = no operand is.
        detail: what the kind leaves open, e.g. a dtype, or what an error says.
        subject: what it is about where that is no op: a fusion function, a file, an argument, a
            number.
        effect: what it has led to.
        loc: place in the user's source; None = not known.
        hint: of an error, what to do next.
        count: how often it was met.
    """

    kind: Kind
    op: str = ""
    operand: int | None = None
    detail: str = ""
    subject: str = ""
    effect: Effect = Effect.NONE
    loc: Loc | None = None
    hint: str = ""
    count: int = 1

    @classmethod
    def of_error(cls, kind: Kind, error: ProfuseError, **fields: Any) -> Reason:
        """One that an error gives, with its place and its hint."""
        return cls(kind, detail=error.what, loc=error.loc, hint=error.hint or "", **fields)

    @property
    def why(self) -> str:
        """The words without op and effect: ``size of operand 0 varies``.

        The place is part of what errors say; that of an op is asked for by `loc`.
        """
        detail = self.detail
        if self.kind in _OF_ERRORS:
            detail = str(ProfuseError(detail, loc=self.loc, hint=self.hint or None))
        return _WORDS[self.kind].format(operand=self.operand, detail=detail, subject=self.subject)

    def __str__(self) -> str:
        """All words: ``refused: exp: size of operand 0 varies``."""
        effect = self.effect.value.format(subject=self.subject)
        return ": ".join(part for part in (effect, self.op, self.why) if part)

    @property
    def told(self) -> str:
        """The words, with the count where ops or groups are counted."""
        return f"{self} ({self.count}x)" if self.effect in _COUNTED else str(self)

    def to_json(self, places: Sequence[Loc] = ()) -> dict[str, Any]:
        """Plain data; inverse of `from_json`. A place among ``places`` is written as its index."""
        data: dict[str, Any] = {"kind": self.kind.value, "effect": self.effect.name}
        for name in ("op", "operand", "detail", "subject", "hint", "count"):
            data[name] = getattr(self, name)
        loc = self.loc
        if loc is not None:
            place_list = list(places)
            data["loc"] = place_list.index(loc) if loc in place_list else [loc.file, loc.line, loc.col]
        return data

    @classmethod
    def from_json(cls, data: dict[str, Any], places: Sequence[Loc] = ()) -> Reason:
        """The reason that `to_json` gave, with these places; raises LookupError, TypeError or ValueError."""
        fields, loc = dict(data), data.get("loc")
        if isinstance(loc, int):
            fields["loc"] = places[loc]
        elif loc is not None:
            file, line, col = loc
            fields["loc"] = Loc(str(file), int(line), int(col))
        fields["kind"], fields["effect"] = Kind(fields["kind"]), Effect[fields["effect"]]
        return cls(**fields)


def summed(reasons: Iterable[Reason]) -> list[Reason]:
    """Reasons without their places, each once, with the sum of its counts; in order."""
    counts: dict[Reason, int] = {}
    for reason in reasons:
        bare = replace(reason, loc=None, count=1)
        counts[bare] = counts.get(bare, 0) + reason.count
    return [replace(bare, count=count) for bare, count in counts.items()]


_COUNTED = (
    Effect.NOT_FUSED,
    Effect.LEFT,
    Effect.DISSOLVED,
    Effect.APART,
    Effect.STABLE_SIZES,
    Effect.CONSTANT_SIZES,
    Effect.ASSUMED_SIZES,
    Effect.WRITE_KEPT,
    Effect.GROUPS_APART,
    Effect.LOOP_IN_PLAN,
)
# Kinds whose detail is what an error says: its place and its hint are part of the words.
_OF_ERRORS = (Kind.NOT_LOWERED, Kind.WORKER_LOST, Kind.NOT_COMPILED, Kind.AS_IMPORTED, Kind.NO_GRAPH)
_WORDS = {
    Kind.NEVER_FUSED: "is never fused",
    Kind.INEXACT: "a kernel may round otherwise than NumPy does, which exact=True rules out",
    Kind.OTHER_LAYOUT: "operand {operand} may not lie in C order, which exact=True asks for",
    Kind.ON_HOST: "{detail} runs on the host, between kernels",
    Kind.SIDE_EFFECTS: "has side effects",
    Kind.WRITTEN_VIEW: "is a view of memory that is written",
    Kind.PART_OF_CARRIED: "replaces a part of an array of a loop, which a kernel would copy",
    Kind.LIST_OPERAND: "operand {operand} is a list",
    Kind.UNKNOWN_OPERAND: "type of operand {operand} is not known",
    Kind.VARYING_SIZE: "size of operand {operand} varies",
    Kind.DEVICES: "operands are on different devices: {detail}",
    Kind.LEFT_TO_DEVICE_FUSER: "the fuser of device groups takes it",
    Kind.OLD_DEVICE: "its device computes nothing but elementwise ops in groups",
    Kind.RUN_TIME_SIZES: "result sizes depend on run-time values",
    Kind.PYTHON_NUMBER: "computes a Python number",
    Kind.NUMBER_COPIES: "numbers that are used too often to be copied",
    Kind.NUMBERS_APART: "its sizes follow from numbers that cannot be had in a group",
    Kind.FEW_NEIGHBOURS: "too few neighbours to fuse with",
    Kind.TYPES: "{detail}",
    Kind.UNSURE_INTEGER: "a Python integer may not fit {detail}",
    Kind.LARGE_INTEGER: "{subject} does not fit {detail}",
    Kind.NO_LOWERING: "has no lowering",
    Kind.UNKNOWN_TYPE: "type is not known",
    Kind.LISTS: "lists are not lowered",
    Kind.SPECULATED: "stands for a value of the run, which no guard has compared yet",
    Kind.COMPLEX: "complex is not lowered",
    Kind.PYTHON_RAISES: "Python raises {detail}, a kernel cannot",
    Kind.UNDEFINED: "NumPy leaves {detail} undefined",
    Kind.UNPROVEN: "{detail}",
    Kind.SIZES_NOT_EXPRESSED: "the sizes of its results do not follow from those of its operands alone",
    Kind.RESERVE_COMPUTED: "its reserve is computed in the group",
    Kind.SIZES_VARY: "sizes of its arrays vary",
    Kind.ROUNDS_APART: "kernels of each round are estimated to save {detail} µs of it",
    Kind.GROUP_LIMIT: "groups of more than {detail} ops together",
    Kind.ROUND_LIMIT: "groups still changed after as many rounds as there are ops",
    Kind.NOT_GENERAL: "operand types cannot be generalised",
    Kind.SIZES_WITHOUT_SYMBOLS: "sizes do not follow from the operands' symbols",
    Kind.UNPROFILED_VALUE: "{detail}: no group is made for one value of it",
    Kind.UNOBSERVED: "what it reads was never observed: its ops are differentiated one by one",
    Kind.NOT_DIFFERENTIATED: "{detail}: its ops are differentiated one by one",
    Kind.DIFFERENTIATED: "{detail}",
    Kind.UNKNOWN_WRITER: "an unknown op writes it",
    Kind.SHARED_MEMORY: "it is not known which values share it",
    Kind.RUN_TIME_INDEX: "an index is known only at run time",
    Kind.THROUGH_VIEW: "it is written through {detail}",
    Kind.UNKNOWN_RANK: "the rank of a view is not known",
    Kind.NOT_OWN_MEMORY: "it is not the graph's own",
    Kind.NOT_LOWERED: "{detail}",
    Kind.COMPILER_FAULT: "{detail}",
    Kind.WRONG_KERNEL: "its kernel is wrong: {detail}",
    Kind.CHECK_CRASHED: "the check of its kernel crashed: {detail}",
    Kind.WORKER_LOST: "{detail}",
    Kind.FAILED_BEFORE: "a group with the same kernel has failed: {detail}",
    Kind.SLOWER: "its kernel is slower than NumPy: {detail}",
    Kind.UNPROFILED: ("no run is profiled (profiled_runs=0), so that no type is known: what needs types runs op by op"),
    Kind.NOT_COMPILED: "not compiled{subject}: {detail}",
    Kind.AS_IMPORTED: "runs as it was imported: {detail}",
    Kind.IN_PROCESS: "compiled in this process: {detail}",
    Kind.FILE_NOT_USED: "{subject} is not used: {detail}",
    Kind.OTHER_PROFILE: "the profile in {subject} is of another graph: {detail}",
    Kind.PROFILED_ANEW: "profiled anew: {detail}",
    Kind.CACHED_PROFILE: "profile taken from the disk cache: {detail}",
    Kind.COMPILED_ANEW: "compiled anew: {detail}",
    Kind.COPIED: "{subject} is copied at every call: {detail}",
    Kind.BIAS_APART: "a product's bias is added in a pass of its own: {detail}",
    Kind.OFF_DEVICE: "not on {subject}: {detail}",
    Kind.NO_GRAPH: "in Python, as no graph can hold it: {detail}",
    Kind.DEBUGGED: "in Python where a debugger is at work: {detail}",
}
