"""The key under which the spec-keyed executor keeps plans: what arguments are, but not their sizes.

A `Recipe` is made once per graph; per call it turns the inputs into an `ArgumentSpec`. Tuples and
other containers are taken apart before a graph is called (`importers.pytree`), and their structure
is part of what the graph was traced for; so a recipe walks over leaves (R2.7, R2.8).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.ir.device import DeviceTensor
from ...dialect.ir.dtypes import dtype_of
from ...dialect.ir.gradient_mode import requires_grad
from ...dialect.ir.program import Program
from ...dialect.ir.types import TensorType
from ...dialect.ops.gradient_ops import Definedness

NESTING_LIMIT = 128
"""Leaves of arguments nested deeper than this are not specialised (R2.8)."""

_ABSENT = TensorType(defined=False)


class TensorRecord(NamedTuple):
    """The part of one tensor that a spec keeps (R2.7).

    ``requires_grad`` is the tensor's flag AND gradient mode. Without a dtype it stands for an
    undefined tensor, or for a Python number in a tensor's place, which is not specialised.
    """

    dtype: np.dtype | None
    rank: int
    requires_grad: bool = False
    device: str = "cpu"
    device_index: int = -1
    defined: bool = True

    def type(self) -> TensorType | None:
        """The record as a type: a rank without sizes, and no layout; None for a Python number."""
        if self.dtype is None:
            return None if self.defined else _ABSENT
        device = self.device if self.device_index < 0 else f"{self.device}:{self.device_index}"
        shape = (None,) * self.rank
        return TensorType(dtype_of(self.dtype), shape, None, device, self.requires_grad, True)


UNDEFINED, NUMBER = TensorRecord(None, 0, defined=False), TensorRecord(None, 0)


class ArgumentSpec:
    """Records of specialised tensors, and a presence bit for each input that may be absent.

    The hash is combined from the number of tensors, that of optional inputs, and each record;
    equality compares the presence bits, then the records.
    """

    __slots__ = ("_hash", "present", "records")

    def __init__(self, records: tuple[TensorRecord, ...], present: tuple[bool, ...] = ()) -> None:
        self.records, self.present = records, present
        self._hash = hash((len(records), len(present), *records))

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ArgumentSpec) and self.present == other.present and self.records == other.records

    def __str__(self) -> str:
        shown = [_text(record) for record in self.records]
        shown += ["absent"] * self.present.count(False)
        return ", ".join(shown) or "no tensors"

    def __repr__(self) -> str:
        return f"ArgumentSpec({self})"


class RecipeStep(NamedTuple):
    """One instruction of a recipe.

    Attributes:
        what: ``"tensor"``, ``"optional"`` (a tensor, or None = absent), or ``"skip"``.
        width: how many inputs the step covers; more than one only if it skips them.
    """

    what: str
    width: int = 1


@dataclass(frozen=True)
class Recipe:
    """The steps that make the spec of a call from the graph's inputs; see `compile_recipe`."""

    steps: tuple[RecipeStep, ...]

    def spec(self, values: Sequence[Any]) -> ArgumentSpec:
        """The key of a call with these inputs."""
        records: list[TensorRecord] = []
        present: list[bool] = []
        at = 0
        for what, width in self.steps:
            if what == "tensor":
                records.append(record_of(values[at]))
            elif what == "optional":
                present.append(values[at] is not None)
                if present[-1]:
                    records.append(record_of(values[at]))
            at += width
        return ArgumentSpec(tuple(records), tuple(present))

    def types(self, spec: ArgumentSpec) -> list[TensorType | None]:
        """The type that a spec gives each input; None = the spec does not hold the input's type."""
        records, present = iter(spec.records), iter(spec.present)
        out: list[TensorType | None] = []
        for what, width in self.steps:
            if what == "skip":
                out += [None] * width
            elif what == "optional" and not next(present):
                out.append(_ABSENT)
            else:
                out.append(next(records).type())
        return out


def compile_recipe(program: Program, depths: Sequence[int] = ()) -> Recipe:
    """The recipe of a graph (R2.8).

    Tensors are specialised; those whose definedness the graph asks for are optional. Numbers,
    lists, and leaves nested deeper than `NESTING_LIMIT` are skipped, adjacent ones in one step.

    Args:
        program: the graph.
        depths: number of containers around each of the first inputs; the others are in none.
    """
    optional = {value for instr in program.body.walk() if issubclass(instr.op, Definedness) for value in instr.operands}
    steps: list[RecipeStep] = []
    for index, value in enumerate(program.inputs):
        deep = index < len(depths) and depths[index] > NESTING_LIMIT
        if isinstance(program.type_of(value), TensorType) and not deep:
            steps.append(RecipeStep("optional" if value in optional else "tensor"))
        elif steps and steps[-1].what == "skip":
            steps[-1] = RecipeStep("skip", steps[-1].width + 1)
        else:
            steps.append(RecipeStep("skip"))
    return Recipe(tuple(steps))


def record_of(value: Any) -> TensorRecord:
    """The record of a run-time value: an array, a NumPy scalar, a number, or None (undefined)."""
    if type(value) is np.ndarray:
        return TensorRecord(value.dtype, value.ndim)
    if value is None:
        return UNDEFINED
    if isinstance(value, DeviceTensor):
        device, _, index = value.device.partition(":")
        return TensorRecord(value.dtype, value.ndim, requires_grad(value), device, int(index or 0))
    if not isinstance(value, (np.ndarray, np.generic)):
        return NUMBER
    return TensorRecord(value.dtype, value.ndim, requires_grad(value))


def _text(record: TensorRecord) -> str:
    if record.dtype is None:
        return "a number" if record.defined else "undefined"
    text = f"{dtype_of(record.dtype)}[{', '.join('?' * record.rank)}]"
    return f"{text} requires_grad" if record.requires_grad else text
