"""Runs a kernel once, with guard bytes around all its memory, and then inspects the memory."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ....dialect.dataclass import dataclass
from ....dialect.ir.dtypes import dtype_named
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import evaluate
from .guarded_memory import PATTERNS, Framed, same_bits

if TYPE_CHECKING:
    from ....lowering.abi import KernelArtifact

Strides = Sequence[int] | None


@dataclass(frozen=True)
class Placed:
    """The memory of a launch.

    Attributes:
        launch: runs the kernel on this memory; each launch overwrites the outputs.
        inputs: the input arrays; None for Python numbers.
        outputs: the output arrays.
        workspace: the workspace.
    """

    launch: Callable[[], None]
    inputs: list[Framed | None]
    outputs: list[Framed]
    workspace: Framed


@dataclass(frozen=True)
class RunOutcome:
    """The outcome of one run.

    Attributes:
        outputs: the results, without outputs of kind "violation".
        violated: True if the kernel reports that its results are void.
        wrong: an illegal access of the kernel, in words; "" = none was found.
    """

    outputs: list[np.ndarray]
    violated: bool
    wrong: str


class Launcher:
    """A loaded kernel that can be run on any inputs."""

    def __init__(self, artifact: KernelArtifact) -> None:
        from ....lowering.cpu.loader import load, set_library_threads

        self.abi = artifact.abi
        self._loaded = load(artifact)
        if artifact.library_calls:
            set_library_threads(1)
        self._spare: list[np.ndarray] = []
        self._function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._loaded.address)

    def run(
        self,
        args: Sequence[Any],
        strides: Sequence[Strides],
        sizes: Mapping[str, int],
        *,
        turn: int = 0,
        aligned: bool = True,
        onto: tuple[int, int] | None = None,
    ) -> RunOutcome:
        """Run the kernel on these inputs.

        Args:
            args: arrays and Python numbers; the values of arrays are copied to new memory.
            strides: strides of each input in elements; None = C-contiguous.
            sizes: symbol -> size.
            turn: 0 or 1: index of the byte pattern that fills the memory before the run.
            aligned: True = arrays begin at multiples of 64 bytes; False = one element behind.
            onto: (output, input) pair that shall use the same memory.
        """
        placed = self.place(args, strides, sizes, turn=turn, aligned=aligned, onto=onto)
        # A copy is needed for strided inputs only: the memory between their elements is unknown.
        before = [
            None if f is None or steps is None else f.whole.copy()
            for f, steps in zip(placed.inputs, strides, strict=True)
        ]
        placed.launch()
        spared = list(placed.inputs)
        if onto is not None:
            spared[onto[1]] = None
        wrong = ""
        for number, (input_frame, was, value) in enumerate(zip(spared, before, args, strict=True)):
            if input_frame is None:
                continue
            same = input_frame.holds(value) if was is None else same_bits(input_frame.whole, was)
            if not same:
                wrong = f"it changes input {number}, or memory beside it"
        for number, frame in enumerate(placed.outputs):
            if not frame.is_intact:
                wrong = f"it writes beside output {number}"
        if not placed.workspace.is_intact:
            wrong = "it writes beside its workspace"
        kinds = [out.kind for out in self.abi.outputs]
        frames = placed.outputs
        self._spare = [f.whole for f in spared if f is not None]
        return RunOutcome(
            [f.array for f, kind in zip(frames, kinds, strict=True) if kind != "violation"],
            self.has_voided(placed),
            wrong,
        )

    def has_voided(self, placed: Placed) -> bool:
        """True if the last launch on these inputs has left its results to NumPy."""
        rows = zip(placed.outputs, self.abi.outputs, strict=True)
        voids = [frame.array for frame, out in rows if out.kind == "violation"]
        return any(bool(v.view(np.uint8).any()) for v in voids)

    def place(
        self,
        args: Sequence[Any],
        strides: Sequence[Strides],
        sizes: Mapping[str, int],
        *,
        turn: int = 0,
        aligned: bool = True,
        onto: tuple[int, int] | None = None,
    ) -> Placed:
        """Put the inputs into memory, for launches; `run` explains the arguments."""
        pattern = PATTERNS[turn]
        slots: list[int] = []
        placed: list[Framed | None] = []
        for value, spec, steps in zip(args, self.abi.inputs, strides, strict=True):
            dtype = dtype_named(spec.dtype).numpy
            if spec.kind == "scalar":
                packed = np.array([value], dtype).tobytes()
                slots.append(int.from_bytes(packed.ljust(8, b"\0"), "little"))
                placed.append(None)
                continue
            offset = 0 if aligned else dtype.itemsize
            frame = Framed(np.shape(value), dtype, pattern, steps, offset, self._spare)
            frame.array[...] = value
            placed.append(frame)
            slots.append(frame.address)
        outputs: list[Framed] = []
        for number, out in enumerate(self.abi.outputs):
            if onto is not None and number == onto[0]:
                over = placed[onto[1]]
                assert over is not None
                frame = over
            else:
                dtype = dtype_named(out.dtype).numpy
                shape = [evaluate(parse_dim(d), sizes) for d in out.dims]
                offset = 0 if aligned or not shape else dtype.itemsize
                frame = Framed(shape, dtype, pattern, None, offset)
            outputs.append(frame)
            slots.append(frame.address)
        workspace = Framed((self.abi.workspace_size(dict(sizes)),), np.dtype(np.uint8), pattern)
        slots.append(workspace.address)
        slots += [sizes[name] for name in self.abi.symbols]
        for index, axis in self.abi.strides:
            input_frame = placed[index]
            assert input_frame is not None
            slots.append(input_frame.array.strides[axis] // input_frame.array.itemsize)
        words = np.array([s & (2**64 - 1) for s in slots], np.uint64)

        def launch() -> None:
            self._function(words.ctypes.data)

        return Placed(launch, placed, outputs, workspace)
