"""How large the tiles are that are tried on processors; what is larger has never paid.

A kind of machine with schedules of its own has limits of its own.
"""

MOST_ROWS = 28  # of a register tile, along one axis
MOST_BLOCK_ROWS = 8  # of a block of rows, and of the tile of a window
FULL_UNROLL = 16  # a reduction of so few terms is unrolled whole
MOST_UNROLLED = 16  # terms of a longer one
