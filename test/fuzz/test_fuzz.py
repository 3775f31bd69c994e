"""A sample of the random programs, and whether the fuzzer sees what it is for.

`make fuzz` runs as many as one likes.
"""

from __future__ import annotations

import signal
from collections import Counter

import numpy as np
import profuse as pf
import pytest
from every_case import EVERY_CASE
from profuse.dialect.ops.elementwise.unary import Exp

from . import modes, training, training_programs, training_ways, world
from .compare import module
from .modes import Finding, check
from .programs import Program, at_most, generate, quiet
from .rounding import Rounding, with_rounding
from .runner import run
from .shrink import CRASH, failure, script, shrink

SEED = 5
PROGRAMS = 90 if EVERY_CASE else 30
# One mode beside tier 0 for each program, in turn.
TURNS = (("static",), ("dynamic",), ("keyed",), ("emitted", "warm"), ("threads",), ("memory",))
# Programs that fail for a known cause.
OPEN: dict[int, str] = {}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("turn", range(len(TURNS)), ids=lambda k: TURNS[k][-1])
def test_random_programs_do_what_numpy_does(turn):
    """Values, dtypes, shapes, errors and arguments, in every mode; and something is compiled."""
    counts, found = Counter(), []
    for number in range(turn, PROGRAMS, len(TURNS)):
        if number not in OPEN:
            found += check(generate(SEED, number), ("tier 0", *TURNS[turn]), counts)
    assert not found, "\n".join(script(shrink(f, seconds=20)) for f in found[:3])
    programs = PROGRAMS // len(TURNS)
    for mode in TURNS[turn]:
        assert counts[f"{mode}: kernel_launches"] > programs, counts
        assert not counts[f"{mode}: compile_failures"], counts
    assert counts["refused calls"] < counts["calls"] / 2, counts


X, GROWN = "given(arr('f4', (3, 4), 'C', 1))", "given(arr('f4', (5, 4), 'C', 2))"


def made(*body: str, calls: tuple[str, ...] = (X, GROWN, X)) -> Program:
    return Program("0/0", parameters=("x", "k=2"), body=body, results=("v",), calls=calls)


@pytest.mark.parametrize(
    ("right", "wrong", "what"),
    [
        ("v = x + 1e-3", "v = x + 1.1e-3", "values of float32"),
        ("v = x[0].astype('f8')", "v = x[0]", "dtype float32 for float64"),
        ("v = x > 0", "v = x > 0.5", "values of bool"),
        ("v = x * 0", "v = -(x * 0)", "sign of zero in float32"),
        ("v = x / 0", "v = x / 1e-30", "nan or infinity in float32"),
        ("v = x.sum(axis=0)", "v = x.sum(axis=1)", "another shape"),
        ("v = x[7]", "v = x[-1]", "does not raise IndexError"),
        ("v = x[1]", "v = x[9]", "raises BoundsError"),
        ("v = x[7]", "v = x.foo", "AttributeError: 'numpy.ndarray' object has no attribute 'foo'"),
        ("v = x + x", "v = (x + x,)", "another structure"),
        ("x[0] = 1\nv = x + 0", "v = x + 0", "an argument is not changed"),
    ],
)
def test_what_differs_is_seen_and_shrunk(monkeypatch, right, wrong, what):
    """Each kind of difference, of a function that computes something else than NumPy's."""
    program = made("u = np.tanh(x) * k", right)
    assert failure(program, "tier 0") is None, "right code is right"
    monkeypatch.setattr(modes, "module", lambda source, name: module(_replaced(source, right, wrong), name))
    found = failure(program, "tier 0")
    assert found is not None
    assert found.what.startswith(what)
    small = shrink(found, 20).program
    assert (small.body, len(small.calls)) == ((right,), 1)


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    return x * 1e-3 - 7e-3",
        "def f(x):\n    y = x + 0\n    z = y\n    y *= 1e-3\n    z[1:] **= 2\n    return y",
    ],
)
def test_products_are_off_where_they_are_rounded(source):
    """Compiled code contracts them with sums; what is exact is exact, and names stay names."""
    scope, exact = module(with_rounding(source), "near", **Rounding(1).names()), {}
    exec(source, exact)
    x = np.array([3.3, 5.7, 11.1])
    moved, right = scope["f"](x), exact["f"](x)
    assert 0 < abs(moved - right).max() < 1e-17
    assert (scope["_mul"](x, 0.5) == x * 0.5).all()
    assert type(scope["_pow"](2.5, 1.5)) is float and scope["_mul"](3, 5) == 15


