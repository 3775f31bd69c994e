"""The tests of size checks and of the strides of relaxed guards (R3.42, R3.43).

`dialect.guards.relaxed` defines both; test_dispatch_relaxed.py compares the two for random types.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

from ....dialect.guards.relaxed import SIZE_CHECKS
from ....dialect.ir.symbolic import Dim
from ...memory.offsets import Refused
from ..leaf_values import Test
from ..llvm_writer import Writer

_checks = (ctypes.c_char * len(SIZE_CHECKS)).from_buffer(SIZE_CHECKS)  # also pins its address
SWITCH = ctypes.addressof(_checks)  # address of a byte that is 0 while size checks are off


def size_tests(reference: Sequence[int], sizes: Sequence[Dim]) -> list[Test]:
    """The tests that sizes are 1 exactly at the positions at which the profiled sizes are 1.

    Raises Refused if the numbers of sizes differ.
    """
    if len(reference) != len(sizes):
        raise Refused(f"a check of {len(sizes)} sizes against {tuple(reference)} never holds")
    pairs = zip(reference, sizes, strict=True)
    return [Test(("profiled", size, int(want == 1)), 1) for want, size in pairs]


class LayoutCheck:
    """Emits the comparison of strides with the order and density that a type requires.

    A stride that is no multiple of the item size counts as unknown and is treated as 0.

    Args:
        w: writes the code.
        itemsize: bytes of an element.
        order: the axes, by decreasing stride of the type.
        sizes: the sizes of the axes in ``order``, as i64.
        strides: the strides of the axes in ``order``, in bytes, as i64.
    """

    def __init__(
        self, w: Writer, itemsize: int, order: Sequence[int], sizes: Sequence[str], strides: Sequence[str]
    ) -> None:
        self.w, self.itemsize, self.order = w, itemsize, order
        self.single = [w.op(f"icmp eq i64 {size}, 1") for size in sizes]
        self.sizes = sizes
        self.steps = [self._known(stride) for stride in strides]

    def _known(self, stride: str) -> str:
        w = self.w
        whole = w.op(f"icmp eq i64 {w.op(f'srem i64 {stride}, {self.itemsize}')}, 0")
        return w.op(f"select i1 {whole}, i64 {stride}, i64 0")

    def ordered(self) -> str:
        """Test that no stride exceeds the previous one; sizes 1 and unknown strides are skipped."""
        w, fits, before = self.w, "true", str(2**63 - 1)
        for single, step in zip(self.single, self.steps, strict=True):
            skipped = w.op(f"or i1 {single}, {w.op(f'icmp eq i64 {step}, 0')}")
            smaller = w.op(f"icmp sle i64 {step}, {before}")
            fits = w.op(f"and i1 {fits}, {w.op(f'or i1 {skipped}, {smaller}')}")
            before = w.op(f"select i1 {skipped}, i64 {before}, i64 {step}")
        return fits

    def dense(self, wanted: Sequence[int], contiguous: str) -> str:
        """Test that the axes in ``wanted`` have no gaps; true for all if ``contiguous`` is true."""
        w, fits, is_known, step = self.w, "true", "true", str(self.itemsize)
        for k in reversed(range(len(self.order))):
            single, stride = self.single[k], self.steps[k]
            if self.order[k] in wanted:
                right = w.op(f"and i1 {is_known}, {w.op(f'icmp eq i64 {stride}, {step}')}")
                either = w.op(f"or i1 {w.op(f'or i1 {right}, {single}')}, {contiguous}")
                fits = w.op(f"and i1 {fits}, {either}")
            some = w.op(f"icmp ne i64 {stride}, 0")
            is_known = w.op(f"and i1 {is_known}, {w.op(f'or i1 {single}, {some}')}")
            span = w.op(f"mul i64 {stride}, {self.sizes[k]}")
            step = w.op(f"select i1 {single}, i64 {step}, i64 {span}")
        return fits
