"""The pass `differentiate`: functions of a module become their joint graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from mlir import ir

from ...errors import IRError, PipelineError
from ...mlir.context import loc_of
from ...mlir.decode import decode_function
from ...mlir.rewrite import replace_function
from ...mlir.values import main_functions
from ...passes.base import Pass, register_pass
from .differentiate import differentiate


@register_pass
@dataclass(frozen=True)
class Differentiate(Pass):
    """Make a joint graph of each public function: it also takes gradients and gives gradients.

    The function takes a gradient for each float result after its inputs, and returns a gradient
    for each float input after its results. ``wrt`` (``0:2``) names the inputs instead, by position.
    Inputs must have a dtype and a rank; writes to arrays that the function makes are made pure.
    """

    name: ClassVar[str] = "differentiate"
    wrt: str = ""

    def run(self, module: ir.Module) -> None:
        try:
            wrt = [int(part) for part in self.wrt.split(":")] if self.wrt else None
        except ValueError:
            raise PipelineError(f"wrt={self.wrt!r} is no list of numbers, as in 0:2") from None
        for func in main_functions(module):
            program = decode_function(func)
            try:
                joint = differentiate(program, wrt)
            except IRError as error:
                raise IRError(error.what, loc=loc_of(func.location), hint=error.hint) from None
            replace_function(func, joint)
            self.count("functions-differentiated")
