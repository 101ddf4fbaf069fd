"""The networks of the literature, one family a file."""
