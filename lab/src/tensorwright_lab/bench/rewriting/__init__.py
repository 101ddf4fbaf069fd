"""`tensorwright bench rewrite`.  Read `command.py`, then `runs.py`."""

from tensorwright_lab.bench.rewriting.command import command
