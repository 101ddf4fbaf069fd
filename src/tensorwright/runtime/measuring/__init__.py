"""What this machine reaches, and what calling costs on it, measured as kernels are: by code that
is compiled for the target.  Read `this_machine.py` first.
"""
