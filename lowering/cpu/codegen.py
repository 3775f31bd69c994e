"""LLVM IR text to object code: which passes of LLVM run. Nothing of MLIR is imported.

LLVM's ``default<O3>`` is made for code that people write, and takes three times as long on kernels
for code that is not faster (`bench/compile.py`).  Kernels are nests of loops over arrays, without
calls that could be inlined, without exceptions or globals, and MLIR has simplified their scalars.
"""

from __future__ import annotations

from ..libllvm import LLVMModule
from ..target import Target

# Nests learn the bounds that they are called with.  Slots of the entry become values.  Loops take
# the form that the vectorizer knows, in which their bounds are known and short ones vanish.  It
# asks for simplified code, and for results of a loop that are made after it.  What it leaves is
# simplified again: addresses in inner loops, and what its checks compute at every round.
KERNEL = (
    "ipsccp,function("
    "sroa,early-cse,simplifycfg,loop-simplify,lcssa,loop(loop-rotate),"
    "loop(indvars,loop-deletion,loop-unroll-full),"
    "sroa,early-cse,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
    "loop-vectorize,"
    "instcombine<no-verify-fixpoint>,loop-mssa(licm),slp-vectorizer,simplifycfg)"
)
# Loops of Python's source branch, and read what the round before has written. A number that goes
# through memory from round to round stays in a register (gvn), what a test has shown is not tested
# again (correlated-propagation). Rounds that branch are unrolled, for CPUs predict branches apart.
LOOPS = (
    "ipsccp,function("
    "lower-expect,sroa,early-cse<memssa>,simplifycfg,instcombine<no-verify-fixpoint>,"
    "correlated-propagation,simplifycfg,loop-simplify,lcssa,loop(loop-rotate),"
    "loop(indvars,loop-deletion,loop-unroll-full),"
    "sroa,early-cse<memssa>,instcombine<no-verify-fixpoint>,loop-mssa(licm),"
    "correlated-propagation,gvn,simplifycfg,loop-simplify,lcssa,loop-vectorize,loop-load-elim,"
    "instcombine<no-verify-fixpoint>,loop-unroll<O3>,loop-mssa(licm),simplifycfg)"
)
# Sums of floats that are computed in vectors are added up in order, and so have the same bits. It
# is worth that for functions only: elements of columns are gathered in more time than it saves.
IN_ORDER = "force-ordered-reductions"
OF_FUNCTIONS = "profuse-functions"  # the attribute of functions whose loops compute such
OF_LOOPS = "profuse-loops"  # the attribute of functions for which these passes are
# Code without loops that are worth a vector.
PLAIN = "default<O1>"


def pipeline_of(text: str) -> str:
    """The passes for a kernel, given as LLVM IR text."""
    return LOOPS if f'"{OF_LOOPS}"' in text else KERNEL


def optimise(module: LLVMModule, text: str) -> None:
    """Run the passes for a kernel on its module, which was read from this text."""
    pipeline = pipeline_of(text)
    module.run(pipeline, *([IN_ORDER] if f'"{OF_FUNCTIONS}"' in text else []))


def object_code(text: str, target: Target, pipeline: str = KERNEL) -> bytes:
    """LLVM IR text to relocatable object code; raises LoweringError and InternalError."""
    with LLVMModule(text, target) as module:
        module.run(pipeline)
        return module.object_code()
