"""Kernels of every op against NumPy, on the emulator: cases of the op table, static and dynamic.

The cases, their references and what of them kernels refuse are those of `test/dialect/ops`.
"""

import sys
import zlib
from pathlib import Path

import numpy as np
import pytest
from emulation import Emulated, misaligned

sys.path.insert(0, str(Path(__file__).parents[2] / "dialect" / "ops"))
from cases import all_suites, cases_of
from compiled import Batch, describe, differences, dynamic_call, static_call
from every_case import EVERY_CASE
from profuse.dialect.errors import ProfuseError
from profuse.lowering.gpu.nvvm import to_nvvm
from simt import KernelFault, SimtError
from test_compiled import NAMES, is_complex

BATCH = 64
MOST = 4000  # elements of an operand
SPREAD = 97  # one case in so many, another one for each dtype


def calls_of(name, *, dynamic):
    """Every dtype at its edges, and every shape class with some dtype; everything on request."""
    dtypes = [dtype for suite, dtype in all_suites() if suite == name]
    cases = []
    for place, dtype in enumerate(dtypes):
        # With symbolic sizes, values are computed alike.
        edges = not dynamic or place % 3 == 0
        cases += cases_of(
            name, dtype, lambda k, at=place, edges=edges: EVERY_CASE or (edges and k == 0) or (k + at) % SPREAD == 0
        )
    calls = [
        static_call(c)
        for c in cases
        if not isinstance(c.reference, Exception) and max(map(np.size, c.args), default=0) <= MOST
    ]
    calls = [c for c in calls if not c.refusal() and not is_complex(c.case)]  # R1.48
    if dynamic:
        calls = [c for s in calls if (c := dynamic_call(s.case)) and not c.refusal()]
    return calls


def wrong_of(calls, *, dynamic, size=BATCH):
    """What is wrong with these calls: errors of the compiler, faults, and wrong results."""
    wrong = []
    for start in range(0, len(calls), size):
        part = calls[start : start + size]
        try:
            batch = Batch(part, dynamic=dynamic)
            kernels = Emulated(batch.program)
            outputs = kernels(*_placed(batch.args, part))
            to_nvvm(kernels.module, "sm_80")  # which complains of what it cannot lower
        except (ProfuseError, KernelFault, SimtError, AssertionError) as error:
            if len(part) == 1:
                wrong.append(f"{describe(part[0])}: {type(error).__name__}: {error}")
            else:
                wrong += wrong_of(part, dynamic=dynamic, size=(len(part) + 1) // 2)
            continue
        for call, span in zip(part, batch.spans, strict=True):
            wrong += differences(call.case, outputs[span])
    return wrong


def _placed(args, calls):
    """Arguments, some of them misaligned, for kernels with vectors and without."""
    rng = np.random.default_rng(zlib.crc32(describe(calls[0]).encode()))
    return [
        misaligned(a) if isinstance(a, np.ndarray) and a.flags.c_contiguous and rng.random() < 0.3 else a for a in args
    ]


@pytest.mark.sampled(10, each=("dynamic",))
@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", NAMES, ids=lambda n: n.removeprefix("profuse."))
def test_kernels_conform(name, dynamic):
    """A kernel returns what NumPy returns, and does nothing undefined."""
    wrong = wrong_of(calls_of(name, dynamic=dynamic), dynamic=dynamic)
    assert not wrong, f"{len(wrong)} wrong:\n" + "\n".join(wrong[:20])
