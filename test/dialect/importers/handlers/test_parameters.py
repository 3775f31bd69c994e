"""Every parameter of every NumPy function, method and ufunc that is traced, compared with NumPy.

A call may be refused with TraceError; else it does what NumPy does: the same result, or an error,
whose built-in class is the same unless the call is wrong in two ways, of which either may be told.
"""

import ast
import copy
import inspect
import re
import zlib
from functools import cache

import numpy as np
import parameter_calls as table
import profuse as pf
import pytest
from profuse.dialect.errors import TraceError
from profuse.dialect.importers.numpy.capture import tracer  # noqa: F401 - fills the tables
from profuse.dialect.importers.numpy.tracing.handler_tables import (
    COMPOSED,
    CREATION,
    FUNCTIONS,
    METHODS,
    UFUNCS,
    load_all,
)

load_all()
pytestmark = pytest.mark.filterwarnings("ignore")
OTHER = {"f8": "f4", "f4": "f8", "i4": "f8", "u1": "i2", "b1": "b1", "c16": "f4", "f2": "f2", "i8": "i4"}

# Calls that differ, and why: (pattern of the whole text, reason).
LEFT = [
    (r"np\.(sum|prod)\((\[k|\(k|x\.shape).*", "sums of sizes stay Python numbers"),
    (r".*weights=x \* 0.*", "contents, not sizes, make the weights' sum 0"),
    (r"np\.full\(.*'a'.*", "strings are no dtype here"),
    (r".*ndmax=0.*", "its default, as a value, is another one in NumPy"),
    (r"np\.can_cast\((x\.dtype|'f4'), y.*", "NumPy asks the first argument for a handler"),
    (r"np\.linalg\.vector_norm\(.*axis=1\.0, keepdims.*", "the axis is taken for the integer"),
    (r"np\.arange\(k, dtype=bool\)", "its length is not known"),
    (r"np\.clip\(x, 1, 2, dtype=bool\)", "NumPy casts the bounds, too"),
    (r"np\.round\(.*out=\(np.*", "a tuple is taken for its array"),
    (r"x\.(swapaxes\(axis1|item\(True).*", "NumPy's methods take less"),
    (r"np\.array\(.*, ndmin=40\)", "more axes than NumPy has"),
]
# Arguments of a kind that no array has a use for.
WRONG_KIND = re.compile(
    r"\b1\.0|axis=None|True\)|1j|mode=(None|5)|'foo'|out=np"
    r"|fill|item\(|axis=2\)"
)

# Parameters that no table entry names: they are layout alone, or NumPy's own.
UNNAMED = {"like", "kwargs"}


@cache
def _operands():
    rng = np.random.default_rng(3)
    few = (rng.normal(size=(3, 3)) + 1j * rng.normal(size=(3, 3))) * 3
    return [
        rng.normal(size=(3, 4)) * 3,
        (rng.normal(size=(2, 3, 4)) * 3).astype("f4"),
        np.array([2, -1, 3, 0], "i4"),
        rng.integers(0, 5, (3, 3)).astype("u1"),
        rng.random((2, 3)) > 0.5,
        few,
        np.array(1.5),
        np.zeros((0, 3), "i4"),
        np.array([1.0, np.nan, np.inf], "f4"),
        np.zeros((3, 0)),
        np.array(3),
        np.array([1, 2.5, -3], "f2"),
    ]


def _fill(array, value):
    array.fill(value)
    return array


SCOPE = {"np": np, "copy": copy, "fill": _fill}


def _arguments(text):
    """One operand for each text, chosen by the text, and what goes with it."""
    operands = _operands()
    x = operands[zlib.crc32(text.encode()) % len(operands)].copy()  # a call may write to it
    kind = x.dtype.str[1:]
    y = ~x if kind == "b1" else np.asarray((np.abs(x) + 1).astype(OTHER[kind]))
    return {"x": x, "y": y, "m": np.asarray(np.real(x) > 0.5), "k": 3}


