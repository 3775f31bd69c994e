"""Random programs in TorchScript against torch's own executor: what is whole, what is refused, with counts.

    python test/peers/script_conformance.py [FIRST LAST] [--write]

Without numbers it runs the programs of the file of counts, ``torchscript.json``; ``--write`` renews that.
"""

from __future__ import annotations

import collections
import json
import linecache
import sys
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import profuse as pf
import script_programs
import torch
from profuse.dialect.errors import ProfuseError

FILE = Path(__file__).with_name("torchscript.json")
_HEAD = "import torch\nfrom typing import List\n"


@dataclass
class Outcome:
    """What became of one program.

    Attributes:
        kind: ``whole``; ``refused``, with the reason; ``wrong``, with the difference; ``torch`` where torch
            itself compiles or runs no such program.
        why: in words.
        traces: of the function, if it is whole.
    """

    kind: str
    why: str = ""
    traces: int = 0


@dataclass
class Counts:
    """Of many programs.

    Attributes:
        kinds: how many are of each kind.
        reasons: why some are not whole.
        wrong: those with another result, by their seeds.
    """

    kinds: collections.Counter = field(default_factory=collections.Counter)
    reasons: collections.Counter = field(default_factory=collections.Counter)
    wrong: dict[int, str] = field(default_factory=dict)


def scripted(seed: int) -> Any:
    """The program of a seed as a `torch.jit.ScriptFunction`; None if TorchScript refuses it."""
    text = _HEAD + script_programs.program(seed)
    path = f"<program {seed}>"
    linecache.cache[path] = len(text), None, text.splitlines(keepends=True), path
    names: dict[str, Any] = {"__name__": f"program{seed}"}
    exec(compile(text, path, "exec"), names)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return torch.jit.script(names["program"])
        except RuntimeError:
            return None


def arguments(seed: int) -> list[tuple]:
    """The arguments of the calls: three alike, other numbers, another size."""
    generator = torch.Generator().manual_seed(seed)

    def call(rows: int, n: int, c: float) -> tuple:
        return torch.randn(rows, 3, generator=generator), torch.randn(rows, 3, generator=generator), n, c

    first = call(4, 3, 0.5)
    return [first, first, first, call(4, 3, 0.5), call(4, 3, -0.4), call(4, 2, 0.1), call(5, 3, 0.2)]


def _copied(args: tuple) -> tuple:
    return tuple(x.clone() if isinstance(x, torch.Tensor) else x for x in args)


def check_same(result: Any, expected: Any) -> None:
    """Raise AssertionError unless results are those of torch, with their types, dtypes and shapes."""
    fields = getattr(expected, "_fields", None)  # of a named tuple, which torch makes a class of its own for
    assert type(result) is type(expected) or (fields and getattr(result, "_fields", None) == fields), (result, expected)
    if isinstance(expected, torch.Tensor):
        torch.testing.assert_close(result, expected, rtol=1e-3, atol=1e-4, equal_nan=True)
    elif isinstance(expected, (list, tuple)):
        assert len(result) == len(expected)
        for a, b in zip(result, expected, strict=True):
            check_same(a, b)
    elif isinstance(expected, dict):
        assert list(result) == list(expected), (result, expected)
        check_same(list(result.values()), list(expected.values()))
    elif isinstance(expected, float):
        both_nan = result != result and expected != expected
        assert both_nan or result == expected or abs(result - expected) < 1e-3 * (1 + abs(expected)), (result, expected)
    else:
        assert result == expected, (result, expected)


def outcome(seed: int) -> Outcome:
    """Run one program in torch and here, with the same calls."""
    script = scripted(seed)
    if script is None:
        return Outcome("torch", "does not compile it")
    try:
        function = pf.torch.script(script, background=False)
        with torch.no_grad():
            for args in arguments(seed):
                try:
                    expected = script(*_copied(args))
                except RuntimeError:
                    return Outcome("torch", "fails")  # its executor has defects of its own
                check_same(function(*_copied(args)), expected)
    except ProfuseError as error:
        return Outcome("refused", error.what)
    except AssertionError as error:
        return Outcome("wrong", str(error).strip().splitlines()[0])
    return Outcome("whole", traces=function.state().counters["traces"])


def run(seeds: range) -> Counts:
    """Run the programs of some seeds."""
    counts = Counts()
    for seed in seeds:
        result = outcome(seed)
        counts.kinds[result.kind] += 1
        if result.kind != "whole":
            counts.reasons[f"{result.kind}: {result.why}"] += 1
        if result.kind == "wrong":
            counts.wrong[seed] = result.why
    return counts


def main() -> None:
    numbers = [int(word) for word in sys.argv[1:] if word.isdigit()]
    stored = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {"first": 0, "last": 60}
    first, last = numbers or (stored["first"], stored["last"])
    counts = run(range(first, last))
    text = {
        "first": first,
        "last": last,
        "programs": dict(sorted(counts.kinds.items())),
        "reasons": dict(counts.reasons.most_common()),
    }
    print(json.dumps(text, indent=2), counts.wrong)
    if "--write" in sys.argv:
        FILE.write_text(json.dumps(text, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
