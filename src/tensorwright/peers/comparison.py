"""One model in two runtimes: the same answers, and how fast."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack

from tensorwright.peers.compare import max_rel_error
from tensorwright.peers.process import PeerProcess
from tensorwright.peers.protocol import Arrays, PeerFailed
from tensorwright.peers.rotation import Failure, Timing, rotate
from tensorwright.peers.table import BenchRow, make_row


def compare_model(
    model: str,
    ours: str | os.PathLike[str],
    theirs: str | os.PathLike[str],
    inputs: Arrays,
    threads: int,
    peer: str = "onnxruntime",
    runtime: str = "ours",
    rounds: int = 11,
    limit_s: float | None = None,
    host_operators: Sequence[str] = (),
) -> BenchRow:
    """Check our executable's outputs against a peer's, then time both in rotation.

    model   its name in the row               ours      file of our executable
    theirs  file that the peer reads          rounds    of the rotation; 0 to check only
    peer    its kind                          runtime   kind of the first competitor
    limit_s see `rotate`
    A crash, a hang or a refusal of either one is the row's `failure`.
    """
    error: float | None = None
    times_s: list[float | None] = [None, None]
    failure = ""
    try:
        with ExitStack() as stack:
            pair = [
                stack.enter_context(PeerProcess("ours", runtime)),
                stack.enter_context(PeerProcess(peer, peer)),
            ]
            for process, path in zip(pair, (ours, theirs), strict=True):
                process.load(os.fspath(path), threads)
            error = max_rel_error(pair[0].check(inputs), pair[1].check(inputs))
            for place, result in enumerate(rotate(pair, rounds, limit_s=limit_s) if rounds else ()):
                match result:
                    case Timing():
                        times_s[place] = result.median_s
                    case Failure():
                        failure = failure or f"{result.name} {result.kind.value}: {result.reason}"
    except PeerFailed as problem:
        failure = f"{problem.where} {problem.kind}: {problem.reason}"
    return make_row(model, peer, error, times_s[0], times_s[1], host_operators, failure)
