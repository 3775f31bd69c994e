"""Every environment variable and process-wide setting, typed, in one table.

A knob is read from ``PROFUSE_<NAME>`` on first access, can be assigned afterwards, and refuses
values outside its domain with KnobError. ``knobs.override(name=value)`` scopes a change.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...dialect.dataclass import dataclass
from ...dialect.errors import KnobError
from ...dialect.ir.gradient_mode import LOOP_BYTES
from .fork_lock import hold_over_forks
from .stress import Stress, parse_stress

WAYS = ("python", "raise")
"""The ways to treat calls that no graph can hold."""
_CHECKS = ("off", "sampled", "all")  # which inputs a new kernel is compared on
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off", ""}


def _bool(text: str) -> bool:
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise ValueError("expected one of 1/0, true/false, yes/no, on/off")


_COUNT = 2**31 - 1  # the largest count, also of seconds (68 years)
_BYTES = 2**61  # the most bytes or nanoseconds: several times as many still fit 64 bits


def _whole(least: int, most: int = _COUNT) -> Callable[[str], int]:
    """Parser of whole numbers in a range."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise ValueError(f"expected a whole number from {least} to {most}")
        return value

    return parse


_natural, _positive, _large = _whole(0), _whole(1), _whole(0, _BYTES)


def _text(text: str) -> str:
    """Parser of folder names and similar text: no system accepts a name with a zero byte."""
    if "\0" in text:
        raise ValueError("expected a text without zero bytes")
    return text


def shown(value: Any) -> str:
    """The text of a value in a message; a long text is cut."""
    try:
        text = repr(value)
    except ValueError:
        text = "a number of thousands of digits"  # Python refuses to write such long integers out
    return text if len(text) <= 80 else f"{text[:77]}..."


def _path(text: str) -> str:
    """Parser of paths: absolute from the start, since a program may change its working folder."""
    return os.path.abspath(_text(text)) if text else ""


def _log(text: str) -> str:
    if text.lower() in _FALSE:
        return ""
    return "stderr" if text.lower() in {*_TRUE, "stderr"} else _path(text)


LEVELS = ("debug", "info", "warning")
"""Levels of events, in order of weight."""


def _level(text: str) -> str:
    if text.lower() not in LEVELS:
        raise ValueError(f"expected one of {', '.join(LEVELS)}")
    return text.lower()


def _unsupported(text: str) -> str:
    if text.lower() not in WAYS:
        raise ValueError(f"expected one of {', '.join(WAYS)}")
    return text.lower()


def _device_fusion(text: str) -> str:
    if text.lower() in ("auto", "host"):
        return text.lower()
    try:
        return "on" if _bool(text) else "off"
    except ValueError:
        raise ValueError("expected one of auto, on, off, host") from None


def _vector_width(text: str) -> str:
    if text.lower() not in ("auto", "256", "512"):
        raise ValueError("expected one of auto, 256, 512")
    return text.lower()


def _mode(text: str) -> str:
    if text.lower() in _CHECKS:
        return text.lower()
    try:
        return "sampled" if _bool(text) else "off"
    except ValueError:
        raise ValueError(f"expected one of {', '.join(_CHECKS)}") from None


_MOST_SLOWER = 1e6
_SLOWER = 1.25  # how many times slower a kernel has to be before it is demoted; noise is less


def _factor(text: str) -> float:
    """Parser of a factor above 1, or 0.0 for off."""
    try:
        return _SLOWER if _bool(text) else 0.0
    except ValueError:
        pass
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if value != 0.0 and not 1.0 < value <= _MOST_SLOWER:
        raise ValueError(f"expected on, off, or a number above 1, up to {_MOST_SLOWER:g}")
    return value


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise ValueError("expected a number from 0 to 1")
    return value


@dataclass(frozen=True)
class Knob:
    """One setting: its parser, default and one line of help."""

    parse: Callable[[str], Any]
    default: Any
    help: str


