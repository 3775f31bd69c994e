"""Kernels of loops with a thread for each round: machine code, and what the compiler is asked."""

from pathlib import Path

import numpy as np
import pytest
from emulation import Emulated
from needs import needs_ptxas
from profuse.dialect.mlir.decode import decode_module
from profuse.dialect.mlir.parse import parse_module
from profuse.lowering.gpu.gpu_stages import compile_gpu

GRAPHS = Path(__file__).parent / "loops.mlir"


@pytest.fixture(scope="module")
def programs():
    module = decode_module(parse_module(GRAPHS.read_text(), str(GRAPHS)))
    return {p.name: p for p in (module.main, *module.functions.values())}


@pytest.mark.sampled(3)
@needs_ptxas
@pytest.mark.parametrize("chip", ["sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", ["scaled", "picked", "rows"])
def test_machine_code(programs, name, chip):
    artifact = compile_gpu(programs[name], chip)
    assert artifact.code.startswith(b"\x7fELF")
    assert set(artifact.usage) == {step.kernel for step in artifact.plan.steps}
    assert not any(usage.spilled for usage in artifact.usage.values())


def test_products_are_rounded_before_they_are_added(programs):
    ptx = compile_gpu(programs["scaled"], "sm_90", until="ptx", keep_stages=True).stages["ptx"]
    assert "mul.rn.f64" in ptx


def test_offsets_may_be_negative(programs):
    """Rows whose steps are negative begin behind the others: no address is known to grow."""
    x = np.random.default_rng(1).random((10, 32))[::-1]
    (found,) = Emulated(programs["rows"])(x)
    expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, 1e-14)
    ptx = compile_gpu(programs["rows"], "sm_90", until="ptx", keep_stages=True)
    assert "nuw" in ptx.stages["nvvm"]  # which MLIR says of every address
    assert "nuw" not in ptx.stages["ptx"]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("count", [0, 1, 127, 128, 129, 300])
def test_grids_are_as_large_as_the_loop(programs, count):
    kernels = Emulated(programs["rows"])
    x = np.random.default_rng(1).random((count, 32))
    (found,) = kernels(x)
    expected = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(found, expected, 1e-14)
    assert kernels.used == ({"rows_step0", "rows_step1"} if count else set())
    launches = list(kernels.plan.launches({"s0": count, "stride0_0": 32}, lambda *_: True))
    assert [launch.grid[0] for launch in launches[1:]] == [str(-(-count // 128))] * bool(count)


def test_a_forbidden_round_voids_the_run_and_no_other_reads_out_of_bounds(programs):
    kernels = Emulated(programs["picked"])
    x, at = np.arange(6.0), np.arange(200) % 12 - 6
    (found,) = kernels(x, at)
    assert found.tobytes() == x[at].tobytes()
    at[[7, 150]] = 6, -7
    with pytest.raises(AssertionError, match="out of range"):
        kernels(x, at)


def test_threads_set_the_flag_in_machine_code(programs):
    ptx = compile_gpu(programs["picked"], "sm_90", until="ptx", keep_stages=True).stages["ptx"]
    assert "st.global.b8" in ptx.split(".entry picked_step2(")[1]
