"""The graph being recorded by a trace: emits instructions, infers, captures arrays, bakes numbers.

Values in the IR are untyped tensors or scalars.  Beside it the recorder keeps, per value, a *hint*:
dtype and the shape the example arguments give (None for a size known only at run time).  Hints
serve errors at the user's line, result dtypes and ranks, and numbers that Python insists on; a
number among them that shapes the graph is recorded as a `TraceGuard`.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from ....dataclass import dataclass
from ....errors import (
    COMPLAINTS,
    DTypeError,
    InternalError,
    Loc,
    ProfuseError,
    RangeError,
    TraceError,
    located,
)
from ....ir.dtypes import dtype_of
from ....ir.op import Failure, Op, op_named
from ....ir.program import Block, Instr, Program
from ....ir.symbolic import Dimension, Sym, symbol
from ....ir.types import TENSOR, ListType, ScalarType, Shape, TensorType, Type, type_of
from ....ops import create
from ....ops.control_flow.control import LOOPS
from ....ops.indexing.slicing import Pick, Slice
from ....ops.queries import Dim, Size
from ..python.caught import catching
from ..python.failures import decides, fail_early
from ..python.float_errors import STATE, told_error, told_errors
from .current import contents_error, trace_error, user_loc
from .derivation import Derivation
from .gradient_flow import FLOATS, GradientFlow
from .leaves import NUMBERS, check_array
from .trace_guards import Constant, Expr, TraceGuard, numbers_of, passed

if TYPE_CHECKING:
    from ..capture.scope import Scope
    from ..capture.watching import Watch
    from ..source.source import Source
    from ..world.draws import Draw
    from ..world.journal import Journal
    from ..world.places import StateRead
    from ..world.round_draws import RoundDraws
    from ..world.shadows import Shadows


_REARRANGES = frozenset({
    "expand_dims", "imag", "moveaxis", "real", "reshape", "squeeze", "swapaxes", "transpose",
})  # fmt: skip


@dataclass(frozen=True)
class Policy:
    """When a loop of the source is recorded as one.

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
    count: int
    known: dict[int, Any]
    guards: list[TraceGuard]
    written: dict[int, None]
    remarks: dict[str, None]
    appended: int
    suppressing: int
    draws: int


@dataclass(frozen=True)
class Copied:
    """What NumPy has in place of a copy: a view.

    Attributes:
        source: the array of which it is a view.
        take: gives the view of an array and of what ``operands`` are; None = it is not known.
        operands: further values.
        loc: the line.
        order: "C" or "F", if it is in this order, and a copy of an array that is not.
    """

    source: int
    take: Callable[..., Any] | None = None
    operands: tuple[int, ...] = ()
    loc: Loc | None = None
    order: str | None = None


