"""Results as NumPy gives them: arguments themselves, and views of these and of each other.

A graph makes arrays of its own, so that the caller may do with its inputs what it likes. What
NumPy's function gives of an argument that it returns, or of a view of one, is that array or its
memory, to which the caller may write; and where it returns an array and a view of it, a write to
one is seen through the other. So the executor runs a graph that gives the arrays which own their
memory, and the ops that lead from these and from the inputs to the results run behind it, on NumPy.

An array that the function writes to is one of its inputs, read through a copy, in the graph
(`write_back`): a view of the copy is a view of the array. Where contents decide, in a branch or loop,
which array a result is, the graph gives flags that tell it (`choice_flags`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...dialect.dataclass import dataclass
from ...dialect.errors import TraceError
from ...dialect.importers.numpy.capture.trace import Trace
from ...dialect.ir.op import Fusion
from ...dialect.ir.program import Block, Instr, Module, Program
from ..interpret.evaluate import Evaluator
from ..memory.offsets import Refused
from .result_orders import Order, ValueOrders, in_order
from .result_origins import Origins

if TYPE_CHECKING:
    from ..dispatch.arguments import CallArguments
    from ..dispatch.leaf_spec import Noting
    from ..dispatch.leaf_values import Value

ORDER_UNKNOWN = TraceError(
    "arguments lie in another order in memory than that of their axes, and in which order a result "
    "lies then is not known",
    hint="pass arrays in C order: np.ascontiguousarray(x)",
)


@dataclass(eq=False)
class Results:
    """The making of a graph's results of its inputs, and of arrays that own their memory.

    Attributes:
        module: the graph that gives these arrays; what it writes comes last, as in the trace.
        count: how many of its outputs are not what it writes.
        program: from the inputs of the graph and these outputs to the results; None = they are the outputs.
        views: runs it.
        either: results that are a view of an input or a copy, as its layout decides: number of the
            result -> that of the input, and that of the output which is the copy.
        read: numbers of the inputs that ``views`` reads.
        layouts: how the outputs lie in memory; None = they have an axis at most.
    """

    module: Module
    count: int
    program: Program | None
    views: Evaluator | None
    either: dict[int, tuple[int, int]]
    read: frozenset[int]
    layouts: ValueOrders | None

    @property
    def is_plain(self) -> bool:
        """True if the results are the outputs of the graph, in some order in memory."""
        return self.views is None

    def orders(self, given: Sequence[Any]) -> Sequence[Order | None] | None:
        """The orders in memory of the axes of the outputs, where there is one to ask for; None = they are not known."""
        return () if self.layouts is None else self.layouts.of(given)

    def put(self, outputs: Sequence[Any], given: Sequence[Any], orders: Sequence[Order | None] | None) -> list[Any]:
        """The results, and what is written.

        Args:
            outputs: those of the graph.
            given: the inputs as the caller has them.
            orders: what `orders` says of these.
        """
        arrays = outputs[: self.count]
        if orders:
            ordered = {id(x): in_order(x, order) for x, order in zip(arrays, orders, strict=False)}
            arrays = [ordered.get(id(x), x) for x in arrays]
        if len(arrays) > 1 and len(set(map(id, arrays))) < len(arrays):
            arrays = _apart(arrays)
        if self.views is None:
            return [*arrays, *outputs[self.count :]]
        results = self.views.run([*given, *arrays])
        for k, (root, copy) in self.either.items():
            # What NumPy copies has the contents of its time, not of now.
            view = results[k]
            is_view = view is given[root] or np.may_share_memory(view, given[root])
            if not is_view and view.size:
                results[k] = _laid_out_as(view, arrays[copy])
        return [*results, *outputs[self.count :]]

    def see_to(self, arguments: CallArguments, results: int) -> None:
        """Have emitted code serve calls whose arrays lie in C order, with results as NumPy's.

        ``results``: how many there are. Raises Refused where the order of one is not known, or is
        another one in a function that has effects.
        """
        from ..dispatch.leaf_values import ArrayValue, Test

        orders = self.usual_orders()
        if self.layouts is not None:
            if orders is None:
                raise Refused("the order in memory of a result is not known")
            for k, value in enumerate(arguments.values):
                if not isinstance(value, ArrayValue):
                    continue
                if len(value.sizes) > 1:
                    arguments.tests.append(Test(("in_order", value.ref, len(value.sizes)), 1))
                if not self.layouts.is_usual:
                    singles = zip(value.sizes, self.layouts.singles(k), strict=True)
                    arguments.tests += [Test(("same", size, 1), int(one)) for size, one in singles]
        if arguments.writing is None:
            arguments.laid = self.noting(arguments.values, results)
            arguments.orders = orders if self.views is None else None
        if self.views is not None or any(order is not None for order in orders or ()):
            if arguments.writing is not None:
                raise Refused("a result lies in another order in memory, or is a view")
            arguments.views = arguments.laid

    def noting(self, inputs: Sequence[Value], results: int) -> Noting:
        """The function that makes the results in emitted code, of the inputs and of the outputs of kernels.

        Nothing is written to there, so that a result is a view in each call, or in none.
        """
        from ..dispatch.leaf_spec import Noting
        from ..dispatch.leaf_values import ArrayValue
        from ..dispatch.number_values import NumberValue
        from ..dispatch.refs import position_of
        from .view_source import view_function

        read = [k for k in range(len(inputs)) if k in self.read]
        positions: list[Any] = []
        for value in (inputs[k] for k in read):
            assert isinstance(value, (ArrayValue, NumberValue))
            if isinstance(value, NumberValue):
                positions.append(value.position)
            else:
                positions.append(position_of(value.ref))
        function = view_function(self.program, len(inputs), read, self.count, self.usual_orders(), _apart)
        return Noting(function, tuple(positions), tuple(range(results)), results)

    def usual_orders(self) -> list[Order | None] | None:
        """The orders for inputs whose axes lie in their order; None where there is none to ask."""
        return None if self.layouts is None else self.layouts.usual


def _apart(outputs: Sequence[Any]) -> list[Any]:
    """Arrays of their own for all outputs, of which passes have found that some are equal."""
    seen: set[int] = set()
    arrays = []
    for x in outputs:
        is_known = id(x) in seen and type(x) is np.ndarray
        arrays.append(x.copy("K") if is_known else x)
        seen.add(id(x))
    return arrays


def _laid_out_as(copy: np.ndarray, contents: np.ndarray) -> np.ndarray:
    """An array of these contents with its axes in the order of another array's."""
    if copy.flags.c_contiguous == contents.flags.c_contiguous:
        return contents
    array = np.empty_like(copy, contents.dtype)
    np.copyto(array, contents)
    return array


