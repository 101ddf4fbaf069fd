"""Types, constants, names, blocks and scopes of the text that is written."""
