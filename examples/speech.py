"""Find speech in a sentence with the detector of `silero_vad`, a TorchScript archive, and plot its probabilities.

The archive is loaded by `pf.load`: a short-time Fourier transform as a convolution, an encoder, and an LSTM
whose state the module carries from chunk to chunk. The same calls of `torch.jit` are timed beside it. The
sentence is espeak-ng's where that is installed; else it is made here, of vowels that are pulses through
resonances. The plot goes to ``build/speech.png``.

    python examples/speech.py [--text TEXT]
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import shutil
import subprocess
import sys
import time
import wave
from pathlib import Path

import matplotlib
import numpy as np
import profuse as pf

matplotlib.use("Agg")  # no screen is needed
from matplotlib import pyplot

RATE, CHUNK = 16000, 512  # samples of a second, and of a call
TEXT = "Is there anybody out there? Yes. The compiler is listening."
PICTURE = Path(__file__).parents[1] / "build" / "speech.png"
# The first three resonances of vowels, in Hz.
VOWELS = {"a": (730, 1090, 2440), "e": (530, 1840, 2480), "i": (270, 2290, 3010), "o": (570, 840, 2410)}


def spoken(text: str) -> np.ndarray | None:
    """The sentence as espeak-ng speaks it, at 16 kHz; None where it is not installed."""
    program = shutil.which("espeak-ng")
    if program is None:
        return None
    sound = subprocess.run([program, "--stdout", text], capture_output=True, check=True).stdout
    with wave.open(io.BytesIO(sound)) as file:
        rate, data = file.getframerate(), file.readframes(file.getnframes())
    samples = np.frombuffer(data, np.int16) / 32768
    places = np.arange(0, len(samples) - 1, rate / RATE)
    return np.interp(places, np.arange(len(samples)), samples).astype(np.float32)


def vowels(text: str) -> np.ndarray:
    """The vowels of a sentence, with a falling pitch, and silence between its words."""
    parts = [np.zeros(RATE // 3)]
    for word in text.lower().split():
        parts += [vowel(VOWELS[letter]) for letter in word if letter in VOWELS]
        parts.append(np.zeros(RATE // (3 if word[-1] in ".?" else 12)))
    sound = np.concatenate(parts)
    noise = np.random.default_rng(0).standard_normal(len(sound))
    return (0.6 * sound / np.abs(sound).max() + 0.002 * noise).astype(np.float32)


def vowel(resonances: tuple[int, ...], seconds: float = 0.16) -> np.ndarray:
    """Pulses of the vocal cords through the resonances of the mouth."""
    count = int(seconds * RATE)
    pitch = np.linspace(140, 110, count)
    sound = (np.diff(np.floor(np.cumsum(pitch) / RATE), prepend=0) > 0).astype(np.float64)
    for frequency in resonances:
        radius = np.exp(-np.pi * 90 / RATE)
        a, b = 2 * radius * np.cos(2 * np.pi * frequency / RATE), -radius * radius
        filtered = np.zeros(count + 2)
        for k in range(count):
            filtered[k + 2] = sound[k] + a * filtered[k + 1] + b * filtered[k]
        sound = filtered[2:]
    return sound / np.abs(sound).max() * np.hanning(count) ** 0.25


def probabilities(detector, sound: np.ndarray) -> tuple[np.ndarray, float]:
    """The probability of speech for each chunk, and the shortest time of a call, in microseconds."""
    import torch

    results, times = [], []
    with torch.no_grad():
        for chunk in torch.from_numpy(sound).reshape(-1, CHUNK):
            start = time.perf_counter()
            results.append(detector(chunk, RATE).item())
            times.append(time.perf_counter() - start)
    return np.array(results), 1e6 * min(times)


def plot(sound: np.ndarray, found: np.ndarray) -> None:
    """Save the sound and the probabilities as a picture."""
    figure, (above, below) = pyplot.subplots(2, 1, sharex=True, figsize=(9, 4))
    above.plot(np.arange(len(sound)) / RATE, sound, linewidth=0.4, color="grey")
    above.set_ylabel("sound")
    above.margins(x=0)
    below.fill_between(np.arange(len(found)) * CHUNK / RATE, found, step="post")
    below.axhline(0.5, color="black", linewidth=0.6, linestyle="dashed")
    below.set(ylabel="probability of speech", xlabel="seconds", ylim=(0, 1.02))
    PICTURE.parent.mkdir(exist_ok=True)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", default=TEXT)
    text = parser.parse_args().text
    missing = [name for name in ("torch", "silero_vad") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"This example needs {' and '.join(missing)}: pip install torch; pip install --no-deps silero-vad")
        return
    import torch

    torch.set_num_threads(1)
    package = importlib.util.find_spec("silero_vad")
    path = Path(package.submodule_search_locations[0]) / "data" / "silero_vad.jit"
    sound = spoken(text)
    if sound is None:
        print("espeak-ng is not installed: the sentence consists of its vowels.")
        sound = vowels(text)
    sound = sound[: len(sound) // CHUNK * CHUNK]
    detector, module = pf.load(path), torch.jit.load(str(path)).eval()
    for call in (detector, module):  # what is compiled in the background is there before calls are timed
        probabilities(call, sound)
    detector.wait()
    detector.reset_states(), module.reset_states()
    ours, microseconds = probabilities(detector, sound)
    theirs, torchs = probabilities(module, sound)
    print(f"{len(ours)} chunks of {CHUNK / RATE * 1000:.0f} ms, {np.sum(ours > 0.5)} of them with speech")
    print(f"largest difference to torch.jit: {np.abs(ours - theirs).max():.1e}")
    print(f"time of a call: {microseconds:.0f} us, torch.jit {torchs:.0f} us")
    plot(sound, ours)
    print(f"The plot is in {PICTURE}.")
    assert np.abs(ours - theirs).max() < 1e-4


if __name__ == "__main__":
    sys.exit(main())
