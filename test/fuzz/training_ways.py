"""Ways to run a training program, and what differs between them; printed scripts hold it, too."""

from __future__ import annotations

import contextlib
import re
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import profuse as pf
from profuse.executor.tape import plans

STEPS = 12
MIDDLE = 5  # until then captures and compiles in the background take their time


class Way:
    """How functions are called and backward runs are made; this one is the plain tape."""

    def __init__(
        self,
        jit: dict[str, Any] | None = None,
        captured: dict[str, Any] | None = None,
        background: bool = False,
        recorded: bool = True,
    ) -> None:
        self.options, self.captured, self.background = jit, captured, background
        self.recorded = recorded
        self.jitted: list[Any] = []
        self.errors: list[str] = []

    def jit(self, f: Callable[..., Any]) -> Callable[..., Any]:
        if self.options is None:
            return f
        self.jitted.append(pf.jit(f, **self.options))
        return self.jitted[-1]

    def scope(self) -> contextlib.AbstractContextManager[Any]:
        if self.captured is None:
            return contextlib.nullcontext()
        return pf.compiled_autograd(**self.captured)

    def backward(self, y: Any, **options: Any) -> None:
        with self.scope():
            y.backward(**options)

    def gradients(self, y: Any, leaves: Any) -> Any:
        with self.scope():
            return pf.gradients(y, [p for p in leaves if p.requires_grad], allow_unused=True)

    def note(self, error: Exception) -> None:
        self.errors.append(f"{type(error).__name__}: {error}")

    def steps(self, program: Callable[[Way], Any]) -> list[Any]:
        """What each step of a program shows."""
        plans.forget()
        pf.compiled_autograd.reset()
        often, plans.OFTEN = plans.OFTEN, plans.OFTEN if self.recorded else 10**9
        seen = []
        try:
            with pf.knobs.override(background=self.background), np.errstate(all="ignore"):
                step = program(self)
                for k in range(STEPS):
                    if self.background and k >= MIDDLE:
                        pf.compiled_autograd.wait(60)
                        for f in self.jitted:
                            f.wait(60)
                    seen.append(step(k))
        finally:
            plans.OFTEN = often
        return seen


def interpreted(made: Any) -> Any:
    return made.interpret


def first() -> Way:
    """Each step as if it were the first one: no rule is recorded."""
    return Way(recorded=False)


WAYS: dict[str, Callable[[], Way]] = {
    "tape": Way,
    "interpreted": lambda: Way(captured={"compiler": interpreted}),
    "dynamic": lambda: Way(captured={"compiler": interpreted, "dynamic": True}),
    "traced": lambda: Way(jit={"profiled_runs": 10**6}),
    "jitted": lambda: Way(jit={}),
    "jitted in the background": lambda: Way(jit={}, background=True),
    "captured": lambda: Way(captured={}),
    "captured in the background": lambda: Way(captured={}, background=True),
    "jitted and captured": lambda: Way(jit={}, captured={}),
}


def loaded(text: str, file: str) -> dict[str, Any]:
    """What the module of a program defines."""
    space: dict[str, Any] = {"__name__": "training"}
    exec(compile(text, file, "exec"), space)
    return space


def difference(wanted: Any, found: Any, scale: float) -> str:
    """How one value differs from another, or an empty text."""
    if not isinstance(wanted, tuple) or not isinstance(found, tuple):
        if isinstance(wanted, float) and isinstance(found, float):
            return "" if np.isclose(wanted, found, rtol=scale) else f"{wanted} became {found}"
        same = type(wanted) is type(found) and wanted == found
        return "" if same else f"{wanted} became {found}"
    for what, a, b in zip(("requires_grad", "dtype", "shape"), wanted, found, strict=False):
        if a != b:
            return f"{what} {a} became {b}"
    a, b = wanted[3], found[3]
    bound = scale * max(1.0, float(np.max(np.abs(a), initial=0, where=np.isfinite(a))))
    if np.allclose(a, b, rtol=scale, atol=bound, equal_nan=True):
        return ""
    return f"{np.array2string(a)} became {np.array2string(b)}"


def first_difference(
    wanted: list[Any], found: list[Any], scale: float, *, has_zeros: bool = False, may_raise: bool = False
) -> str:
    """Where and how steps differ from those that are wanted.

    ``has_zeros``: what has no gradient on the tape may have zeros (R2.27), and a graph may not need
    what the tape keeps and raises for if it was written to; the steps behind are others then.
    ``may_raise``: the graph keeps what the tape need not keep, and that was written to.
    """
    for k, (a, b) in enumerate(zip(wanted, found, strict=True)):
        if any(isinstance(v, tuple) and not np.all(np.abs(v[3]) < 1e6) for v in a):
            return ""  # what has left the usual numbers says no more
        raised = [[v for v in seen if _is_error(v)] for seen in (a, b)]
        if has_zeros and "raises GradientError" in raised[0] and not raised[1]:
            return ""
        if may_raise and not raised[0] and raised[1] == ["raises GradientError"]:
            return ""
        if len(raised[0]) != len(raised[1]) or len(a) != len(b):
            return f"step {k}: {raised[0] or 'values'} became {raised[1] or 'values'}"
        for n, (one, other) in enumerate(zip(a, b, strict=True)):
            if _is_error(one) and _is_error(other):
                continue  # NumPy's for what is read-only, or the tape's for what was written to
            if has_zeros and one is None and isinstance(other, tuple) and not np.any(other[3]):
                return ""
            what = difference(one, other, scale * (k + 1))
            if what:
                return f"step {k}, value {n}: {what}"
    return ""


