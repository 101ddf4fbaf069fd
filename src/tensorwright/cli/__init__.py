"""The command line. Read registry.py first (which commands there are), then group.py.

One file per command, imported only when it is called, so that `tensorwright --help` stays fast.
"""

from tensorwright.cli.group import main

__all__ = ["main"]