KNOBS: dict[str, Knob] = {
    "executor_mode": Knob(_bool, True, "graphs made from now on profile and specialise (R1.2)"),
    "profiling_mode": Knob(_bool, True, "specialise by profile; off = by dtype and rank (R2.1)"),
    "optimize": Knob(_bool, True, "graph optimisation as a whole"),
    "disable": Knob(_bool, False, "jitted functions call the Python functions they were made of"),
    "debugger": Knob(_bool, True, "calls are Python's while a debugger is at work; off = never"),
    "disable_warning_prints": Knob(_bool, False, "pf.warn puts nothing into graphs (R1.1)"),
    "profiled_runs": Knob(_natural, 1, "runs recorded before a graph is specialised (R1.1)"),
    # R1.1 demands this knob, and that nothing reads it: the depth is the strategy's total.
    "bailout_depth": Knob(_natural, 20, "has no effect: the strategy alone gives the depth"),
    "release_profiling_graph": Knob(_bool, False, "drop profiles and original graphs once optimised (R1.13)"),
    "release_delay_seconds": Knob(_natural, 60, "how long after optimising they are kept"),
    "static_then_dynamic": Knob(_bool, False, "default strategy [(STATIC,2),(DYNAMIC,10)] (R1.3)"),
    "always_dynamic": Knob(_bool, False, "default strategy [(DYNAMIC,12)] (R1.3)"),
    "fusion_strategy": Knob(_text, "", "default strategy, such as static:2,dynamic:10; always_dynamic goes before it"),
    "general_fuser": Knob(_bool, True, "form fusion groups (R1.9); off = optimise without any"),
    "min_fusion_size": Knob(_positive, 1, "fewest ops in a fusion group"),
    "max_fusion_values": Knob(_positive, 128, "most operands plus results of a group (R1.48)"),
    "exact": Knob(_bool, False, "kernels compute what NumPy does to the last bit; less is fused"),
    "max_fusion_ops": Knob(_positive, 128, "most ops in a group: LLVM's time grows faster"),
    "device_fusion": Knob(
        _device_fusion,
        "auto",
        "fuser of device groups: on, off, host = for ops of the host as well; auto = if there is a CUDA device (R3.2)",
    ),
    "device_fusion_off": Knob(_bool, False, "switch that fuser off, whatever else says that it is on (R3.2)"),
    "device_fusion_single": Knob(_bool, False, "its groups may be of one op (R3.3)"),
    "device_fusion_horizontal": Knob(_bool, True, "it fuses what reads the same arrays, too (R3.3)"),
    "device_fallback": Knob(_bool, True, "groups of it whose kernel fails are interpreted; off = it raises (R3.50)"),
    "verify_each": Knob(_bool, False, "verify the IR after every pass"),
    "repro_dir": Knob(_text, "", "where a failing pipeline writes its input (default: temp dir)"),
    "cache": Knob(_bool, True, "keep profiles and compiled code on disk, for later processes"),
    "cache_dir": Knob(_text, "", "where (default: profuse in the user's cache folder)"),
    "cache_bytes": Knob(_whole(0, _BYTES), 1 << 30, "room there; what was not used for longest goes first"),
    "check": Knob(_mode, "sampled", "kernels are compared with NumPy before they serve: off, sampled, all"),
    "check_ms": Knob(_positive, 20, "milliseconds that check=sampled takes per kernel, or about twice"),
    "check_bytes": Knob(_whole(1, _BYTES), 64 << 20, "most memory that a kernel's check takes"),
    "activation_budget": Knob(
        _share, 1.0, "share of what is kept for gradients that may be; less is more computed again"
    ),
    "loop_bytes": Knob(
        _large,
        LOOP_BYTES,
        "bytes up to which a gradient keeps all rounds of a loop, times the activation_budget; beyond, every k-th one",
    ),
    "demote": Knob(
        _factor,
        _SLOWER,
        "kernels so many times slower than NumPy are not used, nor plans slower than Python; off = all are",
    ),
    "dump": Knob(_text, "", "where graphs go at each tier and pass: stderr, or a folder (R1.49)"),
    "log": Knob(_log, "", "events as lines: stderr or 1 = text there, a path = JSON lines"),
    "log_level": Knob(_level, "info", "least weight of what is logged: debug, info, warning"),
    "trace": Knob(_path, "", "where a trace for Perfetto goes when the process ends"),
    "trace_calls": Knob(_positive, 200_000, "calls kept in a trace; later ones are counted"),
    # One by default: a second OpenBLAS pool beside NumPy's own fights it for the cores, and calls
    # that alternate between the two then take tens of milliseconds.
    "library_threads": Knob(_whole(1, 1024), 1, "threads of library products inside kernels"),
    "threads": Knob(_whole(0, 1024), 0, "threads that share a kernel's loops and products; 0 = one per core"),
    "vector_width": Knob(
        _vector_width,
        "auto",
        "bits of vectors on CPUs with AVX-512: 256, 512; auto = by the CPU. Loops of at most 256 iterations take 256",
    ),
    "output_pool_bytes": Knob(_whole(0, _BYTES), 256 << 20, "memory of dead results kept for new ones"),
    "arena_bytes": Knob(_whole(0, _BYTES), 64 << 20, "memory per thread kept for arrays between kernels"),
    "stress": Knob(parse_stress, Stress(), "guards[:k=5,seed=0] = fail one guard in k on purpose (tests)"),
    "time_every": Knob(_positive, 64, "groups are timed at one guard hit in so many"),
    "background": Knob(_bool, True, "compile in workers while calls go on; off = calls wait"),
    "workers": Knob(_whole(0, 1024), 0, "processes that compile; 0 = one, but this one for calls that wait"),
    "worker_queue": Knob(_positive, 64, "compiles that may wait for a worker"),
    "worker_timeout": Knob(_positive, 60, "seconds after which a compile counts as hanging"),
    # The least value is above what a worker needs to start: with less, every worker would be ended.
    "worker_memory": Knob(_whole(1 << 28, _BYTES), 4 << 30, "bytes of memory at which a worker is ended"),
    "worker_nice": Knob(_whole(0, 19), 10, "nice value of workers, once they have started"),
    "worker_idle": Knob(_positive, 300, "seconds after which an idle worker is ended"),
    "native_dispatch": Knob(_bool, True, "guard and call kernels in emitted code where possible"),
    "release_gil_ns": Knob(_whole(0, _BYTES), 10_000, "kernels that take as long run with the GIL released"),
    "unsupported": Knob(_unsupported, "python", "what no graph can hold runs in Python, or raises TraceError: raise"),
    "trace_ops": Knob(
        _positive, 10_000, "most ops of a graph; functions with more run in Python, unless unsupported=raise"
    ),
    "neural_ops": Knob(
        _bool, False, "functions of pf.nn are recorded as ops of neural networks, not as what they are composed of"
    ),
    "source_loops": Knob(_bool, True, "Python's loops stay loops in graphs; off = each round is recorded"),
    "unroll_rounds": Knob(_natural, 16, "rounds up to which a loop with bounds of Python's is recorded round by round"),
    "max_traces": Knob(_positive, 128, "traces kept per function; older ones are dropped"),
    "cuda_graphs": Knob(_natural, 64, "sequences of GPU launches kept as CUDA graphs; 0 = none"),
    "event_ring": Knob(_positive, 4096, "events kept in memory"),
}

