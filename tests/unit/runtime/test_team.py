"""Parallel loops through a waiting team do what libgomp's do."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

import numpy as np
import pytest

from tensorwright.base import detect_target
from tensorwright.codegen.llvm import compile_module
from tensorwright.runtime import load_object, openmp_runtime

pytestmark = pytest.mark.skipif(openmp_runtime() is None, reason="there is no libgomp")

# A frame: [cells, loops, threads]. Each loop adds one to a cell of every thread that takes part;
# a nested loop inside adds 1000 to that of the thread that began it.
IR = """
declare void @tensorwright_team(ptr, ptr, i32)
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

define internal void @inner(ptr %cell) {
  %old = load i64, ptr %cell
  %new = add i64 %old, 1000
  store i64 %new, ptr %cell
  ret void
}

define internal void @count(ptr %frame) {
  %cells = load ptr, ptr %frame
  %id = call i32 @omp_get_thread_num()
  %wide = zext i32 %id to i64
  %cell = getelementptr i64, ptr %cells, i64 %wide
  %old = load i64, ptr %cell
  %new = add i64 %old, 1
  store i64 %new, ptr %cell
  %size = call i32 @omp_get_num_threads()
  %size.wide = zext i32 %size to i64
  %size.at = getelementptr i64, ptr %frame, i64 3
  store i64 %size.wide, ptr %size.at
  ret void
}

define internal void @nest(ptr %frame) {
  call void @count(ptr %frame)
  %id = call i32 @omp_get_thread_num()
  %wide = zext i32 %id to i64
  %cells = load ptr, ptr %frame
  %cell = getelementptr i64, ptr %cells, i64 %wide
  call void @GOMP_parallel(ptr @inner, ptr %cell, i32 1, i32 0)
  ret void
}

define internal void @loops(ptr %frame) {
entry:
  %loops.at = getelementptr i64, ptr %frame, i64 1
  %loops = load i64, ptr %loops.at
  %threads.at = getelementptr i64, ptr %frame, i64 2
  %threads = load i64, ptr %threads.at
  %threads32 = trunc i64 %threads to i32
  br label %again
again:
  %i = phi i64 [0, %entry], [%next, %again]
  call void @GOMP_parallel(ptr @count, ptr %frame, i32 %threads32, i32 0)
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %loops
  br i1 %more, label %again, label %done
done:
  ret void
}

define internal void @nests(ptr %frame) {
  %threads.at = getelementptr i64, ptr %frame, i64 2
  %threads = load i64, ptr %threads.at
  %threads32 = trunc i64 %threads to i32
  call void @GOMP_parallel(ptr @nest, ptr %frame, i32 %threads32, i32 0)
  ret void
}

define void @together(ptr %frame) {
  %threads.at = getelementptr i64, ptr %frame, i64 2
  %threads = load i64, ptr %threads.at
  %threads32 = trunc i64 %threads to i32
  call void @tensorwright_team(ptr @loops, ptr %frame, i32 %threads32)
  ret void
}

define void @nested(ptr %frame) {
  %threads.at = getelementptr i64, ptr %frame, i64 2
  %threads = load i64, ptr %threads.at
  %threads32 = trunc i64 %threads to i32
  call void @tensorwright_team(ptr @nests, ptr %frame, i32 %threads32)
  ret void
}

define void @apart(ptr %frame) {
  call void @loops(ptr %frame)
  ret void
}
"""
NAMES = ("together", "nested", "apart")


@pytest.fixture(scope="module")
def functions() -> dict[str, Callable[[int, int], list[int]]]:
    code = load_object(compile_module(IR, detect_target()), NAMES)

    def caller(name: str) -> Callable[[int, int], list[int]]:
        run = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(code.address(name))

        def call(loops: int, threads: int) -> list[int]:
            cells = np.zeros(max(64, threads), np.int64)
            frame = (ctypes.c_int64 * 4)(cells.ctypes.data, loops, threads, 0)
            run(ctypes.addressof(frame))
            assert code is not None
            return [int(frame[3]), *cells[:threads].tolist()]

        return call

    return {name: caller(name) for name in NAMES}


Functions = dict[str, Callable[[int, int], list[int]]]


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("loops", [1, 2, 500])
def test_every_member_runs_every_loop(functions: Functions, loops: int, threads: int) -> None:
    expected = [threads, *[loops] * threads]
    assert functions["together"](loops, threads) == expected
    assert functions["apart"](loops, threads) == expected


def test_a_loop_inside_a_loop_goes_to_the_runtime(functions: Functions) -> None:
    assert functions["nested"](1, 2) == [2, 1001, 1001]
    assert functions["nested"](1, 1) == [1, 1001]


def test_threads_of_the_caller_have_teams_of_their_own(functions: Functions) -> None:
    results: list[list[int]] = []

    def work() -> None:
        results.extend(functions["together"](200, 2) for _ in range(5))

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert results == [[2, 200, 200]] * 15
