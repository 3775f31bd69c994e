"""A compiled GPU function as a plain value, for other processes and for the disk cache."""

from __future__ import annotations

from dataclasses import asdict, field
from typing import Any

from ...dialect.dataclass import dataclass
from ..abi import abi_from_json, abi_to_json
from .launch_plan import Choice, Condition, Launch, LaunchPlan, LibraryProduct, Matrix, Step


@dataclass(frozen=True)
class Usage:
    """The resources of a multiprocessor that one kernel needs, as ptxas reports them.

    Attributes:
        registers: registers per thread.
        spilled: bytes per thread that are stored and loaded for lack of registers.
        stack: bytes of local memory per thread.
        shared: bytes of static shared memory per block.
    """

    registers: int
    spilled: int
    stack: int
    shared: int

    def __str__(self) -> str:
        return (
            f"{self.registers} registers, {self.spilled} bytes spilled, {self.stack} bytes of "
            f"stack, {self.shared} bytes of shared memory"
        )


@dataclass
class GpuArtifact:
    """A compiled function: machine code of its kernels, and the launch plan.

    Attributes:
        name: name of the fusion function.
        chip: the chip for which the code is made, such as ``"sm_90"``.
        plan: launches and library products.
        code: the cubin; empty if compiling stopped at an earlier stage.
        usage: kernel -> its resources; empty without code.
        stages: stage name -> text; empty unless texts are kept.
        seconds: stage name -> seconds.
    """

    name: str
    chip: str
    plan: LaunchPlan
    code: bytes = b""
    usage: dict[str, Usage] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def object(self) -> bytes:
        """The code, under the attribute name of CPU kernels."""
        return self.code

    @property
    def library_calls(self) -> int:
        """Number of library products per run."""
        return sum(isinstance(step, LibraryProduct) for step in self.plan.steps)

    @property
    def shared_steps(self) -> int:
        """0: the threads of the host share no step of a device."""
        return 0

    def header(self) -> dict[str, Any]:
        """All but the code, as JSON data; see `from_header`."""
        return {
            "name": self.name,
            "chip": self.chip,
            "plan": {
                "name": self.plan.name,
                "abi": abi_to_json(self.plan.abi),
                "steps": [_step_to_json(step) for step in self.plan.steps],
            },
            "usage": {kernel: asdict(usage) for kernel, usage in self.usage.items()},
            "stages": self.stages,
            "seconds": self.seconds,
        }

    @classmethod
    def from_header(cls, data: dict[str, Any], code: bytes) -> GpuArtifact:
        """The artifact of a `header` and its code."""
        plan = data["plan"]
        steps = tuple(_step_from_json(step) for step in plan["steps"])
        usage = {kernel: Usage(**fields) for kernel, fields in data["usage"].items()}
        return cls(
            data["name"],
            data["chip"],
            LaunchPlan(plan["name"], abi_from_json(plan["abi"]), steps),
            code,
            usage,
            data["stages"],
            data["seconds"],
        )


_KINDS: dict[str, type] = {cls.__name__: cls for cls in (Choice, Launch, LibraryProduct)}


def _step_to_json(step: Step) -> dict[str, Any]:
    fields = asdict(step)
    if isinstance(step, Choice):
        for side in ("then", "otherwise"):
            fields[side] = [_step_to_json(inner) for inner in getattr(step, side)]
    return {"step": type(step).__name__, **fields}


def _step_from_json(data: dict[str, Any]) -> Any:
    fields = dict(data)
    kind = _KINDS[fields.pop("step")]
    if kind is Launch:
        return _launch(fields)
    if kind is LibraryProduct:
        for name in ("left", "right", "output", "bias"):
            if fields[name] is not None:
                fields[name] = _matrix(fields[name])
        return LibraryProduct(**fields)
    conditions = tuple(Condition(**condition) for condition in fields["conditions"])
    return Choice(conditions, *(tuple(map(_step_from_json, fields[side])) for side in ("then", "otherwise")))


def _launch(fields: dict[str, Any]) -> Launch:
    x, y, z = fields["grid"]
    bx, by, bz = fields["block"]
    arguments = tuple(map(tuple, fields["arguments"]))
    return Launch(fields["kernel"], (x, y, z), (bx, by, bz), arguments, fields["shared"])


def _matrix(fields: dict[str, Any]) -> Matrix:
    return Matrix(tuple(fields["argument"]), fields["offset"], tuple(fields["dims"]), tuple(fields["strides"]))
