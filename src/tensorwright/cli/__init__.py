"""The command line. Read group.py first, which has the list of commands.

Each command has a file that is imported only when it is called, so that `tensorwright --help`
stays fast.
"""

import importlib
import sys

INTERRUPTED = 130
"""The exit code of a command that Ctrl-C ended."""


def main() -> None:
    """Run the command line of this process; Ctrl-C ends it also while modules are imported."""
    try:
        importlib.import_module("tensorwright.cli.group").main()
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
