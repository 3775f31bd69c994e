"""The conformance cases of the package onnx on compiled plans, and the record of how they go.

``python test/peers/onnx_cases.py --part 0/4`` runs a part and writes a file of lines, and ``--join`` makes the record
of such files. ``--others`` runs what the record says does not run, and renews the record by what does now.
"""

from __future__ import annotations

import argparse
import glob
import json
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RECORD = Path(__file__).with_name("onnx_cases.json")
KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
_SECONDS = 120  # for one case
_CALLS = 3
# Reference results of narrow floats are rounded at each step, ours once.
_TOLERANCES = {"float16": (2e-3, 2e-3), "bfloat16": (2e-2, 2e-2)}


def cases(kind: str) -> list[Any]:
    """The cases of a suite."""
    from onnx.backend.test.loader import load_model_tests

    return load_model_tests(kind=kind)


def data_of(case: Any) -> tuple[Any, list[tuple[list, list]]]:
    """The model of a case, and its pairs of inputs and outputs."""
    import onnx

    if case.model is not None:
        return case.model, [([*map(_array, ins)], [*map(_array, outs)]) for ins, outs in case.data_sets]
    model = onnx.load(os.path.join(case.model_dir, "model.onnx"))
    folders = sorted(glob.glob(os.path.join(case.model_dir, "test_data_set_*")))
    return model, [(_stored(folder, "input"), _stored(folder, "output")) for folder in folders]


def _stored(folder: str, what: str) -> list[Any]:
    import onnx

    found = []
    for number in range(len(glob.glob(os.path.join(folder, f"{what}_*.pb")))):
        tensor = onnx.TensorProto()
        tensor.ParseFromString(Path(folder, f"{what}_{number}.pb").read_bytes())
        found.append(_array(tensor))
    return found


def _array(x: Any) -> Any:
    import onnx.numpy_helper

    return onnx.numpy_helper.to_array(x) if isinstance(x, onnx.TensorProto) else x


def compare(found: Any, wanted: Any, rtol: float) -> None:
    """Raise AssertionError unless values, dtypes and shapes are those wanted."""
    if isinstance(wanted, (list, tuple)):
        assert isinstance(found, (list, tuple)) and len(found) == len(wanted), "another structure"
        for a, b in zip(found, wanted, strict=True):
            compare(a, b, rtol)
        return
    if wanted is None:
        assert found is None, "not None"
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.dtype == wanted.dtype, f"dtype {found.dtype}, not {wanted.dtype}"
    assert found.shape == wanted.shape, f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "OU":
        assert found.tolist() == wanted.tolist(), f"{found.tolist()}, not {wanted.tolist()}"
        return
    rtol, atol = _TOLERANCES.get(wanted.dtype.name, (rtol, 1e-6))
    if wanted.dtype.name in _TOLERANCES:
        found, wanted = found.astype(np.float32), wanted.astype(np.float32)
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def outcome(case: Any) -> str:
    """``"runs"``, or ``"refused: "`` or ``"wrong: "`` with the reason; what else is raised is an error of ours."""
    import profuse as pf
    from profuse.executor.functions.onnx_backend import PreparedModel

    model, sets = data_of(case)
    try:
        prepared = PreparedModel(model, case.name)
        for inputs, outputs in sets:
            for _ in range(_CALLS):
                found = prepared.run(inputs)
                compare(list(found), list(outputs), case.rtol)
        state = prepared.function.state()
        assert state.tier == "optimized", f"tier {state.tier}"
        assert not state.counters.get("python_calls", 0), "Python ran calls"
    except pf.ProfuseError as error:
        return f"refused: {type(error).__name__}: {error}".splitlines()[0]
    except AssertionError as error:
        return f"wrong: {' '.join(str(error).split())[:200]}"
    return "runs"


def ops_of(case: Any) -> str:
    """The operator that a case is about: the one of its model, or what its name says."""
    name = case.name.removeprefix("test_").split("_expanded")[0]
    graph = case.model.graph if case.model is not None else None
    if graph is not None and len(graph.node) == 1:
        return graph.node[0].op_type
    return f"{name.split('_')[0]} (expanded)" if "_expanded" in case.name else case.kind


def run(kind: str, part: tuple[int, int], done: set[str]) -> Iterator[tuple[str, str, str]]:
    """For each case of a part its name, operator and outcome."""

    def late(*_: Any) -> None:
        raise TimeoutError(f"more than {_SECONDS} s")

    signal.signal(signal.SIGALRM, late)
    for number, case in enumerate(cases(kind)):
        if number % part[1] != part[0] or case.name in done:
            continue
        signal.alarm(_SECONDS)
        try:
            how = outcome(case)
        except Exception as error:
            how = f"error: {type(error).__name__}: {' '.join(str(error).split())[:200]}"
        finally:
            signal.alarm(0)
        yield case.name, ops_of(case), how


def joined(lines: Sequence[str]) -> dict[str, Any]:
    """The record of lines: names that run, and counts by operator."""
    by_op: dict[str, Counter] = {}
    names, others = [], {}
    for line in sorted(set(lines)):
        name, op, how = line.split("\t")
        word = how.split(":")[0]
        by_op.setdefault(op, Counter())[word] += 1
        if word == "runs":
            names.append(name)
        else:
            others[name] = how.replace(name, "model.onnx")
    return {
        "runs": len(names),
        "of": len(names) + len(others),
        "by_op": {op: dict(sorted(count.items())) for op, count in sorted(by_op.items())},
        "names": names,
        "others": others,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="node")
    parser.add_argument("--part", default="0/1")
    parser.add_argument("--out", default=None)
    parser.add_argument("--join", nargs="*")
    parser.add_argument("--others", action="store_true")
    options = parser.parse_args()
    if options.join is not None:
        record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
        lines = [line for name in options.join for line in Path(name).read_text().splitlines()]
        record[options.kind] = joined(lines)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(options.kind, record[options.kind]["runs"], "of", record[options.kind]["of"])
        return
    if options.others:
        record = json.loads(RECORD.read_text())
        names = set(record[options.kind]["names"])
        lines = [f"{case.name}\t{ops_of(case)}\truns" for case in cases(options.kind) if case.name in names]
        lines += ["\t".join(line) for line in run(options.kind, (0, 1), names)]
        record[options.kind] = joined(lines)
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        print(options.kind, record[options.kind]["runs"], "of", record[options.kind]["of"])
        return
    k, count = map(int, options.part.split("/"))
    out = Path(options.out or Path(tempfile.gettempdir(), f"onnx_cases.{options.kind}.{k}.txt"))
    done = {line.split("\t")[0] for line in out.read_text().splitlines()} if out.exists() else set()
    with out.open("a") as file:
        for name, op, how in run(options.kind, (k, count), done):
            file.write(f"{name}\t{op}\t{how}\n")
            file.flush()
    print(out)


if __name__ == "__main__":
    sys.exit(main())
