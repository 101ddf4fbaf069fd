"""Chunks of work in worker processes, or in this one where that is quicker.

    map_chunks(partial(chunk_keys, store), [first, second, ...], workers=2)
    step       each goes to a process that is free
    yields     keys of the first, keys of the second, ...

What a chunk gives depends on the chunk alone, so the number of workers changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

from tensorwright.base import MachineError
from tensorwright.processes import Done, Job, WorkerPool

Chunk = TypeVar("Chunk")
Result = TypeVar("Result")
_ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def map_chunks(
    function: Callable[[Chunk], Result], chunks: Sequence[Chunk], workers: int
) -> Iterator[Result]:
    """Yield the results of chunks in their order, as soon as those before them are done.

    function  plain, of plain data: it goes to each process once, and its arguments and results
              travel between processes

    Raises:  MachineError where a worker ends before its chunk does.
    """
    if workers < 2 or len(chunks) < 2:
        yield from map(function, chunks)
        return
    jobs = [Job(_call_kept, (chunk,)) for chunk in chunks]
    early: dict[int, Result] = {}
    turn = 0
    with WorkerPool(workers, Job(_keep, (function,)), _ONE_THREAD) as pool:
        for index, outcome in pool.results(jobs):
            if not isinstance(outcome, Done):
                raise MachineError(
                    stage="rules",
                    where="a worker process",
                    reason="it ended before its work was done; perhaps there was not enough "
                    f"memory: {outcome}",
                    remedy="run again with --resume and fewer workers",
                )
            early[index] = outcome.value
            while turn in early:
                yield early.pop(turn)
                turn += 1


_kept: list[Callable[[Any], Any]] = []
"""In a worker process: the function of its chunks."""


def _keep(function: Callable[[Any], Any]) -> None:
    _kept[:] = [function]


def _call_kept(chunk: object) -> object:
    return _kept[0](chunk)
