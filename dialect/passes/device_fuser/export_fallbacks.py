"""Write the fallbacks of device groups into files that tools can open (R3.1 step 15)."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from mlir import ir

from ...errors import PipelineError
from ...ir.program import Module, Program
from ...mlir.decoded_module import DecodedModule
from ...ops.speculation import FallbackGraph
from ..base import Pass, register_pass


@register_pass
@dataclass(frozen=True)
class ExportFallbacks(Pass):
    """Write each fallback, with what it calls, as a module of its own into the folder ``to``.

    `profuse-opt` and `profuse-run` take such a file, of which the fallback is the public function;
    its name has that of the graph in front. Without a folder the pass does nothing, and the graph
    is as it was in any case.
    """

    name: ClassVar[str] = "export-fallbacks"
    counts_changes: ClassVar[bool] = True
    to: str = ""

    def run(self, module: ir.Module) -> None:
        if not self.to:
            return
        graphs = DecodedModule(module)
        for name in list(graphs.with_ops(FallbackGraph)):
            for fallback in graphs[name].callees(FallbackGraph):
                path = Path(self.to) / f"{name}-{fallback}.mlir"
                try:
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(_module_of(graphs, fallback).to_mlir(), encoding="utf-8")
                except OSError as error:
                    raise PipelineError(
                        f"a fallback cannot be written to {path}: {error}", hint="name a folder that can be written"
                    ) from error
                self.count("fallbacks-exported")


def _module_of(graphs: DecodedModule, name: str) -> Module:
    """A function, and those that it calls, as a module in which it is the main program."""
    functions: dict[str, Program] = {}
    waiting = [name]
    while waiting:
        current = waiting.pop()
        if current not in functions:
            functions[current] = graphs[current]
            waiting += [symbol for instr in graphs[current].body.walk() for symbol in instr.symbols]
    return Module(functions.pop(name), functions)
