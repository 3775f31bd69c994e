"""From launch plans to launches: laid out once per set of sizes; each call only sets pointers."""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import field
from typing import Any

import numpy as np

from ....dialect.dataclass import dataclass
from ....dialect.ir.device import index_of
from ....dialect.ir.dtypes import dtype_named
from ....dialect.ir.size_algebra import parse_dim
from ....dialect.ir.symbolic import evaluate
from ....lowering.gpu.artifact import GpuArtifact
from ....lowering.gpu.launch_plan import Launch, LibraryProduct, stride_name
from ...memory.offsets import Refused
from ..active_call import current_call
from ..call import DeviceCall
from ..exchange.arrays import DeviceArray
from ..nvidia.driver import driver, module_of
from ..nvidia.driver_api import DriverError, LaunchNode
from .argument_block import ArgumentBlock, float_bits
from .device_plans import DeviceKernel
from .library_products import SizedProduct, sized_product

_MOST_SIZES = 64  # sets of sizes whose launches are kept per kernel


@dataclass
class _Prepared:
    """One launch for certain sizes.

    Attributes:
        function: the driver's kernel.
        grid, block: numbers of blocks and of threads along x, y and z.
        shared: bytes of dynamic shared memory.
        constants: values of the arguments that depend only on sizes; 0 for the others.
        pointers: (slot, kind, number, byte offset) of the arguments that change with each call.
        free: argument blocks that no launch uses at the moment.
    """

    function: Any
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    constants: list[int]
    pointers: list[tuple[int, str, int, int]]
    free: list[ArgumentBlock] = field(default_factory=list)


@dataclass
class _SizedLaunch:
    """A launch plan for certain sizes.

    Attributes:
        steps: prepared launches and products; None = a product without elements.
        outputs: shape and dtype of each output.
        workspace: bytes of workspace.
    """

    steps: list[_Prepared | SizedProduct | None]
    outputs: list[tuple[tuple[int, ...], np.dtype]]
    workspace: int


