"""Models in ONNX that packages carry, and what they are given: speech, files, drawn text."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

RATE = 16000
CHUNK = 576  # samples, of which the first 64 are the last of the chunk before


def folder(package: str) -> Path:
    """Where a package lies, which is not imported; a folder that does not exist, where it is not installed."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin else Path("/nonexistent")


def session(path: Path) -> Any:
    """The model in onnxruntime, on one thread."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def chirps(count: int) -> Iterator[np.ndarray]:
    """Chunks of a tone that rises and falls, louder and softer, in some noise."""
    t = np.arange(count * 512 + 64) / RATE
    noise = np.random.default_rng(0).standard_normal(len(t))
    sound = np.sin(2 * np.pi * (300 * t + 40 * np.sin(2 * t))) * (0.3 + 0.3 * np.sin(3 * t)) + 0.02 * noise
    for k in range(count):
        yield sound[k * 512 : k * 512 + CHUNK].astype(np.float32)[None]


def speech_inputs(names: list[str], chunk: np.ndarray, state: dict[str, np.ndarray]) -> list[Any]:
    """The arguments of a model of silero-vad: a chunk, the state before it, the rate."""
    values: dict[str, Any] = {"input": chunk, "sr": np.array(RATE), **state}
    return [values[name] for name in names]


def first_state(names: list[str]) -> dict[str, np.ndarray]:
    shapes = {"state": (2, 1, 128), "h": (1, 1, 128), "c": (1, 1, 128)}
    return {name: np.zeros(shapes[name], np.float32) for name in names if name in shapes}


def file_bytes(path: Path) -> np.ndarray:
    """What magika is given of a file: its first and last 1024 bytes, with 256 where there are none."""
    content = path.read_bytes().strip()
    row = np.full((1, 2048), 256, np.int32)
    first, last = content[:1024], content[-1024:]
    row[0, : len(first)] = [*first]
    row[0, 2048 - len(last) :] = [*last]
    return row


def drawn_text(height: int, width: int) -> np.ndarray:
    """An image of a line of text, as (1, 3, height, width) from -1 to 1."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(image).text((8, height // 3), "Graphs of ONNX run here", fill="black")
    pixels = np.asarray(image, np.float32) / 127.5 - 1.0
    return np.ascontiguousarray(pixels.transpose(2, 0, 1))[None]


__all__ = ["chirps", "drawn_text", "file_bytes", "first_state", "folder", "session", "speech_inputs"]
