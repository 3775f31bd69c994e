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
from ...mlir.parse import replace_function
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


# A step says what its pass does.
for _name, _step in STEPS.items():
    _class = "".join(map(str.capitalize, _name.split("-")))
    register_pass(type(_class, (FinishingPass,), {"name": _name, "__doc__": _step.__doc__, "__module__": __name__}))
