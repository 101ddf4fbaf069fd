"""What commands do with whole networks: `tune`, `rewrite`, `optimize`, `quantize`, a file for each.

Import the file that you need.  This module is empty, so that `compile` loads no search.
"""
