"""Compiling for a device: what a request says, what an artefact holds, what the disk keeps."""

import json
import pickle
from dataclasses import replace

import fakelib as xp
import numpy as np
import profuse as pf
import pytest
from cached_graphs import caching_in
from graphs import Graph, tensor
from internals import executor_of
from profuse.dialect.errors import LoweringError
from profuse.executor.compile.cache.cache_key import key_of
from profuse.executor.compile.cache.codec import from_sections, to_sections
from profuse.executor.compile.compiler import compile_graph
from profuse.executor.cuda.device_target import device_target
from profuse.lowering.gpu.artifact import GpuArtifact
from profuse.lowering.gpu.gpu_stages import compile_image
from profuse.lowering.gpu.ptxas import find_ptxas
from profuse.lowering.placement import compile_for
from profuse.lowering.target import host_target
from support import counts, host


def product_graph():
    """A function of launches, choices and a library product."""
    g = Graph(tensor("n", 64), tensor(64, 64))
    return g.returning(g.exp(g.matmul(*g.inputs)))


def _has_ptxas():
    try:
        return bool(find_ptxas())
    except LoweringError:
        return False


needs_ptxas = pytest.mark.skipif(not _has_ptxas(), reason="needs profuse[cuda]")


def test_artefacts_survive_a_round_trip():
    made = compile_image(product_graph(), "sm_90", "gpu")
    again = GpuArtifact.from_header(json.loads(json.dumps(made.header())), made.code)
    assert again == made
    assert again.library_calls == 1
    assert made.code.decode().startswith("module")
    assert pickle.loads(pickle.dumps(made)) == made


def test_the_request_names_the_chip_and_what_its_driver_loads(device):
    f = pf.jit(lambda x: x * 2 + 1)
    x = xp.array(host(4))
    f(x)
    f(x)
    executor = executor_of(f)
    target = executor.request.target
    assert (target.gpu, target.gpu_image) == ("sm_90", "gpu")
    assert replace(target, gpu="", gpu_image="") == host_target()
    request = pickle.loads(pickle.dumps(executor.request))
    kernels = compile_graph(request).kernels
    assert kernels.keys() == executor.result.kernels.keys()
    other = replace(request, target=replace(target, gpu="sm_100"))
    assert key_of(request).differing(key_of(other)) == ["gpu"]


def test_results_survive_the_cache_format(device):
    f = pf.jit(lambda x: x * 2 + 1)
    x = xp.array(host(4))
    f(x)
    f(x)
    executor = executor_of(f)
    made = executor.result
    assert from_sections(to_sections(made)).kernels == made.kernels


def test_a_later_function_finds_its_kernels_on_disk(device, tmp_path):
    x = host(4, 8)
    with caching_in(tmp_path / "cache"):
        for hit in (0, 1):
            f = pf.jit(lambda x: np.exp(x) * 2)
            for _ in range(2):
                got = f(xp.array(x))
            np.testing.assert_allclose(got.get(), np.exp(x) * 2, rtol=1e-5)
            assert counts(f, "disk_hits", "disk_misses") == [hit, 1 - hit]
            # With the profile found too, the first call runs the kernel.
            assert counts(f, "profiles_restored", "kernel_launches") == [hit, 1 + hit]


def test_profiles_of_the_host_are_not_the_devices(device, tmp_path):
    x = host(4, 8)
    with caching_in(tmp_path / "cache"):
        for given in (x, xp.array(x)):
            f = pf.jit(lambda x: np.exp(x) * 2)
            for _ in range(2):
                f(given)
            assert counts(f, "profiles_restored", "profiled_runs", "guard_misses") == [0, 1, 0]


def test_stages_of_a_kernel(device):
    f = pf.jit(lambda x: np.exp(x) * 2)
    x = xp.array(host(4))
    f(x)
    f(x)
    assert "gpu.module" in f.ir("gpu")
    assert "linalg.generic" in f.ir("linalg")


def test_without_a_chip_functions_for_a_device_are_refused():
    g = Graph(replace(tensor(4), device="cuda:0"))
    with pytest.raises(LoweringError, match="there is none to compile for"):
        compile_for(g.returning(g.exp(*g.inputs)), host_target())


def test_without_an_assembler_kernels_stay_ptx(device, monkeypatch):
    def missing():
        raise LoweringError("there is no ptxas")

    monkeypatch.setattr("profuse.executor.cuda.device_target.find_ptxas", missing)
    device.image = "cubin"
    target = device_target("cuda:0")
    assert target.gpu_image == "ptx"
    made = compile_for(replace_device(product_graph()), target)
    assert b".target sm_90" in made.code
    assert made.usage == {}


def replace_device(program):
    for value in program.inputs:
        program.types[value] = replace(program.types[value], device="cuda:0")
    return program


@needs_ptxas
def test_explain_and_state_show_what_ptxas_reports(device):
    device.image = "cubin"
    device.load = lambda index, image: image[:4]
    device.function = lambda module, name: (module, name)
    device.launch = lambda *args: None
    f = pf.jit(lambda x: np.exp(x) * 2, name="used")
    x = xp.array(host(64))
    f(x)
    f(x)
    (made,) = f.state().specializations
    assert made.usage.keys() == {"fusion_0_nest0", "fusion_0_nest0_general"}
    usage = made.usage["fusion_0_nest0"]
    assert usage.spilled == 0 < usage.registers
    text = f"fusion_0_nest0: {usage.registers} registers, 0 bytes spilled, 0 bytes of stack"
    assert text in f.explain()


def test_a_worker_compiles_for_the_device_while_calls_go_on(device):
    f = pf.jit(lambda x: np.exp(x) * 2, background=True)
    x = host(4, 8)
    for _ in range(2):
        np.testing.assert_allclose(f(xp.array(x)).get(), np.exp(x) * 2, rtol=1e-5)
    assert f.wait(60)
    np.testing.assert_allclose(f(xp.array(x)).get(), np.exp(x) * 2, rtol=1e-5)
    assert counts(f, "compiles", "kernel_launches", "in_process_compiles") == [1, 1, 0]
