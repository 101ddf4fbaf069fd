"""One model in this and in other runtimes: the same answers, and how fast."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

from tensorwright.base import Target, TensorwrightError
from tensorwright.peers.comparison.accuracy import (
    NO_STEPS,
    Steps,
    describe_error,
    max_rel_error,
    max_steps,
)
from tensorwright.peers.comparison.network_rows import (
    UNKNOWN,
    BenchRow,
    Compiled,
    PeerTime,
    make_row,
)
from tensorwright.peers.comparison.rotation import Failure, Timing, rotate
from tensorwright.peers.process.instructions import is_held
from tensorwright.peers.process.process import PeerProcess
from tensorwright.peers.process.protocol import Arrays, PeerFailed, PeerInfo

OURS = "ours"
UNTUNED = "ours untuned"
WRONG = 1e-3
WRONG_STEPS = 2.0
"""A peer whose answers are further from the first peer's is not in the race: by so much of the
largest number, or by so many steps of a quantised output."""


class _Contest:
    """Who takes part in one comparison, while it runs.

    racing   processes that answered rightly      answers  of the first peer that ran
    found    what is known of each peer
    """

    def __init__(
        self, inputs: Arrays, threads: int, target: Target | None, steps: Steps = NO_STEPS
    ) -> None:
        self.inputs, self.threads, self.target, self.steps = inputs, threads, target, steps
        self.racing: dict[str, PeerProcess] = {}
        self.answers: Arrays | None = None
        self.found: dict[str, PeerTime] = {}

    def start(self, stack: ExitStack, name: str, kind: str, path: str) -> tuple[PeerInfo, Arrays]:
        """Start a competitor: what it says of itself, and its answers.

        Raises:  PeerFailed, MachineError if it cannot run the model.
        """
        process = stack.enter_context(PeerProcess(name, kind, target=self.target))
        info = process.load(path, self.threads)
        outputs = process.check(self.inputs)
        self.racing[name] = process
        return info, outputs

    def add_peer(self, stack: ExitStack, kind: str, path: str) -> None:
        """Start a peer; one that fails, or answers unlike the first one, is told and left out."""
        try:
            info, outputs = self.start(stack, kind, kind, path)
        except TensorwrightError as problem:
            self.found[kind] = PeerTime(kind, failure=describe(problem))
            return
        if self.answers is None:
            self.answers = outputs
        error = max_rel_error(outputs, self.answers, self.steps)
        apart = max_steps(outputs, self.answers, self.steps)
        failure = ""
        if not (error <= WRONG and (apart or 0.0) <= WRONG_STEPS):
            self.racing.pop(kind)
            failure = f"peer {kind} answers differently: by {describe_error(error, apart)}"
        self.found[kind] = PeerTime(
            kind,
            info.version,
            max_rel_error=error,
            failure=failure,
            is_held=is_held(info, self.target),
        )


def compare_model(
    model: str,
    ours: str | os.PathLike[str],
    theirs: str | os.PathLike[str],
    inputs: Arrays,
    threads: int,
    peers: Sequence[str] = ("onnxruntime",),
    *,
    untuned: str | os.PathLike[str] | None = None,
    target: Target | None = None,
    runtime: str = "ours",
    rounds: int = 11,
    limit_s: float | None = None,
    compiled: Compiled = UNKNOWN,
    steps: Steps = NO_STEPS,
) -> BenchRow:
    """Check our executable's outputs against the first peer that runs, then time all in rotation.

    model   its name in the row               ours      file of our executable
    theirs  file that the peers read          rounds    of the rotation; 0 to check only
    peers   their kinds                       untuned   a second file of ours, without records
    target  that peers are held to            runtime   kind of our competitors
    limit_s see `rotate`                      compiled  what is known of our executable
    steps   of the quantised outputs, by name
    A crash, a hang or a refusal of ours, or of every peer, is the row's `failure`; that of one peer
    is its own, and the others go on.
    """
    contest = _Contest(inputs, threads, target, steps)
    own = {OURS: ours} if untuned is None else {OURS: ours, UNTUNED: untuned}
    error: float | None = None
    apart: float | None = None
    times_s: dict[str, float | None] = {}
    failure = ""
    with ExitStack() as stack:
        try:
            outputs = [
                contest.start(stack, name, runtime, os.fspath(path))[1]
                for name, path in own.items()
            ]
        except PeerFailed as problem:
            return make_row(model, failure=describe(problem), compiled=compiled)
        for kind in peers:
            contest.add_peer(stack, kind, os.fspath(theirs))
        if contest.answers is not None:
            error = max(max_rel_error(each, contest.answers, steps) for each in outputs)
        if contest.answers is not None and steps:
            apart = max(max_steps(each, contest.answers, steps) or 0.0 for each in outputs)
        if rounds:
            times_s, failure = _race(contest, tuple(own), rounds, limit_s)
    found = tuple(contest.found.values())
    if not failure and all(each.failure for each in found):
        failure = next((each.failure for each in found), "there is no peer")
    return make_row(
        model,
        max_rel_error=error,
        ours_s=times_s.get(OURS),
        untuned_s=times_s.get(UNTUNED),
        failure=failure,
        peers=found,
        compiled=compiled,
        max_steps=apart,
    )


def describe(problem: TensorwrightError) -> str:
    """A failure on the line of a row."""
    if isinstance(problem, PeerFailed):
        return f"{problem.where} {problem.kind}: {problem.reason}"
    return str(problem)


def _race(
    contest: _Contest, own: Sequence[str], rounds: int, limit_s: float | None
) -> tuple[dict[str, float | None], str]:
    """Time those that answered: seconds of each of ours, and a failure of one; the peers' go into
    `found`.
    """
    times_s: dict[str, float | None] = {}
    failure = ""
    for result in rotate(tuple(contest.racing.values()), rounds, limit_s=limit_s):
        text = ""
        if isinstance(result, Failure):
            text = f"{result.name} {result.kind.value}: {result.reason}"
        time_s = result.median_s if isinstance(result, Timing) else None
        if result.name in own:
            times_s[result.name], failure = time_s, failure or text
        else:
            contest.found[result.name] = contest.found[result.name].with_time(time_s, text)
    return times_s, failure
