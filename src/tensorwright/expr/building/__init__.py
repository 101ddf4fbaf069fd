"""What a person writes tensor expressions with: `compute`, folds and functions.

Read `compute.py` first.  Its arguments are checked at once: names and shapes by `arguments.py`,
folded axes by `axes.py`, and by `inside.py` that nothing is read outside its tensor.
"""