def results_of(trace: Trace, *, orders: bool = True) -> Results | None:
    """The `Results` of a trace; None if they are the outputs of its graph.

    ``orders``: the axes of results lie in memory in NumPy's order, else in C order.
    """
    main = trace.module.main
    origins = Origins(trace, orders)
    results = origins.program.outputs
    views = [origins.view(v) for v in results]
    arrays = [v for v in results if not origins.is_number(v)]
    repeats = len(set(arrays)) < len(arrays)  # one array in several places
    if not repeats and not any(view is not None and origins.is_outside(view) for view in views):
        layouts = origins.layouts(results)
        if layouts is None and len(arrays) < 2:
            return None
        return Results(trace.module, len(results), None, None, {}, frozenset(), layouts)
    outputs: dict[int, None] = {}  # those that the graph gives
    flags: dict[int, None] = {}  # those that tell which arrays branches and loops give
    either: dict[int, tuple[int, int]] = {}
    needed: set[int] = set()  # instructions, by identity
    for k, (value, view) in enumerate(zip(results, views, strict=True)):
        if view is None or not origins.is_outside(view):
            if value not in origins.inputs:
                outputs[value] = None
            continue
        needed.update(map(id, view.chain))
        outputs |= dict.fromkeys([*view.numbers, *view.arrays])
        flags |= dict.fromkeys(view.flags)
        if view.may_copy and view.root in origins.inputs and main.inputs.index(view.root) in trace.writes:
            either[k] = main.inputs.index(view.root), value
            origins.check_own(view)
    # A copy may be a view of the inputs as well, so that it has a place but no name.
    copies = list(dict.fromkeys(value for _, value in either.values() if value not in outputs))
    order = [*outputs, *copies, *flags]
    either = {k: (root, order.index(value)) for k, (root, value) in either.items()}
    instrs = [instr for instr in origins.instrs if id(instr) in needed]
    free = [origins.program.new_value() for _ in copies]
    names = [origins.raw.get(v, v) for v in outputs]
    body = Block((*main.inputs, *names, *free, *flags), instrs, results)
    program = Program("views", body, origins.program.types, origins.program.count)
    read = {*results, *(operand for instr in instrs for operand in instr.operands)}
    finals = main.outputs[len(results) :]
    told = origins.graph
    graph = Program(main.name, Block(main.inputs, told.body.instrs, (*order, *finals)), told.types, told.count)
    return Results(
        Module(_without_dead_views(graph), trace.module.functions),
        len(order),
        program,
        Evaluator(program, Module(program)),
        either,
        frozenset([k for k, v in enumerate(main.inputs) if v in read]),
        origins.layouts(list(outputs)),
    )


def _without_dead_views(program: Program) -> Program:
    """The program without views of which it makes no use any more."""
    used = {*program.outputs}
    kept: list[Instr] = []
    for instr in reversed(program.body.instrs):
        op = instr.op
        is_view = bool(op.aliases) and op.fusion is Fusion.VIEW and not (op.writes or instr.blocks)
        if is_view and used.isdisjoint(instr.results):
            continue
        kept.append(instr)
        used.update(instr.operands)
        for block in instr.blocks:
            used.update(block.outputs)
            for inner in block.walk():
                used.update(inner.operands)
                used.update(v for b in inner.blocks for v in b.outputs)
    body = Block(program.inputs, kept[::-1], program.outputs)
    return Program(program.name, body, program.types, program.count)
