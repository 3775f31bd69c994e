"""The pool of threads that kernels share, as text of LLVM IR, and the block that describes it.

A kernel finds the block by the symbol `POOL`; its word `LAUNCH` is null for as long as there is no
pool. ``profuse_launch(block, part, array, count, grain)`` calls ``part(array, begin, end)`` for all
chunks of ``grain`` iterations out of ``count``.

The join is elastic: the launching thread takes chunks itself, shuts the launch when none is left,
and waits only for threads of the pool that have entered it. A thread that the system has not
scheduled in time finds the launch shut, and nobody waits for it. Launches from several threads, and
launches from within a chunk, do not wait for one another: one has the pool, the others run alone.
"""

from __future__ import annotations

POOL = "profuse_pool"

# Words of the block. Those that different threads write are on cache lines of their own.
WORDS = 128
GENERATION = 0  # number of the last launch; threads of the pool wait for it to change
SLEEPERS = 16  # threads that are asleep
JOB = 32  # part, array, count, grain
NEXT = 48  # where the next chunk begins
STATE = 64  # generation << 32 | SHUT | number of threads that have entered
BUSY = 80  # 1 while some thread launches
SPIN = 96  # pauses before a thread goes to sleep
LAUNCH = 104  # address of profuse_launch; null = no pool
WANTED = 105  # threads that a launch may have beside its own
STARTED = 106  # threads of the pool
WORK = 107  # f64: work of a chunk in picoseconds, for kernels of symbolic sizes

CHUNK = 12_000_000.0  # picoseconds of estimated work; a launch takes up to a fifth of it
CHECKED = 1.0  # the same while kernels are checked, so that small arrays have several chunks, too

_SHUT = 1 << 31
STACK = 4 << 20  # bytes; kernels keep at most 64 KiB there, libraries of products more
_PRIVATE_WAIT, _PRIVATE_WAKE = 128, 129

# By the architecture in the triple: number of the system call futex, and the hint to a spinning
# core. On other systems there is no pool.
_SYSTEMS = {
    "x86_64": (202, "void @llvm.x86.sse2.pause(", ")"),
    "aarch64": (98, "void @llvm.aarch64.hint(i32", " 1)"),
}


def supports(triple: str) -> bool:
    """True if there can be a pool on systems of this triple."""
    return "linux" in triple and triple.partition("-")[0] in _SYSTEMS


def pool_text(triple: str) -> str:
    """The pool as text of LLVM IR: the functions ``profuse_launch`` and ``profuse_pauses``.

    ``profuse_pauses(count)`` spins for ``count`` pauses, so that its caller can time one.
    """
    futex, hint, arguments = _SYSTEMS[triple.partition("-")[0]]
    words = {
        "sleepers": SLEEPERS, "job": JOB, "array": JOB + 1, "count": JOB + 2, "grain": JOB + 3,
        "next": NEXT, "state": STATE, "busy": BUSY, "spin": SPIN, "wanted": WANTED,
        "started": STARTED,
    }  # fmt: skip
    text = _TEXT
    for name, word in words.items():
        text = text.replace(f"@at({name})", f"getelementptr i64, ptr %pool, i64 {word}")
    replaced = {
        "PAUSE": f"call {hint}{arguments}",
        "DECLARE": f"declare {hint})",
        "FUTEX": str(futex),
        "WAIT": str(_PRIVATE_WAIT),
        "WAKE": str(_PRIVATE_WAKE),
        "SHUT": str(_SHUT),
        "INSIDE": str(_SHUT - 1),
        "STACK": str(STACK),
    }
    for name, value in replaced.items():
        text = text.replace(f"${name}$", value)
    return text


