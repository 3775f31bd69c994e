"""Every property in which recorded types differ from the types that a guard expects.

`dialect.guards.checks` decides on values and stops at the first difference; this works on the types
kept from a miss, long after the values are gone, and names all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...dialect.guards.checks import UnreadableType, misaligned_text, symbol_name
from ...dialect.guards.relaxed import relaxed_mismatch
from ...dialect.ir.gradient_mode import requires_grad_mismatch
from ...dialect.ir.symbolic import Sym, evaluate
from ...dialect.ir.types import TensorType, Type, contiguous_strides


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One failing property.

    Attributes:
        operand: index of the operand.
        kind: ``"object"``, ``"dtype"``, ``"device"``, ``"rank"``, ``"size"``, ``"equal-sizes"``,
            ``"empty"``, ``"layout"``, ``"requires-grad"``, ``"relaxed"``, or ``"strides"``, which
            differ because sizes do.
        text: the property, what it was and what was expected.
    """

    operand: int
    kind: str
    text: str


def mismatches(
    expected: Sequence[Type],
    seen: Sequence[Type | None],
    labels: Sequence[str] | None = None,
    *,
    relaxed: bool = False,
) -> list[Mismatch]:
    """All failing properties, in order of the operands (R1.39, R1.40); [] = the guard passes.

    Args:
        seen: types of the values that were checked; None = the undefined tensor.
        labels: what the user calls the operands; default ``operand 0``, ``operand 1``, …
        relaxed: as the relaxed guard compares (R3.42), the first property of each operand alone.
    """
    labels = labels or [f"operand {k}" for k in range(len(expected))]
    if relaxed:
        reasons = [_relaxed(want, got) for want, got in zip(expected, seen, strict=True)]
        return [
            Mismatch(k, "relaxed", f"{labels[k]}: {reason}")
            for k, reason in enumerate(reasons) if reason
        ]  # fmt: skip
    return _Comparison(labels).run(expected, seen)


def _relaxed(want: Type, got: Type | None) -> str | None:
    if got is None:
        return "is undefined, specialised for a tensor"
    return relaxed_mismatch(want, got) if isinstance(want, TensorType) else None


class _Comparison:
    def __init__(self, labels: Sequence[str]) -> None:
        self.labels = labels
        self.found: list[Mismatch] = []
        self.symbols: dict[str, tuple[int, str]] = {}
        self.deferred: list[tuple[int, int, Sym, int]] = []

    def run(self, expected: Sequence[Type], seen: Sequence[Type | None]) -> list[Mismatch]:
        for k, (want, got) in enumerate(zip(expected, seen, strict=True)):
            if not isinstance(want, TensorType):
                if want != got:
                    self.add(k, "object", f"is {got}, specialised for {want}")
            elif got is not None:
                self.tensor(k, want, got)
        for k, axis, dim, size in self.deferred:
            known = {name: bound for name, (bound, _) in self.symbols.items()}
            try:
                value = evaluate(dim, known)
            except (KeyError, ZeroDivisionError):
                # Its symbol has failed itself, and is in the list, or stands nowhere by itself.
                if not self.found:
                    text = f"{_size(axis)} is {size}, and nothing tells what {dim} stands for"
                    self.add(k, "equal-sizes", text)
                continue
            if value != size:
                self.add(k, "equal-sizes", f"{_size(axis)} is {size}, must be {dim} = {value}")
        return sorted(self.found, key=lambda m: m.operand)

    def add(self, operand: int, kind: str, text: str) -> None:
        self.found.append(Mismatch(operand, kind, f"{self.labels[operand]}: {text}"))

    def tensor(self, k: int, want: TensorType, got: Type) -> None:
        if not isinstance(got, TensorType):
            return self.add(k, "object", f"is a Python {got}, specialised for a tensor")
        if want.defined is False:
            return self.add(k, "object", "is defined, specialised for an undefined tensor")
        if want.dtype is not None and want.dtype is not got.dtype:
            self.add(k, "dtype", f"dtype is {got.dtype}, specialised for {want.dtype}")
        elif want.dtype is not None and isinstance(got, UnreadableType) and got.is_foreign:
            text = f"dtype is {got.dtype} in foreign byte order, specialised for {want.dtype}"
            self.add(k, "dtype", text)
        if want.device is not None and want.device != got.device:
            self.add(k, "device", f"is on {got.device}, specialised for {want.device}")
        if reason := requires_grad_mismatch(want.requires_grad, got.requires_grad):
            self.add(k, "requires-grad", reason)
        if want.shape is not None and None not in want.shape:
            if want.rank != got.rank:
                return self.add(k, "rank", f"rank is {got.rank}, specialised for {want.rank}")
            self.sizes(k, want, got)
        return self.layout(k, want, got)

    def sizes(self, k: int, want: TensorType, got: TensorType) -> None:
        for axis, (dim, size) in enumerate(zip(want.shape or (), got.shape or (), strict=True)):
            assert isinstance(size, int)
            if isinstance(dim, int):
                if dim != size:
                    self.add(k, "size", f"{_size(axis)} is {size}, specialised for {dim}")
                continue
            assert isinstance(dim, Sym)
            if size == 0:
                self.add(k, "empty", f"{_size(axis)} is 0, specialised for sizes of at least 1")
                continue
            name = symbol_name(dim)
            if name is None:
                self.deferred.append((k, axis, dim, size))
                continue
            place = f"dimension {axis} of {self.labels[k]}"
            bound, first = self.symbols.setdefault(name, (size, place))
            if bound != size:
                text = f"{_size(axis)} is {size}, must equal {first}, which is {bound}"
                self.add(k, "equal-sizes", text)

    def layout(self, k: int, want: TensorType, got: TensorType) -> None:
        shape = got.shape
        if want.strides is None or shape is None or math.prod(shape) == 0:  # type: ignore[arg-type]
            return
        if isinstance(got, UnreadableType) and got.misaligned:
            self.add(k, "layout", misaligned_text(got.misaligned))
        # Literal strides that differ along with the sizes say nothing that the sizes do not.
        implied = any(m.operand == k and m.kind == "size" for m in self.found)
        kind = "strides" if implied else "layout"
        if isinstance(want.strides, str):
            if got.strides != want.strides:
                self.add(k, "layout", "is not contiguous, specialised for contiguous")
            return
        if len(want.strides) != len(shape):
            self.add(k, "rank", f"rank is {len(shape)}, specialised for {len(want.strides)}")
            return
        steps: Sequence[Any] = (
            got.strides if isinstance(got.strides, tuple) else contiguous_strides(shape)  # type: ignore[arg-type]
        )
        for axis, (w, step, size) in enumerate(zip(want.strides, steps, shape, strict=True)):
            if size == 1:
                continue
            if step is None:
                text = f"stride of dimension {axis} is no multiple of the item size"
                self.add(k, "layout", text)
            elif w is not None and w != step:
                text = f"stride of dimension {axis} is {step}, specialised for {w}"
                self.add(k, kind, text)


def _size(axis: int) -> str:
    return f"size of dimension {axis}"


__all__ = ["Mismatch", "mismatches"]
