"""Searches over whole networks, a file each, named for its command: `tune`, `rewrite`, `optimize`.

Import the file of the one that is wanted: this folder's own module is empty, so that `compile`,
which needs none of them, loads none.
"""

__all__: list[str] = []
