"""What a call does, and whether it does what NumPy does.

Integers, bools and Python numbers are equal. Floats differ by what rounding may cost: the same
program is run with data and functions that are off in the last digits, and with all floats as
float64, and what that moves is how far results may be off. Where it changes what is decided
(comparisons, indices, infinities), the place is left out.
"""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from memory_of_results import memory
from profuse.dialect.errors import TraceError

from .programs import Program, namespace, quiet
from .rounding import EPS, Rounding, with_rounding

_NARROW = re.compile(r"'(?:f2|f4|>f4|bfloat16)'")


NO_ERROR = "does not raise "
# What decides the sign of a zero in NumPy: the order in which it sums and compares.
_SUMS = re.compile(
    r"dot|einsum|@|inner|outer|trace|sum|mean|matmul|var|std|clip|"
    r"[.](?:max|min|maximum|minimum|fmax|fmin)[(]"
)


@dataclass
class Outcome:
    """What one call has done.

    Attributes:
        value: what it returned, as leaves with their places.
        error: what it raised, else None.
        changed: arguments whose contents are others now, by place.
        after: of a program with effects, what arguments and state hold afterwards.
        memory: what results share with each other and with arguments, flags, byte orders.
    """

    value: list[tuple[str, Any]]
    error: BaseException | None
    changed: tuple[str, ...] = ()
    after: list[tuple[str, Any]] = field(default_factory=list)
    memory: dict[Any, str] = field(default_factory=dict)

    @property
    def seen(self) -> list[tuple[str, Any]]:
        """All that a caller can look at."""
        return self.value + self.after


def leaves(value: Any, place: str = "", above: tuple[int, ...] = ()) -> list[tuple[str, Any]]:
    """Numbers and arrays of nested containers, with where they are; ``above``: who holds it."""
    if id(value) in above:
        return [(place, "itself")]
    above = (*above, id(value))
    if isinstance(value, (tuple, list)):
        found = [leaves(v, f"{place}[{k}]", above) for k, v in enumerate(value)]
        return [(place, type(value)), *(leaf for part in found for leaf in part)]
    if isinstance(value, dict):
        found = [leaves(v, f"{place}[{k!r}]", above) for k, v in value.items()]
        return [(place, dict), *(leaf for part in found for leaf in part)]
    if type(value).__name__ in ("State", "Box"):
        return leaves(vars(value), place, above)
    return [(place, value)]


def run(f: Callable[..., Any], call: str, scope: dict[str, Any], effects: bool = False) -> Outcome:
    """Call a function with arguments of its own; ``effects``: look at what it may have written."""
    args, kwargs = eval(call, scope)
    arrays = [(p, v) for p, v in leaves((args, kwargs)) if isinstance(v, np.ndarray)]
    before = [v.tobytes() for _, v in arrays]
    error, value, seen = None, [], {}
    try:
        with quiet():
            result = f(*args, **kwargs)
        seen = memory(result, (args, kwargs))
        # A copy: results may be views of arguments, which NumPy's would be as well.
        value = _kept(result)
        del result
    except Exception as raised:
        error = raised
    changed = tuple(p for (p, v), b in zip(arrays, before, strict=True) if v.tobytes() != b)
    state = {n: v for n, v in scope.items() if n == "S" or (n[0] == "G" and n[1:].isdigit())}
    after = (args, kwargs, state)
    kept = [*_kept(after), *_shared(after)] if effects else []
    return Outcome(value, error, changed, kept, seen)


def _shared(value: Any) -> list[tuple[str, Any]]:
    """Which places hold the same container."""
    places: dict[int, list[str]] = {}
    todo, seen = [("", value)], []
    while todo:
        place, one = todo.pop()
        if type(one).__name__ in ("State", "Box"):
            items = list(vars(one).items())
        elif isinstance(one, dict):
            items = list(one.items())
        elif isinstance(one, (list, tuple)):
            items = list(enumerate(one))
        else:
            continue
        known = places.setdefault(id(one), [])
        known.append(place)
        seen.append(one)
        if len(known) == 1:
            todo += ((f"{place}.{key}", item) for key, item in items)
    groups = [" is ".join(sorted(group)) for group in places.values() if len(group) > 1]
    return [("containers", text) for text in sorted(groups)]


