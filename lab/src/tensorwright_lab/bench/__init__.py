"""`tensorwright bench`: this and other runtimes, side by side.

One file per command, a folder where it needs several. A new one is a module with a `command`, and
a line in COMMANDS.
"""

from __future__ import annotations

import click

from tensorwright_lab.bench.costmodel import command as costmodel
from tensorwright_lab.bench.decode import command as decode
from tensorwright_lab.bench.models import command as models
from tensorwright_lab.bench.ops import command as ops
from tensorwright_lab.bench.random_workloads import command as random
from tensorwright_lab.bench.rewriting import command as rewriting
from tensorwright_lab.bench.scoring import command as scoring
from tensorwright_lab.bench.serve import command as serve
from tensorwright_lab.bench.zero import command as zero

COMMANDS: tuple[click.Command, ...] = (
    *(models, serve, decode, rewriting, ops, costmodel, scoring, random, zero),
)

command = click.Group(
    name="bench",
    commands=COMMANDS,
    help="Compare with other runtimes: same answers? how fast?",
)
