"""Random programs with loops, branches and jumps on arrays; see `test_source_random`.

Run as a script for many: ``python source_programs.py 5000 [--seed 0] [--compiled]`` compares as
many programs, as graphs op by op, or as jitted functions in all tiers.
"""

import argparse
import cmath
import copy
import linecache
import random
import sys
from types import SimpleNamespace

import numpy as np
import profuse as pf
from profuse.dialect.errors import ShapeError, TraceError
from profuse.dialect.importers.numpy.capture.tracer import trace
from profuse.dialect.importers.numpy.tracing.recorder import Policy
from profuse.executor.interpret.evaluate import evaluate

SIZES = ((4, 3), (1, 2), (6, 1), (2, 0), (5, 7))  # of the arrays, and the argument n


class Program:
    """A function ``f(x, y, a, n)`` of two vectors, a square matrix and an int."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines = [
            "def f(x, y, a, n):",
            "    m = len(x)",
            "    s = x[0] * 0.5",
            "    t = x[0] + 1.0",
            "    k = 0",
            "    z = y * 2.0",
            "    c, p, q, r, w = 0.5 + 0.25j, [], [0.5], [0.25, 0.5], []",
            "    o, d = SimpleNamespace(s=0.5, v=z, k=0), {'t': 1.0, 'z': y + 1.0}",
        ]
        self.ints = ["k"]
        self.loops = 0
        self.body(1, 0, 3 + self.random.randrange(3), False)
        told = self.pick("len(w)", "max(r)", "sum(r)", "min(r)", "r[-1]", "np.array(r)", "w[-1]")
        self.lines.append(f"    return s, t, k, z, x, y, a, c, p, q, r, w, {told}, o.__dict__, d")
        self.text = "\n".join(self.lines) + "\n"
        self.name = f"/tmp/source_programs_{seed}.py"
        linecache.cache[self.name] = (len(self.text), None, self.text.splitlines(True), self.name)
        space = {"np": np, "cmath": cmath, "SimpleNamespace": SimpleNamespace}
        exec(compile(self.text, self.name, "exec"), space)
        self.function = space["f"]

    def pick(self, *choices):
        return self.random.choice(choices)

    def add(self, depth, text):
        self.lines.append("    " * depth + text)

    def body(self, depth, loops, count, inside):
        for _ in range(count):
            self.statement(depth, loops, inside)

    def statement(self, depth, loops, inside):
        kinds = ["element", "scalar", "slice", "array", "int"] * 2 + ["if", "if", "complex"]
        kinds += ["append", "list", "place"] * (2 if inside else 1)
        if loops < 3:
            kinds += ["for"] * (5 if not inside else 2) + ["while"]
        getattr(self, self.pick(*kinds) + "_")(depth, loops, inside)

    # --- expressions ----------------------------------------------------------------------------

    def index(self):
        name = self.pick(*self.ints)
        return self.pick(f"{name} % m", f"({name} + 1) % m", "0", "-1", f"-({name} % m) - 1")

    def element(self):
        at = self.index()
        return self.pick(f"x[{at}]", f"y[{at}]", f"z[{at}]", f"a[{at}, {self.index()}]", "s", "t")

    def number(self):
        one, two = self.element(), self.element()
        return self.pick(
            f"{one} * 0.5 + {two} * 0.25",
            f"{one} - {two} * 0.5",
            f"abs({one}) * 0.5",
            f"({one} if {self.condition()} else {two})",
            f"min({one}, {two})",
            f"{one} * 0.25 + 1.0",
            f"{one} * 0.1 + {self.pick(*self.ints)} % 3",
        )

    def vector(self):
        at = self.index()
        return self.pick("x", "y", "z", f"a[{at}]", f"a[:, {at}]", "x[::-1]", "a @ x * 0.1")

    def condition(self):
        name = self.pick(*self.ints)
        simple = (
            f"{self.element()} > {self.element()}",
            f"{self.element()} < 0.5",
            f"{name} % 2 == 0",
            f"{name} < n",
            "n > 2",
            f"x.sum() > {self.element()}",
            f"0 < {name} < m",
        )
        one, two = self.pick(*simple), self.pick(*simple)
        return self.pick(one, one, f"({one} and {two})", f"({one} or {two})", f"not {one}")

    def bounds(self):
        name = self.pick(*self.ints)
        return self.pick(
            "range(m)",
            "range(n)",
            "range(1, m)",
            "range(m - 1, -1, -1)",
            "range(0, m, 2)",
            f"range({name} % 5)",
            f"range({name} % 3, n)",
            "range(3)",
            "range(20)",
            "range(len(y))",
            "range(n, 0, -2)",
            "reversed(range(m))",
        )

    # --- statements -----------------------------------------------------------------------------

    def element_(self, depth, loops, inside):
        target = self.pick(f"x[{self.index()}]", f"z[{self.index()}]", f"a[{self.index()}, {self.index()}]")
        self.add(depth, f"{target} {self.pick('=', '+=', '=')} {self.number()}")

    def scalar_(self, depth, loops, inside):
        self.add(depth, f"{self.pick('s', 't')} = {self.number()}")

    def int_(self, depth, loops, inside):
        other = self.pick(*self.ints)
        self.add(depth, self.pick("k = k + 1", "k = (k + 2) % 7", f"k = (k + {other}) % 11"))

    def slice_(self, depth, loops, inside):
        at = self.index()
        self.add(
            depth,
            self.pick(
                f"a[{at}] = {self.vector()} * 0.5",
                f"a[:, {at}] += {self.vector()} * 0.1",
                "x[1:] = x[:-1] * 0.5 + z[1:] * 0.5",
                f"z[{at}:] *= 0.5",
                "y[::2] = z[::2]",
                "a[1:, 1:] = a[:-1, :-1] * 0.5",
                f"x[:] = {self.vector()} * 0.5",
            ),
        )

    def array_(self, depth, loops, inside):
        self.add(
            depth,
            self.pick(
                f"z = {self.vector()} * 0.5 + {self.vector()} * 0.25",
                "y, z = z, y * 0.5",
                f"z = np.maximum(y, {self.vector()})",
                f"x = x * 0.5 + {self.number()}",
                f"s = ({self.vector()}).sum() * 0.25",
                "a = a * 0.5",
                "z = x.copy()",
            ),
        )

    def complex_(self, depth, loops, inside):
        name = self.pick(*self.ints)
        self.add(
            depth,
            self.pick(
                f"c = c * complex({self.element()}, {name}) * 0.1 + float({self.element()})",
                f"c = (c - {name}) / (abs(c) + 2.5)",
                "c = c.conjugate() * (0.5 - 0.25j)",
                f"s = {self.element()} * 0.5 + c.imag * 0.1",
                "c = cmath.exp(c * 0.1) - c**2 * 0.1",
            ),
        )

    def append_(self, depth, loops, inside):
        value = self.pick(
            self.number(),
            self.number(),
            self.pick(*self.ints),
            "c",
            "float(s)",
            f"{self.vector()} * 0.5",
            "z",
            "x.copy()",
            f"{self.vector()}.sum()",
            "q[-1]",
            "len(p)",
        )
        self.add(depth, f"{self.pick('p', 'p', 'q')}.append({value})")

    def list_(self, depth, loops, inside):
        """Lists whose elements are of one kind, which rounds read."""
        name = self.pick(*self.ints)
        self.add(
            depth,
            self.pick(
                f"r.append(float({self.element()}))",
                f"r.append(float({self.element()}))",
                "r.append(r[-1] * 0.5 + r[-2])",
                f"r.append(r[{name}] + 1.0)",
                "s = s * 0.5 + r[-1]",
                f"w.append(({name}, float({self.element()})))",
                f"w.append(({name}, float(s)))",
                "k = (k + len(r)) % 7",
                "t = (t + len(w)) * 0.5",
            ),
        )
        if self.pick(True, False, False):
            condition = self.pick("len(r) < 4", "r[-1] > 0.5", "w and w[-1][1] > 0.5", "not w")
            self.add(depth, f"if {condition}:")
            self.add(
                depth + 1,
                self.pick("r.append(s * 0.0 + 0.25)", "r.append(float(t))", "w.append((k, float(t)))", "k = k + 1"),
            )

    def place_(self, depth, loops, inside):
        """Attributes and items that rounds change."""
        at = self.index()
        self.add(
            depth,
            self.pick(
                f"o.s = o.s * 0.5 + {self.element()}",
                f"o.s = float({self.element()})",
                f"o.k = (o.k + {self.pick(*self.ints)}) % 7",
                "o.k += 1",
                "o.v = o.v * 0.5 + x",
                f"o.v[{at}] = {self.number()}",
                "o.v, d['z'] = d['z'], o.v * 0.5",
                "d['t'] *= 0.5",
                f"d['t'] = {self.number()}",
                f"d['z'][{at}] += d['t']",
                "o.v = z",
                "z = o.v + d['z']",
                f"s = o.s * 0.5 + o.v[{at}]",
                "t = d['t'] + o.k",
                "o.v *= 0.5",
            ),
        )

    def if_(self, depth, loops, inside):
        self.add(depth, f"if {self.condition()}:")
        self.branch(depth, loops, inside, self.pick(1, 2), self.pick(True, False, False))
        if self.pick(True, False, False, False):
            self.add(depth, f"elif {self.condition()}:")
            self.branch(depth, loops, inside, 1, self.pick(True, False))
        if self.pick(True, False):
            self.add(depth, "else:")
            self.branch(depth, loops, inside, 1, self.pick(True, False, False, False))

    def branch(self, depth, loops, inside, count, jumps):
        # Branches in branches of a loop's body may jump as well, with statements behind them.
        self.body(depth + 1, loops + 1, count, inside and self.pick(True, False))
        if inside and jumps:
            self.add(depth + 1, self.pick("break", "continue"))

    def for_(self, depth, loops, inside):
        self.loops += 1
        name = f"i{self.loops}"
        if self.pick(True, True, True, False):
            self.add(depth, f"for {name} in {self.bounds()}:")
            self.within(name, depth, loops)
        else:
            self.add(depth, f"for {name}, (row, e) in enumerate(zip(a, {self.pick('y', 'z')})):")
            text = f"s = s * 0.5 + row[{self.index()}] + e"
            text = self.pick(text, "z = z * 0.5 + row", "t = t * 0.5 + row @ x + e")
            self.add(depth + 1, text)
            self.within(name, depth, loops)
        if self.pick(True, False, False, False):
            self.add(depth, "else:")
            self.body(depth + 1, loops + 1, 1, False)

    def while_(self, depth, loops, inside):
        self.loops += 1
        name = f"i{self.loops}"
        self.add(depth, f"{name} = {self.pick('0', 'k % 3', 'm // 2')}")
        extra = self.pick("", f" and ({self.condition()})")
        self.add(depth, f"while {name} < {self.pick('n', 'm', '4', '20')}{extra}:")
        self.add(depth + 1, f"{name} += 1")
        self.within(name, depth, loops)

    def within(self, name, depth, loops):
        self.ints.append(name)
        self.body(depth + 1, loops + 1, self.pick(1, 2, 3), True)
        self.ints.remove(name)


def arguments(seed, size, n):
    rng = np.random.default_rng(seed)
    return rng.random(size), rng.random(size), rng.random((size, size)), n


def _like(one, two):
    """Equal up to rounding; a Python float may be an `np.float64` of the same value."""
    if isinstance(two, dict):
        return list(one) == list(two) and _like([*one.values()], [*two.values()])
    if isinstance(two, list):
        return (
            isinstance(one, list) and len(one) == len(two) and all(_like(a, b) for a, b in zip(one, two, strict=True))
        )
    return np.shape(one) == np.shape(two) and np.allclose(one, two, 1e-9, 1e-9, equal_nan=True)


def outcome(function, args):
    try:
        return function(*args)
    except Exception as error:
        return type(error).__name__


def compare(seed, elements=True):
    """Run one program as a graph; returns the numbers of graphs, refusals, and recorded loops.

    Raises AssertionError where a graph does something else than Python.
    """
    program = Program(seed)
    graphs, refused, recorded = [], 0, 0
    for k, (size, n) in enumerate(SIZES):
        args = arguments(seed + k, size, n)
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        with np.errstate(all="ignore"):
            want = outcome(program.function, theirs)
        found = next((g for g in graphs if g.accepts(list(mine))), None)
        if found is None:
            try:
                policy = Policy(elements=elements)
                found = trace(program.function, mine, loops=policy, writes=True, most_ops=3000)
            except TraceError:
                refused += 1
                continue
            except Exception as error:
                assert not isinstance(want, tuple), f"{program.text}\n{error!r}"
                continue
            graphs.append(found)
            walk = [i.op.name for i in found.module.main.body.walk()]
            recorded += walk.count("for") + walk.count("while") + walk.count("if")
        try:
            outputs = evaluate(found.module, [*mine, *found.captured])
        except Exception as error:
            told = {i.attrs.get("message") for i in found.module.main.body.walk()}
            if isinstance(error, ShapeError) and error.what in told:
                refused += 1  # what the graph requires does not hold: the call is Python's
                continue
            assert not isinstance(want, tuple), f"{program.text}\n{size} {n} {error!r}"
            continue
        assert isinstance(want, tuple), f"{program.text}\n{size} {n}: no {want}"
        finals = outputs[len(outputs) - len(found.writes) :]
        for number, final in zip(found.writes, finals, strict=True):
            mine[number][...] = final
        leaves = [outputs[k] if k >= 0 else mine[~k] for k in found.sources or range(len(outputs))]
        got = found.out_tree.unflatten(leaves[: found.out_tree.leaves])
        for a, b in zip((*got, *mine), (*want, *theirs), strict=True):
            assert _like(a, b), f"{program.text}\nseed {seed}, size {size}, n {n}:\n{a}\n{b}"
    return len(graphs), refused, recorded


def compare_compiled(seed, calls=3):
    """Call one program as a user does, jitted; returns whether a kernel has run, and Python.

    Raises AssertionError where results, effects or exceptions are not Python's.
    """
    program = Program(seed)
    jitted = pf.jit(program.function, unsupported="python", background=False)
    for _ in range(calls):
        for k, (size, n) in enumerate(SIZES[:3]):
            args = arguments(seed + k, size, n)
            mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
            with np.errstate(all="ignore"):
                want, got = outcome(program.function, theirs), outcome(jitted, mine)
            told = f"{program.text}\nseed {seed}, size {size}, n {n}:\n{got}\n{want}"
            assert isinstance(got, tuple) == isinstance(want, tuple), told
            if not isinstance(want, tuple):
                assert got in (want, *_STANDS_FOR.get(want, ())), told
                want = got = ()
            for a, b in zip((*got, *mine), (*want, *theirs), strict=True):
                assert _like(a, b), told
    counters = jitted.state().counters
    assert counters["compile_failures"] == counters["check_failures"] == 0, program.text
    return counters["kernel_launches"] > 0, counters["python_calls"] > 0, 0


# Errors of graphs are of NumPy's kinds, under names of their own.
_STANDS_FOR = {
    "IndexError": ("BoundsError", "AxisError"),
    "ValueError": ("ShapeError",),
    "OverflowError": ("RangeError",),
    "TypeError": ("DTypeError",),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--compiled", action="store_true")
    given = parser.parse_args()
    count, first = given.count, given.seed
    compared = compare_compiled if given.compiled else compare
    totals = [0, 0, 0]
    wrong = 0
    for seed in range(first, first + count):
        try:
            totals = [a + b for a, b in zip(totals, compared(seed), strict=True)]
        except AssertionError as error:
            wrong += 1
            print(f"seed {seed}:\n{error}")
        except Exception as error:
            wrong += 1
            print(f"seed {seed}: {error!r}")
            raise
    if given.compiled:
        print(f"{count} programs, {wrong} wrong: {totals[0]} native, {totals[1]} in Python, too")
    else:
        print(
            f"{count} programs, {wrong} wrong: {totals[0]} graphs, {totals[1]} refused calls, "
            f"{totals[2]} recorded statements"
        )
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
