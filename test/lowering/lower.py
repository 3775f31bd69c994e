"""Print one stage of every function of a file of graphs: ``lower.py STAGE FILE [CPU | in-place]``.

``in-place``: kernels may be asked to write outputs onto inputs; which ones is printed, too.
"""

import dataclasses
import sys

from profuse.dialect.errors import LoweringError
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.target import Target, host_target

_X86 = "x86_64-unknown-linux-gnu"


def main(stage, path, how=None):
    in_place = how == "in-place"
    cpu = None if in_place else how
    with open(path) as file:
        module = decode_module(parse_module(file.read(), path))
    # Only what a feature string names is relied on.
    target = Target(_X86, cpu, "+fma") if cpu else dataclasses.replace(host_target())
    for function in (module.main, *module.functions.values()):
        print(f"// {function.name}")
        try:
            artifact = compile_program(function, target, keep_stages=True, in_place=in_place)
        except LoweringError as error:
            print(f"error: {error}")
            continue
        print(f"// workspace {artifact.abi.workspace}")
        if in_place:
            print(f"// in place {artifact.abi.in_place}")
        print(artifact.stages[stage])


main(*sys.argv[1:])
