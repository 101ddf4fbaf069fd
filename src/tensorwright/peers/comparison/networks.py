"""One model in this and in other runtimes: the same answers, and how fast."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

from tensorwright.base import TensorwrightError
from tensorwright.peers.comparison.accuracy import max_rel_error
from tensorwright.peers.comparison.network_table import BenchRow, PeerTime, make_row
from tensorwright.peers.comparison.rotation import Failure, Timing, rotate
from tensorwright.peers.process.process import PeerProcess
from tensorwright.peers.process.protocol import Arrays, PeerFailed

WRONG = 1e-3
"""A peer whose answers are further from the first peer's is not in the race."""


class _Contest:
    """Who takes part in one comparison, while it runs.

    racing   processes that answered rightly      answers  of the first peer that ran
    found    what is known of each peer
    """

    def __init__(self, inputs: Arrays, threads: int) -> None:
        self.inputs, self.threads = inputs, threads
        self.racing: dict[str, PeerProcess] = {}
        self.answers: Arrays | None = None
        self.found: dict[str, PeerTime] = {}

    def start(self, stack: ExitStack, name: str, kind: str, path: str) -> tuple[str, Arrays]:
        """Start a competitor: its version and its answers.

        Raises:  PeerFailed, MachineError if it cannot run the model.
        """
        process = stack.enter_context(PeerProcess(name, kind))
        info = process.load(path, self.threads)
        outputs = process.check(self.inputs)
        self.racing[name] = process
        return info.version, outputs

    def add_peer(self, stack: ExitStack, kind: str, path: str) -> None:
        """Start a peer; one that fails, or answers unlike the first one, is told and left out."""
        try:
            version, outputs = self.start(stack, kind, kind, path)
        except TensorwrightError as problem:
            self.found[kind] = PeerTime(kind, failure=describe(problem))
            return
        if self.answers is None:
            self.answers = outputs
        error = max_rel_error(outputs, self.answers)
        failure = ""
        if not error <= WRONG:
            self.racing.pop(kind)
            failure = f"peer {kind} answers differently: by {error:.1e} of the largest number"
        self.found[kind] = PeerTime(kind, version, max_rel_error=error, failure=failure)


def compare_model(
    model: str,
    ours: str | os.PathLike[str],
    theirs: str | os.PathLike[str],
    inputs: Arrays,
    threads: int,
    peers: Sequence[str] = ("onnxruntime",),
    runtime: str = "ours",
    rounds: int = 11,
    limit_s: float | None = None,
    host_operators: Sequence[str] = (),
    flops: float = 0.0,
    peak: float = 0.0,
) -> BenchRow:
    """Check our executable's outputs against the first peer that runs, then time all in rotation.

    model   its name in the row               ours      file of our executable
    theirs  file that the peers read          rounds    of the rotation; 0 to check only
    peers   their kinds                       runtime   kind of our competitor
    limit_s see `rotate`                      flops     of an inference; peak   of the machine, in
                                                        flop/s, both 0 where they are not known
    A crash, a hang or a refusal of ours, or of every peer, is the row's `failure`; that of one peer
    is its own, and the others go on.
    """
    contest = _Contest(inputs, threads)
    error: float | None = None
    ours_s: float | None = None
    failure = ""
    with ExitStack() as stack:
        try:
            _, outputs = contest.start(stack, "ours", runtime, os.fspath(ours))
        except PeerFailed as problem:
            return make_row(model, "", host_operators=host_operators, failure=describe(problem))
        for kind in peers:
            contest.add_peer(stack, kind, os.fspath(theirs))
        if contest.answers is not None:
            error = max_rel_error(outputs, contest.answers)
        if rounds:
            ours_s, failure = _race(contest, rounds, limit_s)
    found = tuple(contest.found.values())
    if not failure and all(each.failure for each in found):
        failure = next((each.failure for each in found), "there is no peer")
    return make_row(
        model,
        "",
        error,
        ours_s,
        host_operators=host_operators,
        failure=failure,
        peers=found,
        flops=flops,
        peak=peak,
    )


def describe(problem: TensorwrightError) -> str:
    """A failure on the line of a row."""
    if isinstance(problem, PeerFailed):
        return f"{problem.where} {problem.kind}: {problem.reason}"
    return str(problem)


def _race(contest: _Contest, rounds: int, limit_s: float | None) -> tuple[float | None, str]:
    """Time those that answered: seconds of ours, and its failure; the peers' go into `found`."""
    ours_s: float | None = None
    failure = ""
    for result in rotate(tuple(contest.racing.values()), rounds, limit_s=limit_s):
        text = ""
        if isinstance(result, Failure):
            text = f"{result.name} {result.kind.value}: {result.reason}"
        time_s = result.median_s if isinstance(result, Timing) else None
        if result.name == "ours":
            ours_s, failure = time_s, text
        else:
            contest.found[result.name] = contest.found[result.name].with_time(time_s, text)
    return ours_s, failure
