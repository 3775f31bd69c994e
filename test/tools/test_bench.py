"""Every kernel of the benchmarks, on a few elements: the results are NumPy's in float64."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))

from harness import libraries, roofline, session, systems, tables
from suite import KERNELS, TINY, Case, leaves

BENCH = Path(__file__).parents[2] / "bench"
MODES = ("static", "dynamic")
# The first dtype of a kernel in both modes, the others in one of them in turn.
PAIRS = [
    pytest.param(name, dtype, mode, id=f"{name}-{dtype}-{mode}")
    for name, kernel in KERNELS.items()
    for number, dtype in enumerate(kernel.dtypes)
    for mode in (MODES if not number else (MODES[number % 2],))
    # Compiles of some seconds that find what the forward pass and the other steps find.
    if (name, mode) not in {("transformer_training", "dynamic"), ("lstm_training", "dynamic")}
]


def exact(case: Case) -> tuple:
    """The results in float64."""
    with np.errstate(all="ignore"):
        return leaves(case.kernel.plain(libraries.numpy_library(), *case.exact_args()))


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("name", "dtype", "mode"), PAIRS)
def test_kernels_compute_what_numpy_computes(name, dtype, mode):
    case = Case(KERNELS[name], dtype, TINY)
    prepared = systems.SYSTEMS["ours" if mode == "static" else "ours-dynamic"](case)
    wanted = exact(case)
    with np.errstate(all="ignore"):
        for _ in range(3):
            error = case.error(prepared.results(prepared.call()), wanted)
            assert error <= 1, f"{error:.3g} times what is tolerated"


def test_the_set_covers_what_it_should():
    assert sum(kernel.group == "kernels" for kernel in KERNELS.values()) >= 40
    for kernel in KERNELS.values():
        sizes = [sum(a.nbytes for a in Case(kernel, d, TINY).args()) for d in kernel.dtypes]
        assert max(sizes) < 1 << 16, kernel.name


def test_operations_and_bytes_are_counted():
    case = Case(KERNELS["triad"], "f32", TINY)
    found, flops = roofline.counted(case.kernel.fn, libraries.numpy_library(), case.exact_args())
    elements = TINY.rows * TINY.columns
    assert flops == 2 * elements  # a product and a sum
    assert case.moved((np.empty_like(case.args()[0]),)) == 3 * 4 * elements
    np.testing.assert_allclose(np.asarray(found), exact(case)[0])


def test_errors_are_told():
    case = Case(KERNELS["triad"], "f32", TINY)
    right = exact(case)[0]
    assert case.error((right.astype(np.float32),), (right,)) <= 1
    assert case.error((right * 1.001,), (right,)) > 1
    assert case.error((right[:1],), (right,)) == float("inf")
    broken = right.copy()
    broken[0, 0] = np.nan
    assert case.error((broken,), (right,)) == float("inf")


def test_numexpr_gets_one_expression():
    args = Case(KERNELS["huber"], "f32", TINY).args()
    values = {f"a{k}": a for k, a in enumerate(args)}
    made = KERNELS["huber"].fn(
        libraries.numexpr_library(), *(libraries.Expression(n, values, args[0].dtype) for n in list(values))
    )
    scope = values | {"where": np.where, "abs": np.abs}
    found = eval(made.text, scope)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, KERNELS["huber"].fn(np, *args), rtol=1e-6)


def test_a_row_is_marked_by_its_worst_peer():
    row = {
        "kernel": "k",
        "dtype": "f32",
        "size": "cache",
        "threads": 1,
        "skipped": {},
        "steady": {},
        "seconds": {"ours": [1e-6] * 3, "jax": [5e-7] * 3},
        "ratios": {"jax": [0.5] * 3, "numpy": [3.0] * 3},
        "roof": {"seconds": 5e-7},
    }
    assert tables.mark(row) == "<<"
    assert tables.against_best(row) == 0.5
    assert "50%" in tables.line(row, ["ours", "numpy", "jax"])
    assert "slower in 1 of 1" in tables.summary([row])


def test_a_size_is_a_name_or_two_numbers():
    assert session.size_of("24x48")[1:] == (24, 48)
    with pytest.raises(ValueError, match="no size"):
        session.size_of("huge")


def test_a_run_goes_on_with_its_file(tmp_path):
    """What the file has is not measured again; the systems run in processes of their own."""
    file = tmp_path / "out.json"
    command = [
        sys.executable,
        str(BENCH / "kernels.py"),
        "--only",
        "^(huber|scatter_add) f32",
        "--sizes",
        "6x24",
        "--rounds",
        "2",
        "--peers",
        "numpy",
        "--json",
        str(file),
        "--no-dynamic",
    ]

    def run(*more: str) -> str:
        done = subprocess.run([*command, *more], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return done.stdout

    first = run()
    assert re.search(r"^\S* *huber +f32 +6x24", first, re.M)
    assert re.search(r"^\S* *scatter_add +f32 +6x24", first, re.M)
    before = file.read_text("utf-8")
    again = run("--budget", "0")
    assert "not measured within" not in again
    assert "huber" in again
    assert file.read_text("utf-8") == before


def test_products_are_measured_beside_the_library(tmp_path):
    file = tmp_path / "out.json"
    command = [sys.executable, str(BENCH / "products.py"), "--only", "f64 100x100x100"]
    done = subprocess.run([*command, "--rounds", "3", "--json", str(file)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines[:-1]] == ["product", "scaled", "layer", "gram"]
    assert re.search(r"us  NumPy +\d+\.\d\d .* library +\d\.\d\d$", lines[0])
    assert len(json.loads(file.read_text("utf-8"))["rows"]) == 4


def test_loops_are_compared_with_calls(tmp_path):
    """One kernel for all rounds of few elements, and the values of calls."""
    file = tmp_path / "out.json"
    command = [
        sys.executable,
        str(BENCH / "rounds.py"),
        "--only",
        "^(huber|histogram|all_finite)$",
        "--sizes",
        "6x24",
        "--rounds",
        "2",
        "--json",
        str(file),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^  .*one kernel$", done.stdout, re.M)) == 3
    rows = json.loads(file.read_text("utf-8"))["rows"]
    assert [row["kernel"] for row in rows] == ["huber", "histogram", "all_finite"]
    assert all(row["error"] <= 1 and row["python"] == 0 for row in rows)
    assert f"above 1.3 in {sum(row['ratio'][1] > 1.3 for row in rows)} of 3" in done.stdout
