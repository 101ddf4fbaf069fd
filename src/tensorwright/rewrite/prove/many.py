"""Many rules, in processes that can be killed.

Every rule is decided within counted bounds, so that no process should run long; one that does is
killed after `patience_s`, and the answer is unknown.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

from tensorwright.base import TensorwrightError
from tensorwright.rewrite.prove.outcome import Outcome, Unknown
from tensorwright.rewrite.prove.prover import prove
from tensorwright.rewrite.terms import Rule

__all__ = ["prove_all"]


def prove_all(
    rules: Sequence[Rule], workers: int = 2, patience_s: float = 120.0, confirm: bool = True
) -> Iterator[tuple[int, Outcome]]:
    """Decide rules with the shipped axioms; yields (place, outcome) as they are decided.

    Raises:  MachineError where Z3 is wanted and is not installed.
    """
    waiting = list(enumerate(rules))[::-1]
    crew: dict[Connection, _Worker] = {}
    try:
        while waiting or any(worker.place is not None for worker in crew.values()):
            while waiting and len(crew) < workers:
                worker = _Worker(confirm)
                crew[worker.ours] = worker
            for worker in crew.values():
                if worker.place is None and waiting:
                    worker.give(*waiting.pop())
            ready = wait(list(crew), timeout=patience_s)
            busy = [each for each in crew.values() if each.place is not None]
            for worker in busy:
                place, rule = worker.work
                if worker.ours in ready:
                    outcome = worker.take()
                    if isinstance(outcome, TensorwrightError):
                        raise outcome
                    yield place, outcome
                elif not ready:
                    worker.stop()
                    del crew[worker.ours]
                    yield place, Unknown(rule, f"no answer within {patience_s:g} seconds")
    finally:
        for worker in crew.values():
            worker.stop()


class _Worker:
    """A process that decides one rule after the other."""

    def __init__(self, confirm: bool) -> None:
        context = multiprocessing.get_context("spawn")
        self.ours, theirs = context.Pipe()
        self.process: BaseProcess = context.Process(
            target=_serve, args=(theirs, confirm), daemon=True
        )
        self.process.start()
        theirs.close()
        self.place: int | None = None
        self._rule: Rule | None = None

    @property
    def work(self) -> tuple[int, Rule]:
        """What it is at; only where `place` is not None."""
        if self.place is None or self._rule is None:
            raise ValueError("the worker has nothing to do")
        return self.place, self._rule

    def give(self, place: int, rule: Rule) -> None:
        self.place, self._rule = place, rule
        self.ours.send(rule)

    def take(self) -> Outcome | TensorwrightError:
        _, rule = self.work
        self.place = None
        try:
            answer: Outcome | TensorwrightError = self.ours.recv()
        except EOFError:
            return Unknown(rule, "the process that looked for a proof ended")
        return answer

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.ours.close()


def _serve(pipe: Connection, confirm: bool) -> None:
    while True:
        try:
            rule = pipe.recv()
        except EOFError:
            return
        try:
            pipe.send(prove(rule, confirm=confirm))
        except TensorwrightError as error:
            pipe.send(error)
