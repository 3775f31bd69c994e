"""The time that a guarded launch on torch tensors costs the host, without a GPU: all but the driver's part.

Tensors are torch's CPU tensors, in place of a GPU's, and what stands for `cuLaunchKernel` returns
at once; all else is what runs for a GPU: reading tensors, guards, the choice of the kernel, its
arguments, and torch's allocation of the result, which is timed by itself, too. Nothing is computed.
`bench/gpu.py` times whole calls where there is a GPU.

    python bench/device_dispatch.py [--calls 2000] [--rounds 40] [--json out.json]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import one_core  # noqa: F401  (first: before threads are made)

from common import write_results  # isort: skip

import numpy as np  # isort: skip
import profuse as pf  # isort: skip
import torch  # isort: skip
from profuse.executor.cuda.exchange import dlpack_exchange as exchange, libraries  # isort: skip
from profuse.executor.exchange import dlpack, host_tensors  # isort: skip
from profuse.executor.cuda.nvidia.driver import using  # isort: skip
from profuse.executor.cuda.nvidia.driver_api import Direct, LaunchNode  # isort: skip
from profuse.executor.cuda.exchange.libraries import DeviceMemory, Torch  # isort: skip
from profuse.lowering.cpu.codegen import PLAIN, object_code  # isort: skip
from profuse.lowering.cpu.loader import load_code  # isort: skip
from profuse.lowering.target import host_target  # isort: skip

CPU, CONTEXT = 1, 77  # kDLCPU; any number


def function(body: str):
    """A C function of machine code."""
    text = f"define i32 @entry(ptr %a) {{\n{body}\nret i32 0\n}}"
    return load_code(object_code(text, host_target(), PLAIN), "entry")


class NoDriver:
    """Loads nothing, launches nothing."""

    image = "ptx"

    def __init__(self) -> None:
        self._launch, self._current = function(""), function(f"store i64 {CONTEXT}, ptr %a")

    def device_count(self) -> int:
        return 1

    def chip(self, device: int) -> str:
        return "sm_90"

    def load(self, device: int, image: bytes) -> object:
        return object()

    def function(self, module: object, name: str) -> object:
        return object()

    def launch(self, device: int, node: LaunchNode, stream: int) -> None:
        pass

    def direct(self, device: int) -> Direct:
        return Direct(self._launch.address, self._current.address, CONTEXT)

    def handle(self, device: int, function: object, shared: int | None) -> int:
        return 4096


class CpuTorch(Torch):
    """Takes torch's CPU tensors for those of device 0."""

    def place(self, array: torch.Tensor) -> DeviceMemory:
        on_device = array.is_cuda, array.requires_grad, array.is_neg(), array.device.index
        assert on_device == (False, False, False, None)
        dtype = self._numpy(array.dtype)
        strides = tuple(s * dtype.itemsize for s in array.stride())
        return DeviceMemory(0, array.data_ptr(), tuple(array.shape), strides, dtype, None, array)

    def exchange(self) -> exchange.Exchange:
        describe, stream = exchange.functions_of(torch.Tensor)
        return exchange.Exchange(
            torch.Tensor,
            describe,
            stream,
            torch.empty_strided,
            ("dtype", "device"),
            lambda dtype, index: (self._torch(dtype), torch.device("cpu")),
            false=("requires_grad",),
            negative=("is_neg",),
        )

    def stream(self, index: int) -> int:
        return 1

    def empty(self, index, shape, dtype, stream):
        made = torch.empty(shape, dtype=self._torch(dtype), device="cpu")
        return made, made.data_ptr()

    def to_host(self, place: DeviceMemory, stream: int) -> np.ndarray:
        return place.holder.numpy()

    def from_host(self, array: np.ndarray, index: int, stream: int):
        made = torch.from_numpy(np.array(array))
        return made, made.data_ptr()


def cost(call: Callable[[], object], calls: int) -> float:
    """Microseconds per call."""
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--json")
    args = parser.parse_args()
    dlpack.CUDA, host_tensors.CPU = CPU, -1  # no tensor is one of the host
    libraries._SPECIAL["torch"] = CpuTorch
    x, b = torch.rand(64, 64), torch.rand(64)
    with using(NoDriver()):
        f = pf.jit(lambda x, b: np.tanh((x + b) * 0.8) * x, background=False)
        for _ in range(4):
            f(x, b)
        assert f.native is not None, f.explain()
        systems: dict[str, Callable[[], object]] = {
            "profuse": lambda: f(x, b),
            "profuse, Python dispatcher": lambda: f._call_python((x, b), {}),
            "torch.empty_strided alone": lambda: torch.empty_strided(
                (64, 64), (64, 1), dtype=torch.float32, device="cpu"
            ),
        }
        found: dict[str, list[float]] = {name: [] for name in systems}
        for _ in range(args.rounds):
            for name, call in systems.items():
                found[name].append(cost(call, args.calls))
    rows = {}
    for name, times in found.items():
        low, middle, high = statistics.quantiles(times, n=4)
        rows[name] = {"median_us": middle, "quartiles_us": [low, high]}
        print(f"{name:28} {middle:6.2f} us  [{low:.2f} - {high:.2f}]")
    write_results(args.json, what="host cost of a guarded launch, driver excluded", rows=rows)


if __name__ == "__main__":
    main()
