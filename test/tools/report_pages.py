"""A script to report on, and pages as a browser would read them."""

from __future__ import annotations

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import profuse as pf
from profuse.executor.explain.state import Specialization
from profuse.executor.observe.timeline import GAINS, TimedCall
from profuse.executor.settings.events import Event
from profuse.tools.report.model import CompiledGraph, FunctionReport, KernelReport, Run, Setting, Step

SCRIPT = """
import sys, threading
import numpy as np, profuse as pf

@pf.jit
def softmax(x, b):
    y = x * 0.125 + b
    e = np.exp(y - y.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)

@pf.jit
def spectrum(x):
    return np.tanh(np.arcsin(x * 1j).real)

pf.set_profiling_mode(False)
keyed = pf.jit(lambda x, b: np.tanh(x @ b) * 0.5, name="keyed")
keyed(np.ones((4, 8)), np.ones((8, 3)))
pf.set_profiling_mode(True)

def work():
    for rows in (4, 4, 4, 6, 6, 6, 6):
        softmax(np.ones((rows, 8), np.float32), np.zeros(8, np.float32))
    for _ in range(3):
        spectrum(np.ones(5))

thread = threading.Thread(target=work, name="a <worker>")
thread.start()
try:
    pf.jit(lambda x: x.tobytes(), name="packs")(np.ones(3))
except pf.TraceError:
    pass
if sys.argv[1:] == ["fail", "--now"]:
    thread.join()
    raise KeyError("<b>no such key</b>")
"""
VOID = {"meta", "input", "col"}


class Page(HTMLParser):
    """What a browser would make of a page, as far as the tests ask."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.raw = text
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def text(self, *tags: str) -> str:
        return "\n".join(t for tag in tags or self.texts for t in self.texts.get(tag, ()))

    def all(self, attribute: str) -> list[str]:
        return [attrs[attribute] for _, attrs in self.elements if attribute in attrs]


def start(folder: Path, *arguments: str, expect: int = 0) -> subprocess.CompletedProcess:
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == expect, done.stderr
    return done


HOSTILE = "</script></style><script>alert(1)</script><img src=x onerror=\"x\" a='b'>&${title}\x00\u202e"


def hostile_run() -> Run:
    """A run of which every text is hostile."""
    h = HOSTILE
    call = TimedCall(1, h, 0, 1000, 7, "optimized", dict.fromkeys(GAINS, 1), h)
    step = Step(h, 0.1, f"{h}\nsame", f"{h}x\nsame\n{h}")
    kernel = KernelReport(h, 10, 1, {h: 0.1}, {"asm": h, h: h})
    compiled = CompiledGraph(h, h, 0.1, {h: 0.1}, False, h, (step,), (kernel,), h)
    spec = Specialization(h, h, 1, (h,), 1, 1, 0.1, 10, h, 0.1, 0, h)
    function = FunctionReport(1, h, h, "optimized", pf.counters(), (call,), (spec,), (compiled,), h, (h,))
    event = Event(h, h, h, 0.1, {h: h}, 0.0, 7)
    return Run(
        h,
        h,
        0.0,
        1.0,
        True,
        1,
        (function,),
        ((0.1, call),),
        ((0.2, event),),
        {7: h},
        pf.counters(),
        (Setting(h, h, "", h),),
        {h: h},
        h,
        h,
        (h,),
    )
