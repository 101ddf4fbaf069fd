"""One team of threads for many parallel loops.

To enter and leave a parallel region of libgomp takes 2 to 3 us, as long as a small kernel runs. So
a run of many kernels enters one region, in which all threads but the first wait, and a parallel
loop inside is handed to them through memory: a fork and join of some 0.2 us.

    tensorwright_team(function, argument, threads)   calls function(argument) with a team waiting
    GOMP_parallel(body, data, threads, flags)        what kernels call: the waiting team runs
                                                     body(data), or libgomp where there is none

Inside, `omp_get_thread_num()` and `omp_get_num_threads()` are those of the region, which is what a
kernel divides its work by. The team of a thread is found through a key of its own memory, so that
several threads may run kernels at once. A parallel loop inside another one goes to libgomp.

Waiting threads spin, for as long as the function takes; after a while they offer their core to
others at each turn.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

from tensorwright.base import MachineError

TEAM_SYMBOLS = ("tensorwright_team", "GOMP_parallel")
"""What this module defines for object code."""

_PAUSES = {"x86-64": "pause", "aarch64": "yield"}
_PATIENT_TURNS = 20_000  # some 0.3 ms

# A team: words in cache lines of their own where different threads write.
#   0 body   1 data   2 workers   3 function   4 argument   5 is a loop running   6 has it ended
#   8 epoch: how many loops were handed out   16 arrived: how many workers are done with this one
_IR = """
declare void @tensorwright_libgomp_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()
declare ptr @pthread_getspecific(i32)
declare i32 @pthread_setspecific(i32, ptr)
declare i32 @sched_yield()

define internal void @wait(ptr %word, i64 %wanted) noinline {
entry:
  br label %look
look:
  %turn = phi i64 [0, %entry], [%turn.next, %again]
  %now = load atomic i64, ptr %word acquire, align 64
  %there = icmp eq i64 %now, %wanted
  br i1 %there, label %done, label %idle
idle:
  call void asm sideeffect "PAUSE", "~{memory}"()
  %turn.next = add i64 %turn, 1
  %late = icmp ugt i64 %turn, PATIENT
  br i1 %late, label %offer, label %again
offer:
  call i32 @sched_yield()
  br label %again
again:
  br label %look
done:
  ret void
}

define void @GOMP_parallel(ptr %body, ptr %data, i32 %threads, i32 %flags) {
entry:
  %team = call ptr @pthread_getspecific(i32 KEY)
  %none = icmp eq ptr %team, null
  br i1 %none, label %alone, label %look
look:
  %busy.at = getelementptr i64, ptr %team, i64 5
  %busy = load i64, ptr %busy.at
  %nested = icmp ne i64 %busy, 0
  br i1 %nested, label %alone, label %share
alone:
  call void @tensorwright_libgomp_parallel(ptr %body, ptr %data, i32 %threads, i32 %flags)
  ret void
share:
  store i64 1, ptr %busy.at
  store ptr %body, ptr %team
  %data.at = getelementptr i64, ptr %team, i64 1
  store ptr %data, ptr %data.at
  %arrived = getelementptr i64, ptr %team, i64 16
  store atomic i64 0, ptr %arrived monotonic, align 64
  %epoch = getelementptr i64, ptr %team, i64 8
  %old = load i64, ptr %epoch
  %new = add i64 %old, 1
  store atomic i64 %new, ptr %epoch release, align 64
  call void %body(ptr %data)
  %workers.at = getelementptr i64, ptr %team, i64 2
  %workers = load i64, ptr %workers.at
  call void @wait(ptr %arrived, i64 %workers)
  store i64 0, ptr %busy.at
  ret void
}

define internal void @member(ptr %team) {
entry:
  %id = call i32 @omp_get_thread_num()
  %is_first = icmp eq i32 %id, 0
  %epoch = getelementptr i64, ptr %team, i64 8
  %ended.at = getelementptr i64, ptr %team, i64 6
  br i1 %is_first, label %lead, label %follow
lead:
  %size = call i32 @omp_get_num_threads()
  %others = sub i32 %size, 1
  %workers = zext i32 %others to i64
  %workers.at = getelementptr i64, ptr %team, i64 2
  store i64 %workers, ptr %workers.at
  %function.at = getelementptr i64, ptr %team, i64 3
  %function = load ptr, ptr %function.at
  %argument.at = getelementptr i64, ptr %team, i64 4
  %argument = load ptr, ptr %argument.at
  call i32 @pthread_setspecific(i32 KEY, ptr %team)
  call void %function(ptr %argument)
  call i32 @pthread_setspecific(i32 KEY, ptr null)
  store i64 1, ptr %ended.at
  %old = load i64, ptr %epoch
  %last = add i64 %old, 1
  store atomic i64 %last, ptr %epoch release, align 64
  ret void
follow:
  %seen = phi i64 [0, %entry], [%next, %work]
  %next = add i64 %seen, 1
  call void @wait(ptr %epoch, i64 %next)
  %ended = load i64, ptr %ended.at
  %is_over = icmp ne i64 %ended, 0
  br i1 %is_over, label %over, label %work
work:
  %body = load ptr, ptr %team
  %data.at = getelementptr i64, ptr %team, i64 1
  %data = load ptr, ptr %data.at
  call void %body(ptr %data)
  %arrived = getelementptr i64, ptr %team, i64 16
  %before = atomicrmw add ptr %arrived, i64 1 release, align 64
  br label %follow
over:
  ret void
}

define void @tensorwright_team(ptr %function, ptr %argument, i32 %threads) {
entry:
  %outer = call ptr @pthread_getspecific(i32 KEY)
  %has_team = icmp ne ptr %outer, null
  %single = icmp sle i32 %threads, 1
  %direct = or i1 %has_team, %single
  br i1 %direct, label %call, label %gather
call:
  call void %function(ptr %argument)
  ret void
gather:
  %team = alloca [24 x i64], align 64
  store [24 x i64] zeroinitializer, ptr %team, align 64
  %function.at = getelementptr i64, ptr %team, i64 3
  store ptr %function, ptr %function.at
  %argument.at = getelementptr i64, ptr %team, i64 4
  store ptr %argument, ptr %argument.at
  call void @tensorwright_libgomp_parallel(ptr @member, ptr %team, i32 %threads, i32 0)
  ret void
}
"""

SERIAL_TEAM_IR = """
define void @tensorwright_team(ptr %function, ptr %argument, i32 %threads) {
  call void %function(ptr %argument)
  ret void
}
"""
"""The same where there is no OpenMP runtime."""


def team_ir(arch: str) -> str:
    """The code of a team for a processor, with this process's key in it."""
    words = {"KEY": str(_key()), "PAUSE": _PAUSES[arch], "PATIENT": str(_PATIENT_TURNS)}
    text = _IR
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def team_imports() -> tuple[tuple[str, int], ...]:
    """Names and addresses of what the code calls in the C library."""
    process = ctypes.CDLL(None)
    names = ("pthread_getspecific", "pthread_setspecific", "sched_yield")
    return tuple(
        (name, ctypes.cast(getattr(process, name), ctypes.c_void_p).value or 0) for name in names
    )


@lru_cache(maxsize=1)
def _key() -> int:
    """The key under which a thread finds the team that it leads."""
    key = ctypes.c_uint()
    if ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None) != 0:
        raise MachineError(
            stage="runtime",
            where="threads",
            reason="no key for memory of a thread's own is left",
            remedy="load fewer libraries into this process",
        )
    return key.value
