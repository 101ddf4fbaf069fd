"""Are the axioms true, consistent and needed?  Read `validate.py` first."""
