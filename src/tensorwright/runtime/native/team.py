"""Teams: threads that libgomp forks once, and that then share many parallel loops without a fork.

A fork and join through libgomp takes 0.7 us if its threads spin, and 40 us if they sleep.  Handing
a piece to a waiting thread of a team, and waiting until it is done, takes 0.1 us.

    tensorwright_team(main, context, threads)     forks, runs main(context) on the first thread
    tensorwright_parallel(body, data, threads, flags)
    tensorwright_thread_num()                     as GOMP_parallel, omp_get_thread_num and
    tensorwright_num_threads()                    omp_get_num_threads; inside main, other threads
                                                  of the team also run body

Object code is linked to these functions instead of libgomp's (`STAND_INS`), so kernels do not know
what divides their loops. Each thread of a team has a slot on the stack of the first thread; its
POSIX thread-specific value points to the slot:

    slot        epoch, body, data, count, number, team      number by itself, the rest by the first
    slot + 128  done                                         written by the thread itself
    team + 128  main, context, size                          (the first thread's slot is the team)

To give work, the first thread writes body, data and count into the slots of the others that take
part, and then raises their epochs. A thread that has done its piece copies the epoch to `done`. A
null body means the end. A count of 0 means outside of any loop; a loop inside another runs alone.

A waiting thread spins for about 50 us, and then yields its core between looks: if there are more
threads than cores, the thread for which it waits must be able to run.
"""

from __future__ import annotations

import ctypes
from functools import lru_cache
from string import Template

_SPINS = 1000
_PAUSES = {"x86-64": "pause", "aarch64": "yield"}

TEAM_SYMBOL = "tensorwright_team"
STAND_INS = {
    "GOMP_parallel": "tensorwright_parallel",
    "omp_get_thread_num": "tensorwright_thread_num",
    "omp_get_num_threads": "tensorwright_num_threads",
}
"""The functions that kernels call under these names."""

RENAMED = {
    "GOMP_parallel": "tensorwright.libgomp_parallel",
    "omp_get_thread_num": "tensorwright.libgomp_thread_num",
    "omp_get_num_threads": "tensorwright.libgomp_num_threads",
}
"""The names under which `team_ir` calls libgomp's functions, distinct from other libraries'."""

POSIX_SYMBOLS = ("pthread_getspecific", "pthread_setspecific", "sched_yield")


SERIAL_IR = """
define void @tensorwright_team(ptr %main, ptr %context, i32 %threads) {
  call void %main(ptr %context)
  ret void
}
define void @tensorwright_parallel(ptr %body, ptr %data, i32 %threads, i32 %flags) {
  call void %body(ptr %data)
  ret void
}
define i32 @tensorwright_thread_num() {
  ret i32 0
}
define i32 @tensorwright_num_threads() {
  ret i32 1
}
"""
"""The functions above for a process without libgomp."""


def team_ir(arch: str) -> str:
    """The functions above as LLVM IR, for a process whose libgomp is linked as `RENAMED` says."""
    return _IR.substitute(key=_slot_key(), spins=_SPINS, pause=_PAUSES[arch])


@lru_cache(maxsize=1)
def _slot_key() -> int:
    """The process's key of the thread-specific value, which points to a thread's slot."""
    key = ctypes.c_uint64(0)  # pthread_key_t has 32 bits or 64
    error = ctypes.CDLL(None).pthread_key_create(ctypes.byref(key), None)
    if error:
        raise OSError(error, "no thread-specific value is free")
    return key.value


