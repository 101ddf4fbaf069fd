"""Whether the shipped axioms are true, needed and enough. Read `validation.py` first.

`command.py` groups candidates without a proof by the property that they may lack.
"""
