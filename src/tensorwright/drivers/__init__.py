"""Searches over whole networks, one file for each command: `tune`, `rewrite`, `optimize`.

Import the file of the search that you need.  This module is empty, so that `compile` loads no
search.
"""
