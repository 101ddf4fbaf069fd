"""The algebra of integers: extents, indices and conditions on them. Read `nodes.py` first.

`sizes.py` has the sizes that are known when a network runs; `traversal.py` is the one walk that
evaluates an expression, over numbers, arrays or expressions; `bounds.py` proves, and `simplify.py`
uses what it proves.
"""
