"""`tensorwright pretrain`: measure random programs, and train the time model on them."""

from __future__ import annotations

import click

from tensorwright.cli.pretrain.collect import command as collect
from tensorwright.cli.pretrain.train import command as train

command = click.Group(
    name="pretrain",
    commands=(collect, train),
    help="Train the model that chooses schedules where nothing was measured.",
)
