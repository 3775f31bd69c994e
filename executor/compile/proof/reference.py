"""The expected results of a kernel, and how far rounding may change them.

Tier 0, in the kernel's own dtypes, defines the expected results. A kernel contracts multiplications
and additions, sums in another order, and has its own expansions of functions. So its floats differ
in their last places, and later ops may amplify the differences. To find out how much, the graph is
evaluated again with the operands of each inexact op moved at random, by a few units in the last
place, at every use. A kernel's results may lie where the results of such evaluations lie.

Every second evaluation moves only the operands of sums. Functions of equal numbers have equal
errors, so the variance of equal numbers stays 0 but for the rounding of their mean; moving all
operands independently would hide that.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ....dialect.ir.dtypes import DType
from ....dialect.ir.op import Rounding, unbared
from ....dialect.ir.program import Instr, Module, Program
from ....dialect.ir.types import TensorType, Type
from ....dialect.ops.elementwise.binary import Copysign, Maximum, Minimum
from ....dialect.ops.elementwise.powers import Pow
from ....dialect.ops.elementwise.select import Cast, Clip
from ....dialect.ops.elementwise.special import Sigmoid
from ....dialect.ops.elementwise.unary import Abs, Exp, Exp2
from ....dialect.ops.reductions.moments import Var
from ....dialect.ops.reductions.reduce import Max, Min, Reduction, axis_argument
from ...interpret.evaluate import Evaluator
from ...interpret.loop_limit import Limit, TooLong, within
from .loop_rounding import has_loops, pass_on
from .nudges import is_float, is_inexact, nudge
from .sampled_rows import CheckedRows

# For finite nonzero operands, these ops give 0 only because the result is too small.
_VANISH = (Exp, Exp2, Pow, Sigmoid)
# Of zeros that compare as equal, these ops may give either; the sign of a NaN is unspecified.
_OF_EITHER_SIGN = (Clip, Max, Maximum, Min, Minimum)
_SLOWER = 16  # as many times longer may an evaluation take that moves operands
_ALL = 12  # as many times longer may all of these take together
_ULPS = 4  # more than the error of most ops, including the expansions of `lowering.math`


class Reference:
    """Evaluates one fusion function at tier 0, exactly or with moved operands.

    Args:
        function: the fusion function.
        module: the module of functions that it calls, if any.
        rows: the rows of the results that are evaluated; None = all rows.
        limit: how long evaluations of loops may take; None = for ever.

    Attributes:
        rounds: per output, True if an op on the way to it rounds.
        moves: True if the function only moves elements.
    """

    def __init__(
        self,
        function: Program,
        module: Module | None = None,
        rows: CheckedRows | None = None,
        limit: Limit | None = None,
    ) -> None:
        self._function, self._module = function, module
        self._adapt = _as_it_is if rows is None else rows.adapt
        self._limit = limit if has_loops(function) else None
        self._left = 0.0 if limit is None else limit.seconds * _ALL  # for moved operands
        self._plain = Evaluator(function, module, adapt=None if rows is None else rows.adapt)
        instrs = list(function.body.walk())
        self.moves = all(i.op.rounding is Rounding.MOVES for i in instrs)
        tainted: set[int] = set()
        unsigned: set[int] = set()  # zeros and NaNs among these may have another sign
        before = (-1, -1)
        while before != (len(tainted), len(unsigned)):  # loops hand values back
            before = len(tainted), len(unsigned)
            for instr in instrs:
                if instr.blocks:
                    pass_on(instr, tainted)
                    pass_on(instr, unsigned)
                    continue
                if issubclass(instr.op, _OF_EITHER_SIGN) or unsigned.intersection(instr.operands):
                    unsigned.update(instr.results)
                inexact = _rounds(instr, function) and _gives_floats(instr, function)
                inexact |= instr.op is Copysign and instr.operands[1] in unsigned
                inexact |= _truncates(instr, self._function)
                if inexact or tainted.intersection(instr.operands):
                    tainted.update(instr.results)
        self._tainted = frozenset(tainted)
        self.rounds = [v in tainted for v in function.outputs]

    def __call__(self, args: Sequence[Any]) -> list[np.ndarray]:
        """The results of tier 0; raises what NumPy raises."""
        with self._limited():
            return [np.asarray(out) for out in self._plain(args)]

    def _limited(self, times: int = 1) -> AbstractContextManager:
        if self._limit is not None:
            self._limit.begin(times)
        return within(self._limit)

    def meets_nothing(self, args: Sequence[Any]) -> bool:
        """True if an argument or an intermediate value has no elements."""
        is_empty = any(np.size(x) == 0 for x in args)

        def adapt(instr: Instr, evaluate: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any) -> Any:
                nonlocal is_empty
                out = evaluate(*args)
                is_empty |= any(np.size(x) == 0 for x in unbared(out, len(instr.results)))
                return out

            return self._adapt(instr, run)

        with self._limited(_SLOWER):
            Evaluator(self._function, self._module, adapt=adapt)(args)
        return is_empty

    def nearby(self, args: Sequence[Any], count: int, seed: int, ulps: int = _ULPS) -> list[list[np.ndarray]]:
        """The results of ``count`` evaluations with moved operands; fewer if NumPy raises.

        Raises TooLong if loops take too long, in one evaluation or in all of this reference.
        """
        if not any(self.rounds):
            return []
        rng, every = np.random.default_rng(seed), True

        def adapt(instr: Instr, evaluate: Callable[..., Any]) -> Callable[..., Any]:
            moved = self._moved(instr, evaluate, rng, ulps)
            if instr.op.rounding is Rounding.SUMS:
                return self._adapt(instr, moved)
            return self._adapt(instr, lambda *args: (moved if every else evaluate)(*args))

        evaluator = Evaluator(self._function, self._module, adapt=adapt)
        out = []
        for number in range(count):
            every = number % 2 == 0
            if self._limit is not None and self._left <= 0:
                raise TooLong("telling what rounding does in its loops takes too long")
            begun = time.thread_time()
            try:
                with self._limited(_SLOWER):
                    out.append([np.asarray(x) for x in evaluator(args)])
            except TooLong:
                raise  # what it would have shown is not known
            except Exception:
                # If moved operands raise, rounding decides; such an evaluation is no evidence.
                continue
            finally:
                self._left -= time.thread_time() - begun
        return out

    def widened(self, args: Sequence[Any], expected: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
        """Results of one evaluation of wider floats, in the dtypes of ``expected``; [] = it raises.

        A kernel that fuses a multiplication with an addition does not round the product: of two
        products that overflow it may have an infinity, where NumPy has the difference of two.
        """
        try:
            wide = self([_widened(x) for x in args])
        except TooLong:
            raise
        except Exception:
            return []
        return [[w.astype(e.dtype) for w, e in zip(wide, expected, strict=True)]]

    def _moved(
        self, instr: Instr, evaluate: Callable[..., Any], rng: np.random.Generator, ulps: int
    ) -> Callable[..., Any]:
        if issubclass(instr.op, _OF_EITHER_SIGN):
            evaluate = _of_either_sign(evaluate, rng)
        moved = [_rounds(instr, self._function) or v in self._tainted for v in instr.operands]
        if _truncates(instr, self._function):
            return lambda x: _truncated(evaluate, x, instr.attrs["dtype"], any(moved), rng, ulps)
        if not any(moved):
            return evaluate

        shuffles = issubclass(instr.op, Reduction)

        def run(*args: Any) -> Any:
            operands = list(args)
            for k, arg in enumerate(args):
                if moved[k] and isinstance(arg, (np.ndarray, np.generic)) and is_inexact(arg):
                    # An exact operand moves by 1 ulp only: the op may round in its inner steps.
                    few = ulps if instr.operands[k] in self._tainted else 1
                    array = np.asarray(arg)
                    # The errors of a sum of many similar terms may all have the same direction.
                    together = instr.op.rounding is Rounding.SUMS and rng.random() < 0.5
                    # The smallest move is for what single points decide, which a wide one misses.
                    length = _length(instr, array, together) if ulps > 1 else 1
                    array = nudge(array, few * length, rng, together)
                    operands[k] = _shuffled(instr, array, rng) if shuffles else array
            return evaluate(*operands)

        if issubclass(instr.op, _VANISH):
            return _nearly_zero(run, rng)
        return _about_any_mean(instr, run, rng, ulps) if issubclass(instr.op, Var) else run


def _widened(x: Any) -> Any:
    """An array of inexact numbers as one of the next wider dtype."""
    array = np.asarray(x)
    if not isinstance(x, (np.ndarray, np.generic)) or not is_inexact(array):
        return x
    if array.dtype.kind == "c":
        return array.astype({8: np.complex128}.get(array.itemsize, np.clongdouble))
    return array.astype({2: np.float32, 4: np.float64}.get(array.itemsize, np.longdouble))


def _as_it_is(_instr: Instr, evaluate: Callable[..., Any]) -> Callable[..., Any]:
    return evaluate


def _rounds(instr: Instr, function: Program) -> bool:
    # The absolute value of a complex number is a root, that of a float is exact.
    is_root = instr.op is Abs and _is_complex(function.type_of(instr.operands[0]))
    return is_root or instr.op.rounding in (Rounding.EACH, Rounding.SUMS)


def _is_complex(type_: Type) -> bool:
    """True for a type whose dtype is known to be complex, or not known."""
    dtype = getattr(type_, "dtype", None)
    return dtype is None or dtype.is_complex


def _length(instr: Instr, array: np.ndarray, together: bool) -> int:
    """A factor for the rounding errors inside an op that adds up this operand.

    Errors of one direction add up (``together``); random errors partly cancel.
    """
    if instr.op.rounding is not Rounding.SUMS:
        return 1
    terms = max(array.shape, default=1)
    return max(1, terms // 4 if together else int(terms**0.75))


def _shuffled(instr: Instr, array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The terms of a sum in another order, which decides how partial sums overflow."""
    op: Any = instr.op
    axes = axis_argument(op.full_attrs(instr.attrs)["axes"])
    if not array.ndim:
        return array
    for axis in range(array.ndim) if axes is None else axes:
        array = np.take(array, rng.permutation(array.shape[axis]), axis)
    return array


