"""`tensorwright doctor`: what this machine offers, and what is missing. Read `command.py` first."""

from tensorwright.cli.doctor.command import command

__all__ = ["command"]
