"""NumPy's broadcasting rule on shapes that may be unknown, static or symbolic."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..errors import ShapeError
from ..ir.symbolic import Sym
from ..ir.types import MaybeDim, ScalarType, Shape, TensorType, Type


def shape_text(shape: Sequence[MaybeDim]) -> str:
    """A shape as NumPy's messages spell it: ``(2,3)``, ``(4,)``, ``(s0,?)``."""
    sizes = ["?" if d is None else str(d) for d in shape]
    return f"({sizes[0]},)" if len(sizes) == 1 else f"({','.join(sizes)})"


def broadcast_shapes(*shapes: Shape | None) -> Shape | None:
    """Shape that all ``shapes`` broadcast to, or None when the rank of one is unknown.

    A literal 1 gives way to any other size; symbols fit only themselves, because a symbol stands
    for a size that is not 1 (sizes profiled as 1 stay literal). A size that is not known makes
    the result's size unknown unless another operand's literal size decides it.

    Raises ShapeError when the shapes can never fit, or are not known to.
    """
    if any(s is None for s in shapes):
        return None
    tuples = [s for s in shapes if s is not None]
    rank = max(map(len, tuples), default=0)
    return tuple(_broadcast_sizes([s[len(s) - k] for s in tuples if len(s) >= k], tuples) for k in range(rank, 0, -1))


def _broadcast_sizes(sizes: Iterable[MaybeDim], shapes: Sequence[Shape]) -> MaybeDim:
    """Common size of one axis; ``shapes`` are for the message."""
    common: MaybeDim = 1
    unknown = False
    for size in sizes:
        if size is None:
            unknown = True
        elif size == 1 or size == common:
            continue
        elif common == 1:
            common = size
        else:
            error = ShapeError(_mismatch(common, size, shapes))
            error.sizes = (common, size)
            raise error
    if unknown and (common == 1 or isinstance(common, Sym)):
        return None
    return common


def _mismatch(a: MaybeDim, b: MaybeDim, shapes: Sequence[Shape]) -> str:
    text = " ".join(map(shape_text, shapes))
    message = f"operands could not be broadcast together with shapes {text}"
    if isinstance(a, Sym) or isinstance(b, Sym):
        return f"{message}: sizes {a} and {b} are not known to be equal"
    return f"{message} "  # as NumPy has it


def shape_of(type_: Type) -> Shape | None:
    """Shape of an operand: ``()`` for a Python number, None for an unknown rank."""
    if isinstance(type_, ScalarType):
        return ()
    return type_.shape if isinstance(type_, TensorType) else None


def broadcast_types(types: Iterable[Type]) -> Shape | None:
    """`broadcast_shapes` of operand types; Python numbers count as rank 0."""
    return broadcast_shapes(*map(shape_of, types))
