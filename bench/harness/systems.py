"""The compared systems: how each runs a kernel, and with how many threads.

A system is made once per process; `Prepared` is one kernel on its own kind of arrays.
"""

from __future__ import annotations

import ast
import inspect
import os
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from suite.kernel import Case, leaves

from . import libraries, loops

OURS = ("ours", "ours-dynamic")
PEERS = ("numpy", "numexpr", "numba", "torch", "torch.compile", "jax")
# For gradients: what is written by hand runs as ours, and in NumPy; the tape is ours as well.
WITH_GRADIENTS = ("by-hand", "tape", "numpy", "autograd", "torch", "torch.compile", "jax")
COMPILERS = ("torch.compile", "jax")  # which a geomean is taken against
_MODULES = {
    "numexpr": "numexpr",
    "numba": "numba",
    "torch": "torch",
    "torch.compile": "torch",
    "jax": "jax",
    "autograd": "autograd",
}


def peers_of(group: str) -> tuple[str, ...]:
    """The systems that kernels of a group are compared with."""
    return WITH_GRADIENTS if group == "gradients" else PEERS


@dataclass
class Prepared:
    """One kernel in one system.

    Attributes:
        call: runs it, and returns when the result is there.
        results: of a call, as NumPy arrays.
        steady: what is known of a call once all is compiled, such as its number of kernels.
    """

    call: Callable[[], Any]
    results: Callable[[Any], tuple]
    steady: Callable[[], dict[str, Any]] = dict


def missing(system: str) -> str:
    """The reason why a system cannot be measured here; "" = it can."""
    module = _MODULES.get(system)
    if module is not None and find_spec(module) is None:
        return f"{module} is not installed (pip install -e '.[bench]')"
    return ""


