"""The command line. Read registry.py first (which commands there are), then group.py.

One file per command, imported only when it is called, so that `tensorwright --help` stays fast.
"""

import importlib
import sys

__all__ = ["INTERRUPTED", "main"]

INTERRUPTED = 130
"""The status of a command that Ctrl-C ended."""


def main() -> None:
    """Run the command line of this process; an interrupt while it is being loaded ends it, too."""
    try:
        importlib.import_module("tensorwright.cli.group").main()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
