"""``python -m fuzz.world``, from ``test/``: random programs of Python around the arrays.

What such a program reads, writes and calls lives outside of the function: globals, closures,
attributes, properties and operators of classes, ``with`` blocks, methods that are held, files,
queues, locks, iterators. It changes between the calls. Each program runs beside itself without
`jit`; results, and all that it can have changed, are compared after each call.
"""

from __future__ import annotations

import argparse
import linecache
import random
import re
import sys
import tempfile
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import profuse as pf

CALLS = 7
# Expressions of a number, which read something that outlives the call.
READS = (
    "S",
    "TABLE['k']",
    "BOX.v",
    "NET.v",
    "NET.gain",
    "NET[2]",
    "float(NET)",
    "len(NET)",
    "GET('k')",
    "TABLE.get('k', 1.0)",
    "TOTAL()",
    "W.sum()",
    "float(W[0])",
    "FNS[0](4.0)",
    "PART(b=2.0)",
    "NET(1.0)",
    "max(ITEMS)",
    "sum(ITEMS)",
    "helper()",
    "sorted(ITEMS, key=NET.rank)[0]",
    "KIND.half",
    "len(LOG)",
    "Net.kept",
    "NET.late",
    "CVAR.get()",
    "next(COUNT)",
    "float(PATH.read_text())",
    "QUEUE.qsize()",
    "(3 in NET)",
    "sum(NET)",
    "getattr(BOX, 'v')",
    "vars(BOX)['v']",
    "cell()",
    "MODE.gain",
    "CHAIN['k']",
    "len(str(ITEMS))",
    "rounded(2)",
    "(NET == 3)",
    "RANDOM.random()",
    "OUT.tell()",
    "sum(S * k for k in range(3))",
    "[v * BOX.v for v in ITEMS][0]",
    "kept(2)",
    "functools.reduce(lambda a, b: a + b * S, ITEMS)",
    "PAIR.scaled",
    "math.sqrt(S)",
    "IGET(TABLE)",
    "eval('S + 1')",
    "(lambda k=S: k)()",
    "np.float64(S).item()",
    "list(map(NET.rank, ITEMS))[-1]",
    "(BOX.fn is helper)",
    "(BOX.fn == other)",
    "(NET.is_helper)",
    "(Net.fn is helper)",
    "FNS.count(math.sqrt)",
    "GAINS.get(BOX.fn, 0.5)",
    "GAINS[other]",
    "(BOX.fn in (helper, other))",
    "BOX.fn()",
    "(BOX.xp is np)",
    "BOX.xp.sqrt(S)",
    "next(itertools.starmap(BOX.size, [()]))",
    "functools.partial(BOX.size)()",
    "SIMPLE.qsize()",
    "next(itertools.starmap(SIZES[0], [()]))",
)
# Statements that write to it; {v} is a number.
WRITES = (
    "LOG.append({v})",
    "RECORD({v})",
    "TABLE['k'] = {v}",
    "TABLE['n'] = len(TABLE)",
    "BOX.v = {v}",
    "BOX.v += 1.0",
    "NET.v = {v}",
    "NET.w = {v}",
    "W[0] = {v}",
    "NET.setting = {v}",
    "ITEMS[0] = {v}",
    "PUT('k', {v})",
    "QUEUE.put(1)",
    "OUT.write('a')",
    "Net.kept = {v}",
    "PATH.write_text(str(float({v})))",
    "with LOCK: BOX.v = {v}",
    "with NET: pass",
    "del TABLE['k']",
    "with timed(): pass",
    "list(map(RECORD, [1.0, 2.0]))",
    "SEEN.add({v})",
    "counted()",
    "W.fill(2.0)",
    "with NET as s: BOX.v = s",
    "TABLE.setdefault('d', []).append(1)",
    "NET.log.append({v})",
    "SIMPLE.put(1)",
    "BOX.fn = other",
    "BOX.fn = helper",
    "GAINS[BOX.fn] = {v}",
)
# Between calls.
CHANGES = (
    "S = {n}",
    "TABLE['k'] = {n}",
    "BOX.v = {n}",
    "NET.v = {n}",
    "W[0] = {n}",
    "ITEMS.append({n})",
    "FNS[0] = math.exp",
    "Net.gain = property(lambda self: {n})",
    "PATH.write_text('{n}')",
    "CVAR.set({n})",
    "helper.__code__ = other.__code__",
    "PART.keywords.update(a={n})",
    "Net.kept = {n}",
    "NET.late = {n}",
    "QUEUE.put(1)",
    "LOG.clear()",
    "TABLE['k'] = {n}",
    "Net.__getitem__ = lambda self, k: {n}",
    "W = W * {n}",
    "NET = Net()",
    "Net.rank = lambda s, v: -v",
    "BOX = made_box({n})",
    "helper = lambda: {n}",
    "BOX.fn = helper",
    "BOX.fn = other",
    "SIMPLE.put(1)",
    "GAINS[helper] = {n}",
    "Net.fn = staticmethod(other)",
    "NET.fn = helper",
)
STATEMENTS = (
    "x = x * {r}",
    "x = x + {r}",
    "x = x - {r} * 0.5",
    "x = np.where(x > {r}, x, 1.0)",
    "x = NET + x",
    "x = x + NET",
    "with NET as s:\n    x = x * s",
    "for v in NET:\n    x = x * v",
    "x = x + 1 if NET else x - 1",
    "x = np.tanh(x) * {r}",
    "p, q = NET\nx = x * p + q",
    "x = x * (1.0 if {r} > 2 else 3.0)",
    "x = x @ x * {r} + x",
    "y = x * {r}\nx = y + y.sum()",
    "with timed():\n    x = x * {r}",
    "try:\n    x = x * NET.absent\nexcept AttributeError:\n    x = x + 1",
    "x = x * {r} + ({r}, {r})[0]",
    "if W.sum() > {r}:\n    x = x * 2",
    "x = x[::-1] + {r}",
)
MODULE = '''
import collections, contextlib, contextvars, enum, functools, io, itertools, math, operator
import pathlib, queue, random, threading, types
import numpy as np

S, TABLE, LOG, ITEMS = 2.0, {{"k": 2.0}}, [], [1.0, 3.0]
W, SEEN = np.array([1.0, 2.0, 4.0]), set()
SIMPLE = queue.SimpleQueue()
SIZES = (SIMPLE.qsize,)
GET, PUT, RECORD, TOTAL = TABLE.get, TABLE.__setitem__, LOG.append, W.sum
FNS, PART = [math.sqrt], functools.partial(lambda a, b: a * b, a=1.5)
CVAR, COUNT, RANDOM = contextvars.ContextVar("c", default=2.0), itertools.count(1), random.Random(3)
OUT, QUEUE, LOCK, PATH = io.StringIO(), queue.Queue(), threading.Lock(), pathlib.Path({path!r})
PATH.write_text("2.0")
CHAIN, IGET = collections.ChainMap({{}}, TABLE), operator.itemgetter("k")

def helper():
    return {helper}

def other():
    return 7.0 + S

def made_box(v):
    return types.SimpleNamespace(v=v, fn=helper, xp=np, size=SIMPLE.qsize)

BOX, GAINS = made_box(2.0), {{helper: 3.0, other: 4.0}}

@functools.lru_cache
def kept(k):
    return S * k

def rounded(k):
    return round(S * {rounded}, k)

def made():
    count = 0
    def cell():
        return BOX.v + count
    def counted():
        nonlocal count
        count += 1
    return cell, counted

cell, counted = made()

class Pair(collections.namedtuple("Pair", "a b")):
    @property
    def scaled(self):
        return self.a * {scaled}

class Mode(enum.Enum):
    ONE = 1
    @property
    def gain(self):
        return {mode}

class Kind:
    half = 0.5

class Net:
    kept = 1.5
    fn = staticmethod(helper)
    @property
    def is_helper(self):
        return BOX.fn is helper
    __hash__ = None
    __array_ufunc__ = None
    def __init__(self):
        self.v, self.w, self.log = 2.0, 1.0, []
    @property
    def gain(self):
        {gain_effect}
        return {gain}
    @property
    def setting(self):
        return self.v
    @setting.setter
    def setting(self, v):
        self.v = v * {setting}
    def __getitem__(self, k):
        return {item} * k
    def __call__(self, v):
        {call_effect}
        return v * {call}
    def __float__(self):
        return float({floated})
    def __len__(self):
        return int(abs({length})) % 5 + 1
    def __bool__(self):
        return bool({truth} > 2)
    def __contains__(self, v):
        return bool(v < {contains})
    def __eq__(self, v):
        return bool(v > {equals})
    def __iter__(self):
        yield {first}
        yield 1.0
    def __enter__(self):
        {enter}
        return {entered}
    def __exit__(self, *raised):
        {exit}
    def __add__(self, x):
        {add_effect}
        return x + {added}
    __radd__ = __add__
    def __getattr__(self, name):
        if name == "late":
            return {late}
        raise AttributeError(name)
    def rank(self, v):
        return v * {rank}

@contextlib.contextmanager
def timed():
    {timed}
    yield

NET, PAIR, MODE, KIND = Net(), Pair(1.0, 2.0), Mode.ONE, Kind()

def f(x):
{body}
    return {result}

def observed():
    """All that a program may have changed."""
    box, net = ({{k: getattr(v, "__name__", v) for k, v in vars(x).items()}} for x in (BOX, NET))
    gains = [(k.__name__, v) for k, v in GAINS.items()]
    return repr((
        S, TABLE, LOG, ITEMS, box, gains, SIMPLE.qsize(), W.tolist(), sorted(SEEN), net, Net.kept,
        QUEUE.qsize(), OUT.getvalue(), PATH.read_text(), LOCK.locked(), cell(),
        RANDOM.getstate()[1][-1],
    ))

def change(k):
    global S, W, NET, BOX, helper
{changes}
'''
# Where the code of the class and of helpers has expressions, and statements.
EXPRESSIONS = (
    "helper",
    "rounded",
    "scaled",
    "mode",
    "gain",
    "setting",
    "item",
    "call",
    "floated",
    "length",
    "truth",
    "contains",
    "equals",
    "first",
    "entered",
    "added",
    "late",
    "rank",
)
PLACES = ("gain_effect", "call_effect", "enter", "exit", "add_effect", "timed")
SIMPLE = ("S", "self.v", "BOX.v", "TABLE['k']", "2.0", "1.5", "self.kept")


