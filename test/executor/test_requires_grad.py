"""Who asks whether a value requires gradients gets one answer: its flag AND gradient mode."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np
import pytest
from profuse.dialect.guards.mismatch import check_types, fits_relaxed, mismatches
from profuse.dialect.ir.device import DeviceTensor
from profuse.dialect.ir.gradient_mode import gradients, requires_grad
from profuse.dialect.ir.symbolic import Dimension, symbol
from profuse.dialect.ir.types import TensorType, type_of
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.executor.arguments.argument_spec import record_of
from profuse.executor.dispatch.conditions.guards import guard_tests
from profuse.executor.dispatch.leaf_values import ArrayValue
from profuse.executor.interpret.record import RunRecord
from profuse.executor.memory.offsets import Refused
from profuse.executor.memory.output_pool import readable
from profuse.executor.plans.plan import build_plan
from profuse.executor.settings.events import Counters


class Tensor(DeviceTensor):
    """Four floats on a device that nobody looks at."""

    __slots__ = ("requires_grad",)
    address = 0

    def __init__(self, flag: bool) -> None:
        self.device, self.dtype = "cuda:0", np.dtype(np.float32)
        self.shape, self.strides = (4,), (4,)
        self.requires_grad = flag


class Learnable(np.ndarray):
    requires_grad = True


X = np.ones(4, np.float32)
VALUES = {
    "host": (X, False),
    "number": (np.float32(2), False),
    "subclass": (X.view(Learnable), True),
    "device": (Tensor(False), False),
    "flagged": (Tensor(True), True),
}
WANTED = (None, False, True)
GUARDS = ("type_check", "dynamic_guard", "cuda_guard")


def expected_type(value, wanted) -> TensorType:
    return replace(type_of(value), requires_grad=wanted)


def guarded(op: str, expected: TensorType):
    """``x if guard(x) else y``, as a plan."""
    text = f"""
func.func @main(%x: !profuse.tensor, %y: !profuse.tensor) -> !profuse.tensor {{
  %0:2 = "profuse.{op}"(%x) {{types = [{expected}]}} : (!profuse.tensor) -> ({expected}, i1)
  %1 = scf.if %0#1 -> (!profuse.tensor) {{
    scf.yield %x : !profuse.tensor
  }} else {{
    scf.yield %y : !profuse.tensor
  }}
  return %1 : !profuse.tensor
}}"""
    return build_plan(decode_module(parse_module(text)), {}, {}, Counters())


@pytest.mark.parametrize("name", VALUES)
def test_record_spec_and_guards_agree(name):
    """R1.18, R1.39, R2.7, R3.42: value by what is wanted by mode, for all who ask."""
    value, flag = VALUES[name]
    plans = {}
    if name != "subclass":  # functions take the base class out of it: see below
        plans = {(op, wanted): guarded(op, expected_type(value, wanted)) for op, wanted in product(GUARDS, WANTED)}
    for mode, wanted in product((True, False), WANTED):
        needs, expected = flag and mode, expected_type(value, wanted)
        fits = wanted is None or wanted == needs
        with gradients(mode):
            frame = RunRecord()
            frame.observe_type(0, value)
            asked = [
                requires_grad(value),
                type_of(value).requires_grad,
                record_of(value).requires_grad,
                frame.types[0].requires_grad,
            ]
            assert asked == [needs] * 4
            assert check_types([expected], [value]) is fits
            assert fits_relaxed([expected], [value]) is fits
            for relaxed in (False, True):
                found = mismatches([expected], [type_of(value)], ["x"], relaxed=relaxed)
                words = [m.text for m in found]
                text = f"x: requires_grad is {needs}, specialised for {wanted}".lower()
                assert words == ([] if fits else [text])
            for op in GUARDS if plans else ():
                plan = plans[op, wanted]
                (out,) = plan.run([value, "missed"])
                assert (out is value) is fits, (op, mode, wanted)
    hits = {None: 2, False: 2 - flag, True: int(flag)}  # of two modes
    for (op, wanted), plan in plans.items():
        (guard,) = plan.guards
        assert (guard.hits, guard.misses) == (hits[wanted], 2 - hits[wanted]), op


def test_the_reason_is_told():
    """R1.39"""
    wanted = expected_type(X, True)
    (found,) = mismatches([wanted], [type_of(X)])
    assert found.text == "operand 0: requires_grad is false, specialised for true"
    flagged = VALUES["flagged"][0]
    (found,) = mismatches([expected_type(flagged, False)], [type_of(flagged)])
    assert found.text == "operand 0: requires_grad is true, specialised for false"


def test_host_arrays_have_no_flag_once_a_function_has_taken_them():
    """R1.39: what plans on the host see is NumPy's own class, so that their guards ask nothing."""
    taken = readable(X.view(Learnable))
    assert type(taken) is np.ndarray
    assert requires_grad(taken) is False
    assert "requires_grad" not in guarded("type_check", expected_type(X, False)).source
    on_device = expected_type(VALUES["device"][0], False)
    assert "requires_grad" in guarded("type_check", on_device).source


@pytest.mark.parametrize("tests", [guard_tests, partial(guard_tests, relaxed=True)])
@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_emitted_guards_refuse_what_wants_gradients(tests, device):
    """R1.39, R3.42: emitted code only ever sees values without; the refusal says why."""
    value = ArrayValue(0, np.dtype(np.float32), (symbol(Dimension(0, 0)),), device)
    types = {w: replace(type_of(X), device=device, requires_grad=w) for w in WANTED}
    assert tests([types[None]], [value]) == tests([types[False]], [value]) != []
    with pytest.raises(Refused, match="asks for gradients, which no value"):
        tests([types[True]], [value])
