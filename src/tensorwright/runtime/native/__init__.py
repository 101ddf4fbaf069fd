"""Code in this process: loading it, calling it, and its threads."""
