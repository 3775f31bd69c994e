"""What array libraries lend to emitted code is compared with what Python reports first."""

import ctypes

import exchange_api
import numpy as np
import profuse as pf
import pytest
import stand_ins
from profuse.executor.cuda.exchange import dlpack_exchange as exchange
from profuse.executor.memory.offsets import Refused
from support import counts, host
from torch_calls import get, tensor


def lending(monkeypatch, capsule):
    monkeypatch.setattr(stand_ins.Tensor, "__dlpack_c_exchange_api__", capsule)


def shifted(t):
    pointer, shape, strides, dtype, place = t.described()
    return pointer + 4, shape, strides, dtype, place


def reversed_strides(t):
    pointer, shape, strides, dtype, place = t.described()
    return pointer, shape, strides[::-1], dtype, place


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: None, "torch has no __dlpack_c_exchange_api__"),
        (lambda: 7, "__dlpack_c_exchange_api__ of torch cannot be read"),
        (
            lambda: exchange_api.capsule(stand_ins.Tensor.described, lambda: 5, version=2),
            "__dlpack_c_exchange_api__ of torch is of version 2, not 1",
        ),
        (lambda: exchange_api.capsule(shifted, lambda: 5), "torch describes an array in C otherwise than in Python"),
        (
            lambda: exchange_api.capsule(reversed_strides, lambda: 5),
            "torch describes an array in C otherwise than in Python",
        ),
        (lambda: exchange_api.capsule(lambda t: 1 / 0, lambda: 5), "an array of torch is not described as expected"),
    ],
)
def test_a_library_that_is_not_as_expected_is_read_by_python(torch, monkeypatch, make, reason):
    lending(monkeypatch, make())
    x = host(4, 8)
    f = pf.jit(lambda x: x * 2 + 1)
    for _ in range(4):
        np.testing.assert_allclose(get(f(tensor(x))), x * 2 + 1, rtol=1e-6)
    assert not f.state().emitted
    assert reason in f.explain()
    assert counts(f, "kernel_launches", "device_fallbacks") == [3, 0]


def test_functions_that_are_missing():
    class Kind:
        pass

    words = (ctypes.c_uint64 * 7)(1)
    Kind.__dlpack_c_exchange_api__ = exchange_api.new_capsule(
        ctypes.addressof(words), ctypes.addressof(exchange_api.NAME), None
    )
    with pytest.raises(Refused, match="lacks functions"):
        exchange.functions_of(Kind)
