"""Random operands of ONNX's layers: windows, norms, quantised numbers, recurrence, images, signals, other models."""

from __future__ import annotations

from typing import Any

import numpy as np
from operator_draws import ML, TRAINING, Drawn, Draws, Fixed, maker


def _windows(d: Draws, count: int) -> tuple[list[int], list[int], dict[str, Any]]:
    """Sizes, kernels and attributes of windows along so many axes."""
    kernel = [d.number(1, 3) for _ in range(count)]
    dilations = [d.number(1, 2) for _ in range(count)] if d.chance(0.4) else [1] * count
    spans = [s * (k - 1) + 1 for k, s in zip(kernel, dilations, strict=True)]
    attributes: dict[str, Any] = {}
    if dilations != [1] * count or d.chance(0.2):
        attributes["dilations"] = dilations
    if d.chance(0.6):
        attributes["strides"] = [d.number(1, 3) for _ in range(count)]
    how = d.one_of(["none", "pads", "SAME_UPPER", "SAME_LOWER", "VALID"])
    if how == "pads":
        attributes["pads"] = [d.number(0, n - 1) for n in [*kernel, *kernel]]
    elif how != "none":
        attributes["auto_pad"] = how
    return [n + d.number(0, 5) for n in spans], kernel, attributes


@maker
def convolution(d: Draws) -> Drawn:
    count, group = d.one_of([1, 2, 2, 3]), d.one_of([1, 1, 2, 3])
    sizes, kernel, attributes = _windows(d, count)
    each, out = d.number(1, 3), group * d.number(1, 3)
    dtype = d.one_of([np.float32, np.float32, np.float64])
    x, w = d.array((d.number(1, 3), group * each, *sizes), dtype), d.array((out, each, *kernel), dtype)
    b = d.array((out,), dtype) if d.chance() else None
    if d.chance():
        attributes["kernel_shape"] = kernel
    return Drawn("Conv", [x, w, b], attributes | {"group": group}, first=11, tolerance=8.0)


@maker
def transposed_convolution(d: Draws) -> Drawn:
    count, group = d.one_of([1, 2, 2, 3]), d.one_of([1, 1, 2])
    _, kernel, attributes = _windows(d, count)
    attributes.pop("auto_pad", None)
    strides = attributes.get("strides", [1] * count)
    if d.chance(0.3):
        attributes["output_padding"] = [d.number(0, s - 1) for s in strides]
    sizes, each = [d.number(2, 4) for _ in kernel], d.number(1, 3)
    x = d.floats((d.number(1, 2), group * d.number(1, 2), *sizes))
    w = d.floats((x.shape[1], each, *kernel))
    b = d.floats((group * each,)) if d.chance() else None
    return Drawn("ConvTranspose", [x, w, b], attributes | {"group": group}, first=11, tolerance=8.0)


@maker
def pool(d: Draws) -> Drawn:
    op = d.one_of(["MaxPool", "MaxPool", "AveragePool", "LpPool"])
    count = d.one_of([1, 2, 2, 3])
    sizes, kernel, attributes = _windows(d, count)
    attributes |= {"kernel_shape": kernel}
    if "auto_pad" not in attributes and d.chance(0.3):
        attributes["ceil_mode"] = 1
    dtype, results = d.one_of([np.float32, np.float32, np.float64]), 1
    if attributes.get("auto_pad", "").startswith("SAME"):
        attributes.pop("dilations", None)  # which onnxruntime and the evaluator leave out of the padding
    if op != "MaxPool":
        dtype = np.float32  # the evaluator is wrong at ends and with dilations, and onnxruntime has f32 alone
    if op == "AveragePool" and d.chance():
        attributes["count_include_pad"] = 1
    if op == "LpPool":
        attributes["p"] = d.number(1, 3)
    shape = (d.number(1, 2), d.number(1, 3), *sizes)
    x = d.array(shape, dtype)
    if op == "MaxPool" and d.chance(0.3):
        results = 2
        attributes["storage_order"] = d.number(0, 1)
        x = d.rng.permutation(x.size).reshape(shape).astype(dtype)
    return Drawn(op, [x], attributes, results, first=19 if op == "AveragePool" else 18 if op == "LpPool" else 12)


