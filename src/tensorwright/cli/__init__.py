"""The command line. Read registry.py first (the list of commands), then group.py.

Each command has a file that is imported only when it is called, so that `tensorwright --help`
stays fast.
"""

import importlib
import sys

__all__ = ["INTERRUPTED", "main"]

INTERRUPTED = 130
"""The status of a command that Ctrl-C ended."""


def main() -> None:
    """Run the command line of this process; an interrupt during loading ends it, too."""
    try:
        importlib.import_module("tensorwright.cli.group").main()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
