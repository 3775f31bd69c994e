"""The function that makes the results of calls in emitted code, of arguments and of what kernels give, as source.

It does what `Results.put` does for calls that Python dispatches, in a fifth of the time. What an op raises there is
NumPy's exception, as in Python.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

from ...dialect.importers.numpy.python.users_code import generated_file
from ...dialect.ir.program import Program
from ..interpret.evaluate import bound_evaluate
from .result_orders import Order, in_order

_FEW = 4  # outputs that are compared in pairs


def view_function(
    program: Program | None,
    inputs: int,
    read: Sequence[int],
    outputs: int,
    orders: Sequence[Order | None] | None,
    apart: Callable[[Sequence[Any]], list[Any]],
) -> Callable[..., Any]:
    """The function, which takes the inputs that are read and then all outputs, and gives a tuple or the only result.

    Args:
        program: from inputs and outputs to results; None = these are the outputs.
        inputs: how many inputs of the graph there are, which are the first of the program's.
        read: the numbers of those that are passed.
        outputs: how many outputs kernels give.
        orders: how the axes of each lie in memory; None = nobody asks.
        apart: makes arrays of their own of outputs some of which are the same array.
    """
    scope: dict[str, Any] = {"in_order": in_order, "apart": apart}
    values = [f"v{v}" for v in program.inputs] if program else [f"v{k}" for k in range(inputs + outputs)]
    arrays = values[inputs : inputs + outputs]
    lines = [f"def views({', '.join([*(values[k] for k in read), *arrays])}):"]
    if orders is not None:
        for k, (name, order) in enumerate(zip(arrays, orders, strict=False)):
            scope[f"order{k}"] = order
            lines.append(f"    {name} = in_order({name}, order{k})")
    if len(arrays) > 1:
        same = f"len({{*map(id, ({', '.join(arrays)}))}}) < {len(arrays)}"
        if len(arrays) <= _FEW:
            same = " or ".join(f"{a} is {b}" for a, b in itertools.combinations(arrays, 2))
        lines.append(f"    if {same}:\n        {', '.join(arrays)} = apart([{', '.join(arrays)}])")
    results = [f"v{v}" for v in program.outputs] if program else arrays
    for k, instr in enumerate(program.body.instrs if program else ()):
        bound = instr.op.bound(instr.op.full_attrs(instr.attrs), len(instr.results))
        scope[f"op{k}"] = bound_evaluate(instr) if bound is None else bound
        targets = ", ".join(f"v{v}" for v in instr.results)
        lines.append(f"    {targets} = op{k}({', '.join(f'v{v}' for v in instr.operands)})")
    lines.append(f"    return {', '.join(results)}")
    exec(compile("\n".join(lines), generated_file("views"), "exec"), scope)
    return scope["views"]
