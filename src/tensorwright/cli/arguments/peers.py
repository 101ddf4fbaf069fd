"""Other runtimes: the option `--peers`, and a program's answers beside those of one of them."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import click

from tensorwright.base import Array, MachineError
from tensorwright.cli.arguments.check_model import TOLERANCE, TOLERANCE_STEPS, quantised_steps
from tensorwright.cli.arguments.compilation import Compilation
from tensorwright.cli.arguments.models import read_proto, save_proto
from tensorwright.cli.arguments.options import Command, read_names
from tensorwright.peers import PeerProcess, describe_error, find_kind, max_rel_error, max_steps


def read_peers(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[str, ...]:
    """Names of peers with commas between; what is unknown is refused."""
    names = read_names(ctx, param, text)
    for name in names:
        with suppress(MachineError):  # one that is not installed fails in each row
            find_kind(name)
    return names


def peers_option(usual: str) -> Command:
    """`--peers A,B`; `usual` says which there are where it is not given."""
    return click.option(
        "--peers",
        "--peer",
        "peers",
        callback=read_peers,
        metavar="A,B",
        help=f"The runtimes to compare with; {usual}.",
    )


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
