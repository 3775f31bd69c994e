"""NumPy's functions of numbers: Python's ints, floats and bools where arrays are meant.

NumPy makes arrays of them first, most of the time; each function has its own way. Every function
that can be traced is called in every form below: where NumPy has a result, the traced function has
the same, of the same type, or refuses.
"""

import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import profuse as pf
import pytest
from profuse.dialect.importers.numpy.capture import tracer  # noqa: F401 - registers all functions
from profuse.dialect.importers.numpy.tracing.handler_tables import COMPOSED, CREATION, FUNCTIONS, UFUNCS

NUMBERS = {
    "int": 3,
    "float": 2.5,
    "bool": True,
    "no axes": np.array(2.0, "f4"),
    "int16": np.int16(2),
    "bool_": np.True_,
}
X, INDEX = np.array([0.5, 1.0, 2.0], "f4"), np.array([0, 1, 2])
SIZES: dict[str, Callable] = {
    "f(n)": lambda f: lambda k, x, i: f(len(x)),
    "f(n / 7, 1)": lambda f: lambda k, x, i: f(len(x) / 7, 1),
    "f(n, n)": lambda f: lambda k, x, i: f(len(x), i.size),
    "f(n, 1, 4)": lambda f: lambda k, x, i: f(len(x), 1, 4),
}  # of numbers that a function computes from sizes
FORMS: dict[str, Callable] = {
    "f(k)": lambda f: lambda k, x, i: f(k),
    "f(k, k)": lambda f: lambda k, x, i: f(k, k),
    "f(k, 0)": lambda f: lambda k, x, i: f(k, 0),
    "f(k, 2)": lambda f: lambda k, x, i: f(k, 2),
    "f(k, 1, 3)": lambda f: lambda k, x, i: f(k, 1, 3),
    "f(k, k, k)": lambda f: lambda k, x, i: f(k, k, k),
    "f(x, k)": lambda f: lambda k, x, i: f(x, k),
    "f(k, x)": lambda f: lambda k, x, i: f(k, x),
    "f(i, k)": lambda f: lambda k, x, i: f(i, k),
    "f([k, k])": lambda f: lambda k, x, i: f([k, k]),
    "f([k, k], 0)": lambda f: lambda k, x, i: f([k, k], 0),
    "f(k + k)": lambda f: lambda k, x, i: f(k + k),
    **SIZES,
}


def _functions() -> dict[str, Callable]:
    homes = {"numpy": "", "numpy.linalg": "linalg."}
    found = {homes[f.__module__] + f.__name__: f for f in FUNCTIONS if getattr(f, "__module__", None) in homes}
    names = [*CREATION, *UFUNCS, *COMPOSED]
    found |= {name: getattr(np, name) for name in names if hasattr(np, name)}
    # Contents that nobody may rely on; and what it is that shares memory, NumPy's own scalars do
    # not even with themselves.
    for name in ("empty", "empty_like", "may_share_memory", "shares_memory"):
        del found[name]
    return found


# Where NumPy takes what hardly anybody gives, and a clear error comes instead.
OTHERS = {
    ("array_split", "f(x, k)", "no axes"),
    ("array_split", "f(i, k)", "no axes"),
    *(("tri", form, "bool_") for form in FORMS),
}


def _outcome(f: Callable, *args: Any) -> Any:
    try:
        return f(*args)
    except Exception as error:
        return error


def _is_same(want: Any, got: Any) -> bool:
    if isinstance(want, (tuple, list)):
        return type(got) is type(want) and len(want) == len(got) and all(map(_is_same, want, got))
    if isinstance(want, (np.ndarray, np.generic)):
        # Results of no axes are NumPy scalars (README).
        if not isinstance(got, (np.ndarray, np.generic)) or want.dtype.char != got.dtype.char:
            return False
        close = {"rtol": 1e-3 if want.dtype == np.float16 else 1e-6, "equal_nan": True}
        return want.shape == got.shape and np.allclose(want, got, **close)
    return type(want) is type(got) and (want == got or want != want)


def _of_objects(value: Any) -> bool:
    several = value if isinstance(value, (tuple, list)) else (value,)
    return any(getattr(v, "dtype", None) == np.dtype(object) for v in several)


