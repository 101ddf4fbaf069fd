"""`python -m tensorwright` is the command line."""

from tensorwright.cli import main

main()