_TEXT = """
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_attr_init(ptr)
declare i32 @pthread_attr_destroy(ptr)
declare i32 @pthread_attr_setdetachstate(ptr, i32)
declare i32 @pthread_attr_setstacksize(ptr, i64)
declare i32 @pthread_sigmask(i32, ptr, ptr)
declare i32 @sigfillset(ptr)
declare i64 @llvm.smin.i64(i64, i64)
$DECLARE$

; Takes chunks of the present job until none is left.
define internal void @chunks(ptr %pool) {
  %at_part = @at(job)
  %part = load ptr, ptr %at_part
  %at_array = @at(array)
  %array = load ptr, ptr %at_array
  %at_count = @at(count)
  %count = load i64, ptr %at_count
  %at_grain = @at(grain)
  %grain = load i64, ptr %at_grain
  %at_next = @at(next)
  br label %take
take:
  %begin = atomicrmw add ptr %at_next, i64 %grain monotonic
  %some = icmp slt i64 %begin, %count
  br i1 %some, label %run, label %done
run:
  %above = add i64 %begin, %grain
  %end = call i64 @llvm.smin.i64(i64 %above, i64 %count)
  call void %part(ptr %array, i64 %begin, i64 %end)
  br label %take
done:
  ret void
}

; A thread of the pool: waits for the generation to change, first spinning, then asleep.
define internal ptr @pool_thread(ptr %pool) {
entry:
  %at_sleepers = @at(sleepers)
  %at_state = @at(state)
  %at_spin = @at(spin)
  %at_wanted = @at(wanted)
  br label %wait
wait:
  %last = phi i64 [ 0, %entry ], [ %now, %enter ], [ %now, %inside ]
  %spins = load atomic i64, ptr %at_spin monotonic, align 8
  br label %spin
spin:
  %turn = phi i64 [ 0, %wait ], [ %turn1, %again ]
  %seen = load atomic i64, ptr %pool acquire, align 8
  %changed = icmp ne i64 %seen, %last
  br i1 %changed, label %woken, label %again
again:
  $PAUSE$
  %turn1 = add i64 %turn, 1
  %more = icmp slt i64 %turn1, %spins
  br i1 %more, label %spin, label %tired
tired:
  %before = atomicrmw add ptr %at_sleepers, i64 1 seq_cst
  br label %sleep
sleep:
  %seen2 = load atomic i64, ptr %pool seq_cst, align 8
  %changed2 = icmp ne i64 %seen2, %last
  br i1 %changed2, label %rested, label %doze
doze:
  %low = trunc i64 %last to i32
  %slept = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr %pool, i64 $WAIT$, i32 %low, ptr null)
  br label %sleep
rested:
  %before2 = atomicrmw sub ptr %at_sleepers, i64 1 seq_cst
  br label %woken
woken:
  %now = phi i64 [ %seen, %spin ], [ %seen2, %rested ]
  br label %enter
enter:
  %state = load atomic i64, ptr %at_state acquire, align 8
  %of = lshr i64 %state, 32
  %low_now = and i64 %now, 4294967295
  %same = icmp eq i64 %of, %low_now
  %shut = and i64 %state, $SHUT$
  %open = icmp eq i64 %shut, 0
  %already = and i64 %state, $INSIDE$
  %wanted = load atomic i64, ptr %at_wanted monotonic, align 8
  %room = icmp slt i64 %already, %wanted
  %current = and i1 %same, %open
  %may = and i1 %current, %room
  br i1 %may, label %try, label %wait
try:
  %state1 = add i64 %state, 1
  %swapped = cmpxchg ptr %at_state, i64 %state, i64 %state1 acq_rel monotonic
  %entered = extractvalue { i64, i1 } %swapped, 1
  br i1 %entered, label %inside, label %enter
inside:
  call void @chunks(ptr %pool)
  %left = atomicrmw sub ptr %at_state, i64 1 release
  br label %wait
}

; Starts threads, with all signals blocked: they are for the threads of the program. Where the
; system refuses, nobody wants more than there are.
define internal void @start(ptr %pool) noinline {
entry:
  %attributes = alloca [64 x i8], align 16
  %old = alloca [128 x i8], align 16
  %all = alloca [128 x i8], align 16
  %thread = alloca i64
  %r0 = call i32 @pthread_attr_init(ptr %attributes)
  %r1 = call i32 @pthread_attr_setdetachstate(ptr %attributes, i32 1)
  %r2 = call i32 @pthread_attr_setstacksize(ptr %attributes, i64 $STACK$)
  %r3 = call i32 @sigfillset(ptr %all)
  %r4 = call i32 @pthread_sigmask(i32 0, ptr %all, ptr %old)
  %at_wanted = @at(wanted)
  %at_started = @at(started)
  %wanted = load atomic i64, ptr %at_wanted monotonic, align 8
  %had = load i64, ptr %at_started
  br label %next
next:
  %made = phi i64 [ %had, %entry ], [ %made1, %start ]
  %more = icmp slt i64 %made, %wanted
  br i1 %more, label %start, label %done
start:
  %failed = call i32 @pthread_create(ptr %thread, ptr %attributes, ptr @pool_thread, ptr %pool)
  %made1 = add i64 %made, 1
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %next, label %refused
refused:
  store atomic i64 %made, ptr %at_wanted monotonic, align 8
  br label %done
done:
  store i64 %made, ptr %at_started
  %r5 = call i32 @pthread_sigmask(i32 2, ptr %old, ptr null)
  %r6 = call i32 @pthread_attr_destroy(ptr %attributes)
  ret void
}

define void @profuse_launch(ptr %pool, ptr %part, ptr %array, i64 %count, i64 %grain) {
entry:
  %at_busy = @at(busy)
  %swapped = cmpxchg ptr %at_busy, i64 0, i64 1 acquire monotonic
  %mine = extractvalue { i64, i1 } %swapped, 1
  br i1 %mine, label %first, label %alone
first:
  %at_wanted = @at(wanted)
  %wanted = load atomic i64, ptr %at_wanted monotonic, align 8
  %at_started = @at(started)
  %started = load i64, ptr %at_started
  %few = icmp slt i64 %started, %wanted
  br i1 %few, label %more_threads, label %launch
more_threads:
  call void @start(ptr %pool)
  br label %launch
alone:
  %begin = phi i64 [ 0, %entry ], [ %end, %alone ]
  %above = add i64 %begin, %grain
  %end = call i64 @llvm.smin.i64(i64 %above, i64 %count)
  call void %part(ptr %array, i64 %begin, i64 %end)
  %more = icmp slt i64 %end, %count
  br i1 %more, label %alone, label %done
launch:
  %at_part = @at(job)
  store ptr %part, ptr %at_part
  %at_array = @at(array)
  store ptr %array, ptr %at_array
  %at_count = @at(count)
  store i64 %count, ptr %at_count
  %at_grain = @at(grain)
  store i64 %grain, ptr %at_grain
  %at_next = @at(next)
  store atomic i64 0, ptr %at_next monotonic, align 8
  %at_state = @at(state)
  %last = load i64, ptr %pool
  %generation = add i64 %last, 1
  %opened = shl i64 %generation, 32
  store atomic i64 %opened, ptr %at_state release, align 8
  store atomic i64 %generation, ptr %pool seq_cst, align 8
  %at_sleepers = @at(sleepers)
  %sleepers = load atomic i64, ptr %at_sleepers seq_cst, align 8
  %some = icmp ne i64 %sleepers, 0
  br i1 %some, label %wake, label %work
wake:
  %woken = call i64 (i64, ...) @syscall(i64 $FUTEX$, ptr %pool, i64 $WAKE$, i64 2147483647)
  br label %work
work:
  call void @chunks(ptr %pool)
  %was = atomicrmw or ptr %at_state, i64 $SHUT$ acq_rel
  br label %join
join:
  %state = load atomic i64, ptr %at_state acquire, align 8
  %inside = and i64 %state, $INSIDE$
  %empty = icmp eq i64 %inside, 0
  br i1 %empty, label %free, label %pause
pause:
  $PAUSE$
  br label %join
free:
  store atomic i64 0, ptr %at_busy release, align 8
  br label %done
done:
  ret void
}

define void @profuse_pauses(i64 %count) {
entry:
  br label %next
next:
  %turn = phi i64 [ 0, %entry ], [ %turn1, %next ]
  $PAUSE$
  %turn1 = add i64 %turn, 1
  %more = icmp slt i64 %turn1, %count
  br i1 %more, label %next, label %done
done:
  ret void
}
"""
