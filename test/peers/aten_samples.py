"""Samples of torch's operator database as foreign graphs of ATen, run beside torch.

Run as a script, it renews counts; those of the repository take two processes a quarter of an hour:

    python test/peers/aten_samples.py --most 5 --compiled 1 --out test/peers/aten_counts.json

A sample counts as right where dtypes, shapes and values of all results are torch's: of the first few samples of each
operator and dtype on a compiled plan, of the others (all with EVERY_CASE) where its graph is computed by NumPy.
"""

from __future__ import annotations

import argparse
import functools
import json
import operator
import os
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.modules.setdefault("numba", None)  # type: ignore[arg-type]  # torch's tests would import it; it fails under coverage
import profuse as pf  # noqa: E402
import torch  # noqa: E402
from profuse.dialect.importers.foreign.aten.all_aten import ATEN  # noqa: E402
from profuse.dialect.importers.foreign.foreign_graph import ForeignBlock, ForeignGraph, ForeignNode, ValueRef  # noqa: E402
from profuse.dialect.importers.foreign.fx.fx_reader import named_operands, operator_name  # noqa: E402
from profuse.dialect.importers.foreign.imported_function import ImportedFunction  # noqa: E402
from profuse.dialect.importers.foreign.operator_table import OperatorTable  # noqa: E402
from torch._decomp import core_aten_decompositions  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.testing._internal.common_methods_invocations import op_db  # noqa: E402
from torch.utils import _pytree as pytree  # noqa: E402

COUNTS = Path(__file__).with_name("aten_counts.json")
DTYPES = (torch.float32, torch.float64, torch.int64, torch.bool)
TOLERANCES = {torch.float32: (1e-4, 1e-5), torch.float64: (1e-7, 1e-9), torch.complex64: (1e-4, 1e-5)}
TOLERANCES |= {torch.float16: (2e-3, 2e-3), torch.bfloat16: (1.6e-2, 1.6e-2)}
COMPILED = 1  # samples of each operator and dtype that run on a compiled plan
# Operators of graphs whose results are random, or not told: dtypes and shapes are compared alone.
RANDOM = frozenset(
    (
        *("bernoulli", "bernoulli_", "cauchy_", "dropout", "empty", "empty_like", "empty_permuted", "empty_strided"),
        *("exponential_", "geometric_", "log_normal_", "multinomial", "native_dropout", "new_empty"),
        *("new_empty_strided", "normal", "normal_", "normal_functional", "rand", "rand_like", "randint"),
        *("randint_like", "randn", "randn_like", "rrelu_with_noise", "uniform", "uniform_", "feature_dropout"),
        *("alpha_dropout", "feature_alpha_dropout"),
        *("bernoulli.p", "exponential", "cauchy", "geometric", "log_normal"),
    )
)
# Operators whose indices are not told where elements are equal: what they point at is compared.
TIES = frozenset(("argsort", "kthvalue", "median", "mode", "nanmedian", "sort", "topk"))
# Operators whose results have signs that are not told.
SIGNS = frozenset(("linalg_eig", "linalg_eigh", "_linalg_eigh", "linalg_qr", "_linalg_svd", "linalg_svd"))
# Functions that differ from torch's own approximations at large arguments.
LOOSE = {"special_bessel_j0": 1e-5, "special_bessel_j1": 1e-5, "special_bessel_y0": 1e-5, "special_bessel_y1": 1e-5}
# Functions whose numbers are as exact as the largest of them is.
SCALED = frozenset(("matrix_exp", "linalg_matrix_exp"))
_OF_TORCH = frozenset(("layout", "device", "pin_memory", "non_blocking", "generator", "requires_grad"))
_NUMPY = {getattr(torch, n): np.dtype(n) for n in ("uint8", "int8", "int16", "int32", "int64", "float16", "float32")}
_NUMPY[torch.bfloat16] = np.dtype(ml_dtypes.bfloat16)
_NUMPY |= {getattr(torch, n): np.dtype(n) for n in ("float64", "complex64", "complex128", "bool")}


class Refused(Exception):
    """A sample that cannot be imported, and why."""


TABLE = OperatorTable("ATen", base=ATEN)  # and what FX has for the parts of results
TABLE.register("getitem")(lambda call, parts, k: parts[k])


@functools.cache
def decompositions() -> dict[Any, Callable]:
    """torch's decompositions of what the table has not whole."""
    table = core_aten_decompositions()
    return {op: rule for op, rule in table.items() if not (isinstance(op, torch._ops.OpOverload) and _name(op) in ATEN)}


