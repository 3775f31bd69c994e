"""Spectra of frames of a signal."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...on_host import on_host
from ..aten_table import aten, refuse
from ..promotion import cast, category, complex_dtype, is_integral


@aten("stft")
def stft(
    self: Any,
    n_fft: int,
    hop_length: int | None = None,
    win_length: int | None = None,
    window: Any = None,
    normalized: bool = False,
    onesided: bool | None = None,
    return_complex: bool | None = None,
    align_to_window: bool | None = None,
) -> Any:
    if align_to_window or is_integral(self.dtype) or self.dtype.itemsize < 4:
        raise refuse("stft", "with frames that lie as the window does, or of this dtype")
    if window is not None and category(window.dtype) == 3:
        raise refuse("stft", "with a complex window")
    width = n_fft if win_length is None else win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    if not 0 < n_fft <= int(self.shape[-1]) or hop <= 0 or not 0 < width <= n_fft:
        raise refuse("stft", f"of {self.shape[-1]} elements in frames of {n_fft}, {hop} apart, windows of {width}")
    frames = np.lib.stride_tricks.sliding_window_view(self, n_fft, axis=-1)[..., ::hop, :]
    if window is not None or width < n_fft:
        left = (n_fft - width) // 2
        shape = np.ones((width,), np.float32) if window is None else window
        ends = [np.zeros((n,), shape.dtype) for n in (left, n_fft - width - left)]
        frames = frames * cast(np.concatenate([ends[0], shape, ends[1]]), np.result_type(frames.dtype, shape.dtype))
    is_real = category(frames.dtype) != 3
    is_half = is_real if onesided is None else onesided
    norm = "ortho" if normalized else "backward"
    spectra = on_host(f"numpy.fft.{'rfft' if is_half else 'fft'}", frames, axis=-1, norm=norm)
    spectra = np.swapaxes(cast(spectra, complex_dtype(frames.dtype)), -1, -2)
    if return_complex or (return_complex is None and not is_real):
        return spectra
    return np.stack([np.real(spectra), np.imag(spectra)], axis=-1)


@aten("stft.center")
def centred(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise refuse("stft", "with frames that are centred", "pad the signal, and pass center=False")