@dataclass(frozen=True)
class Laid:
    """How the axes of a value lie in memory in NumPy.

    Attributes:
        sources: arrays on which that depends.
        make: what makes an array that lies so of arrays that lie as they do.
    """

    sources: tuple[int, ...]
    make: Callable[..., Any]


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
    """

    entry: CodeType
    scope: Scope
    journal: Journal
    watch: Watch
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
        self.guards: list[TraceGuard] = []
        self.captured: dict[int, tuple[Any, int, int | None]] = {}
        self.created: dict[int, np.ndarray] = {}
        self.viewed: list[tuple[np.ndarray, int]] = []  # `created` ones with views, checksums
        self.unordered: dict[int, Laid | None] = {}  # values in the memory order of another array
        self.laid: dict[int, Laid] = {}  # values in an order that their ops do not tell
        self.raveled: dict[int, Copied] = {}  # reshapes that copy what is not contiguous
        self.copied: dict[int, Copied] = {}  # copies where NumPy has views
        self.shaped: dict[int, int] = {}  # gradients that are given -> what they have the shape of
        # Holds blocks as well, lest the id of a dropped block be that of a new one.
        self._cache: dict[int, tuple[Block, dict[tuple, int]]] = {}
        self.derivation = Derivation(self)
        self._resolved = 0
        self._appended = 0
        self.recorded = 0  # ops, with those of trials that have been given up
        self.inputs = [self._input(leaf) for leaf in leaves]
        self.leaf_of = {value: k for k, value in enumerate(self.inputs)}
        self.capture_inputs: list[int] = []
        self.inner_reads: list[StateRead] = []  # of graphs that have joined this one
        self.line: Loc | None = None  # of what is recorded on behalf of an earlier instruction
        self.remarks: dict[str, None] = {}  # what users may want to know of the graph
        self.most_ops: int | None = None  # of a graph; None = any number
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
        self.takes_draws = False  # draws from generators are inputs
        self.draws: list[Draw] = []  # in the order of the program
        self.drawn_in_loops: dict[int, RoundDraws] = {}  # by id of the bit generator
        self.has_drawn = False  # also where a draw has failed
        self.drawn_examples: dict[int, Any] = {}  # input -> what a draw might give
        self.drawn_copies: dict[int, int] = {}  # what the function gets -> the input
        self.drawn_shapes: dict[int, tuple[int | Sym, ...]] = {}  # of inputs, over the leaves
        self.drawn_from: set[int] = set()  # captured arrays that draws read
        self.suppressing = 0  # `contextlib.suppress` blocks that would catch an error of an op
        self.refused: TraceError | None = None  # an error that the user's code may have caught
        self.variables: set[int] = set()  # by which what is recorded now is to be differentiated
        self.flow = GradientFlow(self)
        self.scalars: set[int] = set()  # NumPy scalars that no op tells as such: carried ones
        self.policy: Policy | None = None  # of loops in the source; None = they are Python's
        self.source: Source | None = None  # what converted code asks
        self._float_state = STATE.get()  # outside of the function, where callers look at it
        self.memory: dict[str, Any] = {}  # what earlier traces of this call have found
        self.fixable = 0  # so many leaves become constants, in a new trace, if they decide sizes
        self.size_leaves: dict[int, Loc | None] = {}  # these, and the lines that need them

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
        """True for a value that can have a gradient."""
        return not isinstance(self.hints[value], ListType) and self.dtype(value).kind in FLOATS

    def is_scalar(self, value: int) -> bool:
        """True for a NumPy scalar, see `mutation.is_immutable`."""
        while not self.shape(value):
            made = self.defs.get(value)
            if value in self.scalars:
                return True
            if made is None:
                given = value in self.inputs and self.leaves[self.inputs.index(value)]
                return isinstance(given, np.generic)
            if made.op.name not in _REARRANGES:
                return made.op.name not in ("broadcast_to", "copy", "full", "slice")
            value = made.operands[0]
        return False

    def is_of_scalar(self, value: int) -> bool:
        """True for an array that is a view of a NumPy scalar here, and a new array in NumPy."""
        made = self.defs.get(value)
        while made is not None and made.op.aliases and self.shape(value):
            value = made.operands[0]
            made = self.defs.get(value)
        is_array = isinstance(self.hints[value], TensorType)
        return is_array and not self.shape(value) and self.is_scalar(value)

    # --- instructions -------------------------------------------------------------------------

    def evaluate(self, op: str, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """The results of an op on arrays, of a recorder that `evaluates`; one, or a tuple."""
        raise NotImplementedError

    def call_custom(self, function: Any, args: tuple) -> Any:
        """Call a function with a gradient of its own, of a recorder that `evaluates`."""
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
            self._know(results[0], instr, hints)
        return results

    # --- errors that the user's code catches --------------------------------------------------

    def catching(self) -> bool:
        """True if the user's code would catch an error that is raised now."""
        return self.suppressing > 0 or catching(self.entry)

    def _failed(self, error: Exception) -> None:
        """Pin the sizes that made an op fail, as the function may catch the error and go on."""
        if not isinstance(error, TypeError):
            self.pin()

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
            self.pin()

    def is_untouched(self, target: Any) -> bool:
        """True for an object that no code has got itself: all have had its shadow."""
        return self.shadows is not None and self.shadows.has(target) and not self.watch.codes

    def written_arrays(self) -> set[int]:
        """The ids of the captured arrays that the function writes to."""
        return {
            id(array) for array, value, _ in self.captured.values() if value in self.written
        }  # fmt: skip

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
        if STATE.get() is not self._float_state and (told := told_errors()) is not None:
            error = told_error(told)
            raise trace_error(error.what, error.hint)
        self._appended += 1
        self.recorded += 1
        if self.most_ops is not None and self._appended > self.most_ops:
            raise trace_error(
                f"the graph has more than {self.most_ops} ops here, as each round of a Python loop "
                "has ops of its own",
                "write the loop with pf.fori_loop, or set pf.knobs.trace_ops",
            )
        self.blocks[-1].instrs.append(instr)
        for result in instr.results:
            self.defs[result] = instr

    def _know(self, result: int, instr: Instr, hints: tuple[Type, ...]) -> None:
        """Record the number a result has, if it follows from sizes and number leaves alone."""
        value: Any = None
        hint = self.hints[result]
        if isinstance(hint, TensorType) and hint.shape != ():
            return
        if issubclass(instr.op, create.Constant):
            value = instr.attrs["value"]
        elif issubclass(instr.op, (Dim, Size)):
            shape = self.shape(instr.operands[0])
            if issubclass(instr.op, Dim):
                value = shape[instr.attrs["axis"]]
            elif None not in shape:
                value = math.prod(shape)
        elif instr.operands and all(o in self.known for o in instr.operands):
            try:
                with np.errstate(all="ignore"):
                    value = instr.op.evaluate(
                        instr.op.full_attrs(instr.attrs), *(self.known[o] for o in instr.operands)
                    )
            except (ArithmeticError, ValueError):
                return
        if value is None or not isinstance(value, (int, float, complex, np.generic, np.ndarray)):
            return
        self.known[result] = value
        if isinstance(hint, ScalarType):
            self.hints[result] = ScalarType(hint.dtype, value)

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
        """What `reset` needs to forget what is recorded from here on."""
        return Mark(
            tuple(self.blocks), len(self.blocks[-1].instrs), dict(self.known), list(self.guards),
            dict(self.written), dict(self.remarks), self._appended, self.suppressing,
            len(self.draws),
        )  # fmt: skip

    def reset(self, mark: Mark) -> None:
        """Forget what has been recorded since ``mark``; captured arrays stay known."""
        self.blocks[:] = mark.blocks
        block = self.blocks[-1]
        del block.instrs[mark.count :]
        # What is cached of the block may have been made by what is gone.
        made = {r for i in block.instrs for r in i.results}
        for key, value in list(self._cache.get(id(block), (block, {}))[1].items()):
            if value not in made:
                del self._cache[id(block)][1][key]
        self.known, self.guards = dict(mark.known), list(mark.guards)
        self.written, self.remarks = dict(mark.written), dict(mark.remarks)
        self._appended, self.suppressing = mark.appended, mark.suppressing
        del self.draws[mark.draws :]
        self.derivation = Derivation(self)

    def cached(self, key: tuple, make: Callable[[], int]) -> int:
        """The value made for ``key`` in a block that encloses the current one."""
        for block in self.blocks:
            _, made = self._cache.get(id(block), (block, {}))
            if key in made:
                return made[key]
        value = make()
        block = self.blocks[-1]
        self._cache.setdefault(id(block), (block, {}))[1][key] = value
        return value

    def dim(self, value: int, axis: int) -> int:
        """Scalar value: size of a tensor along an axis."""
        return self.cached(
            ("dim", value, axis), lambda: self.emit("dim", [value], {"axis": axis})[0]
        )

    # --- constants and captured arrays --------------------------------------------------------

    def constant(self, value: Any) -> int:
        """A Python number or a small array as a constant in the graph."""
        if isinstance(value, int) and not isinstance(value, bool):
            if not -(2**63) <= value < 2**64:
                raise RangeError(
                    f"Python integer {value} does not fit 64 bits", loc=user_loc(),
                    hint="write it as a float, or compute with it outside of the function",
                )  # fmt: skip
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

    def capture(self, array: Any, stand_in: np.ndarray | None = None) -> int:
        """An array the function closes over: an extra input, taken by reference.

        ``stand_in``: a host array of its dtype and shape, for one in the memory of a device.
        """
        found = self.captured.get(id(array))
        if found is not None:
            return found[1]
        if stand_in is None:
            try:
                check_array(array, "an array that the function uses: ")
            except ProfuseError as error:
                raise type(error)(error.what, loc=user_loc(), hint=error.hint) from None
        if id(array) in self.created and array.size <= 64:
            return self.constant(array)
        shown = array if stand_in is None else stand_in
        type_ = TensorType(dtype_of(shown.dtype), shown.shape)
        value = self.new_value(type_, home=self.program.body)
        # Arrays on a device are not read, so that changes of them remain unseen.
        seen = stand_in is not None or self.journal.watches_array(array)
        before = None if seen else checksum(array)
        self.captured[id(array)] = (array, value, before)
        self.capture_inputs.append(value)
        return value

    def note_view(self, array: np.ndarray) -> None:
        """Have `check_captured` refuse later changes of ``array``, if the function has made it."""
        if id(array) in self.created:
            self.viewed.append((array, checksum(array)))

    def check_captured(self) -> None:
        """Raise TraceError if the function changed a captured array while it was traced."""
        captured = [(array, before) for array, _, before in self.captured.values()]
        for array, before in (*captured, *self.viewed):
            if before is not None and checksum(array) != before:
                error = TraceError(
                    f"an array of shape {array.shape} that the function uses was changed in "
                    "place while it was traced: its earlier uses would see the change",
                    hint="build a new array instead of assigning to one",
                )
                error.is_undone = id(array) in self.created
                raise error

    def drop_unused_captures(self, outputs: Sequence[int]) -> None:
        """Forget captured arrays that no instruction, no draw and no output reads."""
        used = {*outputs, *self.drawn_from}
        for instr in self.program.body.walk():
            used.update(instr.operands)
            for block in instr.blocks:
                used.update(block.outputs)
        self.captured = {k: c for k, c in self.captured.items() if c[1] in used}
        self.capture_inputs = [value for _, value, _ in self.captured.values()]

    def finish(self, inputs: Sequence[int], outputs: Sequence[int]) -> None:
        """Close the graph; its traced values are useless from then on."""
        body = self.program.body
        body.args, body.outputs = tuple(inputs), tuple(outputs)
        self.blocks = []
        self.drawn_examples.clear()
        copies = {v: self.new_value(self.hints[v], home=body) for v in self.written}
        if copies:
            self.unordered |= dict.fromkeys(copies.values())  # they stand for arrays of any layout
            lent = self._written_in_part()
            body.replace(copies)
            body.instrs[:0] = [
                Instr(op_named("borrow" if v in lent else "copy"), (v,), (copy,))
                for v, copy in copies.items()
            ]

    def _written_in_part(self) -> set[int]:
        """The inputs to whose elements at run-time indices something is written.

        These writes become no pure ops, so that no kernel makes the array anew. Arrays that a loop
        writes to are copied, once: what a loan keeps to undo its writes would grow with the rounds.
        """
        found = set()
        for instr in self.program.body.walk():
            value, is_part = instr.operands[0] if instr.op.writes else None, False
            while value is not None and value not in self.written:
                made = self.defs.get(value)
                value = made.operands[0] if made is not None and made.operands else None
                is_part |= (
                    made is not None
                    and issubclass(made.op, (Pick, Slice))
                    and len(made.operands) > 1
                )
            if value is not None and is_part:
                found.add(value)
        return found - self._written_in_loops()

    def _written_in_loops(self) -> set[int]:
        """The inputs that loops write to."""
        found = set()
        for loop in self.program.body.walk():
            if loop.op not in LOOPS:
                continue
            for instr in (i for block in loop.blocks for i in block.walk() if i.op.writes):
                value: int | None = instr.operands[0]
                while value is not None and value not in self.written:
                    made = self.defs.get(value)
                    value = made.operands[0] if made is not None and made.operands else None
                if value is not None:
                    found.add(value)
        return found

    # --- numbers that Python needs ------------------------------------------------------------

    def varies(self, value: int) -> bool:
        """True if a number is computed from one by which the trace will be differentiated."""
        left = [value] if self.variables else []
        while left:
            v = left.pop()
            if v in self.variables:
                return True
            if self.dtype(v).kind in "fc":  # an int, or a size, has no derivative
                left += getattr(self.defs.get(v), "operands", ())
        return False

    def bake(self, value: int, loc: Loc | None = None) -> Any:
        """The number that ``value`` has for the example arguments, guarded.

        ``loc``: the line that needs the number, if that is not the user's current one.

        Raises TraceError if it is known only at run time.
        """
        if value not in self.known:
            raise contents_error(
                "a Python number is needed here, but this one depends on array contents and is "
                "known only at run time",
                "use pf.cond, pf.while_loop, pf.fori_loop or np.where",
            )
        number = self.known[value]
        if isinstance(number, (np.generic, np.ndarray)):
            number = number.item()
        expr = self.derivation.expr(value)
        if expr is None:
            self.pin()
        else:
            self._guard(expr, number, loc)
        return number

    def note_size(self, value: int) -> None:
        """Note the arguments that a number follows from, which decides the size of an array."""
        if not self.fixable or value not in self.known:
            return
        expr = self.derivation.expr(value)
        new = set() if expr is None else numbers_of(expr) - self.size_leaves.keys()
        ints = [k for k in new if k < self.fixable and type(self.leaves[k]) is int]
        if ints:
            self.size_leaves |= dict.fromkeys(ints, user_loc())

    def pin(self) -> None:
        """Guard all sizes and numbers, as any may have decided: the graph holds for these alone."""
        for leaf, example in enumerate(self.leaves):
            if isinstance(example, (np.ndarray, np.generic)):
                for axis, size in enumerate(example.shape):
                    self._guard(symbol(Dimension(leaf, axis)), size)
            elif type(example) in NUMBERS:
                self._guard(passed(leaf, type(example)), example)

    def _guard(self, expr: Expr, expected: Any, loc: Loc | None = None) -> None:
        if not isinstance(expr, (int, Constant)) and not any(g.expr == expr for g in self.guards):
            self.guards.append(TraceGuard(expr, expected, loc or user_loc()))


def _bare_hint(type_: Type) -> Type:
    return type_.without_layout() if isinstance(type_, TensorType) else type_


def checksum(array: np.ndarray) -> int:
    """A number that tells whether the elements of an array have been changed."""
    if array.flags.c_contiguous:
        return zlib.crc32(array.reshape(-1).view(np.uint8).data) if array.size else 0
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


__all__ = ["Copied", "Laid", "Mark", "Policy", "Recorder", "checksum"]