def _name(target: Any) -> str:
    if isinstance(target, torch._ops.OpOverload):
        return target.name().removeprefix("aten::").removesuffix(".default")
    if target is operator.getitem:
        return "getitem"
    return getattr(target, "__name__", str(target))


def _operand(x: Any, refs: dict[Any, ValueRef]) -> Any:
    if isinstance(x, torch.fx.Node):
        return refs[x]
    if isinstance(x, (list, tuple)):
        return tuple(_operand(y, refs) for y in x)
    if isinstance(x, torch.dtype):
        if x not in _NUMPY:
            raise Refused(f"dtype {x}")
        return _NUMPY[x]
    if isinstance(x, torch.memory_format):
        return str(x).removeprefix("torch.")
    return None if isinstance(x, (torch.layout, torch.device)) else x


def read(module: torch.fx.GraphModule) -> ForeignGraph:
    """A traced function as a foreign graph."""
    refs: dict[Any, ValueRef] = {}
    inputs, nodes, constants = [], [], {}
    outputs: tuple[Any, ...] = ()
    for node in module.graph.nodes:
        if node.op == "output":
            outputs = _operand(pytree.tree_leaves(node.args[0]), refs)
            continue
        number = len(refs)
        refs[node] = ValueRef(number)
        if node.op == "placeholder":
            inputs.append(number)
        elif node.op == "get_attr":
            constants[number] = operator.attrgetter(str(node.target))(module).detach().numpy()
        else:
            named = {k: _operand(x, refs) for k, x in named_operands(node).items() if k not in _OF_TORCH}
            name = operator_name(node) if operator_name(node).startswith("profuse::") else _name(node.target)
            nodes.append(ForeignNode(name, _operand(node.args, refs), named, (number,)))
    names = tuple(f"x{k}" for k in range(len(inputs)))
    return ForeignGraph("sample", ForeignBlock(tuple(inputs), nodes, outputs), names, constants, "a sample")


@dataclass
class Outcome:
    """What became of the samples of one operator.

    Attributes:
        right: samples whose results are torch's.
        compiled: those of them that ran on a compiled plan.
        refused: reasons, with the number of samples.
        wrong: what differs, a sentence for each sample.
        names: the operators of the table that graphs had.
    """

    right: int = 0
    compiled: int = 0
    refused: Counter = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)

    @property
    def is_whole(self) -> bool:
        return self.right > 0 and not self.refused and not self.wrong


def full_name(info: Any) -> str:
    return info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")


def samples(info: Any, dtype: torch.dtype) -> Iterator[Any]:
    """The samples of an operator, as functions of tensors alone, and the tensors."""
    # All at once: torch's generators cannot be ended while something else is traced.
    for sample in list(info.sample_inputs("cpu", dtype, requires_grad=False)):
        leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]

        def function(*given: Any, leaves: Any = leaves, spec: Any = spec) -> Any:
            parts = iter(given)
            first, args, kwargs = pytree.tree_unflatten(
                [next(parts) if isinstance(x, torch.Tensor) else x for x in leaves], spec
            )
            return info.op(first, *args, **kwargs)

        yield function, tensors


def graphs(function: Callable, tensors: list[Any]) -> Iterator[ForeignGraph]:
    """The graphs of a sample: with composite operators as they are called, then taken apart."""
    reason = ""
    for options in ({"pre_dispatch": True}, {"decomposition_table": decompositions()}):
        traced = function if "pre_dispatch" in options else torch.func.functionalize(function)
        try:
            module = make_fx(traced, _allow_non_fake_inputs=True, **options)(*[t.clone() for t in tensors])
            if traced is not function and any(map(_writes, module.graph.nodes)):  # some decompositions write
                again = torch.func.functionalize(module)
                module = make_fx(again, _allow_non_fake_inputs=True, **options)(*[t.clone() for t in tensors])
        except Refused:
            raise
        except Exception as error:
            reason = f"not traced by torch: {type(error).__name__}"
            continue
        module.graph.eliminate_dead_code()
        graph = read(module)
        missing = TABLE.missing(graph.body)
        if missing:
            reason = "not in the table: " + ", ".join(sorted({node.op.partition(".")[0] for node in missing}))
            continue
        yield graph
    if reason:
        raise Refused(reason)