@maker
def pool_of_all(d: Draws) -> Drawn:
    op = d.one_of(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
    shape = d.shape(3, 5, empty=0.0)
    attributes = {"p": d.number(1, 3)} if op == "GlobalLpPool" else {}
    # The evaluator is wrong for other ranks than 4, for which onnxruntime has f32 alone.
    dtype = d.one_of([np.float32, np.float64]) if len(shape) == 4 else np.float32
    return Drawn(op, [d.array(shape, dtype)], attributes, tolerance=2.0)


@maker
def columns(d: Draws) -> Drawn:
    kernel, image = [d.number(1, 3), d.number(1, 3)], [d.number(3, 6), d.number(3, 6)]
    strides, pads = [d.number(1, 2), d.number(1, 2)], [d.number(0, 1) for _ in range(4)]
    counts = [(image[k] + pads[k] + pads[k + 2] - kernel[k]) // strides[k] + 1 for k in range(2)]
    x = d.floats((d.number(1, 2), d.number(1, 2) * kernel[0] * kernel[1], counts[0] * counts[1]))
    attributes = {"strides": strides, "pads": pads}
    return Drawn("Col2Im", [x, Fixed(image), Fixed(kernel)], attributes, first=18, tolerance=2.0)


@maker
def norm(d: Draws) -> Drawn:
    op = d.one_of(["BatchNormalization", "InstanceNormalization", "GroupNormalization", "LpNormalization", "LRN"])
    shape = d.shape(3 if op != "BatchNormalization" else 2, 4, empty=0.0)
    x, attributes = d.floats(shape), {} if d.chance(0.3) else {"epsilon": 1e-3}
    c = shape[1]
    if op == "LpNormalization":
        return Drawn(op, [x + 1], {"axis": d.axis(shape), "p": d.number(1, 2)}, first=22, tolerance=3.0)
    if op == "LRN":
        return Drawn(op, [x], {"size": d.one_of([1, 3, 5]), "alpha": 0.01, "bias": 1.5}, first=13, tolerance=3.0)
    if op == "BatchNormalization":
        statistics = [d.floats((c,)), d.floats((c,)), d.floats((c,)), np.abs(d.floats((c,))) + np.float32(0.1)]
        if d.chance(0.3):
            more = {"training_mode": 1, "momentum": 0.8}
            return Drawn(op, [x, *statistics], attributes | more, 3, first=15, tolerance=10.0)
        return Drawn(op, [x, *statistics], attributes, first=15, tolerance=5.0)
    group = d.one_of([g for g in (1, 2, 3, 5, 7) if c % g == 0])
    more, first = ({"num_groups": group}, 21) if op == "GroupNormalization" else ({}, 7)
    return Drawn(op, [x, d.floats((c,)), d.floats((c,))], attributes | more, first=first, tolerance=10.0)


@maker
def layer_norm(d: Draws) -> Drawn:
    shape = d.shape(1, 4, empty=0.0)
    axis = d.axis(shape)
    inner, x = shape[axis % len(shape) :], d.floats(shape, scale=3.0)
    if d.chance(0.3):
        return Drawn("RMSNormalization", [x, d.floats(inner)], {"axis": axis}, first=23, tolerance=10.0)
    if d.chance(0.15):
        axes = {"axes": d.axes(shape)} if len(shape) != 4 or d.chance() else {}
        return Drawn("MeanVarianceNormalization", [x], axes, first=13, tolerance=50.0)
    bias, results = d.floats(inner) if d.chance(0.7) else None, d.one_of([1, 1, 3])
    attributes = {"axis": axis, "epsilon": d.one_of([1e-5, 1e-2])}
    return Drawn("LayerNormalization", [x, d.floats(inner), bias], attributes, results, first=17, tolerance=10.0)


@maker
def quantised(d: Draws) -> Drawn:
    op = d.one_of(["QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear", "MatMulInteger", "QLinearMatMul"])
    small = d.one_of([np.uint8, np.int8])
    low, high = np.iinfo(small).min, np.iinfo(small).max
    if op == "DynamicQuantizeLinear":
        return Drawn(op, [d.floats(d.shape(1, 3, empty=0.0), scale=3.0)], results=3, first=11)
    if op in ("QuantizeLinear", "DequantizeLinear"):
        shape = d.shape(1, 4, empty=0.0)
        axis, by_axis = d.axis(shape), d.chance()
        sizes = (shape[axis],) if by_axis else ()
        scale = np.asarray(2.0 ** d.rng.integers(-4, 2, sizes)).astype(np.float32)
        if op == "DequantizeLinear" and d.chance(0.2):
            small, low, high = np.int32, -1000, 1000
        zero = d.integers(sizes, low // 2, high // 2, small) if small != np.int32 else None
        x = d.floats(shape, scale=9.0) if op == "QuantizeLinear" else d.integers(shape, low, high, small)
        operands = [x, scale, zero if d.chance(0.7) or (op == "QuantizeLinear" and small == np.int8) else None]
        return Drawn(op, operands, {"axis": axis} if by_axis else {}, first=13)
    m, k, n = (d.number(1, 9) for _ in range(3))
    other = d.one_of([np.uint8, np.int8]) if op == "MatMulInteger" else small
    a, b = d.integers((m, k), low, high, small), d.integers((k, n), np.iinfo(other).min, np.iinfo(other).max, other)
    zero_a, zero_b = d.integers((), low // 2, high // 2, small), d.integers((), 0, 20, other)
    if op == "MatMulInteger":
        return Drawn(op, [a, b, zero_a if d.chance() else None, zero_b if d.chance() else None], first=10)
    scale_a, scale_b, scale = (np.asarray(2.0 ** d.rng.integers(-6, -2)).astype(np.float32) for _ in range(3))
    zero = d.integers((), low // 2, high // 2, small)
    return Drawn(op, [a, scale_a, zero_a, b, scale_b, zero_b, scale * 16, zero], first=10)


@maker
def integer_convolution(d: Draws) -> Drawn:
    sizes, kernel, attributes = _windows(d, 2)
    channels, out = d.number(1, 3), d.number(1, 3)
    x, w = d.integers((1, channels, *sizes), 0, 255, np.uint8), d.integers((out, channels, *kernel), 0, 255, np.uint8)
    zeros = d.integers((), 0, 200, np.uint8), d.integers((), 0, 200, np.uint8)
    if d.chance():
        return Drawn("ConvInteger", [x, w, zeros[0] if d.chance() else None], attributes, first=10)
    scales = [np.float32(0.0625), np.float32(0.125), np.float32(8.0)]
    zero, bias = d.integers((), 0, 200, np.uint8), d.integers((out,), -99, 99, np.int32)
    operands = [x, scales[0], zeros[0], w, scales[1], zeros[1], scales[2], zero, bias if d.chance() else None]
    return Drawn("QLinearConv", operands, attributes, first=10)


@maker
def recurrent(d: Draws) -> Drawn:
    op, direction = d.one_of(["RNN", "GRU", "LSTM"]), d.one_of(["forward", "reverse", "bidirectional"])
    gates, ways = {"RNN": 1, "GRU": 3, "LSTM": 4}[op], 2 if direction == "bidirectional" else 1
    steps, batch, width, hidden = d.one_of([1, 2, 5, 12]), d.number(1, 3), d.number(1, 4), d.number(1, 4)
    x = d.floats((steps, batch, width))
    w, r = d.floats((ways, gates * hidden, width)), d.floats((ways, gates * hidden, hidden))
    b = d.floats((ways, 2 * gates * hidden)) if d.chance(0.7) else None
    lengths = d.integers((batch,), 1, steps, np.int32) if d.chance(0.3) else None
    state = d.floats((ways, batch, hidden)) if d.chance() else None
    attributes: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    operands, results = [x, w, r, b, lengths, state], 2
    if op == "GRU" and d.chance():
        attributes["linear_before_reset"] = 1
    if op == "LSTM":
        results = 3
        cell, peepholes = d.floats((ways, batch, hidden)), d.floats((ways, 3 * hidden))
        operands += [cell if state is not None else None, peepholes if d.chance(0.4) else None]
    if d.chance(0.2):
        count = {"RNN": ["Relu"], "GRU": ["HardSigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Softsign"]}[op]
        attributes["activations"] = count * ways
    return Drawn(op, operands, attributes, results, first=14, tolerance=10.0)


@maker
def resized(d: Draws) -> Drawn:
    shape = (1, d.number(1, 2), d.number(2, 6), d.number(2, 6))
    mode = d.one_of(["nearest", "linear", "cubic"])
    transform = d.one_of(["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"])
    attributes: dict[str, Any] = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode == "nearest":
        attributes["nearest_mode"] = d.one_of(["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
    elif d.chance(0.3) and mode == "cubic":
        attributes |= {"cubic_coeff_a": -0.5, "exclude_outside": 1}
    factors = [1.0, 1.0, *(d.one_of([0.5, 1.0, 1.5, 2.0, 0.75]) for _ in range(2))]
    x = d.floats(shape)
    if d.chance():
        return Drawn("Resize", [x, None, Fixed(factors, np.float32)], attributes, first=19, tolerance=20.0)
    sizes = Fixed([*shape[:2], *(max(1, int(n * f)) for n, f in zip(shape[2:], factors[2:], strict=True))])
    return Drawn("Resize", [x, None, None, sizes], attributes, first=19, tolerance=20.0)


@maker
def sampled(d: Draws) -> Drawn:
    if d.chance(0.4):
        # Where the places of corners are those of one element, each system has its own.
        least = d.number(1, 2)
        corners, sizes = {"align_corners": least - 1}, [d.number(least, 4), d.number(least, 4)]
        return Drawn("AffineGrid", [d.floats((2, 2, 3)), Fixed([2, 3, *sizes])], corners, first=20, tolerance=5.0)
    x, points = d.floats((2, 2, d.number(2, 5), d.number(2, 5))), d.floats((2, d.number(1, 4), d.number(1, 4), 2))
    attributes = {
        "align_corners": d.number(0, 1),
        "mode": d.one_of(["linear", "nearest", "cubic"]),
        "padding_mode": d.one_of(["zeros", "border", "reflection"]),
    }
    return Drawn("GridSample", [x, points * np.float32(0.7)], attributes, first=20, tolerance=20.0)


@maker
def transformed(d: Draws) -> Drawn:
    shape = (d.number(1, 3), d.number(2, 9), d.one_of([1, 2]))
    if d.chance(0.3):
        x, width = d.floats((1, d.number(16, 30), 1)), d.one_of([4, 8])
        window = d.floats((width,))
        operands = [x, Fixed(d.number(1, 5)), window, Fixed(width)]
        return Drawn("STFT", operands, {"onesided": 1}, first=17, tolerance=10.0)
    onesided = int(shape[-1] == 1 and d.chance())
    attributes = {"onesided": onesided, "inverse": 0 if onesided else d.number(0, 1)}
    return Drawn("DFT", [d.floats(shape), None, Fixed(1)], attributes, first=20, tolerance=10.0)


@maker
def attention(d: Draws) -> Drawn:
    n, heads, q, k, width = d.number(1, 2), d.one_of([1, 2, 4]), d.number(1, 4), d.number(1, 5), d.one_of([2, 4])
    shared = d.one_of([h for h in (1, 2, 4) if heads % h == 0])
    operands: list[Any] = [d.floats((n, heads, q, width)), *(d.floats((n, shared, k, width)) for _ in range(2))]
    if d.chance(0.4):
        operands.append(d.one_of([d.truths((q, k)) | True, d.floats((q, k)), d.floats((n, 1, q, k))]))
    attributes = {"is_causal": 1} if d.chance(0.3) else {}
    if d.chance(0.3):
        attributes["softcap"] = 2.0
    return Drawn("Attention", operands, attributes, first=24, tolerance=5.0)


@maker
def loss(d: Draws) -> Drawn:
    n, classes = d.number(1, 5), d.number(1, 5)
    attributes: dict[str, Any] = {"reduction": d.one_of(["none", "mean", "sum"])}
    labels, weights = d.integers((n,), 0, classes - 1), np.abs(d.floats((classes,))) + np.float32(0.1)
    op = d.one_of(["SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"])
    operands = [d.floats((n, classes)), labels, weights if d.chance() else None]
    return Drawn(op, operands, attributes, first=13, tolerance=5)


@maker
def of_other_models(d: Draws) -> Drawn:
    op = d.one_of(["Scaler", "Normalizer", "Binarizer", "Imputer", "LinearRegressor", "LinearClassifier"])
    rows, width, classes = d.number(1, 5), d.number(1, 4), d.number(2, 3)
    x, attributes, results = d.floats((rows, width)), {}, 1
    numbers = d.floats((width,)).astype(float).tolist()
    if op == "Scaler":
        attributes = {"offset": numbers, "scale": [2.0] * width}
    elif op == "Normalizer":
        attributes = {"norm": d.one_of(["MAX", "L1", "L2"])}
    elif op == "Binarizer":
        attributes = {"threshold": 0.3}
    elif op == "Imputer":
        x = np.where(d.truths(x.shape), x, np.float32("nan"))
        attributes = {"imputed_value_floats": numbers, "replaced_value_float": float("nan")}
    elif op == "LinearRegressor":
        attributes = {"coefficients": numbers * 2, "intercepts": [0.5, -0.25], "targets": 2}
    else:
        results = 2
        coefficients = d.floats((classes * width,)).astype(float).tolist()
        attributes = {
            "coefficients": coefficients,
            "intercepts": [0.1] * classes,
            "classlabels_ints": [3, 1, 7][:classes],
            "post_transform": d.one_of(["NONE", "SOFTMAX", "LOGISTIC"]),
        }
    return Drawn(op, [x], attributes, results, domain=ML, first=13, tolerance=3.0)


@maker
def optimiser(d: Draws) -> Drawn:
    shape = d.shape(0, 2, empty=0.0)
    x, g, v, h = (d.floats(shape) for _ in range(4))
    rate, step = np.array(0.1, np.float32), np.array(d.number(0, 4), np.int64)
    op = d.one_of(["Adagrad", "Adam", "Momentum"])
    if op == "Adagrad":
        attributes: dict[str, Any] = {"decay_factor": 0.1, "norm_coefficient": 0.01, "epsilon": 1e-3}
        return Drawn(op, [rate, step, x, g, np.abs(h)], attributes, 2, domain=TRAINING, first=13)
    if op == "Adam":
        attributes = {"norm_coefficient": 0.01, "alpha": 0.8, "beta": 0.9, "epsilon": 1e-3}
        return Drawn(op, [rate, step, x, g, v, np.abs(h)], attributes, 3, domain=TRAINING, first=13, tolerance=5.0)
    attributes = {"norm_coefficient": 0.01, "alpha": 0.8, "beta": 0.9, "mode": d.one_of(["standard", "nesterov"])}
    return Drawn(op, [rate, step, x, g, v], attributes, 2, domain=TRAINING, first=13)