@dataclass(frozen=True)
class World:
    """A program: its name, the text of its module, and a file that it may read and write."""

    name: str
    text: str
    path: str


def generate(seed: int, number: int, folder: str) -> World:
    """A program, by its seed and number."""
    rng = random.Random(f"{seed}/{number}")
    path = f"{folder}/{seed}-{number}"

    def read(of_class: bool = False) -> str:
        if of_class and rng.random() < 0.8:  # or programs read and write all there is
            return rng.choice(SIMPLE)
        return rng.choice(READS)

    def write() -> str:
        return rng.choice(WRITES).format(v=rng.choice(("3.0", "4.5", "float(len(LOG))", "S")))

    filled: dict[str, str] = {}
    for name in EXPRESSIONS:
        of_class = name not in ("helper", "rounded", "mode")
        text = read(of_class=True)
        filled[name] = text if of_class else text.replace("self.v", "S").replace("self.kept", "S")
    for name in PLACES:
        filled[name] = write() if rng.random() < 0.12 else "pass"
    lines: list[str] = []
    for _ in range(rng.randint(1, 4)):
        text = rng.choice(STATEMENTS)
        while "{r}" in text:
            text = text.replace("{r}", read(), 1)
        lines += text.split("\n")
        if rng.random() < 0.25:
            lines.append(write())
    result = rng.choice(("x", "x", "x", "(x, x.sum())", f"(x, {read()})", "[x, x * 2]"))
    changes = []
    for k in range(CALLS):
        if rng.random() < 0.5:
            text = rng.choice(CHANGES).replace("{n}", rng.choice(("3.0", "5.0", "-1.0", "2")))
            changes.append(f"    if k == {k}: {text}")
    text = MODULE.format(
        path=path,
        body="\n".join(f"    {line}" for line in lines),
        result=result,
        changes="\n".join(changes) or "    pass",
        **filled,
    )
    return World(f"{seed}/{number}", text, path)