_IR = Template("""
declare void @tensorwright.libgomp_parallel(ptr, ptr, i32, i32)
declare i32 @tensorwright.libgomp_thread_num()
declare i32 @tensorwright.libgomp_num_threads()
declare ptr @pthread_getspecific(i64)
declare i32 @pthread_setspecific(i64, ptr)
declare i32 @sched_yield()
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)

define void @tensorwright_team(ptr %main, ptr %context, i32 %threads) nounwind {
entry:
  %own = call ptr @pthread_getspecific(i64 $key)
  %is_free = icmp eq ptr %own, null
  %is_several = icmp sgt i32 %threads, 1
  %forks = and i1 %is_free, %is_several
  br i1 %forks, label %fork, label %alone
alone:
  call void %main(ptr %context)
  ret void
fork:
  %count = zext i32 %threads to i64
  %bytes = mul i64 %count, 256
  %team = alloca i8, i64 %bytes, align 128
  call void @llvm.memset.p0.i64(ptr align 128 %team, i8 0, i64 %bytes, i1 false)
  %main.at = getelementptr i8, ptr %team, i64 128
  store ptr %main, ptr %main.at
  %context.at = getelementptr i8, ptr %team, i64 136
  store ptr %context, ptr %context.at
  call void @tensorwright.libgomp_parallel(ptr @member, ptr %team, i32 %threads, i32 0)
  ret void
}

define internal void @member(ptr %team) nounwind {
  %number = call i32 @tensorwright.libgomp_thread_num()
  %number.wide = zext i32 %number to i64
  %offset = mul i64 %number.wide, 256
  %slot = getelementptr i8, ptr %team, i64 %offset
  %number.at = getelementptr i8, ptr %slot, i64 32
  store i64 %number.wide, ptr %number.at
  %team.at = getelementptr i8, ptr %slot, i64 40
  store ptr %team, ptr %team.at
  call i32 @pthread_setspecific(i64 $key, ptr %slot)
  %is_first = icmp eq i32 %number, 0
  br i1 %is_first, label %lead, label %follow
lead:
  call void @lead(ptr %team)
  br label %done
follow:
  call void @follow(ptr %slot)
  br label %done
done:
  call i32 @pthread_setspecific(i64 $key, ptr null)
  ret void
}

define internal void @lead(ptr %team) nounwind {
  %size = call i32 @tensorwright.libgomp_num_threads()
  %size.wide = zext i32 %size to i64
  %size.at = getelementptr i8, ptr %team, i64 144
  store i64 %size.wide, ptr %size.at
  %main.at = getelementptr i8, ptr %team, i64 128
  %main = load ptr, ptr %main.at
  %context.at = getelementptr i8, ptr %team, i64 136
  %context = load ptr, ptr %context.at
  call void %main(ptr %context)
  call void @give(ptr %team, ptr null, ptr null, i64 %size.wide)
  ret void
}

define internal void @follow(ptr %slot) nounwind {
entry:
  %body.at = getelementptr i8, ptr %slot, i64 8
  %data.at = getelementptr i8, ptr %slot, i64 16
  %done.at = getelementptr i8, ptr %slot, i64 128
  br label %next
next:
  %seen = phi i64 [0, %entry], [%epoch, %work]
  %epoch = add i64 %seen, 1
  call void @await(ptr %slot, i64 %epoch)
  %body = load ptr, ptr %body.at
  %data = load ptr, ptr %data.at
  %is_end = icmp eq ptr %body, null
  br i1 %is_end, label %done, label %work
work:
  call void %body(ptr %data)
  store atomic i64 %epoch, ptr %done.at release, align 8
  br label %next
done:
  ret void
}

define internal void @give(ptr %team, ptr %body, ptr %data, i64 %count) nounwind {
entry:
  br label %check
check:
  %number = phi i64 [1, %entry], [%following, %post]
  %is_more = icmp ult i64 %number, %count
  br i1 %is_more, label %post, label %done
post:
  %offset = mul i64 %number, 256
  %slot = getelementptr i8, ptr %team, i64 %offset
  %body.at = getelementptr i8, ptr %slot, i64 8
  store ptr %body, ptr %body.at
  %data.at = getelementptr i8, ptr %slot, i64 16
  store ptr %data, ptr %data.at
  %count.at = getelementptr i8, ptr %slot, i64 24
  store i64 %count, ptr %count.at
  %before = load i64, ptr %slot
  %epoch = add i64 %before, 1
  store atomic i64 %epoch, ptr %slot release, align 8
  %following = add i64 %number, 1
  br label %check
done:
  ret void
}

define internal void @collect(ptr %team, i64 %count) nounwind {
entry:
  br label %check
check:
  %number = phi i64 [1, %entry], [%following, %wait]
  %is_more = icmp ult i64 %number, %count
  br i1 %is_more, label %wait, label %done
wait:
  %offset = mul i64 %number, 256
  %slot = getelementptr i8, ptr %team, i64 %offset
  %epoch = load i64, ptr %slot
  %done.at = getelementptr i8, ptr %slot, i64 128
  call void @await(ptr %done.at, i64 %epoch)
  %following = add i64 %number, 1
  br label %check
done:
  ret void
}

define internal void @await(ptr %word, i64 %value) nounwind {
entry:
  br label %look
look:
  %looks = phi i64 [0, %entry], [%looks.next, %pause], [%looks, %offer]
  %now = load atomic i64, ptr %word acquire, align 8
  %is_there = icmp eq i64 %now, %value
  br i1 %is_there, label %done, label %wait
wait:
  %is_patient = icmp ult i64 %looks, $spins
  br i1 %is_patient, label %pause, label %offer
pause:
  call void asm sideeffect "$pause", "~{memory}"()
  %looks.next = add i64 %looks, 1
  br label %look
offer:
  call i32 @sched_yield()
  br label %look
done:
  ret void
}

define void @tensorwright_parallel(ptr %body, ptr %data, i32 %threads, i32 %flags) nounwind {
  %slot = call ptr @pthread_getspecific(i64 $key)
  %is_outside = icmp eq ptr %slot, null
  br i1 %is_outside, label %outside, label %inside
outside:
  call void @tensorwright.libgomp_parallel(ptr %body, ptr %data, i32 %threads, i32 %flags)
  ret void
inside:
  %count.at = getelementptr i8, ptr %slot, i64 24
  %before = load i64, ptr %count.at
  %size.at = getelementptr i8, ptr %slot, i64 144
  %size = load i64, ptr %size.at
  %asked = zext i32 %threads to i64
  %is_open = icmp eq i64 %asked, 0
  %fits = icmp ult i64 %asked, %size
  %least = select i1 %fits, i64 %asked, i64 %size
  %count = select i1 %is_open, i64 %size, i64 %least
  %is_idle = icmp eq i64 %before, 0
  %is_several = icmp ugt i64 %count, 1
  %is_shared = and i1 %is_idle, %is_several
  br i1 %is_shared, label %share, label %alone
share:
  store i64 %count, ptr %count.at
  call void @give(ptr %slot, ptr %body, ptr %data, i64 %count)
  call void %body(ptr %data)
  call void @collect(ptr %slot, i64 %count)
  store i64 0, ptr %count.at
  ret void
alone:
  %number.at = getelementptr i8, ptr %slot, i64 32
  %number = load i64, ptr %number.at
  store i64 0, ptr %number.at
  store i64 1, ptr %count.at
  call void %body(ptr %data)
  store i64 %number, ptr %number.at
  store i64 %before, ptr %count.at
  ret void
}

define i32 @tensorwright_thread_num() nounwind {
  %slot = call ptr @pthread_getspecific(i64 $key)
  %is_outside = icmp eq ptr %slot, null
  br i1 %is_outside, label %outside, label %inside
outside:
  %own = call i32 @tensorwright.libgomp_thread_num()
  ret i32 %own
inside:
  %number.at = getelementptr i8, ptr %slot, i64 32
  %number = load i64, ptr %number.at
  %narrow = trunc i64 %number to i32
  ret i32 %narrow
}

define i32 @tensorwright_num_threads() nounwind {
  %slot = call ptr @pthread_getspecific(i64 $key)
  %is_outside = icmp eq ptr %slot, null
  br i1 %is_outside, label %outside, label %inside
outside:
  %own = call i32 @tensorwright.libgomp_num_threads()
  ret i32 %own
inside:
  %count.at = getelementptr i8, ptr %slot, i64 24
  %count = load i64, ptr %count.at
  %is_idle = icmp eq i64 %count, 0
  %narrow = trunc i64 %count to i32
  %result = select i1 %is_idle, i32 1, i32 %narrow
  ret i32 %result
}
""")
