"""Native code in this process: load it, call it, and run its threads."""