def _writes(node: torch.fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable


def arrays_of(tensors: Any) -> list[np.ndarray]:
    plain = [t.detach().resolve_conj().resolve_neg() for t in tensors]
    half = torch.bfloat16
    return [t.view(torch.int16).numpy().view(_NUMPY[half]) if t.dtype == half else t.numpy() for t in plain]


@dataclass(frozen=True)
class Comparison:
    """How results are compared, by the operators of the graph that gives them.

    Attributes:
        names: the operators.
        inputs: of the graph.
    """

    names: frozenset[str]
    inputs: tuple[np.ndarray, ...]

    def differ(self, x: np.ndarray, y: np.ndarray, rtol: float, atol: float) -> bool:
        """True if the values of two arrays of one dtype and shape differ."""
        if self.names & RANDOM:
            return False
        if self.names & SIGNS:
            x, y = np.abs(x), np.abs(y)
        if self.names & SCALED and x.size:
            atol = max(atol, rtol * float(np.abs(y).max()))
        rtol = max([rtol, *(LOOSE[name] for name in self.names & LOOSE.keys())])
        if np.allclose(x, y, rtol, atol, equal_nan=True):
            return False
        return not (self.names & TIES and x.dtype == np.int64 and self._point_alike(x, y))

    def _point_alike(self, x: np.ndarray, y: np.ndarray) -> bool:
        source = self.inputs[0]
        for axis in range(source.ndim):
            for places in ((x, y), (np.expand_dims(x, axis), np.expand_dims(y, axis))):
                shapes = {(*p.shape[:axis], *p.shape[axis + 1 :]) for p in (places[0], source)}
                most = max(places[0].max(), places[1].max())
                if places[0].ndim == source.ndim and len(shapes) == 1 and most < source.shape[axis]:
                    first, second = (np.take_along_axis(source, p, axis) for p in places)
                    if np.array_equal(first, second, equal_nan=source.dtype.kind == "f"):
                        return True
        return False


def differs(results: Any, wanted: list[Any], comparison: Comparison) -> str:
    """What differs from torch's results; "" if nothing does."""
    found = pytree.tree_leaves(results)
    if len(found) != len(wanted):
        return f"{len(found)} results for {len(wanted)}"
    for k, (x, y) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(y, torch.Tensor):
            if x != y:
                return f"result {k} is {x!r} for {y!r}"
            continue
        x = np.asarray(x)
        if y.dtype not in _NUMPY or x.dtype != _NUMPY[y.dtype]:
            return f"dtype {x.dtype} for {y.dtype}"
        if x.shape != tuple(y.shape):
            return f"shape {x.shape} for {tuple(y.shape)}"
        rtol, atol = TOLERANCES.get(y.dtype, (1e-7, 1e-9) if y.dtype.is_complex else (0, 0))
        array = arrays_of([y])[0]
        if comparison.differ(x, array, rtol, atol):
            return f"values {np.ravel(x)[:3]} for {np.ravel(array)[:3]}"
    return ""


def run(function: Callable, tensors: list[Any], outcome: Outcome, compiles: bool) -> None:
    """Run one sample, and note what became of it."""
    try:
        with torch.no_grad():
            wanted = pytree.tree_leaves(function(*[t.clone() for t in tensors]))
        arrays = arrays_of(tensors)
    except Exception as error:
        outcome.refused[f"torch itself: {type(error).__name__}"] += 1
        return
    reason, has_run, has_compiled = "", False, False
    try:
        for graph in graphs(function, tensors):
            names = {node.op for node in graph.body.nodes}
            bases = frozenset(name.partition(".")[0] for name in names)
            if any(_is_random(node) for node in graph.body.nodes):
                bases |= {"dropout"}
            comparison = Comparison(bases, tuple(arrays))
            imported = ImportedFunction(graph, TABLE)
            try:
                difference = differs(imported(*[x.copy() for x in arrays]), wanted, comparison)
                if not difference and compiles and not has_compiled:
                    difference = _compiled(imported, arrays, wanted, comparison)
                    has_compiled = not difference
            except pf.ProfuseError as error:
                reason = f"{type(error).__name__}: {error.what if hasattr(error, 'what') else error}"[:160]
                continue
            except Exception as error:
                reason = f"{type(error).__name__}: {error}"[:160].replace("\n", " ")
                continue
            if difference:
                shapes = [(tuple(t.shape), str(t.dtype)[6:]) for t in tensors]
                outcome.wrong.append(f"{difference}; {shapes}; {[n.op for n in graph.body.nodes][:6]}")
                return
            has_run = True
            outcome.names |= names
    except Refused as refusal:
        reason = reason or str(refusal)
    outcome.right += has_run
    outcome.compiled += has_compiled
    if not has_run:
        outcome.refused[reason] += 1


def _is_random(node: ForeignNode) -> bool:
    """True for attention with a probability of dropout, and for random slopes."""
    if node.op == "rrelu":
        return bool(node.attributes.get("training") or (node.operands[3] if len(node.operands) > 3 else 0))
    if not node.op.startswith("scaled_dot_product_attention"):
        return False
    return bool(node.attributes.get("dropout_p") or (node.operands[4] if len(node.operands) > 4 else 0))


def _compiled(imported: ImportedFunction, arrays: list[np.ndarray], wanted: list[Any], comparison: Comparison) -> str:
    compiled = pf.jit(imported, unsupported="raise", background=False)
    for _ in range(3):
        difference = differs(compiled(*[x.copy() for x in arrays]), wanted, comparison)
        if difference:
            return f"compiled: {difference}"
    if compiled.state().counters.get("python_calls", 0):
        raise Refused("it runs in Python")
    return ""


def outcome_of(
    info: Any,
    most: int | None = None,
    compiled: int | None = COMPILED,
    dtypes: tuple[torch.dtype, ...] = DTYPES,
    until_wrong: bool = False,
) -> Outcome:
    """Run the samples of an operator.

    Args:
        info: the operator in torch's database.
        most: samples of each dtype; None = all.
        compiled: the first so many of each dtype run on a compiled plan; None = all.
        dtypes: of samples; complex64 where an operator has none of these.
        until_wrong: end with the first sample that is not right.
    """
    outcome = Outcome()
    supported = info.supported_dtypes("cpu")
    for dtype in [dtype for dtype in dtypes if dtype in supported] or sorted(supported & {torch.complex64}, key=str):
        torch.manual_seed(0)
        for number, (function, tensors) in enumerate(samples(info, dtype)):
            if number == most or (until_wrong and (outcome.wrong or outcome.refused)):
                break
            run(function, tensors, outcome, compiled is None or number < compiled)
    return outcome


def entry_of(outcome: Outcome, most: int | None, compiled: int | None) -> dict[str, Any]:
    """An outcome as the file of counts has it."""
    return {
        "right": outcome.right,
        "compiled": outcome.compiled,
        "refused": dict(outcome.refused),
        "wrong": outcome.wrong[:5],
        "names": sorted(outcome.names),
        "most": most,
        "most_compiled": compiled,
    }


def summary(entries: dict[str, dict[str, Any]]) -> str:
    """What the file of counts says in a sentence."""
    whole = sum(e["right"] > 0 and not e["refused"] and not e["wrong"] for e in entries.values())
    wrong = sum(bool(e["wrong"]) for e in entries.values())
    right, compiled = (sum(e[key] for e in entries.values()) for key in ("right", "compiled"))
    return f"{len(entries)} operators: {whole} whole, {wrong} wrong; {right} samples right, {compiled} of them compiled"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="0/1", help="the first of so many parts is 0/N")
    parser.add_argument("--names", nargs="*", help="operators of torch's database; all of them by default")
    parser.add_argument("--most", type=int, help="samples of each operator and dtype; all of them by default")
    parser.add_argument("--compiled", type=int, default=COMPILED, help="samples of each that run on a compiled plan")
    parser.add_argument("--out", type=Path, help="a file that gets the counts, beside those that it has")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    infos = [i for i in op_db if not options.names or full_name(i) in options.names][part::parts]
    entries: dict[str, Any] = json.loads(options.out.read_text("utf-8")) if options.out and options.out.exists() else {}
    for info in infos:
        try:
            outcome = outcome_of(info, options.most, options.compiled)
        except Exception as error:  # of torch's own samples
            outcome = Outcome()
            outcome.refused[f"no samples: {type(error).__name__}"] += 1
        entries[full_name(info)] = entry_of(outcome, options.most, options.compiled)
        if options.out:
            lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(entries.items()))
            options.out.write_text(f"{{\n{lines}\n}}\n", "utf-8")
        if outcome.refused or outcome.wrong:
            print(full_name(info), outcome.right, dict(outcome.refused.most_common(3)), outcome.wrong[:3], flush=True)
    print(summary(entries))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    os.environ.setdefault("PROFUSE_CACHE", "off")
    torch.set_num_threads(1)
    main()
