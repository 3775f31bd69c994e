"""Random programs on values of all kinds in TorchScript and here: results, effects, aliases, state, gradients, errors.

python test/peers/script_value_conformance.py FIRST LAST [--evaluated]

Seeds from `USERS` on are of programs as people write their modules.
"""

from __future__ import annotations

import collections
import copy
import linecache
import sys
import warnings
from typing import Any

import profuse as pf
import torch
from profuse.dialect.errors import ModelError, ProfuseError
from script_conformance import Counts, Outcome, check_same
from script_user_programs import UserProgram, user_program
from script_value_programs import ValueProgram, value_program

USERS = 100_000

_HEAD = "import torch\nimport torch.nn.functional as F\nfrom typing import Dict, List, Optional\n"
_NAMES = ("x", "y", "w", "k", "m", "s", "parts", "table", "n", "c", "flag", "b", "mode")


def program_text(seed: int) -> str:
    """The text of the program of a seed."""
    return user_program(seed) if seed >= USERS else value_program(seed)


def scripted(seed: int) -> Any:
    """The program of a seed as a function or module of TorchScript; None if that refuses it."""
    text = _HEAD + program_text(seed)
    path = f"<value program {seed}>"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    names: dict[str, Any] = {"__name__": f"values{seed}"}
    exec(compile(text, path, "exec", dont_inherit=True), names)
    try:
        return torch.jit.script(names["program"] if "program" in names else names["Program"]().eval())
    except RuntimeError:
        return None


def arguments(seed: int) -> list[tuple]:
    """The arguments of the calls: alike, other numbers, sizes, layouts, dtypes, with and without an optional one."""
    generator = torch.Generator().manual_seed(seed)

    def call(rows: int, n: int, c: float, dtype=torch.float32, integers=torch.int64, flag=False, b=None, strided=False):
        def floats(*shape: int) -> Any:
            return torch.randn(shape, generator=generator).to(dtype)

        def matrix() -> Any:
            if not strided:
                return floats(rows, 3)
            return floats(3, rows).t() if generator.initial_seed() % 2 else floats(rows, 6)[:, ::2]

        k = torch.randint(-5, 6, (rows, 3), generator=generator).to(integers)
        m = torch.rand(rows, 3, generator=generator) > 0.5
        table = {"a": floats(3), "b": floats(3)}
        b = None if b is None else floats(3)
        return matrix(), matrix(), floats(3), k, m, floats(), [matrix(), floats(rows, 3)], table, n, c, flag, b

    first = call(4, 3, 0.5)
    return [
        *(first, first, first, call(4, 2, -0.3, flag=True), call(5, 3, 0.2, b=True), call(4, 3, 0.5, strided=True)),
        *(call(4, 3, 0.5, torch.float64, torch.int32), call(0, 3, 0.5), (*call(4, 1, 0.9, flag=True), "b")),
        call(6, 4, 1.0),
    ]


