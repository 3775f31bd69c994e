"""The facts that a caller must know to call a kernel: plain values that cross processes and live in caches.

A kernel is one symbol ``void entry(int64_t *slots)``.  Slots, in order:

1. inputs: the data pointer of a tensor, or the 8 bytes of a Python number in place;
2. outputs: data pointers of arrays the caller has allocated, C-contiguous;
3. the workspace pointer, 64-byte aligned (any value when the workspace is ``"0"``);
4. size symbols, in the order of `KernelABI.symbols`;
5. run-time strides in elements, in the order of `KernelABI.strides`.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import field
from math import inf
from typing import Any, TypeVar

from ..dialect.dataclass import dataclass
from ..dialect.errors import LoweringError
from ..dialect.ir.dtypes import dtype_named
from ..dialect.ir.size_algebra import multiple_of, parse_dim
from ..dialect.ir.symbolic import Dim, evaluate

CONTIGUOUS = "contiguous"
Size = TypeVar("Size", int, Dim)


@dataclass(frozen=True)
class TensorSpec:
    """One input or output.

    Attributes:
        kind: ``"tensor"`` (the slot is a pointer), ``"scalar"`` (the slot contains a Python
            number), or, for an output, ``"violation"`` (the slot is a pointer to a bool; true = the
            results are void, because NumPy would raise).
        dtype: short dtype name (`dialect.ir.dtypes`).
        dims: size expressions over the symbols.
        strides: ``"contiguous"`` or element strides, each a literal or ``"?"`` (run time).
    """

    kind: str
    dtype: str
    dims: tuple[str, ...]
    strides: str | tuple[str, ...] = CONTIGUOUS


@dataclass(frozen=True)
class KernelABI:
    """Calling convention of one kernel.

    Attributes:
        inputs, outputs: in slot order.
        symbols: symbol name -> (input index, axis, times): the size there is that many times the
            symbol; insertion order = slot order. See `sizes`.
        strides: (input index, axis) of each run-time stride, in slot order.
        workspace: scratch bytes needed, a size expression over the symbols.
        in_place: (output, input) pairs that may be the same memory, exactly; no others may overlap.
        restores: a void run leaves such memory as it was.
        ends_early: a void run ends before it has written any result.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    symbols: dict[str, tuple[int, int, int]]
    strides: tuple[tuple[int, int], ...]
    workspace: str
    in_place: tuple[tuple[int, int], ...] = ()
    restores: bool = False
    ends_early: bool = False

    def sizes(self, read: Callable[[int, int], Size]) -> dict[str, Size]:
        """The meaning of each size symbol; ``read(input, axis)`` is a size, or what tells one."""
        return {name: read(k, axis) // times for name, (k, axis, times) in self.symbols.items()}

    def workspace_size(self, sizes: dict[str, int]) -> int:
        """Workspace bytes under these symbol values."""
        return evaluate(parse_dim(self.workspace), sizes)

    def bytes_of_run(self, sizes: dict[str, int]) -> int:
        """Bytes of all arrays of a launch under these symbol values, the workspace included."""
        total = self.workspace_size(sizes)
        for spec in (*self.inputs, *self.outputs):
            shape = [evaluate(parse_dim(dim), sizes) for dim in spec.dims]
            total += math.prod(shape, start=dtype_named(spec.dtype).itemsize)
        return total

    @property
    def results(self) -> tuple[TensorSpec, ...]:
        """The outputs that are results, without outputs of kind "violation"."""
        return tuple(spec for spec in self.outputs if spec.kind != "violation")

    @property
    def can_violate(self) -> bool:
        """True if the kernel can report that its results are void because NumPy would raise."""
        return len(self.results) < len(self.outputs)


@dataclass(frozen=True)
class KernelArtifact:
    """A compiled kernel.

    Attributes:
        name: of the fusion function.
        object: relocatable object code (ELF, Mach-O or COFF, after the target).
        entry: symbol of the entry function.
        abi: how to call it.
        stages: stage name -> text, when they were kept.
        seconds: stage name -> seconds spent.
        library_calls: calls of library products per run (a batch counts once).
        shared_steps: steps that several threads may share.
        one_thread: why loops that may take long are not shared, each reason once.
    """

    name: str
    object: bytes
    entry: str
    abi: KernelABI
    stages: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    library_calls: int = 0
    shared_steps: int = 0
    one_thread: tuple[str, ...] = ()

    def header(self) -> dict[str, Any]:
        """All but the object code, as JSON data; see `from_header`."""
        return {
            "name": self.name,
            "entry": self.entry,
            "abi": abi_to_json(self.abi),
            "stages": self.stages,
            "seconds": self.seconds,
            "library_calls": self.library_calls,
            "shared_steps": self.shared_steps,
            "one_thread": list(self.one_thread),
        }

    @classmethod
    def from_header(cls, data: dict[str, Any], object: bytes) -> KernelArtifact:
        """The artifact of a `header` and its object code."""
        rest = {key: value for key, value in data.items() if key not in ("abi", "one_thread")}
        return cls(object=object, abi=abi_from_json(data["abi"]), one_thread=tuple(data.get("one_thread", ())), **rest)

    def to_json(self) -> str:
        """JSON text; inverse of `from_json`."""
        return json.dumps(self.header() | {"object": base64.b64encode(self.object).decode()})

    @classmethod
    def from_json(cls, text: str) -> KernelArtifact:
        """The artifact that `to_json` wrote."""
        data = json.loads(text)
        return cls.from_header(data, base64.b64decode(data.pop("object")))


def abi_to_json(abi: KernelABI) -> dict[str, Any]:
    """A calling convention as JSON data; inverse of `abi_from_json`."""
    return {
        "inputs": [_spec_to_json(s) for s in abi.inputs],
        "outputs": [_spec_to_json(s) for s in abi.outputs],
        "symbols": [[name, *place] for name, place in abi.symbols.items()],
        "strides": [list(s) for s in abi.strides],
        "workspace": abi.workspace,
        "in_place": [list(pair) for pair in abi.in_place],
        "restores": abi.restores,
        "ends_early": abi.ends_early,
    }


def abi_from_json(data: dict[str, Any]) -> KernelABI:
    """The calling convention that `abi_to_json` wrote."""
    return KernelABI(
        inputs=tuple(_spec_from_json(s) for s in data["inputs"]),
        outputs=tuple(_spec_from_json(s) for s in data["outputs"]),
        symbols={name: (index, axis, times) for name, index, axis, times in data["symbols"]},
        strides=tuple((index, axis) for index, axis in data["strides"]),
        workspace=data["workspace"],
        in_place=tuple((output, input_) for output, input_ in data["in_place"]),
        restores=data.get("restores", False),
        ends_early=data.get("ends_early", False),
    )


def _spec_to_json(spec: TensorSpec) -> list:
    strides = spec.strides if isinstance(spec.strides, str) else list(spec.strides)
    return [spec.kind, spec.dtype, list(spec.dims), strides]


def _spec_from_json(data: list) -> TensorSpec:
    kind, dtype, dims, strides = data
    return TensorSpec(kind, dtype, tuple(dims), strides if isinstance(strides, str) else tuple(strides))


def size_bindings(specs: list[TensorSpec], symbols: list[str]) -> dict[str, tuple[int, int, int]]:
    """`KernelABI.symbols`, if possible of axes whose size just is a symbol.

    Raises LoweringError for a symbol of which no size is a multiple.
    """
    bindings: dict[str, tuple[int, int, int]] = {}
    for number, spec in enumerate(specs):
        for axis, dim in enumerate(spec.dims):
            name, times = multiple_of(parse_dim(dim)) or ("", 0)
            if name and times < bindings.get(name, (0, 0, inf))[2]:
                bindings[name] = (number, axis, times)
    for name in symbols:
        if name not in bindings:
            raise LoweringError(f"size symbol {name} is not the size of any argument")
    return {name: bindings[name] for name in symbols}