PREFIX = "PROFUSE_"
"""The prefix of the names of our environment variables."""

_NO_KNOBS = {"PROFUSE_WORKER_FAULT"}  # read by `compile.worker.faults`


def unknown_variables() -> list[str]:
    """Names of environment variables that begin with `PREFIX`, but are no setting."""
    names = {_variable(name) for name in KNOBS} | _NO_KNOBS
    return sorted(v for v in os.environ if v.startswith(PREFIX) and v not in names)


def check_variables() -> None:
    """Raise KnobError if an environment variable has a value outside its knob's domain."""
    for name, knob in KNOBS.items():
        _from_environment(name, knob)


def _variable(name: str) -> str:
    return f"{PREFIX}{name.upper()}"


def _from_environment(name: str, knob: Knob) -> Any:
    variable = _variable(name)
    text = os.environ.get(variable)
    if text is None:
        return knob.default
    try:
        return knob.parse(text)
    except ValueError as error:
        raise KnobError(f"{variable}={shown(text)}: {error}", hint=f"{knob.help}; default {knob.default!r}") from None


def checked(name: str, value: Any) -> Any:
    """The parsed form of a value for a knob; raises KnobError for a value outside its domain."""
    knob = KNOBS[name]
    try:
        if knob.parse is _text:  # a number that names a folder is a mistake
            value = os.fspath(value)
        return knob.parse(str(value))
    except (TypeError, ValueError) as error:
        raise KnobError(f"{name}={shown(value)}: {error}", hint=knob.help) from None