def tensors(value: Any) -> list[Any]:
    """The tensors in a value, in order."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for part in value for tensor in tensors(part)]
    return [value] if isinstance(value, torch.Tensor) else []


def shares(results: Any, args: tuple) -> list[tuple[int, int]]:
    """Which results lie in whose memory: pairs of numbers, of results and of the first argument or result there."""
    held = [*tensors(args), *tensors(results)]
    first = len(tensors(args))
    storages = [(t.untyped_storage().data_ptr(), t.untyped_storage().nbytes()) for t in held]

    def overlap(a: int, b: int) -> bool:
        (p, m), (q, n) = storages[a], storages[b]
        return p < q + n and q < p + m

    # Results without axes have memory of their own here.
    numbers = [k for k in range(first, len(held)) if held[k].dim()]
    return [(k, next((j for j in (*range(first), *numbers) if overlap(j, k)), k)) for k in numbers]


def _plain(value: Any) -> Any:
    """A value with tensors in the place of parameters, of which results are no more than the memory."""
    if hasattr(value, "_fields"):
        return type(value)(*map(_plain, value))
    if isinstance(value, (list, tuple)):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return value.data if isinstance(value, torch.nn.Parameter) else value


def _state(module: Any) -> Any:
    kept = getattr(module, "kept", None)
    return module.hidden, module.total, module.calls, list(module.seen), kept, [*module.buffers()]


def _called(function: Any, args: tuple) -> tuple[Any, Any]:
    """The result and the exception of a call."""
    try:
        return function(*args), None
    except (ProfuseError, RuntimeError, torch.jit.Error, IndexError, ValueError) as error:
        return None, error


def _differences(script: Any, function: Any, seed: int, copied: Any) -> None:
    may_copy = any(word in program_text(seed) for word in ("for ", "while ", "bool(", "int("))
    for number, args in enumerate(arguments(seed)):
        ours, theirs = copy.deepcopy(args), copy.deepcopy(args)
        expected, failure = _called(script, theirs)
        result, error = _called(function, ours)
        where = f"call {number}: "
        if error is not None and not (failure is not None and isinstance(error, (ModelError, ProfuseError))):
            raise error if isinstance(error, ProfuseError) else AssertionError(f"{where}{error}")
        if failure is not None and error is None and "out of range" in str(failure):
            return  # of an element that no result depends on
        assert failure is None or error is not None, f"{where}no exception, where torch raises {str(failure)[-200:]!r}"
        if failure is not None:
            return  # what had been done before is done in torch alone
        try:
            check_same(result, _plain(expected))
            check_same(ours, _plain(theirs))
            if isinstance(script, torch.jit.ScriptModule):
                check_same(_plain(_state(copied)), _plain(_state(script)))
        except AssertionError as difference:
            raise AssertionError(where + " ".join(str(difference).split())[:300]) from None
        pair = shares(result, ours), shares(expected, theirs)
        # What is one array or another, as contents or the rounds of a loop decide, is a copy.
        kept = [(a, b) for a, b in zip(*pair, strict=True) if not may_copy or a[0] != a[1]]
        assert all(a == b for a, b in kept), f"{where}aliases {pair[0]}, torch's are {pair[1]}"


def _gradients(script: Any, function: Any, seed: int) -> None:
    """Compare gradients of a scalar for two arguments and the parameters."""
    args = arguments(seed)[0]
    theirs = copy.deepcopy(args)
    for place in (0, 2):
        theirs[place].requires_grad_()
    try:
        results = [t for t in tensors(script(*theirs)) if t.is_floating_point()]
        loss = sum(t.sum() for t in results if t.requires_grad)
        if not isinstance(loss, torch.Tensor):
            return
        expected = torch.autograd.grad(loss, [theirs[0], theirs[2]], allow_unused=True, materialize_grads=True)
    except (RuntimeError, torch.jit.Error):
        return
    kept = [t.requires_grad for t in results]

    def loss_of(x: Any, w: Any, y: Any, others: Any) -> Any:
        parts = [t for t in _arrays(function(x, y, w, *others)) if t.dtype.kind == "f"]
        return sum(t.sum() for t, needed in zip(parts, kept, strict=True) if needed)

    step = pf.grad(loss_of, (0, 1), background=False)
    for _ in range(2):
        x, y, w, *others = _numpy(copy.deepcopy(args))  # programs may write to these
        for a, b in zip(step(x, w, y, others), expected, strict=True):
            torch.testing.assert_close(torch.as_tensor(a), b, rtol=1e-3, atol=1e-4, equal_nan=True)


def _numpy(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(map(_numpy, value))
    if isinstance(value, dict):
        return {key: _numpy(part) for key, part in value.items()}
    return value.numpy() if isinstance(value, torch.Tensor) else value


def _arrays(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [array for part in value for array in _arrays(part)]
    return [value] if hasattr(value, "ndim") else []


def value_outcome(seed: int, *, compiles: bool = True) -> Outcome:
    """Run one program in torch and here, with the same calls; without compiles op by op, and without gradients."""
    script = scripted(seed)
    if script is None:
        return Outcome("torch", "does not compile it")
    copied = copy.deepcopy(script) if isinstance(script, torch.jit.ScriptModule) else script
    try:
        function = pf.torch.script(copied, background=False, strategy=None if compiles else [])
        with torch.no_grad():
            _differences(script, function, seed, copied)
        traces = function.state().counters["traces"]
        drawn = (UserProgram if seed >= USERS else ValueProgram)(seed)
        if compiles and not (drawn.is_module or drawn.writes):
            _gradients(script, function, seed)
    except ProfuseError as error:
        return Outcome("refused", error.what)
    except AssertionError as error:
        return Outcome("wrong", " ".join(str(error).split())[:400])
    except Exception as error:
        return Outcome("wrong", f"{type(error).__name__}: {error}"[:400])
    return Outcome("whole", traces=traces)


def value_counts(seeds: range, *, compiles: bool = True) -> Counts:
    """Run the programs of some seeds."""
    counts = Counts()
    for seed in seeds:
        result = value_outcome(seed, compiles=compiles)
        counts.kinds[result.kind] += 1
        if result.kind != "whole":
            counts.reasons[f"{result.kind}: {result.why}"] += 1
        if result.kind == "wrong":
            counts.wrong[seed] = result.why
    return counts


def main() -> None:
    warnings.simplefilter("ignore")
    total = Counts()
    compiles = "--evaluated" not in sys.argv
    for seed in range(*map(int, sys.argv[1:3])):
        one = value_counts(range(seed, seed + 1), compiles=compiles)
        for kind, why in ((k, w) for k in one.kinds for w in one.reasons or {"": 1}):
            print(seed, kind, why, flush=True)
        total.kinds += one.kinds
        total.reasons += one.reasons
    print(dict(total.kinds))
    for why, count in collections.Counter(total.reasons).most_common(30):
        print(count, why)


if __name__ == "__main__":
    main()
