"""The part of a leaf that calls functions of libraries, and tests what they give."""

from __future__ import annotations

from collections.abc import Sequence

from ..conditions.argument_reads import item_slot
from ..conditions.host_reads import emit_test, pointer_to
from ..counter_table import LeafCells
from ..leaf_spec import HostStep, Leaf
from ..leaf_values import ArrayValue, Test
from ..number_values import NUMBERS, Number
from ..refs import FromHost, Held, Position
from .leaf_body import KernelOutput, LeafBody

_SPARE = 16  # calls that may be given up before hits have made up for any
_HITS = 4  # calls that make up for one that was given up


class HostSteps(LeafBody):
    """Writes what is between the kernels of a leaf.

    Attributes:
        leaf: the leaf.
        cells: its cells.
        kernel_outputs: value number -> what a kernel or a function has made.
        computed: value number -> a Python number, as the 8 bytes that kernels take.
    """

    leaf: Leaf
    cells: LeafCells
    kernel_outputs: dict[int, KernelOutput]
    computed: dict[int, str]

    def spare(self, hits: str) -> None:
        """Leave the call to Python where too many calls were given up behind a function."""
        if self.cells.late is None:
            return
        w = self.w
        most = w.op(f"add i64 {w.op(f'udiv i64 {hits}, {_HITS}')}, {_SPARE}")
        late = w.load("i64", w.place(self.cells.late))
        self.leave_unless(w.op(f"icmp ult i64 {late}, {most}"))

    def between(self, index: int) -> None:
        """Write what comes before the kernel call of this number, and behind those before it."""
        for place, part in self.leaf.between:
            if place == index and isinstance(part, HostStep):
                self.host_step(part)
            elif place == index:
                self.late_tests(part)  # type: ignore[arg-type]

    def host_step(self, step: HostStep) -> None:
        w = self.w
        operands = [*self.objects_at(step.objects), *(self.object_of(operand) for operand in step.operands)]
        results = self.own(
            # Python calls the function again, and raises what it raises.
            self.raise_unless(self.python_call(step.function, *operands), left=(Exception,)),
            undo=step.undo,
        )
        for k, result in enumerate(step.results):
            item = w.call("PyTuple_GetItem", "ptr", f"ptr {results}", f"i64 {k}")
            w.call("Py_IncRef", "void", f"ptr {item}")
            w.store("ptr", item, item_slot(w, FromHost(result)))
            self.kernel_outputs[result] = KernelOutput("", self.own(item))
        self.compute(of_host=True)

    def objects_at(self, given: Sequence[Position | Held]) -> list[str]:
        """Pointers to arguments and other objects; the leaf, the caller or the builtin owns them."""
        return [pointer_to(self.w, position) for position in given]

    def object_of(self, operand: int) -> str:
        """The object that a value is; the leaf, or the caller, owns it."""
        value = self.leaf.values[operand]
        output = self.kernel_outputs.get(operand)
        if output is not None:
            if output.array is None:
                self.scalar(operand)
            return output.array or ""
        if isinstance(value, NUMBERS):
            return self.number_object(value, self.computed[operand])
        assert isinstance(value, ArrayValue)
        return pointer_to(self.w, value.ref)

    def late_tests(self, tests: Sequence[Test]) -> None:
        w = self.w
        for test in tests:
            word = emit_test(w, test.field)
            expected = str(test.value) if isinstance(test.value, int) else w.object(test.value)
            kind = "i64" if isinstance(test.value, int) else "ptr"
            out, on = w.name(), w.name()
            w.branch(w.op(f"icmp eq {kind} {word}, {expected}"), on, out)
            w.label(out)
            assert self.cells.late is not None
            w.add_to_cell(self.cells.late)
            self.leave(raises=False)
            w.label(on)

    def compute(self, *, of_host: bool) -> None:
        """Write code for the Python numbers that can be read by now."""
        raise NotImplementedError

    def number_object(self, value: Number, word: str) -> str:
        """A Python number as an object, of which the leaf owns a reference."""
        raise NotImplementedError

    def scalar(self, value: int) -> None:
        """Make the object of an output of rank 0."""
        raise NotImplementedError
