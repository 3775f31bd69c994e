"""Ops of neural networks in traces: `recorded` where a trace is to hold them, `composite` in any case.

What `profuse.nn` offers is a composition in the general path. Where the knob ``neural_ops`` is set,
a trace has the op itself, for a fuser that looks for it.
"""

from __future__ import annotations

from typing import Any

from ....errors import InternalError
from ....ir.op import op_named
from ....ops.nn.composite import Composite
from .current import current
from .operators import Recording, op


def recorded(name: str, *operands: Any, **attrs: Any) -> Any:
    """The results of a composite op, if the trace in progress records such ops; else None.

    Args:
        name: of the op.
        operands: in the order of ATen's arguments, None for optional ones that are not given.
        attrs: of the op, without ``given``.

    Outside of traces, and where no operand is traced, the answer is None.
    """
    rec = current()
    if rec is None or not rec.neural_ops or not is_traced(*operands):
        return None
    return composite(name, *operands, **attrs)


def is_traced(*operands: Any) -> bool:
    """True if the trace in progress records what is done with these operands."""
    rec = current()
    return rec is not None and not rec.evaluates and any(isinstance(x, Recording) for x in operands)


def composite(name: str, *operands: Any, **attrs: Any) -> Any:
    """The results of a composite op: recorded if an operand is traced, else evaluated.

    Arguments are those of `recorded`; raises what the op raises.
    """
    cls = op_named(name)
    if not issubclass(cls, Composite):
        raise InternalError(f"{name} is no composite op")
    present, bits = cls.packed(operands)
    attrs = {**attrs, **bits}
    if any(isinstance(x, Recording) for x in present):
        return op(name, *present, **attrs)
    return cls.evaluate(cls.full_attrs(attrs), *present)
