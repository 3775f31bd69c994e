"""ONNX's signal processing."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...size_values import as_array, as_number, as_size
from ..onnx_table import onnx_op
from ..tensors.onnx_casts import dtype_numbered
from ..tensors.onnx_shapes import padded


def _complex(x: Any) -> Any:
    """(..., 1) or (..., 2) as complex numbers."""
    if x.shape[-1] == 1:
        return x[..., 0]
    return x[..., 0] + x[..., 1] * 1j


def _pairs(x: Any, dtype: Any) -> Any:
    return np.stack([np.real(x), np.imag(x)], -1).astype(dtype)


@onnx_op("DFT", whole=True)
def _dft(
    call: Any,
    x: Any,
    length: Any = None,
    axis_of: Any = None,
    /,
    *,
    axis: int | None = None,
    inverse: int = 0,
    onesided: int = 0,
) -> Any:
    x = as_array(x)
    if axis_of is not None:
        at = as_number(axis_of)
    else:
        at = -2 if axis is None else axis
    at %= x.ndim
    values = _complex(x)
    if length is not None:
        size = as_number(length)
    else:
        size = 2 * (int(x.shape[at]) - 1) if onesided and inverse else int(x.shape[at])
    if onesided and inverse:
        return np.fft.irfft(values, size, at)[..., None].astype(x.dtype)
    if onesided:
        return _pairs(np.fft.rfft(values, size, at), x.dtype)
    return _pairs((np.fft.ifft if inverse else np.fft.fft)(values, size, at), x.dtype)


@onnx_op("DFT-1", whole=True)
def _dft_old(call: Any, x: Any, length: Any = None, /, *, axis: int = 1, inverse: int = 0, onesided: int = 0) -> Any:
    return _dft(call, x, length, axis=axis, inverse=inverse, onesided=onesided)


@onnx_op("STFT", whole=True)
def _stft(
    call: Any, x: Any, frame_step: Any, window: Any = None, frame_length: Any = None, /, *, onesided: int = 1
) -> Any:
    x, window = as_array(x), as_array(window)
    step = as_number(frame_step)
    size = as_number(frame_length) if frame_length is not None else int(window.shape[0])
    values = x if x.ndim == 2 else _complex(x)
    frames = np.lib.stride_tricks.sliding_window_view(values, size, axis=1)[:, ::step]
    if window is not None:
        width = int(window.shape[0])
        if width < size:
            left = (size - width) // 2
            window = padded(window, {0: (left, size - width - left)})
        frames = frames * window
    is_real = x.ndim == 2 or x.shape[-1] == 1
    transform = np.fft.rfft if onesided and is_real else np.fft.fft
    return _pairs(transform(frames, size, -1), x.dtype)


@onnx_op("MelWeightMatrix", whole=True)
def _mel_weight_matrix(
    call: Any, bins: Any, length: Any, rate: Any, low: Any, high: Any, /, *, output_datatype: int = 1
) -> Any:
    """The matrix for numbers that are known while a trace is made; it is a constant."""
    count, size, per_second = as_number(bins), as_number(length), as_number(rate)
    edges = [float(as_array(v)) if not isinstance(v, tuple) else float(as_size(v)) for v in (low, high)]
    lowest, highest = (2595 * np.log10(1 + hz / 700) for hz in edges)
    spectrum = size // 2 + 1
    points = np.arange(count + 2) * ((highest - lowest) / (count + 2)) + lowest
    places = ((size + 1) * (700 * (np.power(10, points / 2595) - 1)) // per_second).astype(int)
    y = np.zeros((spectrum, count))
    for k in range(count):
        left, centre, right = places[k : k + 3]
        if centre == left:
            y[centre, k] = 1
        else:
            y[left : centre + 1, k] = (np.arange(left, centre + 1) - left) / (centre - left)
        if right > centre:
            y[centre:right, k] = (right - np.arange(centre, right)) / (right - centre)
    return y.astype(dtype_numbered(output_datatype))