class GroupRunner:
    """Runs the kernels of one fusion function on its operands.

    Args:
        artifact: the machine code and its launch plan.
        device: the device's name, such as ``"cuda:0"``.
        interpreted: computes the group op by op. It is called after a voided launch, and instead of
            a launch with an int of more than 64 bits.
    """

    def __init__(self, artifact: GpuArtifact, device: str, interpreted: Callable[..., Any]) -> None:
        self.artifact, self.device, self.interpreted = artifact, device, interpreted
        self.index = index_of(device)
        self._abi = artifact.plan.abi
        # Per input: the dtype if it is a Python number, None if it is a tensor.
        self._numbers = [s.dtype if s.kind == "scalar" else None for s in self._abi.inputs]
        self._functions: dict[str, Any] = {}
        self._sized: OrderedDict[tuple, _SizedLaunch] = OrderedDict()
        self._tested = sorted({(int(c.subject), c.number) for c in artifact.plan.conditions() if c.kind == "aligned"})

    def native(self) -> DeviceKernel:
        """The description with which emitted code launches the group.

        Raises Refused if the driver does not give the addresses of its functions.
        """

        def handle(kernel: str, shared: int | None) -> int:
            return driver().handle(self.index, self._function(kernel), shared)

        plan = self.artifact.plan
        try:
            direct = driver().direct(self.index)
        except DriverError as error:
            raise Refused(error.what) from None
        return DeviceKernel(plan.abi, plan.steps, self.device, handle, direct, self._starter)

    def __call__(self, *args: Any) -> Any:
        """Start the kernels; returns the result, or a tuple of several. Raises DriverError."""
        if any(type(a) is int and not -(2**63) <= a < 2**63 for a in args):
            return self.interpreted(*args)  # kernels take no larger integers
        call = current_call()
        arrays = [
            arg if number or type(arg) is DeviceArray else self._array(arg, call)
            for arg, number in zip(args, self._numbers, strict=True)
        ]
        # The arrays must outlive the pointers: `pointer` may copy a result of tier 0 to the device.
        inputs = [
            _scalar_bits(arg, number) if number else arg.pointer(call)
            for arg, number in zip(arrays, self._numbers, strict=True)
        ]
        sized = self._for_sizes(arrays, inputs)
        outputs = [call.empty(self.index, shape, dtype) for shape, dtype in sized.outputs]
        pointers = {"input": inputs, "output": [o.pointer(call) for o in outputs], "workspace": [0]}
        owners: list[Any] = [*arrays, *outputs]
        if sized.workspace:
            space = call.empty(self.index, (sized.workspace,), np.dtype(np.uint8))
            pointers["workspace"] = [space.pointer(call)]
            owners.append(space)
        call.keep(owners)
        for step in sized.steps:
            if isinstance(step, _Prepared):
                call.launch(self.index, _node(step, pointers))
            elif step is not None:
                places = (pointers[kind][0 if kind == "workspace" else what] for kind, what, *_ in step.operands)
                call.product(self.index, step.at(*places))
        return self._results(outputs, args, call)

    def _array(self, value: Any, call: DeviceCall) -> DeviceArray:
        """A host operand as a device array; guards accept host tensors of rank 0."""
        return DeviceArray.of_host(np.asarray(value), self.device, call.library)

    def _results(self, outputs: list[DeviceArray], args: tuple, call: DeviceCall) -> Any:
        results = []
        for output, spec in zip(outputs, self._abi.outputs, strict=True):
            if spec.kind != "violation":
                results.append(output)
            elif output.on_host(call)[()]:
                call.counters.voided_launches += 1
                return self.interpreted(*args)
        return results[0] if len(results) == 1 else tuple(results)

    # --- sizes ------------------------------------------------------------------------------

    def _for_sizes(self, arrays: list[Any], inputs: list[int]) -> _SizedLaunch:
        values = self._values(arrays)
        aligned = tuple(inputs[k] % number == 0 for k, number in self._tested)
        key = (*values.values(), *aligned)
        sized = self._sized.get(key)
        if sized is None:
            sized = self._sized[key] = self._prepare(values, aligned)
            while len(self._sized) > _MOST_SIZES:
                self._sized.popitem(last=False)
        return sized

    def _values(self, arrays: list[Any]) -> dict[str, int]:
        """The values of size symbols and run-time strides (in elements) in this call."""
        values = self._abi.sizes(lambda k, axis: arrays[k].shape[axis])
        for k, axis in self._abi.strides:
            values[stride_name(k, axis)] = arrays[k].strides[axis] // arrays[k].itemsize
        return values

    def _prepare(self, values: dict[str, int], aligned: tuple[bool, ...]) -> _SizedLaunch:
        def size(text: str) -> int:
            return evaluate(parse_dim(text), values)

        holds = dict(zip(self._tested, aligned, strict=True))
        chosen = self.artifact.plan.launches(values, lambda k, number: holds[k, number])
        steps = [self._launch(step, size) if isinstance(step, Launch) else sized_product(step, size) for step in chosen]
        outputs = [(tuple(map(size, spec.dims)), dtype_named(spec.dtype).numpy) for spec in self._abi.outputs]
        return _SizedLaunch(steps, outputs, size(self._abi.workspace))

    def _launch(self, launch: Launch, size: Callable[[str], int]) -> _Prepared:
        constants = [0] * len(launch.arguments)
        pointers: list[tuple[int, str, int, int]] = []
        for slot, argument in enumerate(launch.arguments):
            kind, what = argument[0], argument[1]
            if kind == "size":
                constants[slot] = size(what)
            elif kind == "stride":
                constants[slot] = size(stride_name(what, argument[2]))
            elif kind == "workspace":
                pointers.append((slot, kind, 0, size(what)))
            else:
                pointers.append((slot, "input" if kind == "scalar" else kind, what, 0))
        x, y, z = (int(n) for n in launch.grid)
        bx, by, bz = (int(n) for n in launch.block)
        return _Prepared(
            self._function(launch.kernel), (x, y, z), (bx, by, bz), size(launch.shared), constants, pointers
        )

    def _function(self, name: str) -> Any:
        if name not in self._functions:
            module = module_of(self.index, self.artifact.code)
            self._functions[name] = driver().function(module, name)
        return self._functions[name]

    def _starter(self, product: LibraryProduct) -> Callable[..., None]:
        """A function that starts a library product; it raises DriverError.

        Its arguments are the stream, the addresses of the operands, and the values of size symbols
        and run-time strides in the order of the ABI.
        """
        names = (*self._abi.symbols, *(stride_name(*stride) for stride in self._abi.strides))
        count = len(product.operands)

        @functools.lru_cache(maxsize=_MOST_SIZES)
        def sized(*values: int) -> SizedProduct | None:
            sizes = dict(zip(names, values, strict=True))
            return sized_product(product, lambda text: evaluate(parse_dim(text), sizes))

        def start(stream: int, *numbers: int) -> None:
            call = sized(*numbers[count:])
            if call is not None:
                driver().product(self.index, call.at(*numbers[:count]), stream)

        return start


def _node(step: _Prepared, pointers: dict[str, list[int]]) -> LaunchNode:
    """A prepared launch with the pointers of this call."""
    block = step.free.pop() if step.free else ArgumentBlock(step.constants)
    values = block.values
    for slot, kind, number, offset in step.pointers:
        values[slot] = pointers[kind][number] + offset
    return LaunchNode(step.function, step.grid, step.block, step.shared, block, step.free)


def _scalar_bits(value: Any, dtype: str) -> int:
    """The kernel parameter for a Python number: an i64, or the bits of an f64."""
    if dtype_named(dtype).kind == "f":
        return float_bits(value)
    return int(value)
