"""`tensorwright explain`: the page of errors, which is a file of the package."""

from tensorwright.cli.explain.command import PAGE, command

__all__ = ["PAGE", "command"]
