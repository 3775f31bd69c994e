"""The graph being recorded by a trace: emits instructions, infers, captures arrays, bakes numbers.

Values in the IR are untyped tensors or scalars.  Beside it the recorder keeps, per value, a *hint*:
dtype and the shape the example arguments give (None for a size known only at run time).  Hints
serve errors at the user's line, result dtypes and ranks, and numbers that Python insists on; a
number among them that shapes the graph is recorded as a `TraceGuard`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ....dataclass import dataclass
from ....errors import COMPLAINTS, DTypeError, InternalError, Loc, ProfuseError, RangeError, TraceError, located
from ....ir.op import Failure, Op, op_named
from ....ir.program import Block, Instr, Program
from ....ir.types import TENSOR, ScalarType, Shape, TensorType, Type, type_of
from ..python.caught import catching
from ..python.failures import decides, fail_early
from ..python.float_errors import STATE, told_error, told_errors
from .captures import Captures
from .current import trace_error, user_loc
from .derivation import Derivation
from .drawn import Draws
from .gradient_flow import FLOATS, GradientFlow
from .layouts import Layouts
from .numbers import Numbers
from .trace_guards import TraceGuard

if TYPE_CHECKING:
    from ..capture.scope import TraceScope
    from ..capture.watching import TraceWatch
    from ..source.source import ConvertedSource
    from ..world.journal import Journal
    from ..world.places import StateRead
    from ..world.shadows import Shadows


@dataclass(frozen=True)
class Policy:
    """The policy on when a loop of the source is recorded as one.

    Attributes:
        rounds: so many rounds of a loop whose bounds are Python's are recorded one by one.
        ops: so many ops may be recorded of a loop that need not stay one.
        unrolled: the most ops of a graph with a loop whose rounds are recorded one by one.
        elements: loops over single elements stay loops, though Python runs them as fast.
    """

    rounds: int = 16
    ops: int = 400
    unrolled: int = 3000
    elements: bool = False


@dataclass(eq=False)
class Mark:
    """The state of a recorder at one point, see `Recorder.mark`."""

    blocks: tuple[Block, ...]
    last: Instr | None
    known: dict[int, Any]
    guards: list[TraceGuard]
    written: dict[int, None]
    remarks: dict[str, None]
    appended: int
    suppressing: int
    draws: int


class Recorder:
    """One graph under construction.

    Args:
        name: of the main program.
        leaves: example arguments; each becomes an input.
        fn: the traced function, for messages.

    Attributes:
        entry: code of the frame that the traced function is called from.
        scope: what the function sees.
        journal: what the function must not change.
        watch: what runs that the scope has not made.
        shadows: of objects that the function reads; None = it reads these themselves.
        captures: arrays that are no arguments.
        layouts: how values lie in memory.
        numbers: those that Python has needed.
        draws: from random generators.
    """

    entry: CodeType
    scope: TraceScope
    journal: Journal
    watch: TraceWatch
    shadows: Shadows | None = None
    evaluates: ClassVar[bool] = False  # ops are evaluated at once, and a value is the array itself

    def __init__(self, name: str, leaves: Sequence[Any], fn: Any = None) -> None:
        self.fn = fn
        self.leaves = list(leaves)
        self.program = Program(name)
        self.blocks = [self.program.body]
        self.hints: dict[int, Type] = {}
        self.known: dict[int, Any] = {}  # numbers computed from sizes and number leaves only
        self.home: dict[int, Block] = {}
        self.defs: dict[int, Instr] = {}
        self.shaped: dict[int, int] = {}  # gradients that are given -> what they have the shape of
        # Holds blocks as well, lest the id of a dropped block be that of a new one.
        self._cache: dict[int, tuple[Block, dict[tuple, int]]] = {}
        self.captures, self.layouts, self.draws = Captures(self), Layouts(), Draws()
        self.numbers = Numbers(self)
        self.derivation = Derivation(self)
        self._appended = 0
        self.recorded = 0  # ops, with those of trials that have been given up
        self.inputs = [self._input(leaf) for leaf in leaves]
        self.stand_ins: dict[int, tuple[Any, int]] = {}  # by identity, traced arrays that are inputs, and their values
        self.asks_unseen = False  # code may have asked by ``is`` which of them are one array
        self.leaf_of = {value: k for k, value in enumerate(self.inputs)}
        self.inner_reads: list[StateRead] = []  # of graphs that have joined this one
        self.line: Loc | None = None  # of what is recorded on behalf of an earlier instruction
        self.remarks: dict[str, None] = {}  # what users may want to know of the graph
        self.most_ops: int | None = None  # of a graph; None = any number
        self.neural_ops = False  # composites are recorded as such, not as what they are composed of
        self.loop_bytes: int | None = None  # what gradients may keep of a loop; None = anything
        self.runs = 0  # in so many places; 0 = the trace has ended
        self.sizes_hold = False  # sizes in hints are those of every call, not of an example
        self.strict = False  # the function asks for strict fusion
        self.is_native = False  # arrays in a foreign byte order would be treated in another way
        self.exact = False  # results are to be NumPy's to the last bit
        self.takes_writes = False  # writes to inputs are results
        self.written: dict[int, None] = {}  # inputs that the function writes to
        self.lazy_sizes = True  # `len` gives traced sizes
        self.gave_sizes = False  # it has given some
        self.lifts_new = False  # arrays that NumPy makes meanwhile are traced values
        self.writes_new = False  # it would help: traced values are written to such an array
        self.suppressing = 0  # `contextlib.suppress` blocks that would catch an error of an op
        self.refused: TraceError | None = None  # an error that the user's code may have caught
        self.flow = GradientFlow(self)
        self.scalars: set[int] = set()  # NumPy scalars that no op tells as such: carried ones
        self.policy: Policy | None = None  # of loops in the source; None = they are Python's
        self.source: ConvertedSource | None = None  # what converted code asks
        self._float_state = STATE.get()  # outside of the function, where callers look at it
        self.memory: dict[str, Any] = {}  # what earlier traces of this call have found

    # --- values -------------------------------------------------------------------------------

    def _input(self, leaf: Any) -> int:
        type_ = type_of(leaf)
        if isinstance(type_, ScalarType):
            if type(leaf) is int and not -(2**63) <= leaf < 2**63:
                raise DTypeError(f"integer argument {leaf} does not fit 64 bits")
            value = self.new_value(ScalarType(type_.dtype, leaf))
            self.known[value] = leaf
            return value
        return self.new_value(TensorType(type_.dtype, np.shape(leaf)))  # type: ignore[union-attr]

    def new_value(self, hint: Type, home: Block | None = None) -> int:
        """A value of this hint, defined in ``home`` (default: the current block)."""
        bare = ScalarType(hint.dtype) if isinstance(hint, ScalarType) else TENSOR
        value = self.program.new_value(bare)
        self.hints[value] = hint
        self.home[value] = home or self.blocks[-1]
        return value

    def shape(self, value: int) -> Shape:
        """Hint of a tensor's shape (rank is always known)."""
        hint = self.hints[value]
        if isinstance(hint, ScalarType):
            return ()
        if not isinstance(hint, TensorType) or hint.shape is None:
            raise trace_error("the rank of a result is not known while tracing")
        return hint.shape

    def dtype(self, value: int) -> np.dtype:
        """NumPy dtype of a value."""
        hint = self.hints[value]
        if isinstance(hint, (TensorType, ScalarType)) and hint.dtype is not None:
            return hint.dtype.numpy
        raise InternalError("a traced value has no dtype", loc=user_loc())

    def is_float(self, value: int) -> bool:
        """True for a value that can have a gradient; of one that is undefined not even the dtype is known."""
        hint = self.hints[value]
        dtype = hint.dtype if isinstance(hint, (TensorType, ScalarType)) else None
        return dtype is not None and dtype.numpy.kind in FLOATS

    # --- instructions -------------------------------------------------------------------------

    def evaluate(self, op: str, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The results of an op on arrays, of a recorder that `evaluates`; one, or a tuple."""
        raise NotImplementedError

    def call_custom(self, function: Any, args: tuple) -> Any:
        """Call a function with a gradient of its own, of a recorder that `evaluates`."""
        raise NotImplementedError

    def call_again(self, function: Any, args: tuple, gradient: Any) -> Any:
        """The gradients of a function's arguments, of a recorder that `evaluates`."""
        raise NotImplementedError

    def emit(
        self, op: str | type[Op], operands: Sequence[int], attrs: Mapping[str, Any] | None = None
    ) -> tuple[int, ...]:
        """Append an instruction and return its results; errors of `infer` name the user's line."""
        cls = op_named(op) if isinstance(op, str) else op
        attrs = dict(attrs or {})
        loc = user_loc()
        for operand in operands:
            self.check_visible(operand)
        if self.flow.is_off:
            operands = self.flow.operands(cls, operands)
        elif cls.writes and not self.flow.notes_writes:
            self.flow.notes_writes = any(self.is_float(operands[k]) for k in cls.writes)
        hints = tuple(self.hints[o] for o in operands)
        caught = self.catching()
        if caught:
            self._check_caught(cls, operands, hints)
        try:
            if caught:
                fail_early(self, cls, operands, hints, cls.full_attrs(attrs))
            types = cls.infer(hints, cls.full_attrs(attrs))
        except ProfuseError as error:
            self._failed(error)
            raise type(error)(error.what, loc=error.loc or loc, hint=error.hint) from None
        except COMPLAINTS as error:
            self._failed(error)
            raise located(error, loc) from None
        results = tuple(self.new_value(_bare_hint(t)) for t in types)
        instr = Instr(cls, tuple(operands), results, attrs, (), loc)
        self.append(instr)
        if len(results) == 1:
            self.numbers.note(results[0], instr, hints)
        return results

    # --- errors that the user's code catches --------------------------------------------------

    def catching(self) -> bool:
        """True if the user's code would catch an error that is raised now."""
        return self.suppressing > 0 or catching(self.entry)

    def _failed(self, error: Exception) -> None:
        """Pin the sizes that made an op fail, as the function may catch the error and go on."""
        if not isinstance(error, TypeError):
            self.numbers.pin()

    def _check_caught(self, op: type[Op], operands: Sequence[int], hints: tuple[Type, ...]) -> None:
        """Make sure that an op whose error would be caught raises in all calls or in none.

        Sizes that decide are pinned; raises TraceError where contents do.
        """
        failure = decides(self, op, operands, hints)
        if failure is Failure.CONTENTS:
            raise trace_error(
                f"whether {op.name} raises an error here, which the function would catch, depends "
                "on array contents and is known only at run time",
                "test for it with np.where or pf.cond instead of try and except",
            )
        if failure is Failure.SIZES:
            self.numbers.pin()

    def is_untouched(self, target: Any) -> bool:
        """True for an object that no code has got itself: all have had its shadow."""
        return self.shadows is not None and self.shadows.has(target) and not self.watch.codes

    def remark(self, text: str) -> None:
        """Have `explain` tell something of the graph."""
        self.remarks[text] = None

    def callee(self, function: Any) -> Any:
        """The callable that this trace calls in place of ``function``."""
        return self.scope.callee(function)

    def append(self, instr: Instr) -> None:
        """Append a finished instruction to the current block.

        Raises TraceError if the graph gets too long, and where the function has NumPy tell of
        floating-point errors.
        """
        if STATE.get() is not self._float_state and (how := told_errors()) is not None:
            error = told_error(how)
            raise trace_error(error.what, error.hint)
        self._appended += 1
        self.recorded += 1
        if self.most_ops is not None and self._appended > self.most_ops:
            raise trace_error(
                f"the graph has more than {self.most_ops} ops here, as each round of a Python loop has ops of its own",
                "write the loop with pf.fori_loop, or set pf.knobs.trace_ops",
            )
        self.blocks[-1].instrs.append(instr)
        for result in instr.results:
            self.defs[result] = instr

    def check_visible(self, value: int) -> None:
        """Raise TraceError if a value of a finished branch or loop body is used outside of it."""
        if not self.is_visible(value):
            raise trace_error(
                "a value computed inside a branch or loop body is used outside of it",
                "return it from the function given to cond / while_loop / fori_loop",
            )

    def is_visible(self, value: int) -> bool:
        """False for a value of a finished branch or loop body."""
        home = self.home.get(value)
        return home is not None and any(home is block for block in self.blocks)

    @contextmanager
    def at(self, line: Loc | None) -> Iterator[None]:
        """Record instructions, and raise errors, as those of another line of the user's code."""
        before, self.line = self.line, line or self.line
        try:
            yield
        finally:
            self.line = before

    @contextmanager
    def nested(self, block: Block) -> Iterator[Block]:
        """Emit into ``block`` for the duration."""
        self.blocks.append(block)
        try:
            yield block
        finally:
            self.blocks.pop()

    def mark(self) -> Mark:
        """The mark to which `reset` goes back."""
        return Mark(
            tuple(self.blocks),
            self.blocks[-1].instrs[-1] if self.blocks[-1].instrs else None,
            dict(self.known),
            list(self.numbers.guards),
            dict(self.written),
            dict(self.remarks),
            self._appended,
            self.suppressing,
            len(self.draws.made),
        )

    def reset(self, mark: Mark) -> None:
        """Forget what has been recorded since ``mark``; captured arrays stay known."""
        self.blocks[:] = mark.blocks
        block = self.blocks[-1]
        while block.instrs and block.instrs[-1] is not mark.last:  # the last one, as others may be put before it
            block.instrs.pop()
        # What is cached of the block may have been made by what is gone.
        results = {r for i in block.instrs for r in i.results}
        for key, value in list(self._cache.get(id(block), (block, {}))[1].items()):
            if value not in results:
                del self._cache[id(block)][1][key]
        self.known, self.numbers.guards = dict(mark.known), list(mark.guards)
        self.written, self.remarks = dict(mark.written), dict(mark.remarks)
        self._appended, self.suppressing = mark.appended, mark.suppressing
        del self.draws.made[mark.draws :]
        self.derivation = Derivation(self)

    def cached(self, key: tuple, make: Callable[[], int]) -> int:
        """The value made for ``key`` in a block that encloses the current one."""
        for block in self.blocks:
            _, cache = self._cache.get(id(block), (block, {}))
            if key in cache:
                return cache[key]
        value = make()
        block = self.blocks[-1]
        self._cache.setdefault(id(block), (block, {}))[1][key] = value
        return value

    def dim(self, value: int, axis: int) -> int:
        """Scalar value: size of a tensor along an axis."""
        return self.cached(("dim", value, axis), lambda: self.emit("dim", [value], {"axis": axis})[0])

    # --- constants and captured arrays --------------------------------------------------------

    def constant(self, value: Any) -> int:
        """A Python number or a small array as a constant in the graph."""
        if isinstance(value, int) and not isinstance(value, bool):
            if not -(2**63) <= value < 2**64:
                raise RangeError(
                    f"Python integer {value} does not fit 64 bits",
                    loc=user_loc(),
                    hint="write it as a float, or compute with it outside of the function",
                )
            if value >= 2**63:
                value = np.uint64(value)
        if isinstance(value, (np.generic, np.ndarray)):
            array = np.array(value)
            # Results have the native byte order.
            array = array.astype(array.dtype.newbyteorder("="), copy=False)
            key: tuple[Any, ...] = ("array", array.dtype.str, array.shape, array.tobytes())
            return self.cached(key, lambda: self.emit("constant", [], {"value": array})[0])
        # repr tells 0.0 from -0.0, and takes all NaNs for one, where == does not.
        key = ("number", type(value), repr(value))
        return self.cached(key, lambda: self.emit("constant", [], {"value": value})[0])

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Close the graph; its traced values are useless from then on."""
        body = self.program.body
        body.args, body.outputs = tuple(inputs), tuple(outputs)
        self.blocks = []


def _bare_hint(type_: Type) -> Type:
    return type_.without_layout() if isinstance(type_, TensorType) else type_