def _about_any_mean(
    instr: Instr, evaluate: Callable[..., Any], rng: np.random.Generator, ulps: int
) -> Callable[..., Any]:
    """A variance that, at random, uses NumPy's mean, a moved mean, or the exact mean.

    Moving the elements does not show errors of the mean, because the mean moves with them: the
    variance of a single element is always 0. But a kernel may round its mean differently than NumPy
    does.
    """
    op: Any = instr.op
    attrs = op.full_attrs(instr.attrs)
    axis: Any = axis_argument(attrs["axes"])

    def run(x: Any) -> Any:
        centre = op.centre(attrs, x)
        if not is_float(centre):
            return evaluate(x)
        way = rng.integers(3)
        if way == 0:
            return evaluate(x)
        if way == 1:
            return op.about(attrs, x, nudge(centre, ulps, rng))
        wide = np.asarray(x).astype(centre.dtype).astype(np.longdouble)
        return op.about(attrs, x, wide.mean(axis, keepdims=True).astype(centre.dtype))

    return run


def _nearly_zero(evaluate: Callable[..., Any], rng: np.random.Generator) -> Callable[..., Any]:
    """``evaluate``, which at random replaces results of 0 by the smallest number of that sign.

    NumPy's ``exp2`` of f32, for instance, gives 0 where the smallest number would be nearer.
    """

    def run(*args: Any) -> Any:
        out = np.asarray(evaluate(*args))
        if not is_float(out) or rng.integers(2):
            return out
        finite = np.logical_and.reduce([np.broadcast_to(np.isfinite(x) & (x != 0), out.shape) for x in args])
        return np.where(finite & (out == 0), np.nextafter(out, np.copysign(1, out).astype(out.dtype)), out)

    return run