def _function(text):
    """A function of the names that an expression uses, and these names; None for no expression."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:  # two alternatives of a template may not fit together
        return None, []
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names = [n for n in ("x", "y", "m", "k") if n in used]
    return eval(f"lambda {', '.join(names)}: {text}", SCOPE), names


def _outcome(f, args):
    try:
        with np.errstate(all="ignore"):
            return f(*args)
    except Exception as error:
        return error


def _builtin(error):
    return next(c for c in type(error).__mro__ if c.__module__ == "builtins")


def _differ(want, got, other=()):
    """How two outcomes differ, "" if they do not."""
    if isinstance(want, Exception) or isinstance(got, Exception):
        same = isinstance(want, Exception) and isinstance(got, (_builtin(want), *other))
        return "" if same else f"{got!r} for {want!r}"
    if isinstance(want, (tuple, list)):
        if type(want) is not type(got) or len(want) != len(got):
            return f"{got!r} for {want!r}"
        return "".join(map(_differ, want, got))
    if not isinstance(want, (np.ndarray, np.generic)):
        same = type(want) is type(got) and (want == got or want != want)
        return "" if same else f"{got!r} for {want!r}"
    if not isinstance(got, (np.ndarray, np.generic)) or (want.ndim and type(want) is not type(got)):
        return f"{type(got)} for {type(want)}"
    if want.dtype != got.dtype or want.shape != got.shape:
        return f"{got.dtype}{got.shape} for {want.dtype}{want.shape}"
    return "" if _close(want, got) else f"{got} for {want}"


def _close(want, got):
    if want.dtype.kind not in "fc":
        return np.array_equal(want, got)
    # Of single precision, as the loop may be where the output is of double precision.
    rough = 4e-3 if want.dtype.char == "e" else 1e-5
    finite = np.abs(want)[np.isfinite(want)]
    return np.allclose(want, got, rough, rough * np.max(finite, initial=0), equal_nan=True)


def _check(text, **options):
    f, names = _function(text)
    if f is None or any(re.fullmatch(pattern, text) for pattern, _ in LEFT):
        return ""
    given = _arguments(text)
    args = [given[n] for n in names]
    want = _outcome(f, [copy.deepcopy(a) for a in args])
    traced = pf.jit(f, **options)
    for _ in range(2 if options else 1):
        got = _outcome(traced, args)
        if isinstance(got, TraceError):
            return ""
        # Where an argument is of a wrong kind, another fault of the call may be told first.
        either = (TypeError, ValueError, IndexError) if WRONG_KIND.search(text) else ()
        found = _differ(want, got, either)
        if found:
            return f"{text} of {args[0] if args else ''!r}: {found}"
    return ""


TABLES = {
    f"{kind}-{name}": templates
    for kind in ("FUNCTIONS", "METHODS", "CREATION", "UFUNCS")
    for name, templates in getattr(table, kind).items()
}


@pytest.mark.sampled(13, each=())
@pytest.mark.parametrize("name", TABLES)
def test_calls_do_what_numpy_does(name):
    found = [d for d in map(_check, table.calls(TABLES[name])) if d]
    assert not found, "\n".join(found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", sorted(TABLES)[::12])
def test_calls_of_compiled_functions(name):
    texts = table.calls(TABLES[name])
    assert not [d for t in texts[:: len(texts) // 2 + 1] if (d := _check(t, background=False))]


def _named(target):
    module = target.__module__.removeprefix("numpy").removeprefix(".")
    return f"{module}.{target.__name__}" if module else target.__name__


def _parameters_in(templates, target, owner):
    """The parameters that calls of a table entry bind."""
    found = set()
    signature = inspect.signature(target)
    for text in table.calls(templates):
        try:
            tree = ast.parse(text, mode="eval")
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == owner:
                keys = {k.arg: 0 for k in node.keywords if k.arg}
                try:
                    bound = signature.bind(*node.args, **keys).arguments
                except TypeError:
                    continue
                found |= set(bound) | set(bound.get("kwargs", ()))
    return found


FOUND = {_named(f): (f, table.FUNCTIONS) for f in FUNCTIONS}
MADE = {name: (getattr(np, name), table.CREATION) for name in CREATION if name not in FOUND}


@pytest.mark.parametrize("name", sorted(FOUND | MADE))
def test_every_parameter_is_in_a_call(name):
    target, entries = (FOUND | MADE)[name]
    wanted = set(inspect.signature(target).parameters) - UNNAMED
    missing = wanted - _parameters_in(entries[name], target, f"np.{name}")
    assert not missing


def test_every_method_and_ufunc_is_in_a_table():
    refused = {"resize", "itemset", "setfield", "byteswap"}
    own = {"detach"}  # of arrays of the tape
    special = {"__array_ufunc__", "__getitem__", "__setitem__"}
    assert METHODS.keys() - refused - special - own <= table.METHODS.keys()
    assert {n for n in UFUNCS | COMPOSED if hasattr(np, n)} <= table.UFUNCS.keys()
    for name in refused & set(dir(np.ndarray)):
        with pytest.raises(TraceError):
            pf.jit(lambda x, name=name: getattr(x, name)(0))(np.ones(3))
