"""What a person writes tensor expressions with: `compute`, folds and functions.

Read `compute.py` first.  What it is given is checked at once: `arguments.py` names and shapes,
`axes.py` what is folded, `inside.py` that nothing is read outside its tensor.
"""