def outcomes(world: World, options: dict[str, Any] | None, counts: Counter[str]) -> list[str]:
    """What each call gives and leaves, as text; ``options``: of `jit`, None = without."""
    import numpy as np

    file = f"<world {world.name} {options}>"
    linecache.cache[file] = (len(world.text), None, world.text.splitlines(True), file)
    space: dict[str, Any] = {"__name__": "world"}
    exec(compile(world.text, file, "exec"), space)
    f = space["f"] if options is None else pf.jit(space["f"], background=False, **options)
    found = []
    for k in range(CALLS):
        space["change"](k)
        try:
            result = repr(f(np.array([0.5, -1.0, 2.0])))
        except Exception as error:
            result = type(error).__name__
        found.append(f"{result} {space['observed']()}")
    if options is not None:
        counts["native" if not f.state().counters["python_calls"] else "python"] += 1
        counts["calls in Python"] += f.state().counters["python_calls"]
    linecache.cache.pop(file, None)
    return found


def check(seed: int, number: int, folder: str, compiled: bool, counts: Counter[str]) -> str:
    """What differs, as text; empty if nothing does."""
    world = generate(seed, number, folder)
    options: dict[str, Any] = {"unsupported": "python"}
    if not compiled:
        options["profiled_runs"] = 1_000_000  # never specialised
    expected = outcomes(world, None, counts)
    found = outcomes(world, options, counts)
    counts["programs"] += 1
    for k, (theirs, ours) in enumerate(zip(expected, found, strict=True)):
        if theirs.startswith("RecursionError"):
            break  # how deep Python gets depends on who calls
        if _rounded(theirs) != _rounded(ours):
            return f"{world.name}, call {k}:\n  {theirs}\n  {ours}\n{world.text}"
    return ""


def _rounded(text: str) -> str:
    """Numbers of kernels may differ in their last digits."""
    return re.sub(r"\d+\.\d+(e[-+]\d+)?", lambda m: f"{float(m[0]):.4g}", text)


def main() -> int:
    """Command line; the exit status is 1 if anything differs."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.world", description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first program")
    parser.add_argument("--compiled", type=int, default=10, help="every so many one is compiled")
    parser.add_argument("--most", type=int, default=10, help="differences to print")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    counts: Counter[str] = Counter()
    start, wrong = time.perf_counter(), 0
    with tempfile.TemporaryDirectory() as folder, pf.knobs.override(cache=False):
        for number in range(given.first, given.first + given.programs):
            compiled = number % given.compiled == 0
            what = check(given.seed, number, folder, compiled, counts)
            if what:
                wrong += 1
                print(
                    f"=== {'compiled' if compiled else 'tier 0'}: {what}"
                    if wrong <= given.most
                    else f"=== {given.seed}/{number}",
                    flush=True,
                )
            Path(f"{folder}/{given.seed}-{number}").unlink(missing_ok=True)
    seconds = time.perf_counter() - start
    print(f"{counts['programs']} programs in {seconds:.0f} s, {wrong} differ; {dict(counts)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
