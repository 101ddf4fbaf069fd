"""A program's answers beside those of another runtime, which runs in a process of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import click

from tensorwright.base import Array
from tensorwright.cli.arguments.check_model import TOLERANCE, TOLERANCE_STEPS, quantised_steps
from tensorwright.cli.arguments.compilation import Compilation
from tensorwright.cli.arguments.models import read_proto, save_proto
from tensorwright.peers import PeerProcess, describe_error, max_rel_error, max_steps


def agrees(
    peer: str,
    model: str,
    how: Compilation,
    threads: int,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
) -> bool:
    """Run a MODEL in another runtime on the same inputs; print the largest error, and whether it
    passes.

    Raises:  PeerFailed if the other runtime refuses, crashes or hangs.
    """
    proto = read_proto(model, how.shapes, how.seed)
    steps = quantised_steps(proto)
    with tempfile.TemporaryDirectory(prefix="tensorwright-check-") as folder:
        path = Path(folder) / "model.onnx"
        save_proto(proto, path)
        with PeerProcess(peer, peer) as process:
            info = process.load(str(path), threads)
            theirs = process.check(inputs)
    error, apart = max_rel_error(outputs, theirs, steps), max_steps(outputs, theirs, steps)
    is_near = error <= TOLERANCE and (apart or 0.0) <= TOLERANCE_STEPS
    limit = f"{TOLERANCE:g} of the largest number" if apart is None else "1 step"
    click.echo(
        f"{peer} {info.version}: largest error {describe_error(error, apart)}, "
        f"{'passes' if is_near else 'FAILS'} (at most {limit})"
    )
    return is_near
