"""The treatment of each function of NumPy in a graph: ``docs/numpy.md``, made from the registries.

``--write`` makes the page anew; without it the page is compared with what would be written. Exit
status 1 = it is not current.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..dialect.importers.numpy.capture import tracer as _tables  # noqa: F401 - fills the tables
from ..dialect.importers.numpy.tracing.handler_tables import COMPOSED, CREATION, FUNCTIONS, METHODS, UFUNCS, load_all
from ..dialect.ir.gradients import rule_of
from ..dialect.ir.op import op_named
from ..dialect.ops.host.host_gradients import gradient_of
from ..dialect.ops.host.rule import name_of_function, rule_named, rules

_PAGE = Path("docs/numpy.md")
NATIVE, HOST, PYTHON = "native", "host call", "Python"
_PREFACE = f"""# Functions of NumPy

Made by `python -m profuse.tools.numpy_table --write` from the tables that the importer and the op
`host_call` read, with NumPy {np.__version__.rpartition(".")[0]}. What a function becomes:

* *native*: ops, which are fused, if their dtypes can be. They have the gradients of those ops.
* *host call*: the library's own function on the real arrays,
  [between kernels](graphs-and-passes.md#functions-of-libraries-host_call).
* *Python*: no graph holds it. The calls of a function that uses it run as without `pf.jit`, or
  raise TraceError ([Writing functions](writing-functions.md)).

Of the methods of ufuncs, `outer` becomes what the ufunc does; `at` is native for `add`, `subtract`,
`multiply`, `maximum` and `minimum`; `reduce` is so for those that are reductions, such as `add` and
`logical_or`, `accumulate` for `add` and `multiply`. Others and `reduceat` are host calls.

The ufuncs of `scipy.special` are host calls, but for those that are ops; those of the gamma function,
of errors, entropies and Bessel's of order 0 and 1 have gradients. Functions that are given no arrays
(`np.hanning`, `np.finfo`) run while a function is traced and are not listed.

| function | in a graph | gradient |
|---|---|---|
"""


def status(function: Any, name: str) -> tuple[str, str]:
    """The treatment of a function, and a word on its gradient.

    ``name``: by which creation functions are known.
    """
    if isinstance(function, np.ufunc):
        op = UFUNCS.get(function.__name__)
        if op is not None:
            return NATIVE, "-" if rule_of(op_named(op)) == "no_gradient" else "yes"
        if function.__name__ in COMPOSED:
            return NATIVE, "of its ops"
    elif _is_known(function) or (getattr(np, name, None) is function and name in CREATION):
        return NATIVE, "of its ops"
    host = name_of_function(function)
    return (PYTHON, "-") if host is None else (HOST, _of_host(host))


def _is_known(function: Any) -> bool:
    try:
        return function in FUNCTIONS
    except TypeError:
        return False  # unhashable: no function


def _of_host(name: str) -> str:
    return "no" if gradient_of(rule_named(name)) is None else "yes"


def method_status(name: str) -> tuple[str, str]:
    """The treatment of an ndarray method, and a word on its gradient."""
    handler = METHODS.get(name)
    if handler is None or handler.__name__ == "_mutating":
        return PYTHON, "-"
    host = f"numpy.{name}"
    if host in rules() and getattr(np, name) not in FUNCTIONS:
        return HOST, _of_host(host)
    return NATIVE, "of its ops"


def functions() -> Iterator[tuple[str, Any, str]]:
    """Public functions of arrays as users write them, with the function and its last name."""
    name = "sliding_window_view"
    yield f"np.lib.stride_tricks.{name}", getattr(np.lib.stride_tricks, name), name
    for prefix, module in (("np", np), ("np.linalg", np.linalg), ("np.fft", np.fft)):
        for name in sorted(dir(module)):
            function = getattr(module, name)
            if not name.startswith("_") and _is_of_arrays(function, name):
                yield f"{prefix}.{name}", function, name


def _is_of_arrays(function: Any, name: str) -> bool:
    if isinstance(function, type) or not callable(function):
        return False
    dispatches = isinstance(function, np.ufunc) or hasattr(function, "_implementation")
    return dispatches or (name in CREATION and getattr(np, name) is function)


def methods() -> Iterator[str]:
    """Public methods of ndarray."""
    for name in sorted(dir(np.ndarray)):
        if not name.startswith("_") and callable(getattr(np.ndarray, name)):
            yield name


def page_text() -> str:
    """The page for the NumPy that is installed."""
    load_all()
    rows = [f"| `{shown}` | {' | '.join(status(function, name))} |" for shown, function, name in functions()]
    rows += [f"| `ndarray.{name}` | {' | '.join(method_status(name))} |" for name in methods()]
    rows.append(f"| `x[mask]` | {HOST} | {_of_host('numpy.ndarray.__getitem__')} |")
    return _PREFACE + "\n".join(rows) + "\n"


def counted(count: Callable[[str], int]) -> str:
    """The number of functions of each kind."""
    return ", ".join(f"{count(kind)} {kind}" for kind in (NATIVE, HOST, PYTHON))


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; returns the exit status."""
    parser = argparse.ArgumentParser(description="check or write docs/numpy.md")
    parser.add_argument("--write", action="store_true", help="make the page anew")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1])
    options = parser.parse_args(arguments)
    page, text = options.root / _PAGE, page_text()
    if options.write:
        page.write_text(text, "utf-8")
    print(counted(lambda kind: text.count(f" | {kind} | ")))
    if not page.exists() or page.read_text("utf-8") != text:
        print(f"{page} is not current: make it with --write", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
