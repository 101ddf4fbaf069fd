"""`tensorwright explain`: print a section of the page of errors."""

from tensorwright.cli.explain.command import PAGE, command
