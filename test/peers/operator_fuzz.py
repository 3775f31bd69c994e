"""Random nodes of ONNX's operators, in random surroundings, against the evaluator of the package onnx.

``python test/peers/operator_fuzz.py 2000`` runs so many, ``--seed`` says from which on, ``--only`` names makers; exit
status 1 = one differs. Where the evaluator fails, or differs from us, onnxruntime is asked as well: what it gives as we
do is a fault of the evaluator, and counted as such.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import layer_draws  # noqa: F401 - adds makers
import numpy as np
import onnx
import profuse as pf
import shape_draws  # noqa: F401 - adds makers
from onnx import TensorProto, helper, numpy_helper
from operator_draws import MAKERS, NEWEST, TRAINING, Drawn, Draws, Fixed
from profuse.executor.functions.onnx_backend import PreparedModel

_KINDS = ("argument", "argument", "initialiser", "constant", "overridden", "default")
_TOLERANCES = {2: 1e-2, 4: 1e-5, 8: 1e-9}
_LOOPS = 11  # since this version, loops need carry nothing
_RUNTIME_VERSION = 23  # the newest version of operators that onnxruntime is asked for


class OperatorModel:
    """A model around one node.

    Args:
        drawn: the node.
        draws: of what stands around it.

    Attributes:
        model: whose arguments are named.
        arguments: the arrays that it is given, by name.
        rounds: of the loop around the node; 0 = there is none.
    """

    def __init__(self, drawn: Drawn, draws: Draws) -> None:
        self.drawn, self.draws = drawn, draws
        self.version = draws.number(drawn.first, drawn.last)
        self.arguments: dict[str, np.ndarray] = {}
        self.rounds = 0
        self._inputs: list[Any] = []
        self._weights: list[Any] = []
        self._nodes: list[Any] = []
        operands = [self._operand(x, f"x{k}") for k, x in enumerate(drawn.operands)]
        while operands and not operands[-1]:
            operands.pop()
        results = [f"y{k}" for k in range(drawn.results)]
        node = helper.make_node(drawn.op, operands, results, domain=drawn.domain, **drawn.attributes)
        results = self._surrounded(node, results)
        outputs = [onnx.ValueInfoProto(name=name) for name in results]
        graph = helper.make_graph(self._nodes, "node", self._inputs, outputs, self._weights)
        versions = [helper.make_opsetid("", self.version)]
        versions += [helper.make_opsetid(drawn.domain, 3 if "ml" in drawn.domain else 1)] if drawn.domain else []
        self.model = helper.make_model(graph, opset_imports=versions)
        self.model.ir_version = max(helper.find_min_ir_version_for([versions[0]]), 7)

    def _operand(self, x: Any, name: str) -> str:
        if x is None:
            return ""
        is_fixed = isinstance(x, Fixed)
        array = x.value if is_fixed else np.asarray(x)
        kind = self.draws.one_of(("initialiser", "constant") if is_fixed else _KINDS)
        type_ = helper.np_dtype_to_tensor_dtype(array.dtype)
        if kind in ("argument", "overridden", "default"):
            self._inputs.append(helper.make_tensor_value_info(name, type_, self._dims(array)))
        if kind in ("argument", "overridden"):
            self.arguments[name] = array
        if kind == "constant":
            tensor = numpy_helper.from_array(array, name)
            self._nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        elif kind != "argument":
            stored = np.zeros_like(array) if kind == "overridden" else array
            self._weights.append(numpy_helper.from_array(stored, name))
        if array.dtype in (np.float32, np.float64) and not is_fixed and self.draws.chance(0.25):
            for k, source in enumerate((name, f"{name}_0")):  # numbers that are computed, and the same
                self._nodes.append(helper.make_node("Neg", [source], [f"{name}_{k}"]))
            return f"{name}_1"
        return name

    def _dims(self, array: np.ndarray) -> list[Any]:
        how = self.draws.one_of(["fixed", "named", "unknown", "mixed"])
        if how == "mixed":
            return [n if self.draws.chance() else None for n in array.shape]
        return [n if how == "fixed" else f"n{n}" if how == "named" else None for n in array.shape]

    def _surrounded(self, node: Any, results: list[str]) -> list[str]:
        """Add the node as it is, in a branch, or in a loop whose rounds are stacked; the names of the results."""
        how = self.draws.one_of(["plain", "plain", "plain", "branch", "loop"])
        how = "plain" if how == "loop" and self.version < _LOOPS else how
        infos = [onnx.ValueInfoProto(name=name) for name in results]
        outer = [f"{name}_of" for name in results]
        if how == "plain":
            self._nodes.append(node)
            return results
        if how == "branch":
            self.arguments["flag"] = np.array(self.draws.chance())
            self._inputs.append(helper.make_tensor_value_info("flag", TensorProto.BOOL, []))
            branches = {f"{k}_branch": helper.make_graph([node], k, [], infos) for k in ("then", "else")}
            self._nodes.append(helper.make_node("If", ["flag"], outer, **branches))
            return outer
        self.rounds = self.draws.one_of([1, 2, 11])
        counts = [
            helper.make_tensor_value_info("round", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
        ]
        keep = helper.make_node("Identity", ["on"], ["still"])
        body = helper.make_graph([node, keep], "body", counts, [onnx.ValueInfoProto(name="still"), *infos])
        self._weights.append(numpy_helper.from_array(np.array(self.rounds), "rounds"))
        self._weights.append(numpy_helper.from_array(np.array(True), "first"))
        self._nodes.append(helper.make_node("Loop", ["rounds", "first"], outer, body=body))
        return outer

    def typed(self, outputs: list[np.ndarray]) -> None:
        """Say the types of outputs, which checks and runtimes ask for."""
        infos = {}
        for info, value in zip(self.model.graph.output, outputs, strict=True):
            array = np.asarray(value)
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            infos[info.name] = kind, array.ndim
            info.CopyFrom(helper.make_tensor_value_info(info.name, kind, [None] * array.ndim))
        for node in self.model.graph.node:
            for attribute in node.attribute:
                for info in attribute.g.output:
                    kind, rank = infos.get(f"{info.name}_of", (TensorProto.BOOL, 0))
                    rank -= node.op_type == "Loop" and info.name != "still"
                    info.CopyFrom(helper.make_tensor_value_info(info.name, kind, [None] * rank))

    def by_rank(self) -> list[np.ndarray]:
        """Arrays of the types that shape inference tells, of which runtimes ask."""
        inferred = onnx.shape_inference.infer_shapes(self.model)
        arrays = []
        for info in inferred.graph.output:
            tensor = info.type.tensor_type
            kind = tensor.elem_type or TensorProto.FLOAT
            arrays.append(np.zeros((1,) * len(tensor.shape.dim), helper.tensor_dtype_to_np_dtype(kind)))
        return arrays

    def unrolled(self) -> onnx.ModelProto:
        """The model with the body of its loop in the place of the loop, whose outputs the evaluator joins wrongly."""
        model = onnx.ModelProto()
        model.CopyFrom(self.model)
        if self.rounds:
            node = model.graph.node.pop().attribute[0].g.node[0]
            model.graph.node.append(node)
            for info, name in zip(model.graph.output, node.output, strict=True):
                rank = len(info.type.tensor_type.shape.dim) - 1
                kind = info.type.tensor_type.elem_type
                info.CopyFrom(helper.make_tensor_value_info(name, kind, [None] * rank))
        return model

    def _stacked(self, results: list[Any]) -> list[Any]:
        return [np.stack([y] * self.rounds) for y in results] if self.rounds else results

    def evaluated(self) -> list[Any]:
        from onnx.reference import ReferenceEvaluator

        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._stacked(list(ReferenceEvaluator(self.unrolled()).run(None, dict(self.arguments))))

    def of_runtime(self) -> list[Any]:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level, options.intra_op_num_threads = 4, 1
        model = self.unrolled()
        model.opset_import[0].version = min(self.version, max(_RUNTIME_VERSION, self.drawn.first))
        model.ir_version = min(model.ir_version, 10)
        session = onnxruntime.InferenceSession(model.SerializeToString(), options)
        return self._stacked(session.run(None, dict(self.arguments)))

    def ours(self) -> tuple[list[list[Any]], Any]:
        """The results of three calls, and the state of the function behind them."""
        if self.draws.chance(0.05):
            return self._of_file()
        prepared = PreparedModel(self.model)
        calls = [list(prepared.run([], **self.arguments)) for _ in range(3)]
        return calls, prepared.function.state()

    def _of_file(self) -> tuple[list[list[Any]], Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "model.onnx")
            model = onnx.ModelProto()
            model.CopyFrom(self.model)  # saving takes the weights out of it
            onnx.save(model, path, save_as_external_data=True, size_threshold=0, location="weights")
            function = pf.load(path, background=False)
            calls = [function(**self.arguments) for _ in range(3)]
            return [list(c) if isinstance(c, tuple) else [c] for c in calls], function.state()


def unlike(found: list[Any], wanted: list[Any], tolerance: float) -> str:
    """What differs, in words."""
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        a, b = np.asarray(a), np.asarray(b)
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            return f"result {k} is {a.dtype}{a.shape}, not {b.dtype}{b.shape}"
        if b.dtype.kind in "biu":
            if not np.array_equal(a, b):
                return f"result {k} is {a.tolist()}, not {b.tolist()}"
            continue
        rtol = tolerance * _TOLERANCES.get(b.dtype.itemsize, 1e-2)
        with np.errstate(all="ignore"):
            a, b = a.astype(np.float64), b.astype(np.float64)
            largest = float(np.abs(b[np.isfinite(b)]).max(initial=1.0))
            if not np.allclose(a, b, rtol=rtol, atol=rtol * largest, equal_nan=True):
                return f"result {k} is {a.tolist()}, not {b.tolist()}"
    return ""


def outcome(number: int, seed: int, only: str = "") -> tuple[str, str]:
    """``"agrees"``, ``"skipped"``, ``"refused"``, ``"evaluator"`` or ``"differs"``, and what was drawn, or why."""
    makers = [m for m in MAKERS if only in m.__name__]
    draws = Draws([seed, number])
    drawn = makers[number % len(makers)](draws)
    if drawn is None:
        return "skipped", "nothing drawn"
    source = OperatorModel(drawn, draws)
    shown = ", ".join("-" if x is None else str(np.asarray(getattr(x, "value", x)).shape) for x in drawn.operands)
    dtype = next((np.asarray(getattr(x, "value", x)).dtype for x in drawn.operands if x is not None), "")
    attributes = {k: v for k, v in drawn.attributes.items() if not isinstance(v, TensorProto)}
    around = source.model.graph.node[-1].op_type
    text = f"{drawn.op}-{source.version} ({shown}) {dtype} {attributes} in {around} of {[*source.arguments]}"
    wanted, reason = _answer(source.evaluated)
    by_runtime = wanted is None
    if by_runtime:
        source.typed(source.by_rank())
        wanted, other = _answer(source.of_runtime)
        reason = f"{reason}; onnxruntime: {other}"
    if wanted is None:
        return "skipped", f"{drawn.op}: {reason}"
    if drawn.domain == TRAINING:  # the evaluator's numbers of Python make f64 of f32
        wanted = [np.asarray(y, np.float32) for y in wanted]
    source.typed(wanted)
    try:
        calls, state = source.ours()
    except pf.ProfuseError as error:
        if type(error).__name__ in ("TraceError", "DTypeError"):
            return "refused", f"{drawn.op}: {str(error).splitlines()[0][:150]}"
        return "differs", f"{text}: {type(error).__name__}: {error}"
    except Exception as error:
        return "differs", f"{text}: {type(error).__name__}: {str(error)[:300]}"
    # The evaluator computes these in f32.
    tolerance = 1e4 if drawn.op in ("Erf", "Gelu") and wanted[0].dtype == np.float64 else drawn.tolerance
    for found in calls:
        difference = unlike(found, wanted, tolerance)
        if not difference:
            continue
        runtime, reason = (None, "") if by_runtime else _answer(source.of_runtime)
        if runtime is not None and not unlike(found, runtime, drawn.tolerance):
            return "evaluator", f"{drawn.op}"
        return "differs", f"{text}: {difference[:500]}; onnxruntime: {str(runtime)[:200]} {reason}"
    if state.tier != "optimized" or state.counters.get("python_calls", 0):
        return "differs", f"{text}: tier {state.tier}, {state.counters.get('python_calls', 0)} calls of Python"
    return "agrees", drawn.op


def _answer(function: Callable[[], list[Any]]) -> tuple[list[Any] | None, str]:
    """What a system gives, or None and why it fails."""
    try:
        return function(), ""
    except Exception as error:
        return None, f"{type(error).__name__}: {str(error)[:150]}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    assert NEWEST >= 24
    counts: collections.Counter[str] = collections.Counter()
    reasons: collections.Counter[str] = collections.Counter()
    for number in range(options.first, options.first + options.count):
        kind, text = outcome(number, options.seed, options.only)
        counts[kind] += 1
        if kind == "differs":
            print(f"{options.seed}/{number} {text}", flush=True)
        elif kind != "agrees":
            reasons[f"{kind}: {text}"] += 1
    for text, count in sorted(reasons.items()):
        print(f"  {count} {text}")
    print(dict(counts))
    return 1 if counts["differs"] else 0


if __name__ == "__main__":
    sys.exit(main())
