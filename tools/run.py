"""``profuse-run``: run a graph through its tiers and say what happened.

The graph is a file that `profuse.load` takes, or ``module:function`` (plain NumPy code); inputs are ``.npy`` files,
Python numbers, or descriptions such as ``f32[4,8]`` for which arrays are generated.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import asdict
from typing import Any

import numpy as np

from ..dialect.errors import ArgumentError, ProfuseError
from ..dialect.ir.types import ScalarType, TensorType
from ..dialect.trees.pytree import flatten
from ..executor.arguments.array_spec import load_npy, parse_spec
from ..executor.arguments.array_spec import spec as make_spec
from ..executor.functions.function import GraphFunction
from ..executor.functions.jit import jit
from ..executor.functions.load import load
from ..executor.functions.mlir_source import MlirSource
from ..executor.settings.knobs import knobs
from .console import tool
from .user_code import UsersError, imported


@tool("profuse-run")
def main(argv: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status (1 = an error, printed as one message)."""
    args = _parser().parse_args(argv)
    try:
        return _run(args)
    except MemoryError as error:
        raise ArgumentError(f"not enough memory: {error}") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="profuse-run", description=__doc__)
    parser.add_argument("graph", help="a file (.mlir, .onnx …) or module:function")
    parser.add_argument(
        "-i",
        "--input",
        action="append",
        default=[],
        metavar="INPUT",
        help="f32[4,8], file.npy, a number, or JSON: true, a list, a text, null; once per argument",
    )
    parser.add_argument("--calls", type=_at_least(1), default=3, help="how often to call (default 3)")
    parser.add_argument("--seed", type=_at_least(0), default=0, help="seed of generated inputs")
    parser.add_argument("--strategy", help="e.g. static:2,dynamic:10")
    parser.add_argument("--device", help="cuda or cuda:1: copy inputs there at every call")
    parser.add_argument("--check", action="store_true", help="compare every call with tier 0")
    parser.add_argument("--explain", action="store_true", help="print the explanation at the end")
    parser.add_argument("--ir", metavar="STAGE", help="print this stage's IR at the end")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of text")
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or int(text) < least:
            raise argparse.ArgumentTypeError(f"expected a number >= {least}, not {text!r}")
        return int(text)

    return number


def _run(args: argparse.Namespace) -> int:
    function = _load(args.graph, _strategy(args.strategy), args.device)
    inputs = _inputs(args, function)
    rows = []
    for call in range(args.calls):
        before = dict(function.state().counters)
        start = time.perf_counter()
        result = _call(function, inputs)
        seconds = time.perf_counter() - start
        state = function.state()
        gained = {k: v - before.get(k, 0) for k, v in state.counters.items()}
        row: dict[str, Any] = {
            "call": call + 1,
            "tier": state.tier,
            "seconds": seconds,
            "counters": {k: v for k, v in gained.items() if v},
        }
        if args.check:
            row["max_error"] = _error(result, _reference(function, inputs))
        rows.append(row)
        function.wait()  # a jitted function of the user's may compile in the background
        if not args.json:
            _print_row(row)
    return _finish(args, function, rows)


def _call(function: GraphFunction, inputs: list[Any]) -> Any:
    try:
        return function(*inputs)
    except (ProfuseError, MemoryError):
        raise
    except Exception as error:
        raise UsersError("the function", error) from None


def _finish(args: argparse.Namespace, function: GraphFunction, rows: list[dict]) -> int:
    state = function.state()
    if args.json:
        print(
            json.dumps(
                {
                    "graph": args.graph,
                    "calls": rows,
                    "tier": state.tier,
                    "remaining_depth": state.remaining_depth,
                    "counters": dict(state.counters),
                    "specializations": [asdict(s) for s in state.specializations],
                    "reasons": list(state.reasons),
                    **({"ir": function.ir(args.ir)} if args.ir else {}),
                    **({"explain": function.explain()} if args.explain else {}),
                }
            )
        )
    else:
        if args.explain:
            print(function.explain())
        if args.ir:
            print(function.ir(args.ir))
    wrong = [row for row in rows if row.get("max_error", 0.0) > 1e-3]
    if wrong:
        print(f"profuse-run: call {wrong[0]['call']} disagrees with tier 0", file=sys.stderr)
    return 1 if wrong else 0


