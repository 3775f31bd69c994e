"""From object code to a callable on arrays: loads a kernel and generates a Python function for it.

The generated function allocates outputs, fills the kernel's slots (`lowering.abi`) and calls the
kernel with the GIL released.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.ir.dtypes import dtype_named
from ...dialect.ir.program import Program
from ...dialect.ir.size_algebra import parse_dim
from ...dialect.ops.control_flow.control import LOOPS
from ...dialect.ops.queries import Count
from ..interpret.evaluate import Adapt, Evaluator, as_kernels_give_it
from ..interpret.loop_limit import LIMITS, VoidRun
from ..memory import output_pool
from ..settings.events import Counters
from ..settings.knobs import knobs

if TYPE_CHECKING:
    from ...dialect.ir.program import Module
    from ...lowering.abi import KernelABI, KernelArtifact
    from ...lowering.cpu.loader import Loaded


def kernel_runner(artifact: KernelArtifact, counters: Counters, interpreted: Callable[..., Any]) -> Callable[..., Any]:
    """Load a kernel and return a callable on the group's operands.

    The callable returns one result, or a tuple of several. After the operands it takes, for each
    result, an array to write the result into, or None. It ignores an array of another shape or
    dtype. Results of rank 0 are always new.

    Args:
        artifact: the kernel.
        counters: counts launches and library calls.
        interpreted: evaluates the group op by op and raises what NumPy raises. It runs if a launch
            is voided (the kernel reports an index out of range, for instance), and instead of a
            launch if an int operand needs more than 64 bits.
    """
    from ...lowering.cpu.loader import load, set_library_threads

    loaded = load(artifact)
    if artifact.library_calls:
        set_library_threads(knobs.library_threads)
    if artifact.shared_steps:
        from .threads import provide_threads

        provide_threads()
    function = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(loaded.address)
    source, scope = call_source(artifact)
    scope |= {"fn": function, "C": counters, "KEEP": loaded, "interpreted": interpreted}
    exec(compile(source, generated_file(f"call of {artifact.name}"), "exec"), scope)
    call = scope["call"]
    call.kernel = artifact, loaded
    return call


def native_kernel(runner: Callable[..., Any]) -> tuple[KernelArtifact, Loaded] | None:
    """The kernel behind a callable of `kernel_runner`; None for other callables."""
    return getattr(runner, "kernel", None)


def always_launches(abi: KernelABI) -> bool:
    """True if results are always what the kernel writes, and never what is evaluated instead.

    Evaluated results may be views. A kernel is not called with ints that do not fit 64 bits.
    """
    ints = (s for s in abi.inputs if s.kind == "scalar" and dtype_named(s.dtype).kind != "f")
    return not abi.can_violate and next(ints, None) is None


def call_source(artifact: KernelArtifact) -> tuple[str, dict[str, Any]]:
    """Python source of the calling function, and the objects that it refers to by name."""
    abi = artifact.abi
    scope: dict[str, Any] = {
        "asarray": np.asarray,
        "ptr": output_pool.data_pointer,
        "empty": output_pool.empty,
        "np_empty": np.empty,
        "workspace": output_pool.workspace,
        "ndarray": np.ndarray,
        "StructError": struct.error,
    }
    args = [f"a{i}" for i in range(len(abi.inputs))]
    destinations = [f"given{k}=None" for k in range(len(abi.results))]
    lines = [f"def call({', '.join([*args, *destinations])}):"]
    formats, slots = [], []
    for name, spec in zip(args, abi.inputs, strict=True):
        if spec.kind == "scalar":
            formats.append({"f": "d", "i": "q", "b": "q"}[dtype_named(spec.dtype).kind])
            slots.append(name)
        else:
            array = name
            if not spec.dims:  # a scalar stays one for what is evaluated instead of the kernel
                array = f"array_of_{name}"
                lines.append(f"    {array} = {name} if type({name}) is ndarray else asarray({name})")
            formats.append("Q")
            slots.append(f"ptr({array})")
    for symbol, (index, axis, times) in abi.symbols.items():
        quotient = f" // {times}" if times != 1 else ""
        lines.append(f"    {symbol} = a{index}.shape[{axis}]{quotient}")
    outs: list[str] = []
    voids = []
    for k, out in enumerate(abi.outputs):
        dtype = dtype_named(out.dtype)
        scope[f"D{k}"] = dtype.numpy
        shape = f"({', '.join(out.dims)},)" if out.dims else "()"
        static = all(isinstance(parse_dim(d), int) for d in out.dims)
        small = static and np.prod([int(d) for d in out.dims], initial=dtype.itemsize) < 8192
        allocation = f"{'np_empty' if small else 'empty'}({shape}, D{k})"
        if out.dims and out.kind != "violation":
            g = f"given{len(outs)}"
            fits = f"{g}.shape == {shape} and {g}.dtype == D{k}"
            allocation = f"{g} if {g} is not None and {fits} else {allocation}"
        lines.append(f"    o{k} = {allocation}")
        formats.append("Q")
        slots.append(f"ptr(o{k})")
        if out.kind == "violation":
            voids.append(f"o{k}[()]")
        else:
            outs.append(f"o{k}[()]" if not out.dims else f"o{k}")
    formats.append("Q")
    slots.append("0" if abi.workspace == "0" else f"workspace({abi.workspace})")
    formats += "q" * len(abi.symbols)
    slots += list(abi.symbols)
    for index, axis in abi.strides:
        size = dtype_named(abi.inputs[index].dtype).itemsize
        formats.append("q")
        slots.append(f"a{index}.strides[{axis}] // {size}")
    scope["pack"] = struct.Struct("=" + "".join(formats)).pack
    lines += [
        "    try:",
        f"        fn(pack({', '.join(slots)}))",
        # Python code has computed an int of more than 64 bits: NumPy decides what happens.
        "    except StructError:",
        f"        return interpreted({', '.join(args)})",
        "    C.kernel_launches += 1",
    ]
    if artifact.library_calls:
        lines.append(f"    C.library_calls += {artifact.library_calls}")
    for void in voids:
        lines += [f"    if {void}:", "        C.voided_launches += 1", f"        return interpreted({', '.join(args)})"]
    lines.append(f"    return {', '.join(outs)}")
    return "\n".join(lines), scope


def interpreted_group(
    function: Program, module: Module, counters: Counters, adapt: Adapt | None = None
) -> Callable[..., Any]:
    """A callable that evaluates a fusion function op by op, in place of a kernel.

    Its results are C-contiguous, and may be views of its operands. With loops it raises
    VoidRun where a limit holds (`loop_limit`). The attribute ``interprets``
    marks such callables.
    """

    def count() -> None:
        counters.evaluated_ops += 1

    if any(instr.op is Count for instr in function.body.walk()):
        # What its types say of sizes holds in the kernel alone, which has looked at the numbers.
        function = module.functions.get(function.name.replace("fusion", "fallback"), function)
    evaluator = Evaluator(function, module, on_op=count, adapt=adapt)
    loops = any(instr.op in LOOPS for instr in function.body.walk())

    def call(*args: Any) -> Any:
        if loops and LIMITS.current is not None:
            raise VoidRun
        out = [as_kernels_give_it(result) for result in evaluator(args)]
        return out[0] if len(out) == 1 else tuple(out)

    call.interprets = True  # type: ignore[attr-defined]
    return call
