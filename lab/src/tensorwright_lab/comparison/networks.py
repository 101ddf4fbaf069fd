"""One model in this and in other runtimes: the same answers, and how fast."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from tensorwright.base import CpuTarget, TensorwrightError
from tensorwright.peers.process.process import PeerProcess, is_held
from tensorwright.peers.process.protocol import NO_STEPS, Arrays, PeerFailed, PeerInfo, Steps
from tensorwright.peers.process.rotation import Failure, Timing, rotate
from tensorwright_lab.comparison.agreement import (
    Apart,
    apart,
    choose_reference,
    worst_of,
    wrong_text,
)
from tensorwright_lab.comparison.network_rows import UNKNOWN, BenchRow, Compiled, PeerTime, make_row

OURS = "ours"
UNTUNED = "ours untuned"


class _Contest:
    """Who takes part in one comparison, while it runs.

    racing   processes that answered       answers  what each peer answered
    times    the time of each peer, and its facts
    """

    def __init__(
        self, inputs: Arrays, threads: int, target: CpuTarget | None, steps: Steps = NO_STEPS
    ) -> None:
        self.inputs, self.threads, self.target, self.steps = inputs, threads, target, steps
        self.racing: dict[str, PeerProcess] = {}
        self.answers: dict[str, Arrays] = {}
        self.times: dict[str, PeerTime] = {}

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
        """Start a peer; one that fails is told and left out."""
        try:
            info, self.answers[kind] = self.start(stack, kind, kind, path)
        except TensorwrightError as problem:
            self.times[kind] = PeerTime(kind, failure=describe(problem))
            return
        held = is_held(info, self.target)
        self.times[kind] = PeerTime(kind, info.version, is_held=held)

    def judge(self, ours: Sequence[Arrays]) -> tuple[Apart, str]:
        """Compare all answers with the reference, see `choose_reference`: the error of ours, the
        worst of several, and what is said of it if it is wrong.  Peers that are wrong are told and
        left out; without an answer of a peer there is no error.
        """
        if not self.answers:
            return Apart(None), ""
        steps = self.steps
        reference = self.answers[choose_reference(self.answers, steps)]
        errors = {kind: apart(each, reference, steps) for kind, each in self.answers.items()}
        own = errors[OURS] = worst_of([apart(each, reference, steps) for each in ours])
        for kind in self.answers:
            error, failure = errors[kind], ""
            if error.is_wrong:
                self.racing.pop(kind)
                failure = wrong_text(f"peer {kind}", error, errors)
            time = self.times[kind]
            self.times[kind] = replace(time, max_rel_error=error.relative, failure=failure)
        return own, wrong_text(OURS, own, errors) if own.is_wrong else ""


def compare_model(
    model: str,
    ours: str | os.PathLike[str],
    theirs: str | os.PathLike[str],
    inputs: Arrays,
    threads: int,
    peers: Sequence[str] = ("onnxruntime",),
    *,
    untuned: str | os.PathLike[str] | None = None,
    target: CpuTarget | None = None,
    runtime: str = "ours",
    rounds: int = 11,
    limit_s: float | None = None,
    compiled: Compiled = UNKNOWN,
    steps: Steps = NO_STEPS,
    at: str = "",
) -> BenchRow:
    """Check everybody's outputs against a reference, then time those that are right in rotation.

    The reference is the first peer that another peer agrees with, or else the first that runs.

    model   its name in the row               ours      file of our executable
    theirs  file that the peers read          rounds    of the rotation; 0 to check only
    peers   their kinds                       untuned   a second file of ours, without records
    target  that peers are held to            runtime   kind of our competitors
    limit_s see `rotate`                      compiled  what is known of our executable
    steps   of the quantised outputs, by name   at      the numbers of open sizes, for the row
    A wrong answer, a crash, a hang or a refusal of ours, or of every peer, is the row's `failure`;
    that of one peer is its own, and the others go on. What is wrong has no time.
    """
    contest = _Contest(inputs, threads, target, steps)
    own = {OURS: ours} if untuned is None else {OURS: ours, UNTUNED: untuned}
    times_s: dict[str, float | None] = {}
    with ExitStack() as stack:
        try:
            outputs = [
                contest.start(stack, name, runtime, os.fspath(path))[1]
                for name, path in own.items()
            ]
        except PeerFailed as problem:
            return make_row(model, failure=describe(problem), compiled=compiled, at=at)
        for kind in peers:
            contest.add_peer(stack, kind, os.fspath(theirs))
        error, failure = contest.judge(outputs)
        if rounds and not failure:
            times_s, failure = _race(contest, tuple(own), rounds, limit_s)
    peer_times = tuple(contest.times.values())
    if not failure and all(each.failure for each in peer_times):
        failure = next((each.failure for each in peer_times), "there is no peer")
    return make_row(
        model,
        max_rel_error=error.relative,
        ours_s=times_s.get(OURS),
        untuned_s=times_s.get(UNTUNED),
        failure=failure,
        peers=peer_times,
        compiled=compiled,
        max_steps=error.steps,
        at=at,
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
    `times`.
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
            contest.times[result.name] = contest.times[result.name].with_time(time_s, text)
    return times_s, failure
