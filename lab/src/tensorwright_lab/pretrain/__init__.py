"""`tensorwright pretrain`: measure random programs, and train models on them."""

from __future__ import annotations

import click

from tensorwright_lab.pretrain.collect import command as collect
from tensorwright_lab.pretrain.proposer import command as proposer
from tensorwright_lab.pretrain.train import command as train

command = click.Group(
    name="pretrain",
    commands=(collect, train, proposer),
    help="Train the models that choose and propose schedules where nothing was measured.",
)