def _is_error(value: Any) -> bool:
    return type(value) is str and "raises" in value


def checked(space: types.SimpleNamespace, way: str) -> str:
    """How the steps of a way differ from first steps of the tape."""
    plain, other = first(), WAYS[way]()
    wanted, found = plain.steps(space.program), other.steps(space.program)
    scale = 1e-3 if space.DTYPE is np.float32 else 1e-6
    is_jitted = other.options is not None
    is_written = bool(other.errors) and all("was written to afterwards" in error for error in other.errors)
    what = first_difference(wanted, found, scale, has_zeros=is_jitted, may_raise=is_jitted and is_written)
    if what and _is_chaotic(space, wanted, scale, what):
        return ""
    if what:
        what += "".join(f"\n  tape: {e}" for e in plain.errors[:2])
        what += "".join(f"\n  {way}: {e}" for e in other.errors[:2])
    return what


def _is_chaotic(space: types.SimpleNamespace, wanted: list[Any], scale: float, what: str) -> bool:
    """True if the tape ends elsewhere as well, no later, from values that differ in their last bits."""
    names, values = space.program.__globals__, space.values
    names["values"] = lambda: [np.asarray(x * (1 + 2 * np.finfo(x.dtype).eps), x.dtype) for x in values()]
    try:
        own = first_difference(wanted, first().steps(space.program), scale)
    finally:
        names["values"] = values
    steps = [int(re.match(r"step (\d+), value", text)[1]) for text in (own, what) if re.match(r"step \d+, value", text)]
    return len(steps) == 2 and steps[0] <= steps[1] + 1


def numbers_differ(space: types.SimpleNamespace) -> str:
    """How gradients of the first step differ from differences of its loss.

    ``pf.grad`` has them, too. What is not smooth here is left out: where differences of two widths
    are not the same.
    """

    X = space.data(0)

    def loss(*leaves: Any) -> Any:
        return space.forward(space.body, X, *leaves, [])[0]

    leaves = [np.asarray(x) for x in space.values()]
    tracked = [pf.array(x, requires_grad=True) for x in leaves]
    try:
        found = pf.gradients(loss(*tracked), tracked, allow_unused=True)
    except Exception:
        return ""  # it is an error in all ways, see `checked`
    for k, (x, g) in enumerate(zip(leaves, found, strict=True)):
        for i in np.ndindex(x.shape):
            slopes = []
            for width in (1e-5, -3e-6, 2e-7):
                moved = [y.copy() for y in leaves]
                moved[k][i] += width
                back = [y.copy() for y in leaves]
                back[k][i] -= 0.3 * width
                slopes.append((float(loss(*moved)) - float(loss(*back))) / (1.3 * width))
            if np.ptp(slopes) > 1e-4 * (1 + abs(slopes[0])):
                continue
            own = 0.0 if g is None else float(g[i])
            if abs(own - slopes[0]) > 1e-3 * (1 + abs(own)):
                return f"leaf {k} {i}: gradient {own}, differences {slopes}"
    return ""


def grad_differs(space: types.SimpleNamespace) -> str | None:
    """How ``pf.grad`` of the first loss differs from the tape; None where it refuses."""

    X = space.data(0)

    def loss(*leaves: Any) -> Any:
        return space.forward(space.body, X, *leaves, [])[0]

    leaves = space.values()
    tracked = [pf.array(x, requires_grad=True) for x in leaves]
    try:
        y = loss(*tracked)
        wanted = pf.gradients(y, tracked, allow_unused=True)
        found = pf.grad(loss, wrt=(0, 1, 2))(*leaves)
    except Exception:
        return None
    scale = 1e-3 if space.DTYPE is np.float32 else 1e-6
    for k, (a, b) in enumerate(zip(wanted, found, strict=True)):
        a = np.zeros_like(leaves[k]) if a is None else np.asarray(a)
        if not np.all(np.isfinite(a)):
            continue
        bound = scale * max(1.0, float(np.max(np.abs(a), initial=0)))
        if np.shape(b) != a.shape or not np.allclose(a, b, rtol=scale, atol=bound):
            return f"leaf {k}: {a} became {b}"
    return ""
