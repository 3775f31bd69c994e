"""The steps that finish a captured backward run, as passes (R4.29 - R4.40).

Captures call the steps themselves, without MLIR; both are `analysis.backward_order`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...analysis.backward_order import STEPS
from ...errors import IRError
from ...ir.types import ListType
from ...mlir.context import loc_of
from ...mlir.decode import decode_function
from ...mlir.rewrite import replace_function
from ...mlir.typed_values import main_functions
from ...ops.backward import LISTS
from ..base import Pass, register_pass


@dataclass(frozen=True)
class FinishingPass(Pass):
    """Base of the passes. ``keep-order``: calls of code of users do not pass each other.

    Raises IRError for a function that is not given the five lists of a captured run.
    """

    counts_changes: ClassVar[bool] = True
    keep_order: bool = False

    def run(self, module: ir.Module) -> None:
        for func in main_functions(module):
            program = decode_function(func)
            types = [program.type_of(v) for v in program.inputs]
            if len(types) != len(LISTS) or any(not isinstance(t, ListType) for t in types):
                raise IRError(
                    f"@{program.name} is no captured backward run, which takes five lists", loc=loc_of(func.location)
                )
            changed = STEPS[self.name](program, self.keep_order)
            if changed:
                self.count("changes", changed)
                replace_function(func, program)


@register_pass
@dataclass(frozen=True)
class FoldValidation(FinishingPass):
    """Remove checks of gradients whose types are known to be right (R4.19)."""

    name: ClassVar[str] = "fold-validation"


@register_pass
@dataclass(frozen=True)
class MoveUnpackHooks(FinishingPass):
    """Put calls of unpack hooks right in front of their first user (R4.33)."""

    name: ClassVar[str] = "move-unpack-hooks"


@register_pass
@dataclass(frozen=True)
class MoveTensorPreHooks(FinishingPass):
    """Put calls of tensor hooks behind the gradient that they are given (R4.34)."""

    name: ClassVar[str] = "move-tensor-pre-hooks"


@register_pass
@dataclass(frozen=True)
class MovePreHooks(FinishingPass):
    """Put calls of prehooks as early as their arguments allow (R4.35)."""

    name: ClassVar[str] = "move-pre-hooks"


@register_pass
@dataclass(frozen=True)
class MoveAccumulations(FinishingPass):
    """Put accumulations behind the later of leaf and gradient (R4.36)."""

    name: ClassVar[str] = "move-accumulations"


@register_pass
@dataclass(frozen=True)
class MovePreHooksLate(FinishingPass):
    """Put calls of prehooks right in front of what uses their results (R4.37)."""

    name: ClassVar[str] = "move-pre-hooks-late"


@register_pass
@dataclass(frozen=True)
class MovePostAccumulateHooks(FinishingPass):
    """Put calls of post-accumulate hooks behind the accumulation of the same leaf (R4.38).

    Raises IRError where the leaf accumulates nothing.
    """

    name: ClassVar[str] = "move-post-accumulate-hooks"


@register_pass
@dataclass(frozen=True)
class MovePostHooks(FinishingPass):
    """Put calls of posthooks that replace nothing behind the ops that they follow (R4.39)."""

    name: ClassVar[str] = "move-post-hooks"


@register_pass
@dataclass(frozen=True)
class RemoveUnusedGradients(FinishingPass):
    """Remove what no result, leaf or code of users needs (R4.40)."""

    name: ClassVar[str] = "remove-unused-gradients"