class Knobs:
    """Attribute access to `KNOBS`; thread-safe.

    Attributes:
        changed: the values that differ from what the process began with, by name: what is kept for later, such as
            a function that traces under these, is kept for equal ones.
    """

    changed: frozenset[tuple[str, Any]]

    def __init__(self) -> None:
        object.__setattr__(self, "_values", {})
        object.__setattr__(self, "_first", {})  # by name, the values before the first change
        object.__setattr__(self, "changed", frozenset())
        object.__setattr__(self, "_lock", threading.Lock())
        object.__setattr__(self, "_watchers", {})

    def __getattr__(self, name: str) -> Any:
        values = self.__dict__["_values"]
        if name in values:
            return values[name]
        knob = KNOBS.get(name)
        if knob is None:
            raise AttributeError(f"no knob named {name!r}; see profuse.executor.settings.knobs.KNOBS")
        with self.__dict__["_lock"]:
            return values.setdefault(name, _from_environment(name, knob))

    def __setattr__(self, name: str, value: Any) -> None:
        self.exchange(name, value)

    def exchange(self, name: str, value: Any) -> Any:
        """Set a knob and return its previous value."""
        knob = KNOBS.get(name)
        if knob is None:
            raise KnobError(f"no knob named {name!r}", hint=f"knobs: {', '.join(KNOBS)}")
        value = checked(name, value)
        values = self.__dict__["_values"]
        # Reading and writing happen under one lock: of two racing setters, one gets the value from
        # before both, and the other gets the first one's value (R1.2).
        with self.__dict__["_lock"]:
            previous = values[name] if name in values else _from_environment(name, knob)
            values[name] = value
            others = [item for item in self.changed if item[0] != name]
            if value != self.__dict__["_first"].setdefault(name, previous):
                others.append((name, value))
            object.__setattr__(self, "changed", frozenset(others))
        for watcher in self.__dict__["_watchers"].get(name, ()):
            watcher(value)
        return previous

    def watch(self, name: str, told: Callable[[Any], None]) -> None:
        """Call ``told`` with each value that a knob is set to, as long as the process lives."""
        self.__dict__["_watchers"].setdefault(name, []).append(told)

    @contextmanager
    def override(self, **values: Any) -> Iterator[None]:
        """Set knobs for the duration of a ``with`` block; raises KnobError for a bad value."""
        previous = {name: self.exchange(name, value) for name, value in values.items()}
        try:
            yield
        finally:
            for name, value in previous.items():
                self.exchange(name, value)


knobs = Knobs()


def loop_bytes() -> int:
    """The memory policy of gradients of loops, under the activation budget."""
    return int(knobs.loop_bytes * knobs.activation_budget)


hold_over_forks(knobs.__dict__["_lock"])