def test_the_order_of_products_of_integers_and_floats_is_open():
    """-(2**63) - 2 + 2**63 - 1 is -2, or 0, in floats, as the terms are grouped."""
    z, y = np.array([[-(2**63), -2, 2**63 - 1]]), np.float32([[0.75]])
    found = [Rounding(k).einsum("ij,ij->i", z, y)[0] for k in range(4)]
    assert np.ptp(found) > 100


def test_the_order_of_sums_is_open_where_it_shows():
    """Tenths have sums that are rounded, halves do not; a matrix assigned to keeps its place."""
    source = "def f(x):\n    y = x.sum(axis=0)\n    y += np.sum(x) + (x @ x.T).trace()\n    return y"
    tenths = np.float32([[0.1, 0.2, 0.7], [0.3, 0.1, 0.9]])
    for x, exact in ((tenths, False), (np.float32([[0.5, 2, 1.5]] * 2), True)):
        scopes = [module(with_rounding(source), "near", **Rounding(k).names()) for k in range(4)]
        assert (np.ptp([scope["f"](x) for scope in scopes], axis=0) == 0).all() == exact
    square = np.float32([[0.1, 0.2], [0.3, 0.7]])
    same = Rounding(1).names()["_imatmul"](square, square.copy())
    assert same is square
    huge = np.float32([[3e38, 3e38, -3e38]])
    with quiet():
        found = [Rounding(k).names()["np"].sum(huge) for k in range(2)]
    assert np.isnan(found[0]) and np.isinf(found[1]), "it overflows, or not, by its order"


def test_the_sign_of_a_nan_is_another_one_with_each_seed():
    nan = np.full(3, np.nan, np.float32)
    found = [Rounding(k).signbit(nan) for k in range(2)]
    assert found[0].all() != found[1].all() and found[0].any() != found[1].any()


def _replaced(source: str, right: str, wrong: str) -> str:
    """A module's source with a statement of its function replaced."""
    return source.replace(right.replace("\n", "\n    "), wrong)


def test_refusals_and_what_is_dead_are_counted():
    """A refused call has its reason; an error that only dead code would raise is none."""
    counts = Counter()
    assert check(made("v = x.tobytes()"), ("tier 0",), counts) == []
    assert [n for n in counts if n.startswith("refused: ndarray.tobytes")]
    assert counts["refused calls"] == 3
    dead = made("v1 = x[np.arange(4)]", "v = x + 1", calls=(GROWN, X, X))
    assert check(dead, ("static",), counts) == []
    assert counts["calls that do not raise what nothing uses"] == 2
    nothing = made("u = np.arange(7)", "v = x[:0][:, u]")
    assert check(nothing, ("tier 0",), counts) == []
    some, empty = (f"given(arr('f4', (3, {n}), 'ro', 1))" for n in (2, 0))
    written = made("v = np.tile(x, 2)", "v[v > 0] = k", calls=(some, some, empty))
    assert check(written, ("static",), counts) == []
    assert counts["calls that index or write what has no elements"] == 4
    later = made("u = x[np.arange(9)]", "v = x + np.ones(9)")
    assert check(later, ("tier 0",), counts) == []
    assert counts["calls that raise a later error first"] == 3
    index_first = made("v = np.zeros((0, 3), int)", "v[np.arange(2)] += np.pi")
    assert check(index_first, ("tier 0",), counts) == []
    assert counts["calls that refuse a cast or a shape before an index"] == 3
    raising = made("v = x.reshape(k, -1)", calls=(X, "given(arr('f4', (3, 3), 'C', 1))"))
    before = counts["calls that raise in NumPy"]
    assert check(raising, ("tier 0",), counts) == []
    assert counts["calls that raise in NumPy"] == before + 1


