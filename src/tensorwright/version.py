"""The version of the package: a module of its own, so that every folder may ask for it."""

__version__ = "0.1.0"