def environment(cpus: list[int]) -> dict[str, str]:
    """The environment in which every system keeps to as many threads as there are CPUs."""
    count = str(len(cpus))
    names = ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")
    found = {f"{name}_NUM_THREADS": count for name in names}
    found |= {
        "NUMEXPR_MAX_THREADS": count,
        "NPROC": count,
        "JAX_PLATFORMS": "cpu",
        "PROFUSE_CACHE": "off",
        "PROFUSE_THREADS": count,
        "BENCH_CPUS": ",".join(map(str, cpus)),
    }
    if len(cpus) == 1:
        found["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return found


def pin() -> None:
    """Keep this process to the CPUs of `environment`; before any library is imported."""
    os.sched_setaffinity(0, {int(cpu) for cpu in os.environ["BENCH_CPUS"].split(",")})


def _numpy(case: Case) -> Prepared:
    library, fn, args = libraries.numpy_library(), case.kernel.plain, case.args()
    np.seterr(all="ignore")
    return Prepared(partial(fn, library, *args), leaves)


def _tape(case: Case) -> Prepared:
    np.seterr(all="ignore")
    call = partial(case.kernel.fn, libraries.tape_library(), *case.args())
    return Prepared(call, leaves)


def _autograd(case: Case) -> Prepared:
    np.seterr(all="ignore")
    call = partial(case.kernel.fn, libraries.autograd_library(), *case.args())
    return Prepared(call, leaves)


def _profuse(strategy: str, *, by_hand: bool = False) -> Callable[[Case], Prepared]:
    def prepare(case: Case) -> Prepared:
        import profuse as pf

        library, args = libraries.profuse_library(), case.args()
        fn = case.kernel.plain if by_hand else case.kernel.fn

        def plain(*arrays: Any) -> Any:
            return fn(library, *arrays)

        plain.__name__ = case.kernel.name
        jitted = pf.jit(plain, background=False, strategy=[(strategy, 1)])

        def steady() -> dict[str, Any]:
            jitted.wait()  # for the dispatcher, which another thread emits
            before = dict(jitted.state().counters)
            jitted(*args)
            state = jitted.state()
            names = {"kernel_launches": "kernels", "evaluated_ops": "ops by NumPy"}
            found = {word: state.counters[n] - before[n] for n, word in names.items()}
            stages = [dict(made.stages) for made in state.specializations]
            return found | {"reasons": list(state.reasons), "emitted": state.emitted, "stages": stages}

        return Prepared(partial(jitted, *args), leaves, steady)

    return prepare


def _jax(case: Case) -> Prepared:
    import jax

    # As NumPy computes; off for the rest, since it makes indices of 32 bits longer.
    jax.config.update("jax_enable_x64", case.dtype in ("f64", "i64"))
    library, fn = libraries.jax_library(), case.kernel.fn
    jitted = jax.jit(lambda *arrays: fn(library, *arrays))
    args = [jax.device_put(np.ascontiguousarray(a) if a.ndim else a) for a in case.args()]
    return Prepared(lambda: jax.block_until_ready(jitted(*args)), lambda out: tuple(map(np.asarray, leaves(out))))


def to_torch(a: np.ndarray) -> Any:
    """The same memory as a torch tensor, strides included."""
    import torch

    if a.dtype.name == "bfloat16":
        return torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(a)


def _from_torch(a: Any) -> np.ndarray:
    import torch

    return (a.float() if a.dtype == torch.bfloat16 else a).resolve_conj().numpy()


def _torch(*, compiled: bool) -> Callable[[Case], Prepared]:
    def prepare(case: Case) -> Prepared:
        import torch

        torch.set_num_threads(len(os.sched_getaffinity(0)))
        torch.set_grad_enabled(False)
        library, fn = libraries.torch_library(compiled=compiled), case.kernel.fn
        args = [to_torch(a) for a in case.args()]
        call = lambda *arrays: fn(library, *arrays)  # noqa: E731 - torch.compile needs a function
        if compiled:
            torch._dynamo.reset()  # sizes of the kernel before are no reason to compile for any
            call = torch.compile(call, dynamic=False)
        return Prepared(partial(call, *args), lambda out: tuple(_from_torch(a) for a in leaves(out)))

    return prepare


def _numexpr(case: Case) -> Prepared:
    import numexpr

    numexpr.set_num_threads(len(os.sched_getaffinity(0)))
    kept = case.args()
    values = {f"a{k}": a for k, a in enumerate(kept)}
    wanted = [a.dtype for a in kept]
    if len(set(wanted)) > 1 or wanted[0].name not in ("float32", "float64", "int32", "int64"):
        raise NotImplementedError(f"numexpr has no {', '.join(sorted({d.name for d in wanted}))}")
    names = list(values)
    found = leaves(
        case.kernel.fn(
            libraries.numexpr_library(), *(libraries.Expression(name, values, kept[0].dtype) for name in names)
        )
    )
    texts = [expression.text for expression in found]
    return Prepared(lambda: tuple(numexpr.evaluate(text, local_dict=values, global_dict={}) for text in texts), leaves)


def _numba(case: Case) -> Prepared:
    import numba

    args = case.args()
    threads = len(os.sched_getaffinity(0))
    written = loops.LOOPS.get(case.kernel.name)
    fn = written or without_library(case.kernel.fn)
    jitted = numba.njit(fn, parallel=threads > 1, error_model="numpy")
    return Prepared(lambda: jitted(*args), leaves)


def without_library(fn: Callable) -> Callable:
    """A kernel as a function of arrays alone, with NumPy as a global: what numba reads."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(fn)))
    made = tree.body[0]
    assert isinstance(made, ast.FunctionDef)
    made.decorator_list = []
    name = made.args.args.pop(0).arg if made.args.args else ""
    called = [n.func for n in ast.walk(made) if isinstance(n, ast.Call)]
    if not name or any(isinstance(f, ast.Name) and f.id in fn.__globals__ for f in called):
        raise NotImplementedError("numba takes no function that is handed a module")
    scope = dict(fn.__globals__) | {name: np}
    exec(compile(tree, f"<{fn.__name__} for numba>", "exec"), scope)
    return scope[fn.__name__]


SYSTEMS: dict[str, Callable[[Case], Prepared]] = {
    "ours": _profuse("static"),
    "ours-dynamic": _profuse("dynamic"),
    "numpy": _numpy,
    "numexpr": _numexpr,
    "numba": _numba,
    "torch": _torch(compiled=False),
    "torch.compile": _torch(compiled=True),
    "jax": _jax,
    "autograd": _autograd,
    "by-hand": _profuse("static", by_hand=True),
    "tape": _tape,
}