def _wanted(f: Callable, form: str, number: Any) -> Any:
    """What NumPy makes of it; None for an error, and for arrays of objects."""
    number = np.copy(number) if isinstance(number, np.ndarray) else number
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = _outcome(FORMS[form](f), number, X, INDEX)
    return None if isinstance(want, Exception) or _of_objects(want) else want


FOUND = {
    name: f
    for name, f in _functions().items()
    if any(_wanted(f, form, k) is not None for form in FORMS for k in NUMBERS.values())
}


@pytest.mark.sampled(11, each=())
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", sorted(FOUND))
def test_numbers_where_arrays_are_meant(name):
    f, wrong = FOUND[name], []
    for form, make in FORMS.items():
        for kind, number in NUMBERS.items():
            want = _wanted(f, form, number)
            if want is None or (form in SIZES and kind != "int"):
                continue
            # Called once, on tier 0, which is what the trace means.
            got = _outcome(pf.jit(make(f), background=False), number, X, INDEX)
            if isinstance(got, pf.TraceError):
                continue
            if (name, form, kind) in OTHERS:
                assert isinstance(got, (pf.ProfuseError, TypeError, int)), (form, kind, got)
            elif not _is_same(want, got):
                wrong.append(f"{form} of {kind}: {want!r}, here {got!r}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["f(x, k)"])
def test_numbers_where_arrays_are_meant_compile(form):
    """A Python float stays a number in types: what has no lowering of one has to be refused."""
    wrong = []
    for name, f in FOUND.items():
        want = _wanted(f, form, 2.5)
        compiled = pf.jit(FORMS[form](f), background=False, strategy=[("static", 1)])
        got = [_outcome(compiled, 2.5, X, INDEX) for _ in range(2)][-1]
        if want is None or isinstance(got, pf.TraceError):
            continue
        errors = [r for r in compiled.state().reasons if "error of the compiler" in r]
        if errors or not _is_same(want, got):
            wrong.append(f"{name}: {want!r}, here {got!r} {errors}")
    assert not wrong, "\n".join(wrong)


def test_every_parameter_that_numpy_requires_has_a_handler():
    for target, handler in FUNCTIONS.items():
        bound = inspect.getclosurevars(handler).nonlocals if inspect.isfunction(handler) else {}
        if "handler" in bound:
            accepted = inspect.signature(bound["handler"]).parameters
            needed = inspect.signature(target).parameters.values()
            required = {p.name for p in needed if p.default is p.empty and p.kind != p.VAR_KEYWORD}
            assert required <= {*accepted}, target


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: x * np.prod(x.shape),  # an np.int64 makes float64 of float32
        lambda x: x.sum() / np.sum(x.shape),
        lambda x: (np.prod(x.shape[1:]), np.sum([*x.shape, 1])),
        lambda x: x.sum() + np.prod(x.shape) / 0,
        lambda x: x.reshape(np.prod(x.shape[:1]), -1) + np.zeros(np.prod(x.shape[1:]), "f4"),
        lambda x: np.arange(np.prod(x.shape)) + np.linspace(0, 1, np.prod(x.shape)),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_sums_of_sizes_are_numbers_of_numpy_and_sizes(fn):
    jitted = pf.jit(fn, background=False)
    for shape in ((2, 3, 4), (2, 3, 4), (2, 4, 6), (3, 3, 2)):
        x = np.ones(shape, "f4")
        assert _is_same(fn(x), jitted(x))
    assert jitted.state().counters["traces"] == 1


@pytest.mark.parametrize("f", [np.sum, np.prod])
@pytest.mark.parametrize("numbers", [(2, 3), (2**62, 2**62), (-(2**63), -1), (2**63, 1), (2**64, 1)])
def test_sums_of_numbers_have_the_types_of_numpy(f, numbers):
    with pf.knobs.override(unsupported="python"):
        jitted = pf.jit(lambda *values: f(values), background=False)
        for _ in range(3):
            got = jitted(*numbers)
            assert type(got) is type(f(numbers)) and got == f(numbers)
