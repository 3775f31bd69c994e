"""Every function of `pf.nn` in plain Python, in native code, under gradients, on the tape, in captured runs."""

from __future__ import annotations

import itertools
from typing import Any

import ml_dtypes
import numpy as np
import profuse as pf
import pytest
from neural_cases import LAYERS, MORE, Layer, some_of

STEP = 1e-6
SEED = 11
NEAR = {"rtol": 1e-9, "atol": 1e-11}
HALVES = {np.dtype(np.float16): 2e-3, np.dtype(ml_dtypes.bfloat16): 2e-2, np.dtype(np.float32): 2e-5}


def weights_of(layer: Layer) -> np.ndarray:
    pf.manual_seed(SEED)
    shape = np.shape(layer(*layer.args))
    return np.cos(1.0 + np.arange(np.prod(shape, dtype=int))).reshape(shape)


def loss_of(layer: Layer) -> Any:
    weights = weights_of(layer)
    return lambda *args: (layer(*args) * weights).sum()


def seeded(fn: Any, *args: Any) -> Any:
    pf.manual_seed(SEED)
    return fn(*args)


def differences(fn: Any, args: tuple, k: int) -> np.ndarray:
    """The gradient by argument ``k``, from values a step apart."""
    out = np.zeros_like(args[k])
    for place in itertools.product(*map(range, args[k].shape)):
        ends = []
        for sign in (1, -1):
            moved = [x.copy() if isinstance(x, np.ndarray) else x for x in args]
            moved[k][place] += sign * STEP
            ends.append(seeded(fn, *moved))
        out[place] = (ends[0] - ends[1]) / (2 * STEP)
    return out


def test_every_function_has_a_case():
    assert {layer.name for layer in LAYERS + MORE} | {"one_hot"} == set(pf.nn.__all__)  # that has no floats


@pytest.mark.sampled(8)
@pytest.mark.parametrize("layer", LAYERS + MORE, ids=str)
def test_native_code_computes_what_python_does(layer):
    plain = seeded(layer, *layer.args)
    fn = pf.jit(layer.__call__, background=False)
    for _ in range(6):
        np.testing.assert_allclose(seeded(fn, *layer.args), plain, **NEAR)
    counters = fn.state().counters
    assert counters["python_calls"] <= 1 and counters["demotions"] == 0, fn.explain()
    assert counters["kernels_compiled"] == layer.kernels, fn.explain()
    assert counters["kernel_launches"] >= 4 * layer.kernels


@pytest.mark.sampled(3)
@pytest.mark.parametrize("layer", some_of(0), ids=str)
def test_gradients_are_those_of_differences(layer):
    loss, wrt = loss_of(layer), layer.floats
    expected = [differences(loss, layer.args, k) for k in wrt]
    grad = pf.grad(loss, wrt=wrt, background=False)
    for _ in range(3):
        for own, other in zip(seeded(grad, *layer.args), expected, strict=True):
            np.testing.assert_allclose(own, other, rtol=1e-5, atol=1e-7)
    assert grad.state().counters["kernels_compiled"] == layer.gradient_kernels, grad.explain()


@pytest.mark.sampled(6, each=())
@pytest.mark.parametrize("layer", [layer for layer in some_of(1) if layer.second], ids=str)
def test_second_derivatives_are_those_of_differences(layer):
    k = layer.floats[0]
    grad = pf.grad(loss_of(layer), wrt=k, background=False)
    along = np.cos(np.arange(layer.args[k].size)).reshape(layer.args[k].shape)
    product = pf.grad(lambda *args: (grad(*args) * along).sum(), wrt=k, background=False)
    ends = []
    for sign in (1, -1):
        args = list(layer.args)
        args[k] = args[k] + sign * 1e-5 * along
        ends.append(seeded(grad, *args))
    expected = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(seeded(product, *layer.args), expected, rtol=1e-4, atol=1e-6)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("layer", some_of(2), ids=str)
def test_forward_mode_agrees_with_reverse_mode(layer):
    loss, wrt = loss_of(layer), layer.floats
    tangents = [np.sin(np.arange(x.size)).reshape(x.shape) if k in wrt else None for k, x in enumerate(layer.args)]
    arrays = [k for k, x in enumerate(layer.args) if isinstance(x, np.ndarray)]

    def of_arrays(*operands: Any) -> Any:
        args = list(layer.args)
        for k, x in zip(arrays, operands, strict=True):
            args[k] = x
        return loss(*args)

    primals, along = [layer.args[k] for k in arrays], [tangents[k] for k in arrays]
    _, derivative = seeded(lambda: pf.jvp(of_arrays, primals, along))
    grads = seeded(pf.grad(loss, wrt=wrt), *layer.args)
    expected = sum((g * tangents[k]).sum() for g, k in zip(grads, wrt, strict=True))
    np.testing.assert_allclose(derivative, expected, rtol=1e-7, atol=1e-9)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("layer", some_of(3), ids=str)
def test_the_tape_and_captured_runs_have_the_same_gradients(layer):
    loss, wrt = loss_of(layer), layer.floats
    expected = seeded(pf.grad(loss, wrt=wrt), *layer.args)

    def on_tape(fn: Any) -> list[np.ndarray]:
        leaves = [pf.array(x.copy(), requires_grad=True) if k in wrt else x for k, x in enumerate(layer.args)]
        seeded(fn, *leaves).backward()
        return [np.asarray(leaves[k].grad) for k in wrt]

    jitted = pf.jit(loss, background=False)
    for fn in (loss, jitted, jitted, jitted):
        for own, other in zip(on_tape(fn), expected, strict=True):
            np.testing.assert_allclose(own, other, **NEAR)
    pf.compiled_autograd.reset()
    for _ in range(4):
        with pf.compiled_autograd():
            grads = on_tape(loss)
        assert pf.compiled_autograd.wait()
        for own, other in zip(grads, expected, strict=True):
            np.testing.assert_allclose(own, other, **NEAR)


@pytest.mark.sampled(12, each=("dtype",))
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("layer", some_of(4), ids=str)
def test_narrow_dtypes_stay_and_are_computed_in_f32(layer, dtype):
    args = [x.astype(dtype) if k in layer.floats else x for k, x in enumerate(layer.args)]
    exact = [x.astype(np.float64) if k in layer.floats else x for k, x in enumerate(args)]
    expected = seeded(layer, *exact)
    scale = max(1.0, float(np.abs(expected).max())) if np.size(expected) else 1.0
    fn = pf.jit(layer.__call__, background=False)
    for call in (layer, fn, fn, fn):
        result = seeded(call, *args)
        assert result.dtype == dtype
        np.testing.assert_allclose(result.astype(float), expected, rtol=0, atol=HALVES[dtype] * scale)
    assert fn.state().counters["python_calls"] <= 1, fn.explain()