def _kept(value: Any) -> list[tuple[str, Any]]:
    return [(p, v.copy() if isinstance(v, np.ndarray) else v) for p, v in leaves(value)]


def module(source: str | ast.Module, name: str, **others: Any) -> dict[str, Any]:
    """The globals of a program's module, run."""
    scope = namespace() | others
    file = f"<fuzz {name}>"
    if isinstance(source, str):  # it can be read, as that of a user's function can
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    exec(compile(source, file, "exec"), scope)
    return scope


class Reference:
    """What NumPy makes of each call of a program, and how sure that is."""

    def __init__(self, program: Program) -> None:
        self.program, self.source = program, program.source()
        scope = module(self.source, program.name)
        self.outcomes = [run(scope["f"], c, scope, program.effects) for c in program.calls]
        self._others: dict[int, list[Outcome]] = {}
        self._part = "seen"  # of an outcome, which is being compared

    def others(self, call: int) -> list[Outcome]:
        """The same call, off in the last digits, and in float64."""
        if call not in self._others:
            # What calls have left is what the next ones find.
            texts = self.program.calls[0 if self.program.effects else call : call + 1]
            rounded = with_rounding(self.source)
            scopes = [module(rounded, "near", **Rounding(seed).names()) for seed in range(3)]
            wide = _NARROW.sub("'f8'", self.source).replace("np.float32", "np.float64")
            runs = [self._last(scope, texts) for scope in scopes]
            runs.append(self._last(module(wide, "wide"), [_NARROW.sub("'f8'", t) for t in texts]))
            self._others[call] = runs
        return self._others[call]

    def _last(self, scope: dict[str, Any], calls: Sequence[str]) -> Outcome:
        return [run(scope["f"], call, scope, self.program.effects) for call in calls][-1]

    def differs(self, call: int, ours: Outcome, *, of_python: bool = False) -> str:
        """How a call differs from NumPy's: "" = not; "refused: …" = it was not traced.

        ``of_python``: results are to lie in memory as NumPy's do.
        """
        numpy = self.outcomes[call]
        if isinstance(ours.error, TraceError):
            if ours.changed:
                return "a refused call has changed its arguments"
            return f"refused: {general(ours.error.what)}"
        if numpy.error is not None:
            if ours.error is None:
                if any(o.error is None for o in self.others(call)):
                    return ""
                return f"{NO_ERROR}{_told(numpy.error)}"
            wanted = next(c for c in type(numpy.error).__mro__ if c.__module__ == "builtins")
            if not isinstance(ours.error, wanted):
                return f"{_told(ours.error)} for {_told(numpy.error)}"
            self._part = "after"
            found = self._values(call, numpy.after, ours.after)
            return found and f"after an error: {found}"
        if ours.error is not None:
            return f"raises {_told(ours.error)}"
        if set(ours.changed) - set(numpy.changed):
            return "an argument is changed"
        if set(ours.changed) != set(numpy.changed):
            return "an argument is not changed"
        self._part = "seen"
        found = self._values(call, numpy.seen, ours.seen)
        return found or (_memory_differs(numpy.memory, ours.memory) if of_python else "")

    def _values(self, call: int, numpy: list[tuple[str, Any]], ours: list[tuple[str, Any]]) -> str:
        if [p for p, _ in numpy] != [p for p, _ in ours]:
            return "another structure"
        for k, ((place, a), (_, b)) in enumerate(zip(numpy, ours, strict=True)):
            if isinstance(a, type):
                if a is not b:
                    return f"{b.__name__} for {a.__name__}"
                continue
            if type(a) is not type(b):
                return f"{type(b).__name__} for {type(a).__name__} at {place}"
            found = self._leaf(call, k, np.asarray(a), np.asarray(b))
            if found:
                return found
        return ""

    def _leaf(self, call: int, k: int, a: np.ndarray, b: np.ndarray) -> str:
        # Results are native; long and long long are equal, but scalars of them are not alike.
        native = a.dtype.newbyteorder("=")
        if (native != b.dtype or native.char != b.dtype.char) and a.dtype != b.dtype:
            return f"dtype {b.dtype} for {a.dtype}"
        if a.shape != b.shape:
            return f"a shape of {_rank(b)} for {_rank(a)}" if a.ndim != b.ndim else "another shape"
        if not a.size or a.tobytes() == b.tobytes():
            return ""
        if a.dtype.name not in EPS:
            wrong = a != b
            if wrong.any():
                wrong &= self._same_in_others(call, k, a)
            return f"values of {a.dtype}" if wrong.any() else ""
        return self._floats(call, k, a, b)

    def _same_in_others(self, call: int, k: int, a: np.ndarray) -> np.ndarray:
        same = np.ones(a.shape, bool)
        for other in self._at(call, k, a.shape):
            with quiet():
                same &= other == a
        return same

    def _at(self, call: int, k: int, shape: tuple[int, ...]) -> list[np.ndarray]:
        """What other runs have at this place, where they have something like it; else nans."""
        found = []
        for other in self.others(call):
            seen = getattr(other, self._part)
            ended = other.error is None or self._part == "after"
            leaf = seen[k][1] if ended and k < len(seen) else None
            fits = not isinstance(leaf, (type, type(None), str)) and np.shape(leaf) == shape
            found.append(np.asarray(leaf) if fits else np.full(shape, np.nan))
        return found

    def _floats(self, call: int, k: int, a: np.ndarray, b: np.ndarray) -> str:
        eps, dtype = EPS[a.dtype.name], a.dtype
        a, b = a.astype("f8"), b.astype("f8")
        with quiet():
            finite = np.isfinite(a) & np.isfinite(b)
            kind = ~finite & ~((np.isnan(a) & np.isnan(b)) | (a == b))
            scale = np.abs(a[np.isfinite(a)]).max(initial=0.0)
            off = np.where(finite, np.abs(a - b), 0)
            tiny = np.finfo("f8").tiny if dtype.name == "float64" else 2.0**-24 * 2
            tiny = 2.0**-126 if dtype.name in ("float32", "bfloat16") else tiny
            off = off > 8 * eps * np.abs(a) + 2 * eps * min(scale, 1e30) + tiny
            zero = (a == 0) & (b == 0) & (np.signbit(a) != np.signbit(b))
            if not (kind.any() or off.any() or zero.any()):
                return ""
            lost = np.zeros(a.shape)
            sure, firm = np.ones(a.shape, bool), np.ones(a.shape, bool)
            for other in self._at(call, k, a.shape):
                other = other.astype("f8")
                alike = (np.isnan(other) & np.isnan(a)) | (np.isinf(a) & (other == a))
                sure &= np.isfinite(a) & np.isfinite(other) | alike
                firm &= (other == 0) & (np.signbit(other) == np.signbit(a))
                lost = np.maximum(lost, np.nan_to_num(np.abs(other - a), nan=np.inf))
            if (kind & sure).any():
                return f"nan or infinity in {dtype}"
            # The rounding of one place is a matter of luck; that of all places is not.
            all_lost = np.max(lost[np.isfinite(lost)], initial=0.0)
            wrong = off & sure & finite
            wrong &= np.abs(a - b) > 32 * lost + 4 * all_lost + 32 * eps * np.abs(a) + tiny
            if wrong.any():
                return f"values of {dtype}"
            if (zero & firm).any() and not _SUMS.search(self.source):
                return f"sign of zero in {dtype}"
        return ""


def _memory_differs(numpy: dict[Any, str], ours: dict[Any, str]) -> str:
    """What a program can see of other memory than NumPy gives it."""
    for place in {**numpy, **ours}:
        a, b = numpy.get(place, "apart"), ours.get(place, "apart")
        if a == b:
            continue
        if isinstance(place, tuple):
            return f"memory: results that are {b}, not {a}"
        words, wanted = set(b.split()), set(a.split())
        return f"memory: {' '.join(sorted(words - wanted))} for {' '.join(sorted(wanted - words))}"
    return ""


def general(text: str) -> str:
    """A message without what differs from program to program."""
    text = re.sub(r"<fuzz[^>]*>(:\d+)*", "", text.split("\n")[0])
    text = re.sub(r"\b[vGxyzkpds]\d*\b", "_", text)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]\d+)?", "0", text)[:150].strip()


def _told(error: BaseException) -> str:
    said = getattr(error, "what", None) or str(error)
    return f"{type(error).__name__}: {general(said)}"


def _rank(a: np.ndarray) -> str:
    return f"rank {a.ndim}"