def test_programs_that_numpy_does_not_end_are_counted(monkeypatch):
    """However it is left: what programs catch does not keep them from being stopped."""
    monkeypatch.setattr(modes, "_NUMPY_SECONDS", 0.2)
    counts = Counter()
    endless = made(
        "v = x", "for i in range(10**30):\n    try:\n        v = v + i\n    except Exception:\n        v = x"
    )
    with at_most(60):
        assert check(endless, ("tier 0",), counts) == []
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] < 60, "the outer limit still holds"
    assert counts == {"programs that NumPy does not end": 1}


def test_a_fault_of_the_compiler_is_found_though_results_are_right(monkeypatch):
    monkeypatch.setattr(Exp, "lower", classmethod(lambda *args: 1 // 0))
    (found,) = check(made("v = np.exp(x) * 2"), ("static",), Counter())
    assert found.what.startswith("a fault of the compiler") and "ZeroDivisionError" in found.what


def test_programs_are_those_of_their_seed_and_run_by_themselves(capsys):
    assert generate(3, 4) == generate(3, 4) != generate(3, 5)
    # The script sets knobs for good.
    with pf.knobs.override(cache=pf.knobs.cache, native_dispatch=pf.knobs.native_dispatch):
        exec(script(Finding(made("v = x.sum()"), "static", 0, "an example")), {})
    shown = capsys.readouterr().out.splitlines()
    assert len(shown) == 6
    assert {line.split(" ", 1)[1] for line in shown} == {line.split(" ", 1)[1] for line in shown[::2]}


def test_a_process_that_dies_names_its_program(monkeypatch, capsys):
    """What is left of its programs another one does; each is run in one way by its number."""
    monkeypatch.setenv("FUZZ_CRASH", "1")
    report = run(SEED, 0, 3, 1, (), shrink_seconds=1.0)
    assert report.counts["programs"] == 2
    assert {name.split(":")[0] for name in report.counts if "compiles" in name} == {"tier 0", "static", "keyed"}
    assert report.found == {CRASH: [(f"{SEED}/1", "tier 0")]}
    assert f"{SEED}/1      tier 0     {CRASH} of signal 11" in capsys.readouterr().out


@pytest.mark.parametrize(("first", "compiled"), [(0, 1_000_000), (60_000, 3)])
def test_programs_of_the_world(first, compiled, tmp_path):
    """What lies around the arrays: see `world`."""
    counts: Counter[str] = Counter()
    with pf.knobs.override(cache=False):
        for number in range(first, first + (80 if compiled > 3 else 30)):
            assert not world.check(9, number, str(tmp_path), number % compiled == 0, counts)
    assert counts["native"] and counts["python"]


def test_training_programs():
    """Steps of training in most ways that do not compile, and a few in those that do."""
    counts: Counter[str] = Counter()
    with pf.knobs.override(cache=False, unsupported="python"):
        for number in range(0 if EVERY_CASE else 18, 35):
            ways = training.usual(number)
            program = training_programs.generate(11, number)
            assert not training.check(program, ways if number % 8 < 2 else ways[:3], counts)
    assert counts["pf.grad"] and counts["differences"] and counts["captured"]


@pytest.mark.parametrize("way", ["traced", "interpreted"])
def test_a_lost_gradient_of_a_training_program_is_found(monkeypatch, way, capsys):
    """What is printed then shows the same by itself."""
    rule = training_ways.Way.backward

    def backward(self, y, **options):
        rule(self, y * 2.0 if self.options or self.captured else y, **options)

    program = training_programs.generate(11, 0)
    monkeypatch.setattr(training_ways.Way, "backward", backward)
    with pf.knobs.override(cache=False, unsupported="python"):
        assert "became" in training.check(program, [way], Counter())[way]
    printed = training.script(program, way).replace(
        "y.backward(**options)", "(y * 2.0 if self.options or self.captured else y).backward(**options)"
    )
    exec(compile(printed, "<script>", "exec"), {"__name__": "alone"})
    assert "became" in capsys.readouterr().out
