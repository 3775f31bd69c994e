"""``cuda.bindings.driver`` as far as it is used."""

import enum
from types import SimpleNamespace


class Status(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_ILLEGAL_ADDRESS = 700


class Names:
    """Enumerators that are their own names."""

    def __getattr__(self, name):
        return name


class Api:
    """Notes calls, and gives what it is told to."""

    CUresult = Status
    CUdevice_attribute = CUpointer_attribute = CUmemPool_attribute = CUfunction_attribute = Names()

    def __init__(self):
        self.calls = []
        self.context = 11  # somebody else's
        self.fails = {}
        self.gives = {
            "cuDeviceGetCount": (2,),
            "cuDeviceGet": (0,),
            "cuDevicePrimaryCtxRetain": (77,),
            "cuDeviceGetDefaultMemPool": ("pool",),
            "cuMemAllocAsync": (4096,),
            "cuModuleLoadData": ("module",),
            "cuModuleGetFunction": ("function",),
            "cuEventCreate": ("event",),
            "cuGraphCreate": ("graph",),
            "cuGraphAddKernelNode": ("node",),
            "cuGraphInstantiate": ("executable",),
            "cuDeviceGetAttribute": (9,),
            "cuPointerGetAttribute": (1,),
            "cuFuncGetAttribute": (0,),
        }

    cuuint64_t = int

    def CUDA_KERNEL_NODE_PARAMS(self):
        return SimpleNamespace()

    def __getattr__(self, name):
        def call(*args):
            if name == "cuCtxGetCurrent":
                return Status.CUDA_SUCCESS, self.context
            if name == "cuCtxSetCurrent":
                (self.context,) = args
                return (Status.CUDA_SUCCESS,)
            self.calls.append((name, args, self.context))
            status = self.fails.get(name, Status.CUDA_SUCCESS)
            return (status, *self.gives.get(name, ()))

        call.__name__ = name
        return call

    def names(self):
        return [name for name, _, _ in self.calls]