def _of_either_sign(evaluate: Callable[..., Any], rng: np.random.Generator) -> Callable[..., Any]:
    """``evaluate``, whose zeros and NaNs get random signs."""

    def run(*args: Any) -> Any:
        out = np.asarray(evaluate(*args))
        if not is_float(out):
            return out
        signs = rng.choice([-1, 1], out.shape).astype(out.dtype)
        return np.where((out == 0) | np.isnan(out), np.copysign(out, signs), out)

    return run


def _truncates(instr: Instr, function: Program) -> bool:
    """True for a cast of floats to integers, which C leaves undefined for numbers out of range."""
    if instr.op is not Cast or not instr.attrs["dtype"].is_int:
        return False
    type_ = function.type_of(instr.operands[0])
    return getattr(type_, "dtype", None) is None or type_.dtype.is_float  # type: ignore[union-attr]


def _truncated(
    evaluate: Callable[..., Any], x: Any, dtype: DType, moves: bool, rng: np.random.Generator, ulps: int
) -> Any:
    """A cast to integers that gives random integers for numbers out of range."""
    x = np.asarray(x)
    x = nudge(x, ulps, rng) if moves else x
    info = np.iinfo(dtype.numpy)
    wide = np.trunc(x.astype(np.float64))
    fits = (wide >= info.min) & (wide < float(info.max) + 1)
    if fits.all():
        return evaluate(x)
    anything = rng.integers(info.min, info.max, x.shape, dtype.numpy, True)
    return np.where(fits, evaluate(x), anything)


def _gives_floats(instr: Instr, function: Program) -> bool:
    types = [function.type_of(v) for v in (*instr.results, *instr.operands)]
    kinds = {t.dtype.kind for t in types if isinstance(t, TensorType) and t.dtype is not None}
    return bool(kinds & {"f", "c"}) or not kinds