def _load(name: str, strategy: list[tuple[str, int]] | None, device: str | None) -> GraphFunction:
    if name.endswith(".mlir") or os.path.isfile(name):
        return load(name, strategy=strategy, background=False, device=device)
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        raise ArgumentError(
            f"{name!r} is neither file.mlir nor module:function",
            hint="name an importable module and a function in it: model:f for f in model.py",
        )
    hint = None
    if module_name.endswith(".py"):
        hint = f"name the module, not its file: {name.replace('.py:', ':').replace('/', '.')}"
    sys.path.insert(0, "")
    target: Any = imported(module_name, hint)
    for part in attribute.split("."):
        if not hasattr(target, part):
            raise ArgumentError(f"module {module_name} has no function {attribute!r}")
        target = getattr(target, part)
    if isinstance(target, GraphFunction):
        return target
    return jit(target, strategy=strategy, background=False, device=device, unsupported="raise")


def _strategy(text: str | None) -> list[tuple[str, int]] | None:
    if text is None:
        return None
    out = []
    for part in filter(None, text.split(",")):
        behavior, colon, count = part.partition(":")
        if not colon or not count.isdigit():
            raise ArgumentError(f"strategy {text!r} is malformed", hint="write static:2,dynamic:10")
        out.append((behavior.strip(), int(count)))
    return out


def _inputs(args: argparse.Namespace, function: GraphFunction) -> list[Any]:
    rng = np.random.default_rng(args.seed)
    if args.input:
        return [_input(text, rng) for text in args.input]
    if not isinstance(function._source, MlirSource):
        return []
    main = function.module.main
    return [_from_type(main.type_of(v), k, rng) for k, v in enumerate(main.inputs)]


def _input(text: str, rng: np.random.Generator) -> Any:
    if text.endswith(".npy"):
        return load_npy(text)
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    if text in ("true", "false", "null") or text[:1] in ("[", '"'):
        return _json(text)
    try:
        return parse_spec(text).sample(rng)
    except (MemoryError, ValueError) as error:  # ValueError: beyond what can be addressed
        if isinstance(error, ProfuseError):
            raise
        raise ArgumentError(f"{text} cannot be made: {error}", hint="give smaller sizes") from None


def _json(text: str) -> Any:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"{text} is no JSON: {error}") from None
    return tuple(value) if isinstance(value, list) else value


def _from_type(type_: Any, index: int, rng: np.random.Generator) -> Any:
    if isinstance(type_, ScalarType):
        return {"b": True, "i": 1, "f": 1.0, "c": 1j}[type_.dtype.kind]
    if isinstance(type_, TensorType) and type_.is_static:
        return make_spec(type_.dtype.name, *type_.shape).sample(rng)  # type: ignore[union-attr,misc]
    raise ArgumentError(
        f"argument {index} has type {type_}, from which no array can be made",
        hint="give one --input per argument, e.g. -i 'f32[4,8]'",
    )


def _reference(function: GraphFunction, inputs: list[Any]) -> Any:
    """The same call on tier 0: a fresh function with optimisation off."""
    with knobs.override(optimize=False):
        if isinstance(function._source, MlirSource):
            return copy(function)(*inputs)
        plain: Callable[..., Any] = jit(function._source.fn, background=False, unsupported="raise")
        return plain(*inputs)


def _error(result: Any, expected: Any) -> float:
    """Largest error relative to the largest magnitude, over all leaves."""
    worst = 0.0
    for a, b in zip(flatten(result)[0], flatten(expected)[0], strict=True):
        x, y = np.asarray(a, np.complex128), np.asarray(b, np.complex128)
        if x.shape != y.shape:
            return float("inf")
        if x.size == 0:
            continue
        same = (x == y) | (np.isnan(x) & np.isnan(y))
        scale = max(float(np.max(np.abs(y[np.isfinite(y)]), initial=0.0)), 1e-30)
        with np.errstate(invalid="ignore"):  # inf - inf: neither is the same
            gap = np.where(same, 0.0, np.abs(x - y)) / scale
        worst = max(worst, float(np.nan_to_num(gap, nan=np.inf).max()))
    return worst


def _print_row(row: dict[str, Any]) -> None:
    counts = " ".join(f"{k}={v}" for k, v in row["counters"].items() if k != "calls")
    error = f" error={row['max_error']:.1e}" if "max_error" in row else ""
    print(f"call {row['call']}: {row['tier']:<10} {row['seconds'] * 1e3:9.3f} ms {counts}{error}")


if __name__ == "__main__":
    sys.exit(main())
