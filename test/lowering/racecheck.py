"""Kernels and the pool of threads under ThreadSanitizer (``make racecheck``).

ThreadSanitizer sees the memory accesses of code that it has instrumented. LLVM's pass instruments
the pool and some kernels here, before any other pass runs, and GCC links them with its run-time
library into a program of their own: Python and NumPy, which nothing instruments, are not in it.
In this program several threads launch kernels at once, each on arrays of its own, while another
thread changes how many threads the pool may use.

First, races are planted: in the pool, and in a kernel. The check fails unless each is found. Of
accesses of more than 16 bytes the sanitizer sees nothing; kernels have those only behind the passes
that vectorise, and in tiles.

    python test/lowering/racecheck.py [--rounds 200]
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
from graphs import Graph, tensor
from profuse.dialect.ir.program import Program
from profuse.dialect.ir.size_algebra import parse_dim
from profuse.dialect.ir.symbolic import evaluate
from profuse.lowering import thread_pool
from profuse.lowering.abi import KernelABI
from profuse.lowering.cpu.cpu_stages import compile_program
from profuse.lowering.libllvm import LLVMModule
from profuse.lowering.target import host_target
from profuse.lowering.thread_pool import supports
from profuse.lowering.thread_pool.text import pool_text

_COMPILER = "gcc"
_INSTRUMENT = "tsan-module,function(tsan)"
_CALLERS = 3  # threads that launch at once
_HELPERS = 3  # threads of the pool
_SPIN = 300  # pauses before a thread of the pool sleeps: some launches find it awake, some asleep
_ATTEMPTS = 4  # runs in which a planted race is looked for
_FOUND = 66  # exit status of a program in which the sanitizer has found something
RACE = "WARNING: ThreadSanitizer: data race"
"""How a report of a race begins."""
_SIZES = {"n": 37, "m": 61}


def _elementwise() -> Program:
    g = Graph(tensor("n", "m"), tensor("m"), name="elementwise")
    x, b = g.inputs
    return g.returning(g.tanh(g.add(x, b)))


def _softmax() -> Program:
    g = Graph(tensor("n", "m"), name="softmax")
    (x,) = g.inputs
    e = g.exp(g.sub(x, g.max(x, axes=(1,), keepdims=True)))
    return g.returning(g.div(e, g.sum(e, axes=(1,), keepdims=True)))


def _columns() -> Program:
    g = Graph(tensor("n", "m"), name="columns")
    (x,) = g.inputs
    return g.returning(g.sum(x, axes=(0,), keepdims=False), g.max(x, axes=(0,), keepdims=False))


def _total() -> Program:
    g = Graph(tensor("n", "m"), name="total")
    (x,) = g.inputs
    return g.returning(g.sum(g.exp(x), axes=(0, 1), keepdims=False))


def _transposed() -> Program:
    g = Graph(tensor("n", "m"), tensor("m", "n"), name="transposed")
    x, y = g.inputs
    return g.returning(g.add(x, g.transpose(y, perm=(1, 0))))


def _scan() -> Program:
    g = Graph(tensor("n", "m"), name="scan")
    (x,) = g.inputs
    return g.returning(g.cumsum(x, axis=1), g.cumsum(x, axis=0))


KERNELS: dict[str, Callable[[], Program]] = {
    "elementwise": _elementwise,
    "softmax": _softmax,
    "columns": _columns,
    "total": _total,
    "transposed": _transposed,
    "scan": _scan,
}


@dataclass(frozen=True)
class Plant:
    """A race that is planted in the pool: pieces of its text, and what stands in their place."""

    name: str
    replaced: tuple[tuple[str, str], ...]


PLANTED = (
    Plant("a launch waits for nobody", (("br i1 %empty, label %free, label %pause", "br label %free"),)),
    Plant(
        "threads leave without a release", (("sub ptr %at_state, i64 1 release", "sub ptr %at_state, i64 1 monotonic"),)
    ),
    Plant(
        "a launch is opened without a release",
        (
            ("i64 %opened, ptr %at_state release", "i64 %opened, ptr %at_state monotonic"),
            ("i64 %generation, ptr %pool seq_cst", "i64 %generation, ptr %pool monotonic"),
        ),
    ),
    Plant("two launches have the pool at once", (("br i1 %mine, label %first, label %alone", "br label %first"),)),
    Plant("the pool is let go without a release", (("i64 0, ptr %at_busy release", "i64 0, ptr %at_busy monotonic"),)),
    Plant(
        "chunks are taken twice",
        (
            (
                "%begin = atomicrmw add ptr %at_next, i64 %grain monotonic",
                "%begin = load atomic i64, ptr %at_next monotonic, align 8\n"
                "  %behind = add i64 %begin, %grain\n"
                "  store atomic i64 %behind, ptr %at_next monotonic, align 8",
            ),
        ),
    ),
)


def why_not() -> str:
    """Why this system cannot run the check; "" = it can."""
    if not supports(host_target().triple):
        return "kernels have no pool of threads on this system"
    try:
        with tempfile.TemporaryDirectory() as folder:
            program = _linked([_object("define i32 @main() {\n  ret i32 0\n}\n")], Path(folder))
            done = subprocess.run([program], capture_output=True, text=True, check=False)
    except OSError as error:
        return f"it needs {_COMPILER}: {error}"
    except subprocess.CalledProcessError as error:
        return f"{_COMPILER} -fsanitize=thread does not link: {error.stderr.strip()[-200:]}"
    if done.returncode:
        return f"programs with ThreadSanitizer do not run here: {done.stderr.strip()[-200:]}"
    return ""


def reports(rounds: int, plant: Plant | None = None, names: Sequence[str] = tuple(KERNELS)) -> str:
    """What the sanitizer says of a program of these kernels; "" = nothing.

    With a planted race the program ends at the first report, as it may crash soon after.

    Args:
        rounds: launches of each kernel in each thread.
        plant: a race to plant.
        names: the kernels.
    """
    with tempfile.TemporaryDirectory() as folder:
        target = host_target()
        text = _planted(pool_text(target.triple), plant)
        objects = [_object(text)]
        abis: dict[str, KernelABI] = {}
        for name in names:
            made = compile_program(KERNELS[name](), target, keep_stages=True)
            assert made.shared_steps, f"{name} is not shared by threads"
            objects.append(_object(made.stages["llvm"]))
            abis[made.entry] = made.abi
        objects.append(_object(_driver(abis, rounds)))
        program = _linked(objects, Path(folder))
        done = subprocess.run(
            [program],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
            env={"TSAN_OPTIONS": f"exitcode={_FOUND} halt_on_error={int(plant is not None)}"},
        )
    if done.returncode not in (0, _FOUND):
        raise AssertionError(f"it ended with {done.returncode}: {done.stderr[-2000:]}")
    assert (done.returncode == _FOUND) == ("WARNING: ThreadSanitizer" in done.stderr), done.stderr
    return done.stderr if done.returncode else ""


def is_found(plant: Plant, rounds: int) -> bool:
    """Whether a planted race is found in one of some runs: on a busy machine, threads come late."""
    return any(RACE in reports(rounds * (attempt + 1), plant) for attempt in range(_ATTEMPTS))


def _planted(text: str, plant: Plant | None) -> str:
    if plant is None:
        return text
    for old, new in plant.replaced:
        assert text.count(old) == 1, plant.name
        text = text.replace(old, new)
    return text


def _object(text: str) -> bytes:
    """Instrumented object code of LLVM IR; no other pass runs."""
    text = re.sub(r"^(define .*?)( #\d+)? \{$", r"\1\2 sanitize_thread {", text, flags=re.M)
    with LLVMModule(text, host_target()) as module:
        module.run(_INSTRUMENT)
        return module.object_code()


def _linked(objects: Sequence[bytes], folder: Path) -> str:
    paths = [folder / f"{number}.o" for number in range(len(objects))]
    for path, code in zip(paths, objects, strict=True):
        path.write_bytes(code)
    command = [_COMPILER, "-fsanitize=thread", *map(str, paths), "-lm", "-o", str(folder / "race")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{_COMPILER} cannot link the kernels: {done.stderr}")
    return str(folder / "race")


# --- the program ---------------------------------------------------------------------------------


def _driver(abis: dict[str, KernelABI], rounds: int) -> str:
    """LLVM IR of a program that launches each kernel from several threads, for some rounds."""
    jobs, data = [], []
    for entry, abi in abis.items():
        for caller in range(_CALLERS):
            jobs.append(f"@job_{entry}_{caller}")
            data += _job(entry, caller, abi, rounds)
        data.append(f"declare void @{entry}(ptr)")
    words = ["i64 0"] * thread_pool.WORDS
    words[thread_pool.LAUNCH] = "i64 ptrtoint (ptr @profuse_launch to i64)"
    words[thread_pool.SPIN] = f"i64 {_SPIN}"
    words[thread_pool.WANTED] = f"i64 {_HELPERS}"
    words[thread_pool.WORK] = f"i64 {np.float64(thread_pool.CHECKED).view(np.int64)}"
    spawned = "".join(
        f"  %at_{k} = getelementptr i64, ptr %threads, i64 {k}\n"
        f"  %r{k} = call i32 @pthread_create(ptr %at_{k}, ptr null, ptr @caller, ptr {job})\n"
        for k, job in enumerate(jobs)
    )
    joined = "".join(
        f"  %id_{k} = load i64, ptr %at_{k}\n  %j{k} = call i32 @pthread_join(i64 %id_{k}, ptr null)\n"
        for k in range(len(jobs))
    )
    return _PROGRAM.format(
        pool=thread_pool.POOL,
        words=thread_pool.WORDS,
        values=", ".join(words),
        wanted=thread_pool.WANTED,
        helpers=_HELPERS,
        jobs=len(jobs),
        spawned=spawned,
        joined=joined,
        data="\n".join(data),
    )


def _job(entry: str, caller: int, abi: KernelABI, rounds: int) -> list[str]:
    """The arrays of one thread's launches of one kernel, its slots, and the job that names them."""
    lines, slots, counts = [], [], {"in": 0, "out": 0}
    own = f"{entry}_{caller}"

    def array(side: str, dims: Sequence[str]) -> None:
        count = int(np.prod([evaluate(parse_dim(d), _SIZES) for d in dims], initial=1))
        slots.append(f"i64 ptrtoint (ptr getelementptr (float, ptr @{side}_{own}, i64 {counts[side]}) to i64)")
        counts[side] += -(-count // 16) * 16

    for side, specs in (("in", abi.inputs), ("out", abi.outputs)):
        for spec in specs:
            assert (spec.dtype, spec.kind) == ("f32", "tensor")
            array(side, spec.dims)
    slots.append(f"i64 ptrtoint (ptr @work_{own} to i64)")
    slots += [f"i64 {_SIZES[name]}" for name in abi.symbols]
    assert not abi.strides
    for side, count in counts.items():
        lines.append(f"@{side}_{own} = global [{count} x float] zeroinitializer, align 64")
    room = max(abi.workspace_size(_SIZES), 64)
    lines.append(f"@work_{own} = global [{room} x i8] zeroinitializer, align 64")
    lines.append(f"@slots_{own} = global [{len(slots)} x i64] [{', '.join(slots)}], align 64")
    lines.append(
        f"@job_{own} = global {{ ptr, ptr, ptr, i64, ptr, i64, i64, float }} {{ ptr @{entry}, "
        f"ptr @slots_{own}, ptr @in_{own}, i64 {counts['in']}, ptr @out_{own}, "
        f"i64 {counts['out']}, i64 {rounds}, float 0.0 }}"
    )
    return lines


# A caller fills its inputs, launches, and reads all results, so that whatever a thread of the pool
# does before or behind the launch is a race.
_PROGRAM = """
@{pool} = global [{words} x i64] [{values}], align 64
@ended = global i64 0
%job = type {{ ptr, ptr, ptr, i64, ptr, i64, i64, float }}
declare void @profuse_launch(ptr, ptr, ptr, i64, i64)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @usleep(i32)
{data}

define ptr @caller(ptr %job) {{
entry:
  %entry_ = load ptr, ptr %job
  %at_slots = getelementptr %job, ptr %job, i64 0, i32 1
  %slots = load ptr, ptr %at_slots
  %at_in = getelementptr %job, ptr %job, i64 0, i32 2
  %in = load ptr, ptr %at_in
  %at_ins = getelementptr %job, ptr %job, i64 0, i32 3
  %ins = load i64, ptr %at_ins
  %at_out = getelementptr %job, ptr %job, i64 0, i32 4
  %out = load ptr, ptr %at_out
  %at_outs = getelementptr %job, ptr %job, i64 0, i32 5
  %outs = load i64, ptr %at_outs
  %at_rounds = getelementptr %job, ptr %job, i64 0, i32 6
  %rounds = load i64, ptr %at_rounds
  %at_sum = getelementptr %job, ptr %job, i64 0, i32 7
  br label %round
round:
  %r = phi i64 [ 0, %entry ], [ %r1, %next ]
  br label %fill
fill:
  %i = phi i64 [ 0, %round ], [ %i1, %fill ]
  %mixed = add i64 %i, %r
  %few = and i64 %mixed, 31
  %number = uitofp i64 %few to float
  %value = fmul float %number, 0.0625
  %at_i = getelementptr float, ptr %in, i64 %i
  store float %value, ptr %at_i
  %i1 = add i64 %i, 1
  %filling = icmp slt i64 %i1, %ins
  br i1 %filling, label %fill, label %launch
launch:
  call void %entry_(ptr %slots)
  br label %read
read:
  %o = phi i64 [ 0, %launch ], [ %o1, %read ]
  %sum = phi float [ 0.0, %launch ], [ %sum1, %read ]
  %at_o = getelementptr float, ptr %out, i64 %o
  %result = load float, ptr %at_o
  %sum1 = fadd float %sum, %result
  %o1 = add i64 %o, 1
  %reading = icmp slt i64 %o1, %outs
  br i1 %reading, label %read, label %next
next:
  store float %sum1, ptr %at_sum
  %eighth = and i64 %r, 7
  %rests = icmp eq i64 %eighth, 7
  %pause = select i1 %rests, i32 300, i32 0
  %slept = call i32 @usleep(i32 %pause)
  %r1 = add i64 %r, 1
  %more = icmp slt i64 %r1, %rounds
  br i1 %more, label %round, label %done
done:
  ret ptr null
}}

; What `use_threads` does from Python, while kernels run.
define ptr @switcher(ptr %none) {{
entry:
  %at_wanted = getelementptr i64, ptr @{pool}, i64 {wanted}
  br label %switch
switch:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %switch ]
  %wanted = urem i64 %turn, {helpers}
  %some = add i64 %wanted, 1
  store atomic i64 %some, ptr %at_wanted monotonic, align 8
  %slept = call i32 @usleep(i32 500)
  %turn1 = add i64 %turn, 1
  %end = load atomic i64, ptr @ended acquire, align 8
  %ended = icmp ne i64 %end, 0
  br i1 %ended, label %done, label %switch
done:
  ret ptr null
}}

define i32 @main() {{
  %threads = alloca [{jobs} x i64]
  %switching = alloca i64
  %s = call i32 @pthread_create(ptr %switching, ptr null, ptr @switcher, ptr null)
{spawned}
{joined}
  store atomic i64 1, ptr @ended release, align 8
  %switcher_ = load i64, ptr %switching
  %t = call i32 @pthread_join(i64 %switcher_, ptr null)
  ret i32 0
}}
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    options = parser.parse_args()
    reason = why_not()
    if reason:
        print(f"skipped: {reason}")
        return 0
    for plant in PLANTED:
        found = is_found(plant, options.rounds)
        print(f"planted: {plant.name}: {'' if found else 'NOT '}reported", flush=True)
        if not found:
            return 1
    found = reports(options.rounds)
    print(found or f"no race in {len(KERNELS)} kernels, {_CALLERS} threads launching each")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
